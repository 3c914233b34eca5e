-- The pack governance (source document S2). What an operator may have changed since an earlier install stays. The
-- tables belong to tidemark_owner; the workers' functions run with the rights of whoever runs the workers, a member
-- of tidemark_executor.

set local search_path = pg_catalog, pg_temp;

do $$
begin
    -- From PostgreSQL 16 on ADMIN alone makes a member, who cannot become the owner.
    if not has_database_privilege(current_database(), 'create')
        or not pg_has_role('tidemark_owner', case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end) then
        raise exception using errcode = '42501',
            message = format('%s may not install the pack governance: it makes a schema that belongs to tidemark_owner', current_user),
            hint = format('Install it as the role that ran tidemark migrate up, or: grant create on database %I to %I; grant tidemark_owner to %2$I;',
                          current_database(), current_user);
    end if;
    -- Back to it at the end.
    perform set_config('governance.installer', current_setting('role'), true);
end
$$;

create schema if not exists governance authorization tidemark_owner;
set local role tidemark_owner;
comment on schema governance is 'Candidates for governance, found in tables that are read and never written. Pack governance. Source: S2.';
grant usage on schema governance to tidemark_admin, tidemark_executor, tidemark_reader;

-- Tables

create table if not exists governance.turn ();
comment on table governance.turn is 'Has no rows. governance.judge locks it: pages of new candidates share it, marks and old verdicts have it alone.';

