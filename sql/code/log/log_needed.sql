create or replace function tidemark.log_needed(out seq bigint, out kind text, out subject text, out who text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    with recursive pair as (
        -- The first pending delivery of each worker and route: one lookup in the primary key, however many there are.
        (select p.worker_id, p.route_id, p.seq, p.dead_letter_id from tidemark.pending p order by 1, 2, 3 limit 1)
        union all
        select n.* from pair x cross join lateral (
            select p.worker_id, p.route_id, p.seq, p.dead_letter_id from tidemark.pending p
            where (p.worker_id, p.route_id) > (x.worker_id, x.route_id) order by 1, 2, 3 limit 1) n
    )
    select k.seq, k.kind, k.subject, k.who from (
        select least(c.watermark_id::bigint + 1, lower(c.holes), lower(c.fenced)) as seq, 'cursor' as kind,
               c.worker as subject, 'the cursor of worker ' || c.worker as who
        from tidemark.worker_cursor c where c.source = 'outbox'
        union all
        -- The log as a source, or the events of a captured table. The case keeps ids of other sources, which may be any
        -- text, from being cast to numbers before the join.
        select case when s.safety in ('capture', 'sequence')
                         then least(c.watermark_id::bigint + 1, lower(c.holes), lower(c.fenced)) end, 'cursor',
               c.worker, 'the cursor of worker ' || c.worker
        from tidemark.worker_cursor c join tidemark.source s on s.source = c.source
        where s.safety = 'capture' or s.safety = 'sequence' and s.schema_name = 'tidemark' and s.table_name = 'outbox'
        union all
        (select f.seq, 'pending', r.route_code, 'a pending delivery of route ' || r.route_code
         from pair x join tidemark.outbound_route r on r.id = x.route_id
         cross join lateral (
             select coalesce(case when x.dead_letter_id is null then x.seq end, (
                 select p.seq from tidemark.pending p
                 where p.worker_id = x.worker_id and p.route_id = x.route_id and p.dead_letter_id is null
                 order by p.seq limit 1)) as seq) f
         order by f.seq limit 1)
        union all
        select j.passed_seq + 1, 'replay', j.id::text, 'replay ' || j.id
        from tidemark.replay_job j where j.finished_at is null
        union all
        select l.seq, 'dead_letter', l.id::text, 'dead letter ' || l.id || ', which has no payload of its own'
        from (select * from tidemark.dead_letter l
              where l.payload_in_log and l.resolved_at is null order by l.seq limit 1) l) k
    where k.seq is not null
    order by k.seq limit 1
$$;
comment on function tidemark.log_needed() is
    'The lowest number of the log that is still needed, and by what: cursor (subject: the worker), pending (a route), '
    'replay or dead_letter (its id). tidemark.maintain keeps the partitions from there on. No row values: none is.';
