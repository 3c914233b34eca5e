-- The application of the demo: units, whose rows its transactions lock; a journal of what it emitted, written
-- in the same transactions; and a function that takes the events and notes what it got, in the order in which
-- it got it. Tidemark knows none of these tables.
create schema demo;

create table demo.unit (unit_id text primary key, version int not null default 0);
insert into demo.unit select 'unit-' || i from generate_series(1, 200) i;

create table demo.journal (event_id uuid primary key, unit_id text not null, version int not null);

create function demo.apply_version(unit_no int) returns void language sql as $$
    with next as (
        update demo.unit set version = version + 1 where unit_id = 'unit-' || unit_no returning unit_id, version
    )
    insert into demo.journal (event_id, unit_id, version)
    select tidemark.emit_strict('iu', 'version_applied',
               jsonb_build_object('unit_id', unit_id, 'version_id', version::text), key => unit_id),
           unit_id, version
    from next $$;

create table demo.received (
    at bigint generated always as identity primary key,
    seq bigint not null, event_id uuid not null, unit_id text not null, version int not null);

create function demo.receive(event jsonb) returns void language plpgsql as $$
begin
    if event -> 'payload' ->> 'version_id' = 'not a number' then
        raise exception 'version_id is not a number';
    end if;
    insert into demo.received (seq, event_id, unit_id, version)
    values ((event ->> 'seq')::bigint, (event ->> 'event_id')::uuid, event -> 'payload' ->> 'unit_id',
            (event -> 'payload' ->> 'version_id')::int);
end $$;
