-- Which sequence gave a table its numbers, and the rows next below the watermark: how a sequence that was set back is told.

set local role tidemark_owner;

alter type tidemark.source_page add attribute times timestamptz[];
comment on type tidemark.source_page is 'What was read of a table: rows examined, fresh (they passed filter and shard, and a sweep had not seen them) and taken (what coalescing left of these), the last one, the numbers of all of them and their times (safety sequence), what the handler returned.';

drop function if exists tidemark.source_restarted;
