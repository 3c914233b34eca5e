create or replace function tidemark.worker_rewind(worker text, to_seq bigint, reason text)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    was bigint;
begin
    if coalesce(btrim(worker_rewind.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a cursor is not rewound without a reason';
    end if;
    -- Whoever is in the middle of a pass read what it settles from the old place. First the heartbeat, then
    -- the cursor: the order in which a pass takes them.
    update tidemark.heartbeat h set lease_epoch = lease_epoch + 1, lease_until = null, lease_owner = null
    where h.executor_id = worker_rewind.worker || '/outbox/0';
    select c.watermark_id::bigint into was from tidemark.worker_cursor c
    where c.worker = worker_rewind.worker and c.source = 'outbox' and c.shard = 0 for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', worker_rewind.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    end if;
    if to_seq is null or to_seq not between 0 and was then
        raise exception using errcode = 'TM005',
            message = format('worker %s is at %s: it can be rewound to 0 to %s, not to %s', worker_rewind.worker, was, was,
                             coalesce(to_seq::text, 'null'));
    end if;

    -- What is open above the new watermark is met again by reading on.
    update tidemark.worker_cursor c
    set watermark_id = to_seq::text,
        holes = c.holes * int8multirange(int8range(null, to_seq + 1)),
        fenced = c.fenced * int8multirange(int8range(null, to_seq + 1)),
        updated_at = clock_timestamp()
    where c.worker = worker_rewind.worker and c.source = 'outbox' and c.shard = 0;
    insert into tidemark.audit (action, object, reason, before, after)
    values ('worker_rewind', 'worker_cursor ' || worker_rewind.worker, worker_rewind.reason,
            jsonb_build_object('watermark', was), jsonb_build_object('watermark', to_seq));
    return was;
end
$$;
comment on function tidemark.worker_rewind(text, bigint, text) is 'Moves a worker''s cursor back to the event numbered to_seq, and returns where it was. What was decided stays decided: only routes that did not decide those events yet get them. Waits for a pass under way. Raises TM004, TM005.';
revoke all on function tidemark.worker_rewind(text, bigint, text) from public;
grant execute on function tidemark.worker_rewind(text, bigint, text) to tidemark_admin;
