-- A route may change the payloads that it delivers.

set local role tidemark_owner;

alter table tidemark.outbound_route add column transform text, add column columns text[];
comment on column tidemark.outbound_route.transform is 'schema.function(jsonb) returns jsonb that makes the payload which this route delivers; null from it drops the event on this route (skipped, reason transform). Null (default): none.';
comment on column tidemark.outbound_route.columns is 'Top-level keys of the payload that this route delivers, of what transform made; null (default): all.';

alter table tidemark.dead_letter drop constraint resolution_is_known;
alter table tidemark.dead_letter add constraint resolution_is_known
    check (resolution in ('sent', 'dry_run', 'discarded', 'replayed', 'skipped')) not valid;
alter table tidemark.dead_letter validate constraint resolution_is_known;
comment on column tidemark.dead_letter.resolution is 'sent, dry_run or skipped (by the route''s transform), when it was replayed; or discarded.';

comment on column tidemark.replay_job.left_out is 'Events passed over so far, by the reason: pending, dead_letter, discarded, no_match, open, outcome, transform.';

-- Its parameters change.
drop function if exists tidemark.target_call;
