create or replace function tidemark.source_counted(source text)
returns bigint
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return (
        select sum(pg_stat_get_tuples_inserted(t.id) + pg_stat_get_tuples_updated(t.id))::bigint
        from tidemark.source s
        join pg_namespace n on n.nspname = s.schema_name
        join pg_class c on c.relnamespace = n.oid and c.relname = s.table_name
        cross join lateral unnest(case when c.relhassubclass then tidemark.relation_tree(c.oid::regclass)
                                       else array[c.oid] end) t (id)
        where s.source = source_counted.source and s.safety <> 'capture');
end
$$;
comment on function tidemark.source_counted(text) is
    'How many rows the server has counted as inserted into, or updated in, the table of a source (pg_stat_all_tables). '
    'A hint: it counts what was rolled back too, a session adds what it has committed up to 10 s later, a crash or a '
    'reset loses counts, and with track_counts off the server counts nothing. Null: the table does not exist, or the '
    'source is read by the log.';
grant execute on function tidemark.source_counted(text) to tidemark_executor;
