-- public
create or replace function tidemark.pending_discard(
    reason text,
    route_code text default null,
    seq bigint default null,
    worker text default null,
    source text default null,
    item_id text default null)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    item constant record := tidemark.pending_claim(
        'giving up', pending_discard.reason, pending_discard.route_code, pending_discard.seq, pending_discard.worker,
        pending_discard.source, pending_discard.item_id);
    place text := 'outbox';
    in_shard integer;
    p tidemark.pending;
    row_ tidemark.pending_row;
    detail text;
    alone int8multirange;
    dead bigint;
    recorded tidemark.evidence[];
    letter bigint;
begin
    if coalesce(pending_discard.seq::text, pending_discard.item_id) is null then
        raise exception using errcode = 'TM005', message = 'which delivery is given up is not said',
            hint = 'Give seq of an event or item_id of a row: one at a time.';
    end if;
    if item.route_id is not null then
        select q.* into strict p from tidemark.pending q
        where q.worker_id = item.worker_id and q.route_id = item.route_id and q.seq = pending_discard.seq;
        if p.dead_letter_id is null and not exists (select from tidemark.outbox o where o.seq = p.seq) then
            raise exception using errcode = 'TM004', message = format('event %s is no longer in the log', p.seq),
                hint = 'The next pass of its worker makes it a dead letter: event_missing.';
        end if;
        in_shard := p.shard;
        detail := coalesce('its last error was ' || p.last_error, 'it was not tried');
        alone := int8multirange(int8range(p.seq, p.seq + 1));
        -- As if its last attempt had failed. An owner of the cursor that had counted it sends later events of its key
        -- by way of tidemark.pending until its lease ends: a statement more, in their order.
        select s.dead, s.recorded into dead, recorded
        from tidemark.settle_retried(item.worker_name, item.worker_id, array[
            row(p.route_id, false, 'failed', 'given_up', detail, alone, null)::tidemark.result]) s;
        perform tidemark.history_add(recorded);
        letter := coalesce(p.dead_letter_id, (
            select max(l.id) from tidemark.dead_letter l
            where l.worker_id = item.worker_id and l.route_id = p.route_id and l.seq = p.seq
              and l.resolved_at is null));
    else
        place := pending_discard.source;
        delete from tidemark.pending_row q
        where q.ctid = (select w.ctid from tidemark.pending_row w
                        where w.worker_id = item.worker_id and w.source = place and w.item_id = pending_discard.item_id
                        order by w.shard limit 1)
        returning q.* into strict row_;
        in_shard := row_.shard;
        dead := tidemark.row_letters(item.worker_name, array[row_], array['given_up'],
                                     array['its last error was ' || row_.last_error]);
        letter := (select l.id from tidemark.dead_letter l
                   where l.worker_id = item.worker_id and l.source = place and l.item_id = row_.item_id
                     and l.resolved_at is null);
    end if;
    if dead > 0 then
        perform tidemark.dead_letter_findings(
            item.worker_name, item.worker_id,
            case place when 'outbox' then item.worker_name
                       else tidemark.executor_id(item.worker_name, place, in_shard) end, dead);
        update tidemark.worker_cursor c set dead_lettered = c.dead_lettered + dead
        where c.worker = item.worker_name and c.source = place and c.shard = in_shard;
    end if;
    insert into tidemark.audit (action, object, reason, after)
    values ('pending_discard', 'pending ' || item.what, pending_discard.reason,
            jsonb_build_object('dead_letter', letter));
    return letter;
end
$$;
comment on function tidemark.pending_discard(text, text, bigint, text, text, text) is
    'Gives up what waits for another attempt: an event on a route (route_code, seq) or a row (worker, source, '
    'item_id). It has failed for good, with an attempt given_up on record and an open dead letter, whose id this '
    'returns, and the next event of its key is due. A delivery that is under way meanwhile is recorded in that letter: '
    'if it arrives, the letter is resolved as sent; if not, the letter stays open, and it is not tried again. '
    'Raises TM004 (it does not wait), TM005 (no reason).';
grant execute on function tidemark.pending_discard(text, text, bigint, text, text, text) to tidemark_admin;
