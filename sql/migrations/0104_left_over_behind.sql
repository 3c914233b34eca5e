-- What is left over inside the database is read in parts.

set local role tidemark_owner;

-- Its result has another column now.
drop function if exists tidemark.left_over;
