create or replace function tidemark.cause_storage()
returns setof tidemark.trouble
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    clock constant timestamptz := clock_timestamp();
    retention constant interval := tidemark.interval_setting('outbox.retention', '30 days');
    much_wal constant bigint := 64 * 1024 * 1024;
    needed record;
    part record;
    first_seq bigint;
    end_seq bigint;
    oldest timestamptz;
    newest timestamptz;
    bytes bigint := 0;
    gate text;
    opening record;
    slots integer;
    many_xids constant integer := 1000000;
    taken record;
    r record;
begin
    needed := tidemark.log_needed();
    for part in select p.* from tidemark.partitions('tidemark.outbox') p where p.end_seq > needed.seq order by 2 loop
        execute format('select o.created_at from %s o order by o.seq desc limit 1', part.partition) into newest;
        exit when newest is null or newest > clock - retention
            or part.end_seq > (select q.last_value from tidemark.outbox_seq_seq q);
        first_seq := coalesce(first_seq, part.first_seq);
        end_seq := part.end_seq;
        bytes := bytes + (select sum(pg_total_relation_size(t.relation))
                          from (select to_regclass(format('tidemark.%s_p%s', k.name, part.first_seq)) as relation
                                from unnest('{outbox,attempt,decision}'::text[]) k (name)) t);
    end loop;
    if first_seq is not null then
        oldest := (select o.created_at from tidemark.outbox o where o.seq >= needed.seq order by o.seq limit 1);
        gate := case needed.kind
            when 'cursor' then tidemark.closed_gate(needed.subject)
            when 'pending' then (select 'route ' || o.route_code from tidemark.outbound_route o
                                 where o.route_code = needed.subject and o.paused_at is not null) end;
        opening := tidemark.gate_opening(gate, needed.subject, 'it holds the log');
        return next row(
            'retention_held', needed.subject, 'warn', newest + retention,
            format('numbers %s to %s of the log are past the retention of %s, and are kept for number %s by %s%s; the '
                   'oldest event is %s old, and they take %s',
                   first_seq, end_seq - 1, retention, needed.seq, needed.who,
                   case when gate = 'paused' or gate like 'route %' then ', which is paused'
                        else ', which is closed by ' || gate end,
                   date_trunc('second', clock - oldest), pg_size_pretty(bytes)),
            null, '{}',
            case needed.kind
                when 'cursor' then case gate when 'stage' then '{}' else array_remove(array[opening.sql], null) end
                when 'pending' then array_remove(array[opening.sql], null)
                when 'dead_letter' then array[format('select outcome from tidemark.dead_letter_replay(%s);',
                                                     needed.subject)]
                when 'replay' then array[format('select tidemark.replay_cancel(%s, ''it holds the log'');',
                                                needed.subject)]
                else '{}' end,
            case needed.kind
                when 'cursor' then case gate when 'stage' then '{}' else array[
                    coalesce(opening.cli, 'tidemark worker show ' || tidemark.shell_word(needed.subject))] end
                when 'dead_letter' then array['tidemark dead-letter replay ' || needed.subject]
                when 'replay' then array[format('tidemark route replay --cancel %s --reason ''it holds the log''',
                                                needed.subject)]
                else array[coalesce(opening.cli,
                                    'tidemark pending list --route ' || tidemark.shell_word(needed.subject))] end
        )::tidemark.trouble;
    end if;

    for r in
        select t.*, p.routes, p.n
        from tidemark.torn_partitions t
        cross join lateral (
            select string_agg(format('%s (%s)', x.route_code, x.n), ', ' order by x.route_code) as routes,
                   sum(x.n)::bigint as n
            from (select o.route_code, count(*) as n
                  from tidemark.outbound_route o cross join tidemark.worker w
                  cross join lateral (select from tidemark.pending p
                                      where p.worker_id = w.id and p.route_id = o.id and p.seq >= t.first_seq
                                        and p.seq < t.end_seq and p.dead_letter_id is null limit 10000) p
                  group by 1) x) p
    loop
        return next row(
            'partition_missing', format('numbers %s to %s', r.first_seq, r.end_seq - 1), 'bad', null,
            format('a partition was dropped by hand: of numbers %s to %s only %s %s left%s', r.first_seq,
                   r.end_seq - 1, r.left_, case when r.left_ like '%,%' then 'are' else 'is' end,
                   coalesce('; deliveries that wait for their events: ' || r.routes, '')),
            r.n, '{}',
            case when not format('outbox_p%s', r.first_seq) = any (r.names)
                      then array[format('drop table %s;', (select string_agg('tidemark.' || quote_ident(n), ', ')
                                                          from unnest(r.names) n))] else '{}' end,
            '{}')::tidemark.trouble;
    end loop;

    for r in
        select s.slot_name, s.slot_type, s.database, w.bytes,
               (to_jsonb(s) ->> 'inactive_since')::timestamptz as inactive_since,
               greatest(age(s.xmin), age(s.catalog_xmin)) as xids
        from pg_replication_slots s
        cross join lateral (
            select pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn()
                                        else pg_current_wal_lsn() end, s.restart_lsn)::bigint as bytes) w
        where not s.active and w.bytes >= much_wal
    loop
        return next row(
            'replication_slot', r.slot_name::text, 'warn', r.inactive_since,
            format('the %s replication slot %s is used by no one, and keeps %s of WAL%s', r.slot_type, r.slot_name,
                   pg_size_pretty(r.bytes),
                   ' and the row versions of the last ' || r.xids || ' transactions'),
            null, '{}', array[format('select pg_drop_replication_slot(%L);', r.slot_name)], '{}')::tidemark.trouble;
    end loop;

    for r in
        select coalesce(nullif(w.application_name, ''), 'pid ' || w.pid) as standby,
               coalesce(host(w.client_addr), 'the local socket') as address, x.xids
        from pg_stat_replication w
        left join pg_replication_slots s on s.active_pid = w.pid
        cross join lateral (select greatest(age(w.backend_xmin), age(s.xmin)) as xids) x
        where x.xids >= many_xids
    loop
        return next row(
            'standby_transaction', r.standby, 'warn', null,
            format('standby %s at %s keeps the row versions of the last %s transactions: one on it is open that long',
                   r.standby, r.address, r.xids),
            null, '{}',
            array['select pg_terminate_backend(a.pid) from pg_stat_activity a where a.backend_xmin is not null and '
                  'a.pid <> pg_backend_pid() order by age(a.backend_xmin) desc limit 1; -- on the standby'],
            '{}')::tidemark.trouble;
    end loop;

    slots := current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
        - coalesce(current_setting('reserved_connections', true)::integer, 0);
    select sum(x.n)::integer as n, (array_agg(x.application_name order by x.n desc))[1] as application,
           (array_agg(x.usename order by x.n desc))[1] as usename, max(x.n) as most,
           (array_agg(x.idle order by x.n desc))[1] as idle
    into taken
    from (select a.application_name, a.usename, count(*) as n,
                 case when bool_and(a.backend_type is not null)
                      then count(*) filter (where a.state = 'idle') end as idle
          from pg_stat_activity a
          -- Without pg_read_all_stats, what the sessions of others are is hidden, and not that there are any.
          where a.backend_type = 'client backend' or a.backend_type is null and a.usesysid is not null
          group by 1, 2) x;
    if taken.n >= slots * 0.9 then
        return next row(
            'connections', current_setting('max_connections'), 'warn', null,
            format('%s of %s connections are taken: %s of them by application "%s", user %s, %s',
                   taken.n, slots, taken.most, taken.application, taken.usename,
                   coalesce('of which ' || taken.idle || ' are idle',
                            'and how many of these are idle is not shown to tidemark_owner')),
            null, '{}',
            array[format('select count(pg_terminate_backend(a.pid)) from pg_stat_activity a where '
                         'a.application_name = %L and a.usename = %L and a.state = ''idle'';',
                         taken.application, taken.usename)], '{}')::tidemark.trouble;
    end if;
end
$$;
comment on function tidemark.cause_storage() is
    'The part of tidemark.cause about the log and the server: retention_held (past its retention, and still needed), '
    'partition_missing (dropped by hand), replication_slot (inactive, with 64 MB of WAL or more), standby_transaction '
    '(one on a standby with hot_standby_feedback, a million transactions old), connections (nine of ten are taken).';
grant execute on function tidemark.cause_storage() to tidemark_reader, tidemark_executor;
