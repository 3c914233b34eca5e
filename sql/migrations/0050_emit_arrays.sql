-- emit_all takes arrays too, and returns an array; idempotency_key_check returns true, so that a condition can call it.

drop function if exists tidemark.emit_all;
drop function if exists tidemark.idempotency_key_check;
