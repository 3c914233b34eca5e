-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.route_outcome(
    enabled boolean, dry_run boolean, fail_closed boolean, refusal text)
returns tidemark.outcome
language sql immutable parallel safe
as $$
    select case
        when not enabled then 'disabled'::tidemark.outcome
        when refusal is not null and fail_closed then 'failed'
        when refusal is not null then 'skipped'
        when dry_run then 'dry_run'
        else 'pending'
    end
$$;
comment on function tidemark.route_outcome(boolean, boolean, boolean, text) is
    'What an event comes to on a route that claims it, by the route''s switches and why the route cannot decide it '
    '(refusal; null: it can).';
grant execute on function tidemark.route_outcome(boolean, boolean, boolean, text)
    to tidemark_reader, tidemark_executor;
