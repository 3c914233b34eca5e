-- The routes of compose.yaml. It can be run again.
select tidemark.stage_set('live', 'compose.yaml');
select tidemark.type_set('shop', 'order.created');
select tidemark.route_set('billing', '{"domain": "shop", "type": "order.*", "ordering": "key", "target_kind": "webhook",
    "target_ref": "http://receiver:8080/hooks", "options": {"secret": "billing"}, "enabled": true, "dry_run": false}');
select tidemark.route_set('bus', '{"domain": "shop", "ordering": "key", "target_kind": "kafka", "target_ref": "shop",
    "enabled": true, "dry_run": false}');
select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true);
