-- The message of an error that a finding tells may quote a payload: readers have its code, and roles that may read payloads the
-- message (tidemark.finding_detail).

set local role tidemark_owner;

create table tidemark.finding_message (
    finding bigint primary key references tidemark.finding on delete cascade,
    message text not null
);
comment on table tidemark.finding_message is 'What the error said that a finding tells, for roles that may read payloads.';
comment on column tidemark.finding_message.finding is 'Number of the finding.';
comment on column tidemark.finding_message.message is 'The latest message, as the target or the server wrote it.';
grant select on tidemark.finding_message to tidemark_executor;
comment on column tidemark.finding.detail is 'The latest facts, blame included, in words of Tidemark''s: messages of errors are in tidemark.finding_message.';

-- They have a new parameter.
drop function if exists tidemark.finding_open;
drop function if exists tidemark.worker_finding;
