create or replace function tidemark.changes_check(what text, changes jsonb, relation regclass, fixed text[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    unknown text;
    deep text;
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
    -- A file of tidemark plan has at most 500 levels, of which a column is a part. So an export can be read.
    select c.key into deep from jsonb_each(changes) c
    where jsonb_path_exists(c.value, 'strict $.**{400} ? (@.type() == "object" || @.type() == "array")') limit 1;
    if found then
        raise exception using errcode = 'TM005',
            message = format('%s of a %s nests deeper than 400 levels', deep, what),
            hint = 'Flatten it.';
    end if;
end
$$;
comment on function tidemark.changes_check(text, jsonb, regclass, text[]) is
    'Raises TM005 where changes is no object, names a fixed column or one that the relation does not have, or has a '
    'column that nests deeper than 400 levels.';
grant execute on function tidemark.changes_check(text, jsonb, regclass, text[]) to tidemark_admin;
