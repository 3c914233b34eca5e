create or replace function tidemark.source_shape(
    definition tidemark.source,
    out relation regclass,
    out id_type text,
    out id_collate_c boolean,
    out timestamp_type text,
    out problem text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    missing text;
begin
    -- No regclass cast: it raises another error for a schema that the caller may not enter.
    select c.oid into relation from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = definition.schema_name and c.relname = definition.table_name and c.relkind in ('r', 'p');
    if relation is null then
        problem := format('there is no table %s', name);
        return;
    end if;

    select string_agg(format('%I', w.name), ', ') into missing
    from unnest(array[definition.id_column, definition.timestamp_column] || definition.key_columns
                || definition.group_key) w (name)
    where w.name is not null and not exists (
        select from pg_attribute a where a.attrelid = relation and a.attname = w.name and a.attnum > 0
                                     and not a.attisdropped);
    if missing is not null then
        problem := format('table %s has no column %s', name, missing);
        return;
    end if;

    -- Collations: 0 is no text, 950 and 951 are "C" and "POSIX", 100 is the database's default.
    select format_type(a.atttypid, null), a.attcollation not in (0, 950, 951) and not (a.attcollation = 100 and exists (
        select from pg_database d where d.datname = current_database() and d.datcollate in ('C', 'POSIX')
                                    and d.datlocprovider = 'c'))
    into id_type, id_collate_c
    from pg_attribute a where a.attrelid = relation and a.attname = definition.id_column;
    if id_type not in ('smallint', 'integer', 'bigint', 'uuid', 'text', 'character varying', 'numeric') then
        problem :=
            format('column %s.%I is %s: an id is smallint, integer, bigint, uuid, text, character varying or numeric',
                   name, definition.id_column, id_type);
        return;
    elsif definition.safety = 'sequence' and id_type not in ('smallint', 'integer', 'bigint') then
        problem :=
            format('column %s.%I is %s: the safety sequence needs an integer', name, definition.id_column, id_type);
        return;
    elsif definition.safety = 'capture' and not exists (
        select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = relation and i.indisprimary and i.indnkeyatts = 1 and a.attname = definition.id_column) then
        problem := format('the primary key of %s is not %I alone: an event names a row by the primary key', name,
                          definition.id_column);
        return;
    end if;

    if definition.timestamp_column is not null then
        select format_type(a.atttypid, a.atttypmod) into timestamp_type
        from pg_attribute a where a.attrelid = relation and a.attname = definition.timestamp_column;
        if timestamp_type !~ E'^timestamp(\\([0-6]\\))? with(out)? time zone$' then
            problem := format('column %s.%I is %s: a timestamp is timestamp with or without time zone',
                              name, definition.timestamp_column, timestamp_type);
        elsif timestamp_type ~ 'without' and definition.time_zone is null then
            problem := format('column %s.%I is without time zone: set time_zone to the one that its writers mean', name,
                              definition.timestamp_column);
        elsif timestamp_type !~ 'without' and definition.time_zone is not null then
            problem := format('column %s.%I has a time zone of its own: time_zone must be null', name,
                              definition.timestamp_column);
        elsif definition.time_zone is not null then
            -- Each pass asks. pg_timezone_names would read hundreds of files; the doctor looks there.
            begin
                perform now() at time zone definition.time_zone;
            exception when invalid_parameter_value then
                problem := format('there is no time zone "%s"', definition.time_zone);
            end;
        end if;
    end if;
end
$$;
comment on function tidemark.source_shape(tidemark.source) is
    'The source''s table and the current types of its columns, from the catalog. problem: the column or property that '
    'is missing or unfit; null: none.';
grant execute on function tidemark.source_shape(tidemark.source) to tidemark_reader, tidemark_executor;
