create or replace function tidemark.source_check_safety(definition tidemark.source, relation oid)
returns table ("check" text, status text, detail text, hint text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    bare tidemark.source := definition;
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    parts constant oid[] := array(select relation union select p.relid from pg_partition_tree(relation) p);
    publisher text;
    prepared text;
    triggers text[];
begin
    "check" := 'safety'; hint := '';
    case definition.safety
    when 'sequence' then
        status := 'ok'; detail := 'sequence: every committed row is read once, late ones too; nothing waits for others';
    when 'clock' then
        status := 'ok';
        detail := 'clock: every committed row is read once, if its timestamp is of its own transaction; reading waits '
                  'for the oldest transaction';
    when 'capture' then
        status := 'ok';
        detail := 'capture: a trigger writes each change to the log, in its transaction; rows from before are not read';
    when 'declared' then
        if definition.sweep_window is null then
            status := 'warn';
            detail := 'declared, without a sweep: a row that is committed after rows with a later timestamp were read '
                      'is lost without a message';
            hint := 'Give a sweep_window, longer than the longest transaction and the worst clock of a writer.';
        else
            status := 'ok';
            detail :=
                format('declared: a row that comes up to %s late is read by the sweep. One that comes later is not '
                       'read; a finding says so if it comes before its bucket (%s) is verified, and nothing if it '
                       'comes after that',
                       definition.sweep_window, coalesce(definition.bucket, interval '1 hour'));
        end if;
    else
        status := 'fail'; detail := format('there is no safety "%s"', coalesce(definition.safety, 'null'));
        hint := 'sequence, clock, capture or declared.';
    end case;
    return next;

    if definition.safety in ('clock', 'sequence', 'capture') then
        "check" := 'replication'; hint := '';
        publisher := (select string_agg(distinct r.srrelid::regclass::text, ', ') from pg_subscription_rel r
                      where r.srrelid = any (parts));
        status := case when publisher is null then 'ok' else 'fail' end;
        detail := case when publisher is null then 'no subscription writes it'
            else publisher || case definition.safety
                when 'clock' then ' is written by a subscription: its timestamps come from another server, and are '
                                  'older than '
                                  'the transactions here'
                when 'sequence' then ' is written by a subscription: its numbers come from another server, in any order'
                else ' is written by a subscription, for which statement triggers do not fire' end end;
        hint := case when publisher is null then ''
                     else 'Make it a source where it is written, or use declared with a sweep_window.' end;
        return next;
    end if;

    if definition.safety = 'clock' then
        "check" := 'transaction starts';
        -- Check the rights of tidemark_owner: its functions read the transactions.
        if exists (select from pg_roles r where r.rolname = 'tidemark_owner'
                   and (r.rolsuper or pg_has_role(r.oid, 'pg_read_all_stats', 'usage'))) then
            status := 'ok'; detail := 'tidemark_owner sees when other sessions'' transactions began'; hint := '';
            if exists (select from pg_settings s where s.name = 'track_activities' and s.reset_val = 'off') then
                status := 'fail';
                detail := 'sessions do not show when their transactions began: track_activities is off';
                hint := 'alter system set track_activities = on; select pg_reload_conf();';
            end if;
        else
            status := 'fail';
            detail := 'tidemark_owner does not see when other sessions'' transactions began: the oldest one cannot be '
                      'waited for';
            hint := 'grant pg_read_all_stats to tidemark_owner;';
        end if;
        return next;

        prepared := (select string_agg(p.gid, ', ') from pg_prepared_xacts p where p.database = current_database());
        "check" := 'prepared transactions'; hint := '';
        status := case when prepared is null then 'ok' else 'warn' end;
        detail :=
            case when prepared is not null
                      then format('prepared and not ended: %s. While such a transaction has the table locked, nothing '
                                  'is read',
                                  prepared)
            when current_setting('max_prepared_transactions') = '0' then 'off: there are none'
            else 'allowed: while a prepared transaction has the table locked, nothing is read' end;
        hint := case when prepared is null then '' else 'commit prepared …; or rollback prepared …;' end;
        return next;
    end if;

    if definition.safety = 'capture' then
        "check" := 'primary key'; hint := '';
        bare.timestamp_column := null; -- which has a check of its own
        detail := (tidemark.source_shape(bare)).problem;
        status := case when detail is null then 'ok' else 'fail' end;
        if detail is null then
            detail := format('%I, by which an event names the row', definition.id_column);
        else
            hint := 'Name the column of the primary key as id_column, or use another safety.';
        end if;
        return next;
        "check" := 'capture trigger'; hint := '';
        triggers := array(
            select t.tgenabled::text from pg_trigger t join pg_proc p on p.oid = t.tgfoid
            where t.tgrelid = relation and not t.tgisinternal and p.pronamespace = 'tidemark'::regnamespace
              and t.tgtype & 4 = 4);
        if triggers && array['O', 'A'] then
            status := 'ok'; detail := 'a trigger writes what is inserted to the log';
        elsif cardinality(triggers) > 0 then
            status := 'fail';
            detail := format('the trigger that writes what is inserted to the log is disabled on %s', name);
            hint := format('alter table %s enable always trigger …;', name);
        elsif pg_has_role((select c.relowner from pg_class c where c.oid = relation), 'usage')
            or has_table_privilege(relation, 'trigger') then
            status := 'warn';
            detail :=
                format('no trigger writes what is inserted into %s to the log yet: until one does, nothing is read',
                       name);
            hint := 'Make an inbound route for the table.';
        else
            status := 'fail';
            detail :=
                format('no trigger writes what is inserted to the log, and %s is neither the owner of %s nor has it '
                       'the privilege trigger', current_user, name);
            hint := format('grant trigger on %s to %I;', name, current_user);
        end if;
        return next;
        if cardinality(parts) > 1 then
            "check" := 'partitions'; status := 'warn';
            hint := 'Make sure that all writers name the table, or make each partition a source.';
            detail := 'a statement that names a partition does not fire the trigger of the table';
            return next;
        end if;
    end if;

    if definition.safety in ('sequence', 'capture') and definition.sweep_window is not null then
        "check" := 'sweep'; status := 'fail';
        detail := format('the safety %s has no sweep: it needs none', definition.safety);
        hint := 'Take sweep_window away.';
        return next;
    end if;
end
$$;
comment on function tidemark.source_check_safety(tidemark.source, oid) is
    'Part of tidemark.source_check: the promise of the safety, and settings of the whole server that would break it.';
grant execute on function tidemark.source_check_safety(tidemark.source, oid) to tidemark_reader, tidemark_executor;
