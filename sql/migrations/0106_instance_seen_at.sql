-- By a clock that steps back, instances that were killed would count as alive again.

set local role tidemark_owner;

alter table tidemark.worker_instance add column seen_at timestamptz not null default pg_catalog.clock_timestamp();
comment on column tidemark.worker_instance.seen_at is 'When it last said so. It does not count before: the clock was set back since.';
