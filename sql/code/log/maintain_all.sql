create or replace function tidemark.maintain_all()
returns table (action text, object text, detail text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- A waiting DDL lock makes every writer queue behind it. Give up early; the next call tries again.
set lock_timeout = '500ms'
as $$
#variable_conflict use_column
declare
    -- A setting that was removed has its default.
    size constant bigint := greatest(1000, coalesce(
        (select s.value::bigint from tidemark.setting s where s.key = 'outbox.partition_events'), 1000000));
    wanted constant integer := greatest(1, coalesce(
        (select s.value::integer from tidemark.setting s where s.key = 'outbox.partitions_ahead'), 2));
    retention constant interval := tidemark.interval_setting('outbox.retention', '30 days');
    -- More numbers than writers take while partitions are made.
    within_reach constant bigint := 100000;
    last_number bigint;
    needed bigint;
    needed_by text;
    end_of_all bigint;
    part record;
    name text;
    newest timestamptz;
    -- Why none can be dropped: what came to be needed after an old snapshot would not be seen.
    stuck text := case when current_setting('transaction_isolation') <> 'read committed'
        then format('the isolation level is %s, and must be read committed',
                    current_setting('transaction_isolation')) end;
    first_stuck text;
    left_undone text[] := '{}';
begin
    -- One call at a time: two would make the same partition. This mode does not conflict with writers, readers and the
    -- fence, and making a partition takes it anyway. An advisory lock would not do: any login could hold it.
    begin
        lock table only tidemark.outbox in share update exclusive mode nowait;
    exception when lock_not_available then
        return query select 'postponed', 'outbox', 'another call is under way';
        return;
    end;

    begin
        return query select r.action, r.object, r.detail from tidemark.maintain_rows() r;
    exception when lock_not_available then
        return query select 'postponed', 'rows', 'another session holds rows of findings, history or evidence locked: '
            'another call will do what needs them';
    end;

    -- From here on writers may have to wait, until this transaction ends: nothing follows but what needs these locks.
    last_number := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
    end_of_all := (select max(p.end_seq) from tidemark.partitions('tidemark.outbox') p);
    if exists (select from tidemark.outbox_rest) then
        begin
            -- Under this lock every writer that took a number has written its row.
            lock table tidemark.outbox in access exclusive mode;
            last_number := (select q.last_value from tidemark.outbox_seq_seq q);
            perform tidemark.partition_absorb(end_of_all, last_number + 1);
            return query select 'absorbed', format('outbox_p%s', end_of_all),
                format('numbers %s to %s had no partition of their own: call maintain more often', end_of_all,
                       last_number);
            end_of_all := last_number + 1;
        exception when lock_not_available then
            return query select 'kept', 'outbox_rest', 'the log is busy; another call will absorb it';
            left_undone := left_undone || text 'outbox_rest is not absorbed, and no partition made: the log is busy';
        end;
    end if;

    -- A number that is still in the rest may be one of a new partition.
    if left_undone = '{}' then
        begin
            -- A writer that was routed to the rest must not find its number in a new partition: PostgreSQL would fail
            -- its statement (23514). If numbers may reach the new partition while it is made, no writer may be under
            -- way.
            if end_of_all - last_number < within_reach then
                lock table tidemark.outbox in share row exclusive mode;
                last_number := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
            end if;
            while (select count(*) from tidemark.partitions('tidemark.outbox') p
                   where p.first_seq > last_number) < wanted loop
                perform tidemark.partition_add(end_of_all, end_of_all + size);
                return query select 'created', format('outbox_p%s', end_of_all),
                    format('for numbers %s to %s', end_of_all, end_of_all + size - 1);
                end_of_all := end_of_all + size;
            end loop;
        exception when lock_not_available or check_violation then
            -- Numbers have run into the rest meanwhile, which violates its check: the next call absorbs them.
            return query select 'postponed', 'outbox', 'the log is busy; another call will make partitions';
            left_undone := left_undone || text 'no partition is made: the log is busy';
        end;
    end if;

    select n.seq, n.who into needed, needed_by from tidemark.log_needed() n;

    for part in select p.* from tidemark.partitions('tidemark.outbox') p where p.end_seq <= last_number + 1 loop
        name := format('outbox_p%s', part.first_seq);
        execute format('select o.created_at from %s o order by o.seq desc limit 1', part.partition) into newest;
        if part.end_seq > needed then
            return query select 'kept', name, format('needed from number %s by %s', needed, needed_by);
        elsif newest > clock_timestamp() - retention then
            return query select 'kept', name,
                format('its newest event is from %s, the retention is %s', date_trunc('second', newest), retention);
        elsif stuck is not null then
            return query select 'kept', name, stuck;
            first_stuck := coalesce(first_stuck, name);
        else
            begin
                -- The log comes last: writers wait for it only after this call holds the locks of the evidence, of
                -- which an operator may have dropped a partition by hand.
                execute format('lock table %s in access exclusive mode', (
                    select string_agg('only ' || t.name, ', ' order by t.n)
                    from unnest(array['tidemark.attempt', 'tidemark.attempt_p' || part.first_seq,
                                      'tidemark.decision', 'tidemark.decision_p' || part.first_seq,
                                      'tidemark.outbox', part.partition::text]) with ordinality t (name, n)
                    where to_regclass(t.name) is not null));
                -- A replay or a new worker that this call has waited for may need it.
                select n.seq, n.who into needed, needed_by from tidemark.log_needed() n;
                if part.end_seq > needed then
                    return query select 'kept', name, format('needed from number %s by %s', needed, needed_by);
                else
                    execute format('drop table if exists tidemark.attempt_p%s, tidemark.decision_p%s, %s',
                                   part.first_seq, part.first_seq, part.partition);
                    return query select 'dropped', name,
                        format('numbers %s to %s, with their evidence', part.first_seq, part.end_seq - 1);
                end if;
            exception when lock_not_available then
                -- Writers have waited behind this call. The reader that blocked it would also block the next drop.
                stuck := 'the log is busy; another call will drop it';
                return query select 'kept', name, stuck;
                first_stuck := name;
            end;
        end if;
    end loop;

    if first_stuck is not null then
        left_undone := left_undone || format('%s is past the retention, and is not dropped: %s', first_stuck, stuck);
    end if;
    -- Wait for no one here.
    update tidemark.storage_sample s
    set undone = nullif(array_to_string(left_undone, '; '), ''),
        undone_since = case when left_undone <> '{}' then least(s.undone_since, clock_timestamp()) end
    where s.one = (select x.one from tidemark.storage_sample x for update skip locked);
end
$$;
comment on function tidemark.maintain_all() is
    'The part of tidemark.maintain that runs with the rights of tidemark_owner. Notes what of the partitions it had to '
    'leave undone, and since when (tidemark.cause_upkeep).';
grant execute on function tidemark.maintain_all() to tidemark_admin, tidemark_executor;
