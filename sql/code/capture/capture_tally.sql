create or replace function tidemark.capture_tally(after_seq bigint, upto_seq bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    update tidemark.capture_count c
    set round_inserts = c.round_inserts + n.inserts, round_deletes = c.round_deletes + n.deletes
    from (select o.subject_table as name, count(*) filter (where r.sql_event = 'insert') as inserts,
                 count(*) filter (where r.sql_event = 'delete') as deletes
          from tidemark.outbox o
          join tidemark.inbound_route r on r.domain = o.domain and r.type = o.type
              and r.sql_event = o.payload ->> 'operation'
              and o.subject_table = format('%I.%I', r.source_schema, r.source_table)
          where o.seq > after_seq and o.seq <= capture_tally.upto_seq and r.source_object_kind = 'table'
            and r.sql_event in ('insert', 'delete') and r.enabled and not o.payload ? 'reconciled'
          group by 1) n
    where n.name = c.name;
end
$$;
comment on function tidemark.capture_tally(bigint, bigint) is
    'Part of tidemark.capture_recount: counts the events of a part of the log, by table. The event of a gap''s row is '
    'left out: its change was counted when it was missed.';
