create or replace trigger event_type_spread
before insert or update on tidemark.event_type
for each row execute function tidemark.domain_spread();
comment on trigger event_type_spread on tidemark.event_type is 'A type is as its domain is.';
