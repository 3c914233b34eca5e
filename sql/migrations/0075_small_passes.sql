-- tidemark.pass_read has a parameter and a column more: the rows of a large page are left to a plain statement.

set local role tidemark_owner;

drop function if exists tidemark.pass_read;
