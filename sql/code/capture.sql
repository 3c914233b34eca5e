-- Nothing is called, logged or tried again here: that is the worker's.
create or replace function tidemark.capture()
returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- A key reads the same, whoever writes the row.
set datestyle = 'ISO, YMD'
set intervalstyle = 'postgres'
set timezone = 'UTC'
set bytea_output = 'hex'
set extra_float_digits = 1
as $$
#variable_conflict use_variable
declare
    at constant timestamptz := clock_timestamp();
    route record;
    part record;
    place text;
    outcome text;
    once text;
    why text := '';
    changes text;
    statement text;
    n bigint;
    awake boolean;
begin
    select r.id, r.route_code, r.domain, r.type, r.stream, r.dry_run, r.fail_closed, r.idempotency_policy, r.payload_columns,
           t.type is not null as registered, t.unchecked, t.metadata_only, t.schema,
           tg_level = 'STATEMENT' and tg_when = 'AFTER'
           and g.tgnewtable is not distinct from case when tg_op in ('INSERT', 'UPDATE') then 'tidemark_new' end
           and g.tgoldtable is not distinct from case when tg_op in ('UPDATE', 'DELETE') then 'tidemark_old' end as as_attached
    into route
    from tidemark.inbound_route r
    join pg_trigger g on g.tgrelid = tg_relid and g.tgname = tg_name
    left join tidemark.event_type t on t.domain = r.domain and t.type = r.type and t.enabled
    where r.source_schema = tg_table_schema and r.source_table = tg_table_name and r.sql_event = lower(tg_op) and r.enabled
      and exists (select from tidemark.setting s where s.key = 'routes.enabled' and s.value = 'true');
    if not found then
        return null;
    end if;
    place := format('inbound route %s: ', route.route_code);
    -- A table or view of the session's own could pass for a transition table that there is not.
    if not route.as_attached then
        raise exception using errcode = 'TM005',
            message = format('%strigger %I of %I.%I is not as tidemark.capture_attach makes it', place, tg_name, tg_table_schema, tg_table_name),
            hint = 'Drop it, and attach the table: tidemark capture attach.';
    end if;

    select c.* into part from tidemark.capture_columns(tg_relid, route.payload_columns) c;
    if cardinality(route.payload_columns) > 0 then
        part.shown := format('case when tidemark.capture_fits(%s, %s, %L) then %s end', part.bytes,
            coalesce((select s.value::bigint from tidemark.setting s where s.key = 'capture.payload_limit'), 1000000), place, part.shown);
    end if;
    -- The two transition tables get a row and what it was before at the same time, so these have the same place in
    -- both. Nothing else pairs them: a key can change, and there may be none.
    changes := case tg_op
        when 'TRUNCATE' then 'select 1 as ord, null::text as ref, null::jsonb as pk, null::jsonb as old_pk, null::text[] as changed, null::jsonb as shown'
        when 'UPDATE' then format(
            'select u.* from ('
            'select n.ord, %2$s as ref, %3$s as pk, case when %4$s then %5$s end as old_pk, %6$s as changed, %7$s as shown '
            'from (select row_number() over () as ord%1$s from tidemark_new) n '
            'join (select row_number() over () as ord%1$s from tidemark_old) o on o.ord = n.ord) u '
            'where u.changed <> ''{}''',
            part.names, part.key_text, part.key_json, part.key_changed, part.old_key_json, part.changed, part.shown)
        else format(
            'select n.ord, %2$s as ref, %3$s as pk, null::jsonb as old_pk, null::text[] as changed, %4$s as shown '
            'from (select row_number() over () as ord%1$s from %5$s) n',
            part.names, part.key_text, part.key_json, part.shown,
            case tg_op when 'INSERT' then 'tidemark_new' else 'tidemark_old' end) end;

    if route.dry_run then
        outcome := 'dry_run';
    elsif not route.registered then
        outcome := 'unregistered';
        why := format('%s/%s is not registered or not enabled', route.domain, route.type);
    elsif part.missing is not null then
        outcome := 'failed';
        why := format('%I.%I has no column %s, which the contract names', tg_table_schema, tg_table_name, part.missing);
        if route.fail_closed then
            raise exception using errcode = 'TM005', message = place || why,
                hint = format('Set payload_columns of inbound route %s to columns that there are.', route.route_code);
        end if;
    else
        once := case when route.idempotency_policy = 'transaction' then
            -- Of this transaction alone, so that nobody waits for another's key.
            format('''capture/%s/%s/'' || encode(sha256(convert_to(c.ref, ''UTF8'')), ''hex'')', route.id, pg_current_xact_id()) end;
        -- One statement for all rows, which takes the lock on the log before the first number, as emit does.
        statement := format($f$
            with event as materialized (
                select c.ord, c.ref, tidemark.event_uuid($1) as id, %s as once,
                       jsonb_build_object('schema', $2::text, 'table', $3::text, 'operation', $4::text, 'primary_key', c.pk)
                       || case when c.changed is null then '{}' else jsonb_build_object('changed', c.changed) end
                       || case when c.old_pk is null then '{}' else jsonb_build_object('old_primary_key', c.old_pk) end
                       || case when c.shown is null then '{}' else jsonb_build_object('columns', c.shown) end as payload
                from (%s) c
            ) %s
            insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, key,
                                         subject_table, subject_ref, idempotency_key, actor, payload)
            select e.id, $1, $1, 'immediate', 'info', $5, $6, $7, e.ref, format('%%I.%%I', $2, $3), e.ref, e.once, session_user, e.payload
            from event e
            where ($8 or tidemark.payload_check($5, $6, e.payload, $9, $10, $11)) %s
            order by e.ord$f$,
            coalesce(once, 'null::text'), changes,
            case when once is not null then $f$, claimed as (
                insert into tidemark.emit_key as k (domain, idempotency_key, event_id, created_at)
                select $5, e.once, e.id, $1 from event e where e.once is not null order by e.ord
                on conflict do nothing returning k.event_id)$f$ end,
            case when once is not null then 'and (e.once is null or e.id in (select k.event_id from claimed k))' end);
        if route.fail_closed and not part.may_fail then
            execute statement using at, tg_table_schema, tg_table_name, lower(tg_op), route.domain, route.type, route.stream,
                                    route.unchecked, route.schema, route.metadata_only, place;
            get diagnostics n = row_count;
        else
            begin
                execute statement using at, tg_table_schema, tg_table_name, lower(tg_op), route.domain, route.type, route.stream,
                                        route.unchecked, route.schema, route.metadata_only, place;
                get diagnostics n = row_count;
            exception when others then
                -- What is not the event's fault is the transaction's own: a conflict, a lock, a full disk.
                if sqlstate ~ '^(40|53|55|57|58|XX)' then
                    raise;
                elsif route.fail_closed then
                    raise exception using errcode = case when sqlstate like 'TM%' then sqlstate else 'TM002' end,
                        message = case when sqlstate like 'TM%' then sqlerrm else place || sqlerrm end,
                        hint = format('Change the row, or what inbound route %s shows of it (payload_columns).', route.route_code);
                end if;
                outcome := 'failed';
                -- Other messages may quote the row.
                why := case when sqlstate like 'TM%' then sqlerrm else 'SQLSTATE ' || sqlstate end;
            end;
        end if;
    end if;

    if outcome is not null then
        execute format('select count(*) from (%s) c', changes) into n;
        if n > 0 then
            insert into tidemark.captured (at, route_id, outcome, rows, actor, reason)
            values (at, route.id, outcome, n, session_user, why);
        end if;
    elsif n > 0 then
        -- As in emit: behind the numbers.
        if pg_try_advisory_lock(1953064301, 1) then
            awake := pg_advisory_unlock(1953064301, 1);
        elsif pg_try_advisory_lock_shared(1953064301, 1) then
            awake := pg_advisory_unlock_shared(1953064301, 1);
            perform tidemark.wake(array[route.domain]);
        end if;
    end if;
    return null;
end
$$;
comment on function tidemark.capture() is
'Trigger of tidemark.capture_attach: makes the rows that a statement changed events of the inbound route for the table and the operation, in the transaction. No enabled route, or gate routes.enabled closed: nothing. Dry run, or a type that is not registered: a row in tidemark.captured. Raises TM002, TM003 or TM005 where the event cannot be written; then the statement fails, or, where the route is not fail_closed, goes on with a row in tidemark.captured. Source: S1 fn_iu_sql_link_inbound_capture.';
revoke all on function tidemark.capture() from public;
grant execute on function tidemark.capture() to tidemark_admin;
