-- Trying a dead letter again may have a reason, which the audit keeps.

set local role tidemark_owner;

-- Their parameters change.
drop function if exists tidemark.dead_letter_replay;
drop function if exists tidemark.dead_letter_replay_many;
drop function if exists tidemark.dead_letter_settle;
drop function if exists tidemark.dead_letter_requeue;
