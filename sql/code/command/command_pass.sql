-- For daemons of earlier releases.
create or replace function tidemark.command_pass(
    source text,
    shard integer,
    epoch bigint,
    lease interval,
    topic_id text,
    from_offset bigint,
    next_offset bigint,
    calls jsonb,
    way text default 'batch',
    behind bigint default null,
    since timestamptz default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return tidemark.command_passes(jsonb_build_array(jsonb_build_object(
        'source', source, 'shard', shard, 'epoch', epoch, 'topic_id', topic_id, 'from', from_offset,
        'next', next_offset, 'calls', calls, 'behind', behind, 'since', since)), lease, way) -> 0;
end
$$;
comment on function tidemark.command_pass(
    text, integer, bigint, interval, text, bigint, bigint, jsonb, text, bigint, timestamptz) is
    'tidemark.command_passes of one partition, from from_offset to next_offset. Returns its summary.';
grant execute on function tidemark.command_pass(
    text, integer, bigint, interval, text, bigint, bigint, jsonb, text, bigint, timestamptz) to tidemark_executor;
