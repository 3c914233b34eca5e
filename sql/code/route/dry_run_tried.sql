create or replace function tidemark.dry_run_tried(
    worker_id integer,
    route_id integer,
    last_seq bigint,
    tried bigint[],
    found_ bigint[],
    dropped int8multirange,
    failed bigint[],
    failures text[])
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    d tidemark.decision;
    rest int8multirange;
    these int8multirange;
    missing int8multirange;
    bad int8multirange;
begin
    select x.* into d from tidemark.decision x
    where (x.worker_id, x.route_id, x.last_seq)
              = (dry_run_tried.worker_id, dry_run_tried.route_id, dry_run_tried.last_seq)
      and x.outcome = 'dry_run' and x.reason = 'transform_untried'
    for update;
    if d.seqs is null then
        return;
    end if;
    -- Nothing but these: an event has one outcome.
    these := d.seqs * tidemark.numbers_multirange(tried);
    rest := d.seqs - these;
    missing := these - tidemark.numbers_multirange(found_);
    bad := (these - missing) * tidemark.numbers_multirange(failed);
    dropped := (these - missing - bad) * dropped;
    if isempty(rest) then
        delete from tidemark.decision x
        where (x.worker_id, x.route_id, x.last_seq) = (d.worker_id, d.route_id, d.last_seq);
    else
        -- The first ones were tried: its key stays.
        update tidemark.decision x
        set seqs = rest, first_seq = lower(rest),
            events = d.events - (select sum(upper(s) - lower(s)) from unnest(these) s)
        where (x.worker_id, x.route_id, x.last_seq) = (d.worker_id, d.route_id, d.last_seq);
    end if;
    insert into tidemark.decision (worker_id, route_id, last_seq, first_seq, events, outcome, reason, seqs, decided_at)
    select d.worker_id, d.route_id, upper(p.seqs) - 1, lower(p.seqs),
           (select sum(upper(s) - lower(s)) from unnest(p.seqs) s), 'dry_run', p.reason, p.seqs, d.decided_at
    from (values (null, these - missing - bad - dropped), ('transform', dropped), ('event_missing', missing))
         p (reason, seqs)
    where not isempty(p.seqs);
    insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail, decided_at)
    select f.seq, d.worker_id, d.route_id, 1, 'dry_run',
           case when f.failure is null then 'transform_untried' else 'transform_failed' end, f.failure, d.decided_at
    from unnest(failed, failures) f (seq, failure) where bad @> f.seq;
end
$$;
comment on function tidemark.dry_run_tried(integer, integer, bigint, bigint[], bigint[], int8multirange, bigint[],
                                           text[]) is
    'Puts into the evidence what the route''s transform made of events of a dry run: the first numbers of the range '
    'that ends with last_seq. found_ are those whose payload the log still has. A failure of null: it took too long to '
    'be tried, and stays untried. A range that was tried meanwhile stays.';
grant execute on function tidemark.dry_run_tried(integer, integer, bigint, bigint[], bigint[], int8multirange,
                                                 bigint[], text[]) to tidemark_executor;
