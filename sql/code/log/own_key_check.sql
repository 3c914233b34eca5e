create or replace function tidemark.own_key_check(domain text, idempotency_key text, place text)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    -- A claim by an emitter must not make a row's event look stored already.
    if exists (select from tidemark.emit_key k
               where k.domain = own_key_check.domain and k.idempotency_key = own_key_check.idempotency_key
                 and not k.own) then
        raise exception using errcode = 'TM005',
            message = format('%sthe key "%s" of domain %s in tidemark.emit_key is not Tidemark''s own', place,
                             own_key_check.idempotency_key, own_key_check.domain),
            hint = 'Only Tidemark makes keys that begin with "tidemark:". See which event it names, and delete it.';
    end if;
    return false;
end
$$;
comment on function tidemark.own_key_check(text, text, text) is
    'For one of Tidemark''s own keys that was claimed before: returns false, since the event is not new, or raises '
    'TM005 where an emitter claimed it. place begins the message.';
