-- Fills an installation as it is after a long time in use: $events events, 1,000 routes of 100 workers, 100,000 dead letters.
-- The log and its evidence are written as tables, since emitting and delivering as much takes hours.
select tidemark.stage_set('live', 'bench');
select tidemark.type_set('bench', 'type.' || i) from generate_series(0, 99) i;
select tidemark.worker_set('w' || i) from generate_series(1, 99) i;
select tidemark.gate_set(g, true) from unnest(array['routes.enabled'] || (select array_agg('worker.' || worker || '.enabled') from tidemark.worker where source <> 'kafka')) g;
select tidemark.route_set('route-' || i, jsonb_build_object('domain', 'bench', 'type', 'type.' || i % 100,
    'worker', case when i % 100 = 0 then 'default' else 'w' || i % 100 end, 'target_kind', 'webhook',
    'target_ref', 'https://receiver-' || i || '.example.org/hooks', 'options', '{"unsigned": true}'::jsonb, 'enabled', true, 'dry_run', false))
from generate_series(1, 1000) i;

set session_replication_role = replica;

-- Run for each $from and $to.
insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, key, actor, payload)
select tidemark.event_uuid(t.at), t.at, t.at, 'immediate', 'info', 'bench', 'type.' || n % 100, 'key.' || n % 100000, 'bench',
    jsonb_build_object('number', n, 'text', 'a payload of a usual length, as orders and invoices have it')
from generate_series($from, $to) n cross join lateral (select now() - ($events - n) * interval '1 day' / $events as at) t;
select tidemark.maintain();

-- What was decided in batches of 10,000, and what failed.
insert into tidemark.decision (worker_id, route_id, first_seq, last_seq, events, outcome, seqs)
select w.id, r.id, n * 10000 + 1, n * 10000 + 10000, 100, 'sent', int8multirange(int8range(n * 10000 + 1, n * 10000 + 10001))
from tidemark.outbound_route r join tidemark.worker w on w.worker = r.worker cross join generate_series(0, $events / 10000 - 1) n
where r.id % 10 = n % 10;
insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
select o.seq, w.id, r.id, 1, 'failed', 'http_400', 'HTTP 400: ' || repeat('refused ', 20)
from generate_series(1, 100) n cross join tidemark.outbound_route r join tidemark.worker w on w.worker = r.worker
join tidemark.outbox o on o.seq = $events - 1000 * n + r.id;
insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code, error_detail, first_failed_at, last_failed_at)
select 'tm:' || r.worker || ':' || r.route_code || ':' || o.event_id, w.id, r.id, o.seq, o.event_id, to_jsonb(o), 'http_400',
    'HTTP 400: ' || repeat('refused ', 20), o.created_at, o.created_at
from tidemark.attempt a join tidemark.outbox o on o.seq = a.seq join tidemark.outbound_route r on r.id = a.route_id
join tidemark.worker w on w.worker = r.worker;
insert into tidemark.pending (worker_id, route_id, seq, key, attempt_no, next_attempt_at, error_count, last_error, created_at, domain)
select w.id, r.id, o.seq, o.key, 2, now() + interval '10 minutes', 1, 'HTTP 503', o.created_at, o.domain
from generate_series(1, 20) n cross join tidemark.outbound_route r join tidemark.worker w on w.worker = r.worker
join tidemark.outbox o on o.seq = $events - 1000 * n + r.id;

-- A week of history, as routes make it that are always busy; and a long audit.
delete from tidemark.route_minute;
insert into tidemark.route_minute (route_id, at, sent, retried, failed, recorded, waiting)
select r.id, t, 10, 1, 1, 0, 5 from tidemark.outbound_route r
cross join (select date_trunc('minute', now()) - n * interval '1 minute' as t from generate_series(0, 1439) n
    union select date_trunc('hour', now()) - n * interval '1 hour' from generate_series(24, 167) n) t;
insert into tidemark.route_minute (route_id, at, sent, retried, failed, recorded, waiting)
select 0, m.at, sum(m.sent), sum(m.retried), sum(m.failed), sum(m.recorded), sum(m.waiting) from tidemark.route_minute m
where m.at < date_trunc('minute', now()) - interval '1 minute' group by m.at;
insert into tidemark.log_minute (at, last_seq)
select date_trunc('minute', now()) - n * interval '1 minute', $events - n::bigint * $events / 1440 from generate_series(0, 1439) n
on conflict do nothing;
insert into tidemark.audit (at, actor, action, object, reason, before, after)
select now() - n * interval '1 minute', 'ops', 'update', 'outbound_route route-' || n % 1000 + 1, 'a reason', '{"concurrency": 1}', '{"concurrency": 2}'
from generate_series(1, 200000) n;
insert into tidemark.finding (kind, subject, severity, detail, opened_at, closed_at)
select 'dead_letters', 'route-' || n % 1000 + 1, 'warning', 'it was', now() - n * interval '1 minute', now() - n * interval '30 seconds' from generate_series(1, 20000) n;

update tidemark.worker_cursor set watermark_id = '$events', decided_through = '$events', last_run_at = now(), horizon = now(),
    last_run_summary = '{"events": 1000, "seconds": 1}';
insert into tidemark.heartbeat (executor_id, last_beat_at)
select worker || '/outbox/0', now() from tidemark.worker on conflict (executor_id) do update set last_beat_at = now(), last_status = 'idle';
reset session_replication_role;
select tidemark.heartbeat_daemon('bench');

vacuum analyze;
