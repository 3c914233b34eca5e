-- Parked commands that are due are found by their command: what waits behind a closed gate, or of a command that is off, is not read.

set local role tidemark_owner;

drop index tidemark.command_parked_due;
create index command_parked_due on tidemark.command_parked (service, next_attempt_at);
create index command_parked_command on tidemark.command_parked
    (service, (call ->> 'command'), (call ->> 'command_version'), next_attempt_at, position) where next_attempt_at < 'infinity';
