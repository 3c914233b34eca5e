\set customer random(1, 1000000000)
begin;
insert into bench.orders (customer, note) values (:customer, 'two of these, please');
insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, key, actor, payload) values (gen_random_uuid(), clock_timestamp(), clock_timestamp(), 'immediate', 'info', 'bench', 'type.0', 'key.0', session_user, :payload);
commit;
