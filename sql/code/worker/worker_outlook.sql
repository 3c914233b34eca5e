-- public
-- A security definer: the filters of routes read payloads (tidemark.span_claims), but it returns none.
create or replace function tidemark.worker_outlook(worker text, most integer default 10000)
returns table (
    route_code text,
    becomes tidemark.outcome,
    events bigint,
    waiting bigint,
    first_seq bigint,
    last_seq bigint,
    complete boolean)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    mark bigint;
    shards integer;
    upto bigint;
begin
    select min(c.watermark_id::bigint), count(*) into mark, shards from tidemark.worker_cursor c
    where c.worker = worker_outlook.worker and c.source = 'outbox';
    if not exists (select from tidemark.worker w where w.worker = worker_outlook.worker) then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', worker_outlook.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    elsif most is null or most not between 1 and 1000000 then
        raise exception using errcode = 'TM005',
            message = format('most is %s, and must be from 1 to 1000000', coalesce(most::text, 'null'));
    elsif mark is null then
        return; -- a worker of tables
    end if;
    -- Above the lowest watermark there may be any number of events that their own shards have read.
    upto := (select o.seq from tidemark.outbox o where o.seq > mark order by o.seq offset most * shards - 1 limit 1);
    return query
    with claims as materialized (
        select c.* from tidemark.span_claims(worker_outlook.worker, mark, upto, most, false) c
    ), read as (
        select c.events as n, c.first_seq as low, c.last_seq as high from claims c where c.route_id is null
    ), route as (
        select r.route_code as code, r.enabled as on_, r.dry_run as dry, coalesce(c.events, 0) as n,
               c.first_seq as low, c.last_seq as high, p.n as waiting
        from tidemark.outbound_route r
        left join claims c on c.route_id = r.id
        cross join lateral (
            select count(*) as n from (
                select from tidemark.pending p where p.route_id = r.id
                order by p.replay, p.next_attempt_at limit most) p) p
        where r.worker = worker_outlook.worker
    )
    select null::text, null::tidemark.outcome, read.n, (select coalesce(sum(t.waiting), 0)::bigint from route t),
           read.low, read.high,
           upto is null and read.n < most and not exists (select from route t where t.waiting = most)
    from read
    union all
    select t.code, case when not t.on_ then 'disabled' when t.dry then 'dry_run' else 'pending' end::tidemark.outcome,
           t.n, t.waiting, t.low, t.high, upto is null and read.n < most and t.waiting < most
    from route t, read where t.n > 0 or t.waiting > 0
    order by 1 nulls first;
end
$$;
comment on function tidemark.worker_outlook(text, integer) is
    'A preview for a worker of the log: the effects on the events that it has not read (of each shard those above its '
    'watermark, and late ones below) if its gates were open. First (route_code null) the number of events, then for '
    'each route how many events it claims, with their outcome: pending (delivered, or of a paused route kept until it '
    'is resumed), '
    'disabled or dry_run (recorded, and not delivered later unless tidemark.route_replay sends '
    'them). waiting: deliveries of the route that already wait. Looks at the first most events (1 to 1000000, default '
    '10000) for each shard of the worker, from the lowest watermark on, and counts up to most of them and as many '
    'deliveries; complete false: more may exist. No row for a worker of tables. Raises '
    'TM004, TM005.';
grant execute on function tidemark.worker_outlook(text, integer) to tidemark_reader, tidemark_executor;
