-- Trying a dead letter again may have a reason, which the audit keeps.

set local role tidemark_owner;

drop function if exists tidemark.dead_letter_replay(bigint, boolean);
drop function if exists tidemark.dead_letter_replay_many(text, text, timestamptz, timestamptz, integer, boolean, text, bigint);
drop function if exists tidemark.dead_letter_settle(bigint, tidemark.outcome, text, text);
drop function if exists tidemark.dead_letter_requeue(bigint);
