create or replace function tidemark.log_event_bytes()
returns numeric
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    select sum(pg_total_relation_size(t.relation)) / greatest(q.last_value - p.first_seq, 1)
    from tidemark.outbox_seq_seq q
    join tidemark.partitions('tidemark.outbox') p on q.last_value >= p.first_seq and q.last_value < p.end_seq
    cross join lateral (
        select to_regclass(format('tidemark.%s_p%s', k.name, p.first_seq)) as relation
        from unnest('{outbox,attempt,decision}'::text[]) k (name)) t
    group by q.last_value, p.first_seq
$$;
comment on function tidemark.log_event_bytes() is
    'How many bytes an event takes with its evidence, in the partition that is written. Null: it has none.';
grant execute on function tidemark.log_event_bytes() to tidemark_reader, tidemark_executor;
