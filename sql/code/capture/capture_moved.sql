create or replace view tidemark.capture_moved as
select r.id as route_id, r.route_code, r.sql_event, r.source_schema, r.source_table,
       format('%I.%I', r.source_schema, r.source_table) as name, a.relation, a.schema_name, a.table_name
from tidemark.inbound_route r
join tidemark.capture_attached a on a.function_name = 'capture_' || r.id
where r.source_object_kind = 'table' and r.enabled and not r.dry_run
  and not exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                  where n.nspname = r.source_schema and c.relname = r.source_table and c.relkind in ('r', 'p'));
comment on view tidemark.capture_moved is
    'Captured tables that have another name or schema now than their inbound route says, and where no table has taken '
    'the name: their triggers make no events. No index finds the triggers that call a function: it reads all of the '
    'database.';
grant select on tidemark.capture_moved to tidemark_reader, tidemark_executor;
