-- public
-- Why a row's event stands where it belongs among those of its changes. A writer locks the row, then takes the number
-- of its event. The backfill locks the row against writers (for share), then takes its own number. So a change with a
-- lower number has committed, and is in what the backfill reads; one with a higher number is not.
--
-- A row that was written since the beginning has an event of its own, and is left out. That is asked in a statement
-- after the lock, whose snapshot has the events of each writer that the lock waited for.
create or replace function tidemark.capture_backfill_step(
    id bigint,
    rows_limit integer default 1000,
    out emitted bigint,
    out left_out bigint,
    out complete boolean)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- Shorter than deadlock_timeout: a deadlock ends with an error here, and not in the application.
set lock_timeout = '300ms'
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
    b constant tidemark.capture_backfill := (
        select f from tidemark.capture_backfill f
        where f.id = capture_backfill_step.id and f.finished_at is null and f.cancelled_at is null);
    -- A row has half of a transaction's number. Of two that it may be, this takes the later one, and the log is asked.
    far constant xid8 := (pg_snapshot_xmax(b.snapshot)::text::bigint + 2147483648)::text::xid8;
    route tidemark.inbound_route;
    part record;
    key record;
    denied text;
    last text[];
    found_rows jsonb;
    known bigint[];
begin
    if b.id is null then
        raise exception using errcode = 'TM004', message = format('there is no backfill %s under way', id),
            hint = 'See: select * from tidemark.capture_backfill;';
    elsif rows_limit is null or rows_limit not between 1 and 10000 then
        raise exception using errcode = 'TM005', message = format('rows_limit is %s, and must be from 1 to 10000',
                                                                  coalesce(rows_limit::text, 'null')),
            hint = 'The default is 1000.';
    elsif current_setting('transaction_isolation') not like 'read %' then
        raise exception using errcode = 'TM006', message = 'a backfill needs read committed',
            hint = 'Call it in a transaction of its own.';
    end if;
    -- The lock's own errors do not say how to give the backfill up. Lock first, then check: the name once more.
    if to_regclass(b.name) = b.relation then
        perform tidemark.source_lock(b.relation::regclass);
        denied := case
            when to_regclass(b.name) is distinct from b.relation::regclass then b.name || ' is another table by now'
            when not (select pg_has_role(c.relowner, 'usage') from pg_class c where c.oid = b.relation)
                then 'must be owner of table ' || b.name
            else tidemark.source_denied(b.relation::regclass) end;
    else
        denied := b.name || case when to_regclass(b.name) is null then ' is gone' else ' is another table by now' end;
    end if;
    if denied is not null then
        raise exception using errcode = '42501', message = denied,
            hint = format('Run it as the owner of the table, or give it up: select '
                          'tidemark.capture_backfill_cancel(%s, ''reason'');', id);
    end if;
    route := tidemark.capture_backfill_route(b.name);
    if tidemark.capture_backfill_order(b.relation::regclass, b.name) <> b.key_columns then
        raise exception using errcode = 'TM005',
            message = format('%s: its primary key has changed since the backfill began', b.name),
            hint = format('Its place in the old order says nothing about the new one. Give it up, and begin again: '
                          'select tidemark.capture_backfill_cancel(%s, ''reason'');', id);
    end if;
    select c.* into part from tidemark.capture_columns(b.relation::regclass, route.payload_columns) c;
    select string_agg(format('x.%I', a.attname), ', ' order by k.ord) as columns,
           string_agg(format('x.%I desc', a.attname), ', ' order by k.ord) as backwards,
           string_agg(format('format(''%%s'', x.%I)', a.attname), ', ' order by k.ord) as texts,
           string_agg(format('$1[%s]::%s', k.ord, format_type(a.atttypid, a.atttypmod)), ', ' order by k.ord) as after,
           string_agg(format('$2[%s]::%s', k.ord, format_type(a.atttypid, a.atttypmod)), ', ' order by k.ord) as upto
    into key
    from pg_index i
    cross join unnest(i.indkey::int2[]) with ordinality k (attnum, ord)
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
    where i.indrelid = b.relation and i.indisprimary and k.ord <= i.indnkeyatts;
    if part.missing is not null then
        raise exception using errcode = 'TM005',
            message = format('inbound route %s: %s has no column %s that can be shown', route.route_code, b.name,
                             part.missing),
            hint = 'Change payload_columns.';
    end if;

    execute format($q$
        select array[%1$s] from (select %2$s from %3$s x%4$s order by %2$s limit %5$s) x order by %6$s limit 1$q$,
        key.texts, key.columns, b.name,
        case when b.upto is not null then format(' where (%s) > (%s)', key.columns, key.after) else '' end,
        rows_limit, key.backwards)
    into last using b.upto;
    complete := last is null;
    if not complete then
        execute format($q$
            select coalesce(jsonb_agg(jsonb_build_object('ref', %1$s, 'primary_key', %2$s, 'new',
                       tidemark.full_xid(n.written, %3$L::xid8) >= %11$L::xid8)
                       || case when %4$L::boolean then jsonb_build_object('columns', %5$s) else '{}' end), '[]')
            from (select x.xmin as written, %6$s from %7$s x where %8$s(%9$s) <= (%10$s) order by %9$s for share) n$q$,
            part.key_text, part.key_json, far, cardinality(route.payload_columns) > 0, part.shown, part.names, b.name,
            case when b.upto is not null then format('(%s) > (%s) and ', key.columns, key.after) else '' end,
            key.columns, key.upto, pg_snapshot_xmin(b.snapshot))
        into found_rows using b.upto, last;
        known := tidemark.capture_backfill_known(b.id, coalesce((
            select jsonb_agg(jsonb_build_object('n', n, 'ref', r -> 'ref', 'primary_key', r -> 'primary_key'))
            from jsonb_array_elements(found_rows) with ordinality e (r, n) where (r ->> 'new')::boolean), '[]'));
        left_out := cardinality(known);
        found_rows := (select coalesce(jsonb_agg(r - 'new' order by n), '[]')
                       from jsonb_array_elements(found_rows) with ordinality e (r, n)
                       where n <> all (known));
    end if;
    emitted := tidemark.capture_backfill_write(b.id, b.upto, found_rows, last, coalesce(left_out, 0));
    left_out := coalesce(left_out, 0);
end
$$;
comment on function tidemark.capture_backfill_step(bigint, integer) is
    'Makes the next rows_limit (1 to 10000, default 1000) rows of a backfill events, in the order of the primary key: '
    'their state as it is, with the operation read and the columns that the inbound route for inserts shows. Leaves '
    'out rows that have an event of their own since the backfill began. complete: no row is left. Call it as the '
    'table''s owner, in a transaction of its own, again and again; to pause, stop. Raises 55P03 where another '
    'transaction keeps a row locked (call it again), TM004, TM005, TM006, TM011 (another session took the step), '
    '42501, and the errors of tidemark.emit.';
grant execute on function tidemark.capture_backfill_step(bigint, integer) to tidemark_admin;
