-- public
create or replace function tidemark.events_erase(
    domain text,
    reason text,
    subject text default null,
    key text default null,
    before timestamptz default null,
    dry_run boolean default false,
    after_seq bigint default 0,
    most integer default 10000,
    out events bigint,
    out waiting bigint,
    out dead_letters bigint,
    out last_seq bigint,
    out complete boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    erased constant jsonb := jsonb_build_object('erased', clock_timestamp());
    found_ bigint[];
    owed bigint[];
    letters bigint[];
begin
    if coalesce(btrim(events_erase.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'erasing events needs a reason';
    elsif events_erase.subject is null and events_erase.key is null and events_erase.before is null then
        raise exception using errcode = 'TM005', message = 'which events are to be erased is not said',
            hint = 'Give subject (subject_ref of the events), key or before (a time).';
    elsif coalesce(most, 0) not between 1 and 100000 then
        raise exception using errcode = 'TM005', message = 'most must be from 1 to 100000';
    elsif not exists (select from tidemark.domain d where d.domain = events_erase.domain) then
        raise exception using errcode = 'TM004', message = format('there is no domain "%s"', events_erase.domain),
            hint = 'Domains: select domain from tidemark.domain;';
    end if;
    found_ := array(
        select o.seq from tidemark.outbox o
        where o.seq > events_erase.after_seq and o.domain = events_erase.domain
          and (events_erase.subject is null or o.subject_ref = events_erase.subject)
          and (events_erase.key is null or o.key = events_erase.key)
          and (events_erase.before is null or o.created_at < events_erase.before)
          and (o.payload - 'erased' <> '{}' or not o.payload ? 'erased')
        order by o.seq limit most);
    complete := cardinality(found_) < most;
    last_seq := coalesce(found_[cardinality(found_)], events_erase.after_seq);
    -- What is still to be delivered needs its payload: not read by a worker, pending, or ahead of a replay.
    owed := array(
        select n from unnest(found_) n
        where n in (select u.seq from tidemark.log_unread(events_erase.domain, found_) u)
           -- pending has no index by number: it is read once, not for each event.
           or n in (select p.seq from tidemark.pending p where p.seq between found_[1] and last_seq)
           or exists (select from tidemark.replay_job j
                      where j.finished_at is null and j.cancelled_at is null and n > j.passed_seq
                        and (j.open_end or n <= j.last_seq)));
    waiting := cardinality(owed);
    events := cardinality(found_) - waiting;
    found_ := array(select n from unnest(found_) n where n <> all (owed));
    -- A letter may outlive its event, or its event's payload: such are looked for once, with the last part.
    select coalesce(array_agg(l.id) filter (where not l.waits), '{}'), waiting + count(*) filter (where l.waits)
    into letters, waiting
    from tidemark.event_letters(
        events_erase.domain, events_erase.subject, events_erase.key, events_erase.before,
        (select coalesce(range_agg(int8range(n, n, '[]')), '{}') from unnest(found_) n), complete) l;
    dead_letters := cardinality(letters);
    if dry_run or events + dead_letters = 0 then
        return;
    end if;
    update tidemark.outbox o set payload = erased where o.seq = any (found_);
    update tidemark.attempt a set detail = 'erased' where a.seq = any (found_) and a.detail is not null;
    update tidemark.attempt a set detail = 'erased' from tidemark.dead_letter l
    where l.id = any (letters) and (a.worker_id, a.route_id, a.seq) = (l.worker_id, l.route_id, l.seq)
      and a.detail <> 'erased';
    perform tidemark.dead_letter_discard(l.id, events_erase.reason) from tidemark.dead_letter l
    where l.id = any (letters) and l.resolved_at is null;
    update tidemark.dead_letter l
    set event_snapshot = l.event_snapshot || jsonb_build_object('payload', erased), error_detail = 'erased',
        payload_in_log = false
    where l.id = any (letters);
    perform tidemark.api_answers_erase();
    insert into tidemark.audit (action, object, reason, after)
    values ('events_erase', 'domain ' || events_erase.domain, events_erase.reason, jsonb_strip_nulls(jsonb_build_object(
        'subject', events_erase.subject, 'key', events_erase.key, 'before', events_erase.before, 'events', events,
        'dead_letters', dead_letters, 'last_seq', last_seq)));
end
$$;
comment on function tidemark.events_erase(text, text, text, text, timestamptz, boolean, bigint, integer) is
    'Erases the payloads of events of a domain: of a subject (subject_ref), of a key, created before a time, or what '
    'fits all that is given. The payload becomes {"erased": time}; the event, its evidence and its place stay. Dead '
    'letters of such events lose payload and error text, and open ones are discarded, also where the event was erased '
    'before or is no longer in the log; answers that the API keeps for '
    'repeated requests lose error texts, whatever event they are of. Events that are still to be '
    'delivered, and letters whose replay is, stay as they are and are counted as waiting: call it again once they '
    'are. Looks at most events from '
    'after_seq on; until complete call it again with last_seq, in a transaction of its own. dry_run only counts. Reads '
    'the whole log. Raises TM004, TM005.';
grant execute on function tidemark.events_erase(text, text, text, text, timestamptz, boolean, bigint, integer)
    to tidemark_admin;
