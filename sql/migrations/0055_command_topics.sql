-- The consumer of commands reads Kafka: a cursor for each partition of its topics.

set local role tidemark_owner;
alter table tidemark.audit alter column actor set default session_user;
insert into tidemark.setting (key, value, description) values
    ('commands.shared_topic', 'signed',
     'Who may send commands to a topic that is not of one service: signed (records with a signature), claimed (metadata.producer is believed) or refuse (nobody).')
on conflict do nothing;
alter table tidemark.audit alter column actor drop default;

comment on column tidemark.worker_cursor.source is 'The source it reads; of commands kafka:<topic>.';
comment on column tidemark.worker_cursor.shard is 'Part of the source, from 0; of a topic the partition.';
