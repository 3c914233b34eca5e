-- One step of the replays of a worker, in its pass. The position of a replay moves in the transaction that stages, so
-- that a crash neither loses nor repeats a step; evidence of what is staged is written with it. Replays are outside the
-- order of keys; the first shard of a worker stages and delivers them, up to where all shards have come.
create or replace function tidemark.replay_stage(worker text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    -- At most so many of a replay are pending, and so many events are looked at at once.
    page constant integer := 1000;
    look constant integer := 5000;
    until constant timestamptz := clock_timestamp() + interval '100 milliseconds';
    worker_id constant integer := (select w.id from tidemark.worker w where w.worker = replay_stage.worker);
    job tidemark.replay_job;
    route tidemark.outbound_route;
    mark bigint;
    now_ timestamptz;
    at timestamptz;
    room integer;
    upto bigint;
    passed bigint;
    taken integer;
    left_out jsonb;
    staged integer := 0;
begin
    for job in
        select j.* from tidemark.replay_job j join tidemark.outbound_route r on r.id = j.route_id
        where j.worker_id = worker_id and j.finished_at is null
          and r.worker = replay_stage.worker and tidemark.route_delivers(r)
        order by j.id
        -- A settle that counts its results has it: the next pass goes on.
        for update of j skip locked
    loop
        route := (select r from tidemark.outbound_route r where r.id = job.route_id);
        job := tidemark.replay_end(job);
        -- A rewind waits: what is staged here is on record before the log is read again.
        perform from tidemark.worker_cursor k
        where k.worker = replay_stage.worker and k.source = 'outbox' order by k.shard for key share;
        mark := tidemark.replay_bound(replay_stage.worker, job.outcomes);
        room := page - (select count(*) from (select from tidemark.pending p where p.replay_id = job.id limit page) p);
        loop
            now_ := clock_timestamp();
            -- Set by a clock that went back since, it would put what is staged as far ahead.
            at := case when job.due_at > now_ + tidemark.job_delay(job.rate) then now_
                       else greatest(job.due_at, now_) end;
            -- By events and not by numbers: a gap costs nothing.
            upto := coalesce((
                select o.seq from tidemark.outbox o
                where o.seq > job.passed_seq and o.seq <= least(job.last_seq, mark)
                order by o.seq offset look - 1 limit 1),
                least(job.last_seq, mark));
            -- Five seconds ahead, so that a cancelled replay is soon over.
            taken := case when job.rate is null then room
                else least(room, ceil(extract(epoch from now_ + interval '5 seconds' - at) * job.rate)) end;
            exit when taken <= 0 or upto <= job.passed_seq;

            with looked as materialized (
                select p.*, count(*) filter (where p.left_out is null) over (order by p.seq) as n
                from tidemark.replay_page(route, job.passed_seq, upto, job.key, job.outcomes) p
            ), last as (
                select case when max(l.n) >= taken then min(l.seq) filter (where l.n = taken) else upto end as seq
                from looked l
            ), sent as (
                select l.* from looked l, last where l.left_out is null and l.seq <= last.seq
            ), recorded as (
                insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason)
                select s.seq, worker_id, route.id, s.attempt_no, 'pending', 'replay' from sent s
            ), put as (
                insert into tidemark.pending (worker_id, route_id, seq, domain, attempt_no, key, next_attempt_at,
                                              replay, replay_id)
                select worker_id, route.id, s.seq, (select o.domain from tidemark.outbox o where o.seq = s.seq),
                       s.attempt_no, s.event_key,
                       at + (s.n - 1) * make_interval(secs => coalesce(1 / job.rate, 0.000001)), true, job.id
                from sent s
                returning 1)
            select coalesce((select last.seq from last), upto), (select count(*) from put),
                   (select jsonb_object_agg(o.left_out, o.n) from (
                        select l.left_out, count(*) as n from looked l, last
                        where l.left_out is not null and l.seq <= last.seq group by 1) o)
            into passed, taken, left_out;

            job.passed_seq := passed;
            job.staged := job.staged + taken;
            job.due_at := at + taken * make_interval(secs => coalesce(1 / job.rate, 0.000001));
            job.left_out := tidemark.jsonb_add(job.left_out, coalesce(left_out, '{}'));
            staged := staged + taken;
            room := room - taken;
            exit when taken > 0 or clock_timestamp() > until;
        end loop;
        update tidemark.replay_job j
        set passed_seq = job.passed_seq, staged = job.staged, due_at = job.due_at, left_out = job.left_out,
            last_seq = job.last_seq, open_end = job.open_end,
            finished_at = case when job.passed_seq >= job.last_seq
                and not exists (select from tidemark.pending p where p.replay_id = job.id) then clock_timestamp() end
        where j.id = job.id
          and (j.open_end or (j.passed_seq, j.staged, job.passed_seq >= job.last_seq)
                             is distinct from (job.passed_seq, job.staged, false));
    end loop;
    return staged;
end
$$;
comment on function tidemark.replay_stage(text) is
    'Goes on with the replays of the worker''s live routes: stages their next events as pending, at most 1000 of a '
    'replay and five seconds of its rate ahead, and records an attempt for each. Returns how many events it staged.';
grant execute on function tidemark.replay_stage(text) to tidemark_executor;
