-- Commands: services, what they offer, who may ask, which keys were asked, and what is kept of records.

set local role tidemark_owner;

create table tidemark.command_reason (
    code text primary key,
    class text not null,
    meaning text not null,
    producer text not null
);
comment on table tidemark.command_reason is 'The closed set of reason codes of commands. Source: S3 reason taxonomy.';
comment on column tidemark.command_reason.code is 'The code, as results and dead letters have it.';
comment on column tidemark.command_reason.class is 'Part before the dot: envelope, contract, identity, idempotency, sql or runtime.';
comment on column tidemark.command_reason.meaning is 'What happened.';
comment on column tidemark.command_reason.producer is 'What the producer does about it.';
insert into tidemark.command_reason (code, class, meaning, producer)
select r.code, split_part(r.code, '.', 1), r.meaning, r.producer from (values
    ('envelope.invalid', 'the record is not a valid envelope', 'correct the envelope and send it again; the key is free'),
    ('envelope.too_large', 'the record, or its metadata.context, is too large', 'send a reference to what is large; the key is free'),
    ('envelope.unsupported_version', 'the form of the envelope is not supported', 'use the ten members, or CloudEvents 1.0; the key is free'),
    ('contract.unknown_service', 'no service of this name is registered', 'correct the name, or have the service registered; the key is free'),
    ('contract.unknown_command', 'the service has no command of this name', 'correct the name, or have the command registered; the key is free'),
    ('contract.unsupported_version', 'the command has no such version', 'use a registered version; the key is free'),
    ('contract.unknown_schema_version', 'the schema version is newer than the registered one', 'have the new schema registered before sending it; the key is free'),
    ('contract.payload_invalid', 'the payload does not fit the schema of the command', 'correct the payload and send it again; the key is free'),
    ('contract.disabled', 'the command is off, and its policy is to reject', 'wait until the command is on, and send it again; the key is free'),
    ('identity.topic_mismatch', 'the service of the envelope is not the service of the topic', 'send to the topic of the service'),
    ('identity.signature_missing', 'the topic is shared, and the record has no signature', 'sign the record, or send to the topic of the service'),
    ('identity.signature_invalid', 'the signature does not match the record', 'sign exactly the bytes that are sent, for this cluster and topic'),
    ('identity.key_unknown', 'no key of this kid is registered for the service', 'have the key registered'),
    ('identity.key_revoked', 'the key was revoked, or was not valid at the time of the record', 'sign with a valid key'),
    ('identity.producer_not_allowed', 'the producer is not on the allowlist of the command', 'have the producer allowed'),
    ('identity.tenant_not_allowed', 'the producer may not act for this tenant', 'have the tenant allowed for the producer'),
    ('idempotency.key_reused', 'the key was used before for another command or payload', 'use a new key for a new command'),
    ('idempotency.expired', 'the record is older than claims are kept', 'check whether the command took effect, then send it with a new record'),
    ('sql.constraint', 'a constraint of the database refused the effect', 'correct the command, and send it with a new key'),
    ('sql.data', 'the database could not read a value', 'correct the command, and send it with a new key'),
    ('sql.business_rule', 'the function of the command refused it', 'read error_message, and send a new command with a new key'),
    ('sql.permission', 'the role of the service lacks a right; the command waits', 'nothing: the operator has to grant the right'),
    ('sql.undefined', 'a function, table or column is missing; the command waits', 'nothing: the operator has to restore it'),
    ('runtime.retries_exhausted', 'the error could heal, and did not within the retries', 'failed_retryable: nothing; failed_terminal: send it with a new key'),
    ('runtime.timeout', 'the command took longer than its timeout', 'failed_retryable: nothing; failed_terminal: send it with a new key'),
    ('runtime.result_too_large', 'the result is too large; the effect was rolled back', 'ask for less, with a new key'),
    ('runtime.internal', 'the command failed with an error of no other class', 'tell the operator; then send it with a new key')
) r (code, meaning, producer);

