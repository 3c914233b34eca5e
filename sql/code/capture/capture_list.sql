-- public
create or replace view tidemark.capture_list as
select coalesce(r.source_schema, t.schema_name) as schema_name, coalesce(r.source_table, t.table_name) as table_name,
       coalesce(r.sql_event, t.operation) as operation, r.route_code, r.domain, r.type,
       case when r.id is null then 'no route' when not r.enabled then 'off' when r.dry_run then 'dry run'
            else 'live' end as state,
       case when r.source_object_kind <> 'table' then 'by ' || r.source_object_kind
            when t.relation is null then 'not attached' when not t.as_attached then 'altered'
            when t.enabled = 'A' then 'always' when t.enabled = 'O' then 'attached'
            when t.enabled = 'R' then 'replica only' else 'disabled' end as trigger,
       r.payload_columns
from tidemark.inbound_route r
full join tidemark.capture_attached t on t.schema_name = r.source_schema and t.table_name = r.source_table
    and t.operation = case when r.source_object_kind = 'table' then r.sql_event end;
comment on view tidemark.capture_list is
    'Each operation of a table that has an inbound route or a capture trigger: the state of the route (no route, off, '
    'dry run, live) and of the trigger (not attached, attached, always, replica only, disabled, altered; by function, '
    'by trigger: the application calls tidemark.inbound_emit).';
grant select on tidemark.capture_list to tidemark_reader, tidemark_executor;
