-- A filter sees an enum as text (tidemark.source_row), so that no code of the table's owner runs. Its labels have no
-- order there, and a text that is no label is no error: such rows are passed over in silence.
create or replace function tidemark.filter_enum_problem(filter text, relation oid)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Without texts, and without what only looks like a comparison of order.
    bare constant text := regexp_replace(regexp_replace(filter, '''[^'']*''', ' ', 'g'), '<>|->>?|=>', ' ', 'g');
begin
    return (
        with enum as (
            select a.attname as name, coalesce(nullif(t.typbasetype, 0), t.oid) as type,
                   -- As a name is written: in quotes, or without where it has no need of them.
                   case when a.attname ~ '^[a-z_][a-z0-9_]*$' then format(E'(?:\\m%1$s\\M|"%1$s")', a.attname)
                        else '"' || regexp_replace(replace(a.attname, '"', '""'), E'([][\\\\.*+?(){}|^$-])',
                                                   E'\\\\\\1', 'g') || '"'
                   end as pattern
            from pg_attribute a join pg_type t on t.oid = a.atttypid
            where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
              and coalesce(nullif(t.typbasetype, 0), t.oid) in (select e.enumtypid from pg_enum e)
        ), problem (name, text) as (
            select e.name, 'is compared by the spelling of its labels, not by their order' from enum e
            where bare ~* (e.pattern || E'\\s*(?:<|>|(?:not\\s+)?between\\M)') or bare ~* (E'[<>]=?\\s*' || e.pattern)
            union
            select e.name, format('has no label %L', l.label)
            from enum e
            cross join lateral (
                select m[1] as label
                from regexp_matches(filter, e.pattern || E'\\s*(?:=|<>|!=)\\s*''([^'']*)''', 'gi') m
                union
                select i[1] from regexp_matches(filter, e.pattern || E'\\s+(?:not\\s+)?in\\s*\\(([^)]*)\\)', 'gi') m
                cross join lateral regexp_matches(m[1], '''([^'']*)''', 'g') i
            ) l
            where not exists (select from pg_enum n where n.enumtypid = e.type and n.enumlabel = l.label)
        )
        select string_agg(format('the enum %I %s', p.name, p.text), '; ' order by p.name, p.text) from problem p);
end
$$;
comment on function tidemark.filter_enum_problem(text, oid) is
    'How a filter treats an enum of the table differently from the enum''s own operators: it compares labels by their '
    'spelling, or compares the enum with a text that is no label. Null: no difference that shows.';
grant execute on function tidemark.filter_enum_problem(text, oid) to tidemark_reader, tidemark_executor;
