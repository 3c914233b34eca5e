-- A definer: it reads payloads for the filters, and gives none back. What an event looks like is for those to see
-- who may read it by its number.
create or replace function tidemark.backtest_ruled(
    route_code text,
    since timestamptz,
    until timestamptz,
    samples integer,
    dropped int8multirange,
    failed int8multirange,
    failure text,
    remark text)
returns table (
    outcome tidemark.outcome,
    reason text,
    detail text,
    target_kind text,
    target_ref text,
    domain text,
    type text,
    events bigint,
    first_at timestamptz,
    last_at timestamptz,
    keys bigint,
    without_key bigint,
    payload_bytes bigint,
    largest_payload integer,
    busiest_minute timestamptz,
    busiest_events bigint,
    newest bigint[])
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
-- The window is a range of the BRIN index, whatever the planner knows of a log that grows by the second.
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    route tidemark.outbound_route := (
        select r from tidemark.outbound_route r where r.route_code = backtest_ruled.route_code);
    domains text[];
    rivals tidemark.outbound_route[];
    filtered tidemark.outbound_route[];
    no_target text;
    no_target_detail text;
begin
    domains := (select w.domains from tidemark.worker w where w.worker = route.worker);
    rivals := array(
        select r from tidemark.outbound_route r
        where r.id <> route.id and r.enabled and r.target_kind = route.target_kind and r.target_ref = route.target_ref
          and (r.exclusive or route.exclusive)
        order by r.id);
    filtered := array(select r from unnest(rivals) r where r.key_filter is not null or r.payload_filter is not null);
    if tidemark.target_is_inside(route.target_kind) then
        begin
            perform tidemark.delivery_statement(route, false);
        exception when undefined_function or undefined_table or invalid_parameter_value or feature_not_supported then
            get stacked diagnostics no_target = returned_sqlstate, no_target_detail = message_text;
        end;
    end if;

    return query
    with claimed as materialized (
        select o.seq, o.created_at, date_trunc('minute', o.created_at) as minute, o.domain, o.type, o.stream, o.key,
               octet_length(o.payload::text) as bytes,
               case when cardinality(filtered) = 0 then '{}' else array(
                   select r.id from unnest(filtered) r where tidemark.route_matches(r, o) order by r.id) end as matched,
               case when dropped @> o.seq then 'dropped' when failed @> o.seq then 'failed' end as made
        from tidemark.outbox o
        where o.created_at >= since and o.created_at < coalesce(until, 'infinity')
          and (domains is null or o.domain = any (domains)) and tidemark.route_matches(route, o)
    ), ruled as (
        -- As in tidemark.decide_batch: one decision serves a whole group, and the filters are answered already.
        select g.domain, g.type, g.stream, g.matched, g.made, r.outcome, r.reason, r.detail,
               dense_rank() over (order by r.outcome, r.reason) as ruling
        from (select distinct c.domain, c.type, c.stream, c.matched, c.made from claimed c) g
        cross join lateral tidemark.decide(
            route.worker,
            jsonb_populate_record(null::tidemark.outbox,
                                  jsonb_build_object('domain', g.domain, 'type', g.type, 'stream', g.stream)),
            array(select jsonb_populate_record(r, '{"key_filter": null, "payload_filter": null}') from unnest(rivals) r
                  where r.key_filter is null and r.payload_filter is null or r.id = any (g.matched))
            || jsonb_populate_record(route,
                                     '{"enabled": true, "dry_run": false, "key_filter": null, "payload_filter": null}'),
            row(true, true, true, null)::tidemark.gates) d
        cross join lateral (
            select d.outcome, d.reason, case d.outcome when 'pending' then remark end as detail
            where d.outcome <> 'pending' or no_target is null and g.made is null
            union all
            select 'failed', no_target, no_target_detail where d.outcome = 'pending' and no_target is not null
            union all
            select 'skipped', 'transform', null
            where d.outcome = 'pending' and no_target is null and g.made = 'dropped'
            union all
            select 'failed', 'transform_failed', failure
            where d.outcome = 'pending' and no_target is null and g.made = 'failed') r
        where d.route_id = route.id
    ), judged as materialized (
        select c.*, r.ruling, r.outcome, r.reason, r.detail
        from claimed c
        join ruled r on r.domain = c.domain and r.type = c.type and r.matched = c.matched
            and r.stream is not distinct from c.stream and r.made is not distinct from c.made
    ), summed as (
        select j.ruling, j.outcome, j.reason, j.detail, j.domain, j.type, count(*) as events,
               min(j.created_at) as first_at, max(j.created_at) as last_at, count(distinct j.key) as keys,
               count(*) - count(j.key) as without_key, sum(j.bytes) as payload_bytes, max(j.bytes) as largest_payload
        from judged j
        group by grouping sets ((j.ruling, j.outcome, j.reason, j.detail),
                                (j.ruling, j.outcome, j.reason, j.detail, j.domain, j.type))
    ), peak as (
        select m.ruling, m.domain, m.type, max(m.events) as events,
               (array_agg(m.minute order by m.events desc, m.minute))[1] as minute
        from (
            select j.ruling, j.domain, j.type, j.minute, count(*) as events from judged j
            group by grouping sets ((j.ruling, j.minute), (j.ruling, j.domain, j.type, j.minute))) m
        group by m.ruling, m.domain, m.type
    ), sample as (
        select n.ruling, n.domain, n.type, array_agg(n.seq order by n.seq desc) as newest
        from (
            select j.ruling, j.domain, j.type, j.seq,
                   row_number() over (partition by j.ruling, j.domain, j.type order by j.seq desc) as place
            from judged j) n
        where n.place <= samples
        group by n.ruling, n.domain, n.type
    )
    select s.outcome, s.reason, s.detail, route.target_kind, route.target_ref, s.domain, s.type, s.events, s.first_at,
           s.last_at, s.keys, s.without_key, s.payload_bytes, s.largest_payload, p.minute, p.events,
           coalesce(n.newest, '{}')
    from summed s
    join peak p on p.ruling = s.ruling and p.domain is not distinct from s.domain and p.type is not distinct from s.type
    left join sample n on n.ruling = s.ruling and n.domain = s.domain and n.type = s.type
    union all
    select null, null, null, route.target_kind, route.target_ref, o.domain, o.type, count(*), min(o.created_at),
           max(o.created_at), null, null, null, null, null, null, '{}'
    from tidemark.outbox o
    where o.created_at >= since and o.created_at < coalesce(until, 'infinity')
      and (domains is null or o.domain = any (domains)) and not tidemark.route_matches(route, o)
    group by o.domain, o.type
    order by 1 desc nulls last, 2, 6 nulls first, 7;
end
$$;
comment on function tidemark.backtest_ruled(text, timestamptz, timestamptz, integer, int8multirange, int8multirange,
                                            text, text) is
    'tidemark.route_backtest, told of which events the route''s transform drops, at which it fails, and how. remark '
    'is the detail of what would be delivered.';
grant execute on function tidemark.backtest_ruled(text, timestamptz, timestamptz, integer, int8multirange,
                                                  int8multirange, text, text) to tidemark_reader;
