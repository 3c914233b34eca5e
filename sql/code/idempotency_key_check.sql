create or replace function tidemark.idempotency_key_check(idempotency_key text, place text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- An index entry has room for some 2,700 bytes, and the domain stands in it too.
    if octet_length(idempotency_key) > 1024 then
        raise exception using errcode = 'TM005',
            message = format('%sidempotency_key has %s bytes, and must have at most 1024', place, octet_length(idempotency_key)),
            hint = 'Use a digest of it.';
    end if;
end
$$;
comment on function tidemark.idempotency_key_check(text, text) is 'Raises TM005 for an idempotency key over 1024 bytes; place begins the message.';
revoke all on function tidemark.idempotency_key_check(text, text) from public;
