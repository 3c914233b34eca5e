create or replace function tidemark.log_is_whole(after_seq bigint, upto_seq bigint)
returns boolean
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    select upto_seq - after_seq = coalesce(sum(least(p.end_seq - 1, upto_seq) - greatest(p.first_seq - 1, after_seq)),
                                           0)
    from tidemark.partitions('tidemark.outbox') p
    where p.first_seq <= upto_seq and p.end_seq > after_seq + 1
$$;
comment on function tidemark.log_is_whole(bigint, bigint) is
    'Whether the log has all its partitions for the numbers after after_seq, up to upto_seq.';
