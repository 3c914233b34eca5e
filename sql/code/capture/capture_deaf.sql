create or replace view tidemark.capture_deaf as
select c.oid as relation, format('%I.%I', n.nspname, c.relname) collate "default" as name,
       string_agg(i.sql_event, ', ' order by i.sql_event) as operations,
       -- Null: a trigger is missing, or is not as attached.
       case when bool_and(a.as_attached) then array_agg(a.trigger_name order by a.trigger_name) end as triggers
from tidemark.inbound_route i
join pg_catalog.pg_namespace n on n.nspname = i.source_schema
join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = i.source_table and c.relkind in ('r', 'p')
left join lateral (
    select t.trigger_name, t.as_attached, t.enabled from tidemark.capture_attached t
    where t.relation = c.oid and t.operation = i.sql_event
    order by t.as_attached and t.enabled in ('O', 'A') desc limit 1) a on true
where i.source_object_kind = 'table' and i.enabled and not i.dry_run
  and (a.as_attached and a.enabled in ('O', 'A')) is not true
group by 1, 2;
comment on view tidemark.capture_deaf is
    'Tables whose changes make no events although an enabled inbound route wants them: the operations whose trigger '
    'does not fire, and the triggers to enable (null: one is missing or altered). Reads a few rows of the catalogs.';
grant select on tidemark.capture_deaf to tidemark_reader, tidemark_executor;
