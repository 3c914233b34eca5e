-- What workload 4 writes to, apart from tidemark.outbox.
create table bench.orders (
  id int8 generated always as identity primary key,
  customer int8 not null,
  placed_at timestamptz not null default now(),
  note text not null
);

-- An outbox as one writes it by hand, with one index: the limit for a log in the database.
create table bench.plain_outbox (
  seq int8 generated always as identity primary key,
  event_id uuid not null default gen_random_uuid(),
  created_at timestamptz not null default clock_timestamp(),
  domain text not null,
  type text not null,
  key text,
  actor text not null default session_user,
  payload jsonb not null
);

-- The same as orders, captured.
create table bench.captured_orders (like bench.orders including all);

-- The same, with a trigger as one writes it by hand, for this table and the plain outbox.
create table bench.triggered_orders (like bench.orders including all);
create function bench.to_plain_outbox() returns trigger language plpgsql as $$
begin
  insert into bench.plain_outbox (domain, type, key, payload)
  select 'bench', 'type.0', n.id, jsonb_build_object('table', 'triggered_orders', 'operation', 'insert', 'primary_key', jsonb_build_object('id', n.id))
  from new_rows n;
  return null;
end
$$;
create trigger to_plain_outbox after insert on bench.triggered_orders
  referencing new table as new_rows for each statement execute function bench.to_plain_outbox();

-- The same into Tidemark's log, which no role may do beside its owner.
create table bench.logged_orders (like bench.orders including all);
create function bench.to_log() returns trigger language plpgsql as $$
begin
  insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, key, subject_table, subject_ref, actor, payload)
  select gen_random_uuid(), clock_timestamp(), clock_timestamp(), 'immediate', 'info', 'bench', 'type.0', n.id, 'bench.logged_orders', n.id, session_user,
         jsonb_build_object('table', 'logged_orders', 'operation', 'insert', 'primary_key', jsonb_build_object('id', n.id))
  from new_rows n;
  return null;
end
$$;
create trigger to_log after insert on bench.logged_orders
  referencing new table as new_rows for each statement execute function bench.to_log();
