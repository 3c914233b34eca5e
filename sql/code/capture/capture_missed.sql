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
    sums jsonb;
    names text[];
    suspects tidemark.capture_count[];
    written jsonb;
    watch tidemark.capture_count;
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
    -- First by sums that are never too small, so that a calm table, or one whose changes have their events, costs
    -- little. Tables with partitions or children go on.
    select jsonb_object_agg(x.name, jsonb_build_array(x.inserts, x.deletes)) into sums
    from (
        select c.name,
               case when r.relkind = 'r' and not r.relhassubclass
                    then pg_stat_get_tuples_inserted(r.oid) - (c.base).inserted
                         - c.inserts - c.round_inserts - c.base_inserts end as inserts,
               case when r.relkind = 'r' and not r.relhassubclass
                    then pg_stat_get_tuples_deleted(r.oid) - (c.base).deleted[1]
                         - c.deletes - c.round_deletes - c.base_deletes end as deletes
        from tidemark.capture_count c join pg_class r on r.oid = c.relation
        where c.base is not null) x
    where coalesce(x.inserts > 0 or x.deletes > 0, true);
    if sums is null then
        return;
    end if;
    last_seq := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
    if last_seq > round.counted_seq + most or not tidemark.log_is_whole(round.counted_seq, last_seq) then
        return;
    end if;
    names := array(
        select s.key from jsonb_each(sums) s
        left join tidemark.capture_events(round.counted_seq, last_seq) e on e.name = s.key
        where coalesce((s.value ->> 0)::bigint > coalesce(e.inserts, 0)
                       or (s.value ->> 1)::bigint > coalesce(e.deletes, 0), true));
    if cardinality(names) = 0 then
        return;
    end if;

    suspects := array(
        select jsonb_populate_record(c, jsonb_build_object('noted', tidemark.capture_read(w.relation, w.operations,
                                                                                          w.routes, round)))
        from tidemark.capture_count c join tidemark.capture_watched w on w.name = c.name and w.relation = c.relation
        where c.name = any (names));
    -- Later statements than the counts: each change that is counted is visible, and so is its event.
    last_seq := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
    select coalesce(jsonb_object_agg(e.name, jsonb_build_array(e.inserts, e.deletes)), '{}') into written
    from tidemark.capture_events(round.counted_seq, last_seq) e;
    foreach watch in array suspects loop
        watch.round_inserts := watch.round_inserts + coalesce((written -> watch.name ->> 0)::bigint, 0);
        watch.round_deletes := watch.round_deletes + coalesce((written -> watch.name ->> 1)::bigint, 0);
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