create table if not exists governance.ruleset (
    ruleset_version text primary key constraint version_is_a_plain_name check (ruleset_version ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'),
    is_current boolean not null default false,
    stale_after interval not null default '30 days' constraint stale_after_is_a_minute_or_more check (stale_after >= interval '1 minute'),
    input_rule text not null default 'governance.input_rule',
    verdict_rule text not null default 'governance.verdict_rule',
    description text not null default '',
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null default session_user
);
create unique index if not exists ruleset_current on governance.ruleset (is_current) where is_current;
comment on table governance.ruleset is 'By which rules candidates are judged. One is current; candidates are kept for each.';
comment on column governance.ruleset.ruleset_version is 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
comment on column governance.ruleset.is_current is 'True of one: the workers go by it.';
comment on column governance.ruleset.stale_after is 'Time to live of a verdict: it is made anew when it is older. Default 30 days, at least 1 minute.';
comment on column governance.ruleset.input_rule is 'schema.function(governance.candidate) returns text: the input quality. It only reads. Default governance.input_rule.';
comment on column governance.ruleset.verdict_rule is 'schema.function(governance.candidate, text) returns text: the verdict, given the input quality. It only reads. Default governance.verdict_rule.';
comment on column governance.ruleset.description is 'For people.';
comment on column governance.ruleset.created_at is 'When it was added.';
comment on column governance.ruleset.created_by is 'The role that logged in to add it.';
insert into governance.ruleset (ruleset_version, is_current, description)
select '1', true, 'As installed.' where not exists (select from governance.ruleset);

create table if not exists governance.watched (
    source text primary key references tidemark.source,
    kind text not null constraint kind_is_known check (kind in ('birth', 'change')),
    collection_column text not null,
    entity_column text not null,
    address_column text
);
comment on table governance.watched is 'Which columns of a watched table name a candidate. Written by governance.watch.';
comment on column governance.watched.source is 'tidemark.source.source.';
comment on column governance.watched.kind is 'birth: its rows make candidates. change: its rows say that one changed.';
comment on column governance.watched.collection_column is 'Column with the name of the collection.';
comment on column governance.watched.entity_column is 'Column with the code of the entity in it.';
comment on column governance.watched.address_column is 'Column with the canonical address, used where it is not null; null: there is none.';

create table if not exists governance.candidate (
    id bigint generated always as identity (cache 1) unique,
    candidate_key text collate "C" not null generated always as (coalesce(canonical_address, collection_name || ':' || entity_code)) stored,
    ruleset_version text collate "C" not null,
    canonical_address text,
    collection_name text not null,
    entity_code text not null,
    source text not null,
    item_id text not null,
    scan_time timestamptz not null default clock_timestamp(),
    primary key (candidate_key, ruleset_version),
    -- 'a:b' with 'c' and 'a' with 'b:c' would be one candidate.
    constraint collection_has_no_colon_unless_addressed check (canonical_address is not null or strpos(collection_name, ':') = 0)
);
comment on table governance.candidate is 'Candidates, one row per key and ruleset, added by the sweep and never changed. What is thought of them: governance.gated and governance.verdict. Source: S2 39.4.';
comment on column governance.candidate.id is 'Number, in the order of arrival: gov_input_gate goes by it.';
comment on column governance.candidate.candidate_key is 'coalesce(canonical_address, collection_name || '':'' || entity_code).';
comment on column governance.candidate.ruleset_version is 'Ruleset for which it is judged.';
comment on column governance.candidate.canonical_address is 'Canonical address; null: none.';
comment on column governance.candidate.collection_name is 'Collection that the entity is of.';
comment on column governance.candidate.entity_code is 'Code of the entity in it.';
comment on column governance.candidate.source is 'Source in which it was found first.';
comment on column governance.candidate.item_id is 'Id of the row there, as text.';
comment on column governance.candidate.scan_time is 'When it was added.';

create table if not exists governance.gated (
    candidate_id bigint primary key,
    seq bigint not null generated always as identity (cache 1) unique,
    input_quality_state text not null,
    gated_at timestamptz not null default clock_timestamp()
) with (fillfactor = 95);
comment on table governance.gated is 'Input quality of candidates, added by gov_input_gate; gov_candidate_scan goes by it. No row: pending.';
comment on column governance.gated.candidate_id is 'governance.candidate.id.';
comment on column governance.gated.seq is 'Number, in the order of arrival.';
comment on column governance.gated.input_quality_state is 'What the ruleset''s input_rule says.';
comment on column governance.gated.gated_at is 'When it came to be so.';

create table if not exists governance.verdict (
    candidate_id bigint primary key,
    candidate_verdict text not null,
    scanned_at timestamptz not null default clock_timestamp(),
    stale_after timestamptz not null default clock_timestamp()
) with (fillfactor = 95);
create unique index if not exists verdict_stale on governance.verdict (stale_after, candidate_id);
comment on table governance.verdict is 'What gov_candidate_scan proposes. Nothing acts on it here.';
comment on column governance.verdict.candidate_id is 'governance.candidate.id.';
comment on column governance.verdict.candidate_verdict is 'What the ruleset''s verdict_rule says.';
comment on column governance.verdict.scanned_at is 'When it was last made.';
comment on column governance.verdict.stale_after is 'When it is to be made anew: later than now, and moved on each time. gov_candidate_scan reads the rows whose time has come.';

create table if not exists governance.mark (
    id bigint generated always as identity (cache 1) primary key,
    candidate_id bigint not null,
    reason text not null constraint reason_is_known check (reason in ('changed', 'reborn', 'stale', 'unscanned')),
    source text,
    item_id text,
    marked_at timestamptz not null default clock_timestamp()
);
create index if not exists mark_candidate on governance.mark (candidate_id);
comment on table governance.mark is 'Candidates that are dirty, and why: gov_candidate_scan takes them away in the transaction in which it judges anew.';
comment on column governance.mark.id is 'Number, in the order of arrival.';
comment on column governance.mark.candidate_id is 'governance.candidate.id.';
comment on column governance.mark.reason is 'changed (a row of a change log), reborn (another row of a birth table), stale (a verdict past its time, found by the audit), unscanned (no verdict, found by the audit).';
comment on column governance.mark.source is 'Source of the row that says so; of the audit: the inventory.';
comment on column governance.mark.item_id is 'Id of that row, as text.';
comment on column governance.mark.marked_at is 'When.';

create table if not exists governance.snapshot (
    snapshot_ref bigint generated always as identity primary key,
    ruleset_version text,
    every interval not null constraint every_is_a_minute_or_more check (every >= interval '1 minute'),
    page_rows integer not null constraint page_rows_is_1_to_50000 check (page_rows between 1 and 50000),
    started_at timestamptz,
    ended_at timestamptz,
    rows_seen bigint not null default 0,
    missing bigint not null default 0,
    dirty_marked bigint not null default 0,
    states jsonb not null default '{}',
    verdicts jsonb not null default '{}'
);
comment on table governance.snapshot is 'Full audits: what each found in the whole inventory. The latest one may be waiting or under way.';
comment on column governance.snapshot.snapshot_ref is 'Number of the audit.';
comment on column governance.snapshot.ruleset_version is 'Ruleset that was current when it began.';
comment on column governance.snapshot.every is 'Time from its start to that of the next one.';
comment on column governance.snapshot.page_rows is 'Rows of the inventory read at once.';
comment on column governance.snapshot.started_at is 'When it began; null: it waits.';
comment on column governance.snapshot.ended_at is 'When it was through; null: it waits or is under way.';
comment on column governance.snapshot.rows_seen is 'Rows of the inventory seen.';
comment on column governance.snapshot.missing is 'Rows without a candidate: it was added.';
comment on column governance.snapshot.dirty_marked is 'Candidates marked: their verdict was past its time, or there was none.';
comment on column governance.snapshot.states is 'Rows by input quality of their candidate.';
comment on column governance.snapshot.verdicts is 'Rows by verdict of their candidate.';

create table if not exists governance.audit_step (
    id bigint generated always as identity (cache 1) primary key,
    snapshot_ref bigint not null references governance.snapshot,
    source text,
    after_id text,
    due_at timestamptz not null default clock_timestamp()
);
create unique index if not exists audit_step_due on governance.audit_step (due_at, id);
create index if not exists audit_step_snapshot on governance.audit_step (snapshot_ref);
comment on table governance.audit_step is 'The next step of the audit: one row. A step reads a page of the inventory, takes its own row away and adds that of the next, all in one transaction: an audit that is killed goes on where it was.';
comment on column governance.audit_step.id is 'Number.';
comment on column governance.audit_step.snapshot_ref is 'The audit.';
comment on column governance.audit_step.source is 'Watched table of the kind birth that is read; null: the first one.';
comment on column governance.audit_step.after_id is 'Behind this id, as text; null: from the beginning.';
comment on column governance.audit_step.due_at is 'Not before. All steps of an audit have that of the first one.';

create table if not exists governance.tally (
    ruleset_version text not null,
    stage text not null constraint stage_is_known check (stage in ('candidate', 'input', 'verdict', 'mark')),
    state text not null,
    worker text not null,
    items bigint not null,
    primary key (ruleset_version, stage, state, worker)
) with (fillfactor = 50);
comment on table governance.tally is 'How many rows there are, kept in the transactions that add them, so that nobody has to count a large table. One row per worker: they do not wait for each other.';
comment on column governance.tally.ruleset_version is 'The ruleset.';
comment on column governance.tally.stage is 'candidate, input (governance.gated), verdict or mark.';
comment on column governance.tally.state is 'Input quality, verdict, or empty.';
comment on column governance.tally.worker is 'Worker that made the change.';
comment on column governance.tally.items is 'Added less taken away by this worker; of all workers together: what there is.';

-- Rules

create or replace function governance.input_rule(candidate governance.candidate)
returns text
language sql immutable
as $$
    select case when pg_catalog.btrim(candidate.collection_name) = '' or pg_catalog.btrim(candidate.entity_code) = '' then 'incomplete' else 'accepted' end
$$;
comment on function governance.input_rule(governance.candidate) is 'Input quality, where the ruleset names no rule of your own: incomplete (a part of the name is blank) or accepted.';

create or replace function governance.verdict_rule(candidate governance.candidate, input_quality_state text)
returns text
language sql immutable
as $$
    select case input_quality_state when 'accepted' then 'propose' else 'hold' end
$$;
comment on function governance.verdict_rule(governance.candidate, text) is 'Verdict, where the ruleset names no rule of your own: propose (the input was accepted) or hold.';

-- What the workers' functions share

create or replace function governance.current_ruleset()
returns governance.ruleset
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select r from governance.ruleset r where r.is_current
$$;
comment on function governance.current_ruleset() is 'The ruleset by which the workers go.';

create or replace function governance.rule_name(rule text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    name constant text[] := parse_ident(rule);
begin
    if cardinality(name) <> 2 then
        raise exception using errcode = '42883', message = format('the rule %s is not named as schema.function', rule);
    end if;
    return format('%I.%I', name[1], name[2]);
end
$$;
comment on function governance.rule_name(text) is 'The name of a rule, quoted for a statement. Raises 42883 where it is not schema.function.';

create or replace function governance.mapping(row_type regtype)
returns governance.watched
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    found_ governance.watched;
begin
    select w.* into found_
    from pg_type a join pg_type t on t.oid = a.typelem join pg_class c on c.oid = t.typrelid join pg_namespace n on n.oid = c.relnamespace
    join tidemark.source s on s.schema_name = n.nspname and s.table_name = c.relname
    join governance.watched w on w.source = s.source
    where a.oid = row_type order by w.source limit 1;
    if found_ is null then
        raise exception using errcode = '42P01', message = format('governance does not watch the table of %s', row_type),
            hint = 'Attach it: select governance.watch(''schema.table'', ''birth'' or ''change'');';
    end if;
    return found_;
end
$$;
comment on function governance.mapping(regtype) is 'Which columns of a watched table name the candidate; row_type: array of its rows. Raises 42P01 where it is not watched.';

create or replace function governance.as_text(name text)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select format('nullif(format(''%%s'', r.%1$I), case when r.%1$I is null then '''' end)', name) where name is not null
$$;
comment on function governance.as_text(text) is 'A column of the row r as text, for a statement: by its output function, never by a cast, which the owner of its type may have made.';

create or replace function governance.names(mapping governance.watched, id_column text)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select format('coalesce(%1$s, case when strpos(%2$s, '':'') = 0 then %2$s || '':'' || %3$s end) collate "C" as k, '
                  '%1$s as address, %2$s as collection, %3$s as entity, %4$s as item',
                  coalesce(governance.as_text(mapping.address_column), 'null::text'), governance.as_text(mapping.collection_column),
                  governance.as_text(mapping.entity_column), governance.as_text(id_column))
$$;
comment on function governance.names(governance.watched, text) is 'Columns k (the candidate''s key; null: the row cannot be one), address, collection, entity and item of a watched row r, for a statement.';

create or replace function governance.tally_add(worker text, ruleset_version text, stage text, states text[], items bigint[])
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    insert into governance.tally as t (ruleset_version, stage, state, worker, items)
    select tally_add.ruleset_version, tally_add.stage, d.state, tally_add.worker, sum(d.items)
    from unnest(states, tally_add.items) d (state, items)
    group by d.state having sum(d.items) <> 0
    order by d.state
    on conflict (ruleset_version, stage, state, worker) do update set items = t.items + excluded.items
$$;
comment on function governance.tally_add(text, text, text, text[], bigint[]) is 'Adds to the counts of a stage.';

create or replace function governance.tells(type text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select exists (select from tidemark.event_type t where t.domain = 'governance' and t.type = tells.type and t.enabled)
$$;
comment on function governance.tells(text) is 'True: events of this type are emitted. Those that come once a candidate are off as installed.';

create or replace function governance.tell(type text, payloads jsonb)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    select count(*) from tidemark.emit_all((
        select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('domain', 'governance', 'type', tell.type, 'payload', p, 'key', p -> 'candidate_key'))), '[]')
        from jsonb_array_elements(payloads) p
        where governance.tells(tell.type)), false, true)
$$;
comment on function governance.tell(text, jsonb) is 'Emits events of the domain governance, with these payloads, where the type is on. Workers may not emit anything else.';

create or replace function governance.checkpoint(worker text, counts jsonb)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if governance.tells(worker || '.heartbeat') then
        perform governance.tell(worker || '.heartbeat', jsonb_build_array(counts));
    end if;
    return jsonb_build_object('batch_count', 1) || counts;
end
$$;
comment on function governance.checkpoint(text, jsonb) is 'What a worker''s function returns of a page: it stands in last_run_summary. Source: S2 39.6.';

-- Workers. A page is to cost as many looks into an index as it has rows, and not more when there are more candidates. So
-- they are looked up one by one, "lateral … limit 1": what the planner expects of a table that nobody has analyzed yet
-- has cost a minute a page.

create or replace function governance.backfill(rows anyarray)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    mapping constant governance.watched := governance.mapping(pg_typeof(rows));
    version constant text := (governance.current_ruleset()).ruleset_version;
    id_column constant text := (select s.id_column from tidemark.source s where s.source = mapping.source);
    added bigint;
begin
    -- In the order of the key: the pages of the index are written one after another. What is there already costs a look
    -- at the index and no write. A row without a key breaks a rule of the table, and fails for that.
    execute format('
with page as (
    select distinct on (p.k) p.* from (select %s, row_number() over () as n from unnest($1) r) p order by p.k, p.n),
added as (
    insert into governance.candidate (ruleset_version, canonical_address, collection_name, entity_code, source, item_id)
    select $2, p.address, p.collection, p.entity, $3, p.item
    from page p left join lateral (
        select true as there from governance.candidate c where c.candidate_key = p.k and c.ruleset_version = $2 limit 1) c on true
    where c.there is null
    order by p.k
    on conflict (candidate_key, ruleset_version) do nothing
    returning 1)
select count(*) from added', governance.names(mapping, id_column))
    into added using rows, version, mapping.source;
    perform governance.tally_add('gov_backfill_sweep', version, 'candidate', array[''], array[added]);
    return governance.checkpoint('gov_backfill_sweep', jsonb_build_object(
        'rows_seen', cardinality(rows), 'added', added, 'dirty_marked', 0, 'ruleset_version', version));
end
$$;
comment on function governance.backfill(anyarray) is 'Handler of gov_backfill_sweep: adds a candidate for each row of a birth table that has none.';

create or replace function governance.intake(rows anyarray)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    mapping constant governance.watched := governance.mapping(pg_typeof(rows));
    version constant text := (governance.current_ruleset()).ruleset_version;
    id_column constant text := (select s.id_column from tidemark.source s where s.source = mapping.source);
    birth constant boolean := mapping.kind = 'birth';
    unknown bigint;
    marked bigint;
    keys jsonb;
begin
    -- A candidate that is not there yet needs no mark: it will be judged when it is, by what is true then. Nor does the
    -- row that made it. A mark that waits already is no reason to leave one out: it may be under way with what was true before.
    execute format('
with page as (
    select distinct on (p.k) p.* from (select %s, row_number() over () as n from unnest($1) r) p order by p.k, p.n desc),
hit as materialized (
    select p.k, p.item, c.id, $4 and c.source = $3 and c.item_id = p.item as own
    from page p left join lateral (
        select c.id, c.source, c.item_id from governance.candidate c where c.candidate_key = p.k and c.ruleset_version = $2 limit 1) c on true),
marked as (
    insert into governance.mark (candidate_id, reason, source, item_id)
    select h.id, case when $4 then ''reborn'' else ''changed'' end, $3, h.item from hit h where h.id is not null and not h.own order by h.id
    returning 1)
select count(*) filter (where h.id is null), (select count(*) from marked),
       case when governance.tells(''candidate_dirtied'')
            then jsonb_agg(jsonb_build_object(''candidate_key'', h.k, ''ruleset_version'', $2)) filter (where h.id is not null and not h.own) end
from hit h', governance.names(mapping, id_column))
    into unknown, marked, keys using rows, version, mapping.source, birth;
    perform governance.tally_add('gov_handoff_intake', version, 'mark', array[''], array[marked]);
    if keys is not null then
        perform governance.tell('candidate_dirtied', keys);
    end if;
    return governance.checkpoint('gov_handoff_intake', jsonb_build_object(
        'rows_seen', cardinality(rows), 'dirty_marked', marked, 'unknown', unknown, 'ruleset_version', version));
end
$$;
comment on function governance.intake(anyarray) is 'Handler of gov_handoff_intake: marks the candidates that the rows of a watched table are about. unknown: they have none yet.';

create or replace function governance.gate(rows governance.candidate[])
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    rules constant governance.ruleset := governance.current_ruleset();
    states text[];
begin
    execute format('
with gated as (
    insert into governance.gated (candidate_id, input_quality_state)
    select c.id, %s(c)
    from unnest($1) c left join lateral (select true as there from governance.gated g where g.candidate_id = c.id limit 1) g on true
    where c.ruleset_version = $2 and g.there is null
    order by c.id
    on conflict (candidate_id) do nothing
    returning input_quality_state)
select array_agg(g.input_quality_state) from gated g', governance.rule_name(rules.input_rule))
    into states using rows, rules.ruleset_version;
    perform governance.tally_add('gov_input_gate', rules.ruleset_version, 'input', states, array_fill(1::bigint, array[coalesce(cardinality(states), 0)]));
    return governance.checkpoint('gov_input_gate', jsonb_build_object(
        'rows_seen', cardinality(rows), 'gated', coalesce(cardinality(states), 0), 'dirty_marked', 0, 'ruleset_version', rules.ruleset_version));
end
$$;
comment on function governance.gate(governance.candidate[]) is 'Handler of gov_input_gate: writes down the input quality of new candidates.';

create or replace function governance.judge(ids bigint[], alone boolean, out judged bigint, out changed bigint)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '30s'
-- Of its updates, that is.
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    rules governance.ruleset;
    states text[];
    items bigint[];
    news jsonb;
begin
    -- gov_candidate_scan has a cursor for new candidates, one for marks and one for old verdicts. Two of them that
    -- judge the same candidate at once could leave the verdict of the one that looked first. New candidates are in one
    -- shard each and may be judged side by side; the rest waits for them, and they for it. Later statements see what was
    -- committed meanwhile. Not an advisory lock, which any login could hold.
    if alone then
        lock table governance.turn in share row exclusive mode;
    else
        lock table governance.turn in row exclusive mode;
    end if;
    rules := governance.current_ruleset();

    -- The input is looked at again: it may have changed with the candidate, or while gov_input_gate was at it.
    execute format('
with seen as materialized (
    select i.id, %s(c.c) as state, g.input_quality_state as old
    from unnest($1) i (id)
    cross join lateral (select c from governance.candidate c where c.id = i.id and c.ruleset_version = $2 limit 1) c
    left join lateral (select g.input_quality_state from governance.gated g where g.candidate_id = i.id limit 1) g on true),
put as (
    insert into governance.gated (candidate_id, input_quality_state)
    select s.id, s.state from seen s where s.old is null order by s.id on conflict (candidate_id) do nothing
    returning input_quality_state),
moved as (
    update governance.gated g set input_quality_state = s.state, gated_at = clock_timestamp()
    from seen s where s.id = g.candidate_id and s.old <> s.state
    returning g.input_quality_state as state, s.old)
select array_agg(d.state), array_agg(d.n) from (
    select p.input_quality_state as state, 1::bigint as n from put p union all select m.state, 1 from moved m union all select m.old, -1 from moved m) d',
        governance.rule_name(rules.input_rule))
    into states, items using ids, rules.ruleset_version;
    perform governance.tally_add('gov_candidate_scan', rules.ruleset_version, 'input', states, items);

    -- A verdict that stands is written again only when half of its time is over.
    execute format('
with seen as materialized (
    select i.id, (c.c).candidate_key as k, %s(c.c, g.input_quality_state) as verdict, v.candidate_verdict as old, v.stale_after
    from unnest($1) i (id)
    cross join lateral (select c from governance.candidate c where c.id = i.id and c.ruleset_version = $2 limit 1) c
    cross join lateral (select g.input_quality_state from governance.gated g where g.candidate_id = i.id limit 1) g
    left join lateral (select v.candidate_verdict, v.stale_after from governance.verdict v where v.candidate_id = i.id limit 1) v on true),
put as (
    insert into governance.verdict (candidate_id, candidate_verdict, stale_after)
    select s.id, s.verdict, clock_timestamp() + $3 from seen s where s.old is null order by s.id),
moved as (
    update governance.verdict v set candidate_verdict = s.verdict, scanned_at = clock_timestamp(), stale_after = clock_timestamp() + $3
    from seen s
    where s.id = v.candidate_id and (s.old is distinct from s.verdict or s.stale_after < clock_timestamp() + $3 / 2))
select count(distinct s.id), count(d.n) filter (where d.n > 0), array_agg(d.state), array_agg(d.n),
       case when governance.tells(''verdict_proposed'')
            then jsonb_agg(jsonb_build_object(''candidate_key'', s.k, ''verdict'', s.verdict, ''ruleset_version'', $2)) filter (where s.old is distinct from s.verdict and d.n > 0) end
from seen s left join lateral (
    select s.verdict as state, 1::bigint as n union all select s.old, -1 where s.old is not null) d on s.old is distinct from s.verdict',
        governance.rule_name(rules.verdict_rule))
    into judged, changed, states, items, news using ids, rules.ruleset_version, rules.stale_after;
    perform governance.tally_add('gov_candidate_scan', rules.ruleset_version, 'verdict', states, items);
    if news is not null then
        perform governance.tell('verdict_proposed', news);
    end if;
end
$$;
comment on function governance.judge(bigint[], boolean) is 'Makes the input quality and the verdict of candidates of the current ruleset anew. alone: they may not be new. judged: those that are of the current ruleset; changed: those with another verdict than before, or with their first.';

create or replace function governance.scan(rows governance.gated[])
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    done constant record := governance.judge(array(select r.candidate_id from unnest(rows) r), false);
begin
    return governance.checkpoint('gov_candidate_scan', jsonb_build_object(
        'rows_seen', cardinality(rows), 'judged', done.judged, 'changed', done.changed, 'cleared', 0, 'dirty_marked', 0,
        'ruleset_version', (governance.current_ruleset()).ruleset_version));
end
$$;
comment on function governance.scan(governance.gated[]) is 'Handler of gov_candidate_scan: candidates that came through the gate get their first verdict.';

create or replace function governance.scan(rows governance.mark[])
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    done constant record := governance.judge(array(select distinct r.candidate_id from unnest(rows) r), true);
    cleared bigint;
begin
    -- Only these: a mark that came meanwhile tells of something that may not have been seen.
    with gone as (
        delete from governance.mark m where m.id = any (array(select r.id from unnest(rows) r)) returning m.candidate_id),
    counted as (
        select c.ruleset_version, count(*) as n from gone g join governance.candidate c on c.id = g.candidate_id group by c.ruleset_version)
    select coalesce(sum(t.n), 0) into cleared
    from (select c.n, governance.tally_add('gov_candidate_scan', c.ruleset_version, 'mark', array[''], array[-c.n]) from counted c) t;
    return governance.checkpoint('gov_candidate_scan', jsonb_build_object(
        'rows_seen', cardinality(rows), 'judged', done.judged, 'changed', done.changed, 'cleared', cleared, 'dirty_marked', 0,
        'ruleset_version', (governance.current_ruleset()).ruleset_version));
end
$$;
comment on function governance.scan(governance.mark[]) is 'Handler of gov_candidate_scan: candidates that are dirty are judged anew, and are clean in the same transaction.';

create or replace function governance.scan(rows governance.verdict[])
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    done constant record := governance.judge(array(select r.candidate_id from unnest(rows) r), true);
begin
    return governance.checkpoint('gov_candidate_scan', jsonb_build_object(
        'rows_seen', cardinality(rows), 'judged', done.judged, 'changed', done.changed, 'cleared', 0, 'dirty_marked', 0,
        'ruleset_version', (governance.current_ruleset()).ruleset_version));
end
$$;
comment on function governance.scan(governance.verdict[]) is 'Handler of gov_candidate_scan: verdicts whose time is over are made anew.';

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
set row_security = off
as $$
#variable_conflict use_column
declare
    mapping constant governance.watched := (select w from governance.watched w where w.source = step.source);
    s constant tidemark.source := (select x from tidemark.source x where x.source = step.source);
    version constant text := (governance.current_ruleset()).ruleset_version;
    id constant text := format('r.%I', s.id_column) || case when s.id_collate_c then ' collate "C"' else '' end;
    denied text;
begin
    denied := tidemark.source_denied((tidemark.source_shape(s)).relation);
    if denied is not null then
        raise exception using errcode = '42501', message = denied;
    end if;
    -- An hour is time enough for a new candidate to come through the gate and the scan by itself. Rows that cannot be
    -- candidates are dead letters of gov_backfill_sweep, and must not stop the audit.
    execute format('
with page as materialized (
    select %1$s, row_number() over (order by %2$s) as n from (select * from %3$s) r where %4$s and (%5$s) order by %2$s limit $3),
inventory as materialized (
    select p.*, c.id, c.scan_time, g.input_quality_state as state, v.candidate_verdict as verdict, v.stale_after
    from page p
    left join lateral (
        select c.id, c.scan_time from governance.candidate c where c.candidate_key = p.k and c.ruleset_version = $2 limit 1) c on true
    left join lateral (select g.input_quality_state from governance.gated g where g.candidate_id = c.id limit 1) g on true
    left join lateral (select v.candidate_verdict, v.stale_after from governance.verdict v where v.candidate_id = c.id limit 1) v on true),
added as (
    insert into governance.candidate (ruleset_version, canonical_address, collection_name, entity_code, source, item_id)
    select distinct on (i.k) $2, i.address, i.collection, i.entity, $4, i.item from inventory i
    where i.id is null and i.k is not null
    order by i.k, i.n
    on conflict (candidate_key, ruleset_version) do nothing
    returning 1),
marked as (
    insert into governance.mark (candidate_id, reason, source, item_id)
    select distinct on (i.id) i.id, case when i.verdict is null then ''unscanned'' else ''stale'' end, $4, i.item from inventory i
    where (i.verdict is null and i.scan_time < clock_timestamp() - interval ''1 hour'' or i.stale_after < clock_timestamp())
      and not exists (select from governance.mark m where m.candidate_id = i.id)
    order by i.id
    returning 1)
select count(*), (array_agg(i.item order by i.n desc))[1], (select count(*) from added),
       count(*) filter (where i.k is null),
       (select count(*) from marked),
       (select coalesce(jsonb_object_agg(x.s, x.n), ''{}'') from (select coalesce(y.state, ''pending'') as s, count(*) as n from inventory y group by 1) x),
       (select coalesce(jsonb_object_agg(x.s, x.n), ''{}'') from (select coalesce(y.verdict, ''none'') as s, count(*) as n from inventory y group by 1) x)
from inventory i',
        governance.names(mapping, s.id_column), id, tidemark.source_row(s),
        case when step.after_id is null then 'true' else format('%s > $1::%s', id, s.id_type) end, coalesce(s.filter, 'true'))
    into rows_seen, last_id, missing, refused, dirty_marked, states, verdicts
    using step.after_id, version, page_rows, step.source;
    perform governance.tally_add('gov_periodic_full_audit', version, 'candidate', array[''], array[missing]);
    perform governance.tally_add('gov_periodic_full_audit', version, 'mark', array[''], array[dirty_marked]);
end
$$;
comment on function governance.audit_page(governance.audit_step, integer) is 'A page of the inventory: adds candidates that are missing, and marks those whose verdict is past its time or that have none.';

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

        -- Also where the one that the step names is watched no longer.
        next_source := (select min(w.source) from governance.watched w where w.kind = 'birth' and w.source >= coalesce(step.source, ''));
        if next_source is distinct from step.source then
            step.source := next_source;
            step.after_id := null;
        end if;
        if step.source is not null then
            page := governance.audit_page(step, of_.page_rows);
            update governance.snapshot s
            set rows_seen = s.rows_seen + page.rows_seen, missing = s.missing + page.missing, dirty_marked = s.dirty_marked + page.dirty_marked,
                states = tidemark.jsonb_add(s.states, page.states), verdicts = tidemark.jsonb_add(s.verdicts, page.verdicts)
            where s.snapshot_ref = step.snapshot_ref returning s.* into of_;
            counts := tidemark.jsonb_add(counts, jsonb_build_object('rows_seen', page.rows_seen, 'missing', page.missing,
                                                                    'refused', page.refused, 'dirty_marked', page.dirty_marked));
            if page.rows_seen >= of_.page_rows then
                next_source := step.source;
                step.after_id := page.last_id;
            else
                next_source := (select min(w.source) from governance.watched w where w.kind = 'birth' and w.source > step.source);
                step.after_id := null;
            end if;
        end if;
        counts := counts || jsonb_build_object('snapshot_ref', of_.snapshot_ref, 'ruleset_version', of_.ruleset_version);
        if next_source is not null then
            -- Not by the clock: the step is due already, and this worker alone reads and writes steps.
            insert into governance.audit_step (snapshot_ref, source, after_id, due_at)
            values (step.snapshot_ref, next_source, step.after_id, step.due_at);
            continue;
        end if;

        update governance.snapshot s set ended_at = clock_timestamp() where s.snapshot_ref = of_.snapshot_ref;
        perform governance.tell('audit_snapshot', jsonb_build_array(jsonb_build_object(
            'snapshot_ref', of_.snapshot_ref, 'ruleset_version', of_.ruleset_version, 'rows_seen', of_.rows_seen, 'missing', of_.missing,
            'dirty_marked', of_.dirty_marked, 'states', of_.states, 'verdicts', of_.verdicts)));
        perform governance.audit_plan(greatest(of_.started_at + of_.every, clock_timestamp()), of_.every, of_.page_rows);
    end loop;
    return governance.checkpoint('gov_periodic_full_audit', counts);
end
$$;
comment on function governance.audit(governance.audit_step[]) is 'Handler of gov_periodic_full_audit: takes the step that is due and leaves the one after it; behind the last page that of the next audit.';

create or replace function governance.audit_plan(due_at timestamptz, every interval, page_rows integer)
returns governance.snapshot
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    planned governance.snapshot;
begin
    insert into governance.snapshot (every, page_rows) values (audit_plan.every, audit_plan.page_rows) returning * into planned;
    insert into governance.audit_step (snapshot_ref, due_at) values (planned.snapshot_ref, audit_plan.due_at);
    return planned;
end
$$;
comment on function governance.audit_plan(timestamptz, interval, integer) is 'Plans an audit.';

-- What operators call

create or replace function governance.audit_start(every interval default null, page_rows integer default null)
returns governance.snapshot
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    open governance.snapshot;
begin
    select s.* into open from governance.snapshot s where s.ended_at is null order by s.snapshot_ref limit 1 for update;
    if not found then
        return governance.audit_plan(clock_timestamp(), coalesce(audit_start.every, '7 days'), coalesce(audit_start.page_rows, 5000));
    end if;
    update governance.snapshot s
    set every = coalesce(audit_start.every, s.every), page_rows = coalesce(audit_start.page_rows, s.page_rows)
    where s.snapshot_ref = open.snapshot_ref returning s.* into open;
    update governance.audit_step a set due_at = clock_timestamp() where a.snapshot_ref = open.snapshot_ref and open.started_at is null;
    return open;
end
$$;
comment on function governance.audit_start(interval, integer) is 'Makes the next full audit due now; one that is under way goes on. every: time between the starts of two audits (default: as before, at first 7 days). page_rows: rows of the inventory per step (default: as before, at first 5000). Returns the audit.';

create or replace function governance.ruleset_set(ruleset_version text, changes jsonb default '{}', reason text default null)
returns setof governance.ruleset
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    row_ governance.ruleset;
    wrong text;
begin
    perform set_config('tidemark.reason', coalesce(ruleset_set.reason, ''), true);
    perform tidemark.changes_check('ruleset', ruleset_set.changes, 'governance.ruleset', array['ruleset_version', 'created_at', 'created_by']);
    insert into governance.ruleset (ruleset_version) values (ruleset_set.ruleset_version) on conflict do nothing;
    row_ := (select jsonb_populate_record(r, changes) from governance.ruleset r where r.ruleset_version = ruleset_set.ruleset_version for update);
    if not row_.is_current and exists (select from governance.ruleset r where r.ruleset_version = ruleset_set.ruleset_version and r.is_current) then
        raise exception using errcode = 'TM005', message = format('ruleset %s is current', ruleset_set.ruleset_version),
            hint = 'Make another one current instead.';
    end if;
    select f.signature into wrong from (values
        (governance.rule_name(row_.input_rule) || '(governance.candidate)'),
        (governance.rule_name(row_.verdict_rule) || '(governance.candidate, text)')) f (signature)
    where not exists (select from pg_proc p where p.oid = to_regprocedure(f.signature) and p.prorettype = 'text'::regtype);
    if found then
        raise exception using errcode = 'TM005', message = format('there is no function %s that returns text', wrong),
            hint = 'A rule is named as schema.function.';
    end if;
    if row_.is_current then
        update governance.ruleset r set is_current = false where r.is_current and r.ruleset_version <> ruleset_set.ruleset_version;
    end if;
    return query
    update governance.ruleset r
    set is_current = row_.is_current, stale_after = row_.stale_after, input_rule = row_.input_rule, verdict_rule = row_.verdict_rule,
        description = row_.description
    where r.ruleset_version = ruleset_set.ruleset_version returning r.*;
end
$$;
comment on function governance.ruleset_set(text, jsonb, text) is 'Adds a ruleset or changes the named columns of one. {"is_current": true} makes the workers go by it; the next full audit adds the candidates for it. Returns the row. Raises TM005 for an unknown column, and for a rule that is not there.';

create or replace function governance.watch(
    relation regclass,
    kind text,
    columns jsonb default '{}',
    source jsonb default '{}',
    reason text default null)
returns setof tidemark.source
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    named jsonb := jsonb_build_object('collection', 'collection_name', 'entity', 'entity_code') || watch.columns;
    name text;
    source_ text;
    definition jsonb;
    missing text;
    worker_ text;
begin
    if watch.kind is null or watch.kind not in ('birth', 'change') then
        raise exception using errcode = 'TM005', message = format('kind is %s, and must be birth or change', coalesce(watch.kind, 'null')),
            hint = 'birth: its rows make candidates. change: its rows say that one changed.';
    end if;
    select k into missing from jsonb_object_keys(watch.columns) k where k not in ('collection', 'entity', 'address') limit 1;
    if found then
        raise exception using errcode = 'TM005', message = format('there is no part "%s" of a candidate''s name', missing),
            hint = 'Parts: collection, entity, address.';
    end if;
    select format('%I.%I', n.nspname, c.relname), coalesce(watch.source ->> 'source', case when c.oid = 'tidemark.outbox'::regclass then 'tidemark_outbox' else c.relname end) into name, source_
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = watch.relation;
    -- An address is optional: where none is named, the column of that name is used if there is one.
    if not named ? 'address' and exists (
        select from pg_attribute a where a.attrelid = watch.relation and a.attname = 'canonical_address' and not a.attisdropped) then
        named := named || '{"address": "canonical_address"}';
    end if;
    select string_agg(w.value, ', ' order by w.key) into missing from jsonb_each_text(named) w
    where w.value is not null
      and not exists (select from pg_attribute a where a.attrelid = watch.relation and a.attname = w.value and a.attnum > 0 and not a.attisdropped);
    if missing is not null or named ->> 'collection' is null or named ->> 'entity' is null then
        raise exception using errcode = 'TM005', message = format('table %s has no column %s', name, coalesce(missing, 'named for collection or entity')),
            hint = 'Name them: columns => ''{"collection": "…", "entity": "…", "address": "…"}''.';
    end if;

    -- Events of our own are no changes of a candidate.
    definition := jsonb_build_object('table', name, 'id_column', 'id', 'safety', 'sequence',
        'key_columns', jsonb_build_array(named ->> 'collection', named ->> 'entity'),
        'group_key', jsonb_build_array(named ->> 'collection', named ->> 'entity'))
        || case when watch.relation = 'tidemark.outbox'::regclass then '{"id_column": "seq", "filter": "domain <> ''governance''"}' else '{}' end::jsonb
        || (watch.source - 'source');
    return query select s.* from tidemark.source_set(source_, definition, watch.reason) s;

    perform set_config('tidemark.reason', coalesce(watch.reason, ''), true);
    insert into governance.watched (source, kind, collection_column, entity_column, address_column)
    values (source_, watch.kind, named ->> 'collection', named ->> 'entity', named ->> 'address')
    on conflict (source) do update set kind = excluded.kind, collection_column = excluded.collection_column,
        entity_column = excluded.entity_column, address_column = excluded.address_column;
    foreach worker_ in array case watch.kind when 'birth' then array['gov_backfill_sweep', 'gov_handoff_intake'] else array['gov_handoff_intake'] end loop
        if not exists (select from tidemark.worker_cursor c where c.worker = worker_ and c.source = source_) then
            perform tidemark.worker_source_add(worker_, source_, watch.reason);
        end if;
    end loop;
    if watch.kind = 'birth' and not exists (select from governance.snapshot) then
        perform governance.audit_plan(clock_timestamp() + interval '7 days', '7 days', 5000);
    end if;
end
$$;
comment on function governance.watch(regclass, text, jsonb, jsonb, text) is
'Makes the workers read a table, which is never written: grant select on it to the role that runs them. kind: birth (its rows make candidates) or change (its rows say that one changed). columns: which name the candidate, {"collection": "collection_name", "entity": "entity_code", "address": "canonical_address"} where it does not say otherwise; address may be null. source: name ("source", default: that of the table) and columns of tidemark.source; default id_column id, safety sequence. Returns the source. Raises TM005 naming what does not fit, and what tidemark.source_set raises.';

-- What people look at. None of it costs more when there are more candidates.

create or replace view governance.summary as
select r.ruleset_version, r.is_current,
       coalesce(t.candidates, 0) as candidates,
       coalesce(t.candidates - t.gated, 0) as pending,
       coalesce(t.states, '{}') as states,
       coalesce(t.verdicts, '{}') as verdicts,
       coalesce(t.dirty, 0) as dirty,
       a.snapshot_ref, a.ended_at as audited_at
from governance.ruleset r
left join lateral (
    select sum(x.n) filter (where x.stage = 'candidate')::bigint as candidates,
           coalesce(sum(x.n) filter (where x.stage = 'input'), 0)::bigint as gated,
           sum(x.n) filter (where x.stage = 'mark')::bigint as dirty,
           jsonb_object_agg(x.state, x.n) filter (where x.stage = 'input' and x.n <> 0) as states,
           jsonb_object_agg(x.state, x.n) filter (where x.stage = 'verdict' and x.n <> 0) as verdicts
    from (select y.stage, y.state, sum(y.items)::bigint as n from governance.tally y
          where y.ruleset_version = r.ruleset_version group by y.stage, y.state) x) t on true
left join lateral (
    select s.snapshot_ref, s.ended_at from governance.snapshot s
    where s.ruleset_version = r.ruleset_version and s.ended_at is not null order by s.snapshot_ref desc limit 1) a on true;
comment on view governance.summary is 'Candidates per ruleset, by input quality and verdict; pending: not through the gate; dirty: marks that wait; the latest full audit. From counts: it reads no candidate.';

create or replace view governance.progress as
select c.worker, c.source, c.shard, c.phase, c.watermark_ts, c.watermark_id,
       c.events_seen as rows_seen,
       (c.last_run_summary -> 'result' ->> 'batch_count')::bigint as batch_count,
       (c.last_run_summary -> 'result' ->> 'dirty_marked')::bigint as dirty_marked,
       c.dead_lettered as dlq,
       (c.last_run_summary -> 'result' ->> 'snapshot_ref')::bigint as snapshot_ref,
       c.last_run_summary -> 'result' ->> 'ruleset_version' as ruleset_version,
       (c.last_run_summary ->> 'started_at')::timestamptz as started_at,
       (c.last_run_summary ->> 'ended_at')::timestamptz as ended_at,
       c.paused_at
from tidemark.worker_cursor c
where c.worker in ('gov_backfill_sweep', 'gov_handoff_intake', 'gov_input_gate', 'gov_candidate_scan', 'gov_periodic_full_audit');
comment on view governance.progress is 'How far each worker has come in each source, and its latest page. rows_seen and dlq: since the beginning; batch_count, dirty_marked: of that page. Source: S2 39.6.';

create or replace function governance.find(candidate_key text, ruleset_version text default null)
returns table (
    candidate_key text, ruleset_version text, collection_name text, entity_code text, canonical_address text,
    input_quality_state text, candidate_verdict text, dirty boolean, scanned_at timestamptz, stale_after timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select c.candidate_key, c.ruleset_version, c.collection_name, c.entity_code, c.canonical_address,
           coalesce(g.input_quality_state, 'pending'), v.candidate_verdict,
           v.candidate_id is null or exists (select from governance.mark m where m.candidate_id = c.id), v.scanned_at, v.stale_after
    from governance.candidate c
    left join governance.gated g on g.candidate_id = c.id
    left join governance.verdict v on v.candidate_id = c.id
    where c.candidate_key = find.candidate_key
      and c.ruleset_version = coalesce(find.ruleset_version, (governance.current_ruleset()).ruleset_version)
$$;
comment on function governance.find(text, text) is 'The state of one candidate, by its key; ruleset_version: null (default): the current one. dirty: it is to be judged, for the first time or anew.';

-- Rights

create or replace trigger ruleset_audit
after insert or update or delete on governance.ruleset
for each row execute function tidemark.audit_change('ruleset_version');
comment on trigger ruleset_audit on governance.ruleset is 'Every change goes to tidemark.audit.';
create or replace trigger watched_audit
after insert or update or delete on governance.watched
for each row execute function tidemark.audit_change('source');
comment on trigger watched_audit on governance.watched is 'Every change goes to tidemark.audit.';

revoke all on all functions in schema governance from public;
grant execute on all functions in schema governance to tidemark_executor;
revoke execute on function governance.audit_start(interval, integer), governance.ruleset_set(text, jsonb, text),
    governance.watch(regclass, text, jsonb, jsonb, text) from tidemark_executor;
grant execute on function governance.audit_start(interval, integer), governance.ruleset_set(text, jsonb, text),
    governance.watch(regclass, text, jsonb, jsonb, text) to tidemark_admin;
grant execute on function governance.find(text, text) to tidemark_reader;
grant update on governance.turn to tidemark_executor;
grant select on governance.ruleset, governance.watched to tidemark_executor, tidemark_reader;
grant select, insert, update on governance.ruleset, governance.watched to tidemark_admin;
grant select, insert on governance.candidate to tidemark_executor;
grant select, insert, update on governance.gated, governance.verdict, governance.tally, governance.snapshot to tidemark_executor;
grant select, insert, delete on governance.mark, governance.audit_step to tidemark_executor;
grant update on governance.audit_step to tidemark_admin;
grant select on governance.summary, governance.progress, governance.snapshot to tidemark_reader, tidemark_executor;

select set_config('role', current_setting('governance.installer'), true);

-- Vocabulary

select tidemark.domain_set('governance', '{"metadata_only": true, "restricted": true, "description": "Candidates of governance, and the workers that look after them."}',
                           'pack governance')
where not exists (select from tidemark.domain d where d.domain = 'governance');

-- Events that come once a candidate, or once a page, are off at first: a million rows would be a million events.
select tidemark.type_set('governance', v.type, jsonb_build_object('version', 1, 'description', v.description, 'schema', v.schema)
           || case when e.type is null and not v.enabled then '{"enabled": false}'::jsonb else '{}' end, 'pack governance')
from (
    select w.worker || '.heartbeat', 'Worker ' || w.worker || ' has done a page.', false, jsonb '{
        "type": "object", "required": ["rows_seen"],
        "properties": {"rows_seen": {"type": "integer", "minimum": 0}, "dirty_marked": {"type": "integer", "minimum": 0},
                       "ruleset_version": {"type": "string"}, "snapshot_ref": {"type": "integer"}}}'
    from (values ('gov_backfill_sweep'), ('gov_handoff_intake'), ('gov_input_gate'), ('gov_candidate_scan'), ('gov_periodic_full_audit')) w (worker)
    union all
    select f.type, f.description, true, jsonb '{
        "type": "object", "required": ["subject"],
        "properties": {"subject": {"type": "string", "minLength": 1}, "severity": {"type": "string"}, "finding_id": {"type": "integer"}}}'
    from (values
        ('cursor_lag', 'A worker''s cursor is far behind.'),
        ('cursor_dlq', 'A row was dead-lettered.'),
        ('cursor_silent_gap', 'A worker has given no sign of life for too long.'),
        ('cursor_lease_conflict', 'Two instances want the same cursor for too long.'),
        ('cursor_watermark_regression', 'A watermark was to go back.'),
        ('dlq_overflow', 'A worker has too many dead letters.'),
        ('group_invalidation_storm', 'One page dirtied too large a share of all groups.'),
        ('handoff_lag', 'gov_handoff_intake is far behind.'),
        ('handoff_dlq', 'A row was dead-lettered by gov_handoff_intake.'),
        ('handoff_silent_gap', 'gov_handoff_intake has given no sign of life for too long.'),
        ('candidate_scan_lag', 'gov_candidate_scan is far behind.')) f (type, description)
    union all values
    ('candidate_dirtied', 'A candidate is to be judged anew.', false, jsonb '{
        "type": "object", "required": ["candidate_key", "ruleset_version"],
        "properties": {"candidate_key": {"type": "string", "minLength": 1}, "ruleset_version": {"type": "string"}}}'),
    ('verdict_proposed', 'A candidate has its first verdict, or another one than before.', false, '{
        "type": "object", "required": ["candidate_key", "ruleset_version", "verdict"],
        "properties": {"candidate_key": {"type": "string", "minLength": 1}, "ruleset_version": {"type": "string"}, "verdict": {"type": "string"}}}'),
    ('audit_snapshot', 'A full audit is through.', true, '{
        "type": "object", "required": ["snapshot_ref", "rows_seen"],
        "properties": {"snapshot_ref": {"type": "integer"}, "ruleset_version": {"type": "string"}, "rows_seen": {"type": "integer"},
                       "missing": {"type": "integer"}, "dirty_marked": {"type": "integer"}, "states": {"type": "object"},
                       "verdicts": {"type": "object"}}}')
) v (type, description, enabled, schema)
left join tidemark.event_type e on e.domain = 'governance' and e.type = v.type;

-- The pack's own tables as sources, and the workers. A verdict and a step of the audit are read when their time has
-- come: a timestamp that lies ahead is what orders them.

select tidemark.source_set(v.source, v.definition, 'pack governance')
from (values
    ('governance_candidate', jsonb '{"table": "governance.candidate", "id_column": "id", "safety": "sequence",
        "key_columns": ["id"], "description": "Candidates, in the order of arrival."}'),
    ('governance_gated', '{"table": "governance.gated", "id_column": "seq", "safety": "sequence",
        "key_columns": ["candidate_id"], "description": "Candidates that came through the gate."}'),
    ('governance_mark', '{"table": "governance.mark", "id_column": "id", "safety": "sequence",
        "key_columns": ["candidate_id"], "description": "Candidates that are dirty."}'),
    ('governance_verdict', '{"table": "governance.verdict", "id_column": "candidate_id", "timestamp_column": "stale_after",
        "safety": "declared", "sweep_window": "1 hour", "key_columns": ["candidate_id"], "description": "Verdicts, when their time is over."}'),
    ('governance_audit_step', '{"table": "governance.audit_step", "id_column": "id", "timestamp_column": "due_at",
        "safety": "declared", "sweep_window": "1 hour", "description": "Steps of the full audit, when they are due."}')
) v (source, definition)
where not exists (select from tidemark.source s where s.source = v.source);

select tidemark.worker_set(v.worker, v.definition, 'pack governance')
from (values
    ('gov_backfill_sweep', jsonb '{"source": "table", "handler": "sql", "handler_ref": "governance.backfill",
        "description": "Adds a candidate for each row of the birth tables."}'),
    ('gov_handoff_intake', '{"source": "table", "handler": "sql", "handler_ref": "governance.intake",
        "description": "Marks candidates that births, change logs and event logs tell of."}'),
    ('gov_input_gate', '{"source": "table", "handler": "sql", "handler_ref": "governance.gate",
        "description": "Judges the input quality of new candidates."}'),
    ('gov_candidate_scan', '{"source": "table", "handler": "sql", "handler_ref": "governance.scan",
        "description": "Proposes a verdict for new, dirty and stale candidates."}'),
    ('gov_periodic_full_audit', '{"source": "table", "handler": "sql", "handler_ref": "governance.audit", "page_size": 1,
        "description": "Goes through the whole inventory, page by page, and captures a snapshot."}')
) v (worker, definition)
where not exists (select from tidemark.worker w where w.worker = v.worker);

select tidemark.worker_source_add(v.worker, v.source, 'pack governance')
from (values
    ('gov_input_gate', 'governance_candidate'),
    ('gov_candidate_scan', 'governance_gated'),
    ('gov_candidate_scan', 'governance_mark'),
    ('gov_candidate_scan', 'governance_verdict'),
    ('gov_periodic_full_audit', 'governance_audit_step')
) v (worker, source)
where not exists (select from tidemark.worker_cursor c where c.worker = v.worker and c.source = v.source);
