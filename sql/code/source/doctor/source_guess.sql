create or replace function tidemark.source_guess(definition tidemark.source)
returns tidemark.source
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    relation constant oid := (
        select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = definition.schema_name and c.relname = definition.table_name);
begin
    definition.id_column := coalesce(definition.id_column, (
        select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = relation and i.indisunique and i.indisvalid and i.indpred is null and i.indnkeyatts = 1
          and a.attnotnull
        order by i.indisprimary desc, a.attnum limit 1));
    if definition.safety = 'capture' then
        return definition;
    elsif definition.safety = 'sequence' then
        -- This column orders nothing. It distinguishes rows that were read from later rows with the same numbers
        -- (setval). So take a column that the server fills when a row is inserted.
        definition.timestamp_column := coalesce(definition.timestamp_column, (
            select a.attname from pg_attribute a join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
            where a.attrelid = relation and a.attnum > 0 and not a.attisdropped and a.attnotnull and a.attgenerated = ''
              and a.atttypid = 'timestamptz'::regtype and a.attname !~* 'updat|modif|chang|delet|expir|until|due'
              and pg_get_expr(d.adbin,
                              d.adrelid) ~*
                      E'^(now|clock_timestamp|statement_timestamp|transaction_timestamp)\\(\\)$|^CURRENT_TIMESTAMP'
            order by a.attnum limit 1));
        return definition;
    end if;
    -- Prefer the column that an index starts with, then one that the server fills.
    definition.timestamp_column := coalesce(definition.timestamp_column, (
        select a.attname from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
          and a.atttypid = any (array['timestamptz', 'timestamp']::regtype[])
          and a.attname !~* 'updat|modif|chang|delet|expir|until|due'
        order by exists (select from pg_index i join pg_attribute k on k.attrelid = relation and k.attnum = i.indkey[1]
                         where i.indrelid = relation and i.indkey[0] = a.attnum
                           and k.attname = definition.id_column) desc,
                 pg_get_expr(d.adbin, d.adrelid) ~* E'now\\(|_timestamp|localtimestamp' desc nulls last, a.attnum
        limit 1));
    return definition;
end
$$;
comment on function tidemark.source_guess(tidemark.source) is
    'The definition with the best guess for id_column and timestamp_column where they are null: the primary key, and a '
    'timestamp that has an index with it or that the server sets. For tidemark.source_check and '
    'tidemark.source_advise; check the guess before you use it.';
grant execute on function tidemark.source_guess(tidemark.source) to tidemark_reader, tidemark_executor;
