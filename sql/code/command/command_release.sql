create or replace function tidemark.command_release(services text[], idempotency_keys text[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    lanes record;
    patience constant text := current_setting('lock_timeout');
    holders text;
begin
    -- The last lock that a session takes on parked commands. The rows alone would not do: this session has those of
    -- many ordering keys, and a pass that parks behind several could wait for one while it keeps another. A lock of the
    -- table of its own is granted in the order in which sessions ask, and an advisory lock could be held by any login.
    -- While this waits, all that would park wait behind it: not for longer than a session that was left open.
    begin
        perform set_config('lock_timeout', '2s', true);
        lock table tidemark.command_turn in exclusive mode;
    exception when lock_not_available then
        select string_agg(format('pid %s', l.pid), ', ' order by l.pid) into holders
        from pg_locks l
        where l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.relation = 'tidemark.command_turn'::regclass and l.granted and l.pid <> pg_backend_pid();
        raise exception using errcode = 'lock_not_available',
            message = format('parked commands cannot be released: a transaction that has parked others is still open '
                             '(%s)', coalesce(holders, 'it has just ended')),
            hint = 'Nothing was done, and it will be tried again. Sessions: select * from pg_stat_activity;';
    end;
    perform set_config('lock_timeout', patience, true);
    -- By ctid, of rows that the caller has locked: a join would be planned by what was parked at the time.
    with done as (
        delete from tidemark.command_parked p
        where p.ctid = any (array(
            select q.place
            from unnest(services, idempotency_keys) d (service, idempotency_key)
            cross join lateral (
                -- Only the primary key has this order.
                select q.ctid as place from tidemark.command_parked q
                where q.service = d.service and q.idempotency_key between d.idempotency_key and d.idempotency_key
                order by q.idempotency_key limit 1) q))
        returning p.service, p.key
    )
    select array_agg(d.service) as services, array_agg(d.key) as keys into lanes
    from (select distinct service, key from done) d;
    -- No other session changes a command that waits behind others while this one has its turn.
    update tidemark.command_parked p set next_attempt_at = clock_timestamp()
    where p.ctid = any (array(
        select q.place
        from unnest(lanes.services, lanes.keys) d (service, key)
        cross join lateral (
            select q.ctid as place, q.next_attempt_at from tidemark.command_parked q
            where q.service = d.service and q.key = d.key
            order by q.position limit 1) q
        where q.next_attempt_at = 'infinity'));
end
$$;
comment on function tidemark.command_release(text[], text[]) is
    'Parked commands are done: the next one of each of their ordering keys is due. Raises lock_not_available (55P03) '
    'where a transaction that has parked others stays open for two seconds.';
