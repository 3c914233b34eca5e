-- public
create or replace function tidemark.worker_delete(worker text, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    w tidemark.worker;
    problem text;
    advice text;
begin
    -- Wait for a pass under way, and lock rows in its order.
    perform from tidemark.heartbeat h
    where h.executor_id in (
        select tidemark.executor_id(c.worker, c.source, c.shard) from tidemark.worker_cursor c
        where c.worker = worker_delete.worker and c.source = 'outbox') order by h.executor_id for update;
    select k.* into w from tidemark.worker k where k.worker = worker_delete.worker for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', worker_delete.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    end if;
    select p.problem, p.advice into problem, advice from (
        select 'Tidemark made it for commands', 'Its service needs it.' where w.source = 'kafka'
        union all
        select format('route %s is served by it', r.route_code),
               'Give the route another worker, or delete it: tidemark route set, tidemark route delete.'
        from tidemark.outbound_route r where r.worker = w.worker
        union all
        select format('it reads source %s', c.source),
               format('Take the source from it: tidemark worker detach %s %s', w.worker, c.source)
        from tidemark.worker_cursor c where c.worker = w.worker and c.source <> 'outbox'
        union all
        select format('%s runs it', h.lease_owner), format('Close its gate first: tidemark disable %s', w.worker)
        from tidemark.heartbeat h join tidemark.worker_cursor c on c.worker = w.worker and c.source = 'outbox'
        where h.executor_id = tidemark.executor_id(w.worker, 'outbox', c.shard) and h.lease_until > clock_timestamp()
        union all
        select 'events or rows of it are pending', 'See them: tidemark pending list --worker ' || w.worker
        where exists (select from tidemark.pending p where p.worker_id = w.id)
           or exists (select from tidemark.pending_row p where p.worker_id = w.id)
        union all
        select 'it has open dead letters', 'Replay or discard them: tidemark dead-letter list'
        where exists (select from tidemark.dead_letter l where l.worker_id = w.id and l.resolved_at is null)
        union all
        select format('replay %s of it is not over', j.id), 'Cancel it: tidemark route replay --list'
        from tidemark.replay_job j
        where j.worker_id = w.id and j.finished_at is null and j.cancelled_at is null) p (problem, advice)
    limit 1;
    perform tidemark.deletion('worker', w.worker, worker_delete.reason, problem, advice);
    insert into tidemark.audit (action, object, reason, before)
    select 'worker_delete', 'worker_cursor ' || tidemark.executor_id(c.worker, c.source, c.shard),
           worker_delete.reason, to_jsonb(c)
    from tidemark.worker_cursor c where c.worker = w.worker;
    insert into tidemark.former_name (kind, id, name) values ('worker', w.id, w.worker);
    perform tidemark.cursors_delete(w.worker, 'outbox');
    delete from tidemark.worker_instance i where i.worker = w.worker;
    delete from tidemark.setting s where s.key = 'worker.' || w.worker || '.enabled';
    delete from tidemark.worker k where k.id = w.id;
end
$$;
comment on function tidemark.worker_delete(text, text) is
    'Deletes a worker that serves no route, reads no source and is run by no daemon, with its cursor (which '
    'tidemark.audit keeps), its heartbeat and its gate, and closes its findings. Its evidence stays, under its name. '
    'From then on the log keeps no events for it. Raises TM004, TM005 (no reason, or it is in use).';
grant execute on function tidemark.worker_delete(text, text) to tidemark_admin;
