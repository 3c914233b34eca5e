create or replace function tidemark.dead_letter_settle(
    id bigint,
    outcome tidemark.outcome,
    reason text,
    detail text,
    why text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    letter constant tidemark.dead_letter := tidemark.dead_letter_claim(id);
    gate text;
begin
    if outcome = 'pending' then
        -- The pause of a route that is off or in dry run counts once it is live, as for tidemark.dead_letter_replay.
        select tidemark.closed_delivery(
            (select w.worker from tidemark.worker w where w.id = letter.worker_id), letter.event_snapshot ->> 'domain',
            (select r.id from tidemark.outbound_route r where r.id = letter.route_id and r.enabled and not r.dry_run))
        into gate;
        if gate is not null then
            raise exception using errcode = 'TM009',
                message = format('dead letter %s is not replayed: closed by %s', id, gate),
                hint = 'Open it first: tidemark.dead_letter_replay tells how.';
        end if;
    end if;
    return tidemark.dead_letter_record(id, outcome, reason, detail, why);
end
$$;
comment on function tidemark.dead_letter_settle(bigint, tidemark.outcome, text, text, text) is
    'tidemark.dead_letter_record for an open dead letter: how tidemark.dead_letter_replay ends. Raises TM004, TM009 '
    '(pending, and a gate is closed or the route is paused), TM013 (resolved already, or its delivery is pending).';
grant execute on function tidemark.dead_letter_settle(bigint, tidemark.outcome, text, text, text) to tidemark_executor;
