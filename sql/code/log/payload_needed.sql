create or replace function tidemark.payload_needed(
    domain text, after bigint, upto bigint, numbers bigint[], out seq bigint, out who text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    with recursive pair as (
        -- As in tidemark.log_needed.
        (select p.worker_id, p.route_id from tidemark.pending p order by 1, 2 limit 1)
        union all
        select n.worker_id, n.route_id from pair x cross join lateral (
            select p.worker_id, p.route_id from tidemark.pending p
            where (p.worker_id, p.route_id) > (x.worker_id, x.route_id) order by 1, 2 limit 1) n
    )
    select k.seq, k.who into seq, who from (
        (select u.seq, 'the cursor of worker ' || u.worker as who
         from tidemark.log_unread(payload_needed.domain, payload_needed.numbers) u
         order by u.seq limit 1)
        union all
        (select f.seq, 'a pending delivery of route ' || r.route_code
         from pair x join tidemark.outbound_route r on r.id = x.route_id
         cross join lateral (
             select p.seq from tidemark.pending p
             where p.worker_id = x.worker_id and p.route_id = x.route_id and p.seq > payload_needed.after
               and p.seq <= payload_needed.upto and p.domain = payload_needed.domain
             order by p.seq limit 1) f
         order by f.seq limit 1)
        union all
        (select n.seq, 'replay ' || j.id
         from unnest(payload_needed.numbers) n (seq)
         join tidemark.replay_job j on n.seq > j.passed_seq and (j.open_end or n.seq <= j.last_seq)
         join tidemark.outbound_route r on r.id = j.route_id and r.domain in ('*', payload_needed.domain)
         where j.finished_at is null and j.cancelled_at is null
         order by n.seq limit 1)
        union all
        (select l.seq, 'dead letter ' || l.id || ', which has no payload of its own'
         from tidemark.dead_letter l
         where l.payload_in_log and l.resolved_at is null and l.seq > payload_needed.after
           and l.seq <= payload_needed.upto and l.event_snapshot ->> 'domain' = payload_needed.domain
         order by l.seq limit 1)) k
    order by k.seq limit 1;
end
$$;
comment on function tidemark.payload_needed(text, bigint, bigint, bigint[]) is
    'The first event of the domain (numbers, from after to upto) whose payload is still needed, and by what: not read '
    'by a worker, pending, ahead of a replay, or of an open dead letter without a payload of its own. Null: none is.';
