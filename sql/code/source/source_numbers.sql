-- Follows the rule of tidemark.read_outbox, for the same reasons.
create or replace function tidemark.source_numbers(
    plan tidemark.source_plan, page tidemark.source_page, cursor tidemark.worker_cursor)
returns tidemark.worker_cursor
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    c tidemark.worker_cursor := cursor;
    mark constant bigint := c.watermark_id::bigint;
    reached constant bigint := greatest(mark, page.last_id::bigint);
    passed constant int8multirange := int8multirange(int8range(mark + 1, reached + 1));
    seen int8multirange := passed;
begin
    if reached - (page.examined - page.late) > mark or page.late > 0 then
        seen := tidemark.numbers_multirange(page.numbers);
    end if;
    -- A page full of late rows has not checked all the holes.
    c.fenced := case when plan.fence_closed and page.late < plan.rows_limit then '{}' else c.fenced - seen end;
    c.holes := c.holes - seen + (passed - seen);
    if isempty(c.fenced) then
        c.fenced := c.holes;
        c.holes := '{}';
        -- Note the fence after the read, in a later statement: it then has every writer that began in between.
        c.fence := case when isempty(c.fenced) then '{}'
                        else tidemark.fence_now(tidemark.source_fence(plan.source)) end;
    end if;
    if (plan.source).safety = 'sequence' and (plan.source).timestamp_column is not null then
        -- Keep the latest rows read, for tidemark.source_restarted.
        c.metadata := c.metadata || jsonb_build_object('below', (
            select coalesce(jsonb_object_agg(b.id, b.at), '{}') from (
                select k.key::bigint as id, k.value as at from jsonb_each(coalesce(c.metadata -> 'below', '{}')) k
                union all
                select r.n, to_jsonb(r.at) from unnest(page.numbers, page.times) r (n, at) where r.at is not null
                order by 1 desc limit 16) b));
    end if;
    c.watermark_id := reached;
    c.watermark_ts := greatest(c.watermark_ts, page.last_ts);
    return c;
end
$$;
comment on function tidemark.source_numbers(tidemark.source_plan, tidemark.source_page, tidemark.worker_cursor) is
    'The cursor of a source with the safety sequence after a page: its watermark, and the missing numbers below it.';
