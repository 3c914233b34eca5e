-- Vocabulary: the domain and its event types.

select tidemark.domain_set('governance', '{"metadata_only": true, "restricted": true, "description": "Candidates of '
                                         'governance, and the workers that look after them."}',
                           'pack governance')
where not exists (select from tidemark.domain d where d.domain = 'governance');

-- Event types that come once per candidate or once per page are off at first: a million rows would make a million
-- events.
select tidemark.type_set('governance', v.type,
                         jsonb_build_object('version', 1, 'description', v.description, 'schema', v.schema)
           || case when e.type is null and not v.enabled then '{"enabled": false}'::jsonb else '{}' end,
           'pack governance')
from (
    select w.worker || '.heartbeat', 'Worker ' || w.worker || ' has done a page.', false, jsonb '{
        "type": "object", "required": ["rows_seen"],
        "properties": {"rows_seen": {"type": "integer", "minimum": 0},
                       "dirty_marked": {"type": "integer", "minimum": 0},
                       "ruleset_version": {"type": "string"}, "snapshot_ref": {"type": "integer"}}}'
    from unnest(governance.worker_names()) w (worker)
    union all
    select f.type, f.description, true, jsonb '{
        "type": "object", "required": ["subject"],
        "properties": {"subject": {"type": "string", "minLength": 1}, "severity": {"type": "string"},
                       "finding_id": {"type": "integer"}, "count": {"type": "integer"}}}'
    from (values
        ('cursor_lag', 'A worker''s cursor is far behind.'),
        ('cursor_dlq', 'A row was dead-lettered.'),
        ('cursor_silent_gap', 'A worker has given no sign of life for too long.'),
        ('cursor_lease_conflict', 'Two instances believed to own a cursor, and one was fenced.'),
        ('cursor_watermark_regression', 'A watermark was to go back.'),
        ('cursor_dlq_overflow', 'A worker has too many dead letters.'),
        ('group_invalidation_storm', 'Too large a share of all groups was dirtied before the worker had caught up.'),
        ('handoff_lag', 'gov_handoff_intake is far behind.'),
        ('handoff_dlq', 'A row was dead-lettered by gov_handoff_intake.'),
        ('handoff_silent_gap', 'gov_handoff_intake has given no sign of life for too long.'),
        ('handoff_dlq_overflow', 'gov_handoff_intake has too many dead letters.'),
        ('candidate_scan_lag', 'gov_candidate_scan is far behind.')) f (type, description)
    union all values
    ('candidate_dirtied', 'A candidate is to be judged anew.', false, jsonb '{
        "type": "object", "required": ["candidate_key", "ruleset_version"],
        "properties": {"candidate_key": {"type": "string", "minLength": 1}, "ruleset_version": {"type": "string"}}}'),
    ('verdict_proposed', 'A candidate has its first verdict, or another one than before.', false, '{
        "type": "object", "required": ["candidate_key", "ruleset_version", "verdict"],
        "properties": {"candidate_key": {"type": "string", "minLength": 1}, "ruleset_version": {"type": "string"},
                       "verdict": {"type": "string"}}}'),
    ('audit_snapshot', 'A full audit is through.', true, '{
        "type": "object", "required": ["snapshot_ref", "rows_seen"],
        "properties": {"snapshot_ref": {"type": "integer"}, "ruleset_version": {"type": "string"},
                       "rows_seen": {"type": "integer"}, "missing": {"type": "integer"},
                       "dirty_marked": {"type": "integer"}, "states": {"type": "object"},
                       "verdicts": {"type": "object"}}}')
) v (type, description, enabled, schema)
left join tidemark.event_type e on e.domain = 'governance' and e.type = v.type;
