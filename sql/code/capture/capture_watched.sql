create or replace view tidemark.capture_watched as
select c.oid as relation, format('%I.%I', n.nspname, c.relname) collate "default" as name,
       array_agg(r.sql_event order by r.sql_event) as operations, array_agg(r.id) as route_ids,
       string_agg(format('%s:%s', r.id, r.xmin), ' ' order by r.id) as routes
from tidemark.inbound_route r
join pg_catalog.pg_namespace n on n.nspname = r.source_schema
join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = r.source_table and c.relkind in ('r', 'p')
where r.source_object_kind = 'table' and r.sql_event in ('insert', 'delete') and r.enabled and not r.dry_run
  -- With the other policy an event may tell several changes of a row.
  and r.idempotency_policy = 'change'
group by 1, 2;
comment on view tidemark.capture_watched is
    'Tables whose inserts or deletes have an event each, with the routes of these: what tidemark.capture_recount '
    'compares.';
grant select on tidemark.capture_watched to tidemark_reader, tidemark_executor;
