create or replace trigger source_audit
after insert or update or delete on tidemark.source
for each row execute function tidemark.audit_change('source');
comment on trigger source_audit on tidemark.source is 'Every change goes to tidemark.audit.';
