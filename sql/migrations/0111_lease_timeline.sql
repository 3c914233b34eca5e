-- After the promotion of a standby that lacks the primary's last commits, what was read before is not recorded: its numbers may be those
-- of other events.

set local role tidemark_owner;

-- The default is what tidemark.timeline returns: a cursor that no worker has claimed yet belongs to a server, too.
alter table tidemark.heartbeat add column lease_timeline text not null
    default (pg_catalog.pg_control_system()).system_identifier || '/'
        || pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8);
comment on column tidemark.heartbeat.lease_timeline is
    'The cluster and the timeline on which the lease was taken last (tidemark.timeline). On another one the lease is over: what its owner has read may not be in the log.';
