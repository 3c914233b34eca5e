-- The pack's own tables as sources, and the workers. A verdict and a step of the audit are read when their time comes:
-- they are ordered by a timestamp in the future.

select tidemark.source_set(v.source, v.definition, 'pack governance')
from (values
    ('governance_candidate', jsonb '{"table": "governance.candidate", "id_column": "id", "safety": "sequence",
        "key_columns": ["id"], "description": "Candidates, in the order of arrival."}'),
    ('governance_gated', '{"table": "governance.gated", "id_column": "seq", "safety": "sequence",
        "key_columns": ["candidate_id"], "description": "Candidates that came through the gate."}'),
    ('governance_mark', '{"table": "governance.mark", "id_column": "id", "safety": "sequence",
        "key_columns": ["candidate_id"], "description": "Candidates that are dirty."}'),
    ('governance_verdict', '{"table": "governance.verdict", "id_column": "candidate_id",
        "timestamp_column": "stale_after", "safety": "declared", "sweep_window": "1 hour",
        "key_columns": ["candidate_id"], "description": "Verdicts, when their time is over."}'),
    ('governance_audit_step', '{"table": "governance.audit_step", "id_column": "id", "timestamp_column": "due_at",
        "safety": "declared", "sweep_window": "1 hour", "description": "Steps of the full audit, when they are due."}')
) v (source, definition)
where not exists (select from tidemark.source s where s.source = v.source);

-- The guards of S2 39.7, which leaves their figures to the operator: by day a second between two passes; a pause while
-- other sessions wait for locks or a standby is behind; the intake gathers changes of one candidate, and a storm of
-- them slows it down.
select tidemark.worker_set(v.worker, jsonb '{"source": "table", "handler": "sql", "off_peak": "20:00-06:00 UTC",
        "peak_pause": "1 second", "lock_wait_limit": 20, "replication_lag_limit": "30 seconds"}' || v.definition,
                           'pack governance')
from (values
    ('gov_backfill_sweep', jsonb '{"handler_ref": "governance.backfill",
        "description": "Adds a candidate for each row of the birth tables."}'),
    ('gov_handoff_intake', '{"handler_ref": "governance.intake", "coalesce_window": "10 seconds", "storm_fraction": 0.2,
        "description": "Marks candidates that births, change logs and event logs tell of."}'),
    ('gov_input_gate', '{"handler_ref": "governance.gate",
        "description": "Judges the input quality of new candidates."}'),
    ('gov_candidate_scan', '{"handler_ref": "governance.scan",
        "description": "Proposes a verdict for new, dirty and stale candidates."}'),
    ('gov_periodic_full_audit', '{"handler_ref": "governance.audit", "page_size": 1,
        "description": "Goes through the whole inventory, page by page, and captures a snapshot."}')
) v (worker, definition)
where not exists (select from tidemark.worker w where w.worker = v.worker);

select tidemark.worker_source_add(v.worker, v.source, 'pack governance')
from (values
    ('gov_input_gate', 'governance_candidate'),
    ('gov_candidate_scan', 'governance_gated'),
    ('gov_candidate_scan', 'governance_mark'),
    ('gov_candidate_scan', 'governance_verdict'),
    ('gov_periodic_full_audit', 'governance_audit_step')
) v (worker, source)
where not exists (select from tidemark.worker_cursor c where c.worker = v.worker and c.source = v.source);
