-- The application's side of Tidemark: its event types, its worker, its gates, and the targets of
-- its live routes.
select tidemark.type_set('bench', 'type.' || n) from generate_series(0, 43) n;
select tidemark.worker_set('bench', starts => 'start');
select tidemark.gate_set('routes.enabled', true, 'bench');
select tidemark.gate_set('worker.bench.enabled', true, 'bench');
select tidemark.stage_set('live', 'bench');

-- Both look at the event in the same way; only the second ever finds what it looks for.
create function bench.accept(event jsonb) returns void language plpgsql as $$
begin
  if event -> 'payload' ? 'sugar' then
    raise exception 'refused';
  end if;
end
$$;

create function bench.accept_batch(events tidemark.outbox[]) returns void language plpgsql as $$
begin
  if exists (select from unnest(events) e where e.payload ? 'sugar') then
    raise exception 'refused';
  end if;
end
$$;

create function bench.take(event jsonb) returns void language sql as $$
  insert into bench.effect (event_id, seq, type, n)
  values ((event ->> 'event_id')::uuid, (event ->> 'seq')::int8, event ->> 'type', (event -> 'payload' ->> 'n')::int8)
$$;

create function bench.take_batch(events tidemark.outbox[]) returns void language sql as $$
  insert into bench.effect (event_id, seq, type, n)
  select e.event_id, e.seq, e.type, (e.payload ->> 'n')::int8 from unnest(events) e order by e.seq
$$;

create function bench.accept_or_refuse(event jsonb) returns void language plpgsql as $$
begin
  if event -> 'payload' ? 'poison' then
    raise exception 'refused';
  end if;
end
$$;

-- Of a table that only the contestants of capture write.
select tidemark.inbound_route_set('captured', '{"source_schema": "bench", "source_table": "captured_orders", "sql_event": "insert", "domain": "bench", "type": "type.0", "enabled": true, "dry_run": false}');
select tidemark.capture_attach('bench.captured_orders', 'bench');
