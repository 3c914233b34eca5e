-- The rows of a page that is tried again are read by their ids, in as many parts as it takes.

set local role tidemark_owner;

drop function if exists tidemark.source_due;
