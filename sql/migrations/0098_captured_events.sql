-- The log tells the events of captures from those that emitters wrote, whatever these say.

set local role tidemark_owner;

alter table tidemark.outbox add column inbound_id integer;
grant select (inbound_id) on tidemark.outbox to tidemark_reader;
comment on column tidemark.outbox.inbound_id is 'Number of the inbound route whose trigger wrote the event of a captured table; 0: a backfill or a gap of the table did; null: an emitter.';

create table tidemark.capture_mark (
    one boolean primary key default true constraint there_is_one_row check (one),
    upto_seq bigint,
    witness text[]
);
comment on table tidemark.capture_mark is 'From which number of the log on the events of captures have an inbound_id, one row. Written by tidemark.maintain after an upgrade.';
comment on column tidemark.capture_mark.one is 'True.';
comment on column tidemark.capture_mark.upto_seq is 'Events up to this number may be of a capture of an earlier release, without inbound_id; null: it is not known yet, any event may.';
comment on column tidemark.capture_mark.witness is 'Virtual transaction ids that were in use after the upgrade: one of these may still run a trigger function of the earlier release.';
grant select on tidemark.capture_mark to tidemark_reader, tidemark_admin, tidemark_executor;
-- A log without a number has no such event.
insert into tidemark.capture_mark (upto_seq) select case when not q.is_called then 0 end from tidemark.outbox_seq_seq q;

-- It takes a parameter more.
drop function if exists tidemark.emit_all;
