-- One pass of a PgQ consumer: the next batch, one row of narrow evidence per event, done.
-- pgq stands for the schema, which is pgque where that edition is measured.
create table bench.pgq_evidence (like bench.evidence including all);

create function bench.pgq_run(queue text, with_evidence bool) returns int
language plpgsql as $$
declare
  batch int8 := pgq.next_batch(queue, 'bench');
  events int;
begin
  if batch is null then
    return null;
  end if;
  if with_evidence then
    insert into bench.pgq_evidence (event, worker, route, attempt_no, outcome)
    select e.ev_id, 1, coalesce(r.id, 0), 1, case when r.id is null then 'skipped' else 'dry_run' end::bench.outcome
      from pgq.get_batch_events(batch) e
      left join bench.route r on r.domain = 'bench' and r.type = e.ev_type
     order by e.ev_id;
    get diagnostics events = row_count;
  else
    select count(*) into events
      from pgq.get_batch_events(batch) e
      left join bench.route r on r.domain = 'bench' and r.type = e.ev_type
     where e.ev_data is not null;
  end if;
  perform pgq.finish_batch(batch);
  return events;
end
$$;
