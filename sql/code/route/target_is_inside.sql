create or replace function tidemark.target_is_inside(target_kind text)
returns boolean
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return target_kind in ('sql', 'notify', 'river');
end
$$;
comment on function tidemark.target_is_inside(text) is
    'True where a pass delivers to targets of this kind in its own transaction. Events for other kinds are staged as '
    'pending.';
grant execute on function tidemark.target_is_inside(text) to tidemark_executor;
