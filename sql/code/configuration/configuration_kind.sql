create or replace view tidemark.configuration_kind as
select k.place, k.kind, k.relation, k.fixed, k.kept, tidemark.column_defaults(k.relation) - k.fixed as defaults
from (values
    (1, 'domain', 'tidemark.domain'::regclass, '{domain}'::text[], '{}'::text[]),
    (2, 'type', 'tidemark.event_type', '{domain,type,metadata_only,restricted}', '{enabled}'),
    (3, 'capture', 'tidemark.inbound_route', '{id,route_code}', '{enabled,dry_run}'),
    (4, 'source', 'tidemark.source',
     '{source,schema_name,table_name,id_type,id_collate_c,timestamp_type,created_at,created_by}', '{}'),
    (5, 'worker', 'tidemark.worker', '{id,worker}', '{source,handler}'),
    (6, 'route', 'tidemark.outbound_route', '{id,route_code,paused_at}', '{enabled,dry_run}')
) k (place, kind, relation, fixed, kept);
comment on view tidemark.configuration_kind is
    'The kinds of tidemark.configuration() that are rows of a table, in the order in which they are made. fixed: '
    'columns that a file does not set; kept: columns that stay as they are where a file leaves them out; defaults: '
    'what the others are then.';
grant select on tidemark.configuration_kind to tidemark_reader;
