-- public
create or replace function tidemark.command_seek(topic text, partition integer, next_offset bigint, reason text)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    feed constant text := 'kafka:' || command_seek.topic;
    was bigint;
    known jsonb;
begin
    if coalesce(btrim(reason), '') = '' or next_offset is null or next_offset < 0 then
        raise exception using errcode = 'TM005',
            message = 'a partition is not set to another offset without a reason, nor to a negative offset';
    end if;
    perform tidemark.lease_end('commands', feed, command_seek.partition);
    select c.watermark_id::bigint, c.metadata into was, known from tidemark.worker_cursor c
    where c.worker = 'commands' and c.source = feed and c.shard = command_seek.partition for update;
    if not found then
        raise exception using errcode = 'TM004',
            message = format('no partition %s of topic %s was read', command_seek.partition, command_seek.topic),
            hint = 'Partitions: select source, shard from tidemark.worker_cursor where worker = ''commands'';';
    end if;
    update tidemark.worker_cursor c
    set watermark_id = next_offset::text, decided_through = next_offset::text,
        metadata = c.metadata - array['topic_id', 'kept'], updated_at = clock_timestamp()
    where c.worker = 'commands' and c.source = feed and c.shard = command_seek.partition;
    -- What Kafka has lost is at no offset any more. Others have, or will have, these.
    update tidemark.command_record r set topic_id = null
    where r.topic_id = known ->> 'topic_id' and r.partition = command_seek.partition
      and r."offset" >= (known ->> 'kept')::bigint;
    insert into tidemark.audit (action, object, reason, before, after)
    values ('command_seek', 'worker_cursor commands', command_seek.reason,
            jsonb_build_object('source', feed, 'shard', command_seek.partition, 'next_offset', was),
            jsonb_build_object('next_offset', next_offset));
    return was;
end
$$;
comment on function tidemark.command_seek(text, integer, bigint, text) is
    'Sets where the consumer of commands goes on in a partition, and accepts the topic as it is: the way on after the '
    'finding command_partition_held. Commands that were claimed before do not run again; records that are passed over '
    'are not read. Returns the next offset that it had. Raises TM004, TM005.';
grant execute on function tidemark.command_seek(text, integer, bigint, text) to tidemark_admin;
