-- Called by tidemark.maintain only. One step a call:
--   note     the server's counts, then the last number of the log, then a snapshot: all that the server has counted
--            has its event at or below that number.
--   count    when the transactions of that snapshot have ended, which makes these events final: by slices, for at most
--            a second; then compare.
--   witness  the transactions now under way. The next round waits for their end: by then each session has counted what
--            it committed before.
create or replace function tidemark.capture_recount()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    began constant timestamptz := clock_timestamp();
    round tidemark.capture_round;
    watched text;
    busy text[];
    whole boolean;
    slice bigint;
    away constant text := 'its table has another name now';
    at_home constant text := tidemark.source_home('tidemark.capture_round');
    last_seq constant bigint := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
begin
    -- In the snapshot of the transaction nothing that was committed since is final.
    if current_setting('transaction_isolation') not like 'read %' then
        return;
    end if;
    -- Of a table that has another name for a while the counts stay: they tell what it missed once it has its name back.
    delete from tidemark.capture_count c
    where not exists (select from tidemark.capture_watched w where w.name = c.name)
      and not exists (select from tidemark.capture_moved m where m.name = c.name and m.relation = c.relation);
    if not exists (select from tidemark.capture_watched) and not exists (select from tidemark.capture_count) then
        delete from tidemark.capture_round;
        return;
    end if;
    -- A restored copy has other transactions and other tables.
    delete from tidemark.capture_round r where r.home <> at_home;
    if found then
        delete from tidemark.capture_count;
    end if;
    -- The first round has no tables.
    insert into tidemark.capture_round (home, noted_at, snapshot, upto_seq, counted_seq)
    select at_home, began, pg_current_snapshot(), last_seq, last_seq
    on conflict do nothing;
    -- Of two concurrent calls one goes on. An idle session may take ten seconds to count.
    select r.* into round from tidemark.capture_round r where r.at < began - interval '20 seconds'
    for update skip locked;
    if not found then
        return;
    end if;

    busy := tidemark.capture_busy();
    if not round.compared then
        if pg_snapshot_xmin(pg_current_snapshot()) < pg_snapshot_xmax(round.snapshot) then
            return;
        end if;
        whole := tidemark.log_is_whole(round.counted_seq, round.upto_seq);
        if not whole then
            round.counted_seq := round.upto_seq;
        end if;
        while round.counted_seq < round.upto_seq and clock_timestamp() < began + interval '1 second' loop
            slice := least(round.counted_seq + 20000, round.upto_seq);
            perform tidemark.capture_tally(round.counted_seq, slice);
            round.counted_seq := slice;
        end loop;
        round.compared := round.counted_seq = round.upto_seq;
        round.witness := null;
        if round.compared then
            update tidemark.capture_count c
            set (base, base_inserts, base_deletes, inserts, deletes, round_inserts, round_deletes, status, detail,
                 compared_at) =
                (select n.base, n.base_inserts, n.base_deletes, n.inserts, n.deletes, n.round_inserts,
                        n.round_deletes, n.status, n.detail, n.compared_at
                 from tidemark.capture_compare(c, whole) n)
            where c.detail <> away and exists (select from tidemark.capture_watched w where w.name = c.name);
            -- The others were not noted in this round, or cannot be compared.
            update tidemark.capture_count c
            set inserts = c.inserts + c.round_inserts, deletes = c.deletes + c.round_deletes, round_inserts = 0,
                round_deletes = 0, base = case when whole then c.base end
            where c.detail = away or not exists (select from tidemark.capture_watched w where w.name = c.name);
        end if;
    elsif round.witness is null then
        round.witness := busy;
    elsif busy && round.witness then
        return;
    else
        for watched in select w.name from tidemark.capture_watched w loop
            perform tidemark.capture_note(watched, round);
        end loop;
        update tidemark.capture_count c
        set status = 'unclear', detail = case when x.here then 'its table had another name until now' else away end
        from (select c.name, exists (select from tidemark.capture_watched w where w.name = c.name) as here
              from tidemark.capture_count c) x
        where x.name = c.name and x.here = (c.detail = away);
        round.counted_seq := round.upto_seq;
        -- A later statement than the counts', and an earlier one than the snapshot's.
        round.upto_seq := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
        round.noted_at := clock_timestamp();
        round.snapshot := pg_current_snapshot();
        round.compared := false;
    end if;
    update tidemark.capture_round r
    set at = clock_timestamp(), noted_at = round.noted_at, snapshot = round.snapshot, upto_seq = round.upto_seq,
        counted_seq = round.counted_seq, compared = round.compared, witness = round.witness;
end
$$;
comment on function tidemark.capture_recount() is
    'Part of tidemark.maintain: compares, for the tables of tidemark.capture_watched, how many inserts and deletes the '
    'server has counted with how many have events, and opens the gap of a table where changes have none. One step a '
    'call, at least 20 s after the one before: note the counts; count the events up to there, for at most a second a '
    'call, and compare; wait until each session has counted what it committed. It closes no gap and reads no table of '
    'other roles.';
