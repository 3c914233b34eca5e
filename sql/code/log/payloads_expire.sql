-- The log is read once for each domain with a retention, in slices: each call goes on where the last one ended.
create or replace function tidemark.payloads_expire(most integer default 10000)
returns table (action text, object text, detail text, more boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    max_bytes constant bigint := 33554432;
    max_letters constant integer := 1000;
    late constant interval := interval '1 hour';
    erased constant jsonb := jsonb_build_object('erased', clock_timestamp());
    d record;
    p tidemark.payload_retention;
    slice record;
    numbers bigint[];
    needed record;
    letters bigint[];
    upto bigint;
    n bigint;
    overdue interval;
begin
    if coalesce(most, 0) not between 1 and 100000 then
        raise exception using errcode = 'TM005', message = 'most must be from 1 to 100000';
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        -- What the fence lets pass would not be seen.
        return query
        select 'kept', 'payloads of ' || x.domain,
               format('the isolation level is %s, and must be read committed',
                      current_setting('transaction_isolation')),
               false
        from tidemark.domain x where x.payload_retention is not null order by x.domain;
        return;
    end if;
    for d in
        select x.domain, clock_timestamp() - x.payload_retention as before from tidemark.domain x
        where x.payload_retention is not null order by x.domain
    loop
        insert into tidemark.payload_retention (domain) values (d.domain) on conflict do nothing;
        select r.* into p from tidemark.payload_retention r where r.domain = d.domain for update skip locked;
        continue when p.domain is null; -- Another call is at it.

        -- First the number, then its owners: an event of a transaction that is still open must not be passed over.
        if tidemark.fence_closed(p.fence) then
            p.settled_seq := p.next_seq;
            p.next_seq := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
            p.fence := tidemark.fence_now();
            if tidemark.fence_closed(p.fence) then
                p.settled_seq := p.next_seq;
            end if;
        end if;

        select max(o.seq) as last_seq, count(*) as looked,
               min(o.seq) filter (where o.created_at >= d.before) as young_seq,
               array_agg(o.seq order by o.seq) filter (where o.domain = d.domain) as of_domain,
               min(o.seq) filter (where o.bytes > max_bytes and o.bytes > o.own) as heavy_seq
        into slice
        from (
            select o.seq, o.created_at, o.domain, pg_column_size(o.payload) as own,
                   sum(case when o.domain = d.domain then pg_column_size(o.payload) end) over (order by o.seq) as bytes
            from (select o.* from tidemark.outbox o
                  where o.seq > p.passed_seq and o.seq <= p.settled_seq order by o.seq limit most) o) o;
        upto := least(case when slice.looked = most then slice.last_seq else p.settled_seq end, slice.young_seq - 1,
                      slice.heavy_seq - 1);
        more := upto = slice.last_seq and slice.looked = most or upto = slice.heavy_seq - 1;
        numbers := array(select s from unnest(slice.of_domain) s where s <= upto order by s);
        needed := tidemark.payload_needed(d.domain, p.passed_seq, upto, numbers);
        p.kept_seq := needed.seq;
        p.kept_for := needed.who;
        if needed.seq is not null then
            upto := needed.seq - 1;
            more := false;
            numbers := array(select s from unnest(numbers) s where s <= upto order by s);
        end if;
        overdue := d.before - (select o.created_at from tidemark.outbox o where o.seq = needed.seq);

        update tidemark.outbox o set payload = erased
        where o.seq > p.passed_seq and o.seq <= upto and o.seq = any (numbers)
          and not (pg_column_size(o.payload) < 100 and o.payload ? 'erased' and o.payload - 'erased' = '{}');
        get diagnostics n = row_count;
        p.events := p.events + n;
        update tidemark.attempt a set detail = 'erased'
        where a.seq > p.passed_seq and a.seq <= upto and a.seq = any (numbers) and a.detail is not null
          and a.detail <> 'erased';
        p.passed_seq := greatest(p.passed_seq, upto);

        letters := array(
            select l.id from tidemark.dead_letter l
            where l.source = 'outbox' and l.error_detail is distinct from 'erased'
              and l.event_snapshot ->> 'domain' = d.domain and (l.resolved_at is null) = false
              and l.seq <= p.passed_seq
            order by l.seq limit max_letters for update of l skip locked);
        update tidemark.attempt a set detail = 'erased' from tidemark.dead_letter l
        where l.id = any (letters) and (a.worker_id, a.route_id, a.seq) = (l.worker_id, l.route_id, l.seq)
          and a.detail <> 'erased';
        update tidemark.dead_letter l
        set event_snapshot = l.event_snapshot || jsonb_build_object('payload', erased), error_detail = 'erased',
            payload_in_log = false
        where l.id = any (letters);
        more := more or cardinality(letters) = max_letters;
        p.dead_letters := p.dead_letters + cardinality(letters);
        p.open_letters := (select count(*) from (
            select from tidemark.dead_letter l
            where l.source = 'outbox' and l.error_detail is distinct from 'erased'
              and l.event_snapshot ->> 'domain' = d.domain and (l.resolved_at is null) = true
              and l.seq <= p.passed_seq limit max_letters) l);

        update tidemark.payload_retention r
        set passed_seq = p.passed_seq, settled_seq = p.settled_seq, next_seq = p.next_seq, fence = p.fence,
            events = p.events, dead_letters = p.dead_letters, at = clock_timestamp(), kept_seq = p.kept_seq,
            kept_for = p.kept_for, open_letters = p.open_letters
        where r.domain = d.domain;
        if n + cardinality(letters) > 0 then
            perform tidemark.api_answers_erase();
        end if;
        object := 'payloads of ' || d.domain;
        if n + cardinality(letters) > 0 or more then
            action := 'erased'; -- more: the slice had other domains only
            detail := format('%s events, %s dead letters, up to number %s%s', n, cardinality(letters), p.passed_seq,
                             case when more then ', more are left for another call' else '' end);
            return next;
        end if;
        more := false;
        action := 'kept';
        if p.kept_seq is not null then
            detail := format('event %s is past the retention, and is needed by %s', p.kept_seq, p.kept_for);
            return next;
        end if;
        if p.open_letters > 0 then
            detail := format('%s dead letters of events past the retention are open', p.open_letters);
            return next;
        end if;
        if p.open_letters > 0 or overdue > late then
            perform tidemark.finding_open('payloads_kept', d.domain, 'warning', concat_ws('; ',
                case when overdue > late then format('event %s and later ones are needed by %s', p.kept_seq,
                                                     p.kept_for) end,
                case when p.open_letters > 0 then format('%s dead letters are open', p.open_letters) end));
        else
            perform tidemark.finding_close('payloads_kept', d.domain);
        end if;
    end loop;
    with over as (
        delete from tidemark.payload_retention r
        where not exists (select from tidemark.domain x where x.domain = r.domain and x.payload_retention is not null)
        returning r.domain)
    select count(tidemark.finding_close('payloads_kept', o.domain)) into n from over o;
end
$$;
comment on function tidemark.payloads_expire(integer) is
    'The part of tidemark.maintain that erases payloads past the payload_retention of their domain, as '
    'tidemark.events_erase does: looks at the next most events of the log for each such domain, and at 1,000 dead '
    'letters. Events that are still to be delivered, and open dead letters, keep their payload (action kept, finding '
    'payloads_kept). more: another call would erase more. Under another isolation level than read committed it erases '
    'nothing, and says so (action kept). Raises TM005.';
grant execute on function tidemark.payloads_expire(integer) to tidemark_admin, tidemark_executor;
