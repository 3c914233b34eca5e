-- This and tidemark.command_passes_end are functions of their own since they pin the planner's settings, as
-- tidemark.command_claims_begin does.
create or replace function tidemark.command_passes_begin(passes jsonb[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    wrong record;
begin
    -- Sorted, so that two calls cannot wait for each other in a circle.
    perform tidemark.lease_check('commands', p.epoch, p.source, p.shard)
    from (select (e ->> 'epoch')::bigint as epoch, e ->> 'source' as source, (e ->> 'shard')::integer as shard
          from unnest(passes) e order by 2, 3) p;
    select p.*, c.watermark_id as at_, c.metadata ->> 'topic_id' as at_topic into wrong
    from (select e ->> 'source' as source, (e ->> 'shard')::integer as shard, e ->> 'topic_id' as topic_id,
                 (e ->> 'from')::bigint as from_ from unnest(passes) e) p
    left join tidemark.worker_cursor c on c.worker = 'commands' and c.source = p.source and c.shard = p.shard
    where c.watermark_id::bigint is distinct from p.from_ or c.metadata ->> 'topic_id' is distinct from p.topic_id
    limit 1;
    if found then
        raise exception using errcode = 'TM012',
            message = format('partition %s of %s is at offset %s of topic %s, and the pass begins at %s of %s',
                             wrong.shard, wrong.source, wrong.at_, wrong.at_topic, wrong.from_, wrong.topic_id),
            hint = 'Nothing was written. Read the cursor again.';
    end if;
end
$$;
comment on function tidemark.command_passes_begin(jsonb[]) is
    'Part of tidemark.command_passes: locks the leases of these partitions, and looks whether each pass begins at its '
    'cursor. Raises TM011, TM012.';
