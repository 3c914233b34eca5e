-- Tables of others as sources, and what their workers keep about them.

set local role tidemark_owner;

create table tidemark.source (
    source text primary key constraint source_is_a_plain_name check (source ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$' and source <> 'outbox'),
    schema_name text not null,
    table_name text not null,
    id_column text not null,
    id_type text not null,
    id_collate_c boolean not null default false,
    timestamp_column text,
    timestamp_type text,
    time_zone text,
    key_columns text[] not null default '{}',
    group_key text[] not null default '{}',
    filter text,
    safety text not null constraint safety_is_known check (safety in ('sequence', 'clock', 'capture', 'declared')),
    margin interval not null default '1 second' constraint margin_is_not_negative check (margin >= interval '0'),
    sweep_window interval constraint sweep_window_is_positive check (sweep_window > interval '0'),
    sweep_every interval not null default '1 minute' constraint sweep_every_is_positive check (sweep_every > interval '0'),
    bucket interval not null default '1 hour' constraint bucket_is_1s_to_30d check (
        bucket between interval '1 second' and interval '30 days' and pg_catalog.date_part('month', bucket) = 0),
    description text not null default '',
    created_at timestamptz not null default pg_catalog.clock_timestamp(),
    created_by text not null default session_user,
    constraint keyset_has_a_timestamp check (safety in ('sequence', 'capture') or timestamp_column is not null),
    constraint timestamp_has_a_type check ((timestamp_column is null) = (timestamp_type is null)),
    constraint sweep_is_of_a_keyset check (sweep_window is null or safety in ('clock', 'declared'))
);
comment on table tidemark.source is 'Append-only tables that workers read. A new source is a row, no code. Source: S2 39.4 (ts-col, id-col, id-type).';
comment on column tidemark.source.source is 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
comment on column tidemark.source.schema_name is 'Schema of the table, as the catalog spells it.';
comment on column tidemark.source.table_name is 'The table, as the catalog spells it.';
comment on column tidemark.source.id_column is 'Column that identifies a row: not null, unique, never updated.';
comment on column tidemark.source.id_type is 'Its type, from the catalog: smallint, integer, bigint, uuid, text, character varying or numeric.';
comment on column tidemark.source.id_collate_c is 'Text ids of another collation are compared in "C".';
comment on column tidemark.source.timestamp_column is 'Column that says when the row was made. Null: the id alone orders the rows (safety sequence).';
comment on column tidemark.source.timestamp_type is 'Its type, from the catalog.';
comment on column tidemark.source.time_zone is 'For a timestamp without time zone: the zone that its writers mean.';
comment on column tidemark.source.key_columns is 'Columns that name what the row is about: shards go by them, emit shows them. Empty: the id.';
comment on column tidemark.source.group_key is 'Columns by which rows are coalesced. Empty: they are not.';
comment on column tidemark.source.filter is 'SQL condition over the columns; rows for which it is not true are passed over. It runs with the rights of the worker. Null: all rows.';
comment on column tidemark.source.safety is 'What makes the reading lossless: sequence, clock, capture or declared (see docs/sources.md).';
comment on column tidemark.source.margin is 'clock and declared: how far behind the horizon the reading stays. Default 1 s.';
comment on column tidemark.source.sweep_window is 'How far behind the watermark rows may still appear: so much is read again by the sweep, and older rows are counted. Null (default): no sweep but for rows without a usable timestamp.';
comment on column tidemark.source.sweep_every is 'Time between two sweeps. Default 1 minute.';
comment on column tidemark.source.bucket is 'Width of the time buckets in which rows are counted. Default 1 hour.';
comment on column tidemark.source.description is 'For people.';
comment on column tidemark.source.created_at is 'When it was added.';
comment on column tidemark.source.created_by is 'The role that logged in to add it.';

create table tidemark.pending_row (
    worker_id integer not null references tidemark.worker,
    source text not null references tidemark.source,
    shard integer not null,
    item_id text not null,
    item_ts timestamptz,
    snapshot jsonb not null,
    error_count integer not null default 1,
    last_error text not null,
    next_attempt_at timestamptz not null,
    dead_letter_id bigint references tidemark.dead_letter,
    created_at timestamptz not null default pg_catalog.clock_timestamp(),
    primary key (worker_id, source, shard, item_id)
);
create index pending_row_due on tidemark.pending_row (worker_id, source, shard, next_attempt_at);
create index pending_row_source on tidemark.pending_row (source);
create index pending_row_dead_letter on tidemark.pending_row (dead_letter_id) where dead_letter_id is not null;
comment on table tidemark.pending_row is 'Rows of sources that failed and are to be tried again. Source: S2 event_pending.';
comment on column tidemark.pending_row.worker_id is 'tidemark.worker.id.';
comment on column tidemark.pending_row.source is 'The source.';
comment on column tidemark.pending_row.shard is 'The worker''s shard.';
comment on column tidemark.pending_row.item_id is 'Id of the row, as text.';
comment on column tidemark.pending_row.item_ts is 'Timestamp of the row.';
comment on column tidemark.pending_row.snapshot is 'The row as it was: used where it is gone by then.';
comment on column tidemark.pending_row.error_count is 'Attempts that failed so far.';
comment on column tidemark.pending_row.last_error is 'Why the last one failed.';
comment on column tidemark.pending_row.next_attempt_at is 'Not before.';
comment on column tidemark.pending_row.dead_letter_id is 'Dead letter that this replays.';
comment on column tidemark.pending_row.created_at is 'When it was staged.';

create table tidemark.source_ledger (
    worker_id integer not null references tidemark.worker,
    source text not null references tidemark.source,
    shard integer not null,
    item_id text not null,
    xid xid8 not null,
    primary key (worker_id, source, shard, item_id)
);
create index source_ledger_source on tidemark.source_ledger (source);
comment on table tidemark.source_ledger is 'Rows handled already of transactions that the last sweep could not be sure to have seen whole. A sweep drops what has become older.';
comment on column tidemark.source_ledger.worker_id is 'tidemark.worker.id.';
comment on column tidemark.source_ledger.source is 'The source.';
comment on column tidemark.source_ledger.shard is 'The worker''s shard.';
comment on column tidemark.source_ledger.item_id is 'Id of the row, as text.';
comment on column tidemark.source_ledger.xid is 'Transaction that wrote the row (xmin, widened).';

create table tidemark.source_count (
    worker_id integer not null references tidemark.worker,
    source text not null references tidemark.source,
    shard integer not null,
    bucket timestamptz not null,
    items bigint not null,
    primary key (worker_id, source, shard, bucket)
) with (fillfactor = 70);
create index source_count_source on tidemark.source_count (source);
comment on table tidemark.source_count is 'How many rows of each time bucket were handled, of sources with a sweep: compared with the table before verified_through moves.';
comment on column tidemark.source_count.worker_id is 'tidemark.worker.id.';
comment on column tidemark.source_count.source is 'The source.';
comment on column tidemark.source_count.shard is 'The worker''s shard.';
comment on column tidemark.source_count.bucket is 'Beginning of the bucket.';
comment on column tidemark.source_count.items is 'Rows handled, staged as pending or dead-lettered.';

create type tidemark.source_plan as (
    status text,
    detail text,
    step text,
    worker tidemark.worker,
    source tidemark.source,
    cursor tidemark.worker_cursor,
    relation oid,
    call text,
    horizon timestamptz,
    fence_closed boolean,
    sweep jsonb,
    rows_limit integer
);
comment on type tidemark.source_plan is 'What the next pass over a source is to do: status go, or why not (closed, held, throttled, waiting; detail says more); step forward, sweep or retry; the table, and how its handler is called.';

create type tidemark.source_page as (
    examined integer,
    taken integer,
    fresh integer,
    last_ts timestamptz,
    last_id text,
    late integer,
    numbers bigint[],
    result jsonb,
    ledger_ids text[],
    ledger_xids text[],
    counts jsonb
);
comment on type tidemark.source_page is 'What was read of a table: rows examined, fresh (they passed filter and shard, and a sweep had not seen them) and taken (what coalescing left of these), the last one, the numbers of all of them (safety sequence), what the handler returned.';

create type tidemark.failed_row as (
    item_id text,
    item_ts timestamptz,
    snapshot jsonb,
    code text,
    message text,
    permanent boolean,
    delay double precision
);
comment on type tidemark.failed_row is 'A row that the handler refused. permanent: not to be tried again; delay: seconds to wait, null: as the retry policy says.';

grant select on tidemark.source, tidemark.source_ledger, tidemark.source_count to tidemark_reader, tidemark_executor;
grant select (worker_id, source, shard, item_id, item_ts, error_count, last_error, next_attempt_at, dead_letter_id, created_at)
    on tidemark.pending_row to tidemark_reader, tidemark_executor;
grant select on tidemark.pending_row to tidemark_admin;
