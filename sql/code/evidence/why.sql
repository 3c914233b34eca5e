-- public
create or replace function tidemark.why(event_id uuid, route_code text)
returns table (state text, sentence text, command text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- Found first: in the condition on the log it would be asked for again of each partition.
    number constant bigint := tidemark.event_seq(event_id);
    event tidemark.outbox;
    route tidemark.outbound_route;
    waits tidemark.pending;
    letter tidemark.dead_letter;
    gate text;
    code text;
    again text;
    breaker text;
    newest record;
    place record;
begin
    select * into route from tidemark.outbound_route r where r.route_code = why.route_code;
    if route.id is null then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', why.route_code),
            hint = 'Routes: tidemark route list';
    end if;
    select * into event from tidemark.outbox o where o.seq = number;
    if event.seq is null then
        raise exception using errcode = 'TM004', message = format('there is no event %s', why.event_id),
            hint = 'It was never emitted, was rolled back, or has left the log by retention.';
    end if;
    code := tidemark.shell_word(route.route_code);
    again := format('tidemark route replay %s --from-seq %s --to-seq %2$s --reason ''tidemark why''', code, event.seq);
    gate := tidemark.closed_delivery(route.worker, event.domain, null);

    -- First: what the pass that moved the cursor here left is then seen by the statements below. The other way round,
    -- an event whose pass ends in between would have been passed, and a replay would deliver it twice.
    select c.watermark_id::bigint as seq, c.last_run_at,
           event.seq <= c.watermark_id::bigint and (c.holes + c.fenced) @> event.seq as late
    into place
    from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker
    where c.worker = route.worker and c.source = 'outbox'
      and c.shard = tidemark.shard_of(event.key, event.seq, w.shards);

    -- What waits or is on record holds whatever the settings of the route are now.
    select * into waits from tidemark.pending p where p.route_id = route.id and p.seq = event.seq;
    if waits.seq is not null then
        state := 'pending';
        select case f.kind when 'target_down' then 'fails' when 'credentials_refused' then 'refuses the credentials'
                    else 'gets its events from another copy too' end into breaker
        from tidemark.finding f
        where f.kind in ('target_down', 'credentials_refused', 'two_copies') and f.subject = route.route_code
          and f.closed_at is null
        limit 1;
        if gate is not null then
            sentence := format('It waits for a closed gate: %s.', gate);
            command := (tidemark.gate_opening(gate, route.worker, 'tidemark why')).cli;
        elsif not route.enabled then
            sentence := 'It waits, since the route was switched off.';
            command := format('tidemark route enable %s --reason ''tidemark why''', code);
        elsif route.dry_run then
            sentence := 'It waits, since the route was set to dry run.';
            command := format('tidemark route set %s --dry-run=false --reason ''tidemark why''', code);
        elsif route.paused_at is not null then
            sentence := format('It waits, since the route was paused at %s.', date_trunc('second', route.paused_at));
            command := (tidemark.gate_opening('route ' || route.route_code, route.worker, 'tidemark why')).cli;
        elsif waits.next_attempt_at = 'infinity' then
            select format('It waits behind event %s of its key%s.', p.seq,
                          ', which ' || tidemark.why_failed(p)) into sentence
            from tidemark.pending p
            where p.route_id = route.id and p.key = waits.key and p.seq < event.seq
            order by p.seq limit 1;
            sentence := coalesce(sentence, 'It waits behind an earlier event of its key.');
        elsif breaker is not null then
            sentence := format('It %swaits, since the target of the route %s: the daemon tries one event now and then, '
                               'and sends the others once that succeeds.',
                               tidemark.why_failed(waits) || ', and ', breaker);
            command := format('tidemark route show %s', code);
        elsif waits.error_count > 0 then
            sentence := format('It %s, and is tried again at %s.', tidemark.why_failed(waits),
                               date_trunc('second', waits.next_attempt_at));
        else
            sentence := 'It is about to be delivered.';
        end if;
        return next;
        return;
    end if;
    select e.outcome, e.reason, e.detail, e.attempt_no, date_trunc('second', e.decided_at) as at into newest
    from tidemark.event_evidence(event.seq) e
    where e.route_code = route.route_code
    order by e.attempt_no desc limit 1;
    select * into letter from tidemark.dead_letter l
    where l.route_id = route.id and l.seq = event.seq
    order by l.resolved_at is not null, l.id desc limit 1;
    state := newest.outcome::text;
    case
        when newest.outcome = 'sent' then
            sentence := format('It was delivered at %s, in attempt %s.', newest.at, newest.attempt_no);
        when newest.outcome = 'skipped' and newest.reason = 'transform' then
            sentence := format('The route''s transform dropped it at %s, in attempt %s.', newest.at,
                               newest.attempt_no);
            command := again;
        when letter.id is not null and letter.resolved_at is null then
            state := 'dead letter';
            sentence := format('It failed for good after %s: %s.',
                case letter.attempts when 1 then 'one attempt' else letter.attempts || ' attempts' end,
                tidemark.why_error(letter.error_code, letter.error_detail));
            command := format('tidemark dead-letter replay %s', letter.id);
        when letter.resolution = 'discarded' then
            state := 'discarded';
            sentence := format('It failed for good, and %s discarded it at %s.', letter.resolved_by,
                               date_trunc('second', letter.resolved_at));
        when newest.outcome in ('disabled', 'dry_run') then
            sentence := format('The route was %s when its worker decided the event, at %s.',
                case newest.outcome when 'disabled' then 'switched off' else 'in dry run' end, newest.at)
                || case newest.reason
                       when 'transform' then ' Its transform drops the event.'
                       when 'transform_untried' then ' Its transform was not called for the event yet, or takes longer '
                                                     'than a dry run gives it.'
                       when 'event_missing' then ' Its payload was gone before its transform was called.'
                       when 'transform_failed' then format(' Its transform fails: %s.', newest.detail)
                       else '' end;
            command := again;
        when newest.outcome is not null then
            sentence := format('It was decided as %s at %s%s.', newest.outcome, newest.at,
                               coalesce(': ' || newest.reason, ''));
            command := again;
        when not tidemark.route_matches(route, event) then
            state := 'not claimed';
            sentence := format('The route does not claim it: %s.', tidemark.why_unclaimed(route, event));
            command := format('tidemark route show %s', code);
        when exists (select from tidemark.worker w
                     where w.worker = route.worker and cardinality(w.domains) > 0
                       and event.domain <> all (w.domains)) then
            state := 'not claimed';
            sentence := format('The worker %s of the route does not decide events of the domain %s.', route.worker,
                               event.domain);
            command := format('tidemark worker show %s', tidemark.shell_word(route.worker));
        else
            if coalesce(place.seq, 0) < event.seq or place.late then
                state := 'not read';
                sentence := case
                    when gate is not null then format('Its worker waits for a closed gate: %s.', gate)
                    when place.last_run_at is null then format('Its worker %s has never run.', route.worker)
                    else format('Its worker %s has not read it yet: it ran last at %s, up to number %s; the event is '
                                'number %s%s.', route.worker, date_trunc('second', place.last_run_at), place.seq,
                                event.seq, case when place.late then ', which was committed late' else '' end) end;
                command := coalesce((tidemark.gate_opening(gate, route.worker, 'tidemark why')).cli, 'tidemark status');
            else
                state := 'passed';
                sentence := 'Its worker passed it before the route claimed such events, or the record has left by '
                    'retention.';
                command := again;
            end if;
    end case;
    return next;
end
$$;
comment on function tidemark.why(uuid, text) is
    'Why the route delivered the event or did not, in one row. state: sent, pending, dead letter, discarded, disabled, '
    'dry_run, skipped, failed, not claimed, not read or passed. sentence: the reason. command: what shows more or '
    'changes it; null: nothing has to be done. Raises TM004 for an unknown event or route.';
grant execute on function tidemark.why(uuid, text) to tidemark_reader, tidemark_executor;
