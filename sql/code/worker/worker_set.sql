-- public
create or replace function tidemark.worker_set(
    worker text,
    changes jsonb default '{}',
    reason text default null,
    starts text default null)
returns setof tidemark.worker
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    row_ tidemark.worker;
    was integer;
    had text[];
    widens boolean;
begin
    perform set_config('tidemark.reason', coalesce(worker_set.reason, ''), true);
    perform tidemark.changes_check('worker', worker_set.changes, 'tidemark.worker', array['id', 'worker']);
    insert into tidemark.worker (worker, source, handler, handler_ref)
    select worker_set.worker, coalesce(changes ->> 'source', 'outbox'),
           coalesce(changes ->> 'handler', case changes ->> 'source' when 'table' then 'sql' else 'route' end),
           changes ->> 'handler_ref'
    where not exists (select from tidemark.worker w where w.worker = worker_set.worker)
    on conflict do nothing;
    -- Wait for a pass under way, and lock rows in its order: it has its lease when it adds pending events, whose
    -- foreign key locks the worker.
    perform from tidemark.heartbeat h
    where h.executor_id in (
        select tidemark.executor_id(c.worker, c.source, c.shard) from tidemark.worker_cursor c
        where c.worker = worker_set.worker and c.source = 'outbox')
    order by h.executor_id for update;
    select w.* into row_ from tidemark.worker w where w.worker = worker_set.worker for update;
    if (changes ? 'source' and changes ->> 'source' is distinct from row_.source)
        or (changes ? 'handler' and changes ->> 'handler' is distinct from row_.handler) then
        raise exception using errcode = 'TM005',
            message = format('worker %s reads %s for %s, and cannot become another kind', row_.worker, row_.source,
                             row_.handler),
            hint = 'Make another worker.';
    elsif row_.source <> 'outbox' and (changes ->> 'shards')::integer <> row_.shards and exists (
        select from tidemark.worker_cursor c where c.worker = row_.worker and c.source <> 'outbox')
    then
        raise exception using errcode = 'TM005',
            message = format('worker %s has cursors for %s shards', row_.worker, row_.shards),
            hint = 'Set shards before the first source is added, or make another worker.';
    elsif not tidemark.retry_policy_ok(nullif(changes -> 'retry_policy', 'null')) then
        raise exception using errcode = 'TM005',
            message = format('worker %s: retry_policy %s cannot be read', row_.worker, changes -> 'retry_policy'),
            hint = 'An object with any of max_attempts (1 to 100), base_seconds, max_seconds, jitter (0 to 1); or '
                'null.';
    end if;
    was := row_.shards;
    had := row_.domains;
    row_ := jsonb_populate_record(row_, changes - 'source' - 'handler');
    if row_.off_peak is not null
        and not exists (select from pg_timezone_names z where z.name = split_part(row_.off_peak, ' ', 2)) then
        raise exception using errcode = 'TM005',
            message = format('worker %s: off_peak is %s, and there is no time zone "%s"', row_.worker, row_.off_peak,
                             split_part(row_.off_peak, ' ', 2)),
            hint = 'For example 22:00-06:00 Europe/Berlin.';
    end if;
    if row_.source = 'outbox' then
        if not tidemark.worker_cursor_make(row_.worker, worker_set.starts) and worker_set.starts is not null then
            perform tidemark.worker_cursor_place(row_.worker, worker_set.starts);
        end if;
        if row_.shards > 1 and row_.read_order = 'strict' then
            raise exception using errcode = 'TM005',
                message = format('worker %s: read_order strict is the order of the whole log, and shards read it '
                                 'beside each other', row_.worker),
                hint = 'Use one shard, or read_order eager, which keeps the order of each key.';
        elsif row_.shards <> was then
            perform tidemark.worker_shards(row_.worker, row_.shards, worker_set.reason);
        end if;
    elsif worker_set.starts is not null then
        raise exception using errcode = 'TM005',
            message = format('worker %s reads tables, each from its beginning', row_.worker);
    end if;
    widens := had is not null and (row_.domains <@ had) is not true;
    if widens then
        -- Of its new domains it has no evidence for what it has read, also in a page under way: tidemark.verify asks
        -- for none up to here.
        update tidemark.worker_cursor c
        set begins_after = greatest(c.begins_after, (select q.last_value - (not q.is_called)::integer
                                                     from tidemark.outbox_seq_seq q))
        where c.worker = row_.worker and c.source = 'outbox';
    end if;
    -- A page under way was read without its new domains: it is read again.
    update tidemark.heartbeat h
    set domain_scope = coalesce(row_.domains, '{}'),
        lease_epoch = h.lease_epoch + widens::integer
    where h.executor_id = any (array(
        select tidemark.executor_id(row_.worker, 'outbox', n) from generate_series(0, row_.shards - 1) n));
    return query
    update tidemark.worker w
    set (handler_ref, payload_columns, domains, read_order, hole_limit, shards, page_size, page_timeout, retry_policy,
         coalesce_window, storm_fraction, off_peak, peak_pause, lock_wait_limit, replication_lag_limit, description)
      = row(row_.handler_ref, row_.payload_columns, row_.domains, row_.read_order, row_.hole_limit, row_.shards,
            row_.page_size, row_.page_timeout, row_.retry_policy, row_.coalesce_window, row_.storm_fraction,
            row_.off_peak, row_.peak_pause, row_.lock_wait_limit, row_.replication_lag_limit, row_.description)
    where w.worker = worker_set.worker returning w.*;
end
$$;
comment on function tidemark.worker_set(text, jsonb, text, text) is
    'Creates a worker, with its heartbeat and its cursor, or changes the named columns of one. starts is where the '
    'cursor begins, for a new worker or one that has made no pass yet: now (the default: with the next event), start '
    '(of the log as retention has left it), the number of the first event, or a time. With {"source": "table", '
    '"handler": …} it creates a worker of tables, which gets its cursors by tidemark.worker_source_add. shards of a '
    'worker of the log change while no instance runs it (tidemark.worker_shards). Its gate stays as it is: closed for '
    'a new worker. Returns the row. Raises TM005 for an unknown column, a changed source or '
    'handler, an unreadable retry policy, a start of a worker that has begun.';
grant execute on function tidemark.worker_set(text, jsonb, text, text) to tidemark_admin;
