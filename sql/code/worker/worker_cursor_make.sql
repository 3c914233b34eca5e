create or replace function tidemark.worker_cursor_make(worker text, starts text)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    c tidemark.worker_cursor;
    made boolean;
begin
    if exists (select from tidemark.worker_cursor k
               where k.worker = worker_cursor_make.worker and k.source = 'outbox') then
        return false;
    end if;
    c := tidemark.worker_start(coalesce(worker_cursor_make.starts, 'now'));
    -- A worker of this name may have been deleted: what it decided stays decided.
    c.decided_through := greatest(c.decided_through::bigint, tidemark.decided_last(worker_cursor_make.worker))::text;
    c.rewound_to := case when c.watermark_id::bigint < c.decided_through::bigint then c.watermark_id::bigint end;
    insert into tidemark.worker_cursor (worker, source, watermark_id, decided_through, rewound_to, begins_after, fenced,
                                        fence)
    values (worker_cursor_make.worker, 'outbox', c.watermark_id, c.decided_through, c.rewound_to, c.begins_after,
            c.fenced, c.fence)
    on conflict do nothing;
    made := found;
    insert into tidemark.heartbeat (executor_id) values (tidemark.executor_id(worker_cursor_make.worker, 'outbox', 0))
    on conflict do nothing;
    return made;
end
$$;
comment on function tidemark.worker_cursor_make(text, text) is
    'Creates the cursor of a worker of the log, where it has none, beginning at starts (tidemark.worker_start; null: '
    'now), and its heartbeat. False: it has one.';
