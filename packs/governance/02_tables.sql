-- Tables. Their owner is tidemark_owner.

create table if not exists governance.turn ();
comment on table governance.turn is
    'Has no rows. governance.judge locks it: pages of new candidates share the lock, marks and old verdicts take it '
    'alone.';

create table if not exists governance.ruleset (
    ruleset_version text primary key constraint version_is_a_plain_name check
        (ruleset_version ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'),
    is_current boolean not null default false,
    stale_after interval not null default '30 days' constraint stale_after_is_a_minute_or_more check
        (stale_after >= interval '1 minute'),
    input_rule text not null default 'governance.input_rule',
    verdict_rule text not null default 'governance.verdict_rule',
    description text not null default '',
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null default session_user
);
create unique index if not exists ruleset_current on governance.ruleset (is_current) where is_current;
comment on table governance.ruleset is
    'The rules by which candidates are judged. One ruleset is current; candidates are kept for each.';
comment on column governance.ruleset.ruleset_version is 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
comment on column governance.ruleset.is_current is 'True for exactly one ruleset: the workers use it.';
comment on column governance.ruleset.stale_after is
    'How long a verdict holds before it is made again. Default 30 days, at least 1 minute.';
comment on column governance.ruleset.input_rule is
    'schema.function(governance.candidate) returns text: the input quality. It only reads. Default '
    'governance.input_rule.';
comment on column governance.ruleset.verdict_rule is
    'schema.function(governance.candidate, text) returns text: the verdict, given the input quality. It only reads. '
    'Default governance.verdict_rule.';
comment on column governance.ruleset.description is 'What the ruleset is for, in words for operators.';
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
comment on table governance.watched is
    'Which columns of a watched table name a candidate. Written by governance.watch.';
comment on column governance.watched.source is 'tidemark.source.source.';
comment on column governance.watched.kind is 'birth: its rows make candidates. change: its rows say that one changed.';
comment on column governance.watched.collection_column is 'Column with the name of the collection.';
comment on column governance.watched.entity_column is 'Column with the code of the entity in it.';
comment on column governance.watched.address_column is
    'Column with the canonical address, used where it is not null; null: the table has none.';

create table if not exists governance.candidate (
    id bigint generated always as identity (cache 1) unique,
    candidate_key text collate "C" not null generated always as
        (coalesce(canonical_address, collection_name || ':' || entity_code)) stored,
    ruleset_version text collate "C" not null,
    canonical_address text,
    collection_name text not null,
    entity_code text not null,
    source text not null,
    item_id text not null,
    scan_time timestamptz not null default clock_timestamp(),
    primary key (candidate_key, ruleset_version),
    -- Otherwise 'a:b' with 'c' and 'a' with 'b:c' would be the same candidate.
    constraint collection_has_no_colon_unless_addressed check
        (canonical_address is not null or strpos(collection_name, ':') = 0)
);
comment on table governance.candidate is
    'Candidates, one row per key and ruleset. The sweep adds them; they never change. Their input quality and verdict '
    'are in governance.gated and governance.verdict. Source: S2 39.4.';
comment on column governance.candidate.id is 'Number, in the order of arrival: gov_input_gate reads in this order.';
comment on column governance.candidate.candidate_key is
    'coalesce(canonical_address, collection_name || '':'' || entity_code).';
comment on column governance.candidate.ruleset_version is 'Ruleset for which it is judged.';
comment on column governance.candidate.canonical_address is 'Canonical address; null: none.';
comment on column governance.candidate.collection_name is 'Collection of the entity.';
comment on column governance.candidate.entity_code is 'Code of the entity in its collection.';
comment on column governance.candidate.source is 'Source in which it was first found.';
comment on column governance.candidate.item_id is 'Id of its row there, as text.';
comment on column governance.candidate.scan_time is 'When it was added.';

create table if not exists governance.gated (
    candidate_id bigint primary key,
    seq bigint not null generated always as identity (cache 1) unique,
    input_quality_state text not null,
    gated_at timestamptz not null default clock_timestamp()
) with (fillfactor = 95);
comment on table governance.gated is
    'Input quality of candidates. gov_input_gate adds the rows, and gov_candidate_scan reads them. No row: pending.';
comment on column governance.gated.candidate_id is 'governance.candidate.id.';
comment on column governance.gated.seq is 'Number, in the order of arrival.';
comment on column governance.gated.input_quality_state is 'The result of the ruleset''s input_rule.';
comment on column governance.gated.gated_at is 'When the input quality took this value.';

create table if not exists governance.verdict (
    candidate_id bigint primary key,
    candidate_verdict text not null,
    scanned_at timestamptz not null default clock_timestamp(),
    stale_after timestamptz not null default clock_timestamp()
) with (fillfactor = 95);
create unique index if not exists verdict_stale on governance.verdict (stale_after, candidate_id);
comment on table governance.verdict is 'The proposals of gov_candidate_scan. The pack never acts on them.';
comment on column governance.verdict.candidate_id is 'governance.candidate.id.';
comment on column governance.verdict.candidate_verdict is 'The result of the ruleset''s verdict_rule.';
comment on column governance.verdict.scanned_at is 'When the verdict was last made.';
comment on column governance.verdict.stale_after is
    'When the verdict must be made again: in the future, and moved on each time. gov_candidate_scan reads the rows '
    'whose time has come.';

create table if not exists governance.mark (
    id bigint generated always as identity (cache 1) primary key,
    candidate_id bigint not null,
    reason text not null constraint reason_is_known check (reason in ('changed', 'reborn', 'stale', 'unscanned')),
    source text,
    item_id text,
    marked_at timestamptz not null default clock_timestamp()
);
create index if not exists mark_candidate on governance.mark (candidate_id);
comment on table governance.mark is
    'Dirty candidates, each with the reason. gov_candidate_scan removes a mark in the transaction that judges the '
    'candidate again.';
comment on column governance.mark.id is 'Number, in the order of arrival.';
comment on column governance.mark.candidate_id is 'governance.candidate.id.';
comment on column governance.mark.reason is
    'changed (a row of a change log), reborn (another row of a birth table), stale (an expired verdict, found by the '
    'audit), unscanned (no verdict, found by the audit).';
comment on column governance.mark.source is 'Source of the row that caused the mark; for the audit: the inventory.';
comment on column governance.mark.item_id is 'Id of that row, as text.';
comment on column governance.mark.marked_at is 'When the candidate was marked.';

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
comment on table governance.snapshot is
    'Full audits, each with its results for the whole inventory. The latest one may be waiting or under way.';
comment on column governance.snapshot.snapshot_ref is 'Number of the audit.';
comment on column governance.snapshot.ruleset_version is 'Ruleset that was current when it began.';
comment on column governance.snapshot.every is 'Time from the start of the audit to the start of the next.';
comment on column governance.snapshot.page_rows is 'Rows of the inventory that the audit reads at once.';
comment on column governance.snapshot.started_at is 'When it began; null: it waits.';
comment on column governance.snapshot.ended_at is 'When it ended; null: it waits or is under way.';
comment on column governance.snapshot.rows_seen is 'Rows of the inventory seen.';
comment on column governance.snapshot.missing is 'Rows without a candidate, which the audit then added.';
comment on column governance.snapshot.dirty_marked is
    'Candidates that the audit marked, since their verdict was expired or missing.';
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
do $$
begin
    -- One audit is open at a time. An installation from before the index may have two chains: the one under way stays.
    if to_regclass('governance.snapshot_open') is null then
        lock table governance.audit_step, governance.snapshot in share row exclusive mode;
        delete from governance.audit_step a where a.snapshot_ref in (
            select s.snapshot_ref from governance.snapshot s where s.ended_at is null
            order by s.started_at is null, s.snapshot_ref offset 1);
        delete from governance.snapshot d where d.snapshot_ref in (
            select s.snapshot_ref from governance.snapshot s where s.ended_at is null
            order by s.started_at is null, s.snapshot_ref offset 1);
        create unique index snapshot_open on governance.snapshot ((true)) where ended_at is null;
    end if;
end
$$;
comment on table governance.audit_step is
    'The next step of the audit: one row. A step reads a page of the inventory, deletes its own row and inserts that '
    'of the next step, in one transaction. So a killed audit resumes where it was.';
comment on column governance.audit_step.id is 'Number of the step.';
comment on column governance.audit_step.snapshot_ref is 'governance.snapshot.snapshot_ref.';
comment on column governance.audit_step.source is
    'Watched table of the kind birth that the step reads; null: the first one.';
comment on column governance.audit_step.after_id is
    'The step reads rows after this id, as text; null: from the beginning.';
comment on column governance.audit_step.due_at is
    'The step is not read before this time. All steps of an audit have the time of the first one.';

create table if not exists governance.tally (
    ruleset_version text not null,
    stage text not null constraint stage_is_known check (stage in ('candidate', 'input', 'verdict', 'mark')),
    state text not null,
    worker text not null,
    items bigint not null,
    primary key (ruleset_version, stage, state, worker)
) with (fillfactor = 50);
comment on table governance.tally is
    'Row counts, updated in the transactions that add the rows, so that no query has to count a large table. Each '
    'worker has rows of its own, so that workers do not wait for each other.';
comment on column governance.tally.ruleset_version is 'The ruleset.';
comment on column governance.tally.stage is 'candidate, input (governance.gated), verdict or mark.';
comment on column governance.tally.state is 'Input quality, verdict, or empty.';
comment on column governance.tally.worker is 'Worker that made the change.';
comment on column governance.tally.items is
    'Rows added minus rows removed by this worker; the sum over all workers is the total.';
