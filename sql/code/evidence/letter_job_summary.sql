-- public
create or replace view tidemark.letter_job_summary as
select j.id, j.action, r.route_code, j.source, j.error_code,
       case when j.cancelled_by is not null then 'cancelled' when j.finished_at is not null then 'finished'
            when s.waits_for is not null then 'waiting' else 'running' end as state,
       case when j.finished_at is null then s.waits_for end as waits_for,
       j.letters, j.done, j.outcomes, j.requested_at, j.requested_by, j.reason, j.finished_at,
       j.rate
from tidemark.letter_job j
left join tidemark.route_name r on r.id = j.route_id
cross join lateral (select case
    when j.waits_for is not null then j.waits_for
    when not exists (
        select from tidemark.heartbeat_health h
        where h.executor_id like 'daemon/%' and h.state = 'alive') then 'no daemon runs' end as waits_for) s;
comment on view tidemark.letter_job_summary is
    'Jobs that replay or discard dead letters (tidemark.letter_job_add): state (running, waiting, finished, cancelled) '
    'and what it waits for, how many letters were chosen, how many are done, and what these came to (pending: handed '
    'to the worker, which delivers them); rate: at most so many a second (null: any number).';
grant select on tidemark.letter_job_summary to tidemark_reader, tidemark_executor;
