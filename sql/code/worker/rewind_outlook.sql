create or replace function tidemark.rewind_outlook(worker text, to_seq bigint)
returns table (was bigint, route_code text, outcome tidemark.outcome, events bigint, decided boolean, complete boolean)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    most constant integer := 1000000;
    w constant tidemark.worker := (select w from tidemark.worker w where w.worker = rewind_outlook.worker);
    at_ constant bigint := (
        select max(c.watermark_id::bigint) from tidemark.worker_cursor c
        where c.worker = rewind_outlook.worker and c.source = 'outbox');
    span constant int8multirange := int8multirange(int8range(to_seq + 1, at_ + 1));
begin
    -- An event with attempts of its own counts with its latest attempt, not with its original range.
    return query
    with tried as materialized (
        select distinct on (a.route_id, a.seq) a.route_id, a.seq, a.outcome from tidemark.attempt a
        where a.worker_id = w.id and a.seq > to_seq and a.seq <= at_
        order by a.route_id, a.seq, a.attempt_no desc
    ), tried_of as (
        select t.route_id, range_agg(int8range(t.seq, t.seq + 1)) as seqs from tried t group by t.route_id
    ), on_record as (
        select d.route_id, d.outcome, upper(s) - lower(s) as events
        from tidemark.decision d
        left join tried_of t on t.route_id = d.route_id
        cross join lateral unnest(d.seqs * span - coalesce(t.seqs, '{}')) s
        where d.worker_id = w.id and d.last_seq > to_seq and d.first_seq <= at_
        union all
        select t.route_id, t.outcome, 1 from tried t
    )
    select at_, r.route_code, d.outcome, sum(d.events)::bigint, true, true
    from on_record d left join tidemark.route_name r on r.id = d.route_id
    group by r.route_code, d.outcome
    order by r.route_code nulls last, d.outcome;

    -- Events that a route has no evidence for: the route is newer than them, or claims more than before.
    return query
    with claims as materialized (
        select c.* from tidemark.span_claims(rewind_outlook.worker, to_seq, at_, most, true) c
    ), read as (
        select c.events as n from claims c where c.route_id is null
    )
    select at_, r.route_code,
           case when not r.enabled then 'disabled' when r.dry_run then 'dry_run' else 'pending' end::tidemark.outcome,
           c.events, false, read.n < most
    from claims c join tidemark.outbound_route r on r.id = c.route_id, read
    union all
    select at_, null, null, read.n, null, read.n < most from read
    order by 2 nulls last, 3;
end
$$;
comment on function tidemark.rewind_outlook(text, bigint) is
    'The effects of a rewind of the worker to the number, as rows of tidemark.worker_rewind.';
