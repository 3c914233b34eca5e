-- A handler of rows may take the bounds of a page.
drop function if exists tidemark.source_handler;
