-- What an operator must see and what operators did.

set local role tidemark_owner;

create table tidemark.finding (
    id bigint generated always as identity primary key,
    kind text not null,
    subject text not null,
    severity tidemark.severity not null,
    detail text not null,
    opened_at timestamptz not null default pg_catalog.clock_timestamp(),
    last_seen_at timestamptz not null default pg_catalog.clock_timestamp(),
    closed_at timestamptz,
    count bigint not null default 1
);
create unique index finding_open on tidemark.finding (kind, subject) where closed_at is null;
comment on table tidemark.finding is 'What needs an operator''s attention. One open row per kind and subject; seen again, it counts.';
comment on column tidemark.finding.id is 'Number.';
comment on column tidemark.finding.kind is 'What was found, e.g. cursor_holes.';
comment on column tidemark.finding.subject is 'On what: a worker, a route, a table.';
comment on column tidemark.finding.severity is 'How bad.';
comment on column tidemark.finding.detail is 'The latest facts, blame included.';
comment on column tidemark.finding.opened_at is 'First seen.';
comment on column tidemark.finding.last_seen_at is 'Last seen.';
comment on column tidemark.finding.closed_at is 'When it was over; null: open.';
comment on column tidemark.finding.count is 'Times seen while open.';

create table tidemark.audit (
    id bigint generated always as identity primary key,
    at timestamptz not null default pg_catalog.clock_timestamp(),
    actor text not null default session_user,
    action text not null,
    object text not null,
    reason text,
    before jsonb,
    after jsonb
);
create index audit_at on tidemark.audit using brin (at);
comment on table tidemark.audit is 'What operators changed: every insert, update and delete of a configuration row, and every operator''s function.';
comment on column tidemark.audit.id is 'Number.';
comment on column tidemark.audit.at is 'When.';
comment on column tidemark.audit.actor is 'The role that logged in (session_user).';
comment on column tidemark.audit.action is 'insert, update, delete, or the name of a function.';
comment on column tidemark.audit.object is 'What was changed: table and key.';
comment on column tidemark.audit.reason is 'Why: given to the function, or set with: set local tidemark.reason = ''…''.';
comment on column tidemark.audit.before is 'The row before.';
comment on column tidemark.audit.after is 'The row after.';

create table tidemark.pack (
    pack text primary key,
    version text not null,
    checksum text not null,
    installed_at timestamptz not null default pg_catalog.clock_timestamp(),
    installed_by text not null default session_user
);
comment on table tidemark.pack is 'Packs installed: sets of domains, types, routes and workers.';
comment on column tidemark.pack.pack is 'Name, e.g. iu-core.';
comment on column tidemark.pack.version is 'Version of the pack.';
comment on column tidemark.pack.checksum is 'SHA-256 of its SQL, in hex.';
comment on column tidemark.pack.installed_at is 'When it was last installed.';
comment on column tidemark.pack.installed_by is 'The role that logged in to install it.';

grant select on tidemark.finding, tidemark.audit, tidemark.pack to tidemark_reader, tidemark_executor;
grant insert, update on tidemark.pack to tidemark_admin;
