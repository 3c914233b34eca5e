insert into bench.triggered_orders (customer, note) select n, 'two of these, please' from generate_series(1, 100) n;
