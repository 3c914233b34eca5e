create or replace function tidemark.relation_tree(relation regclass)
returns oid[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if relation_tree.relation = 'tidemark.outbox'::regclass then
        return array[relation_tree.relation::oid]; -- tidemark.emit names it, never a partition
    end if;
    -- A session that inserts straight into a partition locks only that partition.
    return (
        with recursive tree (id) as (
            select relation_tree.relation::oid
            union
            select i.inhrelid from tree t join pg_inherits i on i.inhparent = t.id)
        select array_agg(t.id) from tree t);
end
$$;
comment on function tidemark.relation_tree(regclass) is 'The table, its partitions and what inherits from it.';
grant execute on function tidemark.relation_tree(regclass) to tidemark_reader, tidemark_executor;
