-- Roles, the schema, and the record of what has been applied.
--
-- Whoever runs this needs CREATE on the database and either superuser or CREATEROLE. Everything else
-- belongs to tidemark_owner, which cannot log in and is no superuser.

do $$
declare
    name text;
begin
    foreach name in array array['tidemark_owner', 'tidemark_admin', 'tidemark_executor',
                                'tidemark_emitter', 'tidemark_reader']
    loop
        begin
            execute pg_catalog.format('create role %I nologin', name);
        exception when duplicate_object or unique_violation then
            -- Roles belong to the cluster: another database of it, or another installer at this
            -- very moment, has made the role already.
            null;
        end;
    end loop;

    if not pg_catalog.pg_has_role(current_user, 'tidemark_owner', 'member') then
        execute pg_catalog.format('grant tidemark_owner to %I', current_user);
    end if;

    begin
        -- The cursor's blame (who keeps a hole open, and since when) reads other sessions' xact_start.
        if not pg_catalog.pg_has_role('tidemark_owner', 'pg_read_all_stats', 'member') then
            grant pg_read_all_stats to tidemark_owner;
        end if;
    exception when insufficient_privilege or internal_error then
        raise warning 'tidemark_owner cannot read other sessions'' statistics'
            using hint = 'Run as a superuser: grant pg_read_all_stats to tidemark_owner;';
    end;
end
$$;

create schema tidemark authorization tidemark_owner;
comment on schema tidemark is 'Tidemark: a dependable event and command backbone. The functions are the interface.';
grant usage on schema tidemark to tidemark_admin, tidemark_executor, tidemark_emitter, tidemark_reader;

grant tidemark_reader, tidemark_emitter, tidemark_executor to tidemark_admin;

set local role tidemark_owner;

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
