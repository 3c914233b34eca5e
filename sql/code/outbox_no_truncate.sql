create or replace trigger outbox_no_truncate
before truncate on tidemark.outbox
for each statement execute function tidemark.log_is_append_only();
comment on trigger outbox_no_truncate on tidemark.outbox is 'The log is not truncated.';
