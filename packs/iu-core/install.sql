-- A new install keeps the settings that an operator may have changed: the switches of types and routes, and everything
-- else about the domain, the worker and the routes, inbound ones included. The vocabulary belongs to the pack.

set local search_path = pg_catalog, pg_temp;

select tidemark.domain_set('iu', '{"metadata_only": true, "restricted": true, "description": "Units of IU Core and '
                                 'their structure."}', 'pack iu-core')
where not exists (select from tidemark.domain d where d.domain = 'iu');

-- The master gate of the domain, beside the global one (S1: iu_core.routes_master_enabled, absent means closed). An
-- installation from before the gate that has the types and delivers goes on delivering.
do $$
declare
    delivers boolean;
begin
    if exists (select from tidemark.setting s where s.key = 'domain.iu.enabled') then
        return;
    end if;
    delivers := exists (
        select from tidemark.outbound_route r
        where r.enabled and not r.dry_run and r.domain in ('iu', '*')
          and exists (select from tidemark.event_type e where e.domain = 'iu'));
    perform tidemark.gate_set('domain.iu.enabled', delivers, 'pack iu-core');
    if delivers then
        raise warning 'domain iu has routes that deliver: its new gate domain.iu.enabled is open, where a first '
                      'install closes it';
    end if;
end
$$;

-- Ids, never content: a payload has only the fields that are named here.
select tidemark.type_set('iu', v.type, jsonb_build_object('version', v.version, 'description', v.description,
                                                     'schema', v.schema || '{"additionalProperties": false}'),
                         'pack iu-core')
from (select jsonb '{
        "schema": {"type": "string"}, "table": {"type": "string"},
        "operation": {"type": "string", "enum": ["insert", "update", "delete", "truncate"]},
        "primary_key": {"type": ["object", "null"],
                        "additionalProperties": {"type": ["string", "number", "boolean"], "maxLength": 200}},
        "old_primary_key": {"type": "object",
                            "additionalProperties": {"type": ["string", "number", "boolean"], "maxLength": 200}},
        "changed": {"type": "array", "items": {"type": "string"}}, "reconciled": {"type": "boolean"},
        "columns": {"type": "object", "additionalProperties": false,
                    "properties": {"unit_id": {}, "version_id": {}, "previous_version_id": {}, "link_id": {},
                                   "linked_table": {}, "linked_ref": {}}}}' as captured) c
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
        "properties": {"unit_id": {"type": "string", "minLength": 1},
                       "replaced_by": {"type": ["string", "null"]}}}'),
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
        "properties": {"unit_id": {"type": "string", "minLength": 1},
                       "replaced_by": {"type": "string", "minLength": 1}}}'),
    ('IU_ROOT_ADDED', 1, 'A unit without a parent was added.', '{
        "type": "object", "required": ["unit_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1}}}'),
    ('IU_CHILD_ORDER_CHANGED', 1, 'The children of a unit stand in another order.', '{
        "type": "object", "required": ["parent_id", "child_ids"],
        "properties": {"parent_id": {"type": "string", "minLength": 1},
                       "child_ids": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}}}'),
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
        "properties": {"unit_id": {"type": "string", "minLength": 1},
                       "version_id": {"type": "string", "minLength": 1}}}'),
    -- Emitted with the ids at the top, or captured from unit_version, in the payload format of capture.
    ('version_applied', 1, 'A version of a unit was applied.', jsonb_build_object(
        'type', 'object', 'anyOf', jsonb '[{"required": ["unit_id", "version_id"]},
                                           {"required": ["schema", "table", "operation", "primary_key"]}]',
        'properties', captured || '{
            "unit_id": {"type": "string", "minLength": 1}, "version_id": {"type": "string", "minLength": 1},
            "previous_version_id": {"type": ["string", "null"]}}')),
    ('draft_created', 1, 'A draft of a unit was created.', '{
        "type": "object", "required": ["unit_id", "draft_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1},
                       "draft_id": {"type": "string", "minLength": 1}}}'),
    ('comment_added', 1, 'Somebody commented on a unit.', '{
        "type": "object", "required": ["unit_id", "comment_id"],
        "properties": {"unit_id": {"type": "string", "minLength": 1},
                       "comment_id": {"type": "string", "minLength": 1}}}'),
    -- Captured: the payload has the format of capture.
    ('sql_link_changed', 1, 'A row of iu_sql_link was inserted, updated or deleted, or the table was truncated.',
     jsonb_build_object(
        'type', 'object', 'required', jsonb '["schema", "table", "operation", "primary_key"]', 'properties', captured))
) v (type, version, description, schema);

select tidemark.worker_set('iu_outbound_default', '{"domains": ["iu"], "description": "Routes the events of IU Core."}',
                           'pack iu-core')
where not exists (select from tidemark.worker w where w.worker = 'iu_outbound_default');

