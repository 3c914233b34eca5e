-- public
create or replace function tidemark.verify()
returns table ("check" text, status text, detail text, hint text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    with number as (
        select q.last_value - (not q.is_called)::integer as last,
               coalesce((select min(o.seq) from tidemark.outbox o), q.last_value + 1) as first
        from tidemark.outbox_seq_seq q
    ), cursor as (
        -- Of shards up to the lowest place, which all have passed.
        select w.worker, w.id, w.domains, min(c.watermark_id::bigint) as mark, max(c.watermark_id::bigint) as far,
               min(c.begins_after) as begins_after, coalesce(range_agg(c.holes), '{}') as holes,
               coalesce(range_agg(c.fenced), '{}') as fenced
        from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker
        where c.source = 'outbox' group by w.worker, w.id, w.domains
    ), decided as (
        select d.worker_id, d.route_id, range_agg(d.seqs) as seqs, sum(d.events) as events
        from (
            select d.worker_id, d.route_id, d.seqs, d.events from tidemark.decision d
            union all
            select a.worker_id, a.route_id, int8multirange(int8range(a.seq, a.seq + 1)), 1
            from tidemark.attempt a where a.attempt_no = 1) d
        group by 1, 2
    ), covered as (
        select d.worker_id, range_agg(d.seqs) as seqs from decided d group by 1
    ), logged as materialized (
        select o.domain, range_agg(int8range(o.seq, o.seq + 1)) as seqs from tidemark.outbox o group by 1
    ), target as (
        select r.*, case when r.target_kind = 'sql' then (tidemark.sql_target(r.target_ref)).problem end as unfit,
               coalesce((tidemark.target_problem(r.target_kind, r.target_ref, r.options)).problem,
                        (tidemark.transform_problem(r)).problem) as problem
        from tidemark.outbound_route r
    ), capture as materialized (
        -- A warning about a route concerns a route that is off, or what nothing mends: MERGE and partitions.
        select c.object, c.status, c.problem from tidemark.capture_check() c
        where not (c.status = 'warn' and starts_with(c.object, 'route '))
    ), doctor as materialized (
        -- The caller may see less of a table than the role that runs its worker. On a standby the check primary fails.
        select s.source, c."check", case when c."check" = 'row security' then 'warn' else c.status end as status,
               c.detail
        from tidemark.source s cross join lateral tidemark.source_check(s) c
        where c.status <> 'ok' and c."check" <> 'primary'
    ), told as (
        -- Problems that a worker or maintain has already reported as a finding.
        select f.kind, l.executor_id as subject
        from doctor d join tidemark.worker_cursor c on c.source = d.source
        cross join lateral tidemark.executor_id(c.worker, c.source, c.shard) l (executor_id)
        cross join (values ('source_changed'), ('source_misconfigured')) f (kind)
        where d.status = 'fail'
        union all
        select 'capture_unwritten', substr(c.object, 7) from capture c
        where c.status = 'fail' and starts_with(c.object, 'route ')
    ), torn as materialized (
        select t.first_seq, t.end_seq, t.left_ from tidemark.torn_partitions t
    ), gone as materialized (
        select count(*) as n from tidemark.pending p
        where p.dead_letter_id is null and not exists (select from tidemark.outbox o where o.seq = p.seq)
    ), unfit (problem) as materialized (
        select format('role %s of service %s %s', s.role, s.service, p.problem)
        from tidemark.service s cross join lateral tidemark.service_role_problem(s.role) p (problem)
        where p.problem is not null
        union all
        select format('command %s: %s', c.name, p.problem)
        from tidemark.command c join tidemark.service s on s.service = c.service
        cross join lateral (
            select t.problem from tidemark.command_target(c.function) t where c.function is not null
            union all
            select format('%s may not execute %s', s.role, c.function)
            from tidemark.command_target(c.function) t join pg_proc p on p.oid = t.function
            join pg_roles r on r.rolname = s.role
            where not has_function_privilege(r.oid, p.oid, 'execute')
               or not has_schema_privilege(r.oid, p.pronamespace, 'usage')
            union all
            select format('tidemark.command_%s, which runs it, is missing or was changed', c.id)
            where not exists (select from pg_proc p join pg_roles r on r.oid = p.proowner
                              where p.pronamespace = 'tidemark'::regnamespace and p.proname = 'command_' || c.id
                                and p.prosecdef and strpos(p.prosrc, 'command_settle') > 0
                                and r.rolname = s.role)) p
        where p.problem is not null
    ), problem ("check", bad, detail, hint) as (
        select 'W1 objects', 'fail',
               (select string_agg(c.object, ', ' order by c.object) from tidemark.code c
                where not exists (select from pg_proc p
                                  where p.pronamespace = 'tidemark'::regnamespace and p.proname = c.object)
                  and not exists (select from pg_class v
                                  where v.relnamespace = 'tidemark'::regnamespace and v.relname = c.object)
                  and not exists (select from pg_trigger t join pg_class r on r.oid = t.tgrelid
                                  where r.relnamespace = 'tidemark'::regnamespace
                                    and t.tgname = c.object)) || ' missing',
               'tidemark migrate up'
        union all
        select 'W2 gates', 'warn',
               (select string_agg(format('%s closed by %s', c.worker, c.gate), '; ')
                from (
                    select c.worker, g.gate from cursor c cross join lateral tidemark.closed_gate(c.worker) g (gate)
                    where g.gate is not null
                    union all
                    select 'deliveries of domain ' || d, 'domain.' || d || '.enabled'
                    from unnest(tidemark.closed_domains()) d
                    union all
                    select 'deliveries of route ' || r.route_code, 'its pause'
                    from tidemark.outbound_route r where r.paused_at is not null) c (worker, gate)),
               'tidemark gate open GATE; of a pause: tidemark route resume ROUTE, tidemark worker resume WORKER'
        union all
        select 'W3 workers', 'fail',
               (select string_agg(w.worker, ', ') from tidemark.worker w
                where w.source = 'outbox' and (
                    select count(*) from tidemark.worker_cursor c
                    join tidemark.heartbeat h on h.executor_id = tidemark.executor_id(c.worker, 'outbox', c.shard)
                    where c.worker = w.worker and c.source = 'outbox') <> w.shards)
               || ' without cursor or heartbeat',
               'tidemark worker set NAME'
        union all
        select 'W4 cursor within the log', 'fail',
               (select string_agg(format('%s at %s, last number %s', c.worker, c.far, n.last), '; ')
                from cursor c, number n
                where c.far > n.last),
               'The log was restored from an older state than the cursor: rewind the worker.'
        union all
        select 'W5 evidence without event', 'fail',
               (select string_agg(format('worker %s: %s', w.worker, left(d.extra::text, 200)), '; ')
                from (select c.worker_id,
                             c.seqs * int8multirange(int8range(n.first, null))
                             - coalesce((select range_agg(l.seqs) from logged l), '{}') as extra
                      from covered c, number n) d
                join tidemark.worker w on w.id = d.worker_id where not isempty(d.extra)),
               'Rows of the log were deleted.'
        union all
        select 'W6 event without evidence', 'fail',
               (select string_agg(format('worker %s: %s', d.worker, left(d.missing::text, 200)), '; ')
                from (select c.worker,
                             coalesce((select range_agg(l.seqs) from logged l
                                       where c.domains is null or l.domain = any (c.domains)), '{}')
                             * int8multirange(int8range(c.begins_after + 1, greatest(c.mark, c.begins_after) + 1))
                             - c.holes - c.fenced
                             - coalesce((select v.seqs from covered v where v.worker_id = c.id), '{}') as missing
                      from cursor c) d
                where not isempty(d.missing)),
               'The cursor has passed events that it did not decide: tidemark worker rewind NAME.'
        union all
        select 'W7 evidence twice', 'fail',
               (select string_agg(format('worker %s, route %s', d.worker_id, d.route_id), '; ') from decided d
                where d.events <> (select sum(upper(r) - lower(r)) from unnest(d.seqs) r)),
               'Report it: this must not happen.'
        union all
        select 'W8 dead letters', 'warn',
               (select nullif(count(*), 0) || ' open' from tidemark.dead_letter l where l.resolved_at is null),
               'tidemark dead-letter list'
        union all
        select 'W9 failed without dead letter', 'fail',
               (select nullif(count(*), 0) || ' attempts' from tidemark.attempt a
                where a.outcome = 'failed' and a.attempt_no = 1
                  and not exists (select from tidemark.dead_letter l
                                  where l.worker_id = a.worker_id and l.route_id = a.route_id and l.seq = a.seq)),
               'Report it: this must not happen.'
        union all
        select 'stage', 'fail',
               (select 'live for another cluster or database: disarmed' from tidemark.stage s
                where s.stage = 'live' and not tidemark.armed()),
               'If this copy is to deliver: select tidemark.stage_set(''live'', ''why'');'
        union all
        select 'routes live only where armed', 'fail',
               (select string_agg(r.route_code, ', ') from tidemark.outbound_route r
                where r.enabled and not r.dry_run and not tidemark.armed()),
               'tidemark route set CODE --dry-run, or raise the stage.'
        union all
        select 'route targets', 'fail',
               (select string_agg(format('%s: %s', t.route_code,
                    case when t.problem is not null then t.problem
                         when not tidemark.retry_policy_ok(t.retry_policy) then 'unreadable retry policy'
                         when t.target_kind = 'sql' then t.unfit
                         else 'no table river_job' end), '; ')
                from target t
                where t.enabled and (t.problem is not null
                    or not tidemark.retry_policy_ok(t.retry_policy)
                    or t.unfit is not null
                    or t.target_kind = 'river' and tidemark.river_table(t.options) is null)),
               'tidemark route set CODE'
        union all
        select 'routes of types that exist', 'warn',
               (select string_agg(r.route_code, ', ') from tidemark.outbound_route r
                where r.enabled and not exists (
                    select from tidemark.event_type t
                    where (r.domain = '*' or r.domain = t.domain) and tidemark.pattern_matches(r.type, t.type))),
               'No registered event type can reach them.'
        union all
        select 'sources', (select case when bool_or(d.status = 'fail') then 'fail' else 'warn' end from doctor d),
               (select string_agg(s.detail, '; ' order by s.source) from (
                    -- An operator read the warning when the source was made: its name is enough.
                    select d.source, d.source || ': ' || concat_ws(', ',
                        string_agg(d."check" || ': ' || d.detail, ', ') filter (where d.status = 'fail'),
                        'cannot be proved or will cost: '
                        || string_agg(d."check", ', ') filter (where d.status = 'warn')) as detail
                    from doctor d group by 1) s),
               'tidemark source check NAME'
        union all
        select 'captures', (select case when bool_or(c.status = 'fail') then 'fail' else 'warn' end from capture c),
               (select string_agg(c.object || ': ' || c.problem, '; ' order by c.status, c.object, c.problem)
                from capture c),
               'tidemark capture check'
        union all
        select 'pending', (select case when g.n > 0 then 'fail' else 'warn' end from gone g),
               (select nullif(concat_ws('; ', nullif(count(*), 0) || ' deliveries wait for the daemon',
                                        (select nullif(g.n, 0) || ' of events that are no longer in the log'
                                         from gone g)), '')
                from tidemark.pending p where p.next_attempt_at < clock_timestamp() - interval '1 minute'),
               (select case when g.n > 0 then 'A pass makes them dead letters (event_missing), and delivers what waits '
                                              'behind them.'
                            else 'Targets outside the database are served by the daemon.' end from gone g)
        union all
        select 'partitions', case when exists (select from torn) then 'fail' else 'warn' end,
               case when exists (select from torn)
                         then (select string_agg(format('of numbers %s to %s only %s is left', t.first_seq,
                                                        t.end_seq - 1, t.left_), '; '
                                                 order by t.first_seq) from torn t)
                    when exists (select from tidemark.outbox o
                                 where o.seq >= (select max(p.end_seq) from tidemark.partitions('tidemark.outbox') p))
                         then 'events have no partition of their own'
                    when not exists (select from tidemark.partitions('tidemark.outbox') p, number n
                                     where p.first_seq > n.last)
                         then 'no empty partition is left ahead' end,
               case when exists (select from torn)
                         then 'Dropped by hand? tidemark.maintain() drops, by outbox.retention. Restore what is gone, '
                              'or drop what is left.'
                    else 'select * from tidemark.maintain();' end
        union all
        select 'privileges', 'fail',
               (select string_agg(x.object, ', ') from (
                    select p.oid::regprocedure::text as object from pg_proc p
                    where p.pronamespace = 'tidemark'::regnamespace
                      and has_function_privilege('public', p.oid, 'execute')
                    union all
                    select c.oid::regclass::text from pg_class c
                    where c.relnamespace = 'tidemark'::regnamespace and c.relkind in ('r', 'p', 'v', 'S')
                      and exists (select from aclexplode(c.relacl) a where a.grantee = 0)) x) || ' granted to PUBLIC',
               'tidemark migrate up restores the grants of functions and views.'
        union all
        select 'services', case when exists (select from unfit) then 'fail' else 'warn' end,
               (select string_agg(u.problem, '; ' order by u.problem) from (
                    select * from unfit
                    union all
                    -- What its commands need, and nothing else.
                    select format('role %s of service %s may also execute %s', s.role, s.service,
                                  string_agg(p.oid::regprocedure::text, ', ' order by p.oid::regprocedure::text))
                    from tidemark.service s join pg_roles r on r.rolname = s.role
                    join pg_proc p on p.proowner <> r.oid
                        and exists (select from aclexplode(p.proacl) a where a.grantee = r.oid)
                    where p.oid not in (select t.function from tidemark.command c
                                        cross join lateral tidemark.command_target(c.function) t
                                        where c.service = s.service and t.function is not null)
                    group by s.role, s.service
                    union all
                    select format('role %s of service %s is a member of %s', s.role, s.service,
                                  string_agg(m.roleid::regrole::text, ', '))
                    from tidemark.service s join pg_roles r on r.rolname = s.role
                    join pg_auth_members m on m.member = r.oid group by s.role, s.service) u
                where not exists (select from unfit) or u.problem in (select f.problem from unfit f)),
               'Call tidemark.service_set or tidemark.command_set again; revoke what is too much.'
        union all
        select 'triggers', 'fail',
               (select string_agg(t.tgname, ', ') from pg_trigger t join pg_class c on c.oid = t.tgrelid
                where c.relnamespace = 'tidemark'::regnamespace and not t.tgisinternal
                  and t.tgenabled = 'D') || ' disabled',
               'alter table … enable trigger …'
        union all
        select 'heartbeats', 'warn',
               (select string_agg(format('%s silent since %s', h.executor_id, date_trunc('second', h.last_beat_at)),
                                  '; ')
                from tidemark.heartbeat_health h where h.state = 'silent'),
               'Does it still run? tidemark doctor'
        union all
        select 'statistics of other sessions', 'warn',
               case when not pg_has_role('tidemark_owner', 'pg_read_all_stats', 'usage')
                    then 'tidemark_owner cannot read them: tables cannot be sources with safety clock, and blame lacks '
                         'ages'
                         || (select coalesce('; replication_lag_limit sees no standby: '
                                             || string_agg(w.worker, ', ' order by w.worker), '')
                             from tidemark.worker w where w.replication_lag_limit is not null) end,
               'As superuser: grant pg_read_all_stats to tidemark_owner;'
        union all
        select 'roles', 'warn',
               nullif(concat_ws('; ',
                   (select 'a right here is one in '
                           || string_agg(distinct d.datname::text, ', ' order by d.datname::text)
                    from pg_shdepend s join pg_database d on d.oid = s.dbid
                    where s.refclassid = 'pg_authid'::regclass and s.refobjid = to_regrole('tidemark_owner')
                      and s.deptype = 'o'
                      and s.classid = 'pg_namespace'::regclass and d.datname <> current_database()),
                   (select string_agg(format('%s runs as the superuser %s', h.executor_id, h.payload ->> 'superuser'),
                                      '; ' order by h.executor_id)
                    from tidemark.heartbeat h
                    where h.executor_id like 'daemon/%' and h.payload ? 'superuser' and h.last_status <> 'stopped'),
                   (select 'tidemark_owner ' || concat_ws(' and ', case when r.rolsuper then 'is a superuser' end,
                                                          case when r.rolcanlogin then 'can log in' end)
                    from pg_roles r where r.rolname = 'tidemark_owner' and (r.rolsuper or r.rolcanlogin))), ''),
               'See docs/roles.md: a daemon wants a login of its own; a prefix gives a database roles of its own; '
               'alter role tidemark_owner nologin nosuperuser;'
        union all
        select 'findings', 'warn',
               (select string_agg(format('%s %s: %s', f.kind, f.subject, f.detail), '; ') from tidemark.finding f
                where f.closed_at is null
                  and not exists (select from told t where t.kind = f.kind and t.subject = f.subject)),
               'select * from tidemark.finding where closed_at is null;'
    )
    select p."check", case when p.detail is null then 'ok' else p.bad end, coalesce(p.detail, ''),
           case when p.detail is null then '' else p.hint end
    from problem p
$$;
comment on function tidemark.verify() is
    'Read-only checks of the whole installation, one row each: status (ok, warn or fail), the result, and the action '
    'to take. Reads the log and its evidence once, and checks each source and capture as tidemark.source_check and '
    'tidemark.capture_check do: call it by hand, not in a tight loop. A finding that a failed check covers is not '
    'listed again. Source: S0 070_route_worker_verification, W1 to W9.';
grant execute on function tidemark.verify() to tidemark_reader;
