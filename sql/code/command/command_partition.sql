create or replace function tidemark.command_partition(
    topic text,
    partition integer,
    topic_id text,
    first_offset bigint,
    end_offset bigint,
    reached bigint default null,
    out next_offset bigint,
    out held text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    feed constant text := 'kafka:' || command_partition.topic;
    name constant text := tidemark.executor_id('commands', feed, command_partition.partition);
    known text;
    kept bigint; -- records before it are still those that were read
begin
    perform tidemark.session_check('a worker', 'each of its statements must see what was committed before it.');
    insert into tidemark.worker (worker, source, handler, description)
    values ('commands', 'kafka', 'command', 'Commands of services.') on conflict do nothing;
    insert into tidemark.worker_cursor (worker, source, shard, watermark_id, decided_through, metadata)
    values ('commands', feed, command_partition.partition, command_partition.first_offset::text,
            command_partition.first_offset::text, jsonb_build_object('topic_id', command_partition.topic_id))
    on conflict do nothing;
    insert into tidemark.heartbeat (executor_id) values (name) on conflict do nothing;
    -- An operator has accepted the topic as it is. Where its offset is ahead, nothing that was read is lost.
    update tidemark.worker_cursor c
    set metadata = c.metadata || jsonb_build_object('topic_id', command_partition.topic_id)
    where c.worker = 'commands' and c.source = feed and c.shard = command_partition.partition
      and not c.metadata ? 'topic_id' and c.watermark_id::bigint <= end_offset;
    select c.watermark_id::bigint, c.metadata ->> 'topic_id', (c.metadata ->> 'kept')::bigint
    into next_offset, known, kept
    from tidemark.worker_cursor c
    where c.worker = 'commands' and c.source = feed and c.shard = command_partition.partition;
    -- While Kafka was asked where the partition ends, another daemon may have passed records that came after that end,
    -- or an operator may have set the cursor.
    if known = command_partition.topic_id and reached > end_offset and next_offset >= reached then
        -- Also when there are others at these offsets.
        perform tidemark.command_partition_lost(command_partition.topic, command_partition.partition, known,
                                                end_offset);
        kept := least(kept, end_offset);
    end if;
    held := case
        when known <> command_partition.topic_id then format(
            'the topic was deleted and made again: it has the id %s and the offsets %s to %s, and was read to offset '
            '%s under the id %s',
            command_partition.topic_id, command_partition.first_offset, command_partition.end_offset, next_offset,
            known)
        when next_offset not between command_partition.first_offset and command_partition.end_offset then format(
            'the next offset is %s, and the partition has %s to %s: records are lost, or the topic is another',
            next_offset, command_partition.first_offset, command_partition.end_offset)
        when next_offset > kept then format(
            'the next offset is %s, and Kafka has lost the records from %s on that were read: others may have their '
            'offsets now', next_offset, kept) end;
    if held is null and kept is not null then
        -- It is read anew from the cursor. A pass under way over what was read before may still move that; no pass of
        -- an earlier epoch comes after this.
        perform from tidemark.heartbeat h where h.executor_id = name for update skip locked;
        if found then
            update tidemark.heartbeat h set lease_epoch = h.lease_epoch + 1 where h.executor_id = name;
            update tidemark.worker_cursor c set metadata = c.metadata - 'kept'
            where c.worker = 'commands' and c.source = feed and c.shard = command_partition.partition
              and c.watermark_id::bigint <= kept;
        end if;
        if not found then
            held := format('Kafka has lost the records from %s on, and a pass over them was under way', kept);
        end if;
    end if;
    if held is null then
        perform tidemark.finding_close('command_partition_held', name);
    else
        perform tidemark.finding_open('command_partition_held', name, 'high', held);
    end if;
end
$$;
comment on function tidemark.command_partition(text, integer, text, bigint, bigint, bigint) is
    'Where the consumer of commands goes on in a partition that has the offsets first_offset to before end_offset. '
    'Makes the cursor, at first_offset, where there is none. reached: where the cursor was before Kafka was asked for '
    'end_offset; if it is past that, Kafka has lost what was read. Null: a look at that is left to another call. held: '
    'why it must not go on, which is the finding command_partition_held; null: it may.';
grant execute on function tidemark.command_partition(text, integer, text, bigint, bigint, bigint) to tidemark_executor;
