-- Not a security definer: it reads the table, and looks at its sequence, as the role that runs the worker does.
--
-- setval leaves the sequence the same. Once the sequence has passed the watermark again, its value proves nothing. The
-- rows do: the sequence has then given out each number below the watermark a second time, also the numbers of the rows
-- read last, whose times were noted. Their transactions prove nothing, since an update changes them. A number without a
-- row (its transaction rolled back, or the row was deleted) gets one only when it is given out again.
create or replace function tidemark.source_restarted(
    plan tidemark.source_plan, out problem text, out gone int8multirange)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set row_security = off
as $$
#variable_conflict use_column
declare
    s constant tidemark.source := plan.source;
    c constant tidemark.worker_cursor := plan.cursor;
    -- Ids of other safeties may not be numbers.
    mark constant bigint := case s.safety when 'sequence' then c.watermark_id::bigint end;
    -- Look at this many numbers below the watermark: one index range.
    low constant bigint := greatest(mark, -9223372036854775552) - 256;
    near constant int8multirange := int8multirange(int8range(low + 1, mark + 1));
    present int8multirange;
    got record;
begin
    -- The plan looked at the table without a lock, and the table may have been exchanged since. This takes the lock
    -- that reading takes, for the rest of the transaction: what is checked from here on holds for the rows that are
    -- read. No query takes it, since planning one runs the code that source_denied refuses.
    execute format('lock table %I.%I in access share mode', s.schema_name, s.table_name);
    if not exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
                   where n.nspname = s.schema_name and c.relname = s.table_name and c.oid = plan.relation) then
        problem := 'this is not the table that was read before: it was exchanged just now';
        return;
    elsif s.safety = 'sequence'
        and c.metadata ->> 'numbering' is distinct from tidemark.source_numbering(s, plan.relation) then
        problem := 'the sequence was restarted, altered or replaced just now: its numbers may be given out again';
        return;
    end if;
    problem := tidemark.source_denied(plan.relation);
    if problem is not null or plan.step <> 'forward' or s.safety <> 'sequence' or mark is null then
        return;
    end if;
    problem := tidemark.source_behind(s, plan.relation, mark);
    got := tidemark.source_look(plan.relation, format('
        select %1$s as again,
            (select coalesce(range_agg(int8range(tidemark_row.%2$I::bigint, tidemark_row.%2$I::bigint + 1)), ''{}'')
             from %3$s where tidemark_row.%2$I > %4$L::bigint and tidemark_row.%2$I <= %5$L::bigint) as present',
        case when s.timestamp_column is not null and c.metadata ? 'below'
             then format('
            (select tidemark_row.%1$I::text from %2$s where tidemark_row.%1$I = any ($5::%3$s[])
                 and %4$s is distinct from (%5$L::jsonb ->> tidemark_row.%1$I::text)::timestamptz limit 1)',
                s.id_column, tidemark.source_row(s), s.id_type, (tidemark.source_time(s)).at, c.metadata -> 'below')
             else 'null::text' end,
        s.id_column, tidemark.source_row(s), low, mark),
        ids => array(select jsonb_object_keys(c.metadata -> 'below')));
    present := got.present;
    if problem is null and got.again is not null then
        problem := format(
            'row %s is not the one that was read, or its %I was changed: was the sequence set back '
            '(setval)? Rows at or below the watermark %s are passed over. Find the lowest number that was given '
            'out again, and read from there: tidemark worker rewind %s --source %s --to-id N; or continue: --accept',
            got.again, s.timestamp_column, c.watermark_id, c.worker, c.source);
    end if;
    if problem is null and present && (c.metadata ->> 'gone')::int8multirange then
        problem := format(
            'row %s is there, and was not when its number was passed: was the sequence set back '
            '(setval), or did rows come with numbers of their own, or back with a partition? Rows at or below the '
            'watermark %s are passed over. Find the lowest number that was given out again, and read from there: '
            'tidemark worker rewind %s --source %s --to-id N; or continue: --accept',
            lower(present * (c.metadata ->> 'gone')::int8multirange), mark, c.worker, c.source);
    end if;
    gone := near - present - c.holes - c.fenced;
end
$$;
comment on function tidemark.source_restarted(tidemark.source_plan) is
    'Locks the table for reading, and reports what has changed about the source since the plan looked at it: it is '
    'another table; it must not be read (tidemark.source_denied); or, with the safety sequence, numbers at or below '
    'the watermark were or will be given out again, and the worker would skip their rows. problem null: no change '
    'found. gone: those of the 256 numbers up to the watermark that have no row and can get none, for the next check. '
    'Call it before each page, whatever the step. Raises the errors of reading the table.';
grant execute on function tidemark.source_restarted(tidemark.source_plan) to tidemark_executor;
