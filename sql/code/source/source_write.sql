-- A pass locks its lease, then its cursor, and writes rows that refer to the source. So this lock on the source is one
-- beside which they can be written, and where cursors change too, leases and cursors are locked in the order of a pass.
create or replace function tidemark.source_write(was tidemark.source, definition tidemark.source, reason text)
returns setof tidemark.source
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    changed constant text := format('source %s was changed meanwhile', definition.source);
    again constant text := 'Roll back and try again: the change begins with the source as it is now.';
    now_ tidemark.source;
begin
    select s.* into now_ from tidemark.source s where s.source = definition.source for no key update;
    if coalesce(was.source, now_.source) is not null and now_ is distinct from was then
        raise exception using errcode = 'serialization_failure', message = changed, hint = again;
    end if;
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
        -- The rows read so far were not counted in this way, nor are those of a pass under way: verify only the buckets
        -- after them. No cursor comes meanwhile (tidemark.worker_cursors_make).
        perform from tidemark.worker_cursor c
        join tidemark.heartbeat h on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
        where c.source = definition.source order by c.worker, c.shard for update of h;
        perform from tidemark.worker_cursor c
        where c.source = definition.source order by c.worker, c.shard for update;
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
    if was.source is null then
        return query insert into tidemark.source as s select definition.* on conflict do nothing returning s.*;
    else
        return query
        update tidemark.source s
        set (schema_name, table_name, id_column, id_type, id_collate_c, timestamp_column, timestamp_type, time_zone,
             key_columns, group_key, filter, safety, margin, sweep_window, sweep_every, bucket, description)
          = row(definition.schema_name, definition.table_name, definition.id_column, definition.id_type,
                definition.id_collate_c, definition.timestamp_column, definition.timestamp_type, definition.time_zone,
                definition.key_columns, definition.group_key, definition.filter, definition.safety, definition.margin,
                definition.sweep_window, definition.sweep_every, definition.bucket, definition.description)
        where s.source = definition.source returning s.*;
    end if;
    if not found then
        raise exception using errcode = 'serialization_failure', message = changed, hint = again;
    end if;
end
$$;
comment on function tidemark.source_write(tidemark.source, tidemark.source, text) is
    'Stores a source that tidemark.source_set has checked: was is the source that it began with (null: there was '
    'none). Raises TM005 where a worker reads the source already and its table, columns or kind of safety would change '
    'or, with shards, its key_columns; 40001 where the source is not as it was.';
grant execute on function tidemark.source_write(tidemark.source, tidemark.source, text) to tidemark_admin;
