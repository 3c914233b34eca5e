create or replace trigger domain_audit
after insert or update or delete on tidemark.domain
for each row execute function tidemark.audit_change('domain');
comment on trigger domain_audit on tidemark.domain is 'Every change goes to tidemark.audit.';
