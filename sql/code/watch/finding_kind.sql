-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.finding_kind(cause text)
returns text
language sql immutable
as $$
    select case cause when 'worker_behind' then 'cursor_lag' else cause end
$$;
comment on function tidemark.finding_kind(text) is
    'The kind of the findings about a cause of tidemark.cause_kind. tidemark.finding_cause is the other way round.';
grant execute on function tidemark.finding_kind(text) to tidemark_reader, tidemark_executor;
