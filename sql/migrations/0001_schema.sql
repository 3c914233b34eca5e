-- The schema, and the record of what has been applied. The roles are made before it, by sql/roles.sql.
--
-- The installer needs CREATE on the database and SET on tidemark_owner, which owns everything, cannot log in and is
-- no superuser.

create schema tidemark authorization tidemark_owner;
set local role tidemark_owner;

comment on schema tidemark is 'Tidemark: a dependable event and command backbone. The functions are the interface.';
grant usage on schema tidemark to tidemark_admin, tidemark_executor, tidemark_emitter, tidemark_reader;

create table tidemark.migration (
    version integer primary key constraint version_is_positive check (version > 0),
    name text not null,
    breaking boolean not null default false,
    checksum text not null,
    applied_at timestamptz not null default pg_catalog.clock_timestamp(),
    applied_by text not null default session_user
);
comment on table tidemark.migration is 'Migrations that have run, once each. Written by `tidemark migrate up`.';
comment on column tidemark.migration.version is 'Number at the head of the file name.';
comment on column tidemark.migration.name is 'File name without number and suffix.';
comment on column tidemark.migration.breaking is 'True: workers of an earlier release must not run after it.';
comment on column tidemark.migration.checksum is 'SHA-256 of the file, in hex. `tidemark migrate verify` compares it.';
comment on column tidemark.migration.applied_at is 'When it was applied, by the clock of the database.';
comment on column tidemark.migration.applied_by is 'The role that logged in to apply it.';

create table tidemark.code (
    object text primary key,
    checksum text not null,
    installed text,
    applied_at timestamptz not null default pg_catalog.clock_timestamp()
);
comment on table tidemark.code is 'Functions and views as last re-created from sql/code/.';
comment on column tidemark.code.object is 'File name without suffix, which is the name of the function or view.';
comment on column tidemark.code.checksum is 'SHA-256 of the file, in hex.';
comment on column tidemark.code.installed is 'MD5 of the definition as the catalog shows it after the file ran; a difference later means that somebody changed the object by hand.';
comment on column tidemark.code.applied_at is 'When it was re-created.';

grant select on tidemark.migration, tidemark.code to tidemark_reader, tidemark_executor, tidemark_emitter;
