create or replace function tidemark.worker_cursors_make(worker text, source text, first text, reason text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    login constant name := tidemark.login();
    shards integer;
    made integer;
begin
    -- Check the login, since the current user here is the owner. Members of the owner have the rights of operators.
    if not pg_has_role(login, 'tidemark_admin', 'member') and not pg_has_role(login, 'tidemark_owner', 'member')
        and not exists (select from tidemark.worker w
                        where w.worker = worker_cursors_make.worker and w.handler = 'go') then
        raise exception using errcode = 'insufficient_privilege',
            message = 'only members of tidemark_admin may give a worker its sources',
            hint = 'A Go program may do so for its own worker.';
    end if;
    -- Lock the source: one that is being changed or removed at this moment has no cursor yet. Then the worker, in the
    -- order of tidemark.configuration_apply: as long as it has no cursor of a table, its shards can change.
    perform from tidemark.source s where s.source = worker_cursors_make.source for share;
    if not found then
        raise exception using errcode = 'TM004',
            message = format('there is no source "%s"', worker_cursors_make.source),
            hint = 'Sources: select source from tidemark.source;';
    end if;
    select w.shards into shards from tidemark.worker w where w.worker = worker_cursors_make.worker for share;
    if not found then
        raise exception using errcode = 'TM004',
            message = format('there is no worker "%s"', worker_cursors_make.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    end if;
    insert into tidemark.worker_cursor (worker, source, shard, watermark_id, decided_through, phase, sweep, metadata)
    select worker_cursors_make.worker, worker_cursors_make.source, n, worker_cursors_make.first,
           tidemark.source_place(null, worker_cursors_make.first), 'seeding',
           jsonb_build_object('xmin', pg_snapshot_xmin(pg_current_snapshot())::text, 'mark', clock_timestamp()),
           (select jsonb_build_object('home', tidemark.source_home(t.relation),
                                      'numbering', tidemark.source_numbering(s, t.relation))
            from tidemark.source s cross join tidemark.source_shape(s) t where s.source = worker_cursors_make.source)
    from generate_series(0, shards - 1) n
    on conflict do nothing;
    get diagnostics made = row_count;
    insert into tidemark.heartbeat (executor_id)
    select tidemark.executor_id(worker_cursors_make.worker, worker_cursors_make.source, n)
    from generate_series(0, shards - 1) n
    on conflict do nothing;
    if made > 0 then
        insert into tidemark.audit (action, object, reason, after)
        values ('worker_source_add', 'worker_cursor ' || worker_cursors_make.worker, worker_cursors_make.reason,
                jsonb_build_object('source', worker_cursors_make.source, 'shards', shards));
    end if;
    return made;
end
$$;
comment on function tidemark.worker_cursors_make(text, text, text, text) is
    'Creates the cursors and heartbeats of a worker for a source, one for each of its shards; first is where they '
    'begin. Locks the source and the worker against changes. Returns how many it created. Raises TM004.';
grant execute on function tidemark.worker_cursors_make(text, text, text, text) to tidemark_executor;
