create or replace function tidemark.why_failed(waits tidemark.pending)
returns text
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    select case when (why_failed.waits).error_count > 0 then
        format('has failed %s: %s',
               case (waits).error_count when 1 then 'once' else (waits).error_count || ' times' end,
               tidemark.why_error(c.code, substr((waits).last_error, length(c.code) + 3))) end
    from (select split_part((waits).last_error, ': ', 1) as code) c
$$;
comment on function tidemark.why_failed(tidemark.pending) is
    'How a delivery that waits has failed so far, as far as the caller''s role may see it (tidemark.why_error). Null: '
    'not once.';
