-- Numbers below the watermark that have no row: one that gets a row was given out again.

set local role tidemark_owner;

alter type tidemark.source_plan add attribute gone int8multirange;
comment on type tidemark.source_plan is 'What the next pass over a source is to do: status go, or why not (closed, held, throttled, waiting; detail says more); step forward, sweep or retry; the table, and how its handler is called; suspects: one of so many rows may hang, null: none; gone: numbers shortly below the watermark without a row (safety sequence).';

drop function if exists tidemark.source_restarted;
