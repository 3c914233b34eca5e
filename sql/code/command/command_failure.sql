create or replace function tidemark.command_failure(
    state text, "constraint" text, terminal text[], out kind text, out code text)
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select f[1], f[2] from (select case
        when "constraint" in ('runtime.timeout', 'runtime.result_too_large', 'runtime.result_invalid')
            then array[case "constraint" when 'runtime.timeout' then 'retryable' else 'terminal' end, "constraint"]
        when state = '57014' then array['canceled', null]
        when left(state, 2) in ('08', '53', '58') or state in ('57P01', '57P02', '57P03', 'TM009')
            then array['outage', 'runtime.retries_exhausted']
        when state = any (terminal) then array['terminal', 'sql.business_rule']
        when state in ('40001', '40P01', '55P03', '25006') then array['retryable', 'runtime.retries_exhausted']
        when state = '42501' then array['operator', 'sql.permission']
        when state in ('42883', '42P01', '42703', '3F000') then array['operator', 'sql.undefined']
        when left(state, 2) = '22' then array['terminal', 'sql.data']
        when left(state, 2) = '23' then array['terminal', 'sql.constraint']
        when state = 'P0001' then array['terminal', 'sql.business_rule']
        else array['terminal', 'runtime.internal'] end) x (f)
$$;
comment on function tidemark.command_failure(text, text, text[]) is
    'What an error of a command''s function means: canceled (the batch is given up and comes again), retryable, '
    'operator (a right or an object is missing: the command waits), outage (it waits, too: of the server, or as the '
    'function says) or terminal, with the reason code. '
    'terminal: the SQLSTATEs that the command itself declares.';
