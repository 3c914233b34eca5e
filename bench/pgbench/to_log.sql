\set customer random(1, 1000000000)
begin;
insert into bench.logged_orders (customer, note) values (:customer, 'two of these, please');
commit;
