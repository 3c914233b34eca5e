create or replace function tidemark.idempotency_key_check(idempotency_key text, place text)
returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The keys that Tidemark makes for rows can be guessed: if an emitter could claim one, a row's event would look
    -- stored already.
    if starts_with(idempotency_key, 'tidemark:') then
        raise exception using errcode = 'TM005',
            message = format('%sidempotency_key begins with "tidemark:", which is reserved for Tidemark''s own keys',
                             place),
            hint = 'Use another prefix.';
    end if;
    -- An index entry has room for some 2,700 bytes, including the domain.
    if octet_length(idempotency_key) > 1024 then
        raise exception using errcode = 'TM005',
            message = format('%sidempotency_key has %s bytes, and must have at most 1024', place,
                             octet_length(idempotency_key)),
            hint = 'Use a digest of it.';
    end if;
    return true;
end
$$;
comment on function tidemark.idempotency_key_check(text, text) is
    'Returns true, or raises TM005 for an idempotency key that begins with "tidemark:" or exceeds 1024 bytes. place '
    'begins the message.';
