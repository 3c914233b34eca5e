create or replace function tidemark.capture_unclear(relation regclass)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select format('select exists (select from (select v.rest, count(*) as rows from (select %2$s as rest from '
                  '(select %1$s from tidemark_new x) n) v group by 1) n left join (select v.rest, count(*) as rows '
                  'from (select %2$s as rest from (select %1$s from tidemark_old x) n) v group by 1) o '
                  'on o.rest = n.rest where o.rows is distinct from n.rows)',
                  c.names, tidemark.capture_rest(relation, c.key_json))
    from tidemark.capture_columns(relation, '{}') c
$$;
comment on function tidemark.capture_unclear(regclass) is
    'SQL for the trigger of a partitioned table, after an update of which some rows have no new version: whether the '
    'primary keys, without the columns of the partitions, leave it unclear which.';
grant execute on function tidemark.capture_unclear(regclass) to tidemark_reader;
