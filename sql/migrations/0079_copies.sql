create table tidemark.copy_mark (
    mark text primary key,
    target text not null,
    ours boolean not null,
    at timestamptz not null
);
create index copy_mark_at on tidemark.copy_mark (at);
comment on table tidemark.copy_mark is 'Marks that were left at brokers in the last hour, by which two live copies of a database notice each other (tidemark.copies_compare).';
comment on column tidemark.copy_mark.mark is 'The mark.';
comment on column tidemark.copy_mark.target is 'The broker: its kind, and the name of its connection in the configuration.';
comment on column tidemark.copy_mark.ours is 'A daemon of this database has left it; false: another one, so that the database is not this one.';
comment on column tidemark.copy_mark.at is 'When it was made here, or first seen.';
