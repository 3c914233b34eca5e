create or replace function tidemark.source_odd(definition tidemark.source)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select format('select true from (
    (select from %1$s where %2$s is null limit 1)
    union all (select from %1$s where %3$s limit 1)
    union all (select from %1$s where %4$s limit 1)) x limit 1',
        tidemark.source_row(source_odd.definition), t.stored, t.early, t.late)
    from tidemark.source_time(source_odd.definition) t
$$;
comment on function tidemark.source_odd(tidemark.source) is 'The statement that says (true, or no row) whether a source has rows without a usable timestamp, which only a sweep reads.';
grant execute on function tidemark.source_odd(tidemark.source) to tidemark_executor;
