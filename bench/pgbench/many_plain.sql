insert into bench.plain_outbox (domain, type, key, payload) select 'bench', 'type.0', 'key.0', :payload from generate_series(1, 100);
