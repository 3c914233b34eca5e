-- A row that cannot be read as jsonb is at fault by itself, and stops no worker. The functions have further parameters and columns.

set local role tidemark_owner;

drop function if exists tidemark.source_json;
drop function if exists tidemark.source_query;
drop function if exists tidemark.source_read;
drop function if exists tidemark.source_open;

comment on column tidemark.pending_row.snapshot is 'The row as it was: used where it is gone by then. Its member "" names the columns that it cannot hold, and the SQLSTATE why; such a column is text, or missing.';
