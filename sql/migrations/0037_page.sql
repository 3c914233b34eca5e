-- The columns of a page are named once (tidemark.event_head), and its payload comes behind them.

set local role tidemark_owner;

drop function if exists tidemark.pass_read;
