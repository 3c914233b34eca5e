-- public
create or replace function tidemark.producer_key_delete(kid text, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    key tidemark.producer_key;
begin
    select k.* into key from tidemark.producer_key k where k.kid = producer_key_delete.kid for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no key "%s"', producer_key_delete.kid),
            hint = 'Keys: select kid from tidemark.producer_key;';
    end if;
    perform tidemark.deletion('key', key.kid, producer_key_delete.reason,
        case when key.revoked_at is null and coalesce(key.valid_until > clock_timestamp(), true) then 'it is valid' end,
        format('Revoke it first: tidemark command key revoke %s', key.kid));
    delete from tidemark.producer_key k where k.kid = key.kid;
end
$$;
comment on function tidemark.producer_key_delete(text, text) is
    'Deletes a key that was revoked or has expired. What it signed is refused: from then on as identity.key_unknown, '
    'and what is parked or on record as identity.key_revoked. Its kid is not used again. Raises TM004, TM005 (no '
    'reason, or it is valid).';
grant execute on function tidemark.producer_key_delete(text, text) to tidemark_admin;
