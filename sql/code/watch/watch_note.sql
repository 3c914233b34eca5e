-- A cause that is a finding already has its own life; of the others this makes findings, so that all have one history,
-- one acknowledgement and one way to be told.
create or replace function tidemark.watch_note(causes jsonb)
returns table (finding bigint, told text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- What is gone for less long may come back, and is not told twice.
    patience constant interval := '30 seconds';
    -- A warning that is over at the next look is not told: of a worker, say, that is about to make its first pass.
    moment constant interval := '5 seconds';
    at constant timestamptz := clock_timestamp();
    events constant boolean := exists (
        select from tidemark.event_type t
        where t.domain = 'system' and t.type in ('finding_opened', 'finding_closed') and t.enabled);
    seen bigint[];
    f tidemark.finding;
    type text;
    stuck boolean := false; -- one wait for a locked log is enough
begin
    with shown as (
        select distinct on (kind, subject)
               c.finding, tidemark.finding_kind(c.cause) as kind, c.subject,
               -- To a role that may read payloads, the view shows the errors of dead letters, which may quote them.
               left(case c.cause when 'dead_letters' then split_part(c.found, ' (', 1) else c.found end, 4000) as found,
               case c.status when 'bad' then 'high' else 'warning' end::tidemark.severity as severity
        from jsonb_to_recordset(causes) c (status text, cause text, subject text, found text, finding bigint)
        where c.finding is not null or exists (select from tidemark.cause_kind k where k.cause = c.cause)
    ), noted as (
        insert into tidemark.finding as o (kind, subject, severity, detail, derived)
        select s.kind, s.subject, s.severity, s.found, true
        from shown s left join tidemark.finding d on d.id = s.finding
        where d.derived is not false
        on conflict (kind, subject) where closed_at is null do update
        set last_seen_at = at, severity = excluded.severity, detail = excluded.detail
        where o.derived
        returning o.id
    )
    select array(select n.id from noted n union all select s.finding from shown s where s.finding is not null)
    into seen;

    -- Where tables are locked, other causes cannot be seen, and are not over.
    update tidemark.finding o set closed_at = o.last_seen_at
    where o.derived and o.closed_at is null and o.last_seen_at < at - patience
      and not causes @> '[{"cause": "tables_locked"}]';

    -- What could not be emitted before comes first.
    for f in select o.* from tidemark.finding o where o.untold is not null order by o.id loop
        foreach type in array f.untold loop
            stuck := stuck or not tidemark.finding_event(type, f);
            exit when stuck;
            f.untold := f.untold[2:];
        end loop;
        update tidemark.finding o set untold = nullif(f.untold, '{}') where o.id = f.id;
        exit when stuck;
    end loop;

    for f in
        update tidemark.finding o set told = 'opened'
        where o.id = any (seen) and o.closed_at is null and o.told is null
          and (not o.derived or o.severity >= 'high' or o.opened_at < at - moment)
        returning o.*
    loop
        -- It came back before its end was told.
        update tidemark.finding o set told = 'closed'
        where o.kind = f.kind and o.subject = f.subject and o.told = 'opened' and o.id <> f.id;
        continue when found;
        if events then
            stuck := stuck or not tidemark.finding_event('finding_opened', f);
            update tidemark.finding o set untold = o.untold || text 'finding_opened' where stuck and o.id = f.id;
        end if;
        finding := f.id;
        told := f.told;
        return next;
    end loop;

    for f in
        update tidemark.finding o set told = 'closed'
        where o.told = 'opened' and o.closed_at < at - patience
        returning o.*
    loop
        if events then
            stuck := stuck or not tidemark.finding_event('finding_closed', f);
            update tidemark.finding o set untold = o.untold || text 'finding_closed' where stuck and o.id = f.id;
        end if;
        finding := f.id;
        told := f.told;
        return next;
    end loop;
end
$$;
comment on function tidemark.watch_note(jsonb) is
    'Part of tidemark.watch: keeps a finding for each cause that is open, closes those that it has made once their '
    'cause has been gone for 30 seconds, and emits system/finding_opened and system/finding_closed, where these types '
    'are enabled; later, where the log is locked now. causes are rows of tidemark.cause. Returns what opened and '
    'closed.';
grant execute on function tidemark.watch_note(jsonb) to tidemark_admin, tidemark_executor;
