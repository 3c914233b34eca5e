-- Commands of a pass are looked at and run together.

set local role tidemark_owner;

alter table tidemark.command add column payload_digest text not null generated always as (pg_catalog.md5(payload_schema::text)) stored;
comment on column tidemark.command.payload_digest is 'MD5 of payload_schema: by it the daemon names the schema that it has checked a payload by.';

-- They have other parameters or results.
drop function if exists tidemark.command_execute, tidemark.command_live, tidemark.command_claims_end, tidemark.command_gate_check, tidemark.command_triggers;
