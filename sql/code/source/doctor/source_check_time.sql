create or replace function tidemark.source_check_time(definition tidemark.source, relation oid)
returns table ("check" text, status text, detail text, hint text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    of_clock constant boolean := definition.safety = 'clock';
    stamp constant pg_attribute := (select a from pg_attribute a
                                    where a.attrelid = relation and a.attname = definition.timestamp_column);
    -- Matches (now() AT TIME ZONE 'UTC'::text) and its spellings, and splits them into clock and zone.
    given constant text := (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d
                            where d.adrelid = relation and d.adnum = stamp.attnum);
    zoned constant text[] :=
        regexp_match(given,
                     '^(?:timezone[(]''([^'']+)''::text, (.+)[)]|[(](.+) AT TIME ZONE ''([^'']+)''::text[)])$', 'i');
    clock constant text := coalesce(zoned[2], zoned[3], given);
    known_clock constant boolean :=
        coalesce(clock ~* (E'^(now|clock_timestamp|statement_timestamp|transaction_timestamp)\\(\\)$'
                           '|^(CURRENT_TIMESTAMP|LOCALTIMESTAMP)(\\(\\d\\))?$'), false);
    offsets interval[];
    precision_ constant integer := least(
        case when stamp.atttypmod < 0 then 6 else stamp.atttypmod end,
        coalesce((regexp_match(clock, E'^(?:CURRENT_TIMESTAMP|LOCALTIMESTAMP)\\((\\d)\\)$', 'i'))[1]::integer, 6));
    step constant interval := interval '1 second' / power(10, precision_);
begin
    if definition.safety in ('clock', 'declared') then
        "check" := 'timestamp not null'; hint := '';
        status := case when stamp.attnotnull then 'ok' else 'warn' end;
        detail := case when stamp.attnotnull then format('%I is not null', definition.timestamp_column)
            else format('%I may be null: such rows are read by id alone, after the others, with the sweep',
                        definition.timestamp_column) end;
        hint := case when stamp.attnotnull then ''
                     else format('alter table %s alter column %I set not null;', name, definition.timestamp_column) end;
        return next;
    end if;

    "check" := 'time zone'; hint := '';
    if stamp.atttypid = 'timestamptz'::regtype then
        status := case when definition.time_zone is null then 'ok' else 'fail' end;
        detail := format('%I is with time zone', definition.timestamp_column);
        if zoned is not null and definition.time_zone is null then
            status := case when of_clock then 'fail' else 'warn' end;
            detail :=
                format('%I is with time zone, but its default %s is not: what is stored depends on the TimeZone of '
                       'the session', definition.timestamp_column, given);
            hint := format('alter table %s alter column %I set default now();', name, definition.timestamp_column);
        elsif definition.time_zone is not null then
            detail := detail || ': it has no other';
            hint := 'Take time_zone away.';
        end if;
    elsif definition.time_zone is null then
        status := 'fail';
        detail := format('%s.%I is without time zone, and time_zone does not say which one its writers mean', name,
                         definition.timestamp_column);
        hint := 'Give time_zone, such as UTC.';
    else
        -- Not every zone that AT TIME ZONE accepts: it reverses the sign of UTC+3.
        if exists (select from pg_timezone_names z where z.name = definition.time_zone) then
            offsets := array(
                select distinct (d at time zone 'UTC') - (d at time zone definition.time_zone)
                from generate_series(localtimestamp - interval '5 years', localtimestamp + interval '5 years',
                                     interval '1 day') d);
        end if;
        if offsets is null then
            status := 'fail'; detail := format('"%s" is no time zone', definition.time_zone);
            hint := 'select name from pg_timezone_names;';
        elsif cardinality(offsets) > 1 then
            status := case when of_clock then 'fail' else 'warn' end;
            detail :=
                format('in %s clocks are put back: one hour of timestamps without time zone occurs twice, and one '
                       'never',
                       definition.time_zone);
            hint := case when of_clock
                              then 'Have it written in UTC, or use declared with a sweep_window of more than an hour.'
                else 'Give a sweep_window of more than an hour, or have it written in UTC.' end;
            if not of_clock and (definition.safety <> 'declared' or definition.sweep_window > interval '1 hour') then
                status := 'ok'; hint := '';
            end if;
        elsif coalesce(zoned[1], zoned[4]) is not null
              and (timestamptz 'epoch' at time zone coalesce(zoned[1], zoned[4])) <>
                  (timestamptz 'epoch' at time zone definition.time_zone) then
            status := 'fail';
            detail := format('the default writes %s, and time_zone is %s', coalesce(zoned[1], zoned[4]),
                             definition.time_zone);
            hint := format('Set time_zone to %s.', coalesce(zoned[1], zoned[4]));
        elsif zoned is null and known_clock then
            status := 'warn';
            detail :=
                format('the default %s depends on the TimeZone of each session; yours begins with %s', given,
                       (select s.reset_val from pg_settings s where s.name = 'TimeZone'));
            hint := format('alter table %s alter column %I set default (now() at time zone %L);', name,
                           definition.timestamp_column, definition.time_zone);
        else
            status := 'ok'; detail := format('%s, whose clocks are not put back', definition.time_zone);
        end if;
    end if;
    return next;

    if not of_clock then
        return;
    end if;

    "check" := 'set by the server'; hint := '';
    if clock ~* '^statement_timestamp' then
        status := 'fail';
        detail :=
            format('the default is %s: in a procedure or a DO block that commits, it is the time of the call, which '
                   'is before the transaction', given);
        hint := format('alter table %s alter column %I set default %s; or declared with a sweep_window.', name,
                       definition.timestamp_column,
            replace(given, clock, 'now()'));
    elsif known_clock then
        status := 'warn';
        detail :=
            format('the default is %s; nothing stops an insert from giving another time, and a row whose time is older '
                   'than its transaction may be lost', given);
        hint := 'Make sure that all writers leave the column out. If one does not, use declared with a sweep_window.';
    elsif exists (select from pg_trigger t where t.tgrelid = relation and not t.tgisinternal
                                             and t.tgenabled in ('O', 'A') and t.tgtype & 7 = 7) then
        status := 'warn';
        detail := format('the default is %s; a trigger before insert may set the time, which this check cannot see',
                         coalesce(given, 'none'));
        hint := 'Make sure that it always sets now() or clock_timestamp().';
    else
        status := 'fail';
        detail :=
            case when given is null
                      then format('%I has no default: each writer sets the time',
                                  definition.timestamp_column)
            else format('the default of %I is %s, which is not known to be the server''s clock',
                        definition.timestamp_column, given) end;
        hint := format('alter table %s alter column %I set default %s; or declared with a sweep_window.', name,
                       definition.timestamp_column,
            case when stamp.atttypid = 'timestamptz'::regtype then 'now()'
                 else format('(now() at time zone %L)', coalesce(definition.time_zone, 'UTC')) end);
    end if;
    return next;

    "check" := 'margin'; hint := '';
    if definition.margin < step then
        status := 'fail';
        detail := format('the margin is %s, and a timestamp of %s digits is up to %s off', definition.margin,
                         precision_, step);
        hint := format('Set the margin to 1 second%s.',
                       case when precision_ > 0 then ', or at least ' || step else '' end);
    elsif definition.margin < interval '1 second' then
        status := 'warn';
        detail := format('the margin is %s: 1 second has been shown to suffice', definition.margin);
        hint := 'Set the margin to 1 second.';
    else
        status := 'ok'; detail := format('%s, timestamps of %s digits', definition.margin, precision_);
    end if;
    return next;
end
$$;
comment on function tidemark.source_check_time(tidemark.source, oid) is
    'Part of tidemark.source_check: properties of the timestamp: null, zone, the source of its value, precision.';
grant execute on function tidemark.source_check_time(tidemark.source, oid) to tidemark_reader, tidemark_executor;
