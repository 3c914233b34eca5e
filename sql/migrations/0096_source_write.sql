-- A source that was changed meanwhile is not overwritten.

set local role tidemark_owner;

-- Its parameters change.
drop function if exists tidemark.source_write;
