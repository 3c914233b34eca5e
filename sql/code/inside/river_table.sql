create or replace function tidemark.river_table(options jsonb)
returns regclass
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select c.oid::regclass from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = coalesce(options ->> 'schema', 'public') and c.relname = 'river_job' and c.relkind in ('r', 'p')
$$;
comment on function tidemark.river_table(jsonb) is
    'River''s table of jobs in the schema that a route''s options name. Null: there is none.';
grant execute on function tidemark.river_table(jsonb) to tidemark_reader, tidemark_executor;
