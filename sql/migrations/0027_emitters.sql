-- Who may emit into a domain, and who did.

set local role tidemark_owner;

alter table tidemark.domain add column restricted boolean not null default false;
comment on column tidemark.domain.restricted is 'True: only roles of tidemark.domain_emitter emit into it, and Tidemark''s own functions. False (default): every member of tidemark_emitter.';
update tidemark.domain set restricted = true where domain = 'system'; -- those of packs by their next installation
alter table tidemark.domain add constraint system_stays_restricted check (domain <> 'system' or restricted);

create table tidemark.domain_emitter (
    domain text not null references tidemark.domain constraint system_is_tidemarks_alone check (domain <> 'system'),
    role text not null,
    granted_at timestamptz not null default pg_catalog.clock_timestamp(),
    granted_by text not null default session_user,
    primary key (domain, role)
);
comment on table tidemark.domain_emitter is 'Roles that may emit into a restricted domain: logins, and roles of which a login is a member.';
comment on column tidemark.domain_emitter.domain is 'The domain.';
comment on column tidemark.domain_emitter.role is 'Name of the role.';
comment on column tidemark.domain_emitter.granted_at is 'When.';
comment on column tidemark.domain_emitter.granted_by is 'By whom.';
revoke all on tidemark.domain_emitter from public;
grant select on tidemark.domain_emitter to tidemark_reader, tidemark_admin, tidemark_executor;

alter table tidemark.event_type
    add column restricted boolean not null default false,
    drop column unchecked;
alter table tidemark.event_type
    add column unchecked boolean not null generated always as (schema is null and not metadata_only and not restricted) stored;
comment on column tidemark.event_type.restricted is 'Copy of the domain''s restricted, kept by triggers: emit reads one row of the registry, not two.';
comment on column tidemark.event_type.unchecked is 'True: of a payload only that it is an object is checked, of the emitter nothing.';
update tidemark.event_type t set restricted = d.restricted from tidemark.domain d where d.domain = t.domain and d.restricted;

alter table tidemark.outbox add column emitted_by text;
grant select (emitted_by) on tidemark.outbox to tidemark_reader;
comment on column tidemark.outbox.emitted_by is 'The role that logged in (session_user), where actor claims another; null: it is actor.';

alter table tidemark.inbound_route add constraint system_is_not_captured check (domain <> 'system');
alter table tidemark.worker add constraint system_is_not_emitted check (handler <> 'emit' or handler_ref !~ '^system/');

-- Of the lease under which the pass runs: tidemark.source_emit asks for it.
alter type tidemark.source_plan add attribute epoch bigint;
drop function if exists tidemark.source_emit;
-- It returns one column more.
drop function if exists tidemark.pass_read;
