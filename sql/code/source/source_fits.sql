create or replace function tidemark.source_fits(definition tidemark.source, shards integer, shard text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce('coalesce((' || definition.filter || '), false)', 'true')
        || case when shards > 1
                     then format(' and (hashtextextended(concat_ws(chr(31), %s), 0) & 9223372036854775807) %% %s = %s',
                                 (
               select string_agg(format('tidemark_row.%I::text', k), ', ')
               from unnest(case when cardinality(definition.key_columns) > 0 then definition.key_columns
                                else array[definition.id_column] end) k), shards, shard) else '' end;
end
$$;
comment on function tidemark.source_fits(tidemark.source, integer, text) is
    'The SQL condition under which a row belongs to the source and, where a worker has several shards, to the shard (a '
    'parameter, as text).';
grant execute on function tidemark.source_fits(tidemark.source, integer, text) to tidemark_reader, tidemark_executor;
