-- The trigger function of a captured table, without its header. tidemark.capture_body puts the table's own statement in
-- the place of {the table's own statement}, and the route's id in that of {the route's id}. After the statement comes
-- the general path, which serves every table.
--
-- The trigger only writes: calls, logging and retries are the worker's tasks.
create or replace function tidemark.capture_template()
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $function$
    select $template$
#variable_conflict use_variable
declare
    at constant timestamptz := clock_timestamp();
    head constant text := tidemark.event_uuid_time(at);
    due boolean;
    fits boolean;
    schema jsonb;
    metadata_only boolean;
    domains text[]; -- of the general path
    what text;
    moved boolean;
    unclear boolean;
    route record;
    made record;
    place text;
    outcome text;
    why text := '';
    n bigint;
    more bigint;
    asleep boolean;
    listeners boolean;
begin
    if current_setting('transaction_isolation') not like 'read %' then
        perform tidemark.inbound_check({the route's id});
    end if;
{the table's own statement}    if n is null then
        n := 0;
        what := lower(tg_op);
        moved := false;
        unclear := false;
        loop
            select r.id, r.route_code, r.domain, r.type, r.stream, r.dry_run, r.fail_closed, r.idempotency_policy,
                   r.payload_columns, t.type is not null as registered, t.unchecked, t.metadata_only, t.schema,
                   a.as_attached
            into route
            from tidemark.inbound_route r
            left join tidemark.capture_attached a on a.relation = tg_relid and a.trigger_name = tg_name
            left join tidemark.event_type t on t.domain = r.domain and t.type = r.type and t.enabled
            where r.source_object_kind = 'table' and r.source_schema = tg_table_schema
              and r.source_table = tg_table_name and r.sql_event = what and r.enabled;
            exit when not found;
            listeners := tidemark.gate_open('notify.listeners_enabled');
            place := format('inbound route %s: ', route.route_code);
            -- Without its transition table, the trigger would read a temporary table or view of the session by that
            -- name.
            if route.as_attached is distinct from true then
                raise exception using errcode = 'TM005',
                    message = format('%strigger %I of %I.%I differs from what tidemark.capture_attach '
                                     'makes', place, tg_name,
                                     tg_table_schema, tg_table_name),
                    hint = 'Drop it, and attach the table: tidemark capture attach.';
            end if;

            -- A row that moves to another partition, and that a trigger refuses there, has no new version.
            if what = 'update' and (select k.relkind = 'p' from pg_class k where k.oid = tg_relid) then
                moved := (select count(*) from tidemark_new) <> (select count(*) from tidemark_old);
                if moved then
                    execute tidemark.capture_unclear(tg_relid) into unclear;
                end if;
            end if;
            select s.* into made
            from tidemark.capture_sql(
                tg_relid, case when not moved then what when what = 'update' then 'moved' else 'vanished' end,
                route.payload_columns, route.idempotency_policy,
                '$1 as at, $2 as head, $3 as route, $4 as place, $5 as domain, $6 as type, $7 as stream, '
                '$8 as unchecked, $9 as schema, $10 as metadata_only') s;
            if route.dry_run then
                outcome := 'dry_run';
            elsif not route.registered then
                outcome := 'unregistered';
                why := format('%s/%s is not registered or not enabled', route.domain, route.type);
            elsif made.missing is not null then
                outcome := 'failed';
                why := format('%I.%I has no column %s, which the contract names', tg_table_schema, tg_table_name,
                              made.missing);
                if route.fail_closed then
                    raise exception using errcode = 'TM005', message = place || why,
                        hint = format('Set payload_columns of inbound route %s to columns that exist.',
                                      route.route_code);
                end if;
            elsif unclear then
                outcome := 'failed';
                why := 'a trigger refused rows in their new partition, and by the primary keys it is unclear which';
                made.counted := 'select count(*) from tidemark_old';
                if route.fail_closed then
                    raise exception using errcode = 'TM005', message = place || why,
                        hint = 'Update one row with each statement.';
                end if;
            elsif route.fail_closed and not made.may_fail then
                execute made.written
                using at, head, route.id, place, route.domain, route.type, route.stream, route.unchecked, route.schema,
                      route.metadata_only;
                get diagnostics more = row_count;
            else
                begin
                    execute made.written
                using at, head, route.id, place, route.domain, route.type, route.stream, route.unchecked, route.schema,
                      route.metadata_only;
                    get diagnostics more = row_count;
                exception when others then
                    -- What is not the event's fault is the transaction's own: a conflict, a lock, a full disk.
                    if tidemark.is_transient(sqlstate) then
                        raise;
                    elsif route.fail_closed then
                        raise exception using errcode = case when sqlstate like 'TM%' then sqlstate else 'TM002' end,
                            message = case when sqlstate like 'TM%' then sqlerrm else place || sqlerrm end,
                            hint = format('Change the row, or what inbound route %s shows of it (payload_columns).',
                                          route.route_code);
                    end if;
                    outcome := 'failed';
                    -- Other messages may quote the row.
                    why := case when sqlstate like 'TM%' then sqlerrm else 'SQLSTATE ' || sqlstate end;
                end;
            end if;

            if outcome is not null then
                execute made.counted into more;
                if more > 0 then
                    insert into tidemark.captured (at, route_id, outcome, rows, actor, reason)
                    values (at, route.id, outcome, more, tidemark.writer(), why);
                end if;
            elsif more > 0 then
                n := n + more;
                domains := domains || route.domain;
            end if;
            -- The rows without a new version are deleted.
            exit when not moved or unclear or what = 'delete';
            what := 'delete';
            outcome := null;
            why := '';
        end loop;
    end if;

    if n > 0 then
        -- As in emit: behind the numbers.
        asleep := case when pg_try_advisory_lock(1953064301, 1) then not pg_advisory_unlock(1953064301, 1)
                       when pg_try_advisory_lock_shared(1953064301, 1)
                            then pg_advisory_unlock_shared(1953064301, 1) end;
        if asleep or listeners then
            perform tidemark.wake(coalesce(domains, array[{the route's domain}]),
                                  listeners => coalesce(listeners, false));
        end if;
    end if;
    return null;
end
$template$
$function$;
comment on function tidemark.capture_template() is
    'The body of the trigger functions that tidemark.capture_make makes. Such a function turns the rows that a '
    'statement changed into events of the inbound route for the table and the operation, in the same transaction. It '
    'ignores gates: they stop deliveries, and captured events wait in the log. Without an enabled route it does '
    'nothing. In dry run, or for a type that is not registered, it writes a row in tidemark.captured. Raises TM002, '
    'TM003 or TM005 where the event cannot be written, and the statement fails; where the route is not fail_closed, '
    'the statement goes on, with a row in tidemark.captured. Raises 40001 under REPEATABLE READ and SERIALIZABLE where '
    'the route or the rules of its type were changed after the snapshot. Source: S1 fn_iu_sql_link_inbound_capture.';
grant execute on function tidemark.capture_template() to tidemark_reader;
