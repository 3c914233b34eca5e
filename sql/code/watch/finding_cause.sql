create or replace function tidemark.finding_cause(kind text)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select case kind when 'cursor_lag' then 'worker_behind' else kind end
$$;
comment on function tidemark.finding_cause(text) is
    'The word of tidemark.cause_kind for findings of this kind. tidemark.finding_kind is the other way round.';
grant execute on function tidemark.finding_cause(text) to tidemark_reader, tidemark_executor;
