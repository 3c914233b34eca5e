create or replace function tidemark.source_write(definition tidemark.source, reason text)
returns setof tidemark.source
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    was constant tidemark.source := (select s from tidemark.source s where s.source = definition.source for update);
begin
    perform set_config('tidemark.reason', coalesce(source_write.reason, ''), true);
    if (was.schema_name, was.table_name, was.id_column, was.timestamp_column, was.safety in ('sequence', 'capture'),
        was.time_zone)
        is distinct from (definition.schema_name, definition.table_name, definition.id_column,
                          definition.timestamp_column, definition.safety in ('sequence', 'capture'),
                          definition.time_zone)
        and exists (select from tidemark.worker_cursor c where c.source = definition.source)
    then
        raise exception using errcode = 'TM005',
            message = format('source %s is read by %s: its table, columns and kind of safety are fixed',
                             definition.source,
                (select string_agg(distinct c.worker, ', ') from tidemark.worker_cursor c
                 where c.source = definition.source)),
            hint = 'Make another source and another cursor.';
    end if;
    if was.key_columns is distinct from definition.key_columns and exists (
        select from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker
        where c.source = definition.source and w.shards > 1)
    then
        raise exception using errcode = 'TM005',
            message = format('source %s is read in shards, by its key_columns: they are fixed', definition.source),
            hint = 'Make another source and another cursor.';
    end if;
    if definition.sweep_window is not null
        and (was.sweep_window is null, was.bucket,
             was.filter) is distinct from (false, definition.bucket, definition.filter)
    then
        -- The rows read so far were not counted in this way: verify only the buckets after them.
        delete from tidemark.source_count k where k.source = definition.source;
        update tidemark.worker_cursor c
        set verified_through = greatest(c.verified_through,
                                        date_bin(definition.bucket, c.watermark_ts,
                                                 '2000-01-01 00:00:00+00') + definition.bucket),
            sweep = case when was.sweep_window is null
                              then c.sweep - 'next_xmin' - 'next_mark' - 'segment' - 'id' - 'ts'
                || jsonb_build_object('xmin', pg_snapshot_xmin(pg_current_snapshot())::text, 'mark', c.watermark_ts)
                         else c.sweep end
        where c.source = definition.source and isfinite(c.watermark_ts);
    end if;
    return query
    insert into tidemark.source as s select definition.*
    on conflict (source) do update
    set (schema_name, table_name, id_column, id_type, id_collate_c, timestamp_column, timestamp_type, time_zone,
         key_columns, group_key, filter, safety, margin, sweep_window, sweep_every, bucket, description)
      = row(excluded.schema_name, excluded.table_name, excluded.id_column, excluded.id_type, excluded.id_collate_c,
            excluded.timestamp_column, excluded.timestamp_type, excluded.time_zone, excluded.key_columns,
            excluded.group_key, excluded.filter, excluded.safety, excluded.margin, excluded.sweep_window,
            excluded.sweep_every, excluded.bucket, excluded.description)
    returning s.*;
end
$$;
comment on function tidemark.source_write(tidemark.source, text) is
    'Stores a source that tidemark.source_set has checked. Raises TM005 where a worker reads the source already and '
    'its table, columns or kind of safety would change or, with shards, its key_columns.';
grant execute on function tidemark.source_write(tidemark.source, text) to tidemark_admin;
