-- Lock first, then check. An owner who alters the table holds its lock until commit. A reader that checks before it
-- waits for that lock would plan its statement over the owner's new objects. The lock includes partitions and children,
-- which a statement locks only when it is planned. It is not taken by a query: planning one runs the code that the
-- check refuses.
create or replace function tidemark.source_lock(relation regclass)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    name constant text := (
        select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.oid = source_lock.relation and c.relkind in ('r', 'p'));
begin
    if name is null then
        raise undefined_table using message = 'the table is gone, or is no longer a table';
    end if;
    execute format('lock table %s in access share mode', name);
    if to_regclass(name) is distinct from source_lock.relation then
        raise undefined_table using message = format('%s was exchanged for another table just now', name);
    end if;
end
$$;
comment on function tidemark.source_lock(regclass) is
    'Locks another role''s table for reading, with its partitions and children, until the transaction or savepoint '
    'ends. Call it before tidemark.source_denied. Raises 42P01 where the name now belongs to another table, 42501 '
    'where the caller may not read it.';
grant execute on function tidemark.source_lock(regclass) to tidemark_reader, tidemark_executor;
