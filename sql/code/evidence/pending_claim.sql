create or replace function tidemark.pending_claim(
    act text,
    reason text,
    route_code text,
    seq bigint,
    worker text,
    source text,
    item_id text,
    out worker_name text,
    out worker_id integer,
    out route_id integer,
    out what text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    of_route constant boolean := pending_claim.route_code is not null;
begin
    if coalesce(btrim(pending_claim.reason), '') = '' then
        raise exception using errcode = 'TM005', message = pending_claim.act || ' what waits needs a reason';
    elsif of_route = (pending_claim.worker is not null and pending_claim.source is not null)
        or of_route and pending_claim.item_id is not null or not of_route and pending_claim.seq is not null then
        raise exception using errcode = 'TM005', message = 'which delivery is meant is not said',
            hint = 'An event has route_code and seq, a row has worker, source and item_id: '
                'select * from tidemark.waiting;';
    end if;
    select r.id, w.id, w.worker into route_id, worker_id, worker_name
    from tidemark.worker w left join tidemark.outbound_route r on r.route_code = pending_claim.route_code
    where w.worker = case when of_route then r.worker else pending_claim.worker end;
    if not found then
        raise exception using errcode = 'TM004',
            message = case when of_route then format('there is no route "%s"', pending_claim.route_code)
                           else format('there is no worker "%s"', pending_claim.worker) end,
            hint = 'What waits: select * from tidemark.waiting;';
    end if;
    what := case when of_route then concat_ws(' ', pending_claim.route_code, pending_claim.seq)
                 else concat_ws(' ', pending_claim.worker || '/' || pending_claim.source, pending_claim.item_id) end;
    -- Settling is serial (tidemark.lease_check), and this is a part of it: a settle finds its rows by their places,
    -- and a pass over a table has this lock from its beginning.
    perform from tidemark.heartbeat h
    where h.executor_id in (
        select tidemark.executor_id(c.worker, c.source, c.shard) from tidemark.worker_cursor c
        where c.worker = worker_name and c.source = case when of_route then 'outbox' else pending_claim.source end)
    order by h.executor_id for update;
    if pending_claim.seq is not null and not exists (
            select from tidemark.pending p
            where p.worker_id = pending_claim.worker_id and p.route_id = pending_claim.route_id
              and p.seq = pending_claim.seq)
        or pending_claim.item_id is not null and not exists (
            select from tidemark.pending_row p
            where p.worker_id = pending_claim.worker_id and p.source = pending_claim.source
              and p.item_id = pending_claim.item_id)
    then
        raise exception using errcode = 'TM004', message = format('%s does not wait', what),
            hint = 'Perhaps it was delivered just now. What waits: select * from tidemark.waiting;';
    end if;
end
$$;
comment on function tidemark.pending_claim(text, text, text, bigint, text, text, text) is
    'Finds what an operator means by an event on a route (route_code, seq) or a row of a worker''s source (worker, '
    'source, item_id), and locks its cursor, so that nothing is settled meanwhile. what is its name in messages. '
    'Raises TM004 (unknown, or it does not wait), TM005 (no reason, or not said which).';
