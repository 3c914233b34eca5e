create or replace function tidemark.dead_letter_replay_many(
    route text default null,
    error_code text default null,
    failed_since timestamptz default null,
    failed_until timestamptz default null,
    max_letters integer default 1000,
    dry_run boolean default false,
    source text default null)
returns setof tidemark.replay
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if coalesce(dead_letter_replay_many.max_letters, 0) not between 1 and 50000 then
        raise exception using errcode = 'TM005',
            message = format('max_letters is %s, and must be from 1 to 50000', coalesce(max_letters::text, 'null')),
            hint = 'Ask for a part, and again for the rest.';
    end if;
    if dead_letter_replay_many.route is not null
        and not exists (select from tidemark.outbound_route r where r.route_code = dead_letter_replay_many.route)
    then
        raise exception using errcode = 'TM004',
            message = format('there is no route "%s"', dead_letter_replay_many.route),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    end if;
    return query
    select p.* from (
        select l.id from tidemark.dead_letter l left join tidemark.outbound_route r on r.id = l.route_id
        where l.resolved_at is null
          and (dead_letter_replay_many.route is null or r.route_code = dead_letter_replay_many.route)
          and (dead_letter_replay_many.error_code is null or l.error_code = dead_letter_replay_many.error_code)
          and (dead_letter_replay_many.source is null or l.source = dead_letter_replay_many.source)
          and (failed_since is null or l.last_failed_at >= failed_since)
          and (failed_until is null or l.last_failed_at < failed_until)
          and not exists (select from tidemark.pending q where q.dead_letter_id = l.id)
          and not exists (select from tidemark.pending_row q where q.dead_letter_id = l.id)
        -- The order in which the events were emitted, and the rows made.
        order by l.seq, l.route_id, l.item_ts, l.id limit max_letters) l
    cross join lateral tidemark.dead_letter_replay(l.id, dead_letter_replay_many.dry_run) p;
end
$$;
comment on function tidemark.dead_letter_replay_many(text, text, timestamptz, timestamptz, integer, boolean, text) is
'tidemark.dead_letter_replay for every open dead letter of the route, or of the source, with the error code, that last failed in [failed_since, failed_until); null: any. In the order of the events, at most max_letters (default 1000), in one transaction.';
revoke all on function tidemark.dead_letter_replay_many(text, text, timestamptz, timestamptz, integer, boolean, text) from public;
grant execute on function tidemark.dead_letter_replay_many(text, text, timestamptz, timestamptz, integer, boolean, text) to tidemark_executor;
