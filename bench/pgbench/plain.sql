\set customer random(1, 1000000000)
begin;
insert into bench.orders (customer, note) values (:customer, 'two of these, please');
insert into bench.plain_outbox (domain, type, key, payload) values ('bench', 'type.0', 'key.0', :payload);
commit;