create table tidemark.service (
    service text primary key constraint service_is_a_label check (service ~ '^[a-z][a-z0-9_-]{0,39}$'),
    role name not null unique,
    unknown_command text not null default 'result' constraint unknown_command_is_known check (unknown_command in ('result', 'dead_letter', 'both')),
    description text not null default '',
    created_at timestamptz not null default pg_catalog.clock_timestamp()
);
comment on table tidemark.service is 'Services that offer commands. The gate of a service is commands.<service>.enabled. Source: S3 service namespace.';
comment on column tidemark.service.service is 'Name: a lower-case letter, then letters, digits, "_", "-"; at most 40 characters. First label of its commands'' names.';
comment on column tidemark.service.role is 'Database role under which its commands run: cannot log in, and may execute nothing but its functions. Default tidemark_service_<service>.';
comment on column tidemark.service.unknown_command is 'What becomes of a command or version that the service does not have: result (default), dead_letter or both.';
comment on column tidemark.service.description is 'For people.';
comment on column tidemark.service.created_at is 'When it was registered.';

create table tidemark.command (
    id integer generated always as identity primary key,
    service text not null references tidemark.service,
    command text not null constraint command_is_dotted_labels check (command ~ '^[a-z][a-z0-9_-]*([.][a-z][a-z0-9_-]*)*$' and length(command) <= 100),
    version integer not null default 1 constraint version_is_positive check (version > 0),
    name text not null generated always as (service || '.' || command || '/v' || version::text) stored,
    schema_version integer not null default 1 constraint schema_version_is_positive check (schema_version > 0),
    function text,
    statement text,
    parameters jsonb not null default '{}' constraint parameters_is_an_object check (pg_catalog.jsonb_typeof(parameters) = 'object'),
    payload_schema jsonb not null default '{"type": "object", "additionalProperties": false}' constraint payload_schema_is_an_object check (pg_catalog.jsonb_typeof(payload_schema) = 'object'),
    result_schema jsonb constraint result_schema_is_an_object check (pg_catalog.jsonb_typeof(result_schema) = 'object'),
    timeout interval not null default '10 seconds' constraint timeout_is_1_ms_to_10_min check (timeout between interval '1 millisecond' and interval '10 minutes'),
    retry_policy jsonb,
    terminal text[] not null default '{}' constraint terminal_is_sqlstates check (pg_catalog.array_to_string(terminal, ' ', '?') ~ '^([0-9A-Z]{5}( |$))*$'),
    retention interval not null default '30 days' constraint retention_is_an_hour_or_more check (retention >= interval '1 hour'),
    when_disabled text not null default 'hold' constraint when_disabled_is_known check (when_disabled in ('hold', 'reject')),
    enabled boolean not null default false,
    dry_run boolean not null default true,
    description text not null default '',
    unique (service, command, version),
    constraint command_has_one_body check ((function is null) <> (statement is null))
);
comment on table tidemark.command is 'What services offer: a function or a statement for each command and version. A new command is off and in dry run. Source: S3 command resolution.';
comment on column tidemark.command.id is 'Number; tidemark.command_<id> is the function that runs it with the rights of the service.';
comment on column tidemark.command.service is 'The service.';
comment on column tidemark.command.command is 'Name behind the service''s, e.g. charge.capture: labels of lower-case letters, digits, "_", "-", joined by dots.';
comment on column tidemark.command.version is 'Version of the command, from 1.';
comment on column tidemark.command.name is 'service.command/vN.';
comment on column tidemark.command.schema_version is 'Newest version of payload_schema. Payloads of this version and older ones are taken. Default 1.';
comment on column tidemark.command.function is 'schema.function taking the payload (jsonb), or the payload and the context (jsonb, jsonb); returns jsonb, json or void. Null: statement.';
comment on column tidemark.command.statement is 'One SQL statement with parameters :name, in place of a function; the row that it returns is the result. Null: function.';
comment on column tidemark.command.parameters is 'Of a statement: type of each parameter, e.g. {"invoice": "bigint"}. Its value is the member of that name of the payload.';
comment on column tidemark.command.payload_schema is 'JSON Schema of the payload. Default: an empty object.';
comment on column tidemark.command.result_schema is 'JSON Schema of the result, for its consumers; null: none.';
comment on column tidemark.command.timeout is 'Longest time for one execution, 1 ms to 10 minutes. Default 10 seconds.';
comment on column tidemark.command.retry_policy is 'Object with any of max_attempts (1 to 100, default 10), base_seconds (default 1), max_seconds (default 3600), jitter (0 to 1, default 0.2); null: the defaults.';
comment on column tidemark.command.terminal is 'SQLSTATEs that the function raises for a command that must not be tried again. Default none beside the classes 22 and 23 and P0001.';
comment on column tidemark.command.retention is 'Interval for which the claim of a key is kept; an older record is refused. Default 30 days.';
comment on column tidemark.command.when_disabled is 'While the command is off: hold (default; its records wait) or reject.';
comment on column tidemark.command.enabled is 'False (default): the command does not run.';
comment on column tidemark.command.dry_run is 'True (default): the command runs and is rolled back; its would-be result is in tidemark.command_record.';
comment on column tidemark.command.description is 'For people.';

