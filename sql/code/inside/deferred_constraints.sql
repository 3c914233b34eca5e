create or replace function tidemark.deferred_constraints()
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select string_agg(distinct format('%I.%I', n.nspname, c.conname), ', ')
    from pg_constraint c join pg_namespace n on n.oid = c.connamespace
    where c.condeferred);
end
$$;
comment on function tidemark.deferred_constraints() is
    'The constraints that wait for the commit unless the session sets them immediate. Null: none.';
grant execute on function tidemark.deferred_constraints() to tidemark_executor;
