-- The message of an error may quote the payload ("invalid input syntax for type integer: ..."), so it is for roles that
-- may read payloads. Readers have the code, and what it means: tidemark.error_shown.

set local role tidemark_owner;

revoke select on tidemark.attempt, tidemark.pending from tidemark_reader;
grant select (seq, worker_id, route_id, attempt_no, outcome, reason, decided_at) on tidemark.attempt to tidemark_reader;
revoke select (error_detail) on tidemark.dead_letter from tidemark_reader;
revoke select (last_error) on tidemark.pending_row from tidemark_reader;
grant select (worker_id, route_id, seq, attempt_no, key, next_attempt_at, error_count, dead_letter_id, created_at, replay, replay_id, suspects)
    on tidemark.pending to tidemark_reader;
