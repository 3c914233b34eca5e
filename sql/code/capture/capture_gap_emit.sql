-- public
create or replace function tidemark.capture_gap_emit(id bigint, reason text default 'emitted from the table as it is')
returns table (emitted bigint, complete boolean)
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
#variable_conflict use_variable
declare
    page constant integer := 1000;
    gap constant tidemark.capture_gap := (
        select g from tidemark.capture_gap g where g.id = capture_gap_emit.id and g.resolved_at is null);
    route tidemark.inbound_route;
    part record;
    denied text;
    read record;
    found_rows record;
    shown jsonb;
    stack integer[];
    first integer;
    last integer;
    here bigint;
    kept_parts oid[] := '{}';
    kept_places tid[] := '{}';
    unreadable text[] := '{}';
begin
    if gap.id is null then
        raise exception using errcode = 'TM004', message = format('there is no open gap %s', id),
            hint = 'See: select * from tidemark.capture_gap where resolved_at is null;';
    end if;
    route := tidemark.capture_gap_route(gap.name);
    -- The lock keeps all objects that the expressions use as they are, except for new indexes and statistics.
    perform tidemark.source_lock(gap.name::regclass);
    denied := tidemark.source_denied(gap.name::regclass);
    if denied is not null then
        raise exception using errcode = 'TM005', message = denied, hint = 'Accept the gap, or emit it as another role.';
    end if;
    select c.* into part from tidemark.capture_columns(gap.name::regclass, route.payload_columns) c;
    if part.missing is not null or part.key_json = 'null::jsonb' then
        raise exception using errcode = 'TM005',
            message = case when part.missing is not null
                      then format('inbound route %s: %s has no column %s that can be shown', route.route_code, gap.name,
                                  part.missing)
                      else format('%s has no primary key: which of its rows have no event cannot be told',
                                  gap.name) end,
            hint = 'Change payload_columns, or accept the gap.';
    end if;
    emitted := 0;
    loop
        found_rows := tidemark.source_look(gap.name::regclass, format($q$
            select coalesce(array_agg(k.part), '{}') as parts, coalesce(array_agg(k.place), '{}') as places,
                   coalesce(array_agg(k.ref), '{}') as refs
            from (
                select n.part, n.place, %1$s as ref
                from (select x.xmin as written, x.tableoid as part, x.ctid as place, %2$s from %3$s x) n
                where not pg_visible_in_snapshot(tidemark.full_xid(n.written, %4$L::xid8), %5$L::pg_snapshot)
                  and not exists (
                      select from tidemark.outbox o
                      where o.subject_table = $2 and o.subject_ref = %1$s and o.created_at > $1 - interval '1 day'
                        and tidemark.full_xid(o.xmin, %4$L::xid8) >= %8$L::xid8
                        and (o.inbound_id is not null or o.seq <= %9$s)%10$s)
                  and not exists (select from unnest(%6$L::oid[], %7$L::tid[]) b (part, place)
                                  where b.part = n.part and b.place = n.place)
                limit $4) k$q$,
            part.key_text, part.names, gap.name, pg_snapshot_xmax(pg_current_snapshot()), gap.snapshot, kept_parts,
            kept_places, pg_snapshot_xmin(gap.snapshot), tidemark.captured_upto(),
            tidemark.capture_same_key(gap.name::regclass, part.key_json)), gap.since, gap.name, rows_limit => page);
        here := 0;
        stack := case when cardinality(found_rows.places) > 0 then array[1, cardinality(found_rows.places)]
                      else '{}' end;
        while cardinality(stack) > 0 loop
            first := stack[cardinality(stack) - 1];
            last := stack[cardinality(stack)];
            stack := stack[: cardinality(stack) - 2];
            begin
                read := tidemark.source_look(gap.name::regclass, format($q$
                    select coalesce(jsonb_agg(jsonb_build_object('ref', %1$s, 'primary_key', %2$s) || case
                        when %6$L::boolean then jsonb_build_object('columns', %3$s) else '{}' end), '[]') as shown
                    from unnest(%7$L::oid[], %8$L::tid[]) b (part, place)
                    cross join lateral (
                        select %4$s from %5$s x where x.ctid = b.place and x.tableoid = b.part) n$q$,
                    part.key_text, part.key_json, part.shown, part.names, gap.name,
                    cardinality(route.payload_columns) > 0, found_rows.parts[first : last],
                    found_rows.places[first : last]));
                shown := read.shown;
            exception when others or assert_failure then
                if tidemark.is_transient(sqlstate) then
                    raise;
                elsif first < last then
                    -- Halve, down to the row that jsonb cannot hold.
                    stack := stack || array[(first + last) / 2 + 1, last, first, (first + last) / 2];
                else
                    kept_parts := kept_parts || found_rows.parts[first];
                    kept_places := kept_places || found_rows.places[first];
                    unreadable := unreadable || format('%s (%s)', found_rows.refs[first], sqlstate);
                    here := here + 1;
                end if;
                continue;
            end;
            here := here + jsonb_array_length(shown);
            emitted := emitted + tidemark.capture_gap_write(gap.id, shown, false, capture_gap_emit.reason);
        end loop;
        -- A row that was written again after it was found has another place; the next call finds it.
        complete := cardinality(found_rows.places) < page and here >= cardinality(found_rows.places);
        exit when complete or emitted > 0 or here < cardinality(found_rows.places);
    end loop;
    if complete and cardinality(unreadable) > 0 then
        perform tidemark.capture_gap_keep(gap.id, unreadable);
    elsif complete then
        perform tidemark.capture_gap_write(gap.id, null, true, capture_gap_emit.reason);
    end if;
    return next;
end
$$;
comment on function tidemark.capture_gap_emit(bigint, text) is
    'Emits up to 1000 rows of a gap''s table that were written since the gap began and have no event, in their current '
    'state. The payload has "reconciled": true; the operation is insert where inserts are captured, else update. '
    'complete: no such rows are left. The gap is then over, with two exceptions: changes were counted that no row '
    'shows (others), which can only be accepted; or jsonb cannot hold a row, which stays in the gap (unreadable) until '
    'it is changed or accepted. Repeated and concurrent calls emit each row once. Needs SELECT on the table. Raises '
    'TM004, TM005, and the errors of tidemark.emit for a row.';
grant execute on function tidemark.capture_gap_emit(bigint, text) to tidemark_admin;