-- Off and in dry run, as every new route is. Notifications carry only ids, so they suit each of these events until an
-- operator names another target.
select tidemark.route_set(v.route_code, jsonb_build_object(
           'worker', 'iu_outbound_default', 'domain', 'iu', 'type', v.type, 'target_kind', 'notify',
           'target_ref', v.channel, 'description', v.description), 'pack iu-core')
from (values
    ('iu_events', '*', 'iu_events', 'Wakes whoever listens for anything that happens to a unit.'),
    ('iu_unit_created', 'unit_created', 'iu_unit_created', 'Source: S1 fn_iu_create.'),
    ('iu_unit_enacted', 'unit_enacted', 'iu_unit_enacted', 'Source: S1 fn_iu_enact.'),
    ('iu_version_applied', 'version_applied', 'iu_version_applied', 'Source: S1 unit_version insert.'),
    ('iu_sql_link_changed', 'sql_link_changed', 'iu_sql_link_changed', 'Source: S1 iu_sql_link change.'),
    ('iu_child_added', 'IU_CHILD_ADDED', 'iu_child_added', 'Source: S1, structure.'),
    ('iu_split', 'IU_SPLIT', 'iu_split', 'Source: S1, structure.'),
    ('iu_merged', 'IU_MERGED', 'iu_merged', 'Source: S1, structure.'),
    ('iu_deprecated', 'IU_DEPRECATED', 'iu_deprecated', 'Source: S1, structure.'),
    ('iu_reparented', 'IU_REPARENTED', 'iu_reparented', 'Source: S1, structure.'),
    ('iu_structure_sql_link_changed', 'IU_SQL_LINK_CHANGED', 'iu_structure_sql_link_changed', 'Source: S1, structure.'),
    ('iu_replaced', 'IU_REPLACED', 'iu_replaced', 'Source: S1, structure, optional there.'),
    ('iu_root_added', 'IU_ROOT_ADDED', 'iu_root_added', 'Source: S1, structure, optional there.'),
    ('iu_child_order_changed', 'IU_CHILD_ORDER_CHANGED', 'iu_child_order_changed',
     'Source: S1, structure, optional there.'),
    ('iu_lineage_changed', 'IU_LINEAGE_CHANGED', 'iu_lineage_changed', 'Source: S1, structure, optional there.')
) v (route_code, type, channel, description)
where not exists (select from tidemark.outbound_route r where r.route_code = v.route_code);

-- Also off and in dry run. The tables are the application's, which may lack them, or have them in another schema: the
-- pack does not look at them before capture attach. An operator's route for the same changes stays, and the pack's is
-- not made.
select tidemark.inbound_route_set(v.route_code, jsonb_build_object(
           'source_schema', 'public', 'source_table', v.source_table, 'sql_event', v.sql_event, 'domain', 'iu',
           'type', v.type, 'description', v.description), 'pack iu-core')
from (values
    ('iu_sql_link_insert', 'iu_sql_link', 'insert', 'sql_link_changed', 'Source: S1 fn_iu_sql_link_inbound_capture.'),
    ('iu_sql_link_update', 'iu_sql_link', 'update', 'sql_link_changed', 'Source: S1 fn_iu_sql_link_inbound_capture.'),
    ('iu_sql_link_delete', 'iu_sql_link', 'delete', 'sql_link_changed', 'Source: S1 fn_iu_sql_link_inbound_capture.'),
    ('iu_sql_link_truncate', 'iu_sql_link', 'truncate', 'sql_link_changed',
     'Source: S1 fn_iu_sql_link_inbound_capture.'),
    ('iu_unit_version_insert', 'unit_version', 'insert', 'version_applied', 'Source: S1 fn_iu_outbound_on_version.')
) v (route_code, source_table, sql_event, type, description)
where not exists (select from tidemark.inbound_route r
                  where r.route_code = v.route_code
                     or (r.source_schema, r.source_table, r.sql_event) = ('public', v.source_table, v.sql_event));

-- S1's own functions, if the application has them: they call tidemark.inbound_emit with the route's code.
select tidemark.inbound_route_set(v.route_code, jsonb_build_object(
           'source_object_kind', 'function', 'source_schema', 'public', 'source_table', v.function, 'sql_event', 'call',
           'domain', 'iu', 'type', v.type, 'payload_columns', v.fields, 'description', v.description), 'pack iu-core')
from (values
    ('iu_create_call', 'fn_iu_create', 'unit_created', '["unit_id", "unit_kind", "parent_id"]'::jsonb,
     'Source: S1 fn_iu_create.'),
    ('iu_enact_call', 'fn_iu_enact', 'unit_enacted', '["unit_id", "version_id"]', 'Source: S1 fn_iu_enact.')
) v (route_code, function, type, fields, description)
where not exists (select from tidemark.inbound_route r
                  where r.route_code = v.route_code
                     or (r.source_object_kind, r.source_schema, r.source_table) = ('function', 'public', v.function));