create table tidemark.command_producer (
    id integer generated always as identity primary key,
    service text not null references tidemark.service,
    command text,
    version integer,
    producer text not null constraint producer_is_1_to_200_characters check (length(producer) between 1 and 200),
    tenants text[],
    allowed_at timestamptz not null default pg_catalog.clock_timestamp(),
    unique nulls not distinct (service, producer, command, version),
    constraint version_is_of_a_command check (version is null or command is not null)
);
comment on table tidemark.command_producer is 'Who may ask for what. A service without a row here takes no commands. Source: S3 producer allowlist.';
comment on column tidemark.command_producer.id is 'Number.';
comment on column tidemark.command_producer.service is 'The service.';
comment on column tidemark.command_producer.command is 'The command; null: every command of the service.';
comment on column tidemark.command_producer.version is 'Its version; null: every version.';
comment on column tidemark.command_producer.producer is 'Identity of the producer.';
comment on column tidemark.command_producer.tenants is 'Tenants for which the producer may ask; with "*" all, and none. Null (default): only commands without a tenant.';
comment on column tidemark.command_producer.allowed_at is 'When.';

create table tidemark.producer_key (
    kid text primary key constraint kid_is_1_to_200_characters check (kid ~ '^[[:graph:]]{1,200}$'),
    service text not null references tidemark.service,
    producer text not null constraint producer_is_1_to_200_characters check (length(producer) between 1 and 200),
    public_key jsonb not null,
    tenants text[],
    commands text[],
    valid_from timestamptz not null default pg_catalog.clock_timestamp(),
    valid_until timestamptz,
    revoked_at timestamptz,
    constraint public_key_is_ed25519 check (public_key ->> 'kty' = 'OKP' and public_key ->> 'crv' = 'Ed25519' and public_key ->> 'x' ~ '^[A-Za-z0-9_-]{43}$'),
    constraint private_key_is_not_stored check (not public_key ? 'd'),
    constraint validity_is_a_span check (valid_until > valid_from)
);
create index producer_key_service on tidemark.producer_key (service);
comment on table tidemark.producer_key is 'Public keys by which producers sign commands. Source: S3 producer identity.';
comment on column tidemark.producer_key.kid is 'Name of the key, as the header of a signature has it.';
comment on column tidemark.producer_key.service is 'Service to which the key may sign commands.';
comment on column tidemark.producer_key.producer is 'Whose key it is.';
comment on column tidemark.producer_key.public_key is 'JWK: {"kty": "OKP", "crv": "Ed25519", "x": …}, without the private part.';
comment on column tidemark.producer_key.tenants is 'Tenants for which the key may sign; with "*" all. Null (default): what the allowlist allows.';
comment on column tidemark.producer_key.commands is 'Commands that the key may sign; null (default): what the allowlist allows.';
comment on column tidemark.producer_key.valid_from is 'Not before, by the broker''s timestamp of the record. Default: now.';
comment on column tidemark.producer_key.valid_until is 'Not at or after; null: no end.';
comment on column tidemark.producer_key.revoked_at is 'Since when the key is refused whatever the record''s timestamp; null: it is not.';

