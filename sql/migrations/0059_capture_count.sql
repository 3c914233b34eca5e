-- tidemark.maintain compares the server's counts of captured tables with their events, without anybody's rights on them.

set local role tidemark_owner;

create type tidemark.capture_reading as (
    since timestamptz,
    snapshot pg_snapshot,
    operations text[],
    routes text,
    tree text,
    resets timestamptz,
    rewritten bigint,
    inserted bigint,
    deleted bigint[],
    live bigint[]
);
comment on type tidemark.capture_reading is 'What the server had counted of a captured table, its partitions and children, at one time.';
comment on column tidemark.capture_reading.since is 'Time of the reading before: changes that are counted after this reading are younger.';
comment on column tidemark.capture_reading.snapshot is 'What was visible then.';
comment on column tidemark.capture_reading.operations is 'Those of insert and delete that one event for each change tells.';
comment on column tidemark.capture_reading.routes is 'The routes of these, each with the transaction that changed it last.';
comment on column tidemark.capture_reading.tree is 'The tables and their files: TRUNCATE, another partition or a rewrite makes another text.';
comment on column tidemark.capture_reading.resets is 'When the server''s statistics were reset last.';
comment on column tidemark.capture_reading.rewritten is 'Runs of VACUUM and ANALYZE: each sets live to an estimate.';
comment on column tidemark.capture_reading.inserted is 'pg_stat_all_tables.n_tup_ins, summed over the tables; it also counts what was rolled back.';
comment on column tidemark.capture_reading.deleted is 'n_tup_del of each table, likewise.';
comment on column tidemark.capture_reading.live is 'n_live_tup of each table: rows committed.';

create table tidemark.capture_round (
    one boolean primary key default true constraint there_is_one_row check (one),
    home text not null,
    at timestamptz not null default '-infinity',
    noted_at timestamptz not null,
    snapshot pg_snapshot not null,
    upto_seq bigint not null,
    counted_seq bigint not null,
    compared boolean not null default false,
    witness text[]
);
comment on table tidemark.capture_round is 'How far the comparison of captured tables with their events is, one row. Written by tidemark.maintain.';
comment on column tidemark.capture_round.one is 'True.';
comment on column tidemark.capture_round.home is 'The cluster and this table there: in a restored copy the comparison begins anew.';
comment on column tidemark.capture_round.at is 'When the last step was done.';
comment on column tidemark.capture_round.noted_at is 'When the server''s counts of this round were noted.';
comment on column tidemark.capture_round.snapshot is 'Taken after the counts and after upto_seq: the events up to there are final when its transactions have ended.';
comment on column tidemark.capture_round.upto_seq is 'The last number of the log then: the last event of this round.';
comment on column tidemark.capture_round.counted_seq is 'Events up to this number have been counted.';
comment on column tidemark.capture_round.compared is 'True: the round is over.';
comment on column tidemark.capture_round.witness is 'Virtual transaction ids that were in use after the round. The next one begins when they have ended: a session counts what it committed when its next transaction ends, at the latest.';

create table tidemark.capture_count (
    name text primary key,
    relation oid not null,
    noted tidemark.capture_reading not null,
    base tidemark.capture_reading,
    base_inserts bigint not null default 0,
    base_deletes bigint not null default 0,
    inserts bigint not null default 0,
    deletes bigint not null default 0,
    round_inserts bigint not null default 0,
    round_deletes bigint not null default 0,
    status text not null default 'first' constraint status_is_known check (status in ('first', 'even', 'unclear', 'gap')),
    detail text not null default 'nothing to compare with yet',
    compared_at timestamptz
);
comment on table tidemark.capture_count is 'Captured tables: the server''s counts beside their events. Written by tidemark.maintain; the operator''s tidemark.capture_reconcile has its own checkpoints.';
comment on column tidemark.capture_count.name is 'The table''s quoted name.';
comment on column tidemark.capture_count.relation is 'The table.';
comment on column tidemark.capture_count.noted is 'Counts of the round under way.';
comment on column tidemark.capture_count.base is 'Counts with which they are compared; null: none yet.';
comment on column tidemark.capture_count.base_inserts is 'Events of inserts that base may or may not have counted: those of its round.';
comment on column tidemark.capture_count.base_deletes is 'Of deletes, likewise.';
comment on column tidemark.capture_count.inserts is 'Events of inserts since base, without those of the round under way.';
comment on column tidemark.capture_count.deletes is 'Of deletes, likewise.';
comment on column tidemark.capture_count.round_inserts is 'Events of inserts of the round under way.';
comment on column tidemark.capture_count.round_deletes is 'Of deletes, likewise.';
comment on column tidemark.capture_count.status is 'first; even; unclear: not to be compared, for the reason in detail; gap: see tidemark.capture_gap.';
comment on column tidemark.capture_count.detail is 'What the last comparison found.';
comment on column tidemark.capture_count.compared_at is 'When it was.';

grant select on tidemark.capture_round, tidemark.capture_count to tidemark_reader, tidemark_executor;

alter table tidemark.capture_gap add column counted bigint not null default 0;
comment on column tidemark.capture_gap.counted is
'Inserts without events that tidemark.maintain found by the server''s counts. As many rows must be emitted before the gap is over.';

alter table tidemark.capture_checkpoint add column seen bigint not null default 0;
comment on column tidemark.capture_checkpoint.seen is
'Events that were counted by then, of transactions that snapshot does not show to be older than all under way. The next call does not count them again.';
