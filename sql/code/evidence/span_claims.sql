create or replace function tidemark.span_claims(
    worker text,
    after_seq bigint,
    to_seq bigint,
    most integer,
    undecided boolean)
returns table (route_id integer, events bigint, first_seq bigint, last_seq bigint)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
-- One range of the primary key, whatever the statistics say.
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    w constant tidemark.worker := (select w from tidemark.worker w where w.worker = span_claims.worker);
    places constant bigint[] := array(
        select c.watermark_id::bigint from tidemark.worker_cursor c
        where c.worker = span_claims.worker and c.source = 'outbox' order by c.shard);
    -- The numbers below the places that were open when their shards passed them: read when they are committed.
    open constant int8multirange[] := array(
        select (c.holes + c.fenced) * int8multirange(int8range(null, c.watermark_id::bigint + 1))
        from tidemark.worker_cursor c
        where not undecided and c.worker = span_claims.worker and c.source = 'outbox' order by c.shard);
begin
    return query
    with routes as materialized (
        select r as row_,
               case when undecided then tidemark.decided(w.id, r.id, after_seq + 1, to_seq) else '{}' end as done
        from tidemark.outbound_route r where r.worker = span_claims.worker
    ), late as (
        select o.* from (select range_agg(u.spans) as spans from unnest(open) u (spans)) a
        cross join lateral unnest(a.spans) h (span)
        cross join lateral (
            select o.* from tidemark.outbox o
            where o.seq >= lower(h.span) and o.seq < upper(h.span)
              and open[tidemark.shard_of(o.key, o.seq, cardinality(places)) + 1] @> o.seq
            order by o.seq limit most) o
    ), forward as (
        select o.* from tidemark.outbox o
        where o.seq > after_seq and (to_seq is null or o.seq <= to_seq)
          and (undecided or o.seq > places[tidemark.shard_of(o.key, o.seq, cardinality(places)) + 1])
        order by o.seq limit most
    ), log as materialized (
        select * from (select * from late union all select * from forward) o order by o.seq limit most
    )
    select null::integer, count(*), min(l.seq), max(l.seq) from log l
    union all
    select (r.row_).id, count(*), min(l.seq), max(l.seq)
    from log l join routes r on not r.done @> l.seq and tidemark.route_matches(r.row_, l)
    where w.domains is null or l.domain = any (w.domains)
    group by 1;
end
$$;
comment on function tidemark.span_claims(text, bigint, bigint, integer, boolean) is
    'How many of the events above after_seq, up to to_seq (null: the end of the log), the worker''s routes claim: '
    'first (route_id null) how many there are, at most most, then each route that claims some; with undecided only '
    'those that the route has no evidence for, else only those that their shard has not read, and with them the late '
    'ones below.';
