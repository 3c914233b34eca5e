create or replace function tidemark.replay_page(
    route tidemark.outbound_route,
    after bigint,
    upto bigint,
    key text,
    outcomes text[])
returns table (seq bigint, event_key text, former text, attempt_no integer, left_out text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    w constant tidemark.worker := (select w from tidemark.worker w where w.worker = (replay_page.route).worker);
    open constant int8multirange := (
        select coalesce(range_agg(c.holes), '{}') + coalesce(range_agg(c.fenced), '{}') from tidemark.worker_cursor c
        where c.worker = w.worker and c.source = 'outbox');
    places constant bigint[] := array(
        select c.watermark_id::bigint from tidemark.worker_cursor c
        where c.worker = w.worker and c.source = 'outbox' order by c.shard);
    lowest constant bigint := (select min(p) from unnest(places) p);
begin
    return query
    with event as materialized (
        select o.seq, o.key, tidemark.route_matches(replay_page.route, o)
                                 and (w.domains is null or o.domain = any (w.domains)) as claimed
        from tidemark.outbox o
        where o.seq > after and o.seq <= upto and (replay_page.key is null or o.key = replay_page.key)
    ), tried as materialized (
        select distinct on (a.seq) a.seq, a.outcome, a.attempt_no from tidemark.attempt a
        where a.worker_id = w.id and a.route_id = (replay_page.route).id and a.seq > after and a.seq <= upto
        order by a.seq, a.attempt_no desc
    ), decided as materialized (
        -- By number, so that an event is not compared with each of them.
        select distinct on (n) n as seq, d.outcome
        from tidemark.decisions(w.id, (replay_page.route).id, after + 1, upto) d
        cross join lateral unnest(d.seqs * int8multirange(int8range(after + 1, upto + 1))) s
        cross join lateral generate_series(lower(s), upper(s) - 1) n
        order by n, d.last_seq
    ), letter as materialized (
        select l.seq, l.resolution, l.resolved_at is null as is_open from tidemark.dead_letter l
        where l.worker_id = w.id and l.route_id = (replay_page.route).id and l.seq > after and l.seq <= upto
          and (l.resolved_at is null or l.resolution = 'discarded')
    ), judged as (
        select e.seq, e.key, e.claimed, coalesce(t.outcome, d.outcome)::text as former,
               greatest(coalesce(t.attempt_no, 0), (d.outcome is not null)::integer) + 1 as attempt_no,
               case
                   when open @> e.seq
                       or e.seq > lowest and e.seq > places[tidemark.shard_of(e.key, e.seq, cardinality(places)) + 1]
                       then 'open'
                   when not e.claimed then 'no_match'
                   when exists (select from tidemark.pending p
                                where p.worker_id = w.id and p.route_id = (replay_page.route).id
                                  and p.seq = e.seq) then 'pending'
                   when l.is_open then 'dead_letter'
                   when l.resolution = 'discarded' and t.outcome = 'failed' then 'discarded'
                   when coalesce(t.outcome, d.outcome)::text <> all (replay_page.outcomes)
                       or replay_page.outcomes is not null and coalesce(t.outcome, d.outcome) is null
                          and 'none' <> all (replay_page.outcomes) then 'outcome'
               end as left_out
        from event e
        left join tried t on t.seq = e.seq
        left join letter l on l.seq = e.seq
        left join decided d on d.seq = e.seq
    )
    select j.seq, j.key, coalesce(j.former, 'none'), j.attempt_no, j.left_out
    from judged j
    where j.claimed or j.former is not null
    order by j.seq;
end
$$;
comment on function tidemark.replay_page(tidemark.outbound_route, bigint, bigint, text, text[]) is
    'What a replay on the route would do with the events numbered after to upto (and of the key): each with its '
    'latest outcome on the route (none: no evidence), the number that its next attempt has, and why it is left out: '
    'open (its worker has still to read it), no_match (the route does not claim it any more), pending, dead_letter '
    '(an open one), discarded, outcome (not among outcomes). Null: it is sent.';
