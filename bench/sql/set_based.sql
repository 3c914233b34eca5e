-- One pass: a page of the outbox, one row of narrow evidence per event, the cursor.
create or replace function bench.set_based_run(page_size int, effect boolean) returns int
language plpgsql as $$
declare
  position int8;
  last int8;
  events int;
begin
  select c.seq into position from bench.cursor c where c.name = 'set_based' for update;

  with page as (
    select o.seq, o.domain, o.type
      from tidemark.outbox o
     where o.seq > position
     order by o.seq
     limit page_size
  ), written as (
    insert into bench.evidence (event, worker, route, attempt_no, outcome)
    select p.seq, 1, coalesce(r.id, 0), 1, case when r.id is null then 'skipped' else 'dry_run' end::bench.outcome
      from page p
      left join bench.route r on r.domain = p.domain and r.type = p.type
     order by p.seq
  )
  select count(*), max(p.seq) into events, last from page p;

  if events > 0 then
    if effect then
      insert into bench.effect (event_id, seq, type, n)
      select o.event_id, o.seq, o.type, (o.payload ->> 'n')::int8
        from tidemark.outbox o where o.seq > position and o.seq <= last order by o.seq;
    end if;
    update bench.cursor c set seq = last where c.name = 'set_based';
  end if;
  return events;
end
$$;
