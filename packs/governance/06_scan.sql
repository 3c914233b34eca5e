-- gov_candidate_scan: new candidates, dirty candidates and old verdicts.

create or replace function governance.judge(ids bigint[], alone boolean, out judged bigint, out changed bigint)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '30s'
-- The two settings are for the updates.
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    rules governance.ruleset;
    states text[];
    items bigint[];
    news jsonb;
begin
    -- gov_candidate_scan has a cursor for new candidates, one for marks and one for old verdicts. If two of them judged
    -- the same candidate at once, the verdict of the one that read first could remain. Each new candidate is in one
    -- shard only, so pages of new candidates may run side by side. A page of marks or old verdicts runs alone. Later
    -- statements see all that was committed meanwhile. An advisory lock would not do: any login could hold it.
    if alone then
        lock table governance.turn in share row exclusive mode;
    else
        lock table governance.turn in row exclusive mode;
    end if;
    rules := governance.current_ruleset();

    -- Judge the input again: it may have changed with the candidate, or while gov_input_gate was reading it.
    execute format('
with seen as materialized (
    select i.id, %s(c.c) as state, g.input_quality_state as old
    from unnest($1) i (id)
    cross join lateral (select c from governance.candidate c where c.id = i.id and c.ruleset_version = $2 limit 1) c
    left join lateral (
        select g.input_quality_state from governance.gated g where g.candidate_id = i.id limit 1) g on true),
put as (
    insert into governance.gated (candidate_id, input_quality_state)
    select s.id, s.state from seen s where s.old is null order by s.id on conflict (candidate_id) do nothing
    returning input_quality_state),
moved as (
    update governance.gated g set input_quality_state = s.state, gated_at = clock_timestamp()
    from seen s where s.id = g.candidate_id and s.old <> s.state
    returning g.input_quality_state as state, s.old)
select array_agg(d.state), array_agg(d.n) from (
    select p.input_quality_state as state, 1::bigint as n from put p union all
    select m.state, 1 from moved m union all select m.old, -1 from moved m) d',
        governance.rule_name(rules.input_rule))
    into states, items using ids, rules.ruleset_version;
    perform governance.tally_add('gov_candidate_scan', rules.ruleset_version, 'input', states, items);

    -- Rewrite an unchanged verdict only after half of its time is over.
    execute format('
with seen as materialized (
    select i.id, (c.c).candidate_key as k, %s(c.c, g.input_quality_state) as verdict,
           v.candidate_verdict as old, v.stale_after
    from unnest($1) i (id)
    cross join lateral (select c from governance.candidate c where c.id = i.id and c.ruleset_version = $2 limit 1) c
    cross join lateral (select g.input_quality_state from governance.gated g where g.candidate_id = i.id limit 1) g
    left join lateral (
        select v.candidate_verdict, v.stale_after from governance.verdict v
        where v.candidate_id = i.id limit 1) v on true),
put as (
    insert into governance.verdict (candidate_id, candidate_verdict, stale_after)
    select s.id, s.verdict, clock_timestamp() + $3 from seen s where s.old is null order by s.id),
moved as (
    update governance.verdict v
    set candidate_verdict = s.verdict, scanned_at = clock_timestamp(), stale_after = clock_timestamp() + $3
    from seen s
    where s.id = v.candidate_id and (s.old is distinct from s.verdict or s.stale_after < clock_timestamp() + $3 / 2))
select count(distinct s.id), count(d.n) filter (where d.n > 0), array_agg(d.state), array_agg(d.n),
       case when governance.tells(''verdict_proposed'')
            then jsonb_agg(jsonb_build_object(''candidate_key'', s.k, ''verdict'', s.verdict, ''ruleset_version'', $2))
                 filter (where s.old is distinct from s.verdict and d.n > 0) end
from seen s left join lateral (
    select s.verdict as state, 1::bigint as n union all
    select s.old, -1 where s.old is not null) d on s.old is distinct from s.verdict',
        governance.rule_name(rules.verdict_rule))
    into judged, changed, states, items, news using ids, rules.ruleset_version, rules.stale_after;
    perform governance.tally_add('gov_candidate_scan', rules.ruleset_version, 'verdict', states, items);
    if news is not null then
        perform governance.tell('verdict_proposed', news);
    end if;
end
$$;
comment on function governance.judge(bigint[], boolean) is
    'Makes the input quality and the verdict of candidates of the current ruleset again. alone: they may be old '
    'candidates. judged: how many are of the current ruleset; changed: how many have a new or different verdict.';

create or replace function governance.scanned(rows_seen bigint, judged bigint, changed bigint, cleared bigint)
returns jsonb
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    select governance.checkpoint('gov_candidate_scan', jsonb_build_object(
        'rows_seen', rows_seen, 'judged', judged, 'changed', changed, 'cleared', cleared, 'dirty_marked', 0,
        'ruleset_version', (governance.current_ruleset()).ruleset_version))
$$;
comment on function governance.scanned(bigint, bigint, bigint, bigint) is
    'The result of gov_candidate_scan for a page of any kind.';

create or replace function governance.scan(rows governance.gated[])
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    done constant record := governance.judge(array(select r.candidate_id from unnest(rows) r), false);
begin
    return governance.scanned(cardinality(rows), done.judged, done.changed, 0);
end
$$;
comment on function governance.scan(governance.gated[]) is
    'Handler of gov_candidate_scan: candidates that passed the gate get their first verdict.';

create or replace function governance.scan(rows governance.mark[])
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    done constant record := governance.judge(array(select distinct r.candidate_id from unnest(rows) r), true);
    cleared bigint;
begin
    -- Delete only these: a mark that came meanwhile may report a change that this page has not seen.
    with gone as (
        delete from governance.mark m where m.id = any (array(select r.id from unnest(rows) r))
        returning m.candidate_id),
    counted as (
        select c.ruleset_version, count(*) as n from gone g join governance.candidate c on c.id = g.candidate_id
        group by c.ruleset_version)
    select coalesce(sum(t.n), 0) into cleared
    from (select c.n, governance.tally_add('gov_candidate_scan', c.ruleset_version, 'mark', array[''], array[-c.n])
          from counted c) t;
    return governance.scanned(cardinality(rows), done.judged, done.changed, cleared);
end
$$;
comment on function governance.scan(governance.mark[]) is
    'Handler of gov_candidate_scan: dirty candidates are judged again, and their marks deleted in the same '
    'transaction.';

create or replace function governance.scan(rows governance.verdict[])
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    done constant record := governance.judge(array(select r.candidate_id from unnest(rows) r), true);
begin
    return governance.scanned(cardinality(rows), done.judged, done.changed, 0);
end
$$;
comment on function governance.scan(governance.verdict[]) is
    'Handler of gov_candidate_scan: expired verdicts are made again.';
