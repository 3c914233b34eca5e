-- The owner may be refused CONNECT, and then does not see how large the database is.

set local role tidemark_owner;

alter table tidemark.storage_sample alter column bytes drop not null, alter column older_bytes drop not null,
    alter column newer_bytes drop not null;
comment on column tidemark.storage_sample.bytes is 'pg_database_size then. Null: tidemark_owner may not see it.';
