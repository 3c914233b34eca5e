-- Commands are replayed from their records.

set local role tidemark_owner;

alter table tidemark.command_record add column call jsonb, add column replays integer not null default 0;
comment on column tidemark.command_record.call is 'The command as it was checked, without the raw record; null: it was refused before that, or recorded by an earlier release.';
comment on column tidemark.command_record.replays is 'How often it was replayed before this.';
comment on column tidemark.command_record.replayed_at is 'When a replay took it up; null: none did, or it has failed again since.';
grant select (replays) on tidemark.command_record to tidemark_reader;

comment on column tidemark.dead_letter.resolution is 'sent or dry_run (replayed), replayed (a command, by tidemark.command_replay), or discarded.';
alter table tidemark.dead_letter drop constraint resolution_is_known;
alter table tidemark.dead_letter add constraint resolution_is_known check (resolution in ('sent', 'dry_run', 'discarded', 'replayed'));
