-- A watermark of the log that was set back by hand is told from a rewind.

set local role tidemark_owner;

alter table tidemark.worker_cursor add column rewound_to bigint;
comment on column tidemark.worker_cursor.rewound_to is 'Of the log: where a rewind, or another start, has left the watermark below decided_through, and since where the last pass has left it. Null: it is not below. A watermark below that was edited by hand.';
update tidemark.worker_cursor c set rewound_to = c.watermark_id::bigint
where case when c.source = 'outbox' then c.watermark_id::bigint < c.decided_through::bigint end;
comment on column tidemark.worker_cursor.begins_after is 'Of the log: the worker decides events with higher numbers, and those below that were not committed when it was made. 0: from the start. Where its domains were widened, the last number then: for lower ones it may lack evidence.';
