-- public
create or replace function tidemark.worker_rewind(
    worker text, to_seq bigint, reason text, dry_run boolean default false)
returns table (was bigint, route_code text, outcome tidemark.outcome, events bigint, decided boolean, complete boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if not coalesce(worker_rewind.dry_run, false) and coalesce(btrim(worker_rewind.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'rewinding a cursor needs a reason';
    end if;
    if not coalesce(worker_rewind.dry_run, false) then
        perform tidemark.lease_end(worker_rewind.worker, 'outbox');
        perform from tidemark.worker_cursor c
        where c.worker = worker_rewind.worker and c.source = 'outbox' order by c.shard for update;
    end if;
    -- Shards that have not come as far stay where they are.
    select max(c.watermark_id::bigint) into was from tidemark.worker_cursor c
    where c.worker = worker_rewind.worker and c.source = 'outbox';
    if was is null then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', worker_rewind.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    end if;
    if to_seq is null or to_seq not between 0 and was then
        raise exception using errcode = 'TM005',
            message = format('worker %s is at %s: rewind it to a place from 0 to %s, not to '
                             '%s', worker_rewind.worker, was,
                             was, coalesce(to_seq::text, 'null'));
    end if;
    -- Count before the cursor moves.
    return query select * from tidemark.rewind_outlook(worker_rewind.worker, to_seq);
    if coalesce(worker_rewind.dry_run, false) then
        return;
    end if;

    -- The worker meets the open numbers above the new watermark again as it reads on.
    update tidemark.worker_cursor c
    set watermark_id = least(c.watermark_id::bigint, to_seq)::text,
        -- Lower: the watermark was edited by hand.
        decided_through = greatest(c.decided_through::bigint, least(c.watermark_id::bigint, to_seq))::text,
        rewound_to = case when least(c.watermark_id::bigint, to_seq) < c.decided_through::bigint
                          then least(c.watermark_id::bigint, to_seq) end,
        holes = c.holes * int8multirange(int8range(null, to_seq + 1)),
        fenced = c.fenced * int8multirange(int8range(null, to_seq + 1)),
        begins_after = least(c.begins_after, to_seq), dealt_through = null,
        updated_at = clock_timestamp()
    where c.worker = worker_rewind.worker and c.source = 'outbox';
    insert into tidemark.audit (action, object, reason, before, after)
    values ('worker_rewind', 'worker_cursor ' || worker_rewind.worker, worker_rewind.reason,
            jsonb_build_object('watermark', was), jsonb_build_object('watermark', to_seq));
end
$$;
comment on function tidemark.worker_rewind(text, bigint, text, boolean) is
    'Moves a worker''s cursor back to the event numbered to_seq, and returns the effects, counted before the move; '
    'with dry_run it only counts. Decided events stay decided: rows with decided true (of each route and latest '
    'outcome; route_code null: no route claimed them) are not delivered again; for that use tidemark.route_replay. '
    'Rows with decided false are events that a route has no evidence for, with their outcome to come (pending: '
    'delivered, also those whose payload is erased, as {"erased": time}). The row with decided null counts the events '
    'of the log in between. was is the watermark before, of shards the highest: those that are not past to_seq stay. '
    'complete false: only the first million of these events were checked for undecided ones. Waits for a pass under '
    'way. Raises TM004, TM005.';
grant execute on function tidemark.worker_rewind(text, bigint, text, boolean) to tidemark_admin;
