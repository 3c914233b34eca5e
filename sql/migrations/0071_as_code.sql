-- Configuration as code: which file a thing is of, and things that are deleted while their evidence stays.

set local role tidemark_owner;

create table tidemark.former_name (
    kind text not null constraint kind_is_known check (kind in ('route', 'worker')),
    id integer not null,
    name text not null,
    deleted_at timestamptz not null default pg_catalog.clock_timestamp(),
    primary key (kind, id),
    unique (kind, name)
);
comment on table tidemark.former_name is 'Routes and workers that were deleted: their evidence and dead letters still name them. One that is made again under its name gets its id back.';
comment on column tidemark.former_name.kind is 'route or worker.';
comment on column tidemark.former_name.id is 'What evidence has as route_id or worker_id.';
comment on column tidemark.former_name.name is 'The code of the route, or the name of the worker.';
comment on column tidemark.former_name.deleted_at is 'When it was deleted.';
grant select on tidemark.former_name to tidemark_reader, tidemark_executor;

-- What is resolved or finished outlives its route and worker. The functions that delete these refuse while anything is open.
alter table tidemark.dead_letter
    drop constraint dead_letter_route_id_fkey,
    drop constraint dead_letter_worker_id_fkey;
alter table tidemark.replay_job
    drop constraint replay_job_route_id_fkey,
    drop constraint replay_job_worker_id_fkey;

-- Now source_delete, as every other deletion.
drop function if exists tidemark.source_remove(text, text);
delete from tidemark.code where object = 'source_remove';

create table tidemark.owned (
    kind text not null,
    name text not null,
    file text not null constraint file_is_a_plain_name check (file ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'),
    since timestamptz not null default pg_catalog.clock_timestamp(),
    primary key (kind, name)
);
create index owned_by_file on tidemark.owned (file);
comment on table tidemark.owned is 'Which file of configuration (tidemark apply) a thing is of: another file does not change it.';
comment on column tidemark.owned.kind is 'A kind of tidemark.configuration().';
comment on column tidemark.owned.name is 'The thing.';
comment on column tidemark.owned.file is 'The name that the file gives itself.';
comment on column tidemark.owned.since is 'When the file took it.';
grant select on tidemark.owned to tidemark_reader;
