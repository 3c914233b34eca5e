-- Schemas with a value that their keyword cannot have count as checked by SQL, which takes no notice of it. What is not
-- known is left to the daemon, until command_set looks again.

set local role tidemark_owner;

update tidemark.command set unchecked = null where unchecked = '{}';
comment on column tidemark.command.unchecked is 'Keywords of payload_schema that SQL does not check, as JSON pointers (tidemark.contract_unchecked): of commands from Kafka the daemon checks these. Set by tidemark.command_set. Null: the command was set before SQL looked for them as it does now; command_set sets it.';
