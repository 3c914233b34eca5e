-- gov_periodic_full_audit, step by step.

create or replace function governance.audit_page(
    step governance.audit_step,
    page_rows integer,
    out rows_seen bigint,
    out last_id text,
    out missing bigint,
    out refused bigint,
    out dirty_marked bigint,
    out states jsonb,
    out verdicts jsonb)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    mapping constant governance.watched := (select w from governance.watched w where w.source = step.source);
    s constant tidemark.source := (select x from tidemark.source x where x.source = step.source);
    -- Not the current one, which may be another since the audit began: an audit covers one ruleset whole.
    version constant text := (select x.ruleset_version from governance.snapshot x
                              where x.snapshot_ref = step.snapshot_ref);
    id constant text := format('r.%I', s.id_column) || case when s.id_collate_c then ' collate "C"' else '' end;
    page record;
begin
    page := tidemark.source_look((tidemark.source_shape(s)).relation, format('
        select array_agg(p.k) as k, array_agg(p.address) as address, array_agg(p.collection) as collection,
            array_agg(p.entity) as entity, array_agg(p.item) as item
        from (select %1$s from (select * from %3$s) r where %4$s and (%5$s) order by %2$s limit $4) p',
        governance.names(mapping, s.id_column), id, tidemark.source_row(s),
        case when step.after_id is null then 'true' else format('%s > $2::%s', id, s.id_type) end,
        coalesce(s.filter, 'true')), id => step.after_id, rows_limit => page_rows);
    -- A new candidate has an hour to pass the gate and the scan by itself. Rows that cannot be candidates (a part of
    -- the name is missing, or the key is too long for an index) are dead letters of gov_backfill_sweep, and must not
    -- stop the audit.
    with inventory as materialized (
        select p.*, c.id, c.scan_time, g.input_quality_state as state, v.candidate_verdict as verdict, v.stale_after,
               p.k is null
               or c.id is null and (p.collection is null or p.entity is null or octet_length(p.k) > 2500) as refused
        from unnest(page.k, page.address, page.collection, page.entity, page.item) with ordinality
            p (k, address, collection, entity, item, n)
        left join lateral (
            select c.id, c.scan_time from governance.candidate c
            where c.candidate_key = p.k and c.ruleset_version = version limit 1) c on true
        left join lateral (
            select g.input_quality_state from governance.gated g where g.candidate_id = c.id limit 1) g on true
        left join lateral (
            select v.candidate_verdict, v.stale_after from governance.verdict v
            where v.candidate_id = c.id limit 1) v on true),
    added as (
        insert into governance.candidate
            (ruleset_version, canonical_address, collection_name, entity_code, source, item_id)
        select distinct on (i.k) version, i.address, i.collection, i.entity, step.source, i.item from inventory i
        where i.id is null and not i.refused
        order by i.k, i.n
        on conflict (candidate_key, ruleset_version) do nothing
        returning 1),
    marked as (
        insert into governance.mark (candidate_id, reason, source, item_id)
        select distinct on (i.id) i.id, case when i.verdict is null then 'unscanned' else 'stale' end, step.source,
               i.item
        from inventory i
        where (i.verdict is null and i.scan_time < clock_timestamp() - interval '1 hour'
               or i.stale_after < clock_timestamp())
          and not exists (select from governance.mark m where m.candidate_id = i.id)
        order by i.id
        returning 1)
    select count(*), (array_agg(i.item order by i.n desc))[1], (select count(*) from added),
           count(*) filter (where i.refused),
           (select count(*) from marked),
           (select coalesce(jsonb_object_agg(x.s, x.n), '{}')
            from (select coalesce(y.state, 'pending') as s, count(*) as n from inventory y group by 1) x),
           (select coalesce(jsonb_object_agg(x.s, x.n), '{}')
            from (select coalesce(y.verdict, 'none') as s, count(*) as n from inventory y group by 1) x)
    into rows_seen, last_id, missing, refused, dirty_marked, states, verdicts
    from inventory i;
    perform governance.tally_add('gov_periodic_full_audit', version, 'candidate', array[''], array[missing]);
    perform governance.tally_add('gov_periodic_full_audit', version, 'mark', array[''], array[dirty_marked]);
end
$$;
comment on function governance.audit_page(governance.audit_step, integer) is
    'A page of the inventory: adds missing candidates, and marks those whose verdict is expired or missing.';

create or replace function governance.audit(rows governance.audit_step[])
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    step governance.audit_step;
    of_ governance.snapshot;
    page record;
    next_source text;
    counts jsonb := '{"rows_seen": 0, "missing": 0, "refused": 0, "dirty_marked": 0}';
