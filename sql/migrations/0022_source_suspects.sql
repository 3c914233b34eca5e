-- A page of a table that takes too long leads to the row that hangs: what the next pass is to know.

set local role tidemark_owner;

alter type tidemark.source_plan add attribute suspects integer;
comment on type tidemark.source_plan is 'What the next pass over a source is to do: status go, or why not (closed, held, throttled, waiting; detail says more); step forward, sweep or retry; the table, and how its handler is called; suspects: one of so many rows may hang, null: none.';

drop function if exists tidemark.source_pass;
drop function if exists tidemark.source_split;
