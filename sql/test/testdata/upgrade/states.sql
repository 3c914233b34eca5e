-- An installation in use, for psql: something in each state that an upgrade has to keep. scripts/upgrade-fixture.sh runs it
-- on a build, as the installer, and dumps what came of it; TestUpgrade upgrades that. Each statement is a transaction.
\set ON_ERROR_STOP 1
set timezone = 'UTC';

-- What the application has: a table that its SQL target writes, and tables that are read.
create table received (at bigint generated always as identity primary key, n integer not null, key text);
create function receive(event jsonb) returns void language plpgsql as $$ begin
    if (event -> 'payload' ->> 'n')::integer = 6 then raise exception 'no 6'; end if;
    insert into public.received (n, key) values ((event -> 'payload' ->> 'n')::integer, event ->> 'key');
end $$;
create table handled (at bigint generated always as identity primary key, source text not null, n integer not null);
create table counted (id bigint generated always as identity primary key, n integer not null);
create table timed (id uuid primary key default gen_random_uuid(), n integer not null, born_at timestamptz not null default clock_timestamp());
create index on timed (born_at, id);
create table loose (id bigint generated always as identity primary key, n integer not null, born_at timestamptz);
create index on loose (born_at, id);
create table parcels (id uuid primary key default gen_random_uuid(), n integer not null, born_at timestamptz);
create table orders (id integer primary key, n integer);
create function take_counted(rows counted[]) returns void language plpgsql as $$ begin
    if exists (select from unnest(rows) r where r.n >= 600) then raise exception 'no such row'; end if;
    insert into public.handled (source, n) select 'counted', r.n from unnest(rows) r;
end $$;
create function take_timed(rows timed[]) returns void language sql as $$ insert into public.handled (source, n) select 'timed', r.n from unnest(rows) r $$;
create function take_loose(rows loose[]) returns void language sql as $$ insert into public.handled (source, n) select 'loose', r.n from unnest(rows) r $$;
create function take_parcels(rows parcels[]) returns void language sql as $$ insert into public.handled (source, n) select 'parcels', r.n from unnest(rows) r $$;

-- Types, routes, gates.
select tidemark.type_set(d, t) from (values ('test', 'tick'), ('parcels', 'made'), ('orders', 'insert'), ('orders', 'update')) v (d, t);
select tidemark.stage_set('live', 'in use');
select tidemark.route_set('app', '{"domain": "test", "target_kind": "sql", "target_ref": "public.receive", "ordering": "key", "enabled": true, "dry_run": false, "retry_policy": {"max_attempts": 1}}');
select tidemark.route_set('hook', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "ordering": "key", "enabled": true, "dry_run": false}');
select tidemark.route_set('off', '{"domain": "test", "target_kind": "sql", "target_ref": "public.receive", "enabled": false}');
select tidemark.route_set('rehearsed', '{"domain": "test", "target_kind": "sql", "target_ref": "public.receive", "enabled": true, "dry_run": true, "payload_filter": {"n": 3}}');
select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true);
select tidemark.worker_set('idle', '{"domains": ["parcels"]}', 'for later');
update tidemark.setting set value = '12345678' where key = 'batch.max_bytes';

-- The log, by a daemon: what of 1 to 8 was sent, is to be tried again, waits behind its key, was not tried, is dead.
select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', n), key => case when n in (3, 4) then 'a' end, idempotency_key => case n when 1 then 'once' end)
from generate_series(1, 8) n;
select tidemark.claim('default', 'daemon', '10 minutes');
select tidemark.pass_settle('default', 1, r.batch::tidemark.batch, r.evidence::tidemark.evidence[], array(
    select row(o.id, true, x.outcome, x.reason, x.detail, x.seqs, x.delay)::tidemark.result
    from tidemark.outbound_route o, (values
        ('sent'::tidemark.outcome, null, null, '{[1,2),[6,7)}'::int8multirange, null::float8),
        ('failed', 'http_400', 'never', '{[2,3),[7,9)}', null),
        ('pending', 'http_503', 'not now', '{[3,4)}', 3600),
        ('pending', 'behind_key', null, '{[4,5)}', null),
        ('pending', 'busy', null, '{[5,6)}', 0)) x (outcome, reason, detail, seqs, delay)
    where o.route_code = 'hook'), 1)
