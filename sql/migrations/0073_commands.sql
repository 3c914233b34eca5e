-- Commands: which of two sessions comes first, claims by event id, results that do not fit their schema, commands over HTTP that do not
-- come to an end, erasure.

set local role tidemark_owner;

create table tidemark.command_turn ();
comment on table tidemark.command_turn is 'Empty. A session that parks a command behind others takes its lock in row share mode, and one that releases parked commands in exclusive mode: see tidemark.command_release.';

-- For tidemark command show EVENT_ID. Random values leave this index two kilobytes in every 32 pages, filled by vacuum: the writer pays nothing
-- that can be measured, where a B-tree costs it 4 µs and 90 bytes of WAL for each command.
create index command_claim_event_id on tidemark.command_claim using brin (event_id uuid_bloom_ops(false_positive_rate = 0.001))
    with (pages_per_range = 32, autosummarize = on);

insert into tidemark.command_reason (code, class, meaning, producer) values
    ('runtime.result_invalid', 'runtime', 'the result does not fit the result_schema of the command; the effect was rolled back', 'tell the operator; then send it with a new key');
comment on column tidemark.command.result_schema is 'JSON Schema of the result, which its consumers rely on: a command with another result is rolled back (runtime.result_invalid). Null: none.';

-- They have one parameter more.
drop function if exists tidemark.command_ingress;
drop function if exists tidemark.command_ask;

alter table tidemark.command_claim add column erased_at timestamptz;
comment on column tidemark.command_claim.erased_at is 'When result and error_message were erased (tidemark.commands_erase); null: they were not.';
alter table tidemark.command_record add column erased_at timestamptz;
comment on column tidemark.command_record.erased_at is 'When key, value, headers, document and the command were erased (tidemark.commands_erase); null: they were not.';
grant select (erased_at) on tidemark.command_claim, tidemark.command_record to tidemark_reader;
