-- A worker of the log may have shards, as one of tables: each with a cursor and a lease, on any host.

set local role tidemark_owner;

-- So far it was stored for a worker of the log, and had no effect.
update tidemark.worker set shards = 1 where source <> 'table' and shards <> 1;
comment on column tidemark.worker.shards is 'Parts, each with a cursor and a lease of its own. Default 1. Of the log by tidemark.shard_of: of the key of an event, or of its number; of a table by a hash of the source''s key columns.';

alter table tidemark.worker_cursor add column dealt_through bigint;
comment on column tidemark.worker_cursor.dealt_through is 'Of a worker of the log whose number of shards was changed: up to this number another shard may have decided an event before. One with any evidence is not decided again, also for routes that are newer. Null: nothing was dealt out anew since the cursor was made or rewound.';

alter table tidemark.pending add column shard integer not null default 0;
comment on column tidemark.pending.shard is 'Shard of the worker that delivers it. Replays are of shard 0. Default 0.';
grant select (shard) on tidemark.pending to tidemark_reader;

create table tidemark.worker_instance (
    worker text not null,
    owner text not null,
    seen_until timestamptz not null,
    primary key (worker, owner)
);
comment on table tidemark.worker_instance is 'Instances that want shards of a worker of the log. Each has at most its share: the shards divided by the instances (tidemark.shard_share).';
comment on column tidemark.worker_instance.worker is 'The worker.';
comment on column tidemark.worker_instance.owner is 'The instance, as heartbeat.lease_owner names it.';
comment on column tidemark.worker_instance.seen_until is 'It counts until then; it says again and again that it waits for a shard.';
grant select on tidemark.worker_instance to tidemark_reader, tidemark_executor;

-- They have a parameter more.
drop function if exists tidemark.beat, tidemark.deliver_inside, tidemark.left_over, tidemark.live_inside,
    tidemark.log_next, tidemark.pass_payload, tidemark.pass_read, tidemark.pass_settle, tidemark.pending_due,
    tidemark.pending_hold, tidemark.pending_keys, tidemark.read_outbox, tidemark.route_gone,
    tidemark.route_worker_run, tidemark.settle, tidemark.settle_fresh, tidemark.settle_missing,
    tidemark.settle_refusal, tidemark.worker_finding;