create table tidemark.command_claim (
    service text not null,
    idempotency_key text not null,
    fingerprint bytea not null,
    state text not null constraint state_is_known check (state in ('processed', 'failed_retryable', 'failed_terminal')),
    event_id uuid not null,
    command text not null,
    version integer not null,
    tenant text,
    producer text,
    via text not null constraint via_is_known check (via in ('acl', 'jws', 'ingress', 'claimed', 'psql')),
    login name,
    topic_id text,
    partition integer,
    "offset" bigint,
    result json,
    error_code text references tidemark.command_reason,
    error_message text,
    processed_at timestamptz not null,
    attempts integer not null default 1,
    expires_at timestamptz not null,
    primary key (service, idempotency_key)
);
create index command_claim_error_code on tidemark.command_claim (error_code) where error_code is not null;
create index command_claim_expires_at on tidemark.command_claim using brin (expires_at) with (pages_per_range = 32);
comment on table tidemark.command_claim is 'Idempotency keys of commands, each with its state and stored result. Kept for the command''s retention. Source: S3 idempotency model.';
comment on column tidemark.command_claim.service is 'The service: scope of the key.';
comment on column tidemark.command_claim.idempotency_key is 'The key.';
comment on column tidemark.command_claim.fingerprint is 'SHA-256 of service, tenant, command, version and payload (tidemark.command_fingerprint): tells another command under the same key.';
comment on column tidemark.command_claim.state is 'processed, failed_retryable (parked) or failed_terminal.';
comment on column tidemark.command_claim.event_id is 'event_id of the first that asked.';
comment on column tidemark.command_claim.command is 'The command.';
comment on column tidemark.command_claim.version is 'Its version.';
comment on column tidemark.command_claim.tenant is 'metadata.tenant.';
comment on column tidemark.command_claim.producer is 'metadata.producer, as claimed.';
comment on column tidemark.command_claim.via is 'How the producer was verified: acl (the topic), jws (a signature), ingress, claimed (not verified) or psql (command_run).';
comment on column tidemark.command_claim.login is 'The role that logged in, from psql; null: from Kafka.';
comment on column tidemark.command_claim.topic_id is 'Id of the topic of the record; null from psql.';
comment on column tidemark.command_claim.partition is 'Partition of the record.';
comment on column tidemark.command_claim."offset" is 'Offset of the record.';
comment on column tidemark.command_claim.result is 'The result, byte for byte as it was published.';
comment on column tidemark.command_claim.error_code is 'Why it failed; null where it did not.';
comment on column tidemark.command_claim.error_message is 'Message of the error, for people.';
comment on column tidemark.command_claim.processed_at is 'When it came to this state.';
comment on column tidemark.command_claim.attempts is 'How often it was executed.';
comment on column tidemark.command_claim.expires_at is 'tidemark.maintain deletes the claim from then on, unless the command is parked.';

create table tidemark.command_parked (
    service text not null,
    idempotency_key text not null,
    position bigint not null generated always as identity,
    key text not null,
    call jsonb not null,
    error_count integer not null default 0,
    next_attempt_at timestamptz not null,
    first_failed_at timestamptz not null default pg_catalog.clock_timestamp(),
    sqlstate text,
    primary key (service, idempotency_key),
    foreign key (service, idempotency_key) references tidemark.command_claim
);
create index command_parked_key on tidemark.command_parked (service, key, position);
create index command_parked_due on tidemark.command_parked (next_attempt_at);
comment on table tidemark.command_parked is 'Commands that wait for another attempt, and those of the same ordering key that wait behind them.';
comment on column tidemark.command_parked.service is 'The service.';
comment on column tidemark.command_parked.idempotency_key is 'Key of the command; its claim is in state failed_retryable.';
comment on column tidemark.command_parked.position is 'Order among commands of one ordering key.';
comment on column tidemark.command_parked.key is 'Ordering key: the record''s, or the idempotency key.';
comment on column tidemark.command_parked.call is 'The command as it was checked.';
comment on column tidemark.command_parked.error_count is 'Executions that failed so far.';
comment on column tidemark.command_parked.next_attempt_at is 'Not before; infinity: it waits behind an earlier command of its key.';
comment on column tidemark.command_parked.first_failed_at is 'When it was parked.';
comment on column tidemark.command_parked.sqlstate is 'SQLSTATE of the last failure; null: it was not tried yet.';

