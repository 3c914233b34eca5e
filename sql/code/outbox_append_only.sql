create or replace trigger outbox_append_only
before update or delete on tidemark.outbox
for each row execute function tidemark.log_is_append_only();
comment on trigger outbox_append_only on tidemark.outbox is 'Rows of the log are never changed. Row-level, since that is what every partition inherits.';
