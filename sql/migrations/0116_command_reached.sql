-- The consumer says where the cursor was before it asked Kafka where a partition ends.

set local role tidemark_owner;

drop function if exists tidemark.command_partition;
