-- Not a security definer: the table is read with the rights of the role that runs the worker.
--
-- The handler reads in a later snapshot than the page was read in. So its bounds enclose a row that the page does not
-- have only if none can appear there:
--
-- 1. clock: the page lies below the horizon, where all rows are complete.
-- 2. sequence: between two numbers of the page that are not neighbours, a number may belong to a transaction under way.
--    It is passed over by separate bounds, unless it is settled: taken before a moment at which no writer held the lock
--    of the table, and earlier than the page was read.
create or replace function tidemark.source_bounds(
    plan tidemark.source_plan,
    page tidemark.source_page,
    whole boolean,
    settled bigint)
returns table (after_ts timestamptz, after_id text, to_ts timestamptz, to_id text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set row_security = off
as $$
#variable_conflict use_variable
declare
    s constant tidemark.source := plan.source;
    c constant tidemark.worker_cursor := plan.cursor;
    mark constant bigint := case s.safety when 'sequence' then c.watermark_id::bigint end;
    keys constant jsonb := coalesce(page.result, '[]');
    numbers bigint[] := page.numbers;
    spans int8multirange;
    odd jsonb;
    key jsonb;
    before record;
begin
    select k into odd from jsonb_array_elements(keys) k
    where (k ->> 2) is null or s.safety = 'clock' and not coalesce(isfinite((k ->> 1)::timestamptz), false) limit 1;
    if found then
        raise exception using errcode = 'TM005',
            message = format('the handler takes bounds, and the row %s %s', odd ->> 0,
                             case when odd ->> 2 is null then 'is gone' else 'has no usable timestamp' end),
            hint = 'Discard the dead letter, or let the handler take rows.';
    end if;

    if s.safety = 'sequence' then
        if not whole then
            numbers := array(select (k ->> 0)::bigint from jsonb_array_elements(keys) k);
        end if;
        spans := tidemark.numbers_multirange(numbers);
        if whole and settled > mark and page.examined > page.late then
            spans := spans + int8multirange(int8range(mark + 1, least(settled, page.last_id::bigint) + 1));
        end if;
        return query
        select null::timestamptz, (lower(r) - 1)::text, null::timestamptz, (upper(r) - 1)::text from unnest(spans) r;
    elsif whole then
        return query select coalesce(c.watermark_ts, '-infinity'), c.watermark_id, page.last_ts, page.last_id
        where page.examined > 0;
    else
        for key in
            -- A part of a page is one piece; what a sweep finds or a retry takes is anywhere.
            select jsonb_build_array(k, case plan.step when 'forward' then keys -> -1 else k end)
            from jsonb_array_elements(keys) with ordinality e (k, place) where plan.step <> 'forward' or e.place = 1
        loop
            before := tidemark.source_look(plan.relation, format(
                'select coalesce(x.at, ''-infinity'') as at, x.id from (values (1)) one left join lateral (
                     select tidemark_row.%1$I as at, tidemark_row.%2$I::text as id from %3$s
                     where (tidemark_row.%1$I, tidemark_row.%2$I) < ($1, $2::%4$s)
                     order by tidemark_row.%1$I desc, tidemark_row.%2$I desc limit 1) x on true',
                s.timestamp_column, s.id_column, tidemark.source_row(s), s.id_type),
                (key -> 0 ->> 1)::timestamptz, key -> 0 ->> 0);
            after_ts := before.at;
            after_id := before.id;
            to_ts := (key -> 1 ->> 1)::timestamptz;
            to_id := key -> 1 ->> 0;
            return next;
        end loop;
    end if;
end
$$;
comment on function tidemark.source_bounds(tidemark.source_plan, tidemark.source_page, boolean, bigint) is
    'Between which places a handler that takes bounds finds exactly the rows of a page that was read with the act '
    'keys. whole: the page of a plan whose step is forward; otherwise the rows that it names. settled: the number up '
    'to which none can appear any more; null: unknown. Raises TM005 for a row that is gone or has no place.';
grant execute on function tidemark.source_bounds(tidemark.source_plan, tidemark.source_page, boolean, bigint)
    to tidemark_executor;
