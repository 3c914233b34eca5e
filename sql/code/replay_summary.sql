create or replace view tidemark.replay_summary as
select j.id, r.route_code, w.worker,
       case when j.cancelled_at is not null then 'cancelled' when j.finished_at is not null then 'finished'
            when s.waits_for is not null then 'waiting' else 'running' end as state,
       case when j.finished_at is null then s.waits_for end as waits_for,
       j.first_seq, j.last_seq, j.passed_seq, j.key, j.outcomes, j.rate, j.staged, j.sent, j.failed, j.left_out,
       j.requested_at, j.requested_by, j.reason, j.finished_at
from tidemark.replay_job j
join tidemark.outbound_route r on r.id = j.route_id
join tidemark.worker w on w.id = j.worker_id
cross join lateral (select case
    when r.worker <> w.worker then 'the route is of worker ' || r.worker || ' now'
    when not r.enabled then 'the route is off'
    when r.dry_run then 'the route is in dry run'
    else tidemark.closed_gate(w.worker) end as waits_for) s;
comment on view tidemark.replay_summary is 'Replays on routes: state (running, waiting, finished, cancelled) and what it waits for, how far it has come (passed_seq from first_seq to last_seq), events staged and of these sent and failed (dead-lettered), and left out by reason.';
revoke all on tidemark.replay_summary from public;
grant select on tidemark.replay_summary to tidemark_reader, tidemark_executor;
