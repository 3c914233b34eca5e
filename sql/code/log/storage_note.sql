create or replace function tidemark.storage_note()
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    insert into tidemark.storage_sample as s (at, bytes, log_bytes, older_at, older_bytes, newer_at, newer_bytes)
    select n.at, n.bytes, n.log_bytes, n.at, n.bytes, n.at, n.bytes
    from (select clock_timestamp() as at,
                 -- Where databases are closed to PUBLIC, the owner, a role without login, may lack both rights.
                 case when has_database_privilege(current_database(), 'connect')
                          or pg_has_role('pg_read_all_stats', 'usage')
                      then pg_database_size(current_database()) end as bytes,
                 (select coalesce(sum(pg_total_relation_size(i.inhrelid)), 0)::bigint from pg_inherits i
                  where i.inhparent in ('tidemark.outbox'::regclass, 'tidemark.attempt'::regclass,
                                        'tidemark.decision'::regclass)) as log_bytes) n
    on conflict (one) do update
    set at = excluded.at, bytes = excluded.bytes, log_bytes = excluded.log_bytes,
        (older_at, older_bytes, newer_at, newer_bytes) = (
            select x.older_at, x.older_bytes, x.newer_at, x.newer_bytes
            from (values (s.older_at, s.older_bytes, s.newer_at, s.newer_bytes, 2),
                         (s.newer_at, s.newer_bytes, excluded.at, excluded.bytes, 1)) x
                (older_at, older_bytes, newer_at, newer_bytes, rank)
            -- What was measured before the clock was set back tells nothing.
            where x.rank = 2 or s.newer_at not between excluded.at - interval '30 minutes' and excluded.at
            order by x.rank limit 1)
$$;
comment on function tidemark.storage_note() is
    'Part of tidemark.maintain: notes how large the database and the log are. The growth counts from up to an hour '
    'ago. The time of the note is also that of the last call that did all its work (tidemark.cause_upkeep).';
