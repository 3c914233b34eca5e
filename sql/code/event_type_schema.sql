create or replace trigger event_type_schema
before insert or update of schema on tidemark.event_type
for each row when (new.schema is not null) execute function tidemark.event_type_check();
comment on trigger event_type_schema on tidemark.event_type is 'A schema is a JSON Schema, as far as SQL looks at it.';
