-- Tables of the application that Tidemark has no part in. A worker reads them and writes down each row in app.noted,
-- where nothing keeps it from being written down twice.

-- Safety sequence.
create table app.ledger (
    id bigint generated always as identity primary key,
    write_id bigint not null,
    poison boolean not null,
    at timestamptz not null default clock_timestamp() -- which shows that a number was given out again
);

-- Safety clock, by ids that say nothing, in two partitions.
create table app.receipt (
    id uuid primary key default gen_random_uuid(),
    write_id bigint not null,
    poison boolean not null,
    created_at timestamptz not null default now()
) partition by hash (id);
create table app.receipt_0 partition of app.receipt for values with (modulus 2, remainder 0);
create table app.receipt_1 partition of app.receipt for values with (modulus 2, remainder 1);
create index receipt_created_at on app.receipt (created_at, id);

-- Safety declared: the writer says when it was, or does not know.
create table app.reading (
    id text collate "C" primary key,
    write_id bigint not null,
    poison boolean not null,
    taken_at timestamptz
);
create index reading_taken_at on app.reading (taken_at, id);

-- Captured: each row becomes an event, which a route of its own delivers. Safety capture: the worker reads it too.
create table app.parcel (
    id bigint generated always as identity primary key,
    write_id bigint not null,
    poison boolean not null
);

-- Rows that were deleted, whether they had been read or not.
create table app.bygone (source text not null, row_id text not null, write_id bigint not null, poison boolean not null);

create table app.noted (
    n bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    source text not null,
    row_id text not null,
    write_id bigint not null
);

create function app.append(write bigint, poison boolean, reading text, taken_at timestamptz) returns void language sql as $$
    insert into app.ledger (write_id, poison) values (write, poison);
    insert into app.receipt (write_id, poison) values (write, poison);
    insert into app.parcel (write_id, poison) values (write, poison);
    insert into app.reading (id, write_id, poison, taken_at) values (reading, write, poison, taken_at);
$$;

create function app.note(rows_ anyarray) returns jsonb language plpgsql as $$
begin
    insert into app.noted (source, row_id, write_id)
    select rtrim(split_part(pg_typeof(rows_)::text, '.', 2), '[]'), r.id::text, r.write_id from unnest(rows_) r;
    if exists (select from unnest(rows_) r where r.poison) then
        raise exception 'poison';
    end if;
    return jsonb_build_object('noted', cardinality(rows_));
end
$$;

create function app.note_parcel(event jsonb) returns void language plpgsql as $$
declare
    parcel constant jsonb := event -> 'payload' -> 'columns';
begin
    insert into app.noted (source, row_id, write_id) values ('parcel-event', event ->> 'key', (parcel ->> 'write_id')::bigint);
    if (parcel ->> 'poison')::boolean then
        raise exception 'poison';
    end if;
end
$$;

-- For an operator who has had a cursor moved back: what is read again is noted again.
create function app.forget_ledger(after bigint) returns void language sql as $$
    delete from app.noted where source = 'ledger' and row_id::bigint > after;
$$;
create function app.forget_receipts(since timestamptz) returns void language sql as $$
    delete from app.noted n using app.receipt r where n.source = 'receipt' and r.id::text = n.row_id and r.created_at >= since;
$$;

grant insert on app.ledger, app.receipt, app.reading, app.parcel to chaos_writer;
grant select on app.ledger, app.receipt, app.reading, app.parcel to chaos_daemon;
-- To see that it was set back.
grant select on sequence app.ledger_id_seq to chaos_daemon;
grant insert on app.noted to chaos_daemon;

-- To see when the transactions of others began.
grant pg_read_all_stats to tidemark_owner;

select count(*) from tidemark.source_set('ledger', '{"table": "app.ledger", "id_column": "id", "timestamp_column": "at", "safety": "sequence"}');
select count(*) from tidemark.source_set('receipt', '{"table": "app.receipt", "id_column": "id", "timestamp_column": "created_at", "safety": "clock"}');
select count(*) from tidemark.source_set('reading', '{"table": "app.reading", "id_column": "id", "timestamp_column": "taken_at", "safety": "declared",
    "sweep_window": "2 minutes", "sweep_every": "2 seconds", "bucket": "10 seconds"}');
select count(*) from tidemark.type_set('captured', 'parcel');
select count(*) from tidemark.inbound_route_set('parcels-in', '{"source_schema": "app", "source_table": "parcel", "sql_event": "insert", "domain": "captured",
    "type": "parcel", "payload_columns": ["write_id", "poison"], "enabled": true, "dry_run": false}');
select count(*) from tidemark.capture_attach('app.parcel', 'chaos');
select count(*) from tidemark.route_set('parcels', '{"domain": "captured", "target_kind": "sql", "target_ref": "app.note_parcel", "enabled": true,
    "dry_run": false, "timeout": "2 seconds", "retry_policy": {"max_attempts": 3, "base_seconds": 0.1, "max_seconds": 1}}');
select count(*) from tidemark.source_set('parcel', '{"table": "app.parcel", "id_column": "id", "safety": "capture"}');
select count(*) from tidemark.worker_set('tables', '{"source": "table", "handler": "sql", "handler_ref": "app.note", "page_size": 1000,
    "retry_policy": {"max_attempts": 3, "base_seconds": 0.1, "max_seconds": 1}}');
select tidemark.worker_source_add('tables', s, 'chaos') from unnest('{ledger,receipt,reading,parcel}'::text[]) s;
