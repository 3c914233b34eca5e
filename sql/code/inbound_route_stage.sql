create or replace trigger inbound_route_stage
before insert or update on tidemark.inbound_route
for each row execute function tidemark.route_stage_check();
comment on trigger inbound_route_stage on tidemark.inbound_route is 'No route is enabled and live before the stage is.';
