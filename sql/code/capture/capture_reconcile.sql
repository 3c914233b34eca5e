-- public
create or replace function tidemark.capture_reconcile(sample integer default 1000)
returns table (relation text, status text, changes bigint, events bigint, captured bigint, missing_keys text[],
               gap bigint, detail text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- The settings of tidemark.capture_make, so that a key has the same text.
set datestyle = 'ISO, YMD'
set intervalstyle = 'postgres'
set timezone = 'UTC'
set bytea_output = 'hex'
set extra_float_digits = 1
set quote_all_identifiers = off
set row_security = off
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    upto_seq constant bigint := tidemark.captured_upto();
    one record;
    last tidemark.capture_checkpoint;
    now_ tidemark.capture_checkpoint;
    part record;
    snapshot pg_snapshot;
    same_key text;
    denied text;
    looked bigint;
    counted bigint;
    old tidemark.capture_checkpoint;
    found_gap tidemark.capture_gap;
    got record;
begin
    for one in
        select c.oid as id, format('%I.%I', n.nspname, c.relname) as name, array_agg(r.id) as routes,
               array_agg(r.id) filter (where r.sql_event <> 'truncate') as counting,
               array_agg(r.sql_event) as operations, array_agg('inbound_route ' || r.route_code) as objects,
               (select d.operations from tidemark.capture_deaf d where d.relation = c.oid) as deaf
        from tidemark.inbound_route r
        join pg_namespace n on n.nspname = r.source_schema
        join pg_class c on c.relnamespace = n.oid and c.relname = r.source_table and c.relkind in ('r', 'p')
        where r.source_object_kind = 'table' and r.enabled group by 1, 2 order by 2
    loop
        relation := one.name;
        old := (select c from tidemark.capture_checkpoint c where c.name = one.name and c.relation <> one.id
                order by c.at desc limit 1);
        last := (select c from tidemark.capture_checkpoint c where c.relation = one.id);
        select one.id, at, null, (select q.last_value from tidemark.outbox_seq_seq q),
               coalesce(sum(s.n_tup_ins), 0), coalesce(sum(s.n_tup_upd), 0), coalesce(sum(s.n_tup_del), 0),
               d.xact_rollback, d.stats_reset, one.name, 0, 0
        into now_
        from pg_stat_database d
        left join pg_stat_all_tables s on s.relid = one.id
            or s.relid in (select p.relid from pg_partition_tree(one.id) p)
        where d.datname = current_database() group by d.xact_rollback, d.stats_reset;
        -- A later statement than the counts: each change that the server has counted is visible, and so is its event.
        snapshot := tidemark.capture_snapshot(snapshot);
        now_.snapshot := snapshot;
        -- A session may report what it committed up to a minute later. These events may have changes that come then.
        now_.ahead := (select count(*) from tidemark.outbox o
                       where o.subject_table = relation and o.created_at > at - interval '1 minute'
                         and case when o.inbound_id > 0 then o.inbound_id = any (one.counting)
                                  when o.inbound_id is null and o.seq <= upto_seq
                                      then o.payload ->> 'operation' = any (one.operations)
                                           and o.payload ->> 'operation' <> 'truncate'
                                           and not o.payload ? 'reconciled' end);
        -- Not pg_visible_in_snapshot: a snapshot does not list savepoints, so an event that was written in one would
        -- count as visible before its transaction ended.
        select count(*) filter (where o.id >= pg_snapshot_xmin(last.snapshot)) - last.seen,
               count(*) filter (where o.id >= pg_snapshot_xmin(now_.snapshot))
        into counted, now_.seen
        from (select tidemark.full_xid(o.xmin, pg_snapshot_xmax(now_.snapshot)) as id from tidemark.outbox o
              where o.subject_table = relation and o.created_at > coalesce(last.at, at) - interval '1 day'
                and case when o.inbound_id > 0 then o.inbound_id = any (one.counting)
                         when o.inbound_id = 0 or o.seq <= upto_seq
                             then o.payload ->> 'operation' = any (one.operations)
                                  and o.payload ->> 'operation' <> 'truncate' end) o;
        changes := null; events := null; captured := null; missing_keys := null;
        found_gap := null; looked := 0; detail := null;

        if last.relation is null and old.relation is not null then
            status := 'gap';
            detail :=
                format('it is another table than the one that was captured until %s', date_trunc('second', old.at));
        elsif last.relation is null then
            status := 'first';
            detail := 'nothing to compare with yet';
        elsif exists (select from tidemark.audit u where u.at >= last.at and u.object = any (one.objects)) then
            -- A trigger that was dropped and attached again does not count: its route stayed on.
            status := 'unknown';
            detail := 'its routes were changed meanwhile';
        else
            events := counted;
            -- An hourly sum for the hour of the last call may be from before or after that call. Count it: a missed gap
            -- is better than a false one.
            captured := (select coalesce(sum(c.rows), 0) from tidemark.captured c
                         where c.route_id = any (one.routes)
                           and (c.at >= last.at or c.at = date_trunc('hour', last.at)));
            changes := case when 'insert' = any (one.operations) then now_.inserted - last.inserted else 0 end
                     + case when 'update' = any (one.operations) then now_.updated - last.updated else 0 end
                     + case when 'delete' = any (one.operations) then now_.deleted - last.deleted else 0 end;
            now_.ahead := least(now_.ahead, greatest(events + last.ahead - changes, 0));
            begin
                -- The lock keeps all objects that the expressions use as they are, except for new indexes and
                -- statistics.
                perform tidemark.source_lock(one.id);
                select c.* into part from tidemark.capture_columns(one.id, '{}') c;
                denied := tidemark.source_denied(one.id);
                if denied is not null then
                    raise insufficient_privilege;
                end if;
                -- A row that exists now and was written since the last call has an event or is counted in captured,
                -- unless only some of the operations are captured.
                if part.key_json <> 'null::jsonb' and 'insert' = any (one.operations) and captured = 0
                   and ('update' = any (one.operations) or now_.updated = last.updated) then
                    same_key := tidemark.capture_same_key(one.id, 'k.row_key');
                    got := tidemark.source_look(one.id, format($q$
                        with k as materialized (
                            select %1$s as key, %7$s as row_key from (select x.xmin as written, %2$s from %3$s x) n
                            where not pg_visible_in_snapshot(tidemark.full_xid(n.written, %4$L::xid8),
                                                             %5$L::pg_snapshot) limit $4)
                        select coalesce(array_agg(k.key order by k.key), '{}') as keys,
                               (select count(*) from k) as looked
                        from k where not exists (
                            select from tidemark.outbox o
                            where o.subject_table = $2 and o.subject_ref = k.key
                              and o.created_at > $1 - interval '1 day'
                              and tidemark.full_xid(o.xmin, %4$L::xid8) >= %6$L::xid8
                              and (o.inbound_id is not null or o.seq <= %9$s)%8$s)$q$,
                        part.key_text, part.names, relation, pg_snapshot_xmax(now_.snapshot), last.snapshot,
                        pg_snapshot_xmin(last.snapshot), case when same_key = '' then 'null' else part.key_json end,
                        same_key, upto_seq),
                        last.at, relation, rows_limit => sample);
                    missing_keys := got.keys;
                    looked := got.looked;
                end if;
            exception when insufficient_privilege then
                detail := coalesce(denied, 'its keys cannot be read: grant select to this role') || '; ';
            end;

            detail := coalesce(detail, '')
                || format('%s changes counted by the server since %s, %s events, %s without event on record',
                          changes, date_trunc('second', last.at), events, captured);
            if cardinality(missing_keys) > 0 then
                status := 'gap';
                detail := detail || format('; rows without event (an update that changes nothing counts too): %s%s',
                                           array_to_string(missing_keys[1:10], ' '),
                                           case when cardinality(missing_keys) > 10 then ' …' else '' end);
            elsif last.stats_reset is distinct from now_.stats_reset or now_.inserted < last.inserted
                or now_.updated < last.updated
                  or now_.deleted < last.deleted then
                status := 'unknown';
                changes := null;
                detail := 'the server''s statistics were reset meanwhile; ' || detail;
            elsif changes <= events + captured + last.ahead then
                status := 'ok';
            elsif now_.rollbacks = last.rollbacks and not 'update' = any (one.operations) then
                status := 'gap';
            else
                status := 'unclear';
                detail := detail || '; the server also counts what was rolled back, and updates that change nothing';
            end if;
            if looked >= sample then
                detail := detail || format('; of the rows written since, %s were looked at', looked);
            end if;
        end if;
        if one.deaf is not null then
            status := 'gap';
            detail := format('its trigger for %s is missing, altered or disabled; %s', one.deaf, detail);
        end if;
        if status = 'gap' then
            found_gap.relation := one.id;
            found_gap.name := relation;
            found_gap.since := coalesce(last.at, old.at, at);
            found_gap.snapshot := coalesce(last.snapshot, old.snapshot, now_.snapshot);
            found_gap.keys := missing_keys;
            found_gap.rows := cardinality(missing_keys);
            found_gap.sampled := looked >= sample;
            -- Changes that the server counted beyond rows, where they have no other explanation.
            found_gap.others :=
                case when looked < sample and now_.rollbacks = last.rollbacks and not 'update' = any (one.operations)
                     then greatest(changes - events - captured - last.ahead - coalesce(cardinality(missing_keys), 0), 0)
                end;
            found_gap.detail := detail;
        end if;
        gap := tidemark.capture_reconciled(now_, found_gap);
        -- An open gap stays a gap, even if no change was missed since.
        if gap is not null and status <> 'gap' then
            detail := format('gap %s is open; since then %s: %s', gap, status, detail);
            status := 'gap';
        end if;
        return next;
    end loop;
end
$$;
comment on function tidemark.capture_reconcile(integer) is
    'Compares, for each table with an enabled inbound route, the server''s count of changes since the last call with '
    'the events and with tidemark.captured. Where the role may read the table, it also compares up to sample (default '
    '1000) rows written since then with the events of their keys. status: ok; gap (with the number of its row in '
    'tidemark.capture_gap; the gap and the finding capture_gap stay open until tidemark.capture_gap_emit or '
    'capture_gap_accept), also where an enabled route''s trigger is missing or disabled, or another table has taken '
    'the name; unclear (the server counts more changes, which rolled back work may explain); unknown (statistics '
    'reset, routes changed); first. Reports transactions that last more than a day as gaps.';
grant execute on function tidemark.capture_reconcile(integer) to tidemark_admin;
