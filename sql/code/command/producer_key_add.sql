-- public
create or replace function tidemark.producer_key_add(
    kid text, service text, producer text, public_key jsonb, tenants text[] default null, commands text[] default null,
    valid_from timestamptz default null, valid_until timestamptz default null, reason text default null)
returns setof tidemark.producer_key
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform set_config('tidemark.reason', coalesce(producer_key_add.reason, ''), true);
    if not exists (select from tidemark.service s where s.service = producer_key_add.service) then
        raise exception using errcode = 'TM004',
            message = format('there is no service "%s"', producer_key_add.service),
            hint = 'Services: select service from tidemark.service;';
    -- What is parked or on record names the kid by which it was verified, also where that key was deleted since.
    elsif exists (select from tidemark.producer_key k where k.kid = producer_key_add.kid)
        or exists (select from tidemark.audit a
                   where a.action = 'delete' and a.object = 'producer_key ' || producer_key_add.kid) then
        raise exception using errcode = 'TM005',
            message = format('there is, or was, a key "%s"', producer_key_add.kid),
            hint = 'A kid is used once, also after the key was revoked or deleted.';
    elsif public_key ? 'd' then
        raise exception using errcode = 'TM005', message = 'the key is a private one',
            hint = 'Register the public part, without the member "d", and make a new key pair: this one is disclosed.';
    end if;
    return query
    insert into tidemark.producer_key as k (kid, service, producer, public_key, tenants, commands, valid_from,
                                            valid_until)
    values (producer_key_add.kid, producer_key_add.service, producer_key_add.producer, producer_key_add.public_key,
            producer_key_add.tenants, producer_key_add.commands,
            coalesce(producer_key_add.valid_from, clock_timestamp()), producer_key_add.valid_until)
    returning k.*;
end
$$;
comment on function
    tidemark.producer_key_add(text, text, text, jsonb, text[], text[], timestamptz, timestamptz, text) is
    'Registers the public key by which a producer signs commands to a service: a JWK, {"kty": "OKP", '
    '"crv": "Ed25519", "x": …}. Its kid is used once. Raises TM004 (unknown service), TM005 (a kid that was used, a '
    'private key), 23514 (another kind of key, an empty span).';
grant execute on function
    tidemark.producer_key_add(text, text, text, jsonb, text[], text[], timestamptz, timestamptz, text)
    to tidemark_admin;
