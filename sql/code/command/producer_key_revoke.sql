-- public
create or replace function tidemark.producer_key_revoke(kid text, reason text)
returns setof tidemark.producer_key
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if coalesce(btrim(producer_key_revoke.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a key is not revoked without a reason';
    end if;
    perform set_config('tidemark.reason', producer_key_revoke.reason, true);
    return query
    update tidemark.producer_key k set revoked_at = coalesce(k.revoked_at, clock_timestamp())
    where k.kid = producer_key_revoke.kid returning k.*;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no key "%s"', producer_key_revoke.kid),
            hint = 'Keys: select kid from tidemark.producer_key;';
    end if;
end
$$;
comment on function tidemark.producer_key_revoke(text, text) is
    'Revokes a key for good, also for records signed before. Raises TM004 (unknown key), TM005 (no reason).';
grant execute on function tidemark.producer_key_revoke(text, text) to tidemark_admin;
