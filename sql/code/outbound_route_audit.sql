create or replace trigger outbound_route_audit
after insert or update or delete on tidemark.outbound_route
for each row execute function tidemark.audit_change('route_code');
comment on trigger outbound_route_audit on tidemark.outbound_route is 'Every change goes to tidemark.audit.';
