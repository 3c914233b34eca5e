-- public
create or replace function tidemark.dead_letter_replay(
    id bigint,
    dry_run boolean default false,
    reason text default null)
returns tidemark.replay
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    letter constant tidemark.dead_letter := tidemark.dead_letter_claim(dead_letter_replay.id);
    event constant tidemark.outbox := case when letter.source = 'outbox' then tidemark.letter_event(letter) end;
    route constant tidemark.outbound_route := (select r from tidemark.outbound_route r where r.id = letter.route_id);
    worker constant text := (select w.worker from tidemark.worker w where w.id = letter.worker_id);
    closed constant text[] := tidemark.closed_domains();
    -- The pause of a route that is off or in dry run counts once it is live.
    gate constant text := tidemark.closed_delivery(
        worker, event.domain, case when route.enabled and not route.dry_run then route.id end);
    statement text;
    outcome tidemark.outcome;
    reason text;
    detail text;
    dropped int8multirange;
    tried record;
    attempt_no integer := letter.attempts + 1;
begin
    if not dead_letter_replay.dry_run then
        perform tidemark.session_check('a replay of dead letters',
                                       'it must see gates that were closed since it began.');
    end if;
    if letter.source = 'commands' then
        raise exception using errcode = 'TM005', message = format('dead letter %s belongs to a command', letter.id),
            hint = 'tidemark.command_replay runs it again as it was sent. Or its producer sends the corrected command '
                'with a new key; then discard the letter.';
    end if;
    if gate is not null and not dead_letter_replay.dry_run then
        raise exception using errcode = 'TM009',
            message = format('dead letter %s is not replayed: closed by %s', letter.id, gate),
            hint = case when gate like 'route %' then 'The route is paused. Resume it first, or ask for a dry run: '
                            || (tidemark.gate_opening(gate, worker, 'its dead letters are replayed')).cli
                        else 'Open the gate first, or ask for a dry run.' end;
    end if;

    if letter.source = 'outbox' and (letter.event_id is null or event.seq is null) then
        raise exception using errcode = 'TM004',
            message = format('dead letter %s cannot be replayed: event %s is no longer in the log', letter.id,
                             letter.seq),
            hint = 'If the event is known from elsewhere, emit it again; then discard the letter.';
    end if;
    if letter.source <> 'outbox' then
        -- A row: its worker has the table and the handler.
        if not dead_letter_replay.dry_run then
            attempt_no := tidemark.dead_letter_requeue(letter.id, dead_letter_replay.reason);
        end if;
        return row(letter.id, letter.source, null, attempt_no, 'pending', null,
                   'worker ' || worker || ' tries it next')::tidemark.replay;
    end if;

    select d.outcome, d.reason into outcome, reason
    from tidemark.decide(route.worker, event, array(select r from tidemark.outbound_route r order by r.id),
                         row(true, true, true, null)::tidemark.gates) d
    where d.route_id = letter.route_id;
    if not found then
        outcome := 'skipped';
        reason := 'no_route';
        detail := 'the route no longer claims this event';
    end if;

    -- A route in dry run says what its transform makes of the event; there it is the reason, and no outcome.
    if route.transform is not null
        and (outcome = 'dry_run' or dead_letter_replay.dry_run and outcome = 'pending')
    then
        tried := tidemark.transform_try(route, array[event.seq], array[event.payload], tidemark.default_search_path());
        reason := case when not isempty(tried.dropped) then 'transform'
                       when cardinality(tried.failed) > 0 then 'transform_failed' end;
        detail := tried.failures[1];
        if outcome = 'pending' and reason is not null then
            outcome := case reason when 'transform' then 'skipped' else 'failed' end;
        end if;
    end if;
    if dead_letter_replay.dry_run then
        return row(letter.id, route.route_code, letter.event_id, attempt_no, outcome, reason, detail)::tidemark.replay;
    end if;

    if outcome = 'pending' and tidemark.target_is_inside(route.target_kind) then
        if tidemark.time_left() <= interval '0' then
            -- Another letter of this call has used it up, and nothing would end this one.
            return row(letter.id, route.route_code, letter.event_id, letter.attempts, outcome, 'busy',
                       'this statement has no time left: try again')::tidemark.replay;
        end if;
        begin
            statement := tidemark.delivery_statement(route, true);
            select c.code, c.message, c.dropped into reason, detail, dropped
            from tidemark.target_call(
                statement, null,
                case when letter.payload_in_log then tidemark.event_json(event) else letter.event_snapshot end,
                route, tidemark.default_search_path()) c;
        exception when undefined_function or undefined_table or invalid_parameter_value or feature_not_supported then
            get stacked diagnostics reason = returned_sqlstate, detail = message_text;
        end;
        outcome := case when reason is not null then 'failed' when isempty(dropped) then 'sent' else 'skipped' end;
        if outcome = 'skipped' then
            reason := 'transform';
        elsif outcome = 'sent' and route.target_kind = 'river' then
            perform tidemark.river_wake(route.options);
        end if;
        if outcome = 'sent' and tidemark.closed_switch(route.worker, array[route.id], closed) is not null then
            raise exception using errcode = 'TM009',
                message = format('dead letter %s is not replayed: closed meanwhile by %s', letter.id,
                                 tidemark.closed_switch(route.worker, array[route.id], closed)),
                hint = coalesce(
                    'Open it first: ' || (tidemark.gate_opening(
                        tidemark.closed_delivery(worker, event.domain, route.id), worker,
                        'its dead letters are replayed')).cli,
                    'What the route lacks: tidemark route why-not ' || tidemark.shell_word(route.route_code));
        end if;
    end if;

    attempt_no := tidemark.dead_letter_settle(letter.id, outcome, reason, detail, dead_letter_replay.reason);
    return row(letter.id, route.route_code, letter.event_id, attempt_no, outcome, reason, detail)::tidemark.replay;
end
$$;
comment on function tidemark.dead_letter_replay(bigint, boolean, text) is
    'Tries one dead letter again, as a fresh attempt, from its snapshot (its payload from the log, where that is '
    'left there) and with the route as it is now; it is resolved when the outcome is sent, dry_run (the route is in '
    'dry run) or skipped by the route''s transform. With dry_run nothing is written or delivered, and the answer is '
    'what would happen: pending where it would be delivered, after the route''s transform. A row of a source is left '
    'to its worker, which tries it once more: pending. A reason is kept in the audit. Raises TM004 (no such letter, or '
    'its event is gone from the log, which it needs), TM006 (isolation level; not with dry_run), TM009 (a gate is '
    'closed, or the route is paused), TM013 (resolved already, or its delivery is pending). Source: '
    'S0 fn_iu_route_dead_letter_replay.';
grant execute on function tidemark.dead_letter_replay(bigint, boolean, text) to tidemark_executor;
