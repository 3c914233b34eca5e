-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.target_is_inside(target_kind text)
returns boolean
language sql immutable parallel safe
as $$
    select target_kind in ('sql', 'notify', 'river')
$$;
comment on function tidemark.target_is_inside(text) is
    'True where a pass delivers to targets of this kind in its own transaction. Events for other kinds are staged as '
    'pending.';
grant execute on function tidemark.target_is_inside(text) to tidemark_reader, tidemark_executor;
