-- public
-- Not a security definer: what the calling role may not see is unknown, and not ok.
create or replace function tidemark.watch(watcher text default null, upkeep boolean default true)
returns table (
    state text,
    status text,
    cause text,
    subject text,
    since timestamptz,
    found text,
    cli text[],
    finding bigint)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '500ms'
as $$
#variable_conflict use_column
declare
    most constant integer := 1000;
    causes jsonb;
    news jsonb;
begin
    perform tidemark.session_check('watch', 'it must see what another watch has told meanwhile.');
    if not tidemark.watch_claim(watcher) then
        return query
        select 'open', case when f.severity >= 'high' then 'bad' else 'warn' end, tidemark.finding_cause(f.kind),
               f.subject, f.opened_at, f.detail, '{}'::text[], f.id
        from tidemark.finding f
        where f.told = 'opened' and f.closed_at is null
        order by f.severity desc, f.opened_at, f.id limit most;
        return query
        select 'held', null, null, w.name, w.until, 'another one watches, and these are the causes that it told',
               null::text[], null::bigint
        from tidemark.watcher w;
        return;
    end if;

    if upkeep then
        perform from tidemark.stale_check();
    end if;
    -- Worst first, as the view has them.
    causes := (select coalesce(jsonb_agg(c), '[]') from (select c.* from tidemark.cause c limit most) c);
    news := (select coalesce(jsonb_agg(n), '[]') from tidemark.watch_note(causes) n);
    return query
    select case when exists (select from jsonb_array_elements(news) t
                             where (t ->> 'finding')::bigint = f.id and t ->> 'told' = 'opened')
                then 'opened' else 'open' end,
           e.c ->> 'status', e.c ->> 'cause', e.c ->> 'subject', (e.c ->> 'since')::timestamptz, f.detail,
           array(select jsonb_array_elements_text(e.c -> 'cli')), f.id
    from jsonb_array_elements(causes) with ordinality e (c, n)
    left join tidemark.finding f on f.closed_at is null and f.kind = tidemark.finding_kind(e.c ->> 'cause')
        and f.subject = e.c ->> 'subject'
    order by e.n;
    return query
    select 'closed', null, tidemark.finding_cause(f.kind), f.subject, f.opened_at, f.detail, '{}'::text[], f.id
    from jsonb_array_elements(news) t
    join tidemark.finding f on f.id = (t ->> 'finding')::bigint
    where t ->> 'told' = 'closed'
    order by f.id;

    if upkeep and not causes @> '[{"cause": "tables_locked", "status": "unknown"}]' then
        -- Last, since it locks the log for a moment.
        return query
        select 'upkeep', null, m.action, m.object, null::timestamptz, m.detail, null::text[], null::bigint
        from tidemark.maintain() m;
    end if;
end
$$;
comment on function tidemark.watch(text, boolean) is
    'Looks at tidemark.cause once. Of any number of daemons and sessions one watches: each cause becomes a finding and '
    'one event system/finding_opened when it begins (a warning that no finding reports: at the second look), and one '
    'event finding_closed when it has been over for 30 seconds. state: opened and closed (now), open (before), upkeep '
    '(an action of maintain; cause is the action), held (another one watches, subject, until since; the rows open are '
    'what it told). watcher: the daemon that watches, for 20 seconds from this call; null: this session, for this '
    'call. upkeep: also call stale_check and maintain, as a daemon does by other statements. At most 1000 causes, the '
    'worst. What the role may not see is unknown. found quotes no payload; the view cause does, to roles that may read '
    'payloads. Where no daemon runs, call it every minute. Raises TM006 (isolation level), TM007 (standby).';
grant execute on function tidemark.watch(text, boolean) to tidemark_admin, tidemark_executor;
