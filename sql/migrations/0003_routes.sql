-- Routes, gates and the stage of the installation: what may be delivered, and whether.

set local role tidemark_owner;

create table tidemark.setting (
    key text primary key,
    value text not null,
    description text not null default ''
);
comment on table tidemark.setting is 'Settings and gates. A gate (a key that ends in ".enabled") is open when its value is "true"; absent means closed. Source: S0 dot_config.';
comment on column tidemark.setting.key is 'Name, e.g. routes.enabled, worker.<name>.enabled, outbox.retention.';
comment on column tidemark.setting.value is 'Value as text. Never a secret.';
comment on column tidemark.setting.description is 'Meaning and unit, for people.';
insert into tidemark.setting (key, value, description) values
    ('routes.enabled', 'false', 'Master gate: nothing is routed or delivered while it is closed.'),
    ('notify.bridge_enabled', 'false', 'Gate: while a worker sleeps, emit wakes it by a notification. A transaction that notified cannot be prepared (two-phase commit).'),
    ('outbox.retention', '30 days', 'Interval: a partition of the log is dropped when its newest event is older and nothing needs it any more.'),
    ('outbox.partition_events', '1000000', 'Events per partition of the log, for partitions made from now on.'),
    ('outbox.partitions_ahead', '2', 'Empty partitions that tidemark.maintain keeps ahead of the newest event.'),
    ('dead_letter.overflow', '1000', 'Open dead letters of a worker above which the finding dlq_overflow opens.'),
    ('emit_key.retention', '30 days', 'Interval for which an idempotency key of emit is remembered.');

create table tidemark.stage (
    singleton boolean primary key default true constraint there_is_one_row check (singleton),
    stage text not null default 'dry_run' constraint stage_is_known check (stage in ('dry_run', 'live')),
    system_identifier bigint,
    database text,
    changed_at timestamptz not null default pg_catalog.clock_timestamp(),
    changed_by text not null default session_user,
    reason text not null default 'installed',
    constraint live_is_bound check (stage = 'dry_run' or (system_identifier is not null and database is not null))
);
comment on table tidemark.stage is 'One row: dry_run (fresh installs) or live. Live is bound to this cluster and database, so a restored or cloned copy is disarmed. Source: S1 "route CHECK enabled=false OR dry_run=true".';
comment on column tidemark.stage.singleton is 'Always true: there is one row.';
comment on column tidemark.stage.stage is 'dry_run: no route may be enabled and live. live: it may.';
comment on column tidemark.stage.system_identifier is 'Cluster that was made live; another one does not deliver.';
comment on column tidemark.stage.database is 'Database that was made live; a copy under another name does not deliver.';
comment on column tidemark.stage.changed_at is 'When the stage was last set.';
comment on column tidemark.stage.changed_by is 'The role that logged in to set it.';
comment on column tidemark.stage.reason is 'Why, as that person said.';
insert into tidemark.stage default values;

