-- Emits of types that are not registered: no error, and not silent.

set local role tidemark_owner;

create table tidemark.emit_unregistered (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    domain text not null,
    type text not null,
    role text not null,
    emits bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table tidemark.emit_unregistered is
'Emits that stored nothing, since their type was not registered or not enabled. Only ever inserted into, in the emitter''s transaction, and not beyond 8 MB; tidemark.maintain moves it to tidemark.unregistered_type.';
comment on column tidemark.emit_unregistered.id is 'Number.';
comment on column tidemark.emit_unregistered.at is 'When.';
comment on column tidemark.emit_unregistered.domain is 'Domain as given, its first 63 characters; empty: null.';
comment on column tidemark.emit_unregistered.type is 'Type as given, its first 128 characters; empty: null.';
comment on column tidemark.emit_unregistered.role is 'The role that logged in.';
comment on column tidemark.emit_unregistered.emits is 'How many, in one call.';

create table tidemark.unregistered_type (
    domain text not null,
    type text not null,
    role text not null,
    emits bigint not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    primary key (domain, type, role)
);
comment on table tidemark.unregistered_type is
'Types that were emitted and are not registered, or not enabled: by which role, how often. At most 1,000 rows, then domain and type "*" stand for the others. Kept by tidemark.maintain: a row goes when its type is enabled, or a day after the last emit.';
comment on column tidemark.unregistered_type.domain is 'Domain as given, its first 63 characters; empty: null.';
comment on column tidemark.unregistered_type.type is 'Type as given, its first 128 characters; empty: null.';
comment on column tidemark.unregistered_type.role is 'The role that logged in; "*" for the others.';
comment on column tidemark.unregistered_type.emits is 'How many emits stored nothing.';
comment on column tidemark.unregistered_type.first_at is 'The first of them.';
comment on column tidemark.unregistered_type.last_at is 'The latest of them.';

grant select on tidemark.emit_unregistered, tidemark.unregistered_type to tidemark_reader, tidemark_executor;
