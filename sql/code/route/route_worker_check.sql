-- A route has one cursor, that of its worker. What the old worker owes it would stay behind; events between the places
-- of the two cursors would be delivered twice, or never.
create or replace function tidemark.route_worker_check()
returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    to_ constant integer := (select w.id from tidemark.worker w where w.worker = new.worker);
    problem text;
    advice text;
    low bigint;
    high bigint;
    alike boolean;
begin
    if not exists (select from tidemark.worker w where w.worker = new.worker and w.source = 'outbox') then
        raise exception using errcode = 'TM005',
            message = format('route %s: worker %s does not read the log', new.route_code, new.worker),
            hint = 'Workers that do: select worker from tidemark.worker where source = ''outbox'';';
    elsif tg_op = 'INSERT' then
        return new;
    end if;
    -- Wait for passes under way, in their order. Those that begin afterwards wait for this commit, and see the change.
    perform from tidemark.heartbeat h
    where h.executor_id in (
        select tidemark.executor_id(c.worker, c.source, c.shard) from tidemark.worker_cursor c
        where c.worker in (old.worker, new.worker) and c.source = 'outbox')
    order by h.executor_id for update;

    select p.problem, p.advice into problem, advice from (
        select format('deliveries of it are pending with %s', w.worker),
               'Let them be sent, or become dead letters: tidemark pending list --route ' || old.route_code
        from (select p.worker_id from tidemark.pending p
              where p.route_id = old.id and p.worker_id <> to_ limit 1) p
        join tidemark.worker w on w.id = p.worker_id
        union all
        select 'it has open dead letters',
               'Replay or discard them: tidemark dead-letter list --route ' || old.route_code
        from (select from tidemark.dead_letter l
              where l.route_id = old.id and l.resolved_at is null and l.worker_id <> to_ limit 1) l
        union all
        select format('replay %s of it is not over', j.id),
               format('Cancel it: tidemark route replay %s --cancel %s', old.route_code, j.id)
        from tidemark.replay_job j
        where j.route_id = old.id and j.worker_id <> to_ and j.finished_at is null and j.cancelled_at is null
        union all
        select format('%s runs worker %s', h.lease_owner, c.worker),
               format('Pause both, which takes a second: tidemark worker pause %s, tidemark worker pause %s. Resume '
                      'them afterwards.', old.worker, new.worker)
        from tidemark.worker_cursor c
        join tidemark.heartbeat h on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
        where c.worker in (old.worker, new.worker) and c.source = 'outbox' and h.lease_until > clock_timestamp()
    ) p (problem, advice)
    limit 1;

    if problem is null then
        -- Numbers that neither has decided (its holes) are decided by the new worker when they show up. But what one of
        -- its shards had passed before their number changed, it decides for no route that comes now.
        select min(least(c.place, lower(c.open) - 1)), max(greatest(c.place, c.passed)),
               count(distinct (c.place, c.open)) = 1 and bool_and(c.passed is null or c.passed <= c.place)
        into low, high, alike
        from (select k.watermark_id::bigint as place, k.holes + k.fenced as open,
                     case when k.worker = old.worker then k.decided_through::bigint else k.dealt_through end as passed
              from tidemark.worker_cursor k
              where k.worker in (old.worker, new.worker) and k.source = 'outbox') c;
        if not alike and exists (
            select from tidemark.outbox o
            where o.seq > low and o.seq <= high
              and (tidemark.route_fits(old.domain, old.type, old.stream, o.domain, o.type, o.stream)
                   or tidemark.route_fits(new.domain, new.type, new.stream, o.domain, o.type, o.stream)))
        then
            problem := format('events of it lie between the places of the two, from %s to %s', low + 1, high);
            advice := format('Let both read on until no event of it lies between them. Or pause %s, wait until %s has '
                             'passed its place, pause that too, and rewind it to there: tidemark worker rewind.',
                             old.worker, new.worker);
        end if;
    end if;
    if problem is not null then
        raise exception using errcode = 'TM005', hint = advice,
            message = format('route %s cannot move from worker %s to %s: %s', old.route_code, old.worker, new.worker,
                             problem);
    end if;

    -- An instance whose lease has run out may still be at a page that it read before: it settles nothing any more.
    update tidemark.heartbeat h set lease_epoch = h.lease_epoch + 1
    where h.executor_id in (
        select tidemark.executor_id(c.worker, c.source, c.shard) from tidemark.worker_cursor c
        where c.worker in (old.worker, new.worker) and c.source = 'outbox');
    return new;
end
$$;
comment on function tidemark.route_worker_check() is
    'Trigger: raises TM005 where a route''s worker does not read the log, or where the route cannot move to another '
    'one without loss: deliveries, dead letters or a replay of it are open with the old one, an instance runs one of '
    'the two, or events that the route claims lie between the places of their cursors.';

create or replace trigger outbound_route_worker
before insert on tidemark.outbound_route
for each row execute function tidemark.route_worker_check();
comment on trigger outbound_route_worker on tidemark.outbound_route is 'A route''s worker reads the log.';

create or replace trigger outbound_route_move
before update of worker on tidemark.outbound_route
for each row when (new.worker is distinct from old.worker) execute function tidemark.route_worker_check();
comment on trigger outbound_route_move on tidemark.outbound_route is
    'No route leaves a worker that owes it something, or for one that would repeat or miss an event of it.';
