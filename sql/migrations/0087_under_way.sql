-- tidemark.settle_retried tells what it has recorded.

set local role tidemark_owner;

drop function if exists tidemark.settle_retried;
