-- Passes over several partitions of commands share a transaction, by tidemark.command_passes. Daemons of before go on to call
-- tidemark.command_pass.

set local role tidemark_owner;
