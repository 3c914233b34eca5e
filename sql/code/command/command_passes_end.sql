create or replace function tidemark.command_passes_end(summaries jsonb[], lease interval)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    -- Only now, so that tidemark.worker_pause need not wait for the commands; and in its order, so that no two wait for
    -- each other in a circle.
    perform from unnest(summaries) s
    join tidemark.worker_cursor c
      on c.worker = 'commands' and c.source = s ->> 'source' and c.shard = (s ->> 'shard')::integer
    order by c.source, c.shard for update of c;
    update tidemark.worker_cursor c
    set watermark_id = s ->> 'next', decided_through = s ->> 'next', last_run_at = clock_timestamp(),
        last_run_summary = s, events_seen = c.events_seen + (s ->> 'rows')::integer, updated_at = clock_timestamp()
    from unnest(summaries) s
    where c.worker = 'commands' and c.source = s ->> 'source' and c.shard = (s ->> 'shard')::integer;
    perform tidemark.executor_beat(
        array(select tidemark.executor_id('commands', s ->> 'source', (s ->> 'shard')::integer)
              from unnest(summaries) s), 'ok', command_passes_end.lease);
end
$$;
comment on function tidemark.command_passes_end(jsonb[], interval) is
    'Part of tidemark.command_passes: moves the cursors of these partitions, and renews their leases.';
