-- The registry of event types and the log of events.

set local role tidemark_owner;

create type tidemark.lane as enum ('immediate', 'batch');
comment on type tidemark.lane is 'How soon an event wants to be handled: immediate (default) or in batches.';

create type tidemark.severity as enum ('info', 'warning', 'high', 'critical');
comment on type tidemark.severity is 'How bad an event or a finding is, mildest first.';

create table tidemark.domain (
    domain text primary key constraint domain_is_a_plain_name check (domain ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'),
    metadata_only boolean not null default false,
    description text not null default ''
);
comment on table tidemark.domain is 'Namespaces of event types. Source: S0 event_domain.';
comment on column tidemark.domain.domain is 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
comment on column tidemark.domain.metadata_only is 'True: payloads may not hold a key of tidemark.forbidden_key at any depth. Default false.';
comment on column tidemark.domain.description is 'For people.';

create table tidemark.event_type (
    domain text not null references tidemark.domain,
    type text not null constraint type_has_no_space_or_star check (type ~ '^[^[:space:]*]{1,128}$'),
    version integer not null default 1 constraint version_is_positive check (version > 0),
    schema jsonb constraint schema_is_an_object check (pg_catalog.jsonb_typeof(schema) = 'object'),
    enabled boolean not null default true,
    description text not null default '',
    metadata_only boolean not null default false,
    unchecked boolean not null generated always as (schema is null and not metadata_only) stored,
    primary key (domain, type)
);
comment on table tidemark.event_type is 'Event types that may be emitted. A type that is not here, or not enabled, is not emitted. Source: S0, S1 event_type_registry.';
comment on column tidemark.event_type.domain is 'Domain that the type belongs to.';
comment on column tidemark.event_type.type is 'Name of the type: no white space, no "*"; at most 128 characters.';
comment on column tidemark.event_type.version is 'Version of the payload''s schema; only informative. Default 1.';
comment on column tidemark.event_type.schema is 'JSON Schema of the payload, or null. SQL checks "required" and the "type" of each of "properties"; the Go client checks all of it.';
comment on column tidemark.event_type.enabled is 'False: emit returns null and stores nothing. Default true.';
comment on column tidemark.event_type.description is 'For people.';
comment on column tidemark.event_type.metadata_only is 'Copy of the domain''s metadata_only, kept by triggers: emit reads one row of the registry, not two.';
comment on column tidemark.event_type.unchecked is 'True: of a payload only that it is an object is checked.';

create table tidemark.forbidden_key (
    key text primary key constraint key_is_lower_case_words check (key ~ '^[a-z0-9]+(_[a-z0-9]+)*$'),
    pattern text not null generated always as (
        '\\*"[[:space:]_.-]*' || pg_catalog.regexp_replace(pg_catalog.replace(key, '_', ''), '(.)(?=.)', '\1[[:space:]_.-]*', 'g')
        || '[[:space:]_.-]*\\*"[[:space:]]*:') stored
);
comment on table tidemark.forbidden_key is 'Keys refused in payloads of metadata-only domains, in heartbeats, in signals and in logs: at any depth, in any letter case, with or without separators, also inside encoded JSON. Source: S4 last_beat_payload CHECK.';
comment on column tidemark.forbidden_key.key is 'Lower case, words joined by "_".';
comment on column tidemark.forbidden_key.pattern is 'Regular expression that finds the key in the text of a JSON document.';
insert into tidemark.forbidden_key (key)
values ('body'), ('content'), ('raw'), ('vector'), ('embedding'),
       ('secret'), ('token'), ('password'), ('ssn'), ('personal_data');

-- The primary key is the only index that every emit pays for. CACHE 1 is part of the cursor's
-- soundness: a session that keeps numbers in reserve would use them out of order.
create table tidemark.outbox (
    seq bigint generated always as identity (cache 1),
    event_id uuid not null,
    created_at timestamptz not null,
    occurred_at timestamptz not null,
    lane tidemark.lane not null,
    severity tidemark.severity not null,
    domain text not null,
    type text not null,
    stream text,
    key text,
    subject_table text,
    subject_ref text,
    idempotency_key text,
    trace text,
    actor text not null,
    payload jsonb not null,
    primary key (seq)
) partition by range (seq);
comment on table tidemark.outbox is 'The log of events: append-only, partitioned by number. Written by tidemark.emit only; rows leave by retention, a partition at a time. Source: S0 event_outbox.';
comment on column tidemark.outbox.seq is 'Number of the event, taken at emit. Not the order of commits: see tidemark.read_outbox.';
comment on column tidemark.outbox.event_id is 'The event''s identity everywhere: uuid version 7, its time being created_at.';
comment on column tidemark.outbox.created_at is 'When emit ran (clock_timestamp, not the start of the transaction).';
comment on column tidemark.outbox.occurred_at is 'When it happened, as the emitter says. Default: created_at.';
comment on column tidemark.outbox.lane is 'immediate (default) or batch.';
comment on column tidemark.outbox.severity is 'info (default), warning, high or critical.';
comment on column tidemark.outbox.domain is 'Domain of the type.';
comment on column tidemark.outbox.type is 'Type of the event, registered in tidemark.event_type.';
comment on column tidemark.outbox.stream is 'Free grouping inside a type, e.g. alert; null: none.';
comment on column tidemark.outbox.key is 'Ordering key; null: no order is asked for. Order per key holds for writers that lock the key''s own row before they emit.';
comment on column tidemark.outbox.subject_table is 'Table of the row that the event is about.';
comment on column tidemark.outbox.subject_ref is 'Primary key of that row, as text.';
comment on column tidemark.outbox.idempotency_key is 'A second emit with the same (domain, idempotency_key) stores nothing and returns the first event''s id.';
comment on column tidemark.outbox.trace is 'W3C traceparent.';
comment on column tidemark.outbox.actor is 'Who did it. Default: session_user.';
comment on column tidemark.outbox.payload is 'JSON object.';

-- An event is found by its uuid through the time that the uuid holds: a few bytes of BRIN, not a second btree.
create index outbox_created_at on tidemark.outbox using brin (created_at) with (pages_per_range = 32);

create table tidemark.outbox_p0 partition of tidemark.outbox for values from (0) to (1000000);
create table tidemark.outbox_p1000000 partition of tidemark.outbox for values from (1000000) to (2000000);
create table tidemark.outbox_p2000000 partition of tidemark.outbox for values from (2000000) to (3000000);
-- Catches what is emitted when nobody ran tidemark.maintain: an emit never fails for want of a partition.
create table tidemark.outbox_rest partition of tidemark.outbox default;

create table tidemark.emit_key (
    domain text not null,
    idempotency_key text not null,
    event_id uuid not null,
    created_at timestamptz not null,
    primary key (domain, idempotency_key)
);
comment on table tidemark.emit_key is 'Idempotency keys of events, claimed in the emitter''s transaction. Kept for setting emit_key.retention.';
comment on column tidemark.emit_key.domain is 'Scope of the key.';
comment on column tidemark.emit_key.idempotency_key is 'The key as given to emit.';
comment on column tidemark.emit_key.event_id is 'The first event emitted with it.';
comment on column tidemark.emit_key.created_at is 'When that event was emitted.';
create index emit_key_created_at on tidemark.emit_key using brin (created_at);

grant select on tidemark.domain, tidemark.event_type, tidemark.forbidden_key
    to tidemark_reader, tidemark_emitter, tidemark_executor;
grant insert, update on tidemark.domain, tidemark.event_type to tidemark_admin;
grant insert, delete on tidemark.forbidden_key to tidemark_admin;
grant select (seq, event_id, created_at, occurred_at, lane, severity, domain, type, stream, key,
              subject_table, subject_ref, idempotency_key, trace, actor) on tidemark.outbox to tidemark_reader;
-- Who runs workers is given payloads by them anyway.
grant select on tidemark.outbox to tidemark_admin, tidemark_executor;
-- Reading how far the numbers have come; nobody but emit takes one.
grant select on sequence tidemark.outbox_seq_seq to tidemark_reader, tidemark_executor;
