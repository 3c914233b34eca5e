create or replace trigger stage_audit
after insert or update or delete on tidemark.stage
for each row execute function tidemark.audit_change('stage');
comment on trigger stage_audit on tidemark.stage is 'Every change goes to tidemark.audit.';
