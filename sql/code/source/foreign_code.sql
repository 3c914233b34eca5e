-- PostgreSQL evaluates constant expressions while it plans a statement over a table: in the table's indexes,
-- statistics, checks (of partitions) and partition keys, after it has inlined their functions. They run with the rights
-- of the role that reads. An owner of such a function who can act as that role gains nothing by it.
create or replace function tidemark.foreign_code(relation oid)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
-- Planning the query takes ten times as long as running it, and each poll runs it for each idle worker of a table.
set plan_cache_mode = force_generic_plan
as $$
declare
    tree oid[];
begin
    if current_setting('transaction_isolation') not like 'read %' then
        return format('what its owner made since this transaction began, which a transaction that is %s does not see',
            current_setting('transaction_isolation'));
    end if;
    tree := tidemark.relation_tree(foreign_code.relation);
    return nullif(concat_ws(', ', (
        with part (class, id, what) as (
            select 'pg_class'::regclass, i.indexrelid, 'index ' || i.indexrelid::regclass
            from pg_index i where i.indrelid = any (tree)
                              and (i.indexprs is not null or i.indpred is not null)
            union all
            select 'pg_statistic_ext'::regclass, s.oid, format('statistics %I.%I', n.nspname, s.stxname)
            from pg_statistic_ext s join pg_namespace n on n.oid = s.stxnamespace
            where s.stxrelid = any (tree) and s.stxexprs is not null
            union all
            select 'pg_constraint'::regclass, c.oid, format('constraint %I', c.conname)
            from pg_constraint c where c.conrelid = any (tree)
                                   and c.contype = 'c'
            union all
            select 'pg_class'::regclass, p.partrelid, 'the partition key of ' || p.partrelid::regclass
            from pg_partitioned_table p where p.partrelid = any (tree)
                                          and p.partexprs is not null
            union all
            select 'pg_attrdef'::regclass, d.oid, format('column %I', a.attname)
            from pg_attribute a join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
            where a.attrelid = any (tree) and a.attgenerated = 'v'
        )
        select string_agg(distinct format('%s calls %s of %s', p.what, f.oid::regprocedure, f.proowner::regrole), ', ')
        from part p
        join pg_depend d on d.classid = p.class and d.objid = p.id
            and d.refclassid = any (array['pg_proc', 'pg_operator']::regclass[])
        left join pg_operator o on d.refclassid = 'pg_operator'::regclass and o.oid = d.refobjid
        join pg_proc f on f.oid = case when o.oid is null then d.refobjid else o.oprcode end
        where not pg_has_role(f.proowner, current_user, 'member')), (
        -- The code behind a foreign table runs with the rights of the reader's login at the other server.
        select string_agg(format('%s is a foreign table of %s', c.oid::regclass, c.relowner::regrole), ', ')
        from pg_class c
        where c.oid = any (tree) and c.relkind = 'f'
          and not pg_has_role(c.relowner, current_user, 'member'))), '');
end
$$;
comment on function tidemark.foreign_code(oid) is
    'Lists the parts of a table, its partitions and children that would run another role''s code with the caller''s '
    'rights as soon as the caller reads it: expressions of indexes, statistics, checks and partition keys whose '
    'functions belong to a role that is neither a superuser nor a member of the caller''s; foreign tables of such a '
    'role. Null: none.';
grant execute on function tidemark.foreign_code(oid) to tidemark_reader, tidemark_executor;
