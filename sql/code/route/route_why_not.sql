-- public
-- Not a security definer: the causes show the caller what its role may see.
create or replace function tidemark.route_why_not(route_code text)
returns table (reason text, sentence text, command text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    latest constant integer := 1000;
    route tidemark.outbound_route;
    claimed record;
begin
    -- TM004 for an unknown route.
    return query
    select 'closed', format('%s: %s.', s.switch, s.state), s.cli
    from tidemark.route_switches(route_why_not.route_code, 'route why-not') s
    where not s.is_open;
    select * into route from tidemark.outbound_route r where r.route_code = route_why_not.route_code;
    return query
    select 'closed', format('gate %s: closed. The route delivers no event of that domain.', d.gate), o.cli
    from (select 'domain.' || c || '.enabled' as gate from unnest(tidemark.closed_domains()) c) d,
         tidemark.gate_opening(d.gate, route.worker, 'route why-not') o
    where route.domain = '*'
    order by d.gate;

    return query
    select c.cause, c.found, c.cli[1]
    from tidemark.cause c
    where c.status <> 'unknown' and c.cause not in ('gate_closed', 'route_paused')
      and (c.subject in (route.route_code, route.worker)
        or c.cause = 'no_daemon' and not tidemark.target_is_inside(route.target_kind) and route.target_kind <> 'go');

    select c.event_id, c.seq into claimed from tidemark.route_claimed(route.route_code, latest) c;
    if claimed.seq is null then
        reason := 'no event';
        sentence := format('None of the latest %s events is one of %s/%s that its filters let pass.', latest,
                           route.domain, route.type);
        command := format('tidemark route show %s', tidemark.shell_word(route.route_code));
        return next;
    else
        return query
        select w.state, format('Event %s, the latest that it claims: %s', claimed.seq, w.sentence)
                            || case when m.events > 1 then format(' So were %s of its events, numbered %s to %s.',
                                                                  case when m.complete then '' else 'at least ' end
                                                                      || m.events, m.first_seq, m.last_seq)
                                    else '' end,
               case when m.events > 1 then format('tidemark route replay %s --from-seq %s --to-seq %s --only %s '
                   '--reason ''route why-not''', tidemark.shell_word(route.route_code), m.first_seq, m.last_seq,
                   w.state) else w.command end
        from tidemark.why(claimed.event_id, route.route_code) w
        left join tidemark.route_missed(route.route_code) m on m.outcome::text = w.state;
    end if;
end
$$;
comment on function tidemark.route_why_not(text) is
    'Why the route delivers nothing, most fundamental first: what is closed (tidemark.route_switches, and '
    'for a route of all domains the gates of single ones, which route_go_live leaves as they are), the causes '
    '(tidemark.cause) of the route, its worker and its daemon, and the latest of the last 1,000 events that it '
    'claims, with what became of it (tidemark.why) and, where it was off or in dry run, of the others of that time '
    '(tidemark.route_missed). command: what opens it, fixes it or shows more. Raises TM004.';
grant execute on function tidemark.route_why_not(text) to tidemark_reader, tidemark_executor;
