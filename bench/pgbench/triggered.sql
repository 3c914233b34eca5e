\set customer random(1, 1000000000)
begin;
insert into bench.triggered_orders (customer, note) values (:customer, 'two of these, please');
commit;
