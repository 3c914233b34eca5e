-- For tidemark command list, newest first.

set local role tidemark_owner;

create index command_claim_processed_at on tidemark.command_claim (processed_at);
