-- Not a security definer, as tidemark.transformed is not.
create or replace function tidemark.transform_try(
    route tidemark.outbound_route,
    seqs bigint[],
    payloads jsonb[],
    path text,
    out dropped int8multirange,
    out failed bigint[],
    out failures text[])
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    n constant integer := cardinality(seqs);
    failure text;
    half record;
begin
    dropped := '{}';
    failed := '{}';
    failures := '{}';
    if n = 0 then
        return;
    end if;
    begin
        select coalesce(range_agg(int8range(m.seq, m.seq + 1)) filter (where m.payload is null), '{}') into dropped
        from unnest(seqs, tidemark.transformed(route.transform, route.columns, payloads, path)) m (seq, payload);
        return;
    exception when others or assert_failure then
        if tidemark.is_transient(sqlstate) and sqlstate not like '25%' then
            raise;
        end if;
        failure := format('%s: %s (%s)', coalesce(route.transform, 'columns'), sqlerrm, sqlstate);
    end;
    if n = 1 then
        failed := seqs;
        failures := array[failure];
        return;
    end if;
    for half in
        select t.dropped, t.failed, t.failures
        from (values (1, n / 2), (n / 2 + 1, n)) h (first, last)
        cross join lateral tidemark.transform_try(route, seqs[h.first : h.last], payloads[h.first : h.last], path) t
    loop
        dropped := dropped + half.dropped;
        failed := failed || half.failed;
        failures := failures || half.failures;
    end loop;
end
$$;
comment on function tidemark.transform_try(tidemark.outbound_route, bigint[], jsonb[], text) is
    'Which of these events the route''s transform would drop, at which it would fail, and how at each of them. '
    'Raises what is not the transform''s fault (tidemark.is_transient), and a timeout.';
grant execute on function tidemark.transform_try(tidemark.outbound_route, bigint[], jsonb[], text)
    to tidemark_executor;
