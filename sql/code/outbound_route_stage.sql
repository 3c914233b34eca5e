create or replace trigger outbound_route_stage
before insert or update on tidemark.outbound_route
for each row execute function tidemark.route_stage_check();
comment on trigger outbound_route_stage on tidemark.outbound_route is 'No route is enabled and live before the stage is.';
