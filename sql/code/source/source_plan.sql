-- First step of a pass over a source, under the lease.
create or replace function tidemark.source_plan(
    worker text,
    source text,
    shard integer,
    epoch bigint,
    page integer,
    lease interval)
returns tidemark.source_plan
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    asked record;
    p tidemark.source_plan;
begin
    perform tidemark.lease_check(source_plan.worker, source_plan.epoch, source_plan.source, source_plan.shard);
    -- A new statement, under the lease, sees all that the last owner committed.
    asked := tidemark.source_next(source_plan.worker, source_plan.source, source_plan.shard);
    p := asked.plan;
    p.epoch := source_plan.epoch;
    p.lease := source_plan.lease;
    p.rows_limit := least(coalesce(source_plan.page, (p.worker).page_size), 50000);
    if p.status = 'held' then
        if asked.finding = 'source_clock_back' then
            update tidemark.worker_cursor x set metadata = (p.cursor).metadata
            where x.worker = source_plan.worker and x.source = source_plan.source and x.shard = source_plan.shard
              and x.metadata <> (p.cursor).metadata;
        end if;
        return tidemark.source_hold(p, asked.finding, p.detail);
    elsif p.status <> 'go' then
        return p;
    end if;
    p.suspects := ((p.cursor).metadata -> 'suspects' -> p.step ->> 'left')::integer;
    p.rows_limit := least(p.rows_limit, ((p.cursor).metadata -> 'suspects' -> p.step ->> 'rows')::integer);
    if p.step = 'sweep' and not p.sweep ? 'next_xmin' then
        -- Note the snapshot before the sweep's first read: every read of this sweep sees the rows of transactions below
        -- it.
        p.sweep := p.sweep || jsonb_build_object('next_xmin', pg_snapshot_xmin(pg_current_snapshot())::text,
                                                 'next_mark', (p.cursor).watermark_ts, 'segment', 'null');
    end if;
    return p;
end
$$;
comment on function tidemark.source_plan(text, text, integer, bigint, integer, interval) is
    'The next step of the lease epoch''s owner with a source (tidemark.source_next), for at most page rows (null: the '
    'worker''s page_size). The end of the pass renews the lease, where one is given. Opens a finding where the worker '
    'must not go on. Raises TM011.';
grant execute on function tidemark.source_plan(text, text, integer, bigint, integer, interval) to tidemark_executor;
