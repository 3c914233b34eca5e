\set customer random(1, 1000000000)
with placed as (insert into bench.orders (customer, note) values (:customer, 'two of these, please') returning id) select tidemark.emit('bench', 'type.0', :payload, 'key.0') from placed;
