-- What an operator may have changed since an earlier install stays: the switches of types and routes, and
-- everything else about the domain, the worker and the routes, inbound ones included. The vocabulary is the pack's own.

set local search_path = pg_catalog, pg_temp;

select tidemark.domain_set('iu', '{"metadata_only": true, "restricted": true, "description": "Units of IU Core and their structure."}', 'pack iu-core')
where not exists (select from tidemark.domain d where d.domain = 'iu');

select tidemark.type_set('iu', v.type, jsonb_build_object('version', v.version, 'description', v.description, 'schema', v.schema),
                         'pack iu-core')
from (select jsonb '{
        "type": "object", "required": ["schema", "table", "operation", "primary_key"],
        "properties": {"schema": {"type": "string"}, "table": {"type": "string"},
                       "operation": {"type": "string", "enum": ["insert", "update", "delete", "truncate"]},
                       "primary_key": {"type": ["object", "null"]}, "old_primary_key": {"type": "object"},
                       "changed": {"type": "array", "items": {"type": "string"}}, "columns": {"type": "object"}}}' as captured) c
cross join lateral (values
    -- Structure. Required by S1.
    ('IU_CHILD_ADDED', 1, 'A unit became the child of another.', jsonb '{
        "type": "object", "required": ["unit_id", "parent_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}, "parent_id": {"type": "string", "minLength": 1},
                       "position": {"type": "integer", "minimum": 0}}}'),
    ('IU_SPLIT', 1, 'A unit was split into several.', '{
        "type": "object", "required": ["unit_id", "part_ids"],
        "properties": {"unit_id": {"type": "string", "minLength": 1},
                       "part_ids": {"type": "array", "minItems": 2, "items": {"type": "string", "minLength": 1}}}}'),
    ('IU_MERGED', 1, 'Several units were merged into one.', '{
        "type": "object", "required": ["unit_id", "merged_ids"],
        "properties": {"unit_id": {"type": "string", "minLength": 1},
                       "merged_ids": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}}}'),
    ('IU_DEPRECATED', 1, 'A unit is not to be used any more.', '{
        "type": "object", "required": ["unit_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}, "replaced_by": {"type": ["string", "null"]}}}'),
    ('IU_REPARENTED', 1, 'A unit moved to another parent; null: it was or became a root.', '{
        "type": "object", "required": ["unit_id", "old_parent_id", "new_parent_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}, "old_parent_id": {"type": ["string", "null"]},
                       "new_parent_id": {"type": ["string", "null"]}}}'),
    ('IU_SQL_LINK_CHANGED', 1, 'The link between a unit and a row of a table changed, as a change of structure.', '{
        "type": "object", "required": ["unit_id", "link_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}, "link_id": {"type": "string", "minLength": 1},
                       "linked_table": {"type": "string"}, "linked_ref": {"type": "string"},
                       "operation": {"type": "string", "enum": ["insert", "update", "delete"]}}}'),
    -- Structure. Optional in S1.
    ('IU_REPLACED', 1, 'A unit was replaced by another.', '{
        "type": "object", "required": ["unit_id", "replaced_by"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}, "replaced_by": {"type": "string", "minLength": 1}}}'),
    ('IU_ROOT_ADDED', 1, 'A unit without a parent was added.', '{
        "type": "object", "required": ["unit_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}}}'),
    ('IU_CHILD_ORDER_CHANGED', 1, 'The children of a unit stand in another order.', '{
        "type": "object", "required": ["parent_id", "child_ids"],
        "properties": {"parent_id": {"type": "string", "minLength": 1},
                       "child_ids": {"type": "array", "items": {"type": "string", "minLength": 1}}}}'),
    ('IU_LINEAGE_CHANGED', 1, 'What a unit descends from changed.', '{
        "type": "object", "required": ["unit_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1},
                       "ancestor_ids": {"type": "array", "items": {"type": "string", "minLength": 1}}}}'),
    -- Lifecycle.
    ('unit_created', 1, 'A unit was created.', '{
        "type": "object", "required": ["unit_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}, "unit_kind": {"type": "string"},
                       "parent_id": {"type": ["string", "null"]}}}'),
    ('unit_enacted', 1, 'A unit came into force.', '{
        "type": "object", "required": ["unit_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}, "version_id": {"type": "string", "minLength": 1}}}'),
    ('version_applied', 1, 'A version of a unit was applied.', '{
        "type": "object", "required": ["unit_id", "version_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}, "version_id": {"type": "string", "minLength": 1},
                       "previous_version_id": {"type": ["string", "null"]}}}'),
    ('draft_created', 1, 'A draft of a unit was created.', '{
        "type": "object", "required": ["unit_id", "draft_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}, "draft_id": {"type": "string", "minLength": 1}}}'),
    ('comment_added', 1, 'Somebody commented on a unit.', '{
        "type": "object", "required": ["unit_id", "comment_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}, "comment_id": {"type": "string", "minLength": 1}}}'),
    -- Captured: the payload is what tidemark.capture writes.
    ('sql_link_changed', 1, 'A row of iu_sql_link was inserted, updated or deleted, or the table was truncated.', captured),
    ('unit_version_inserted', 1, 'A row was inserted into unit_version.', captured)
) v (type, version, description, schema);

select tidemark.worker_set('iu_outbound_default', '{"domains": ["iu"], "description": "Routes the events of IU Core."}', 'pack iu-core')
where not exists (select from tidemark.worker w where w.worker = 'iu_outbound_default');

-- Off and in dry run, as every new route is. Notifications carry ids only, so they suit any of these events
-- until an operator names a target of his own.
select tidemark.route_set(v.route_code, jsonb_build_object(
           'worker', 'iu_outbound_default', 'domain', 'iu', 'type', v.type, 'target_kind', 'notify', 'target_ref', v.channel,
           'description', v.description), 'pack iu-core')
from (values
    ('iu_events', '*', 'iu_events', 'Wakes whoever listens for anything that happens to a unit.'),
    ('iu_unit_created', 'unit_created', 'iu_unit_created', 'Source: S1 fn_iu_create.'),
    ('iu_unit_enacted', 'unit_enacted', 'iu_unit_enacted', 'Source: S1 fn_iu_enact.'),
    ('iu_version_applied', 'version_applied', 'iu_version_applied', 'Source: S1 unit_version insert, where the application emits.'),
    ('iu_unit_version_inserted', 'unit_version_inserted', 'iu_unit_version_inserted', 'Source: S1 unit_version insert, where the table is captured.'),
    ('iu_sql_link_changed', 'sql_link_changed', 'iu_sql_link_changed', 'Source: S1 iu_sql_link change.')
) v (route_code, type, channel, description)
where not exists (select from tidemark.outbound_route r where r.route_code = v.route_code);

-- Off and in dry run too. The tables are the application's, which may have none of them, or has them in another schema:
-- nothing looks at them before capture attach. Somebody else's route for the same changes stays instead of the pack's.
select tidemark.inbound_route_set(v.route_code, jsonb_build_object(
           'source_schema', 'public', 'source_table', v.source_table, 'sql_event', v.sql_event, 'domain', 'iu', 'type', v.type,
           'description', v.description), 'pack iu-core')
from (values
    ('iu_sql_link_insert', 'iu_sql_link', 'insert', 'sql_link_changed', 'Source: S1 fn_iu_sql_link_inbound_capture.'),
    ('iu_sql_link_update', 'iu_sql_link', 'update', 'sql_link_changed', 'Source: S1 fn_iu_sql_link_inbound_capture.'),
    ('iu_sql_link_delete', 'iu_sql_link', 'delete', 'sql_link_changed', 'Source: S1 fn_iu_sql_link_inbound_capture.'),
    ('iu_sql_link_truncate', 'iu_sql_link', 'truncate', 'sql_link_changed', 'Source: S1 fn_iu_sql_link_inbound_capture.'),
    ('iu_unit_version_insert', 'unit_version', 'insert', 'unit_version_inserted', 'Source: S1 fn_iu_outbound_on_version.')
) v (route_code, source_table, sql_event, type, description)
where not exists (select from tidemark.inbound_route r
                  where r.route_code = v.route_code
                     or (r.source_schema, r.source_table, r.sql_event) = ('public', v.source_table, v.sql_event));
