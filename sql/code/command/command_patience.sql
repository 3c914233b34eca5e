create or replace function tidemark.command_patience(calls jsonb)
returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    -- The longest command, not their sum: a pass that takes longer is tried with fewer.
    select (7 + coalesce(max(extract(epoch from k.timeout)), 0))::bigint * 1000
    from jsonb_array_elements(calls) e (call) join tidemark.command k
        on k.service = e.call ->> 'service' and k.command = e.call ->> 'command'
       and k.version::text = e.call ->> 'command_version'
$$;
comment on function tidemark.command_patience(jsonb) is
    'The statement_timeout for a pass of these commands, in ms.';
grant execute on function tidemark.command_patience(jsonb) to tidemark_executor;
