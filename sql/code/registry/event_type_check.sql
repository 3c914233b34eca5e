create or replace function tidemark.event_type_check()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    problem text;
begin
    -- A type of before this trigger can be disabled, whatever its schema.
    if tg_op = 'UPDATE' and new.schema is not distinct from old.schema then
        return new;
    end if;
    problem := tidemark.schema_problem(new.schema);
    if problem is not null then
        raise exception using errcode = 'TM005', message = format('schema of %s/%s: %s', new.domain, new.type, problem),
            hint = 'Give a JSON Schema of draft 2020-12, or of the draft that it names in $schema.';
    end if;
    return new;
end
$$;
comment on function tidemark.event_type_check() is
    'Trigger: raises TM005 where a new schema is no JSON Schema (tidemark.schema_problem).';

create or replace trigger event_type_schema
before insert or update of schema on tidemark.event_type
for each row when (new.schema is not null) execute function tidemark.event_type_check();
comment on trigger event_type_schema on tidemark.event_type is 'A schema is a JSON Schema, as far as SQL looks at it.';
