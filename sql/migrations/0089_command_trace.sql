-- The trace of a command is kept in its claim. And tidemark.command_problem is given the command, which its callers have read.

set local role tidemark_owner;

alter table tidemark.command_claim add column trace text;
comment on column tidemark.command_claim.trace is 'Trace of the command: the header traceparent of its record, else trace_id; null: the claim is of before this column.';
grant select (trace) on tidemark.command_claim to tidemark_reader;

drop function if exists tidemark.command_problem;
