-- public
create or replace function tidemark.route_replay(
    route text,
    reason text default null,
    since timestamptz default null,
    until timestamptz default null,
    from_seq bigint default null,
    to_seq bigint default null,
    key text default null,
    outcomes text[] default null,
    rate double precision default null,
    dry_run boolean default false)
returns table (id bigint, first_seq bigint, last_seq bigint, former text, left_out text, events bigint,
               complete boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    most constant bigint := 1000000;
    step constant integer := 20000;
    route_ constant tidemark.outbound_route := (
        select r from tidemark.outbound_route r where r.route_code = route_replay.route);
    -- Passes may have read events that are not settled yet, without knowing a new route.
    open_end constant boolean := coalesce(outcomes = '{none}', false) and until is null and to_seq is null;
    mark bigint;
    first_number bigint;
    low bigint;
    high bigint;
    seen bigint := 0;
    at bigint;
    upto bigint;
    counts jsonb := '{}';
    total bigint;
    served_by text;
    job bigint;
begin
    if route_ is null then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_replay.route),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    elsif (since is null) = (from_seq is null) or until is not null and to_seq is not null then
        raise exception using errcode = 'TM005',
            message = 'a replay has one beginning, since or from_seq, and at most one end, until or to_seq';
    elsif not coalesce(dry_run, false) and coalesce(btrim(route_replay.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'replaying a route needs a reason',
            hint = 'Or ask for a dry run.';
    elsif not (outcomes <@ array['sent', 'disabled', 'dry_run', 'skipped', 'failed', 'pending', 'none']) then
        raise exception using errcode = 'TM005',
            message = format('outcomes %s: choose from sent, disabled, dry_run, skipped, failed, pending and none',
                             outcomes);
    end if;
    perform tidemark.rate_check(rate, 'events');
    -- What lies above the watermark comes anyway. Shards are at different places: what one has passed and another has
    -- not is judged by its evidence once all have passed it, unless what was sent meanwhile would be sent again.
    mark := (select case when outcomes is null or 'sent' = any (outcomes) then min(c.watermark_id::bigint)
                         else max(c.watermark_id::bigint) end
             from tidemark.worker_cursor c where c.worker = route_.worker and c.source = 'outbox');
    first_number := (select min(p.first_seq) from tidemark.partitions('tidemark.outbox') p);
    -- Numbers and times do not rise together exactly: from the lowest to the highest number of that time.
    low := coalesce(from_seq, case when since is not null then tidemark.seq_of_time(since) end, mark + 1);
    high := least(mark, coalesce(to_seq, case when until is not null then coalesce(
        tidemark.seq_of_time(until, true), 0) end, mark));
    first_seq := greatest(low, first_number, 1);
    last_seq := high;

    at := first_seq - 1;
    while at < high and seen < most loop
        seen := seen + step;
        upto := coalesce((
            select o.seq from tidemark.outbox o
            where o.seq > at and o.seq <= high order by o.seq offset step - 1 limit 1), high);
        counts := tidemark.jsonb_add(counts, (
            select coalesce(jsonb_object_agg(k.k, k.n), '{}') from (
                select p.former || '/' || coalesce(p.left_out, '') as k, count(*) as n
                from tidemark.replay_page(route_, at, upto, route_replay.key, route_replay.outcomes) p
                group by 1) k));
        at := upto;
    end loop;
    complete := at >= high;
    total := coalesce((select sum((c.value #>> '{}')::bigint) from jsonb_each(counts) c where right(c.key, 1) = '/'),
                      0);

    if not coalesce(dry_run, false) and (first_seq <= high or open_end) then
        -- Counting may have taken long. No pass would take up a replay of a route that is gone by now, or that another
        -- worker has, and it would keep the log. A deletion or move of the route waits from here on, and sees the job.
        select r.worker into served_by from tidemark.outbound_route r where r.id = route_.id for share;
        if not found then
            raise exception using errcode = 'TM004',
                message = format('route "%s" was deleted meanwhile', route_replay.route),
                hint = 'Routes: select route_code from tidemark.outbound_route;';
        elsif served_by <> route_.worker then
            raise exception using errcode = 'TM005',
                message = format('route "%s" was given to worker %s meanwhile', route_replay.route, served_by),
                hint = 'Ask again: what was counted is of the worker before.';
        end if;
        last_seq := greatest(first_seq, high);
        insert into tidemark.replay_job as j (route_id, worker_id, first_seq, last_seq, open_end, passed_seq, key,
                                              outcomes, rate, events, reason)
        select route_.id, w.id, first_seq, last_seq, open_end, first_seq - 1, route_replay.key, route_replay.outcomes,
               route_replay.rate, case when complete and not open_end then total end, route_replay.reason
        from tidemark.worker w where w.worker = route_.worker
        returning j.id into job;
        insert into tidemark.audit (action, object, reason, after)
        values ('route_replay', 'route ' || route_.route_code, route_replay.reason,
                jsonb_build_object('replay', job, 'first_seq', first_seq, 'last_seq', last_seq, 'key', route_replay.key,
                                   'outcomes', route_replay.outcomes, 'rate', route_replay.rate, 'counts', counts));
    end if;

    id := job;
    if low < first_number then
        former := 'none'; left_out := 'gone'; events := least(first_number, high + 1) - low;
        return next;
    end if;
    return query
    select job, route_replay.first_seq, route_replay.last_seq, split_part(c.key, '/', 1),
           nullif(split_part(c.key, '/', 2), ''), (c.value #>> '{}')::bigint, route_replay.complete
    from jsonb_each(counts) c order by 5 nulls first, 4;
    former := null; left_out := null;
    events := total;
    return next;
end
$$;
comment on function tidemark.route_replay(text, text, timestamptz, timestamptz, bigint, bigint, text, text[],
                                          double precision, boolean) is
    'Sends events on a route again, or for the first time where it is newer than they are: those from since or '
    'from_seq to until or to_seq, at most to the watermark of its worker (what lies above comes anyway; with outcomes '
    'without sent to that of its foremost shard, and it waits for the others), of the key, '
    'with one of the outcomes on this route so far (sent, disabled, dry_run, skipped, failed, pending; none: no '
    'evidence; alone and without an end, it has all that no pass has decided for the route until the replay begins: so '
    'a new route begins in the past). Each is a new attempt on record, marked as a replay, in the order of numbers, at '
    'most rate a second; live events of the key are not held up. The passes of the worker do it step by step: while '
    'a gate is closed, or '
    'the route is off or in dry run, it waits. Returns what was counted before anything moved: by the latest outcome '
    '(former), how many go, and how many are left out and why (pending, dead_letter: an open one, discarded, '
    'no_match, open, outcome; gone: numbers that retention has dropped); the last row (former null) has the sum that '
    'goes. complete false: only the first million events of the span were looked at; all are replayed. dry_run: it '
    'only counts. Progress: tidemark.replay_summary. Raises TM004, TM005.';
grant execute on function tidemark.route_replay(text, text, timestamptz, timestamptz, bigint, bigint, text, text[],
                                                double precision, boolean) to tidemark_admin;
