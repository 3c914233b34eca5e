-- What a route may name is described once, in tidemark.target_rules, and the table refuses all else.

set local role tidemark_owner;

drop function if exists tidemark.river_error;
delete from tidemark.code where object = 'river_error';
comment on column tidemark.outbound_route.target_kind is 'sql, notify, river (served inside the database), webhook, kafka, nats, stdout (by the daemon) or go (by a Go program): tidemark.target_rules. Another kind is refused.';
comment on column tidemark.outbound_route.target_ref is 'What the kind names: tidemark.target_rules. sql: schema.function taking the event as jsonb. notify: channel. webhook: URL. kafka: topic. nats: subject. river: job kind. go: pattern of the handler.';
comment on column tidemark.outbound_route.options is 'What a kind of target takes beside target_ref, e.g. {"secret": "NAME", "format": "json", "rate_per_second": 50}: tidemark.target_rules. Names of secrets, never a secret. An option that the kind has not is refused; a name that the daemon''s configuration has not makes the route wait, with a finding. Default {}.';
