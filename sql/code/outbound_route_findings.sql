create or replace trigger outbound_route_findings
after update of route_code, enabled, dry_run or delete on tidemark.outbound_route
for each row execute function tidemark.route_findings();
comment on trigger outbound_route_findings on tidemark.outbound_route is 'No finding of a route outlives what it says.';