from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') r where r.events > 0;
-- Letter 7 was sent again and taken, 8 discarded, 2 is sent again at this moment.
select tidemark.dead_letter_replay(l.id) from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id where r.route_code = 'hook' and l.seq = 7;
select tidemark.pass_settle('default', 1, null, null, array[row(r.id, false, 'sent', null, null, '{[7,8)}', null)::tidemark.result], 2)
from tidemark.outbound_route r where r.route_code = 'hook';
select tidemark.dead_letter_discard(l.id, 'obsolete') from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id where r.route_code = 'hook' and l.seq = 8;
select tidemark.dead_letter_replay(l.id) from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id where r.route_code = 'hook' and l.seq = 2;
-- A window is sent again on the route that was off: 1 to 3 of it, as far as one look staged it.
select * from tidemark.route_replay('hook', 'they lost them', from_seq => 6, to_seq => 7);
-- Number 9 was taken back: the cursor looks out for it. 11 to 14 have not been read.
begin; select tidemark.emit_strict('test', 'tick', '{"n": 9}'); rollback;
select tidemark.emit_strict('test', 'tick', '{"n": 10}', key => 'a');
select tidemark.pass_settle('default', 1, r.batch::tidemark.batch, r.evidence::tidemark.evidence[], array(
    select row(o.id, true, 'pending', 'behind_key', null, '{[10,11)}'::int8multirange, null)::tidemark.result
    from tidemark.outbound_route o where o.route_code = 'hook'), 3)
from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') r where r.events > 0;
select tidemark.release('default', 1);
select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', n), key => case n when 11 then 'a' when 12 then 'b' when 13 then 'b' end)
from generate_series(11, 14) n;

-- Tables, by each safety: 1 to 4 are handled, 5 and 6 are not read. Of counted, 600 is dead and 601 waits for another attempt.
select tidemark.inbound_route_set('parcels', '{"source_schema": "public", "source_table": "parcels", "sql_event": "insert", "domain": "parcels", "type": "made", "enabled": true, "dry_run": false}', 'in use');
select tidemark.capture_attach('public.parcels', 'in use');
select tidemark.source_set(s, d::jsonb, 'in use') from (values
    ('counted', '{"table": "public.counted", "id_column": "id", "safety": "sequence"}'),
    ('timed', '{"table": "public.timed", "id_column": "id", "timestamp_column": "born_at", "safety": "clock", "margin": "1 microsecond"}'),
    ('loose', '{"table": "public.loose", "id_column": "id", "timestamp_column": "born_at", "safety": "declared", "sweep_window": "3650 days", "margin": "1 microsecond"}'),
    ('parcels', '{"table": "public.parcels", "id_column": "id", "timestamp_column": "born_at", "safety": "capture"}')) v (s, d);
select tidemark.worker_set('w_' || s, jsonb_build_object('source', 'table', 'handler', 'sql', 'handler_ref', 'public.take_' || s,
    'retry_policy', '{"base_seconds": 0.001, "max_seconds": 0.001, "max_attempts": 2}'::jsonb), 'in use')
from unnest(array['counted', 'timed', 'loose', 'parcels']) s;
select tidemark.worker_source_add('w_' || s, s, 'in use'), tidemark.gate_set('worker.w_' || s || '.enabled', true)
from unnest(array['counted', 'timed', 'loose', 'parcels']) s;
insert into counted (n) values (600), (1), (2), (3), (4);
insert into timed (n) select generate_series(1, 4);
insert into loose (n, born_at) select n, clock_timestamp() from generate_series(1, 4) n;
insert into parcels (n) select generate_series(1, 4);
select tidemark.worker_run('w_' || s) from generate_series(1, 4), unnest(array['counted', 'timed', 'loose', 'parcels']) s;
insert into counted (n) values (601);
select tidemark.worker_set('w_counted', '{"retry_policy": {"base_seconds": 86400, "max_seconds": 86400, "max_attempts": 2}}', 'in use');
select tidemark.worker_run('w_counted');
insert into counted (n) values (5), (6);
insert into timed (n) values (5), (6);
insert into loose (n, born_at) select n, clock_timestamp() from generate_series(5, 6) n;
insert into loose (n, born_at) values (7, clock_timestamp() - interval '10 minutes'); -- the sweep finds it
insert into parcels (n) values (5), (6);

-- A captured table with a gap: 2 has no event.
select tidemark.inbound_route_set('orders-' || e, jsonb_build_object('source_schema', 'public', 'source_table', 'orders', 'sql_event', e, 'domain', 'orders', 'type', e, 'enabled', true, 'dry_run', false), 'in use')
from unnest(array['insert', 'update']) e;
select tidemark.capture_attach('public.orders', 'in use');
insert into orders values (1, 1);
select pg_stat_force_next_flush();
select * from tidemark.capture_reconcile();
alter table orders disable trigger all;
insert into orders values (2, 2);
alter table orders enable trigger all;
insert into orders values (3, 3);
select pg_stat_force_next_flush();
select * from tidemark.capture_reconcile();

-- Liveness, findings, traces.
select tidemark.heartbeat_register('backup', 'external_worker', '{}', '60 seconds', '1 day');
select tidemark.heartbeat_write('backup');
select tidemark.emit('test', 'unheard');
select tidemark.worker_finding('default', 'target_down', 'hook', 'its target fails');
select tidemark.worker_finding('default', 'cursor_lease_conflict', 'default', 'an instance was fenced');
select tidemark.finding_ack(f.id, 'known') from tidemark.finding f where f.kind = 'cursor_lease_conflict';
select tidemark.worker_finding('default', 'target_down', 'hook', null);
