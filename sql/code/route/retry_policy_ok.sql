create or replace function tidemark.retry_policy_ok(policy jsonb)
returns boolean
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    attempts numeric;
    base numeric;
    longest numeric;
    jitter numeric;
begin
    if policy is null then
        return true;
    end if;
    if jsonb_typeof(policy) <> 'object'
        or exists (select from jsonb_each(policy) p
                   where p.key not in ('max_attempts', 'base_seconds', 'max_seconds', 'jitter')
                      or jsonb_typeof(p.value) <> 'number')
    then
        return false;
    end if;
    attempts := coalesce((policy ->> 'max_attempts')::numeric, 10);
    base := coalesce((policy ->> 'base_seconds')::numeric, 1);
    longest := coalesce((policy ->> 'max_seconds')::numeric, 3600);
    jitter := coalesce((policy ->> 'jitter')::numeric, 0.2);
    return attempts between 1 and 100 and attempts = trunc(attempts)
       and base > 0 and longest >= base and longest <= 604800
       and jitter between 0 and 1;
end
$$;
comment on function tidemark.retry_policy_ok(jsonb) is
    'True where the retry policy can be read: null, or an object with numbers for any of max_attempts (whole, 1 to '
    '100), base_seconds (above 0), max_seconds (at least base_seconds, at most a week) and jitter (0 to 1), and with '
    'no other member.';
grant execute on function tidemark.retry_policy_ok(jsonb) to tidemark_reader, tidemark_executor;
