-- The rule of watermark and holes needs this: every number is taken in the statement that inserts its row, under the
-- lock of the table, in rising order.
create or replace function tidemark.source_check_sequence(definition tidemark.source, relation oid)
returns table ("check" text, status text, detail text, hint text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set row_security = off
as $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    parts constant oid[] := array(select relation union select p.relid from pg_partition_tree(relation) p);
    id constant pg_attribute := (select a from pg_attribute a
                                 where a.attrelid = relation and a.attname = definition.id_column);
    expression constant text := (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d
                                 where d.adrelid = relation and d.adnum = id.attnum);
    sequence regclass;
    settings pg_sequence;
    fault text;
    others text;
    highest bigint;
    got record;
    last bigint;
begin
    sequence := tidemark.source_sequence(relation, definition.id_column);
    "check" := 'sequence';
    if sequence is null then
        status := 'fail';
        detail := format('%s.%I has %s: its numbers come from a place that cannot be observed', name,
                         definition.id_column, coalesce('the default ' || expression, 'no default'));
        hint := format('alter table %s alter column %I add generated always as identity; or another safety.', name,
                       definition.id_column);
        return next;
        return;
    end if;

    select s.* into settings from pg_sequence s where s.seqrelid = sequence;
    status := 'ok'; hint := '';
    detail := format('%s, cache 1, increment 1', sequence);
    fault := tidemark.source_sequence_fault(sequence);
    if fault is not null then
        status := 'fail';
        detail := fault;
        hint := format('alter sequence %s cache 1 increment 1 no cycle; then end the sessions that still keep numbers.',
                       sequence);
    end if;
    return next;

    if definition.timestamp_column is null then
        -- Do not warn where the operator has no remedy: the warning would stay forever.
        definition.timestamp_column := (tidemark.source_guess(definition)).timestamp_column;
        "check" := 'numbers given out again';
        status := case when definition.timestamp_column is null then 'ok' else 'warn' end;
        detail := 'there is no timestamp_column: a sequence that is set back (setval), and has passed what was read by '
                  'the next pass, is only noticed where it gives out a number that had no row';
        hint := coalesce('Give the source the timestamp_column ' || quote_ident(definition.timestamp_column) || '.',
                         '');
        return next;
        hint := '';
        definition.timestamp_column := null;
    end if;

    others := (
        select string_agg(distinct format('%s.%I', f.adrelid::regclass, a.attname), ', ')
        from pg_depend d join pg_attrdef f on d.classid = 'pg_attrdef'::regclass and f.oid = d.objid
        join pg_attribute a on a.attrelid = f.adrelid and a.attnum = f.adnum
        where d.refclassid = 'pg_class'::regclass and d.refobjid = sequence
          and (f.adrelid <> all (parts) or a.attname <> definition.id_column));
    "check" := 'sequence is its own';
    status := case when others is null then 'ok' else 'fail' end;
    detail := case when others is null then 'no other column takes its numbers'
                   else format('%s also numbers %s', sequence, others) end;
    hint := case when others is null then '' else 'Give each column a sequence of its own.' end;
    return next;

    others := (
        select string_agg(f.adrelid::regclass::text, ', ' order by f.adrelid::regclass::text)
        from pg_attrdef f join pg_attribute a on a.attrelid = f.adrelid and a.attnum = f.adnum
        where f.adrelid = any (parts) and f.adrelid <> relation and a.attname = definition.id_column
          and not exists (select from pg_depend d where d.classid = 'pg_attrdef'::regclass and d.objid = f.oid
                            and d.refclassid = 'pg_class'::regclass and d.refobjid = sequence));
    if others is not null then
        "check" := 'numbers of partitions'; status := 'fail';
        detail := format('in %s the column has a default of its own: rows written there take other numbers', others);
        hint := format('alter table … alter column %I drop default;', definition.id_column);
        return next;
    end if;

    "check" := 'numbers by hand'; hint := '';
    others := (
        select string_agg(p.oid::regprocedure::text, ', ' order by p.oid::regprocedure::text) from (
            select p.oid from pg_proc p join pg_namespace n on n.oid = p.pronamespace
            where p.prosrc ~* 'nextval'
              and strpos(p.prosrc, (select c.relname from pg_class c where c.oid = sequence)) > 0
              and n.nspname <> 'pg_catalog' limit 5) p);
    if id.attidentity = 'a' and others is null then
        status := 'ok';
        detail := 'generated always: only insert … overriding system value, COPY and users of the sequence can '
                  'give numbers of their own';
    else
        status := 'warn';
        detail := concat_ws('; ',
            case when id.attidentity <> 'a' then 'the id is a default: an insert may give a number of its own, which '
                                                 'this check cannot see. '
                || 'One that was taken (nextval) before the insert began, or that is below numbers read already, may '
                   'be lost' end,
            'these functions take numbers: ' || others);
        hint := case when id.attidentity = 'd'
                          then format('alter table %s alter column %I set generated always;', name,
                                      definition.id_column)
            when id.attidentity = '' then 'See that all writers leave the id out. An ORM that takes blocks of numbers '
                                          'does not: use clock or declared there.'
            else 'See that they insert in the same statement.' end;
    end if;
    return next;

    -- The order matters: a number that is taken between the two reads is not an error.
    if has_column_privilege(relation, id.attnum, 'select') and has_schema_privilege(definition.schema_name, 'usage')
       and exists (select from pg_index i
                   where i.indrelid = relation and i.indisvalid and i.indpred is null and i.indkey[0] = id.attnum) then
        got := tidemark.source_look(relation, format('select max(tidemark_row.%I)::bigint as id from %s',
                                                     definition.id_column, tidemark.source_row(definition)));
        highest := got.id;
        last := (select s.last_value from pg_sequences s join pg_class c on c.relname = s.sequencename
                 join pg_namespace n on n.oid = c.relnamespace and n.nspname = s.schemaname where c.oid = sequence);
        "check" := 'numbers in use'; status := 'ok'; hint := '';
        detail := format('the highest id is %s, the sequence is at %s', coalesce(highest::text, 'none'),
                         coalesce(last::text, 'its beginning'));
        if highest >= settings.seqstart and highest > coalesce(last, settings.seqstart - 1)
           and has_sequence_privilege(sequence, 'select,usage') then
            status := 'fail';
            detail :=
                format('the highest id is %s, and the sequence is only at %s: rows came with numbers of their own, and '
                       'those to come would be passed over',
                       highest, coalesce(last::text, 'its beginning'));
            hint := format('select setval(%L, (select max(%I) from %s));', sequence, definition.id_column, name);
        end if;
        return next;
    end if;
end
$$;
comment on function tidemark.source_check_sequence(tidemark.source, oid) is
    'Part of tidemark.source_check, for the safety sequence: the origin of the ids.';
grant execute on function tidemark.source_check_sequence(tidemark.source, oid) to tidemark_reader, tidemark_executor;
