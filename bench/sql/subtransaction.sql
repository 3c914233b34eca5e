-- The worker that the source documents sketch: a keyset cursor over (created_at, id), row locks
-- with SKIP LOCKED, and per event an exception block, a route lookup and one audit row with a
-- text key. The ids rise with time, which is in favour of this contestant.
create table bench.event_outbox (
  id uuid primary key,
  event_domain text not null,
  event_type text not null,
  payload jsonb not null,
  created_at timestamptz not null
);
create index event_outbox_keyset on bench.event_outbox (event_domain, created_at, id);

create table bench.route_attempt (
  id int8 generated always as identity,
  event_ref uuid not null,
  route_kind text not null,
  status text not null,
  idempotency_key text not null,
  attempt_no int4 not null default 1,
  attempted_at timestamptz not null default now(),
  unique (idempotency_key, attempt_no)
);

create table bench.dead_letter (
  event_ref uuid not null,
  event_snapshot jsonb not null,
  error text not null,
  idempotency_key text not null unique
);

create function bench.subtransaction_run(page_size int) returns int
language plpgsql as $$
declare
  position bench.cursor;
  event record;
  matched bench.route;
  key text;
  events int := 0;
begin
  select * into position from bench.cursor c where c.name = 'subtransaction' for update;

  for event in
    select o.id, o.event_domain, o.event_type, o.payload, o.created_at
      from bench.event_outbox o
     where o.event_domain = 'bench'
       and (o.created_at, o.id) > (position.last_created_at, position.last_event_id)
     order by o.created_at, o.id
     limit page_size
       for update of o skip locked
  loop
    key := null;
    begin
      select * into matched
        from bench.route r
       where r.domain = event.event_domain and r.type = event.event_type;
      key := 'iu_wrk:bench:' || coalesce(matched.id::text, 'none') || ':' || event.id;
      insert into bench.route_attempt (event_ref, route_kind, status, idempotency_key)
      values (event.id, 'none', case when matched.id is null then 'skipped' else 'dry_run' end, key)
      on conflict (idempotency_key, attempt_no) do nothing;
    exception when others then
      insert into bench.dead_letter (event_ref, event_snapshot, error, idempotency_key)
      values (event.id, to_jsonb(event), sqlerrm, key)
      on conflict (idempotency_key) do nothing;
    end;
    events := events + 1;
  end loop;

  if events > 0 then
    update bench.cursor c
       set last_created_at = event.created_at, last_event_id = event.id
     where c.name = 'subtransaction';
  end if;
  return events;
end
$$;
