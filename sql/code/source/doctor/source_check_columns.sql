create or replace function tidemark.source_check_columns(definition tidemark.source, relation oid)
returns table ("check" text, status text, detail text, hint text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    columns constant text[] := array(
        select a.attname::text from pg_attribute a where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
        order by a.attnum);
    there constant text := 'Columns: ' || array_to_string(columns, ', ') || '.';
    id pg_attribute;
    parted text[];
    missing text;
begin
    "check" := 'id column'; status := 'fail'; hint := '';
    select a.* into id from pg_attribute a
    where a.attrelid = relation and a.attname = definition.id_column and a.attnum > 0 and not a.attisdropped;
    if not found then
        detail := format('%s has no column "%s"', name, definition.id_column);
        hint := there;
    elsif id.atttypid <> all (array['int2', 'int4', 'int8', 'uuid', 'text', 'varchar', 'numeric']::regtype[]) then
        detail := format('%s.%I is of type %s', name, definition.id_column, format_type(id.atttypid, id.atttypmod));
        hint := 'An id is smallint, integer, bigint, uuid, text, character varying or numeric.';
    elsif definition.safety = 'sequence' and id.atttypid <> all (array['int2', 'int4', 'int8']::regtype[]) then
        detail := format('%s.%I is of type %s: numbers of a sequence are needed for the safety sequence', name,
                         definition.id_column, format_type(id.atttypid, id.atttypmod));
        hint := 'Use clock, where the server sets a timestamp; else declared with a sweep_window.';
    elsif not id.attnotnull then
        detail := format('%s.%I may be null: a row without an id has no place in the '
                         'order', name, definition.id_column);
        hint := format('alter table %s alter column %I set not null;', name, definition.id_column);
    else
        status := 'ok';
        detail := format('%I %s, not null', definition.id_column, format_type(id.atttypid, id.atttypmod));
    end if;
    return next;

    if id.attnum is not null then
        parted := array(select a.attname::text from pg_partitioned_table p
                        join pg_attribute a on a.attrelid = relation and a.attnum = any (p.partattrs::int2[])
                        where p.partrelid = relation);
        "check" := 'id unique'; status := 'ok'; hint := '';
        if exists (select from pg_index i
                   where i.indrelid = relation and i.indisunique and i.indisvalid and i.indpred is null
                     and i.indnkeyatts = 1 and i.indkey[0] = id.attnum) then
            detail := format('a unique index on %I', definition.id_column);
        elsif exists (
            select from pg_index i
            where i.indrelid = relation and i.indisunique and i.indisvalid and i.indpred is null
              and cardinality(parted) > 0
              and array(select a.attname::text from pg_attribute a
                        where a.attrelid = relation and a.attnum = any ((i.indkey::int2[])[0 : i.indnkeyatts - 1]))
                  <@ (parted || definition.id_column)
              and id.attnum = any ((i.indkey::int2[])[0 : i.indnkeyatts - 1])) then
            status := 'warn';
            detail :=
                format('%I is unique only together with %s, by which the table is partitioned: of two rows with one '
                       'id, the second is taken for the first',
                       definition.id_column, array_to_string(parted, ', '));
            hint := 'Make sure that no id comes twice: use an identity or a random uuid.';
        else
            status := 'fail';
            detail := format('nothing makes %s.%I unique', name, definition.id_column);
            hint := format('create unique index concurrently on %s (%I);', name, definition.id_column);
        end if;
        return next;
    end if;

    "check" := 'timestamp column'; status := 'fail'; hint := there;
    if definition.timestamp_column is null then
        if definition.safety in ('clock', 'declared') then
            detail := format('the safety %s needs a timestamp, and timestamp_column is not set', definition.safety);
            return next;
        end if;
    elsif definition.timestamp_column <> all (columns) then
        detail := format('%s has no column "%s"', name, definition.timestamp_column);
        return next;
    else
        select format('%I %s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                      case when a.attnotnull then ', not null' end),
               case when a.atttypid = any (array['timestamptz', 'timestamp']::regtype[]) then 'ok' else 'fail' end
        into detail, status
        from pg_attribute a where a.attrelid = relation and a.attname = definition.timestamp_column;
        hint := case status when 'ok' then '' else 'Choose a column of type timestamp, with or without time zone.' end;
        return next;
    end if;

    missing := (select string_agg(format('"%s"', k), ', ') from unnest(definition.key_columns || definition.group_key) k
                where k <> all (columns));
    if cardinality(definition.key_columns || definition.group_key) > 0 then
        "check" := 'key columns';
        status := case when missing is null then 'ok' else 'fail' end;
        detail := case when missing is null then array_to_string(definition.key_columns || definition.group_key, ', ')
                       else format('%s has no column %s', name, missing) end;
        hint := case when missing is null then '' else there end;
        return next;
    end if;
end
$$;
comment on function tidemark.source_check_columns(tidemark.source, oid) is
    'Part of tidemark.source_check: the columns exist, their types have an exact order, and the id names one row.';
grant execute on function tidemark.source_check_columns(tidemark.source, oid) to tidemark_reader, tidemark_executor;