create table tidemark.worker (
    id integer generated always as identity primary key,
    worker text not null unique constraint worker_is_a_plain_name check (worker ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'),
    source text not null default 'outbox' constraint source_is_known check (source in ('outbox', 'table')),
    handler text not null default 'route',
    handler_ref text,
    payload_columns text[] not null default '{}',
    domains text[],
    read_order text not null default 'eager' constraint read_order_is_known check (read_order in ('eager', 'strict')),
    hole_limit integer not null default 10000 constraint hole_limit_is_1_to_1000000 check (hole_limit between 1 and 1000000),
    shards integer not null default 1 constraint shards_is_1_to_256 check (shards between 1 and 256),
    page_size integer not null default 5000 constraint page_size_is_1_to_50000 check (page_size between 1 and 50000),
    page_timeout interval not null default '5 seconds'
        constraint page_timeout_is_100ms_to_10min check (page_timeout between interval '100 milliseconds' and interval '10 minutes'),
    retry_policy jsonb,
    coalesce_window interval constraint coalesce_window_is_positive check (coalesce_window > interval '0'),
    storm_fraction double precision constraint storm_fraction_is_up_to_1 check (storm_fraction > 0 and storm_fraction <= 1),
    off_peak text constraint off_peak_is_hours check (off_peak ~ '^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9] [A-Za-z0-9_+/-]+$'),
    peak_pause interval not null default '1 second' constraint peak_pause_is_up_to_1h check (peak_pause between interval '0' and interval '1 hour'),
    lock_wait_limit integer constraint lock_wait_limit_is_positive check (lock_wait_limit > 0),
    replication_lag_limit interval constraint replication_lag_limit_is_positive check (replication_lag_limit > interval '0'),
    description text not null default '',
    constraint handler_suits_source check (
        source = 'outbox' and handler in ('route', 'go') and handler_ref is null
        or source = 'table' and (handler in ('sql', 'emit') and handler_ref is not null or handler = 'go' and handler_ref is null)),
    constraint read_order_suits_source check (source = 'outbox' or read_order = 'eager')
);
comment on table tidemark.worker is 'Workers: a source to read, a handler to give it to. A new worker is a row.';
comment on column tidemark.worker.id is 'Short number used in evidence.';
comment on column tidemark.worker.worker is 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
comment on column tidemark.worker.source is 'What it reads: outbox, or table: each source (tidemark.source) for which it has a cursor.';
comment on column tidemark.worker.handler is 'What it does with a batch. Of the outbox: route (delivers it by its routes), or go (functions of a Go program take it, by routes of the kind go). Of a table: sql (hands the rows to a function), emit (makes each row an event), or go (a function of a Go program takes the rows).';
comment on column tidemark.worker.handler_ref is 'sql: schema.function, which takes an array of the table''s row type (or anyarray). emit: domain/type of the events.';
comment on column tidemark.worker.payload_columns is 'emit: columns that the payload shows beside the id and the source''s key columns. Default: none.';
comment on column tidemark.worker.domains is 'Domains whose events it decides; null: all. Others are passed over and leave no evidence.';
comment on column tidemark.worker.read_order is 'eager (default): passes numbers that have not shown up and comes back for them. strict: waits at the first one.';
comment on column tidemark.worker.hole_limit is 'Ranges of missing numbers kept at most; at the limit the worker waits and opens the finding cursor_holes. Default 10000.';
comment on column tidemark.worker.shards is 'Parts, by a hash of the source''s key columns, each with a cursor and a lease of its own. Default 1. For tables.';
comment on column tidemark.worker.page_size is 'Rows that a pass reads at most. Default 5000. For tables.';
comment on column tidemark.worker.page_timeout is 'A pass that takes longer is taken back and tried with an eighth of the rows; a single row that takes longer has failed. Default 5 s. For tables; kept by the daemon, from psql it is your statement_timeout.';
comment on column tidemark.worker.retry_policy is 'When a row that failed is tried again, as tidemark.outbound_route.retry_policy. Null: the default policy. For tables.';
comment on column tidemark.worker.coalesce_window is 'Rows of one group (the source''s group_key) that come within it are handed over as one, the latest: the worker waits so long between two looks. Null (default): every row is handed over. For tables.';
comment on column tidemark.worker.storm_fraction is 'A batch that touches more than this share of all groups opens the finding group_invalidation_storm and slows the worker down. Null (default): no guard. For tables.';
comment on column tidemark.worker.off_peak is 'Hours at full speed, e.g. "22:00-06:00 Europe/Berlin". Null (default): always. For tables.';
comment on column tidemark.worker.peak_pause is 'Outside of these hours, the pause between two passes. Default 1 s.';
comment on column tidemark.worker.lock_wait_limit is 'The worker waits while more sessions of this database wait for locks. Null (default): it does not look. For tables.';
comment on column tidemark.worker.replication_lag_limit is 'The worker waits while a standby is further behind. Null (default): it does not look. For tables.';
comment on column tidemark.worker.description is 'For people.';
insert into tidemark.worker (worker, description)
values ('default', 'Routes events of every domain.');

create table tidemark.outbound_route (
    id integer generated always as identity primary key,
    route_code text not null unique constraint route_code_is_a_plain_name check (route_code ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'),
    worker text not null default 'default' references tidemark.worker (worker),
    domain text not null constraint domain_is_exact_or_star check (domain = '*' or domain !~ '[*]'),
    type text not null default '*' constraint type_is_exact_prefix_or_star check (type ~ '^([*]|[^*]+|[^*]+[.][*])$'),
    stream text,
    key_filter text constraint key_filter_is_exact_or_prefix check (key_filter ~ '^[^*]*[*]?$' and key_filter <> ''),
    payload_filter jsonb constraint payload_filter_is_an_object check (pg_catalog.jsonb_typeof(payload_filter) = 'object'),
    target_kind text not null,
    target_ref text not null,
    exclusive boolean not null default false,
    enabled boolean not null default false,
    dry_run boolean not null default true,
    fail_closed boolean not null default true,
    ordering text not null default 'none' constraint ordering_is_known check (ordering in ('none', 'key')),
    retry_policy jsonb,
    timeout interval not null default '10 seconds' constraint timeout_is_positive check (timeout > interval '0'),
    options jsonb not null default '{}' constraint options_is_an_object check (pg_catalog.jsonb_typeof(options) = 'object'),
    concurrency integer not null default 4 constraint concurrency_is_1_to_1000 check (concurrency between 1 and 1000),
    description text not null default ''
);
create index outbound_route_worker on tidemark.outbound_route (worker);
comment on table tidemark.outbound_route is 'Where committed events go. A new route is off and in dry run. Source: S1 iu_outbound_route.';
comment on column tidemark.outbound_route.id is 'Short number used in evidence.';
comment on column tidemark.outbound_route.route_code is 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
comment on column tidemark.outbound_route.worker is 'Worker that serves the route. Default: default.';
comment on column tidemark.outbound_route.domain is 'Domain of the events, or "*" for all.';
comment on column tidemark.outbound_route.type is 'Type of the events: exact, prefix ("order.*"), or "*" (default).';
comment on column tidemark.outbound_route.stream is 'Stream of the events; null (default): any.';
comment on column tidemark.outbound_route.key_filter is 'Only events whose key is this, or begins with what stands before a final "*"; null (default): any, and none.';
comment on column tidemark.outbound_route.payload_filter is 'Only events whose payload contains this (jsonb @>); null (default): any.';
comment on column tidemark.outbound_route.target_kind is 'sql, notify, river (served inside the database), webhook, kafka, nats, stdout (by the daemon) or go (by a Go program). Another kind fails and is dead-lettered.';
comment on column tidemark.outbound_route.target_ref is 'sql: schema.function taking the event as jsonb. notify: channel. webhook: URL. kafka: topic. nats: subject. river: job kind. go: pattern of the handler.';
comment on column tidemark.outbound_route.exclusive is 'True: no other enabled route may claim the same target for the same event; both fail as ambiguous. Default false.';
comment on column tidemark.outbound_route.enabled is 'False (default): events are recorded as disabled, nothing is delivered. One update, obeyed within a second.';
comment on column tidemark.outbound_route.dry_run is 'True (default): the decision is recorded, nothing is delivered.';
comment on column tidemark.outbound_route.fail_closed is 'True (default): an event that the route cannot decide fails and is kept as a dead letter. False: it is skipped, with the reason.';
comment on column tidemark.outbound_route.ordering is 'none (default), or key: an event waits behind an earlier one of its key that has not been delivered.';
comment on column tidemark.outbound_route.retry_policy is 'Object with any of max_attempts (1 to 100, default 10), base_seconds (default 1), max_seconds (default 3600), jitter (0 to 1, default 0.2); null: the defaults.';
comment on column tidemark.outbound_route.timeout is 'Longest time for one delivery. Default 10 seconds.';
comment on column tidemark.outbound_route.concurrency is 'Deliveries under way at once. Default 4.';
comment on column tidemark.outbound_route.options is 'What a kind of target takes beside target_ref, e.g. {"secret": "NAME", "format": "json", "rate_per_second": 50}. Names of secrets, never a secret. The daemon refuses an option that the kind has not: the route waits, with a finding. Default {}.';
comment on column tidemark.outbound_route.description is 'For people.';

grant select on tidemark.setting, tidemark.stage, tidemark.worker, tidemark.outbound_route
    to tidemark_reader, tidemark_executor;
grant insert, update on tidemark.setting, tidemark.worker, tidemark.outbound_route to tidemark_admin;
