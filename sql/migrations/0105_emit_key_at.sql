-- Keys that are past their retention are found without all others. The summaries of the index before never lose the
-- oldest time of their pages, which new keys use again: before long every key was read.

set local role tidemark_owner;

drop index tidemark.emit_key_created_at;
-- It can be made before, while emits go on (docs/UPGRADING.md).
create index if not exists emit_key_at on tidemark.emit_key (created_at);
