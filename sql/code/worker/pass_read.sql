create or replace function tidemark.pass_read(
    worker text,
    epoch bigint,
    batch_limit integer,
    after tidemark.batch,
    known_routes text,
    rooms integer[],
    room_of integer[],
    most_bytes bigint default null,
    payloads boolean default true,
    settle_no bigint default null,
    apart boolean default false,
    shard integer default 0)
returns table (
    gate text, events integer, open boolean, place text, batch text, evidence text, routes jsonb, routes_version text,
    route_ids integer[], attempt_no integer, error_count integer, fresh boolean, replay boolean,
    seq bigint, event_id uuid, created_at timestamptz, occurred_at timestamptz, lane tidemark.lane,
    severity tidemark.severity, domain text, type text, stream text, key text, subject_table text, subject_ref text,
    idempotency_key text, trace text, actor text, emitted_by text, payload jsonb, missing bigint,
    inside double precision, withheld bigint, closed text[], settled boolean, starts bigint[], ends bigint[],
    lowest bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- The rows of a page stay in memory: with the default work_mem, most pages would go through a temporary file.
set work_mem = '64MB'
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    me record;
    read tidemark.batch;
    decided tidemark.evidence[];
    outside tidemark.evidence[];
    due tidemark.pending[];
    needed integer[];
    live integer[];
    numbers int8multirange;
    dense boolean;
    read_to pg_lsn;
    leaves boolean := false;
    max_bytes bigint;
    last bigint;
    tries integer := 0;
begin
    perform tidemark.flush_on_commit();
    select w.id, w.shards, h.lease_epoch as epoch, h.lease_timeline = tidemark.timeline() as here, u.unfinished
    into me
    from tidemark.worker w
    join tidemark.heartbeat h on h.executor_id = tidemark.executor_id(w.worker, 'outbox', pass_read.shard)
    cross join lateral tidemark.unfinished(w.id) u
    where w.worker = pass_read.worker;
    if me.epoch is distinct from pass_read.epoch or me.here is not true then
        perform tidemark.lease_check(pass_read.worker, pass_read.epoch, 'outbox', pass_read.shard); -- raises
    end if;
    gate := case when me.shards = 1 then tidemark.closed_gate(pass_read.worker)
                 else tidemark.log_gate(pass_read.worker, pass_read.shard) end;
    if gate is null then
        if rooms is not null and me.unfinished then
            if pass_read.shard = 0 and exists (
                select from tidemark.replay_job j join tidemark.outbound_route r on r.id = j.route_id
                where j.worker_id = me.id and j.finished_at is null
                  and r.worker = pass_read.worker and tidemark.route_delivers(r))
            then
                -- A replay and the cursors come after the lease, as a settle and a rewind lock them: below, this pass
                -- locks it too, to hold events or to settle.
                perform tidemark.lease_check(pass_read.worker, pass_read.epoch, 'outbox', pass_read.shard);
                perform tidemark.replay_stage(pass_read.worker);
            end if;
            perform tidemark.pending_hold(pass_read.worker, tidemark.closed_domains(), pass_read.shard);
            due := tidemark.pending_due(pass_read.worker, me.id, rooms, room_of, pass_read.shard);
            if exists (select from unnest(due) d left join tidemark.dead_letter l on l.id = d.dead_letter_id
                       where coalesce(l.payload_in_log, true)
                         and not exists (select from tidemark.outbox o
                                         where o.seq = d.seq and o.event_id = coalesce(l.event_id, o.event_id))) then
                -- Its row would stay due forever, and block rows that can be delivered.
                perform tidemark.lease_check(pass_read.worker, pass_read.epoch, 'outbox', pass_read.shard);
                missing := tidemark.settle_missing(pass_read.worker, pass_read.shard);
                due := tidemark.pending_due(pass_read.worker, me.id, rooms, room_of, pass_read.shard);
            end if;
        end if;
        if cardinality(due) > 0 then
            max_bytes := least(most_bytes, tidemark.page_bytes()) / 2; -- half for fresh events, half for pending ones
            due := tidemark.pending_within(due, max_bytes);
        end if;
        loop
            read := tidemark.read_outbox(pass_read.worker, batch_limit, after, pass_read.shard);
            -- All that has been read by now is committed below this point. Later, the point would lie above what other
            -- writers have written meanwhile, and most reads would wait for the disk.
            read_to := pg_current_wal_insert_lsn();
            exit when read.events = 0;
            decided := tidemark.decide_batch(pass_read.worker, read);
            -- Not as a join: where nothing is pending, the routes are not looked at.
            outside := array(
                select e from unnest(decided) e
                where case when e.outcome = 'pending' then e.route_id in (
                    select r.id from unnest(read.routes) r where not tidemark.target_is_inside(r.target_kind)) end);
            exit when cardinality(outside) = 0;
            numbers := case when cardinality(outside) = 1 then outside[1].seqs
                            else (select range_agg(e.seqs) from unnest(outside) e) end;
            exit when batch_limit = 1 or tries = 3 or read.events = 1;
            -- If the batch is too large for a page, read it again, only as far as it fits.
            max_bytes := coalesce(max_bytes, least(most_bytes, tidemark.page_bytes()));
            last := tidemark.last_within(numbers, max_bytes);
            exit when last is null;
            -- Of the log as a whole: the limit counts events of other shards and domains too.
            batch_limit := (
                select greatest(sum(o.n), 1)
                from (select coalesce(after.watermark, c.watermark_id::bigint) as mark,
                             case when after is null then c.holes + c.fenced else after.holes + after.fenced end as open
                      from tidemark.worker_cursor c
                      where c.worker = pass_read.worker and c.source = 'outbox' and c.shard = pass_read.shard) k
                cross join lateral unnest(
                    k.open * int8multirange(int8range(null, least(k.mark, last) + 1))
                    + int8multirange(int8range(k.mark + 1, greatest(k.mark, last) + 1))) part
                cross join lateral (
                    select count(*) as n from tidemark.outbox o where o.seq >= lower(part) and o.seq < upper(part)) o);
            tries := tries + 1;
        end loop;
        events := read.events;
        closed := read.closed;
        open := not isempty(read.holes) or not isempty(read.fenced)
            or read.watermark < pg_sequence_last_value('tidemark.outbox_seq_seq');
        -- Add two seconds for other deliveries and for the settle itself.
        if me.unfinished or exists (
            select from unnest(decided) e where e.outcome = 'pending' and not e = any (outside))
        then
            live := tidemark.live_inside(pass_read.worker, coalesce(decided, '{}'), pass_read.shard);
        end if;
        if cardinality(live) > 0 then
            inside := (
                select extract(epoch from max(r.timeout)) + 2 from tidemark.outbound_route r where r.id = any (live));
        end if;
        if cardinality(outside) > 0 or cardinality(due) > 0 then
            leaves := true;
            needed := array(select e.route_id from unnest(outside) e union select p.route_id from unnest(due) p);
            routes_version := (
                select string_agg(concat_ws(':', r.id, r.xmin, r.ctid), ',' order by r.id)
                from tidemark.outbound_route r where r.id = any (needed));
            if routes_version is distinct from known_routes then
                routes := (
                    select jsonb_agg(to_jsonb(r) || jsonb_build_object('timeout_seconds', extract(epoch from r.timeout))
                                     order by r.id)
                    from tidemark.outbound_route r where r.id = any (needed));
            end if;
        end if;
        -- A page that leaves nothing to deliver is settled at once: nothing can come between.
        if settle_no is not null and events > 0 and not leaves and inside is null and missing is null then
            settled := tidemark.settle(pass_read.worker, pass_read.epoch, read, decided, '{}', 0, pass_read.settle_no,
                                       pass_read.shard) ->> 'status' = 'ran';
        end if;
        evidence := case
            when events = 0 then '{}'
            when settled then null
            when cardinality(outside) = 0 then decided::text
            when cardinality(outside) = cardinality(decided) then '{}'
            else (array(select e from unnest(decided) e where not e = any (outside)))::text end;
        lowest := least(read.watermark + 1, lower(read.holes), lower(read.fenced));
        -- Drop the largest parts of the batch, which no later step uses.
        read.groups := null; read.seqs := null; read.routes := null;
        batch := read::text;
        place := concat_ws(' ', read.watermark, read.holes, read.fenced, read.fence, read.blocked_by);
        if numbers is not null then
            dense := upper(numbers) - lower(numbers) <= 4 * case
                when cardinality(outside) = 1 then outside[1].events
                else (select sum(upper(n) - lower(n)) from unnest(numbers) n) end;
        end if;
        apart := apart and payloads and dense;
        if apart then
            select array_agg(e.route_id), array_agg(lower(s)), array_agg(upper(s)) into route_ids, starts, ends
            from (select o.route_id, o.seqs from unnest(outside) o order by o.route_id) e, unnest(e.seqs) s;
            perform set_config('tidemark.page', numbers::text, true);
        end if;
    end if;

    return next;
    -- A page that is not settled yet must be durable before it leaves: a crash could undo the event of a writer that
    -- did not wait for its commit, and give its number to another, which the settle would pass over. A commit becomes
    -- visible once it is flushed, unless its writer did not wait for that (synchronous_commit off, or local beside a
    -- synchronous standby). So if the log is flushed up to the point of this read, no wait is needed; otherwise the
    -- commit of this WAL record waits. It is a WAL record and not a row: the settle of the page before holds the
    -- lease's row.
    if (leaves or events > 0 and settled is not true)
        and (pg_current_wal_flush_lsn() < read_to or current_setting('synchronous_standby_names') <> '')
    then
        perform pg_logical_emit_message(true, 'tidemark', '');
    end if;
    if not leaves then
        return;
    end if;

    -- Return the head row's columns only once.
    gate := null; events := null; open := null; place := null; batch := null; evidence := null; routes := null;
    missing := null;
    inside := null; closed := null; settled := null; route_ids := null; starts := null; ends := null;
    lowest := null;
    if apart then
        null; -- The statement that follows returns the fresh events.
    elsif not payloads then
        return query
        select null::text, null::integer, null::boolean, null::text, null::text, null::text, null::jsonb, null::text,
               i.routes, i.attempt_no, i.errors, i.fresh, i.replay,
               e.*
        from (
            select n as seq,
                   array(select e.route_id from unnest(outside) e where e.seqs @> n order by e.route_id) as routes,
                   1 as attempt_no, 0 as errors, true as fresh, false as replay, null::bigint as letter
            from unnest(tidemark.multirange_numbers(numbers)) n
            union all
            select p.seq, array[p.route_id], p.attempt_no + 1, p.error_count, false, p.replay, p.dead_letter_id
            from unnest(due) p) i
        left join tidemark.dead_letter l on l.id = i.letter
        -- Take only the heads: a whole row would fetch the payload.
        cross join lateral (
            select h.*, null::jsonb, null::bigint, null::double precision, tidemark.payload_bytes(o.payload),
                   null::text[], null::boolean, null::bigint[], null::bigint[], null::bigint
            from tidemark.outbox o cross join lateral tidemark.event_head(o) h
            where coalesce(l.payload_in_log, true) and o.seq = i.seq and o.event_id = coalesce(l.event_id, o.event_id)
            union all
            select h.*, null, null, null, tidemark.payload_bytes(l.event_snapshot), null, null, null, null, null
            from jsonb_populate_record(null::tidemark.outbox, l.event_snapshot) s
            cross join lateral tidemark.event_head(s) h
            where not l.payload_in_log) e
        order by i.fresh desc, i.seq;
        return;
    elsif dense then
        -- The usual case: read the range of the log, and pass over the few events that stay.
        return query
        select null::text, null::integer, null::boolean, null::text, null::text, null::text, null::jsonb, null::text,
               case when cardinality(outside) = 1 then array[outside[1].route_id] else array(
                   select e.route_id from unnest(outside) e where e.seqs @> o.seq order by e.route_id) end,
               1, 0, true, false, h.*, o.payload, null::bigint, null::double precision, null::bigint, null::text[],
               null::boolean, null::bigint[], null::bigint[], null::bigint
        from tidemark.outbox o cross join lateral tidemark.event_head(o) h
        where o.seq >= lower(numbers) and o.seq < upper(numbers) and numbers @> o.seq order by o.seq;
    elsif numbers is not null then
        return query
        select null::text, null::integer, null::boolean, null::text, null::text, null::text, null::jsonb, null::text,
               array(select e.route_id from unnest(outside) e where e.seqs @> o.seq order by e.route_id),
               1, 0, true, false, h.*, o.payload, null::bigint, null::double precision, null::bigint, null::text[],
               null::boolean, null::bigint[], null::bigint[], null::bigint
        from tidemark.events(tidemark.multirange_numbers(numbers)) o
        cross join lateral tidemark.event_head(o) h; -- in order
    end if;
    if due is null then
        return;
    end if;
    return query
    select null::text, null::integer, null::boolean, null::text, null::text, null::text, null::jsonb, null::text,
           array[p.route_id], p.attempt_no + 1, p.error_count, false, p.replay, h.*, o.payload, null::bigint,
           null::double precision, null::bigint, null::text[], null::boolean, null::bigint[], null::bigint[],
           null::bigint
    from unnest(due) p
    join tidemark.events(array(
        select distinct d.seq from unnest(due) d where d.dead_letter_id is null order by 1)) o on o.seq = p.seq
    cross join lateral tidemark.event_head(o) h
    where p.dead_letter_id is null
    order by o.seq;
    return query
    select null::text, null::integer, null::boolean, null::text, null::text, null::text, null::jsonb, null::text,
           array[p.route_id], p.attempt_no + 1, p.error_count, false, p.replay, h.*, o.payload, null::bigint,
           null::double precision, null::bigint, null::text[], null::boolean, null::bigint[], null::bigint[],
           null::bigint
    from unnest(due) p
    join tidemark.dead_letter l on l.id = p.dead_letter_id
    cross join lateral tidemark.letter_event(l) o cross join lateral tidemark.event_head(o) h
    where o.seq is not null;
end
$$;
comment on function tidemark.pass_read(text, bigint, integer, tidemark.batch, text, integer[], integer[], bigint,
                                       boolean, bigint, boolean, integer) is
    'Begins a pass by the owner of the lease epoch: reads at most batch_limit events after the cursor, or after the '
    'batch after, decides them, and adds the pending events that are due. The payloads fit into the setting '
    'batch.max_bytes, half of it for each kind where both exist (at least one event each). First row: gate, the gate '
    'that is closed (null: none); open, whether numbers up to the highest one taken are still open; place, where the '
    'batch leaves the cursor (for comparison); batch and evidence, for tidemark.pass_settle; routes, the routes that '
    'are needed, unless their version is known_routes; missing, how many pending events it dead-lettered because they '
    'are gone from the log; inside, how many seconds the settle may take if it delivers inside the database (null: it '
    'does not); closed, the domains whose gate is closed, whose events must not be delivered. Other rows: the '
    'deliveries outside the database, each an event with its routes, fresh or pending (fresh false), or one that an '
    'operator sends again (replay). Also stages more events of replays on its routes (tidemark.replay_stage). rooms '
    'are routes that take at most room_of pending events; others take 100; null: no pending events. most_bytes bounds '
    'the page where it is less than the setting (null: it does not). With payloads false it leaves out the payloads, '
    'and withheld is the size of each in bytes: tidemark.pass_payload returns them one by one. With settle_no, the '
    'number of the next settle, a page without any delivery is settled at once, as tidemark.pass_settle does it: '
    'settled is true then, and evidence null. With apart, the fresh events may be left out: then the first row tells '
    'which leave by which route (those from starts on, before ends, by route_ids), and the next statement of the same '
    'transaction reads them from the log by the setting tidemark.page, a multirange. No page behind this one has '
    'events below lowest. Commit before a delivery leaves. Raises TM011, and TM012 where the watermark was edited by '
    'hand.';
grant execute on function tidemark.pass_read(text, bigint, integer, tidemark.batch, text, integer[], integer[], bigint,
                                             boolean, bigint, boolean, integer) to tidemark_executor;
