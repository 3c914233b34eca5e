create or replace trigger inbound_route_audit
after insert or update or delete on tidemark.inbound_route
for each row execute function tidemark.audit_change('route_code');
comment on trigger inbound_route_audit on tidemark.inbound_route is 'Every change goes to tidemark.audit.';
