create or replace trigger outbound_route_target
before insert or update on tidemark.outbound_route
for each row execute function tidemark.route_target_check();
comment on trigger outbound_route_target on tidemark.outbound_route is 'No route names a target that cannot be.';
