create or replace function tidemark.why_unclaimed(route tidemark.outbound_route, event tidemark.outbox)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select case
        when route.domain not in ('*', event.domain)
            then format('it is for the domain %s, the event is of %s', route.domain, event.domain)
        when not tidemark.pattern_matches(route.type, event.type)
            then format('it is for the type %s, the event is of %s', route.type, event.type)
        when route.stream is distinct from event.stream and route.stream is not null
            then format('it is for the stream %s, the event is of %s', route.stream, coalesce(event.stream, 'none'))
        when not coalesce(route.key_filter is null or tidemark.pattern_matches(route.key_filter, event.key), false)
            then format('it is for the keys %s, the event has %s', route.key_filter, coalesce(event.key, 'none'))
        else 'the payload does not match its filter' end
$$;
comment on function tidemark.why_unclaimed(tidemark.outbound_route, tidemark.outbox) is
    'The first condition of tidemark.route_matches that the event does not fulfil.';
