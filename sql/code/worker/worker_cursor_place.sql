create or replace function tidemark.worker_cursor_place(worker text, starts text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    ran boolean;
    c tidemark.worker_cursor;
begin
    perform tidemark.lease_end(worker_cursor_place.worker, 'outbox');
    select bool_or(k.last_run_at is not null) into ran from (
        select c.last_run_at from tidemark.worker_cursor c
        where c.worker = worker_cursor_place.worker and c.source = 'outbox' order by c.shard for update) k;
    if ran then
        raise exception using errcode = 'TM005',
            message = format('worker %s has begun: only a new worker can be given a start', worker_cursor_place.worker),
            hint = 'To read again what it has read: tidemark.worker_rewind. To send it again: tidemark.route_replay.';
    end if;
    c := tidemark.worker_start(worker_cursor_place.starts);
    c.decided_through :=
        greatest(c.decided_through::bigint, tidemark.decided_last(worker_cursor_place.worker))::text;
    update tidemark.worker_cursor k
    set watermark_id = c.watermark_id, decided_through = c.decided_through,
        rewound_to = case when c.watermark_id::bigint < c.decided_through::bigint then c.watermark_id::bigint end,
        begins_after = c.begins_after, holes = c.holes, fenced = c.fenced, fence = c.fence,
        updated_at = clock_timestamp()
    where k.worker = worker_cursor_place.worker and k.source = 'outbox';
end
$$;
comment on function tidemark.worker_cursor_place(text, text) is
    'Moves the cursor of a worker of the log that has made no pass yet to its new start (tidemark.worker_start). '
    'Raises TM005 where it has made one.';
