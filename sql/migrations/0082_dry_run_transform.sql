-- The evidence of a dry run tells what the route's transform makes of the event.

set local role tidemark_owner;

-- What is still to be tried, without a look at the rest.
create index decision_untried on tidemark.decision (route_id, last_seq) where reason = 'transform_untried';
comment on column tidemark.decision.reason is 'Closed set: no_route, or why a route that does not fail closed was skipped; why it is pending: behind_key, busy, breaker_open, gate_closed, suspect (the statement that it was in took too long); of a dry run on a route with a transform: transform (it would drop the event), transform_untried (it has not been called yet), event_missing; null where the outcome says it all.';
comment on column tidemark.attempt.outcome is 'sent, failed or pending; dry_run or disabled for a replay; dry_run for an event at which the transform of a route in dry run failed.';

-- Its result changes.
drop function if exists tidemark.transform_try;
