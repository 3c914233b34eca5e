create or replace function tidemark.capture_events(after_seq bigint, upto_seq bigint)
returns table (name text, inserts bigint, deletes bigint)
language sql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    select e.subject_table, count(*) filter (where r.sql_event = 'insert'),
           count(*) filter (where r.sql_event = 'delete')
    from (
        select o.subject_table, o.inbound_id from tidemark.outbox o
        where o.seq > after_seq and o.seq <= capture_events.upto_seq and o.inbound_id > 0
        union all
        -- Of an earlier release.
        select o.subject_table, r.id from tidemark.outbox o
        join tidemark.inbound_route r on r.domain = o.domain and r.type = o.type
            and r.sql_event = o.payload ->> 'operation'
        where o.seq > after_seq and o.seq <= capture_events.upto_seq
          and o.seq <= (select tidemark.captured_upto()) and o.inbound_id is null and not o.payload ? 'reconciled') e
    join tidemark.inbound_route r on r.id = e.inbound_id
        and e.subject_table = format('%I.%I', r.source_schema, r.source_table)
    where r.source_object_kind = 'table' and r.sql_event in ('insert', 'delete') and r.enabled
    group by 1
$$;
comment on function tidemark.capture_events(bigint, bigint) is
    'How many inserts and deletes of captured tables have events in a part of the log. The event of a gap''s row is '
    'left out: its change was counted when it was missed.';
