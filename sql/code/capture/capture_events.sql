create or replace function tidemark.capture_events(after_seq bigint, upto_seq bigint)
returns table (name text, inserts bigint, deletes bigint)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    select o.subject_table, count(*) filter (where r.sql_event = 'insert'),
           count(*) filter (where r.sql_event = 'delete')
    from tidemark.outbox o
    join tidemark.inbound_route r on r.domain = o.domain and r.type = o.type
        and r.sql_event = o.payload ->> 'operation'
        and o.subject_table = format('%I.%I', r.source_schema, r.source_table)
    where o.seq > after_seq and o.seq <= capture_events.upto_seq and r.source_object_kind = 'table'
      and r.sql_event in ('insert', 'delete') and r.enabled and not o.payload ? 'reconciled'
    group by 1
$$;
comment on function tidemark.capture_events(bigint, bigint) is
    'How many inserts and deletes of captured tables have events in a part of the log. The event of a gap''s row is '
    'left out: its change was counted when it was missed.';
