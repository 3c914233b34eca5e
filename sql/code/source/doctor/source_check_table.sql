create or replace function tidemark.source_check_table(definition tidemark.source, relation oid)
returns table ("check" text, status text, detail text, hint text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    class constant pg_class := (select c from pg_class c where c.oid = relation);
    parts constant oid[] := array(select relation union select p.relid from pg_partition_tree(relation) p);
    bad text;
begin
    "check" := 'primary';
    if pg_is_in_recovery() then
        status := 'fail'; detail := 'this is a standby, which does not show the transactions of the primary';
        hint := 'Connect to the primary.';
    else
        status := 'ok'; detail := 'this is no standby'; hint := '';
    end if;
    return next;

    "check" := 'table'; status := 'fail'; hint := '';
    if relation is null then
        detail := format('there is no table %s', name);
        hint := coalesce((select 'Did you mean ' || string_agg(format('%I.%I', n.nspname, c.relname), ', ') || '?'
            from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where c.relkind in ('r', 'p')
              and lower(c.relname) = lower(definition.table_name)), E'Names are as the catalog spells them: \\dt *.*');
        return next;
        return;
    elsif class.relkind not in ('r', 'p') then
        detail := format('%s is a %s, not a table', name,
                         case class.relkind when 'v' then 'view' when 'm' then 'materialized view'
            when 'f' then 'foreign table' when 'S' then 'sequence' when 'c' then 'type'
                              else 'thing of kind ' || class.relkind::text end);
        hint := case class.relkind
            when 'f' then 'Its rows have no transactions in this database: read it in the database that has them.'
            when 'm' then 'A refresh writes all its rows again: read the tables that it is made of.'
            else 'Name the table.' end;
        return next;
        return;
    end if;
    bad := (
        select string_agg(format('%s %s', c.oid::regclass, case when c.relkind = 'f' then 'is a foreign table'
                   when c.relpersistence = 't'
                        then 'is temporary' else 'is stored as ' || m.amname end), ', ' order by c.oid::regclass::text)
        from pg_class c left join pg_am m on m.oid = c.relam
        where c.oid = any (parts)
          and (c.relkind = 'f' or c.relpersistence = 't' or c.relkind = 'r' and m.amname <> 'heap'));
    if bad is not null then
        detail := bad;
        hint := 'Reading relies on the row versions and the indexes of heap tables.';
    elsif definition.schema_name in ('pg_catalog', 'information_schema', 'pg_toast') then
        detail := format('%s is the system''s', name);
        hint := 'Its rows are changed in place.';
    elsif definition.schema_name = 'tidemark'
        and (definition.table_name <> 'outbox' or definition.safety <> 'sequence') then
        detail := format('%s is Tidemark''s own: only tidemark.outbox can be a source, with the safety sequence', name);
        hint := 'Findings and the audit have functions of their own.';
    elsif class.relkind = 'r' and exists (select from pg_inherits i where i.inhparent = relation) then
        detail :=
            format('%s has children that inherit from it: their rows show in it, and no index makes an id unique among '
                   'them', name);
        hint := 'Make each child a source, or make the table a partitioned one.';
    elsif exists (select from pg_attribute a
                  where a.attrelid = relation and a.attname in ('tidemark_row', 'tidemark_whole') and a.attnum > 0) then
        detail := format('%s has a column tidemark_row or tidemark_whole, names that Tidemark needs for itself', name);
        hint := format('alter table %s rename column … to …;', name);
    elsif exists (select from pg_class c where c.oid = any (parts) and c.relpersistence = 'u') then
        status := 'warn';
        detail := format('%s is unlogged: a crash of the server empties it, and rows that were not read by then are '
                         'lost',
                         name);
        hint := format('alter table %s set logged;', name);
    else
        status := 'ok';
        detail := case class.relkind when 'p' then format('%s is a partitioned table', name)
                       else format('%s is a table', name) end;
    end if;
    return next;
end
$$;
comment on function tidemark.source_check_table(tidemark.source, oid) is
    'Part of tidemark.source_check: the table exists, and is of a kind that can be read in order. relation null: it '
    'does not exist.';
grant execute on function tidemark.source_check_table(tidemark.source, oid) to tidemark_reader, tidemark_executor;
