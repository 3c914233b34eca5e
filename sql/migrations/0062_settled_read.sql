-- It has a parameter and a column more: a page that leaves nothing to deliver is settled by the statement that reads it.

set local role tidemark_owner;

drop function if exists tidemark.pass_read;
