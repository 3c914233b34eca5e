-- public
create or replace function tidemark.dead_letter_replay_many(
    route text default null,
    error_code text default null,
    failed_since timestamptz default null,
    failed_until timestamptz default null,
    max_letters integer default 1000,
    dry_run boolean default false,
    source text default null,
    after bigint default null,
    reason text default null)
returns setof tidemark.replay
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    after_seq bigint := -1;
    after_route integer := 0;
    after_ts timestamptz := '-infinity';
    closed constant text[] := tidemark.closed_domains();
    letter record;
    one tidemark.replay;
    sent integer[] := '{}'; -- routes
    shut record;
begin
    if not dead_letter_replay_many.dry_run then
        perform tidemark.session_check('a replay of dead letters',
                                       'it must see gates that were closed since it began.');
    end if;
    if coalesce(dead_letter_replay_many.max_letters, 0) not between 1 and 50000 then
        raise exception using errcode = 'TM005',
            message = format('max_letters is %s, and must be from 1 to 50000', coalesce(max_letters::text, 'null')),
            hint = 'Ask for fewer, and continue with after.';
    end if;
    if dead_letter_replay_many.route is not null
        and not exists (select from tidemark.outbound_route r where r.route_code = dead_letter_replay_many.route)
    then
        raise exception using errcode = 'TM004',
            message = format('there is no route "%s"', dead_letter_replay_many.route),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    end if;
    if dead_letter_replay_many.after is not null then
        select coalesce(l.seq, 9223372036854775807), coalesce(l.route_id, 0), coalesce(l.item_ts, 'infinity')
        into after_seq, after_route, after_ts
        from tidemark.dead_letter l where l.id = dead_letter_replay_many.after;
        if not found then
            raise exception using errcode = 'TM004',
                message = format('there is no dead letter %s to continue after', after),
                hint = 'after is the id of the last row of the call before.';
        end if;
    end if;
    for letter in
        select l.id, l.source, l.event_id, l.attempts, l.route_id, r.route_code,
               -- Where no route is named, one that is paused does not keep back the letters of all.
               dead_letter_replay_many.route is null and r.paused_at is not null and r.enabled
               and not r.dry_run as paused
        from tidemark.dead_letter l left join tidemark.outbound_route r on r.id = l.route_id
        where l.resolved_at is null
          and (coalesce(l.seq, 9223372036854775807), coalesce(l.route_id, 0), coalesce(l.item_ts, 'infinity'), l.id)
              > (after_seq, after_route, after_ts, coalesce(dead_letter_replay_many.after, 0))
          -- There is nothing to send.
          and (l.source <> 'outbox' or l.event_id is not null)
          and (not l.payload_in_log or exists (
              select from tidemark.events(array[l.seq]) o where o.event_id = l.event_id))
          and (dead_letter_replay_many.route is null or r.route_code = dead_letter_replay_many.route)
          and (dead_letter_replay_many.error_code is null or l.error_code = dead_letter_replay_many.error_code)
          and (dead_letter_replay_many.source is null or l.source = dead_letter_replay_many.source)
          and (failed_since is null or l.last_failed_at >= failed_since)
          and (failed_until is null or l.last_failed_at < failed_until)
          and not exists (select from tidemark.pending q where q.dead_letter_id = l.id)
          and not exists (select from tidemark.pending_row q where q.dead_letter_id = l.id)
        -- The order in which the events were emitted, and the rows made.
        order by coalesce(l.seq, 9223372036854775807), coalesce(l.route_id, 0), coalesce(l.item_ts, 'infinity'), l.id
        limit max_letters
    loop
        if letter.paused then
            one := row(letter.id, letter.route_code, letter.event_id, letter.attempts, 'skipped', 'route_paused',
                       'the route is paused: resume it first')::tidemark.replay;
        else
            one := tidemark.dead_letter_replay(
                letter.id, dead_letter_replay_many.dry_run, dead_letter_replay_many.reason);
            if one.outcome = 'sent' and letter.route_id <> all (sent) then
                sent := sent || letter.route_id;
            end if;
        end if;
        return next one;
    end loop;
    -- The call may have taken long since a letter was sent, with letters of other workers. Once a gate is closed,
    -- nothing takes effect any more.
    select w.worker, s.gate, r.paused_at is not null as paused, r.route_code into shut
    from (select k.worker, array_agg(k.id) as routes from tidemark.outbound_route k
          where k.id = any (sent) group by k.worker) w
    cross join lateral (select tidemark.closed_switch(w.worker, w.routes, closed) as gate offset 0) s
    left join tidemark.outbound_route r on 'route ' || r.route_code = s.gate
    where s.gate is not null order by w.worker limit 1;
    if found then
        raise exception using errcode = 'TM009',
            message = format('the dead letters are not replayed: closed meanwhile by %s', shut.gate),
            hint = case when not shut.paused and shut.route_code is not null
                        then 'What the route lacks: tidemark route why-not ' || tidemark.shell_word(shut.route_code)
                        else 'Open it first: ' || (tidemark.gate_opening(
                            shut.gate, shut.worker, 'its dead letters are replayed')).cli end;
    end if;
end
$$;
comment on function tidemark.dead_letter_replay_many(text, text, timestamptz, timestamptz, integer, boolean, text,
                                                     bigint, text) is
    'tidemark.dead_letter_replay for every open dead letter of the route, or of the source, with the error code, that '
    'last failed in [failed_since, failed_until); null: any. In the order of the events, at most max_letters (default '
    '1000), in one transaction. For the next part, call it again with after, the id of the last row, in a transaction '
    'of its own: while it returns max_letters rows, there may be more. A letter that failed again lies before that '
    'place, and is not tried twice. Without a route, letters of paused routes are left out: skipped, route_paused. A '
    'reason is kept in the audit of each letter. Raises TM004, TM005, and what tidemark.dead_letter_replay raises; '
    'TM009 also where a gate of a letter that was sent closes before the last one was: nothing took effect then.';
grant execute on function tidemark.dead_letter_replay_many(text, text, timestamptz, timestamptz, integer, boolean, text,
                                                           bigint, text) to tidemark_executor;
