-- One limit for payloads, whichever way they come; keys that no emitter can write.

set local role tidemark_owner;

insert into tidemark.setting (key, value, description)
select 'emit.payload_limit', '1000000',
       'Bytes of JSON text that a payload may have, emitted or captured; at least 1000; 0: no limit.';
delete from tidemark.setting where key = 'capture.payload_limit';

alter table tidemark.emit_key add column own boolean not null default false;
comment on column tidemark.emit_key.own is
'True: a key that Tidemark made of a row, "tidemark:…", which no emitter can write. Default false.';
comment on column tidemark.outbox.idempotency_key is
'A second emit with the same (domain, idempotency_key) stores nothing and returns the first event''s id. "tidemark:…": of a row, made by Tidemark; no emitter can write it.';

-- It reads the limit itself.
drop function if exists tidemark.capture_fits;
