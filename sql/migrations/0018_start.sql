-- Where a new worker of the log begins.

set local role tidemark_owner;

drop function if exists tidemark.worker_set;
drop function if exists tidemark.handlers_register;

alter table tidemark.worker_cursor add column begins_after bigint not null default 0;
comment on column tidemark.worker_cursor.begins_after is 'Of the log: the worker decides events with higher numbers, and those below that were not committed when it was made. 0: from the start.';
