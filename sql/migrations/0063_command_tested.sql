-- Commands that passed a test before they go live; payloads that the daemon checks.

set local role tidemark_owner;

alter table tidemark.command add column tested text constraint tested_is_a_sha256 check (tested ~ '^[0-9a-f]{64}$');
comment on column tidemark.command.tested is 'Checksum of the bundle with which this command passed tidemark command test, as it is registered. Null (default): it was not tested, or has changed since. Source: S3 compatibility tests.';

alter table tidemark.command add column unchecked text[];
comment on column tidemark.command.unchecked is 'Keywords of payload_schema that SQL does not check, as JSON pointers (tidemark.contract_unchecked): of commands from Kafka the daemon checks these. Set by tidemark.command_set. Null: the command is of before this column; command_set sets it.';
