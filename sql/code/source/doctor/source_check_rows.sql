create or replace function tidemark.source_check_rows(definition tidemark.source, relation oid)
returns table ("check" text, status text, detail text, hint text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- The queries below use an index, whatever size the planner estimates for the table.
set enable_seqscan = off
set jit = off
set row_security = off
as $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    parts constant oid[] := array(select relation union select p.relid from pg_partition_tree(relation) p);
    stamp constant pg_attribute := (select a from pg_attribute a
                                    where a.attrelid = relation and a.attname = definition.timestamp_column);
    time_ constant record := tidemark.source_time(definition);
    updated bigint;
    deleted bigint;
    triggers text;
    got record;
    seen boolean[];
    known boolean;
begin
    select sum(s.n_tup_upd), sum(s.n_tup_del) into updated, deleted from pg_stat_all_tables s
    where s.relid = any (parts);
    triggers := (
        select string_agg(t.tgname, ', ' order by t.tgname) from pg_trigger t join pg_proc p on p.oid = t.tgfoid
        where t.tgrelid = any (parts) and t.tgparentid = 0 and not t.tgisinternal and t.tgenabled in ('O', 'A')
          and p.pronamespace <> 'tidemark'::regnamespace and t.tgtype & 3 = 3 and t.tgtype & 20 <> 0);
    if definition.safety <> 'capture' then
        "check" := 'rows are only added'; status := 'ok'; hint := '';
        detail := 'no update or delete since the statistics began';
        if updated > 0 or deleted > 0 then
            status := 'warn';
            detail :=
                format('%s rows were updated and %s deleted since the statistics began: a row is read once, as it is '
                       'then; one that is deleted before is not read', updated, deleted);
            hint := format('Make sure that id%s are never updated. For changes of rows use the safety capture.',
                           case when stamp.attnum is null then '' else ' and timestamp' end);
        end if;
        return next;

        "check" := 'triggers and rules'; status := 'ok'; hint := ''; detail := 'none before insert or update';
        triggers := concat_ws(', ', triggers,
                              (select string_agg(r.rulename, ', ') from pg_rewrite r where r.ev_class = relation));
        if triggers <> '' then
            status := 'warn';
            detail := format('%s can change a row on its way in, or later', triggers);
            hint := format('Make sure that none sets %s.', concat_ws(' or ', definition.id_column,
                case when definition.safety <> 'clock' then definition.timestamp_column end,
                case when definition.safety = 'clock'
                          then definition.timestamp_column || ' to anything but the time of the insert' end));
        end if;
        return next;
    end if;

    if stamp.attnum is null or definition.safety not in ('clock', 'declared')
        or not has_column_privilege(relation, stamp.attnum, 'select')
       or not has_schema_privilege(definition.schema_name, 'usage') then
        return;
    end if;
    "check" := 'timestamps'; status := 'ok'; hint := ''; detail := 'none is null, infinite or in the future';
    known := exists (select from pg_index i
                     where i.indrelid = relation and i.indisvalid and i.indpred is null and i.indkey[0] = stamp.attnum);
    got := tidemark.source_look(relation, format('select array[exists (select from %2$s where %1$s is null),
                                 exists (select from %2$s where %4$s)%6$s,
                                 exists (select from %2$s where %1$s > %3$s and not %5$s)] as seen',
        time_.stored,
        -- Without an index look at only a thousand rows, wherever they are.
        case when known then tidemark.source_row(definition)
             else format('(select * from %s limit 1000) tidemark_row', tidemark.source_row(definition)) end,
        case when stamp.atttypid = 'timestamptz'::regtype then 'statement_timestamp() + interval ''1 minute'''
             else format('(statement_timestamp() at time zone %L) + interval ''1 minute''',
                         coalesce(definition.time_zone, 'UTC')) end,
        time_.early || case when known then '' else ' or ' || time_.late end, time_.late,
        -- An index answers each of the two conditions alone.
        case when known
                  then format(' or exists (select from %s where %s)', tidemark.source_row(definition),
                              time_.late) end));
    seen := got.seen;
    if seen[3] then
        status := case when definition.safety = 'clock' then 'fail' else 'warn' end;
        detail := 'there are timestamps in the future: the server did not set them, and rows with them wait until then';
        hint := format('select * from %s where %I > now() + interval ''1 minute'' limit 10;', name,
                       definition.timestamp_column);
    elsif seen[1] or seen[2] then
        status := 'warn';
        detail :=
            format('there are rows whose timestamp is %s: they are read by id alone, after the others, with the sweep',
                   concat_ws(' or ', case when seen[1] then 'null' end, case when seen[2] then 'infinite' end));
    elsif not known then
        detail := 'none of a thousand rows is null, infinite or in the future; no index shows more';
    end if;
    return next;
end
$$;
comment on function tidemark.source_check_rows(tidemark.source, oid) is
    'Part of tidemark.source_check: evidence against the safety in the statistics and in a bounded sample of rows.';
grant execute on function tidemark.source_check_rows(tidemark.source, oid) to tidemark_reader, tidemark_executor;
