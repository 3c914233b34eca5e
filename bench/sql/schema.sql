-- What the contestants of this folder need, apart from what they bring themselves.
create schema bench;

create table bench.cursor (
  name text primary key,
  seq int8 not null default 0,
  last_created_at timestamptz not null default '-infinity',
  last_event_id uuid not null default '00000000-0000-0000-0000-000000000000'
);

create table bench.route (
  id int4 primary key,
  domain text not null,
  type text not null,
  dry_run bool not null,
  unique (domain, type)
);

insert into bench.route
select n, 'bench', 'type.' || n, true
  from generate_series(0, 43) n;

-- Narrow evidence: a binary key whose index is the only one, and the columns of tidemark.attempt.
create type bench.outcome as enum ('skipped', 'dry_run');
create table bench.evidence (
  event int8 not null,
  worker int4 not null,
  route int4 not null,
  attempt_no int2 not null,
  outcome bench.outcome not null,
  decided_at timestamptz not null default clock_timestamp(),
  reason text,
  detail text,
  primary key (worker, route, event, attempt_no)
);

-- What targets leave of each event.
create table bench.effect (
  event_id uuid not null,
  seq int8 not null primary key,
  type text not null,
  n int8
);

-- What a reader that stops before the oldest transaction under way needs.
create table bench.gated_outbox (
  seq int8 generated always as identity primary key,
  xid xid8 not null default pg_current_xact_id(),
  key text,
  payload jsonb not null
);
create index gated_outbox_order on bench.gated_outbox (xid, seq);

-- What Debezium's outbox router expects.
create table bench.debezium_outbox (
  id uuid primary key default gen_random_uuid(),
  aggregatetype text not null default 'bench',
  aggregateid text not null,
  type text not null default 'type.0',
  payload jsonb not null
);
