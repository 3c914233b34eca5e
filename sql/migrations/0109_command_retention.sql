-- A longer retention counts for new records: claims keep the time that they were made with.

set local role tidemark_owner;

alter table tidemark.command
    add column retention_from timestamptz,
    add column retention_before interval;
comment on column tidemark.command.retention_from is 'Claims of records from before then may be kept for retention_before only, and older ones are refused: retention was raised two days before. Set by tidemark.command_set; null: it was not.';
comment on column tidemark.command.retention_before is 'The retention before it was raised; null: it was not.';

update tidemark.command_reason
set meaning = 'the record is older than claims are kept, or its time is more than a day ahead',
    producer = 'check whether the command took effect, then send it with a new record; set the clock right'
where code = 'idempotency.expired';
