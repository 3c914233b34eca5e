-- Emitters check payloads against the whole schema of a type, and know by its digest whether the one that they kept
-- still holds.

set local role tidemark_owner;

drop function if exists tidemark.type_set;

alter table tidemark.event_type
    add column schema_digest text
    generated always as (encode(sha256(jsonb_send(schema)), 'hex')) stored;
comment on column tidemark.event_type.schema_digest is 'Tells one schema from another; null where there is none.';
comment on column tidemark.event_type.schema is 'JSON Schema of the payload, or null. SQL checks of it what tidemark.schema_unchecked does not name; Go programs and the command check all of it.';

create type tidemark.registered_type as (
    domain text, type text, version integer, schema jsonb, enabled boolean, description text, metadata_only boolean, restricted boolean,
    unchecked_keywords text[]
);
comment on type tidemark.registered_type is 'A type of events as tidemark.type_set returns it: columns of tidemark.event_type, and unchecked_keywords, the keywords of its schema that SQL does not check in payloads.';
