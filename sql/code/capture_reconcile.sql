create or replace function tidemark.capture_reconcile(sample integer default 1000)
returns table (relation text, status text, changes bigint, events bigint, captured bigint, missing_keys text[], detail text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- As in tidemark.capture: a key reads the same.
set datestyle = 'ISO, YMD'
set intervalstyle = 'postgres'
set timezone = 'UTC'
set bytea_output = 'hex'
set extra_float_digits = 1
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    one record;
    last tidemark.capture_checkpoint;
    now_ tidemark.capture_checkpoint;
    part record;
    short text;
begin
    for one in
        select a.relation as id, a.schema_name, a.table_name, array_agg(r.id) as routes, array_agg(r.sql_event) as operations
        from tidemark.capture_attached a
        join tidemark.inbound_route r on r.source_schema = a.schema_name and r.source_table = a.table_name and r.sql_event = a.operation and r.enabled
        group by 1, 2, 3 order by 2, 3
    loop
        relation := one.id::regclass::text;
        last := (select c from tidemark.capture_checkpoint c where c.relation = one.id);
        select one.id, at, pg_current_snapshot(), (select q.last_value from tidemark.outbox_seq_seq q),
               coalesce(sum(s.n_tup_ins), 0), coalesce(sum(s.n_tup_upd), 0), coalesce(sum(s.n_tup_del), 0), d.xact_rollback, d.stats_reset
        into now_
        from pg_stat_database d
        left join pg_stat_all_tables s on s.relid = one.id or s.relid in (select p.relid from pg_partition_tree(one.id) p)
        where d.datname = current_database() group by d.xact_rollback, d.stats_reset;
        changes := null; events := null; captured := null; missing_keys := null; short := null;

        if last.relation is null then
            status := 'first';
            detail := 'nothing to compare with yet';
        elsif exists (select from tidemark.audit u where u.at >= last.at and (u.object like 'inbound\_route %' or u.object = relation)) then
            status := 'unknown';
            detail := 'routes or triggers were changed meanwhile';
        else
            events := (select count(*) from tidemark.outbox o
                       where o.subject_table = relation and o.created_at > last.at - interval '1 day'
                         and not pg_visible_in_snapshot(tidemark.full_xid(o.xmin, pg_snapshot_xmax(now_.snapshot)), last.snapshot)
                         and o.payload ->> 'operation' = any (one.operations) and o.payload ->> 'operation' <> 'truncate');
            -- Of the hour in which the last call was, a sum may be of before or after it: better none is called a gap.
            captured := (select coalesce(sum(c.rows), 0) from tidemark.captured c
                         where c.route_id = any (one.routes) and (c.at >= last.at or c.at = date_trunc('hour', last.at)));
            changes := case when 'insert' = any (one.operations) then now_.inserted - last.inserted else 0 end
                     + case when 'update' = any (one.operations) then now_.updated - last.updated else 0 end
                     + case when 'delete' = any (one.operations) then now_.deleted - last.deleted else 0 end;
            begin
                select c.* into part from tidemark.capture_columns(one.id, '{}') c;
                -- What is there now and was written since the last time has an event, or is in captured, unless a part
                -- of the operations only is captured.
                if part.key_json <> 'null::jsonb' and one.operations @> array['insert', 'update'] and captured = 0 then
                    execute format($q$
                        select coalesce(array_agg(k.key order by k.key), '{}')
                        from (select %s as key from (select x.xmin as written, %s from %s x) n
                              where not pg_visible_in_snapshot(tidemark.full_xid(n.written, $5), $1) limit $2) k
                        where not exists (
                            select from tidemark.outbox o
                            where o.subject_table = $3 and o.subject_ref = k.key and o.created_at > $4 - interval '1 day'
                              and not pg_visible_in_snapshot(tidemark.full_xid(o.xmin, $5), $1))$q$,
                        part.key_text, part.names, relation)
                    into missing_keys using last.snapshot, sample, relation, last.at, pg_snapshot_xmax(now_.snapshot);
                end if;
            exception when insufficient_privilege then
                detail := 'its keys cannot be read: grant select to this role; ';
            end;

            detail := coalesce(detail, '') || format('%s changes counted by the server since %s, %s events, %s without event on record',
                                                     changes, date_trunc('second', last.at), events, captured);
            if cardinality(missing_keys) > 0 then
                status := 'gap';
                detail := detail || format('; rows without event (an update that changes nothing counts too): %s%s',
                                           array_to_string(missing_keys[1:10], ' '), case when cardinality(missing_keys) > 10 then ' …' else '' end);
            elsif last.stats_reset is distinct from now_.stats_reset or now_.inserted < last.inserted or now_.updated < last.updated
                  or now_.deleted < last.deleted then
                status := 'unknown';
                changes := null;
                detail := 'the server''s statistics were reset meanwhile; ' || detail;
            elsif changes <= events + captured then
                status := 'ok';
            elsif now_.rollbacks = last.rollbacks and not 'update' = any (one.operations) then
                status := 'gap';
            else
                status := 'unclear';
                detail := detail || '; the server also counts what was rolled back, and updates that change nothing';
            end if;
            short := case when status = 'gap' then detail end;
        end if;
        perform tidemark.capture_reconciled(now_, short, status = 'ok');
        return next;
        detail := null;
    end loop;
end
$$;
comment on function tidemark.capture_reconcile(integer) is
'Compares what the server counted on each attached table since the last call with the events and with tidemark.captured, and up to sample (default 1000) rows written since then with the events of their keys, where the role may read the table. status: ok; gap (the finding capture_gap opens; it closes with the next ok); unclear (the server counts more, which rolled back work explains as well); unknown (statistics reset, routes changed); first. Transactions of more than a day are taken for gaps.';
revoke all on function tidemark.capture_reconcile(integer) from public;
grant execute on function tidemark.capture_reconcile(integer) to tidemark_admin;