create table tidemark.command_record (
    id bigint generated always as identity primary key,
    recorded_at timestamptz not null default pg_catalog.clock_timestamp(),
    why text not null constraint why_is_known check (why in ('dead_letter', 'dry_run')),
    service text,
    event_id uuid,
    idempotency_key text,
    topic text,
    topic_id text,
    partition integer,
    "offset" bigint,
    record_at timestamptz,
    key bytea,
    value bytea,
    headers jsonb,
    document json,
    replayed_at timestamptz
);
create unique index command_record_place on tidemark.command_record (topic_id, partition, "offset", why) where topic_id is not null;
create index command_record_recorded_at on tidemark.command_record using brin (recorded_at) with (pages_per_range = 32);
comment on table tidemark.command_record is 'Raw records of dead letters, and what dry runs would have answered.';
comment on column tidemark.command_record.id is 'Number.';
comment on column tidemark.command_record.recorded_at is 'When.';
comment on column tidemark.command_record.why is 'dead_letter or dry_run.';
comment on column tidemark.command_record.service is 'The service; null: it could not be told.';
comment on column tidemark.command_record.event_id is 'event_id of the envelope; null: it could not be read.';
comment on column tidemark.command_record.idempotency_key is 'Key of the envelope; null: it could not be read.';
comment on column tidemark.command_record.topic is 'Topic of the record; null from psql.';
comment on column tidemark.command_record.topic_id is 'Id of that topic.';
comment on column tidemark.command_record.partition is 'Partition of the record.';
comment on column tidemark.command_record."offset" is 'Offset of the record.';
comment on column tidemark.command_record.record_at is 'The broker''s timestamp of the record.';
comment on column tidemark.command_record.key is 'Key of the record, byte for byte.';
comment on column tidemark.command_record.value is 'Value of the record, byte for byte; from psql the envelope as it was given.';
comment on column tidemark.command_record.headers is 'Headers of the record, in order: an array of [name, value in base64].';
comment on column tidemark.command_record.document is 'Of a dry run: the result that it would have had.';
comment on column tidemark.command_record.replayed_at is 'When a replay took it up; null: none did.';

-- An upgrade from a release before 0039 has not made the trigger yet that names the actor of the audit.
alter table tidemark.audit alter column actor set default session_user;
insert into tidemark.setting (key, value, description) values
    ('commands.enabled', 'false', 'Master gate of commands: none runs while it is closed.'),
    ('commands.rejected', 'result', 'What becomes of a command for an unknown service: result, dead_letter or both.'),
    ('command_record.retention', '90 days', 'Interval for which raw records of dead letters that are resolved, and of dry runs, are kept.')
on conflict do nothing;
alter table tidemark.audit alter column actor drop default;

alter table tidemark.worker drop constraint source_is_known;
alter table tidemark.worker add constraint source_is_known check (source in ('outbox', 'table', 'kafka'));
alter table tidemark.worker drop constraint handler_suits_source;
alter table tidemark.worker add constraint handler_suits_source check (
    source = 'outbox' and handler in ('route', 'go') and handler_ref is null
    or source = 'table' and (handler in ('sql', 'emit') and handler_ref is not null or handler = 'go' and handler_ref is null)
    or source = 'kafka' and handler = 'command' and handler_ref is null and worker = 'commands');
comment on column tidemark.worker.source is 'outbox (default), table, or kafka: commands.';

grant select on tidemark.command_reason, tidemark.service, tidemark.command, tidemark.command_producer, tidemark.producer_key
    to tidemark_reader, tidemark_executor;
grant select (service, idempotency_key, fingerprint, state, event_id, command, version, tenant, producer, via, login, topic_id, partition, "offset",
              error_code, processed_at, attempts, expires_at) on tidemark.command_claim to tidemark_reader;
grant select on tidemark.command_claim, tidemark.command_parked, tidemark.command_record to tidemark_executor;
grant select (service, idempotency_key, position, key, error_count, next_attempt_at, first_failed_at, sqlstate) on tidemark.command_parked to tidemark_reader;
grant select (id, recorded_at, why, service, event_id, idempotency_key, topic, topic_id, partition, "offset", record_at, replayed_at)
    on tidemark.command_record to tidemark_reader;
