create or replace function tidemark.why_failed(waits tidemark.pending)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case when (why_failed.waits).error_count > 0 then
        format('has failed %s: %s, %s',
               case (waits).error_count when 1 then 'once' else (waits).error_count || ' times' end, c.code,
               tidemark.error_means(c.code)) end
    from (select split_part((waits).last_error, ': ', 1) as code) c
$$;
comment on function tidemark.why_failed(tidemark.pending) is
    'How a delivery that waits has failed so far, without the message, which may quote a payload. Null: not once.';