begin
    foreach step in array rows loop
        delete from governance.audit_step a where a.id = step.id;
        continue when not found;
        update governance.snapshot s
        set started_at = coalesce(s.started_at, clock_timestamp()),
            ruleset_version = coalesce(s.ruleset_version, (governance.current_ruleset()).ruleset_version)
        where s.snapshot_ref = step.snapshot_ref returning s.* into of_;

        -- The table that the step names may be watched no longer.
        next_source := (select min(w.source) from governance.watched w
                        where w.kind = 'birth' and w.source >= coalesce(step.source, ''));
        if next_source is distinct from step.source then
            step.source := next_source;
            step.after_id := null;
        end if;
        if step.source is not null then
            page := governance.audit_page(step, of_.page_rows);
            update governance.snapshot s
            set rows_seen = s.rows_seen + page.rows_seen, missing = s.missing + page.missing,
                dirty_marked = s.dirty_marked + page.dirty_marked, states = tidemark.jsonb_add(s.states, page.states),
                verdicts = tidemark.jsonb_add(s.verdicts, page.verdicts)
            where s.snapshot_ref = step.snapshot_ref returning s.* into of_;
            counts :=
                tidemark.jsonb_add(counts, jsonb_build_object('rows_seen', page.rows_seen, 'missing', page.missing,
                                                              'refused', page.refused,
                                                              'dirty_marked', page.dirty_marked));
            if page.rows_seen >= of_.page_rows then
                next_source := step.source;
                step.after_id := page.last_id;
            else
                next_source := (select min(w.source) from governance.watched w
                                where w.kind = 'birth' and w.source > step.source);
                step.after_id := null;
            end if;
        end if;
        counts := counts || jsonb_build_object('snapshot_ref', of_.snapshot_ref,
                                               'ruleset_version', of_.ruleset_version);
        if next_source is not null then
            -- Keep due_at instead of the clock: the step is due already, and only this worker reads and writes steps.
            insert into governance.audit_step (snapshot_ref, source, after_id, due_at)
            values (step.snapshot_ref, next_source, step.after_id, step.due_at);
            continue;
        end if;

        update governance.snapshot s set ended_at = clock_timestamp() where s.snapshot_ref = of_.snapshot_ref;
        perform governance.tell('audit_snapshot', jsonb_build_array(jsonb_build_object(
            'snapshot_ref', of_.snapshot_ref, 'ruleset_version', of_.ruleset_version, 'rows_seen', of_.rows_seen,
            'missing', of_.missing, 'dirty_marked', of_.dirty_marked, 'states', of_.states, 'verdicts', of_.verdicts)));
        -- A ruleset that became current meanwhile has its audit now.
        perform governance.audit_plan(
            case when of_.ruleset_version = (governance.current_ruleset()).ruleset_version
                      then greatest(of_.started_at + of_.every, clock_timestamp()) else clock_timestamp() end,
            of_.every, of_.page_rows);
    end loop;
    return governance.checkpoint('gov_periodic_full_audit', counts);
end
$$;
comment on function governance.audit(governance.audit_step[]) is
    'Handler of gov_periodic_full_audit: takes the step that is due and leaves the next one; after the last page the '
    'first step of the next audit, which is due now if another ruleset has become current.';

create or replace function governance.audit_plan(due_at timestamptz, every interval, page_rows integer)
returns governance.snapshot
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    planned governance.snapshot;
begin
    insert into governance.snapshot (every, page_rows) values (audit_plan.every, audit_plan.page_rows)
    on conflict do nothing returning * into planned;
    if found then
        insert into governance.audit_step (snapshot_ref, due_at) values (planned.snapshot_ref, audit_plan.due_at);
    end if;
    return planned;
end
$$;
comment on function governance.audit_plan(timestamptz, interval, integer) is
    'Plans an audit. Null: one is open, maybe of a transaction that has just ended.';

create or replace function governance.audit_start(every interval default null, page_rows integer default null)
returns governance.snapshot
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    open governance.snapshot;
begin
    loop
        select s.* into open from governance.snapshot s where s.ended_at is null for update;
        exit when found;
        open := governance.audit_plan(clock_timestamp(), coalesce(audit_start.every, '7 days'),
                                      coalesce(audit_start.page_rows, 5000));
        if open.snapshot_ref is not null then
            return open;
        end if;
        -- The audit that was waited for above has ended, and its last step planned this one: look again.
    end loop;
    update governance.snapshot s
    set every = coalesce(audit_start.every, s.every), page_rows = coalesce(audit_start.page_rows, s.page_rows)
    where s.snapshot_ref = open.snapshot_ref returning s.* into open;
    -- Make a step that was dead-lettered due again; a replay of its dead letter then finds no step.
    update governance.audit_step a set due_at = clock_timestamp()
    where a.snapshot_ref = open.snapshot_ref and (open.started_at is null or exists (
        select from tidemark.dead_letter l
        where l.source = 'governance_audit_step' and l.item_id = a.id::text and l.resolved_at is null));
    return open;
end
$$;
comment on function governance.audit_start(interval, integer) is
    'Makes the next full audit due now. An audit that is under way goes on, even if its step was dead-lettered. every: '
    'time between the starts of two audits (default: unchanged, at first 7 days). page_rows: rows of the inventory per '
    'step (default: unchanged, at first 5000). Returns the audit.';
