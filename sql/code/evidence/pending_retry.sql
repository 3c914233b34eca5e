-- public
create or replace function tidemark.pending_retry(
    reason text,
    route_code text default null,
    seq bigint default null,
    worker text default null,
    source text default null,
    item_id text default null,
    not_before timestamptz default null)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    most constant integer := 10000;
    now_ constant timestamptz := clock_timestamp();
    due constant timestamptz := coalesce(pending_retry.not_before, now_);
    one constant boolean := coalesce(pending_retry.seq::text, pending_retry.item_id) is not null;
    item constant record := tidemark.pending_claim(
        'trying again', pending_retry.reason, pending_retry.route_code, pending_retry.seq, pending_retry.worker,
        pending_retry.source, pending_retry.item_id);
    p tidemark.pending;
    gate text;
    n bigint;
begin
    if pending_retry.not_before not between now_ and now_ + interval '30 days' then
        raise exception using errcode = 'TM005', message = 'not_before must be a time of the next 30 days';
    elsif pending_retry.not_before is not null and not one then
        raise exception using errcode = 'TM005', message = 'not_before is for one event or row',
            hint = 'To hold back all of a route: tidemark route pause; all of a worker: tidemark worker pause.';
    end if;
    if pending_retry.seq is not null then
        select q.* into p from tidemark.pending q
        where q.worker_id = item.worker_id and q.route_id = item.route_id and q.seq = pending_retry.seq;
    end if;
    if p.held or pending_retry.not_before is null then
        gate := tidemark.closed_delivery(item.worker_name, p.domain, item.route_id);
    end if;
    if gate is not null then
        raise exception using errcode = 'TM009', message = format('%s is not tried: closed by %s', item.what, gate),
            hint = case when gate like 'route %' then 'The route is paused. What is due is tried when it is resumed: '
                            || (tidemark.gate_opening(gate, item.worker_name, pending_retry.reason)).cli
                        else 'Open the gate: what is due is tried then.' end;
    elsif p.next_attempt_at = 'infinity' and not p.held then
        raise exception using errcode = 'TM005',
            message = format('%s waits behind an earlier event of its key', item.what),
            hint = coalesce('Try or give up the first of its key: event ' || (
                select min(q.seq) from tidemark.pending q
                where q.worker_id = p.worker_id and q.route_id = p.route_id and q.key = p.key and not q.replay),
                'It becomes due by itself.');
    elsif p.next_attempt_at <= now_ and pending_retry.not_before is null then
        raise exception using errcode = 'TM005', message = format('%s is due already', item.what),
            hint = 'Its worker tries it next, or is trying it now. If that attempt fails, retry it then.';
    end if;
    if item.route_id is not null then
        update tidemark.pending q set next_attempt_at = due, held = false
        where q.ctid = any (array(
            select w.ctid from tidemark.pending w
            where w.worker_id = item.worker_id and w.route_id = item.route_id
              and case when one then w.seq = pending_retry.seq
                       else w.next_attempt_at > now_ and w.next_attempt_at < 'infinity' end
            order by w.seq limit most));
    else
        update tidemark.pending_row q set next_attempt_at = due
        where q.ctid = any (array(
            select w.ctid from tidemark.pending_row w
            where w.worker_id = item.worker_id and w.source = pending_retry.source
              and case when one then w.item_id = pending_retry.item_id else w.next_attempt_at > now_ end
            limit most));
    end if;
    get diagnostics n = row_count;
    if n > 0 then
        insert into tidemark.audit (action, object, reason, after)
        values ('pending_retry', 'pending ' || item.what, pending_retry.reason,
                jsonb_build_object('deliveries', n, 'next_attempt_at', due));
    end if;
    return n;
end
$$;
comment on function tidemark.pending_retry(text, text, bigint, text, text, text, timestamptz) is
    'Makes what waits for another attempt due now: an event on a route (route_code, seq), a row (worker, source, '
    'item_id), or without seq and item_id all that waits there after a failure, at most 10000 a call. With not_before '
    'it parks one of them until then, at most 30 days; later events of its key wait behind it. A delivery of it that '
    'is under way comes to its end: if it fails and would be tried again, that is not before this time; if it arrives '
    'or fails for good, the event no longer waits. Returns how many it moved: a row that is due already is one of '
    'them, since none is under way beside this call. A route''s breaker counts as before. Raises TM004 (it does not '
    'wait), TM005 (no reason; it waits behind an earlier event of its key; an event that is due already: its worker '
    'tries it next, or is trying it now), TM009 (a gate is closed, or the route is paused).';
grant execute on function tidemark.pending_retry(text, text, bigint, text, text, text, timestamptz) to tidemark_admin;
