create or replace function tidemark.changes_check(what text, changes jsonb, relation regclass, fixed text[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    unknown text;
    columns text[];
begin
    if jsonb_typeof(changes) is distinct from 'object' then
        raise exception using errcode = 'TM005',
            message = format('changes of a %s is %s, not an object', what, coalesce(jsonb_typeof(changes), 'null'));
    end if;
    columns := array(
        select a.attname::text from pg_attribute a
        where a.attrelid = relation and a.attnum > 0 and not a.attisdropped and a.attname <> all (fixed)
        order by a.attnum);
    select k into unknown from jsonb_object_keys(changes) k where k <> all (columns) limit 1;
    if found then
        raise exception using errcode = 'TM005',
            message = format('a %s has no column "%s" that can be set', what, unknown),
            hint = 'Columns: ' || array_to_string(columns, ', ') || '.';
    end if;
end
$$;
comment on function tidemark.changes_check(text, jsonb, regclass, text[]) is
    'Raises TM005 where changes is no object, or names a fixed column or one that the relation does not have.';
grant execute on function tidemark.changes_check(text, jsonb, regclass, text[]) to tidemark_admin;
