-- Call it right before each statement over another role's table, and again after a handler, which may take long: the
-- owner can add an index or statistics while the table is read. Only an object that the owner makes between this check
-- and the planning of that statement escapes it. tidemark.source_look contains what such an object can do.
create or replace function tidemark.source_guard(relation regclass)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    problem text;
begin
    perform tidemark.source_lock(source_guard.relation);
    problem := tidemark.source_denied(source_guard.relation);
    if problem is not null then
        raise insufficient_privilege using message = problem;
    end if;
end
$$;
comment on function tidemark.source_guard(regclass) is
    'Locks the table for reading (tidemark.source_lock), and raises 42501 where the caller must not read it '
    '(tidemark.source_denied).';
grant execute on function tidemark.source_guard(regclass) to tidemark_reader, tidemark_executor;
