create or replace function tidemark.command_partition_lost(topic text, partition integer, topic_id text, kept bigint)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    update tidemark.worker_cursor c
    set metadata = c.metadata || jsonb_build_object('kept', least(command_partition_lost.kept,
                                                                  (c.metadata ->> 'kept')::bigint))
    where c.worker = 'commands' and c.source = 'kafka:' || command_partition_lost.topic
      and c.shard = command_partition_lost.partition and c.metadata ->> 'topic_id' = command_partition_lost.topic_id
$$;
comment on function tidemark.command_partition_lost(text, integer, text, bigint) is
    'Notes that of what was read of a partition Kafka has only the records before kept: another leader did not have '
    'the others. If the cursor is past it, tidemark.command_partition holds the partition until tidemark.command_seek.';
grant execute on function tidemark.command_partition_lost(text, integer, text, bigint) to tidemark_executor;
