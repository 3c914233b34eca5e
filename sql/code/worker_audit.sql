create or replace trigger worker_audit
after insert or update or delete on tidemark.worker
for each row execute function tidemark.audit_change('worker');
comment on trigger worker_audit on tidemark.worker is 'Every change goes to tidemark.audit.';
