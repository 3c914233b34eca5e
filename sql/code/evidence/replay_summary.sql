-- public
create or replace view tidemark.replay_summary as
select j.id, n.route_code, w.worker,
       case when j.cancelled_at is not null then 'cancelled' when j.finished_at is not null then 'finished'
            when s.waits_for is not null then 'waiting' else 'running' end as state,
       case when j.finished_at is null then s.waits_for end as waits_for,
       j.first_seq, j.last_seq, j.passed_seq, j.key, j.outcomes, j.rate, j.events, j.staged, j.sent, j.failed,
       j.left_out, j.requested_at, j.requested_by, j.reason, j.finished_at
from tidemark.replay_job j
join tidemark.route_name n on n.id = j.route_id
join tidemark.worker_name w on w.id = j.worker_id
left join tidemark.outbound_route r on r.id = j.route_id
cross join lateral (select case
    when r.worker <> w.worker then 'the route is of worker ' || r.worker || ' now'
    when not r.enabled then 'the route is off'
    when r.dry_run then 'the route is in dry run'
    when r.paused_at is not null then 'the route is paused'
    else coalesce(
        tidemark.closed_gate(w.worker),
        (select case h.state when 'silent' then 'its worker is silent for ' || h.age_seconds || ' s'
                     else 'its worker was never run' end
         from tidemark.heartbeat_health h
         where h.executor_id = tidemark.executor_id(w.worker, 'outbox', 0)
           and (h.state = 'silent' or h.excuse = 'never run')),
        (select case f.kind when 'target_down' then 'its target is down'
                     when 'two_copies' then 'its target gets events of another copy of this database'
                     else 'its target refuses the credentials' end from tidemark.finding f
         where f.kind in ('target_down', 'credentials_refused', 'two_copies') and f.subject = r.route_code
           and f.closed_at is null),
        (select format('event %s failed %s times, and is tried again', p.seq, p.error_count) from tidemark.pending p
         where p.replay_id = j.id and p.error_count > 0 order by p.seq limit 1),
        -- As in tidemark.log_next.
        (select coalesce(
            (select format('shard %s of its worker, which has read to event %s', k.shard, k.watermark_id)
             from tidemark.worker_cursor k
             where k.worker = w.worker and k.source = 'outbox' and k.watermark_id::bigint <= j.passed_seq
             order by k.watermark_id::bigint, k.shard limit 1),
            format('event %s, which a pass has still to record or a transaction to commit', b.upto + 1))
         from tidemark.replay_bound(w.worker, j.outcomes) b (upto)
         where not j.open_end and j.passed_seq < j.last_seq and b.upto <= j.passed_seq
           and not exists (select from tidemark.pending p where p.replay_id = j.id))) end as waits_for) s;
comment on view tidemark.replay_summary is
    'Replays on routes: state (running, waiting, finished, cancelled) and what it waits for: a gate, the route''s '
    'switches or its pause, a worker that does not run, a target that is down or refuses an event, a shard of its '
    'worker that has not come so far, a number that is still open; how far it has come (passed_seq '
    'from first_seq to last_seq), how many go (events), how many are staged and of these sent and failed '
    '(dead-lettered), and left out by reason.';
grant select on tidemark.replay_summary to tidemark_reader, tidemark_executor;
