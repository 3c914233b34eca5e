-- The comparison of tidemark.capture_recount, made now and without a note of it: what it finds, that one finds with its
-- next round. A session counts what it committed ten seconds after it fell idle, or when its next transaction ends.
-- So what was committed before the last note is counted by now, if the note is older than that, and no transaction is
-- under way that began before.
create or replace function tidemark.capture_missed()
returns table (name text, relation oid, since timestamptz, snapshot pg_snapshot, inserts bigint, deletes bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
    most constant integer := 10000;
    counted constant interval := '10 seconds';
    round constant tidemark.capture_round := (select r from tidemark.capture_round r);
    last_seq bigint;
    watch tidemark.capture_count;
    suspects tidemark.capture_count[] := '{}';
    written record;
    got record;
begin
    if round.home is null or current_setting('transaction_isolation') not like 'read %'
        or clock_timestamp() < round.noted_at + counted
        or round.home <> tidemark.source_home('tidemark.capture_round')
        or exists (
            select from pg_stat_activity a
            where a.datname = current_database() and a.usesysid is not null and a.pid <> pg_backend_pid()
              and (a.xact_start < round.noted_at + counted
                   -- Hidden from tidemark_owner, or not tracked.
                   or coalesce(a.state, 'disabled') = 'disabled')) then
        return;
    end if;
    for watch in
        select c.* from tidemark.capture_count c where c.base is not null
    loop
        watch.noted := (
            select tidemark.capture_read(w.relation, w.operations, w.routes, round)
            from tidemark.capture_watched w where w.name = watch.name and w.relation = watch.relation);
        got := tidemark.capture_without(watch, true);
        -- Events of this moment can only make it less.
        if got.inserts > 0 or got.deletes > 0 then
            suspects := suspects || watch;
        end if;
    end loop;
    if cardinality(suspects) = 0 then
        return;
    end if;
    -- Later statements than the counts: each change that is counted is visible, and so is its event.
    last_seq := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
    if last_seq > round.counted_seq + most or not tidemark.log_is_whole(round.counted_seq, last_seq) then
        return;
    end if;
    for written in select e.* from tidemark.capture_events(round.counted_seq, last_seq) e loop
        for i in 1 .. cardinality(suspects) loop
            if suspects[i].name = written.name then
                suspects[i].round_inserts := suspects[i].round_inserts + written.inserts;
                suspects[i].round_deletes := suspects[i].round_deletes + written.deletes;
            end if;
        end loop;
    end loop;
    foreach watch in array suspects loop
        got := tidemark.capture_without(watch, true);
        if got.inserts > 0 or got.deletes > 0 then
            name := watch.name;
            relation := watch.relation;
            since := (watch.base).since;
            snapshot := (watch.base).snapshot;
            inserts := got.inserts;
            deletes := got.deletes;
            return next;
        end if;
    end loop;
end
$$;
comment on function tidemark.capture_missed() is
    'Captured tables of which the server has counted, by now, more inserts or deletes than have events: at least how '
    'many, since when, and what was visible then. Reads at most 10000 events; no row where the log has grown by more '
    'since the last note of tidemark.capture_recount, or a transaction is under way that began before it.';
grant execute on function tidemark.capture_missed() to tidemark_reader, tidemark_executor;
