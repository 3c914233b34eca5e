create or replace function tidemark.dry_run_untried(
    route_id integer,
    most integer,
    out worker_id integer,
    out last_seq bigint,
    out seqs bigint[])
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    max_bytes constant bigint := 1000000;
    last bigint;
    numbers int8multirange;
begin
    -- Another daemon takes other events meanwhile.
    select d.worker_id, d.last_seq, d.seqs into worker_id, last_seq, numbers
    from tidemark.decision d
    where d.route_id = dry_run_untried.route_id and d.reason = 'transform_untried'
    order by d.last_seq desc limit 1 for update skip locked;
    if numbers is null then
        return;
    end if;
    seqs := (tidemark.multirange_numbers(numbers))[: most];
    last := tidemark.last_within(numbers * int8multirange(int8range(null, seqs[cardinality(seqs)] + 1)), max_bytes);
    if last is not null then
        seqs := array(select n from unnest(seqs) n where n <= last order by n);
    end if;
end
$$;
comment on function tidemark.dry_run_untried(integer, integer) is
    'Locks the latest range of events that were decided in dry run on the route and for which its transform was not '
    'called yet, and returns the first of them, at most most, which fit into a megabyte of payload (one at least). '
    'Null: there is none, or other transactions have them.';
grant execute on function tidemark.dry_run_untried(integer, integer) to tidemark_executor;
