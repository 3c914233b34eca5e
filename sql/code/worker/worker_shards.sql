-- The number of shards of a worker of the log changes while no instance runs it. Its cursors may be at different places
-- then: all go back to the lowest, and what was decided above it stays decided (tidemark.decide_batch), as after a
-- rewind. Numbers that a cursor had passed before they showed up stay open, unless another shard has decided them.
create or replace function tidemark.worker_shards(worker text, shards integer, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    w constant tidemark.worker := (select k from tidemark.worker k where k.worker = worker_shards.worker);
    lease tidemark.heartbeat;
    was record;
    low bigint;
    high bigint;
    open int8multirange;
    top bigint;
    model tidemark.worker_cursor;
begin
    select h.* into lease from tidemark.heartbeat h
    join tidemark.worker_cursor c on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
    where c.worker = w.worker and c.source = 'outbox' and h.lease_until > clock_timestamp() limit 1;
    if found then
        raise exception using errcode = 'TM005',
            message = format('worker %s: the number of its shards cannot change while %s runs it, until %s', w.worker,
                             lease.lease_owner, date_trunc('second', lease.lease_until)),
            hint = format('Pause it, which takes a second: tidemark worker pause %s. Resume it afterwards.', w.worker);
    elsif worker_shards.shards > 1 and w.handler <> 'route' then
        raise exception using errcode = 'TM005',
            message = format('worker %s belongs to a Go program, which reads the log with one cursor', w.worker),
            hint = 'Give the program handlers that work at the same time, or use a worker for each domain.';
    end if;
    perform from tidemark.worker_cursor c where c.worker = w.worker and c.source = 'outbox' order by c.shard for update;

    select count(*)::integer as shards, min(c.watermark_id::bigint) as low, max(c.decided_through::bigint) as high,
           max(c.dealt_through) as dealt, min(c.begins_after) as begins,
           coalesce(range_agg(c.holes), '{}') + coalesce(range_agg(c.fenced), '{}') as open,
           max(c.watermark_id::bigint) as far, bool_or(tidemark.cursor_edited(c)) as edited,
           bool_or(c.watermark_id::bigint < c.decided_through::bigint and c.dealt_through is null) as rewound,
           jsonb_agg(jsonb_build_object('shard', c.shard, 'watermark', c.watermark_id) order by c.shard) as places
    into was from tidemark.worker_cursor c where c.worker = w.worker and c.source = 'outbox';
    if was.edited then
        raise exception using errcode = 'TM012',
            message = format('worker %s: the watermark of a cursor was edited by hand, or restored', w.worker),
            hint = 'Accept a place with tidemark.worker_rewind.';
    elsif was.rewound and was.low < was.far then
        -- A rewind decides events for routes that are newer; what a change deals out anew is not decided for them.
        raise exception using errcode = 'TM005',
            message = format('worker %s was rewound, and its shards are not at the same place: one is at %s, another '
                             'at %s', w.worker, was.low, was.far),
            hint = 'Let it run until all have read on to where they were, or rewind it again.';
    end if;
    low := was.low;
    open := was.open * int8multirange(int8range(null, low + 1));
    if not isempty(open) and was.shards > 1 then
        open := open - tidemark.decided(w.id, 0, lower(open), upper(open));
    end if;
    select max(h.lease_epoch) + 1 into top from tidemark.heartbeat h
    join tidemark.worker_cursor c on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
    where c.worker = w.worker and c.source = 'outbox';

    insert into tidemark.audit (action, object, reason, before, after)
    values ('worker_shards', 'worker ' || w.worker, worker_shards.reason,
            jsonb_build_object('shards', was.shards, 'cursors', was.places),
            jsonb_build_object('shards', worker_shards.shards, 'watermark', low));
    -- The next read notes a fence for what is open (tidemark.read_outbox).
    update tidemark.worker_cursor c
    set watermark_id = low::text, decided_through = was.high::text,
        rewound_to = case when low < was.high then low end, begins_after = was.begins,
        dealt_through = case when was.far > low then greatest(was.far, was.dealt) else was.dealt end,
        holes = open, fenced = '{}', fence = '{}', updated_at = clock_timestamp()
    where c.worker = w.worker and c.source = 'outbox';
    select c.* into model from tidemark.worker_cursor c
    where c.worker = w.worker and c.source = 'outbox' and c.shard = 0;
    insert into tidemark.worker_cursor (worker, source, shard, watermark_id, decided_through, begins_after,
                                        dealt_through, rewound_to, holes, paused_at, last_run_at, metadata)
    select w.worker, 'outbox', n, model.watermark_id, model.decided_through, model.begins_after, model.dealt_through,
           model.rewound_to, model.holes, model.paused_at, model.last_run_at, model.metadata
    from generate_series(was.shards, worker_shards.shards - 1) n;
    insert into tidemark.heartbeat (executor_id, domain_scope)
    select tidemark.executor_id(w.worker, 'outbox', n), coalesce(w.domains, '{}')
    from generate_series(was.shards, worker_shards.shards - 1) n;
    -- Above every epoch that any shard ever had: a statement that comes late settles nothing.
    update tidemark.heartbeat h set lease_epoch = top
    from generate_series(0, greatest(was.shards, worker_shards.shards) - 1) n
    where h.executor_id = tidemark.executor_id(w.worker, 'outbox', n);

    perform tidemark.cursors_delete(w.worker, 'outbox', worker_shards.shards);
    update tidemark.pending p set shard = tidemark.shard_of(p.key, p.seq, worker_shards.shards)
    where p.worker_id = w.id and not p.replay and p.shard <> tidemark.shard_of(p.key, p.seq, worker_shards.shards);
end
$$;
comment on function tidemark.worker_shards(text, integer, text) is
    'The part of tidemark.worker_set that changes the number of shards of a worker of the log: cursors, leases and '
    'pending deliveries. The caller holds the locks on the leases, so that none is claimed meanwhile. Raises TM005 '
    'while an instance runs the worker, while its shards read on after a rewind, and for one of a Go program; TM012 '
    'where a watermark was edited by hand.';
