-- Changes of tables as events: which, and what there is about them beside the events.

set local role tidemark_owner;

insert into tidemark.setting (key, value, description) values
    ('capture.payload_limit', '1000000', 'Bytes of text in the contract''s columns of one row, above which its event cannot be written.'),
    ('captured.retention', '30 days', 'Interval for which tidemark.captured is kept.');

create table tidemark.inbound_route (
    id integer generated always as identity primary key,
    route_code text not null unique constraint route_code_is_a_plain_name check (route_code ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'),
    source_object_kind text not null default 'table' constraint source_object_kind_is_table check (source_object_kind = 'table'),
    source_schema text not null constraint source_is_not_tidemark check (source_schema not in ('tidemark', 'pg_catalog', 'information_schema')),
    source_table text not null,
    sql_event text not null constraint sql_event_is_known check (sql_event in ('insert', 'update', 'delete', 'truncate')),
    domain text not null,
    type text not null,
    stream text,
    enabled boolean not null default false,
    dry_run boolean not null default true,
    fail_closed boolean not null default true,
    idempotency_policy text not null default 'change'
        constraint idempotency_policy_is_known check (idempotency_policy in ('change', 'transaction')),
    payload_columns text[] not null default '{}',
    description text not null default '',
    constraint truncate_has_no_columns check (sql_event <> 'truncate' or payload_columns = '{}'),
    constraint one_route_for_an_operation unique (source_schema, source_table, sql_event)
);
comment on table tidemark.inbound_route is 'Which changes of which tables become events. A new route is off and in dry run; the table''s trigger comes with tidemark.capture_attach. Source: S1 iu_sql_event_route.';
comment on column tidemark.inbound_route.id is 'Short number used in evidence.';
comment on column tidemark.inbound_route.route_code is 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
comment on column tidemark.inbound_route.source_object_kind is 'table (default, and the only kind).';
comment on column tidemark.inbound_route.source_schema is 'Schema of the table, as the catalog spells it.';
comment on column tidemark.inbound_route.source_table is 'The table, as the catalog spells it.';
comment on column tidemark.inbound_route.sql_event is 'insert, update, delete or truncate.';
comment on column tidemark.inbound_route.domain is 'Domain of the events.';
comment on column tidemark.inbound_route.type is 'Type of the events. While it is not registered or not enabled there is no event, and tidemark.captured says so.';
comment on column tidemark.inbound_route.stream is 'Stream of the events; null (default): none.';
comment on column tidemark.inbound_route.enabled is 'False (default): changes leave nothing. One update; the trigger may stay.';
comment on column tidemark.inbound_route.dry_run is 'True (default): a change leaves a row in tidemark.captured, and no event.';
comment on column tidemark.inbound_route.fail_closed is 'True (default): a transaction whose event cannot be written fails. False: it goes on without the event, and tidemark.captured says so.';
comment on column tidemark.inbound_route.idempotency_policy is 'change (default): each change of a row is an event. transaction: the first change of a row in a transaction is, later ones in it are not; rows without a primary key as change.';
comment on column tidemark.inbound_route.payload_columns is 'The contract: columns whose values the payload shows. Default none: metadata only.';
comment on column tidemark.inbound_route.description is 'For people.';

-- No reference to the route: its check would lock the route's row in every transaction that changes the table, and a
-- change of the route would wait for them.
create table tidemark.captured (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    route_id integer not null,
    outcome text not null constraint outcome_is_known check (outcome in ('dry_run', 'unregistered', 'failed')),
    rows bigint not null,
    statements bigint not null default 1,
    actor text not null,
    reason text not null default ''
);
create index captured_at on tidemark.captured using brin (at);
create index captured_route on tidemark.captured (route_id, at);
comment on table tidemark.captured is 'Statements whose changes became no event though a route was on. Only ever inserted into by the statement''s transaction; tidemark.maintain sums up what is older than an hour, by hour.';
comment on column tidemark.captured.id is 'Number.';
comment on column tidemark.captured.at is 'When; of a sum, the beginning of the hour.';
comment on column tidemark.captured.route_id is 'tidemark.inbound_route.id.';
comment on column tidemark.captured.outcome is 'dry_run: the route is one. unregistered: its type is not registered or not enabled. failed: the event could not be written, and the route is not fail_closed.';
comment on column tidemark.captured.rows is 'Rows that would have been events.';
comment on column tidemark.captured.statements is 'Statements summed up here. Default 1.';
comment on column tidemark.captured.actor is 'The role that logged in.';
comment on column tidemark.captured.reason is 'Why there is no event. Never a value of the row.';

create table tidemark.capture_checkpoint (
    relation oid primary key,
    at timestamptz not null,
    snapshot pg_snapshot not null,
    seq bigint not null,
    inserted bigint not null,
    updated bigint not null,
    deleted bigint not null,
    rollbacks bigint not null,
    stats_reset timestamptz
);
comment on table tidemark.capture_checkpoint is 'Where the last tidemark.capture_reconcile of a table ended: the server''s counters then.';
comment on column tidemark.capture_checkpoint.relation is 'The table.';
comment on column tidemark.capture_checkpoint.at is 'When.';
comment on column tidemark.capture_checkpoint.snapshot is 'What was visible then.';
comment on column tidemark.capture_checkpoint.seq is 'Last number of the log then.';
comment on column tidemark.capture_checkpoint.inserted is 'pg_stat_all_tables.n_tup_ins, of a partitioned table summed over its partitions.';
comment on column tidemark.capture_checkpoint.updated is 'n_tup_upd, likewise.';
comment on column tidemark.capture_checkpoint.deleted is 'n_tup_del, likewise.';
comment on column tidemark.capture_checkpoint.rollbacks is 'pg_stat_database.xact_rollback.';
comment on column tidemark.capture_checkpoint.stats_reset is 'pg_stat_database.stats_reset.';

grant select on tidemark.inbound_route, tidemark.captured, tidemark.capture_checkpoint to tidemark_reader, tidemark_executor;
grant insert, update on tidemark.inbound_route to tidemark_admin;
