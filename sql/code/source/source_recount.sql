-- Not a security definer: it reads the table as the worker does.
create or replace function tidemark.source_recount(plan tidemark.source_plan, page tidemark.source_page)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set row_security = off
as $$
#variable_conflict use_column
declare
    s constant tidemark.source := plan.source;
    c constant tidemark.worker_cursor := plan.cursor;
    origin constant timestamptz := '2000-01-01 00:00:00+00';
    -- Rows before this are not counted: a bucket or a window must stay inside the range of a timestamp.
    oldest constant timestamptz := '0001-01-01 00:00:00+00';
    time_ constant record := tidemark.source_time(s);
    rel constant text := tidemark.source_row(s);
    began constant timestamptz := clock_timestamp();
    whole constant interval := current_setting('statement_timeout')::interval;
    buckets integer := coalesce((c.metadata ->> 'buckets')::integer, 500);
    groups double precision;
    first timestamptz;
    from_ timestamptz;
    upto timestamptz;
    counts jsonb;
    told jsonb;
    got record;
begin
    if (plan.worker).storm_fraction is not null and (plan.worker).coalesce_window is not null then
        -- Take the number of groups from the planner's statistics: a count would cost more than the storm.
        select max(case when t.n_distinct < 0 then -t.n_distinct * r.reltuples else t.n_distinct end) into groups
        from pg_stats t join pg_class r on r.oid = plan.relation
        where t.schemaname = s.schema_name and t.tablename = s.table_name and t.attname = any (s.group_key);
        told := jsonb_build_object('groups', groups);
    end if;
    if plan.step <> 'sweep' or plan.sweep ->> 'segment' <> 'window' or page.examined >= plan.rows_limit then
        return told;
    end if;

    -- Take at most 500 buckets at a time, and skip the empty range before the first row.
    if c.watermark_ts < oldest + s.sweep_window then
        return told;
    end if;
    upto := date_bin(s.bucket, c.watermark_ts - s.sweep_window, origin);
    begin
        got := tidemark.source_look(plan.relation, format('select min(%s) as at from %s where %s >= ($1%s)', time_.at,
                                                          rel, time_.stored, time_.zone),
                                    greatest(coalesce(c.verified_through, '-infinity'), oldest));
        first := date_bin(s.bucket, got.at, origin);
        from_ := greatest(coalesce(c.verified_through, first), oldest);
        upto := least(upto, first + buckets * s.bucket);
        if c.watermark_ts is null or first is null or upto <= coalesce(c.verified_through, '-infinity') then
            return told;
        end if;
        got := tidemark.source_look(plan.relation, format('select jsonb_object_agg(b.at, b.n) as counts from (
            select date_bin(%L, %s, %L) as at, count(*) as n from %s
            where %s >= ($1%s) and %5$s < ($3%6$s) and %s group by 1) b',
            s.bucket, time_.at, origin, rel, time_.stored, time_.zone,
            tidemark.source_fits(s, (plan.worker).shards, '$6')), from_, null, upto, shard => c.shard);
        counts := got.counts;
    exception when others or assert_failure or query_canceled then
        if sqlstate = '57014' and tidemark.time_left() <= interval '0' then
            -- The timer fires once in a statement: the page is recorded all the same. The next sweep counts less.
            return coalesce(told, '{}') || jsonb_build_object('buckets', greatest(1, buckets / 8))
                || case when buckets = 1 then jsonb_build_object('uncounted', sqlstate) else '{}' end;
        elsif tidemark.is_transient(sqlstate) or s.filter is null
            or tidemark.source_is_misconfigured(sqlstate) then
            raise;
        end if;
        return coalesce(told, '{}') || jsonb_build_object('uncounted', sqlstate);
    end;
    if whole = interval '0' or clock_timestamp() - began < whole / 4 then
        buckets := least(500, buckets * 2);
    end if;
    return coalesce(told, '{}') || jsonb_build_object('from', from_, 'upto', upto, 'buckets', buckets,
                                                         'counts', coalesce(counts, '{}'));
end
$$;
comment on function tidemark.source_recount(tidemark.source_plan, tidemark.source_page) is
    'At the end of a sweep: the number of rows in the table in each time bucket behind the window that is not verified '
    'yet, at most 500 buckets. buckets: how many the next count takes; an eighth after one that the statement_timeout '
    'has ended. uncounted: the SQLSTATE with which the filter fails for one of these rows, or 57014 where one bucket '
    'takes too long. groups, for a worker with a storm guard: the planner''s estimate of the number of groups. Null: '
    'nothing was counted.';
grant execute on function tidemark.source_recount(tidemark.source_plan, tidemark.source_page) to tidemark_executor;
