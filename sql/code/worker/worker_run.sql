-- public
create or replace function tidemark.worker_run(
    worker text default 'default',
    source text default null,
    shard integer default null,
    page integer default null)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    kind constant text := (select w.source from tidemark.worker w where w.worker = worker_run.worker);
    shards constant integer := (select w.shards from tidemark.worker w where w.worker = worker_run.worker);
    c record;
    claimed record;
    summary jsonb;
    runs jsonb[] := '{}';
    more boolean := false;
    ran boolean := false;
    live integer[];
    shut text[];
    gate text;
begin
    if worker_run.page not between 1 and 50000 then
        raise exception using errcode = 'TM005',
            message = format('page is %s, and must be from 1 to 50000', worker_run.page);
    end if;
    if kind = 'outbox' and (shards = 1 or worker_run.shard is not null) then
        return tidemark.route_worker_run(worker_run.worker, coalesce(worker_run.page, 5000),
                                         coalesce(worker_run.shard, 0));
    elsif kind = 'outbox' then
        live := array(
            select r.id from tidemark.outbound_route r
            where r.worker = worker_run.worker and tidemark.route_delivers(r)
              and tidemark.target_is_inside(r.target_kind));
        shut := tidemark.closed_domains();
        begin
            for n in 0 .. shards - 1 loop
                summary := tidemark.route_worker_run(worker_run.worker, coalesce(worker_run.page, 5000), n);
                runs := runs || (summary || jsonb_build_object('source', 'outbox', 'shard', n));
            end loop;
            -- As in the pass of one: what an earlier shard has delivered is taken back if a gate closed meanwhile.
            gate := tidemark.closed_switch(worker_run.worker, live, shut);
            if gate is not null then
                raise exception using errcode = 'TM009', message = gate;
            end if;
        exception when sqlstate 'TM009' then
            get stacked diagnostics gate = message_text;
            return jsonb_build_object('worker', worker_run.worker, 'status', 'closed', 'gate', gate, 'events', 0);
        end;
        return jsonb_build_object('worker', worker_run.worker, 'status', 'ran', 'runs', to_jsonb(runs),
            'events', (select max((r ->> 'events')::bigint) from unnest(runs) r),
            'staged', (select sum((r ->> 'staged')::bigint) from unnest(runs) r));
    end if;
    if kind = 'kafka' then
        raise exception using errcode = 'TM005', message = format('worker %s reads Kafka', worker_run.worker),
            hint = 'The daemon runs it (tidemark run), with a section commands in its configuration.';
    end if;
    perform tidemark.time_notice();
    begin
        for c in
            select c.source, c.shard from tidemark.worker_cursor c
            where c.worker = worker_run.worker and (worker_run.source is null or c.source = worker_run.source)
              and (worker_run.shard is null or c.shard = worker_run.shard)
            -- Take cursors with suspects last: once the timer has fired, it would not end another pass.
            order by c.metadata ? 'suspects', c.source, c.shard
        loop
            if cardinality(runs) > 0 and tidemark.time_left() <= interval '0' then
                more := true;
                exit;
            end if;
            claimed := tidemark.claim(worker_run.worker, null, null, c.source, c.shard);
            summary := case when claimed.status = 'claimed'
                then tidemark.source_pass(worker_run.worker, c.source, c.shard, claimed.epoch, worker_run.page)
                else jsonb_build_object('worker', worker_run.worker, 'source', c.source, 'shard', c.shard,
                                        'status', claimed.status, 'detail', claimed.detail, 'rows', 0,
                                        'more', false) end;
            runs := runs || summary;
            ran := ran or summary ->> 'status' = 'ran';
        end loop;
        -- As above: the page of an earlier cursor is taken back too. Where none was handed over, the beats stay.
        if ran and cardinality(runs) > 1 then
            gate := tidemark.closed_gate(worker_run.worker);
            if gate is not null then
                raise exception using errcode = 'TM009', message = gate;
            end if;
        end if;
    exception when sqlstate 'TM009' then
        get stacked diagnostics gate = message_text;
        return jsonb_build_object('worker', worker_run.worker, 'status', 'closed', 'gate', gate, 'detail', gate,
                                  'rows', 0, 'more', false);
    end;
    if cardinality(runs) = 0 then
        raise exception using errcode = 'TM004',
            message = case when kind is null then format('there is no worker "%s"', worker_run.worker)
                else format('worker %s has no cursor of %s', worker_run.worker,
                            coalesce('source ' || worker_run.source, 'any source')
                            || coalesce(', shard ' || worker_run.shard, '')) end,
            hint = case when kind is null then 'Workers: select worker from tidemark.worker;'
                else 'Give it one: select tidemark.worker_source_add(worker, source, reason);' end;
    elsif cardinality(runs) = 1 then
        return case when more then summary || '{"more": true}' else summary end;
    end if;
    return jsonb_build_object('worker', worker_run.worker, 'status', 'ran', 'runs', to_jsonb(runs),
        'rows', (select sum((r ->> 'rows')::bigint) from unnest(runs) r),
        'more', more or (select bool_or((r ->> 'more')::boolean) from unnest(runs) r));
end
$$;
comment on function tidemark.worker_run(text, text, integer, integer) is
    'One pass of a worker of any kind, in the caller''s transaction: for the outbox tidemark.route_worker_run, of each '
    'shard or of one; for tables a page (at most page rows, default the worker''s page_size) of each of its cursors, '
    'or of those of one source or shard. If a gate closes meanwhile, all of them are taken back. Call it as a '
    'transaction of its own, again while more is true. A page that the caller''s statement_timeout ends is rolled back '
    '(cut), and the next has fewer rows, down to the one that hangs: that row has failed (57014). Without a '
    'statement_timeout a handler that hangs is never ended. Returns {"worker", "source", "shard", "status": '
    '"ran"|"cut"|"closed"|"held"|"throttled"|"waiting"|"busy", "detail", "step", "rows", "taken", "failed", …}; for '
    'several cursors their runs. Raises TM004, TM005, TM006, TM007.';
grant execute on function tidemark.worker_run(text, text, integer, integer) to tidemark_executor;
