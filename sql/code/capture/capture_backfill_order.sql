-- A step casts the text of the last key to the types of the columns, with the rights of its caller. A cast to a domain
-- runs the checks of its owner, and one to another type that is not PostgreSQL's own runs its input function or a cast
-- that its owner made. An array type of such a type is not PostgreSQL's own either.
create or replace function tidemark.capture_backfill_order(relation regclass, name text)
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    key_columns text[];
    wrong text;
begin
    select array_agg(concat_ws(' ', a.attnum, quote_ident(a.attname), format_type(a.atttypid, null),
                               'collate ' || nullif(a.attcollation, 0)::regcollation) order by k.ord),
           min(format('%I, of type %s', a.attname, format_type(a.atttypid, null)))
               filter (where t.oid >= 16384 or t.typtype = 'd')
    into key_columns, wrong
    from pg_index i
    cross join unnest(i.indkey::int2[]) with ordinality k (attnum, ord)
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
    join pg_type t on t.oid = a.atttypid
    where i.indrelid = capture_backfill_order.relation and i.indisprimary and k.ord <= i.indnkeyatts;
    if key_columns is null then
        raise exception using errcode = 'TM005',
            message = format('%s has no primary key: its rows have no order', capture_backfill_order.name),
            hint = 'Add one to the table.';
    elsif wrong is not null then
        raise exception using errcode = 'TM005',
            message = format('the primary key of %s has the column %s, which is not a type of PostgreSQL''s own',
                             capture_backfill_order.name, wrong),
            hint = 'To find its place, a backfill would run the code of that type with the rights of its caller. Give '
                'the column a built-in type that is not a domain, such as text.';
    end if;
    return key_columns;
end
$$;
comment on function tidemark.capture_backfill_order(regclass, text) is
    'The columns of the primary key of a table that is backfilled, in their order, each with its number, name, type '
    'and collation. Raises TM005 where there is none, or one has a domain or a type that is not PostgreSQL''s own.';
grant execute on function tidemark.capture_backfill_order(regclass, text) to tidemark_admin;
