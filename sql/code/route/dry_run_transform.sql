-- public
-- Not a security definer: the transform runs with the rights of the caller, as it does where an event is delivered. No
-- pass waits for its locks: the worker has settled these events, and its lease is not held here. Sources of safety
-- clock do wait for the end of its transaction, and maintain drops no partition of tidemark.decision meanwhile.
create or replace function tidemark.dry_run_transform(
    route_code text,
    most integer default 500,
    out events integer,
    out late boolean)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    route constant tidemark.outbound_route := (
        select r from tidemark.outbound_route r where r.route_code = dry_run_transform.route_code);
    given constant text := current_setting('statement_timeout');
    untried record;
    seqs bigint[];
    payloads jsonb[];
    dropped int8multirange;
    failed bigint[];
    failures text[];
begin
    if route.id is null then
        raise exception using errcode = 'TM004',
            message = format('there is no route "%s"', dry_run_transform.route_code),
            hint = 'Routes: tidemark route list';
    elsif coalesce(most, 0) not between 1 and 5000 then
        raise exception using errcode = 'TM005',
            message = format('most is %s, and must be from 1 to 5000', coalesce(most::text, 'null'));
    end if;
    events := 0;
    late := false;
    if route.transform is null then
        return;
    end if;
    untried := tidemark.dry_run_untried(route.id, most);
    if untried.seqs is null then
        return;
    end if;
    -- An erased payload is as good as none.
    select coalesce(array_agg(o.seq), '{}'), coalesce(array_agg(o.payload), '{}') into seqs, payloads
    from tidemark.events(untried.seqs) o -- in order
    where not o.payload ? 'erased' or o.payload - 'erased' <> '{}';
    begin
        select t.dropped, t.failed, t.failures into dropped, failed, failures
        from tidemark.transform_try(route, seqs, payloads, tidemark.default_search_path()) t;
    exception when query_canceled then
        -- Fewer events may be quicker. The timer does not fire again, and nothing but the record follows.
        if cardinality(seqs) > 1 or tidemark.time_left() is null or tidemark.time_left() > interval '0' then
            raise;
        end if;
        late := true;
        dropped := '{}';
        failed := seqs;
        -- Null: it is not known whether it would fail, as a delivery gives it more time.
        failures := array[case when given::interval + interval '1 millisecond' > route.timeout
                               then format('%s: it took longer than %s', route.transform, given) end];
    end;
    perform tidemark.dry_run_tried(untried.worker_id, route.id, untried.last_seq, untried.seqs, seqs, dropped, failed,
                                   failures);
    events := cardinality(untried.seqs);
end
$$;
comment on function tidemark.dry_run_transform(text, integer) is
    'Calls the route''s transform for events that were decided in dry run (reason transform_untried), the latest '
    'batch first, at most most of them (1 to 5000), and puts into the evidence what would have become of them: '
    'dropped (reason transform), failed (transform_failed, with the error), or sent (no reason). The daemon calls it '
    'by itself. Returns how many events it tried: 0, none is left. A statement_timeout ends a transform that hangs: '
    'then call it with fewer; a single event (late) is recorded as failed if it had the route''s timeout, and stays '
    'transform_untried for good if it had less. An event whose payload is erased, or that is gone from the log, is '
    'recorded as event_missing. Raises TM004, TM005.';
grant execute on function tidemark.dry_run_transform(text, integer) to tidemark_executor;
