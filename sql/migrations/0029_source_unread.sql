-- How far a cursor of a table is behind: what tidemark.maintain saw there last.

set local role tidemark_owner;

create table tidemark.source_unread (
    worker text not null,
    source text not null,
    shard integer not null,
    noted_at timestamptz not null,
    unread boolean not null,
    since timestamptz,
    first_id bigint,
    upto_id bigint,
    upto_ts timestamptz,
    primary key (worker, source, shard)
) with (fillfactor = 50);
comment on table tidemark.source_unread is 'Whether each cursor of a table had rows to read when a role that may read the table last called tidemark.maintain. For roles that may not, and for the age of rows without a timestamp. Kept by tidemark.maintain.';
comment on column tidemark.source_unread.worker is 'The worker.';
comment on column tidemark.source_unread.source is 'The source it reads.';
comment on column tidemark.source_unread.shard is 'Part of the source.';
comment on column tidemark.source_unread.noted_at is 'When the table was looked at.';
comment on column tidemark.source_unread.unread is 'There were committed rows that the cursor had not read.';
comment on column tidemark.source_unread.since is 'Timestamp of the first of them; where they have none, since when rows up to upto_id have been seen unread.';
comment on column tidemark.source_unread.first_id is 'Safety sequence: number of the first of them.';
comment on column tidemark.source_unread.upto_id is 'Safety sequence: the highest number in the table when since was noted.';
comment on column tidemark.source_unread.upto_ts is 'Safety clock and declared: the latest timestamp in the table.';
grant select on tidemark.source_unread to tidemark_reader, tidemark_executor;

