-- The watch: what is wrong by its cause is told once when it begins, and once when it is over.

set local role tidemark_owner;

alter table tidemark.finding
    add column derived boolean not null default false,
    add column told text constraint told_is_known check (told in ('opened', 'closed'));
comment on column tidemark.finding.derived is 'True: tidemark.watch opened it, for a cause that only the view tidemark.cause shows, and closes it.';
comment on column tidemark.finding.told is 'What was told of it, by an event and in the log of the daemon: opened, then closed. Null: nothing yet, or it is a symptom of another cause.';
-- What was open before was told already.
update tidemark.finding f set told = 'opened' where f.closed_at is null;
create index finding_told on tidemark.finding (kind, subject) where told = 'opened';

-- Events about findings are emitted by tidemark.watch.
drop trigger if exists finding_opened on tidemark.finding;
drop trigger if exists finding_closed on tidemark.finding;
drop function if exists tidemark.finding_event;
delete from tidemark.code where object in ('finding_event', 'finding_opened', 'finding_closed');

create table tidemark.watcher (
    one boolean primary key default true constraint one_row check (one),
    name text,
    until timestamptz
);
comment on table tidemark.watcher is 'Who watches (tidemark.watch): one at a time.';
comment on column tidemark.watcher.one is 'Always true: the table has one row.';
comment on column tidemark.watcher.name is 'The daemon''s instance, or the session that watched last; null: none yet.';
comment on column tidemark.watcher.until is 'Until then no other watches; null: another may.';
insert into tidemark.watcher default values;
grant select on tidemark.watcher to tidemark_reader, tidemark_executor;

alter table tidemark.dead_letter add column logged boolean not null default true;
alter table tidemark.dead_letter alter column logged set default false;
comment on column tidemark.dead_letter.logged is 'Whether a daemon has written its line to the log.';
create index dead_letter_unlogged on tidemark.dead_letter (id) where not logged;
