create or replace view tidemark.capture_stale as
select r.route_code, a.function_name, r.sql_event as operation, a.schema_name, a.table_name
from tidemark.inbound_route r
-- Also of a table that has another name now: with the old name it would run what an earlier release has made.
join tidemark.capture_attached a on a.function_name = 'capture_' || r.id
join pg_catalog.pg_proc p on p.pronamespace = 'tidemark'::regnamespace and p.proname = a.function_name
where r.source_object_kind = 'table' and p.prosrc <> tidemark.capture_body(tidemark.capture_table(r), r);
comment on view tidemark.capture_stale is
    'Functions of tidemark.capture_make that it would make differently now: the table, the route or Tidemark has '
    'changed since. Captures use the general path meanwhile, with the same result.';
grant select on tidemark.capture_stale to tidemark_reader;
