create or replace trigger audit_signed
before insert on tidemark.audit
for each row execute function tidemark.signed('actor');
comment on trigger audit_signed on tidemark.audit is 'Each row names the role that made it, and no other.';
