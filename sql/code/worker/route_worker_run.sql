-- public
-- One pass, top to bottom, in the caller's transaction. The daemon's loop uses the same verbs.
create or replace function tidemark.route_worker_run(
    worker text default 'default',
    batch_limit integer default 5000,
    shard integer default 0)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    claimed record;
    batch tidemark.batch;
    evidence tidemark.evidence[];
    live integer[];
    delivered record;
    gate text;
    summary jsonb;
    staged integer := 0;
begin
    if route_worker_run.batch_limit is null or route_worker_run.batch_limit not between 1 and 50000 then
        raise exception using errcode = 'TM005',
            message = format('batch_limit is %s, and must be from 1 to 50000',
                             coalesce(route_worker_run.batch_limit::text, 'null')),
            hint = 'The default, 5000, suits most.';
    end if;
    claimed := tidemark.claim(route_worker_run.worker, shard => route_worker_run.shard);
    if claimed.handler <> 'route' then
        raise exception using errcode = 'TM005',
            message = format('worker %s belongs to a Go program and is not run from here', route_worker_run.worker),
            hint = 'Start the program.';
    end if;
    if claimed.status <> 'claimed' then
        return jsonb_build_object('worker', route_worker_run.worker, 'status', claimed.status,
                                  case claimed.status when 'closed' then 'gate' else 'detail' end, claimed.detail,
                                  'events', 0);
    end if;

    if claimed.unfinished and route_worker_run.shard = 0 then
        staged := tidemark.replay_stage(route_worker_run.worker);
    end if;
    batch := tidemark.read_outbox(route_worker_run.worker, route_worker_run.batch_limit, null, route_worker_run.shard);
    evidence := tidemark.decide_batch(route_worker_run.worker, batch);

    if claimed.unfinished then
        perform tidemark.pending_hold(route_worker_run.worker, batch.closed, route_worker_run.shard);
    end if;
    if claimed.unfinished or exists (select from unnest(evidence) e where e.outcome = 'pending') then
        live := tidemark.live_inside(route_worker_run.worker, evidence, route_worker_run.shard);
    end if;
    if coalesce(cardinality(live), 0) = 0 then
        summary := tidemark.settle(route_worker_run.worker, claimed.epoch, batch, evidence, '{}',
                                   shard => route_worker_run.shard);
        return summary || jsonb_build_object('staged', staged);
    end if;

    perform tidemark.time_notice();

    begin
        delivered := tidemark.deliver_inside(route_worker_run.worker, evidence, interval '10 seconds', batch.closed,
                                             route_worker_run.shard);
        summary := tidemark.settle(route_worker_run.worker, claimed.epoch, batch, delivered.settled, delivered.results,
                                   delivered.fallbacks, shard => route_worker_run.shard);

        -- Check the switches for the last time after the last delivery: a rollback then also undoes the effects of a
        -- slow target after they were closed.
        gate := tidemark.closed_switch(route_worker_run.worker, live, batch.closed);
        if gate is not null then
            raise exception using errcode = 'TM009', message = gate;
        end if;
    exception when sqlstate 'TM009' then
        get stacked diagnostics gate = message_text;
        return jsonb_build_object('worker', route_worker_run.worker, 'status', 'closed', 'gate', gate, 'events', 0);
    end;
    return summary || jsonb_build_object('staged', staged);
end
$$;
comment on function tidemark.route_worker_run(text, integer, integer) is
    'One pass of a worker, of its first shard or another, in the caller''s transaction: claims its cursor, reads at '
    'most batch_limit (1 to 50000, default 5000) events, decides, delivers to targets inside the database, stages '
    'deliveries to targets outside as pending, writes the evidence and moves the cursor. It starts deliveries inside '
    'for at most 10 seconds; only a statement_timeout, which the caller sets, ends a target that hangs. Call it as a '
    'transaction of its own, again while status is ran and events is batch_limit, or staged (events of replays that it '
    'staged) is not 0. Returns {"status": "ran"|"closed"|"held"|"busy", …}; closed names the gate, held gives the '
    'reason, busy names the owner. Raises TM004, TM005, TM006, TM007. Source: S0 fn_iu_route_worker_run.';
grant execute on function tidemark.route_worker_run(text, integer, integer) to tidemark_executor;
