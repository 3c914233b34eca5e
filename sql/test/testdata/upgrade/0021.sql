-- An installation of the build with 21 migrations, in use. Made by scripts/upgrade-fixture.sh.
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA tidemark;
ALTER SCHEMA tidemark OWNER TO tidemark_owner;
COMMENT ON SCHEMA tidemark IS 'Tidemark: a dependable event and command backbone. The functions are the interface.';
CREATE TYPE tidemark.event_group AS (
	domain text,
	type text,
	stream text,
	matched integer[],
	events integer,
	seqs int8multirange
);
ALTER TYPE tidemark.event_group OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.event_group IS 'Events of a batch that every route treats alike: same domain, type, stream, and filters passed (ids of routes with a filter). One decision serves them all.';
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE tidemark.outbound_route (
    id integer NOT NULL,
    route_code text NOT NULL,
    worker text DEFAULT 'default'::text NOT NULL,
    domain text NOT NULL,
    type text DEFAULT '*'::text NOT NULL,
    stream text,
    key_filter text,
    payload_filter jsonb,
    target_kind text NOT NULL,
    target_ref text NOT NULL,
    exclusive boolean DEFAULT false NOT NULL,
    enabled boolean DEFAULT false NOT NULL,
    dry_run boolean DEFAULT true NOT NULL,
    fail_closed boolean DEFAULT true NOT NULL,
    ordering text DEFAULT 'none'::text NOT NULL,
    retry_policy jsonb,
    timeout interval DEFAULT '00:00:10'::interval NOT NULL,
    options jsonb DEFAULT '{}'::jsonb NOT NULL,
    concurrency integer DEFAULT 4 NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    CONSTRAINT concurrency_is_1_to_1000 CHECK (((concurrency >= 1) AND (concurrency <= 1000))),
    CONSTRAINT domain_is_exact_or_star CHECK (((domain = '*'::text) OR (domain !~ '[*]'::text))),
    CONSTRAINT key_filter_is_exact_or_prefix CHECK (((key_filter ~ '^[^*]*[*]?$'::text) AND (key_filter <> ''::text))),
    CONSTRAINT options_is_an_object CHECK ((jsonb_typeof(options) = 'object'::text)),
    CONSTRAINT ordering_is_known CHECK ((ordering = ANY (ARRAY['none'::text, 'key'::text]))),
    CONSTRAINT payload_filter_is_an_object CHECK ((jsonb_typeof(payload_filter) = 'object'::text)),
    CONSTRAINT route_code_is_a_plain_name CHECK ((route_code ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'::text)),
    CONSTRAINT timeout_is_positive CHECK ((timeout > '00:00:00'::interval)),
    CONSTRAINT type_is_exact_prefix_or_star CHECK ((type ~ '^([*]|[^*]+|[^*]+[.][*])$'::text))
);
ALTER TABLE tidemark.outbound_route OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.outbound_route IS 'Where committed events go. A new route is off and in dry run. Source: S1 iu_outbound_route.';
COMMENT ON COLUMN tidemark.outbound_route.id IS 'Short number used in evidence.';
COMMENT ON COLUMN tidemark.outbound_route.route_code IS 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
COMMENT ON COLUMN tidemark.outbound_route.worker IS 'Worker that serves the route. Default: default.';
COMMENT ON COLUMN tidemark.outbound_route.domain IS 'Domain of the events, or "*" for all.';
COMMENT ON COLUMN tidemark.outbound_route.type IS 'Type of the events: exact, prefix ("order.*"), or "*" (default).';
COMMENT ON COLUMN tidemark.outbound_route.stream IS 'Stream of the events; null (default): any.';
COMMENT ON COLUMN tidemark.outbound_route.key_filter IS 'Only events whose key is this, or begins with what stands before a final "*"; null (default): any, and none.';
COMMENT ON COLUMN tidemark.outbound_route.payload_filter IS 'Only events whose payload contains this (jsonb @>); null (default): any.';
COMMENT ON COLUMN tidemark.outbound_route.target_kind IS 'sql, notify, river (served inside the database), webhook, kafka, nats, stdout (by the daemon) or go (by a Go program). Another kind fails and is dead-lettered.';
COMMENT ON COLUMN tidemark.outbound_route.target_ref IS 'sql: schema.function taking the event as jsonb. notify: channel. webhook: URL. kafka: topic. nats: subject. river: job kind. go: pattern of the handler.';
COMMENT ON COLUMN tidemark.outbound_route.exclusive IS 'True: no other enabled route may claim the same target for the same event; both fail as ambiguous. Default false.';
COMMENT ON COLUMN tidemark.outbound_route.enabled IS 'False (default): events are recorded as disabled, nothing is delivered. One update, obeyed within a second.';
COMMENT ON COLUMN tidemark.outbound_route.dry_run IS 'True (default): the decision is recorded, nothing is delivered.';
COMMENT ON COLUMN tidemark.outbound_route.fail_closed IS 'True (default): an event that the route cannot decide fails and is kept as a dead letter. False: it is skipped, with the reason.';
COMMENT ON COLUMN tidemark.outbound_route.ordering IS 'none (default), or key: an event waits behind an earlier one of its key that has not been delivered.';
COMMENT ON COLUMN tidemark.outbound_route.retry_policy IS 'Object with any of max_attempts (1 to 100, default 10), base_seconds (default 1), max_seconds (default 3600), jitter (0 to 1, default 0.2); null: the defaults.';
COMMENT ON COLUMN tidemark.outbound_route.timeout IS 'Longest time for one delivery, and inside the database for one wait for a lock. Default 10 seconds.';
COMMENT ON COLUMN tidemark.outbound_route.options IS 'What a kind of target takes beside target_ref, e.g. {"secret": "NAME", "format": "json", "rate_per_second": 50}. Names of secrets, never a secret. The daemon refuses an option that the kind has not: the route waits, with a finding. Default {}.';
COMMENT ON COLUMN tidemark.outbound_route.concurrency IS 'Deliveries under way at once. Default 4.';
COMMENT ON COLUMN tidemark.outbound_route.description IS 'For people.';
CREATE TYPE tidemark.batch AS (
	watermark bigint,
	events integer,
	late integer,
	rewound boolean,
	holes int8multirange,
	fenced int8multirange,
	fence text[],
	groups tidemark.event_group[],
	seqs int8multirange,
	routes tidemark.outbound_route[],
	blocked_by text
);
ALTER TYPE tidemark.batch OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.batch IS 'What tidemark.read_outbox read: the events in groups (seqs: the numbers of all of them), the routes that were looked at for that, and the cursor as it will be once they are settled. blocked_by names what keeps too many holes open; null: nothing.';
CREATE TYPE tidemark.outcome AS ENUM (
    'skipped',
    'disabled',
    'dry_run',
    'pending',
    'sent',
    'failed'
);
ALTER TYPE tidemark.outcome OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.outcome IS 'What became of one event on one route: skipped (no route), disabled, dry_run, pending (to be delivered), sent, failed (dead-lettered).';
CREATE TYPE tidemark.evidence AS (
	route_id integer,
	outcome tidemark.outcome,
	reason text,
	detail text,
	events integer,
	seqs int8multirange
);
ALTER TYPE tidemark.evidence OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.evidence IS 'The same outcome for the events numbered seqs on one route. route_id 0: no route.';
CREATE TYPE tidemark.failed_row AS (
	item_id text,
	item_ts timestamp with time zone,
	snapshot jsonb,
	code text,
	message text,
	permanent boolean,
	delay double precision
);
ALTER TYPE tidemark.failed_row OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.failed_row IS 'A row that the handler refused. permanent: not to be tried again; delay: seconds to wait, null: as the retry policy says.';
CREATE TYPE tidemark.gates AS (
	master boolean,
	worker boolean,
	armed boolean
);
ALTER TYPE tidemark.gates OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.gates IS 'State of everything that can forbid a worker to route: the master gate, the worker''s gate, and whether this cluster is armed.';
CREATE TYPE tidemark.lane AS ENUM (
    'immediate',
    'batch'
);
ALTER TYPE tidemark.lane OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.lane IS 'How soon an event wants to be handled: immediate (default) or in batches.';
CREATE TYPE tidemark.replay AS (
	id bigint,
	route_code text,
	event_id uuid,
	attempt_no integer,
	outcome tidemark.outcome,
	reason text,
	detail text
);
ALTER TYPE tidemark.replay OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.replay IS 'What a replay of a dead letter came to, or with dry run would come to.';
CREATE TYPE tidemark.result AS (
	route_id integer,
	fresh boolean,
	outcome tidemark.outcome,
	reason text,
	detail text,
	seqs int8multirange,
	delay double precision
);
ALTER TYPE tidemark.result OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.result IS 'What deliveries outside the database came to: sent, failed, or pending (to be tried again after delay seconds; null: behind an earlier event of its key). fresh: the events are of the batch that is settled; otherwise they were pending. pending without detail: it was not tried.';
CREATE TYPE tidemark.severity AS ENUM (
    'info',
    'warning',
    'high',
    'critical'
);
ALTER TYPE tidemark.severity OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.severity IS 'How bad an event or a finding is, mildest first.';
CREATE TYPE tidemark.source_page AS (
	examined integer,
	taken integer,
	fresh integer,
	last_ts timestamp with time zone,
	last_id text,
	late integer,
	numbers bigint[],
	result jsonb,
	ledger_ids text[],
	ledger_xids text[],
	counts jsonb,
	times timestamp with time zone[]
);
ALTER TYPE tidemark.source_page OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.source_page IS 'What was read of a table: rows examined, fresh (they passed filter and shard, and a sweep had not seen them) and taken (what coalescing left of these), the last one, the numbers of all of them and their times (safety sequence), what the handler returned.';
CREATE TABLE tidemark.source (
    source text NOT NULL,
    schema_name text NOT NULL,
    table_name text NOT NULL,
    id_column text NOT NULL,
    id_type text NOT NULL,
    id_collate_c boolean DEFAULT false NOT NULL,
    timestamp_column text,
    timestamp_type text,
    time_zone text,
    key_columns text[] DEFAULT '{}'::text[] NOT NULL,
    group_key text[] DEFAULT '{}'::text[] NOT NULL,
    filter text,
    safety text NOT NULL,
    margin interval DEFAULT '00:00:01'::interval NOT NULL,
    sweep_window interval,
    sweep_every interval DEFAULT '00:01:00'::interval NOT NULL,
    bucket interval DEFAULT '01:00:00'::interval NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    created_by text DEFAULT SESSION_USER NOT NULL,
    CONSTRAINT bucket_is_1s_to_30d CHECK ((((bucket >= '00:00:01'::interval) AND (bucket <= '30 days'::interval)) AND (date_part('month'::text, bucket) = (0)::double precision))),
    CONSTRAINT keyset_has_a_timestamp CHECK (((safety = ANY (ARRAY['sequence'::text, 'capture'::text])) OR (timestamp_column IS NOT NULL))),
    CONSTRAINT margin_is_not_negative CHECK ((margin >= '00:00:00'::interval)),
    CONSTRAINT safety_is_known CHECK ((safety = ANY (ARRAY['sequence'::text, 'clock'::text, 'capture'::text, 'declared'::text]))),
    CONSTRAINT source_is_a_plain_name CHECK (((source ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'::text) AND (source <> 'outbox'::text))),
    CONSTRAINT sweep_every_is_positive CHECK ((sweep_every > '00:00:00'::interval)),
    CONSTRAINT sweep_is_of_a_keyset CHECK (((sweep_window IS NULL) OR (safety = ANY (ARRAY['clock'::text, 'declared'::text])))),
    CONSTRAINT sweep_window_is_positive CHECK ((sweep_window > '00:00:00'::interval)),
    CONSTRAINT timestamp_has_a_type CHECK (((timestamp_column IS NULL) = (timestamp_type IS NULL)))
);
ALTER TABLE tidemark.source OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.source IS 'Append-only tables that workers read. A new source is a row, no code. Source: S2 39.4 (ts-col, id-col, id-type).';
COMMENT ON COLUMN tidemark.source.source IS 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
COMMENT ON COLUMN tidemark.source.schema_name IS 'Schema of the table, as the catalog spells it.';
COMMENT ON COLUMN tidemark.source.table_name IS 'The table, as the catalog spells it.';
COMMENT ON COLUMN tidemark.source.id_column IS 'Column that identifies a row: not null, unique, never updated.';
COMMENT ON COLUMN tidemark.source.id_type IS 'Its type, from the catalog: smallint, integer, bigint, uuid, text, character varying or numeric.';
COMMENT ON COLUMN tidemark.source.id_collate_c IS 'Text ids of another collation are compared in "C".';
COMMENT ON COLUMN tidemark.source.timestamp_column IS 'Column that says when the row was made. Null: the id alone orders the rows (safety sequence).';
COMMENT ON COLUMN tidemark.source.timestamp_type IS 'Its type, from the catalog.';
COMMENT ON COLUMN tidemark.source.time_zone IS 'For a timestamp without time zone: the zone that its writers mean.';
COMMENT ON COLUMN tidemark.source.key_columns IS 'Columns that name what the row is about: shards go by them, emit shows them. Empty: the id.';
COMMENT ON COLUMN tidemark.source.group_key IS 'Columns by which rows are coalesced. Empty: they are not.';
COMMENT ON COLUMN tidemark.source.filter IS 'SQL condition over the columns; rows for which it is not true are passed over. It runs with the rights of the worker. Null: all rows.';
COMMENT ON COLUMN tidemark.source.safety IS 'What makes the reading lossless: sequence, clock, capture or declared (see docs/sources.md).';
COMMENT ON COLUMN tidemark.source.margin IS 'clock and declared: how far behind the horizon the reading stays. Default 1 s.';
COMMENT ON COLUMN tidemark.source.sweep_window IS 'How far behind the watermark rows may still appear: so much is read again by the sweep, and older rows are counted. Null (default): no sweep but for rows without a usable timestamp.';
COMMENT ON COLUMN tidemark.source.sweep_every IS 'Time between two sweeps. Default 1 minute.';
COMMENT ON COLUMN tidemark.source.bucket IS 'Width of the time buckets in which rows are counted. Default 1 hour.';
COMMENT ON COLUMN tidemark.source.description IS 'For people.';
COMMENT ON COLUMN tidemark.source.created_at IS 'When it was added.';
COMMENT ON COLUMN tidemark.source.created_by IS 'The role that logged in to add it.';
CREATE TABLE tidemark.worker (
    id integer NOT NULL,
    worker text NOT NULL,
    source text DEFAULT 'outbox'::text NOT NULL,
    handler text DEFAULT 'route'::text NOT NULL,
    handler_ref text,
    payload_columns text[] DEFAULT '{}'::text[] NOT NULL,
    domains text[],
    read_order text DEFAULT 'eager'::text NOT NULL,
    hole_limit integer DEFAULT 10000 NOT NULL,
    shards integer DEFAULT 1 NOT NULL,
    page_size integer DEFAULT 5000 NOT NULL,
    page_timeout interval DEFAULT '00:00:05'::interval NOT NULL,
    retry_policy jsonb,
    coalesce_window interval,
    storm_fraction double precision,
    off_peak text,
    peak_pause interval DEFAULT '00:00:01'::interval NOT NULL,
    lock_wait_limit integer,
    replication_lag_limit interval,
    description text DEFAULT ''::text NOT NULL,
    CONSTRAINT coalesce_window_is_positive CHECK ((coalesce_window > '00:00:00'::interval)),
    CONSTRAINT handler_suits_source CHECK ((((source = 'outbox'::text) AND (handler = ANY (ARRAY['route'::text, 'go'::text])) AND (handler_ref IS NULL)) OR ((source = 'table'::text) AND (((handler = ANY (ARRAY['sql'::text, 'emit'::text])) AND (handler_ref IS NOT NULL)) OR ((handler = 'go'::text) AND (handler_ref IS NULL)))))),
    CONSTRAINT hole_limit_is_1_to_1000000 CHECK (((hole_limit >= 1) AND (hole_limit <= 1000000))),
    CONSTRAINT lock_wait_limit_is_positive CHECK ((lock_wait_limit > 0)),
    CONSTRAINT off_peak_is_hours CHECK ((off_peak ~ '^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9] [A-Za-z0-9_+/-]+$'::text)),
    CONSTRAINT page_size_is_1_to_50000 CHECK (((page_size >= 1) AND (page_size <= 50000))),
    CONSTRAINT page_timeout_is_100ms_to_10min CHECK (((page_timeout >= '00:00:00.1'::interval) AND (page_timeout <= '00:10:00'::interval))),
    CONSTRAINT peak_pause_is_up_to_1h CHECK (((peak_pause >= '00:00:00'::interval) AND (peak_pause <= '01:00:00'::interval))),
    CONSTRAINT read_order_is_known CHECK ((read_order = ANY (ARRAY['eager'::text, 'strict'::text]))),
    CONSTRAINT read_order_suits_source CHECK (((source = 'outbox'::text) OR (read_order = 'eager'::text))),
    CONSTRAINT replication_lag_limit_is_positive CHECK ((replication_lag_limit > '00:00:00'::interval)),
    CONSTRAINT shards_is_1_to_256 CHECK (((shards >= 1) AND (shards <= 256))),
    CONSTRAINT source_is_known CHECK ((source = ANY (ARRAY['outbox'::text, 'table'::text]))),
    CONSTRAINT storm_fraction_is_up_to_1 CHECK (((storm_fraction > (0)::double precision) AND (storm_fraction <= (1)::double precision))),
    CONSTRAINT worker_is_a_plain_name CHECK ((worker ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'::text))
);
ALTER TABLE tidemark.worker OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.worker IS 'Workers: a source to read, a handler to give it to. A new worker is a row.';
COMMENT ON COLUMN tidemark.worker.id IS 'Short number used in evidence.';
COMMENT ON COLUMN tidemark.worker.worker IS 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
COMMENT ON COLUMN tidemark.worker.source IS 'What it reads: outbox, or table: each source (tidemark.source) for which it has a cursor.';
COMMENT ON COLUMN tidemark.worker.handler IS 'What it does with a batch. Of the outbox: route (delivers it by its routes), or go (functions of a Go program take it, by routes of the kind go). Of a table: sql (hands the rows to a function), emit (makes each row an event), or go (a function of a Go program takes the rows).';
COMMENT ON COLUMN tidemark.worker.handler_ref IS 'sql: schema.function, which takes an array of the table''s row type (or anyarray). emit: domain/type of the events.';
COMMENT ON COLUMN tidemark.worker.payload_columns IS 'emit: columns that the payload shows beside the id and the source''s key columns. Default: none.';
COMMENT ON COLUMN tidemark.worker.domains IS 'Domains whose events it decides; null: all. Others are passed over and leave no evidence.';
COMMENT ON COLUMN tidemark.worker.read_order IS 'eager (default): passes numbers that have not shown up and comes back for them. strict: waits at the first one.';
COMMENT ON COLUMN tidemark.worker.hole_limit IS 'Ranges of missing numbers kept at most; at the limit the worker waits and opens the finding cursor_holes. Default 10000.';
COMMENT ON COLUMN tidemark.worker.shards IS 'Parts, by a hash of the source''s key columns, each with a cursor and a lease of its own. Default 1. For tables.';
COMMENT ON COLUMN tidemark.worker.page_size IS 'Rows that a pass reads at most. Default 5000. For tables.';
COMMENT ON COLUMN tidemark.worker.page_timeout IS 'A pass that takes longer is taken back and tried with an eighth of the rows; a single row that takes longer has failed. Default 5 s. For tables; kept by the daemon, from psql it is your statement_timeout.';
COMMENT ON COLUMN tidemark.worker.retry_policy IS 'When a row that failed is tried again, as tidemark.outbound_route.retry_policy. Null: the default policy. For tables.';
COMMENT ON COLUMN tidemark.worker.coalesce_window IS 'Rows of one group (the source''s group_key) that come within it are handed over as one, the latest: the worker waits so long between two looks. Null (default): every row is handed over. For tables.';
COMMENT ON COLUMN tidemark.worker.storm_fraction IS 'A batch that touches more than this share of all groups opens the finding group_invalidation_storm and slows the worker down. Null (default): no guard. For tables.';
COMMENT ON COLUMN tidemark.worker.off_peak IS 'Hours at full speed, e.g. "22:00-06:00 Europe/Berlin". Null (default): always. For tables.';
COMMENT ON COLUMN tidemark.worker.peak_pause IS 'Outside of these hours, the pause between two passes. Default 1 s.';
COMMENT ON COLUMN tidemark.worker.lock_wait_limit IS 'The worker waits while more sessions of this database wait for locks. Null (default): it does not look. For tables.';
COMMENT ON COLUMN tidemark.worker.replication_lag_limit IS 'The worker waits while a standby is further behind. Null (default): it does not look. For tables.';
COMMENT ON COLUMN tidemark.worker.description IS 'For people.';
CREATE TABLE tidemark.worker_cursor (
    worker text NOT NULL,
    source text NOT NULL,
    shard integer DEFAULT 0 NOT NULL,
    watermark_ts timestamp with time zone,
    watermark_id text DEFAULT '0'::text,
    decided_through text DEFAULT '0'::text NOT NULL,
    holes int8multirange DEFAULT '{}'::int8multirange NOT NULL,
    fenced int8multirange DEFAULT '{}'::int8multirange NOT NULL,
    fence text[] DEFAULT '{}'::text[] NOT NULL,
    last_run_at timestamp with time zone,
    last_run_summary jsonb DEFAULT '{}'::jsonb NOT NULL,
    events_seen bigint DEFAULT 0 NOT NULL,
    attempts_written bigint DEFAULT 0 NOT NULL,
    dead_lettered bigint DEFAULT 0 NOT NULL,
    settles bigint DEFAULT 0 NOT NULL,
    horizon timestamp with time zone,
    sweep jsonb DEFAULT '{}'::jsonb NOT NULL,
    verified_through timestamp with time zone,
    phase text DEFAULT 'incremental'::text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    paused_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    begins_after bigint DEFAULT 0 NOT NULL,
    CONSTRAINT phase_is_known CHECK ((phase = ANY (ARRAY['seeding'::text, 'reconciling'::text, 'incremental'::text]))),
    CONSTRAINT shard_is_not_negative CHECK ((shard >= 0))
)
WITH (fillfactor='50');
ALTER TABLE tidemark.worker_cursor OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.worker_cursor IS 'How far each worker has come in each source. Source: S0 iu_route_worker_cursor, S2 gov_worker_cursor.';
COMMENT ON COLUMN tidemark.worker_cursor.worker IS 'The worker.';
COMMENT ON COLUMN tidemark.worker_cursor.source IS 'The source it reads.';
COMMENT ON COLUMN tidemark.worker_cursor.shard IS 'Part of the source, from 0.';
COMMENT ON COLUMN tidemark.worker_cursor.watermark_ts IS 'Time part of the watermark; null for the outbox.';
COMMENT ON COLUMN tidemark.worker_cursor.watermark_id IS 'Id part of the watermark, as text, compared in the type of the source''s id; null: at the beginning. For the outbox: the number read up to.';
COMMENT ON COLUMN tidemark.worker_cursor.decided_through IS 'For the outbox the highest watermark ever reached: above it a batch is new; below it, after a rewind, what is already decided is subtracted. For a table the watermark as last settled: where the two differ, somebody has edited it by hand.';
COMMENT ON COLUMN tidemark.worker_cursor.holes IS 'Numbers that had not shown up when the cursor passed, and whose fence is not noted yet.';
COMMENT ON COLUMN tidemark.worker_cursor.fenced IS 'Numbers that had not shown up when fence was noted: delivered when they appear, dropped when no member of the fence is left.';
COMMENT ON COLUMN tidemark.worker_cursor.fence IS 'Virtual transaction ids that could still own a number of fenced.';
COMMENT ON COLUMN tidemark.worker_cursor.last_run_at IS 'Last pass, with or without work.';
COMMENT ON COLUMN tidemark.worker_cursor.last_run_summary IS 'What that pass did.';
COMMENT ON COLUMN tidemark.worker_cursor.events_seen IS 'Events read so far.';
COMMENT ON COLUMN tidemark.worker_cursor.attempts_written IS 'Pieces of evidence written so far.';
COMMENT ON COLUMN tidemark.worker_cursor.dead_lettered IS 'Dead letters written so far.';
COMMENT ON COLUMN tidemark.worker_cursor.settles IS 'Number of the latest settle by an owner of a lease: one that comes again, late or because its answer was lost, does nothing.';
COMMENT ON COLUMN tidemark.worker_cursor.horizon IS 'Rows with a timestamp at or above it were left for later by the last pass; null for the outbox and for the safety sequence.';
COMMENT ON COLUMN tidemark.worker_cursor.sweep IS 'State of the reconciling sweep: xmin (rows of older transactions were seen by the sweep before), and while one runs next_xmin, segment, ts and id (how far it has come).';
COMMENT ON COLUMN tidemark.worker_cursor.verified_through IS 'Up to here the rows in the table were counted and are as many as were handled. Null: nothing was counted yet, or the source has no sweep.';
COMMENT ON COLUMN tidemark.worker_cursor.phase IS 'seeding (what was there at first), reconciling (what changed meanwhile) or incremental (default).';
COMMENT ON COLUMN tidemark.worker_cursor.metadata IS 'Configuration and notes of the worker''s owner.';
COMMENT ON COLUMN tidemark.worker_cursor.paused_at IS 'Set: the worker does not run. Null (default): it runs.';
COMMENT ON COLUMN tidemark.worker_cursor.created_at IS 'When the cursor was made.';
COMMENT ON COLUMN tidemark.worker_cursor.updated_at IS 'When it last changed.';
COMMENT ON COLUMN tidemark.worker_cursor.begins_after IS 'Of the log: the worker decides events with higher numbers, and those below that were not committed when it was made. 0: from the start.';
CREATE TYPE tidemark.source_plan AS (
	status text,
	detail text,
	step text,
	worker tidemark.worker,
	source tidemark.source,
	cursor tidemark.worker_cursor,
	relation oid,
	call text,
	horizon timestamp with time zone,
	fence_closed boolean,
	sweep jsonb,
	rows_limit integer
);
ALTER TYPE tidemark.source_plan OWNER TO tidemark_owner;
COMMENT ON TYPE tidemark.source_plan IS 'What the next pass over a source is to do: status go, or why not (closed, held, throttled, waiting; detail says more); step forward, sweep or retry; the table, and how its handler is called.';
CREATE FUNCTION public.receive(event jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$ begin
    if (event -> 'payload' ->> 'n')::integer = 6 then raise exception 'no 6'; end if;
    insert into public.received (n, key) values ((event -> 'payload' ->> 'n')::integer, event ->> 'key');
end $$;
ALTER FUNCTION public.receive(event jsonb) OWNER TO ada;
CREATE TABLE public.counted (
    id bigint NOT NULL,
    n integer NOT NULL
);
ALTER TABLE public.counted OWNER TO ada;
CREATE FUNCTION public.take_counted(rows public.counted[]) RETURNS void
    LANGUAGE plpgsql
    AS $$ begin
    if exists (select from unnest(rows) r where r.n >= 600) then raise exception 'no such row'; end if;
    insert into public.handled (source, n) select 'counted', r.n from unnest(rows) r;
end $$;
ALTER FUNCTION public.take_counted(rows public.counted[]) OWNER TO ada;
CREATE TABLE public.loose (
    id bigint NOT NULL,
    n integer NOT NULL,
    born_at timestamp with time zone
);
ALTER TABLE public.loose OWNER TO ada;
CREATE FUNCTION public.take_loose(rows public.loose[]) RETURNS void
    LANGUAGE sql
    AS $$ insert into public.handled (source, n) select 'loose', r.n from unnest(rows) r $$;
ALTER FUNCTION public.take_loose(rows public.loose[]) OWNER TO ada;
CREATE TABLE public.parcels (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    n integer NOT NULL,
    born_at timestamp with time zone
);
ALTER TABLE public.parcels OWNER TO ada;
CREATE FUNCTION public.take_parcels(rows public.parcels[]) RETURNS void
    LANGUAGE sql
    AS $$ insert into public.handled (source, n) select 'parcels', r.n from unnest(rows) r $$;
ALTER FUNCTION public.take_parcels(rows public.parcels[]) OWNER TO ada;
CREATE TABLE public.timed (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    n integer NOT NULL,
    born_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
ALTER TABLE public.timed OWNER TO ada;
CREATE FUNCTION public.take_timed(rows public.timed[]) RETURNS void
    LANGUAGE sql
    AS $$ insert into public.handled (source, n) select 'timed', r.n from unnest(rows) r $$;
ALTER FUNCTION public.take_timed(rows public.timed[]) OWNER TO ada;
CREATE FUNCTION tidemark.armed() RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    bound constant tidemark.stage := (select s from tidemark.stage s);
begin
    return bound.stage = 'live' and bound.database = current_database()
       and bound.system_identifier = (select c.system_identifier from pg_control_system() c);
end
$$;
ALTER FUNCTION tidemark.armed() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.armed() IS 'True: the stage is live, and was made live in this very cluster and database. A copy restored elsewhere is not armed: it can dry-run, it cannot deliver.';
CREATE FUNCTION tidemark.attempt_key(worker text, route_code text, event_id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    select 'tm:' || worker || ':' || coalesce(route_code, '-') || ':' || event_id
$$;
ALTER FUNCTION tidemark.attempt_key(worker text, route_code text, event_id uuid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.attempt_key(worker text, route_code text, event_id uuid) IS 'Idempotency key of a decision, tm:{worker}:{route}:{event_id}; "-" stands where no route matched. Source: S0 iu_wrk:{worker}:{route}:{event_id}.';
CREATE FUNCTION tidemark.audit_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    before constant jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
    after constant jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
begin
    if before is distinct from after then
        insert into tidemark.audit (action, object, reason, before, after)
        values (lower(tg_op), tg_table_name || ' ' || coalesce(coalesce(after, before) ->> tg_argv[0], ''),
                nullif(current_setting('tidemark.reason', true), ''), before, after);
    end if;
    return null;
end
$$;
ALTER FUNCTION tidemark.audit_change() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.audit_change() IS 'Trigger: records who changed a configuration row, what it was and is, and why (setting tidemark.reason). Its argument names the column that identifies the row.';
CREATE FUNCTION tidemark.beat(worker text, epoch bigint, lease interval, OUT gate text, OUT live_routes integer[]) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
begin
    perform tidemark.lease_check(beat.worker, beat.epoch);
    gate := tidemark.closed_gate(beat.worker);
    update tidemark.heartbeat h
    set last_beat_at = clock_timestamp(), ticks_total = ticks_total + 1,
        last_status = case when gate is null then 'ok' else 'closed' end,
        lease_until = clock_timestamp() + beat.lease
    where h.executor_id = beat.worker || '/outbox/0';
    live_routes := array(
        select r.id from tidemark.outbound_route r where r.enabled and not r.dry_run order by r.id);
end
$$;
ALTER FUNCTION tidemark.beat(worker text, epoch bigint, lease interval, OUT gate text, OUT live_routes integer[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.beat(worker text, epoch bigint, lease interval, OUT gate text, OUT live_routes integer[]) IS 'Renews the lease and says what may still be delivered: gate names what is closed (null: nothing), live_routes are the routes that are enabled and not in dry run. Raises TM011 where the epoch is not the lease''s any more.';
CREATE FUNCTION tidemark.behind_key(route tidemark.outbound_route, numbers bigint[], ahead bigint[]) RETURNS int8multirange
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
    worker_ constant integer := (select w.id from tidemark.worker w where w.worker = route.worker);
begin
    if (behind_key.route).ordering <> 'key' or not exists (
        select from tidemark.pending p
        where p.worker_id = worker_ and p.route_id = (behind_key.route).id and not p.replay)
    then
        return '{}';
    end if;
    return (
        select coalesce(range_agg(int8range(o.seq, o.seq + 1)), '{}')
        from tidemark.events(behind_key.numbers) o
        where o.key is not null and exists (
            select from tidemark.pending p
            where p.worker_id = worker_ and p.route_id = (behind_key.route).id and p.key = o.key
              and not p.replay and p.seq <> all (behind_key.ahead)));
end
$$;
ALTER FUNCTION tidemark.behind_key(route tidemark.outbound_route, numbers bigint[], ahead bigint[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.behind_key(route tidemark.outbound_route, numbers bigint[], ahead bigint[]) IS 'Which of these events, given in rising order, have to wait on a route that keeps the order of a key, since one of their key is pending that is not among those that go ahead of them.';
CREATE FUNCTION tidemark.capture() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    SET "IntervalStyle" TO 'postgres'
    SET "TimeZone" TO 'UTC'
    SET bytea_output TO 'hex'
    SET extra_float_digits TO '1'
    AS $_$
#variable_conflict use_variable
declare
    at constant timestamptz := clock_timestamp();
    head constant text := tidemark.event_uuid_time(at);
    route record;
    made record;
    place text;
    outcome text;
    why text := '';
    n bigint;
    awake boolean;
begin
    -- Here stands, in the function of a table, its own statement: tidemark.capture_make.
    if n is null then
        select r.id, r.route_code, r.domain, r.type, r.stream, r.dry_run, r.fail_closed, r.idempotency_policy, r.payload_columns,
               t.type is not null as registered, t.unchecked, t.metadata_only, t.schema, a.as_attached
        into route
        from tidemark.inbound_route r
        left join tidemark.capture_attached a on a.relation = tg_relid and a.trigger_name = tg_name
        left join tidemark.event_type t on t.domain = r.domain and t.type = r.type and t.enabled
        where r.source_schema = tg_table_schema and r.source_table = tg_table_name and r.sql_event = lower(tg_op) and r.enabled;
        if not found then
            return null;
        end if;
        place := format('inbound route %s: ', route.route_code);
        -- A table or view of the session's own could pass for a transition table that there is not.
        if route.as_attached is distinct from true then
            raise exception using errcode = 'TM005',
                message = format('%strigger %I of %I.%I is not as tidemark.capture_attach makes it', place, tg_name, tg_table_schema, tg_table_name),
                hint = 'Drop it, and attach the table: tidemark capture attach.';
        end if;
        select s.* into made
        from tidemark.capture_sql(tg_relid, lower(tg_op), route.payload_columns, route.idempotency_policy,
            '$1 as at, $2 as head, $3 as route, $4 as place, $5 as domain, $6 as type, $7 as stream, $8 as unchecked, $9 as schema, $10 as metadata_only') s;
        if route.dry_run then
            outcome := 'dry_run';
        elsif not route.registered then
            outcome := 'unregistered';
            why := format('%s/%s is not registered or not enabled', route.domain, route.type);
        elsif made.missing is not null then
            outcome := 'failed';
            why := format('%I.%I has no column %s, which the contract names', tg_table_schema, tg_table_name, made.missing);
            if route.fail_closed then
                raise exception using errcode = 'TM005', message = place || why,
                    hint = format('Set payload_columns of inbound route %s to columns that there are.', route.route_code);
            end if;
        elsif route.fail_closed and not made.may_fail then
            execute made.written using at, head, route.id, place, route.domain, route.type, route.stream, route.unchecked, route.schema, route.metadata_only;
            get diagnostics n = row_count;
        else
            begin
                execute made.written using at, head, route.id, place, route.domain, route.type, route.stream, route.unchecked, route.schema, route.metadata_only;
                get diagnostics n = row_count;
            exception when others then
                -- What is not the event's fault is the transaction's own: a conflict, a lock, a full disk.
                if sqlstate ~ '^(40|53|55|57|58|XX)' then
                    raise;
                elsif route.fail_closed then
                    raise exception using errcode = case when sqlstate like 'TM%' then sqlstate else 'TM002' end,
                        message = case when sqlstate like 'TM%' then sqlerrm else place || sqlerrm end,
                        hint = format('Change the row, or what inbound route %s shows of it (payload_columns).', route.route_code);
                end if;
                outcome := 'failed';
                -- Other messages may quote the row.
                why := case when sqlstate like 'TM%' then sqlerrm else 'SQLSTATE ' || sqlstate end;
            end;
        end if;
    end if;
    if outcome is not null then
        execute made.counted into n;
        if n > 0 then
            insert into tidemark.captured (at, route_id, outcome, rows, actor, reason)
            values (at, route.id, outcome, n, session_user, why);
        end if;
    elsif n > 0 then
        -- As in emit: behind the numbers.
        if pg_try_advisory_lock(1953064301, 1) then
            awake := pg_advisory_unlock(1953064301, 1);
        elsif pg_try_advisory_lock_shared(1953064301, 1) then
            awake := pg_advisory_unlock_shared(1953064301, 1);
            perform tidemark.wake(array[route.domain]);
        end if;
    end if;
    return null;
end
$_$;
ALTER FUNCTION tidemark.capture() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture() IS 'Trigger of tidemark.capture_attach: makes the rows that a statement changed events of the inbound route for the table and the operation, in the transaction. Gates do not matter to it: they stop deliveries, and what is captured waits in the log. No enabled route: nothing. Dry run, or a type that is not registered: a row in tidemark.captured. Raises TM002, TM003 or TM005 where the event cannot be written; then the statement fails, or, where the route is not fail_closed, goes on with a row in tidemark.captured. Source: S1 fn_iu_sql_link_inbound_capture.';
CREATE FUNCTION tidemark.capture_1() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    SET "IntervalStyle" TO 'postgres'
    SET "TimeZone" TO 'UTC'
    SET bytea_output TO 'hex'
    SET extra_float_digits TO '1'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $_$
#variable_conflict use_variable
declare
    at constant timestamptz := clock_timestamp();
    head constant text := tidemark.event_uuid_time(at);
    route record;
    made record;
    place text;
    outcome text;
    why text := '';
    n bigint;
    awake boolean;
begin
    -- Made by tidemark.capture_make. What follows below is tidemark.capture, for when this does not fit: the table is
    -- another than it was, the route is in dry run, …
    if tg_relid = 17582 and tg_table_schema = 'public' and tg_table_name = 'parcels' and tg_op = 'INSERT' then
        select r.id, r.route_code, r.domain, r.type, r.stream, t.unchecked, t.metadata_only, t.schema,
               r.payload_columns = '{}' and r.idempotency_policy = 'change' and r.domain = 'parcels' and r.type = 'made' and t.type is not null
               and r.fail_closed and not r.dry_run and tidemark.capture_is_made(17582, 'e00d60e835c216ca2200c50ad6c34915') as fits
        into route
        from tidemark.inbound_route r
        left join tidemark.event_type t on t.domain = 'parcels' and t.type = 'made' and t.enabled
        where r.source_schema = 'public' and r.source_table = 'parcels' and r.sql_event = 'insert' and r.enabled and exists (select from tidemark_new);
        if not found then
            return null;
        end if;
        if route.fits then
            insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, key, subject_table, subject_ref, idempotency_key, actor, payload) select c.id, g.at, g.at, 'immediate', 'info', g.domain, g.type, g.stream, c.ref, 'public.parcels', c.ref, null, session_user, c.payload from (select at as at, head as head, route.id as route, 'inbound route ' || route.route_code || ': ' as place, route.domain as domain, route.type as type, route.stream as stream, route.unchecked as unchecked, route.schema as schema, route.metadata_only as metadata_only) g cross join lateral (select overlay(gen_random_uuid()::text placing g.head from 1 for 15)::uuid as id, format('%s', n.c1) as ref, jsonb_set(jsonb '{"table": "parcels", "schema": "public", "operation": "insert", "primary_key": null}', '{primary_key}', jsonb_build_object('id', n.c1)) as payload from (select x.id as c1, x.n as c2, x.born_at as c3 from tidemark_new x) n offset 0) c where (g.unchecked or tidemark.payload_check(g.domain, g.type, c.payload, g.schema, g.metadata_only, g.place))
        and (tidemark.event_is_small(c.payload, c.ref, g.stream, null, c.ref, null, null, null)
             or tidemark.event_check(g.place, c.payload, c.ref, g.stream, null, c.ref, null, null, null));
            get diagnostics n = row_count;
        end if;
    end if;
    if n is null then
        select r.id, r.route_code, r.domain, r.type, r.stream, r.dry_run, r.fail_closed, r.idempotency_policy, r.payload_columns,
               t.type is not null as registered, t.unchecked, t.metadata_only, t.schema, a.as_attached
        into route
        from tidemark.inbound_route r
        left join tidemark.capture_attached a on a.relation = tg_relid and a.trigger_name = tg_name
        left join tidemark.event_type t on t.domain = r.domain and t.type = r.type and t.enabled
        where r.source_schema = tg_table_schema and r.source_table = tg_table_name and r.sql_event = lower(tg_op) and r.enabled;
        if not found then
            return null;
        end if;
        place := format('inbound route %s: ', route.route_code);
        -- A table or view of the session's own could pass for a transition table that there is not.
        if route.as_attached is distinct from true then
            raise exception using errcode = 'TM005',
                message = format('%strigger %I of %I.%I is not as tidemark.capture_attach makes it', place, tg_name, tg_table_schema, tg_table_name),
                hint = 'Drop it, and attach the table: tidemark capture attach.';
        end if;
        select s.* into made
        from tidemark.capture_sql(tg_relid, lower(tg_op), route.payload_columns, route.idempotency_policy,
            '$1 as at, $2 as head, $3 as route, $4 as place, $5 as domain, $6 as type, $7 as stream, $8 as unchecked, $9 as schema, $10 as metadata_only') s;
        if route.dry_run then
            outcome := 'dry_run';
        elsif not route.registered then
            outcome := 'unregistered';
            why := format('%s/%s is not registered or not enabled', route.domain, route.type);
        elsif made.missing is not null then
            outcome := 'failed';
            why := format('%I.%I has no column %s, which the contract names', tg_table_schema, tg_table_name, made.missing);
            if route.fail_closed then
                raise exception using errcode = 'TM005', message = place || why,
                    hint = format('Set payload_columns of inbound route %s to columns that there are.', route.route_code);
            end if;
        elsif route.fail_closed and not made.may_fail then
            execute made.written using at, head, route.id, place, route.domain, route.type, route.stream, route.unchecked, route.schema, route.metadata_only;
            get diagnostics n = row_count;
        else
            begin
                execute made.written using at, head, route.id, place, route.domain, route.type, route.stream, route.unchecked, route.schema, route.metadata_only;
                get diagnostics n = row_count;
            exception when others then
                -- What is not the event's fault is the transaction's own: a conflict, a lock, a full disk.
                if sqlstate ~ '^(40|53|55|57|58|XX)' then
                    raise;
                elsif route.fail_closed then
                    raise exception using errcode = case when sqlstate like 'TM%' then sqlstate else 'TM002' end,
                        message = case when sqlstate like 'TM%' then sqlerrm else place || sqlerrm end,
                        hint = format('Change the row, or what inbound route %s shows of it (payload_columns).', route.route_code);
                end if;
                outcome := 'failed';
                -- Other messages may quote the row.
                why := case when sqlstate like 'TM%' then sqlerrm else 'SQLSTATE ' || sqlstate end;
            end;
        end if;
    end if;
    if outcome is not null then
        execute made.counted into n;
        if n > 0 then
            insert into tidemark.captured (at, route_id, outcome, rows, actor, reason)
            values (at, route.id, outcome, n, session_user, why);
        end if;
    elsif n > 0 then
        -- As in emit: behind the numbers.
        if pg_try_advisory_lock(1953064301, 1) then
            awake := pg_advisory_unlock(1953064301, 1);
        elsif pg_try_advisory_lock_shared(1953064301, 1) then
            awake := pg_advisory_unlock_shared(1953064301, 1);
            perform tidemark.wake(array[route.domain]);
        end if;
    end if;
    return null;
end
$_$;
ALTER FUNCTION tidemark.capture_1() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_1() IS 'tidemark.capture for inbound route parcels. Made by tidemark.capture_make.';
CREATE FUNCTION tidemark.capture_2() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    SET "IntervalStyle" TO 'postgres'
    SET "TimeZone" TO 'UTC'
    SET bytea_output TO 'hex'
    SET extra_float_digits TO '1'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $_$
#variable_conflict use_variable
declare
    at constant timestamptz := clock_timestamp();
    head constant text := tidemark.event_uuid_time(at);
    route record;
    made record;
    place text;
    outcome text;
    why text := '';
    n bigint;
    awake boolean;
begin
    -- Made by tidemark.capture_make. What follows below is tidemark.capture, for when this does not fit: the table is
    -- another than it was, the route is in dry run, …
    if tg_relid = 17588 and tg_table_schema = 'public' and tg_table_name = 'orders' and tg_op = 'INSERT' then
        select r.id, r.route_code, r.domain, r.type, r.stream, t.unchecked, t.metadata_only, t.schema,
               r.payload_columns = '{}' and r.idempotency_policy = 'change' and r.domain = 'orders' and r.type = 'insert' and t.type is not null
               and r.fail_closed and not r.dry_run and tidemark.capture_is_made(17588, 'dc723b0e22f0c38bcb0747796c8618a3') as fits
        into route
        from tidemark.inbound_route r
        left join tidemark.event_type t on t.domain = 'orders' and t.type = 'insert' and t.enabled
        where r.source_schema = 'public' and r.source_table = 'orders' and r.sql_event = 'insert' and r.enabled and exists (select from tidemark_new);
        if not found then
            return null;
        end if;
        if route.fits then
            insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, key, subject_table, subject_ref, idempotency_key, actor, payload) select c.id, g.at, g.at, 'immediate', 'info', g.domain, g.type, g.stream, c.ref, 'public.orders', c.ref, null, session_user, c.payload from (select at as at, head as head, route.id as route, 'inbound route ' || route.route_code || ': ' as place, route.domain as domain, route.type as type, route.stream as stream, route.unchecked as unchecked, route.schema as schema, route.metadata_only as metadata_only) g cross join lateral (select overlay(gen_random_uuid()::text placing g.head from 1 for 15)::uuid as id, format('%s', n.c1) as ref, jsonb_set(jsonb '{"table": "orders", "schema": "public", "operation": "insert", "primary_key": null}', '{primary_key}', jsonb_build_object('id', n.c1)) as payload from (select x.id as c1, x.n as c2 from tidemark_new x) n offset 0) c where (g.unchecked or tidemark.payload_check(g.domain, g.type, c.payload, g.schema, g.metadata_only, g.place))
        and (tidemark.event_is_small(c.payload, c.ref, g.stream, null, c.ref, null, null, null)
             or tidemark.event_check(g.place, c.payload, c.ref, g.stream, null, c.ref, null, null, null));
            get diagnostics n = row_count;
        end if;
    end if;
    if n is null then
        select r.id, r.route_code, r.domain, r.type, r.stream, r.dry_run, r.fail_closed, r.idempotency_policy, r.payload_columns,
               t.type is not null as registered, t.unchecked, t.metadata_only, t.schema, a.as_attached
        into route
        from tidemark.inbound_route r
        left join tidemark.capture_attached a on a.relation = tg_relid and a.trigger_name = tg_name
        left join tidemark.event_type t on t.domain = r.domain and t.type = r.type and t.enabled
        where r.source_schema = tg_table_schema and r.source_table = tg_table_name and r.sql_event = lower(tg_op) and r.enabled;
        if not found then
            return null;
        end if;
        place := format('inbound route %s: ', route.route_code);
        -- A table or view of the session's own could pass for a transition table that there is not.
        if route.as_attached is distinct from true then
            raise exception using errcode = 'TM005',
                message = format('%strigger %I of %I.%I is not as tidemark.capture_attach makes it', place, tg_name, tg_table_schema, tg_table_name),
                hint = 'Drop it, and attach the table: tidemark capture attach.';
        end if;
        select s.* into made
        from tidemark.capture_sql(tg_relid, lower(tg_op), route.payload_columns, route.idempotency_policy,
            '$1 as at, $2 as head, $3 as route, $4 as place, $5 as domain, $6 as type, $7 as stream, $8 as unchecked, $9 as schema, $10 as metadata_only') s;
        if route.dry_run then
            outcome := 'dry_run';
        elsif not route.registered then
            outcome := 'unregistered';
            why := format('%s/%s is not registered or not enabled', route.domain, route.type);
        elsif made.missing is not null then
            outcome := 'failed';
            why := format('%I.%I has no column %s, which the contract names', tg_table_schema, tg_table_name, made.missing);
            if route.fail_closed then
                raise exception using errcode = 'TM005', message = place || why,
                    hint = format('Set payload_columns of inbound route %s to columns that there are.', route.route_code);
            end if;
        elsif route.fail_closed and not made.may_fail then
            execute made.written using at, head, route.id, place, route.domain, route.type, route.stream, route.unchecked, route.schema, route.metadata_only;
            get diagnostics n = row_count;
        else
            begin
                execute made.written using at, head, route.id, place, route.domain, route.type, route.stream, route.unchecked, route.schema, route.metadata_only;
                get diagnostics n = row_count;
            exception when others then
                -- What is not the event's fault is the transaction's own: a conflict, a lock, a full disk.
                if sqlstate ~ '^(40|53|55|57|58|XX)' then
                    raise;
                elsif route.fail_closed then
                    raise exception using errcode = case when sqlstate like 'TM%' then sqlstate else 'TM002' end,
                        message = case when sqlstate like 'TM%' then sqlerrm else place || sqlerrm end,
                        hint = format('Change the row, or what inbound route %s shows of it (payload_columns).', route.route_code);
                end if;
                outcome := 'failed';
                -- Other messages may quote the row.
                why := case when sqlstate like 'TM%' then sqlerrm else 'SQLSTATE ' || sqlstate end;
            end;
        end if;
    end if;
    if outcome is not null then
        execute made.counted into n;
        if n > 0 then
            insert into tidemark.captured (at, route_id, outcome, rows, actor, reason)
            values (at, route.id, outcome, n, session_user, why);
        end if;
    elsif n > 0 then
        -- As in emit: behind the numbers.
        if pg_try_advisory_lock(1953064301, 1) then
            awake := pg_advisory_unlock(1953064301, 1);
        elsif pg_try_advisory_lock_shared(1953064301, 1) then
            awake := pg_advisory_unlock_shared(1953064301, 1);
            perform tidemark.wake(array[route.domain]);
        end if;
    end if;
    return null;
end
$_$;
ALTER FUNCTION tidemark.capture_2() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_2() IS 'tidemark.capture for inbound route orders-insert. Made by tidemark.capture_make.';
CREATE FUNCTION tidemark.capture_3() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    SET "IntervalStyle" TO 'postgres'
    SET "TimeZone" TO 'UTC'
    SET bytea_output TO 'hex'
    SET extra_float_digits TO '1'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $_$
#variable_conflict use_variable
declare
    at constant timestamptz := clock_timestamp();
    head constant text := tidemark.event_uuid_time(at);
    route record;
    made record;
    place text;
    outcome text;
    why text := '';
    n bigint;
    awake boolean;
begin
    -- Made by tidemark.capture_make. What follows below is tidemark.capture, for when this does not fit: the table is
    -- another than it was, the route is in dry run, …
    if tg_relid = 17588 and tg_table_schema = 'public' and tg_table_name = 'orders' and tg_op = 'UPDATE' then
        select r.id, r.route_code, r.domain, r.type, r.stream, t.unchecked, t.metadata_only, t.schema,
               r.payload_columns = '{}' and r.idempotency_policy = 'change' and r.domain = 'orders' and r.type = 'update' and t.type is not null
               and r.fail_closed and not r.dry_run and tidemark.capture_is_made(17588, 'dc723b0e22f0c38bcb0747796c8618a3') as fits
        into route
        from tidemark.inbound_route r
        left join tidemark.event_type t on t.domain = 'orders' and t.type = 'update' and t.enabled
        where r.source_schema = 'public' and r.source_table = 'orders' and r.sql_event = 'update' and r.enabled and exists (select from tidemark_new);
        if not found then
            return null;
        end if;
        if route.fits then
            insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, key, subject_table, subject_ref, idempotency_key, actor, payload) select c.id, g.at, g.at, 'immediate', 'info', g.domain, g.type, g.stream, c.ref, 'public.orders', c.ref, null, session_user, c.payload from (select at as at, head as head, route.id as route, 'inbound route ' || route.route_code || ': ' as place, route.domain as domain, route.type as type, route.stream as stream, route.unchecked as unchecked, route.schema as schema, route.metadata_only as metadata_only) g cross join lateral (select overlay(gen_random_uuid()::text placing g.head from 1 for 15)::uuid as id, format('%s', n.c1) as ref, jsonb_set(jsonb_set(jsonb '{"table": "orders", "schema": "public", "operation": "update", "primary_key": null}', '{primary_key}', jsonb_build_object('id', n.c1)), '{changed}', to_jsonb(u.changed)) || case when record_image_ne(row(n.c1), row(o.c1)) then jsonb_build_object('old_primary_key', jsonb_build_object('id', o.c1)) else '{}' end as payload, n.ord from (select row_number() over () as ord, x.id as c1, x.n as c2 from tidemark_new x) n full join (select row_number() over () as ord, x.id as c1, x.n as c2 from tidemark_old x) o on o.ord = n.ord cross join lateral (select array_remove(array[case when record_image_ne(row(n.c1), row(o.c1)) then 'id' end, case when record_image_ne(row(n.c2), row(o.c2)) then 'n' end]::text[], null) as changed offset 0) u where u.changed <> '{}' offset 0) c where (g.unchecked or tidemark.payload_check(g.domain, g.type, c.payload, g.schema, g.metadata_only, g.place))
        and (tidemark.event_is_small(c.payload, c.ref, g.stream, null, c.ref, null, null, null)
             or tidemark.event_check(g.place, c.payload, c.ref, g.stream, null, c.ref, null, null, null)) order by c.ord;
            get diagnostics n = row_count;
        end if;
    end if;
    if n is null then
        select r.id, r.route_code, r.domain, r.type, r.stream, r.dry_run, r.fail_closed, r.idempotency_policy, r.payload_columns,
               t.type is not null as registered, t.unchecked, t.metadata_only, t.schema, a.as_attached
        into route
        from tidemark.inbound_route r
        left join tidemark.capture_attached a on a.relation = tg_relid and a.trigger_name = tg_name
        left join tidemark.event_type t on t.domain = r.domain and t.type = r.type and t.enabled
        where r.source_schema = tg_table_schema and r.source_table = tg_table_name and r.sql_event = lower(tg_op) and r.enabled;
        if not found then
            return null;
        end if;
        place := format('inbound route %s: ', route.route_code);
        -- A table or view of the session's own could pass for a transition table that there is not.
        if route.as_attached is distinct from true then
            raise exception using errcode = 'TM005',
                message = format('%strigger %I of %I.%I is not as tidemark.capture_attach makes it', place, tg_name, tg_table_schema, tg_table_name),
                hint = 'Drop it, and attach the table: tidemark capture attach.';
        end if;
        select s.* into made
        from tidemark.capture_sql(tg_relid, lower(tg_op), route.payload_columns, route.idempotency_policy,
            '$1 as at, $2 as head, $3 as route, $4 as place, $5 as domain, $6 as type, $7 as stream, $8 as unchecked, $9 as schema, $10 as metadata_only') s;
        if route.dry_run then
            outcome := 'dry_run';
        elsif not route.registered then
            outcome := 'unregistered';
            why := format('%s/%s is not registered or not enabled', route.domain, route.type);
        elsif made.missing is not null then
            outcome := 'failed';
            why := format('%I.%I has no column %s, which the contract names', tg_table_schema, tg_table_name, made.missing);
            if route.fail_closed then
                raise exception using errcode = 'TM005', message = place || why,
                    hint = format('Set payload_columns of inbound route %s to columns that there are.', route.route_code);
            end if;
        elsif route.fail_closed and not made.may_fail then
            execute made.written using at, head, route.id, place, route.domain, route.type, route.stream, route.unchecked, route.schema, route.metadata_only;
            get diagnostics n = row_count;
        else
            begin
                execute made.written using at, head, route.id, place, route.domain, route.type, route.stream, route.unchecked, route.schema, route.metadata_only;
                get diagnostics n = row_count;
            exception when others then
                -- What is not the event's fault is the transaction's own: a conflict, a lock, a full disk.
                if sqlstate ~ '^(40|53|55|57|58|XX)' then
                    raise;
                elsif route.fail_closed then
                    raise exception using errcode = case when sqlstate like 'TM%' then sqlstate else 'TM002' end,
                        message = case when sqlstate like 'TM%' then sqlerrm else place || sqlerrm end,
                        hint = format('Change the row, or what inbound route %s shows of it (payload_columns).', route.route_code);
                end if;
                outcome := 'failed';
                -- Other messages may quote the row.
                why := case when sqlstate like 'TM%' then sqlerrm else 'SQLSTATE ' || sqlstate end;
            end;
        end if;
    end if;
    if outcome is not null then
        execute made.counted into n;
        if n > 0 then
            insert into tidemark.captured (at, route_id, outcome, rows, actor, reason)
            values (at, route.id, outcome, n, session_user, why);
        end if;
    elsif n > 0 then
        -- As in emit: behind the numbers.
        if pg_try_advisory_lock(1953064301, 1) then
            awake := pg_advisory_unlock(1953064301, 1);
        elsif pg_try_advisory_lock_shared(1953064301, 1) then
            awake := pg_advisory_unlock_shared(1953064301, 1);
            perform tidemark.wake(array[route.domain]);
        end if;
    end if;
    return null;
end
$_$;
ALTER FUNCTION tidemark.capture_3() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_3() IS 'tidemark.capture for inbound route orders-update. Made by tidemark.capture_make.';
CREATE FUNCTION tidemark.capture_attach(relation regclass, reason text, dry_run boolean DEFAULT false, always boolean DEFAULT false) RETURNS TABLE(operation text, statement text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '3s'
    AS $_$
#variable_conflict use_column
declare
    name constant text := capture_attach.relation::text;
    problem text;
    advice text;
    code text := 'TM005';
    route integer;
    route_code text;
    mine record;
    statements text[] := '{}';
    line text;
begin
    select c.*, n.nspname, k.relation as parent into mine
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    left join lateral (select p.relid::text as relation from pg_partition_ancestors(c.oid) with ordinality p (relid, ord)
                       where c.relispartition order by p.ord desc limit 1) k on true
    where c.oid = capture_attach.relation;
    if mine.nspname in ('tidemark', 'pg_catalog', 'information_schema', 'pg_toast') then
        problem := format('%s is not captured: it is a table of %s itself', name, case mine.nspname when 'tidemark' then 'Tidemark' else 'PostgreSQL' end);
        advice := 'Tidemark''s own changes are in tidemark.audit.';
    elsif mine.relkind in ('v', 'm', 'f', 'S', 'i', 'I', 'c', 't') then
        problem := format('%s is %s, not a table', name, case mine.relkind when 'v' then 'a view' when 'm' then 'a materialized view'
                                                         when 'f' then 'a foreign table' when 'S' then 'a sequence' else 'something else' end);
        advice := 'Attach the tables below it.';
    elsif mine.relpersistence = 't' then
        problem := format('%s is a temporary table', name);
        advice := 'Nobody else sees its changes: call tidemark.emit.';
    elsif mine.relispartition then
        problem := format('%s is a partition', name);
        advice := format('Attach its parent, %s.', mine.parent);
    elsif not pg_has_role(mine.relowner, 'usage') then
        code := '42501';
        problem := format('must be owner of table %s', name);
        advice := format('Attach it as %I, who needs tidemark_admin for that.', mine.relowner::regrole::text);
    elsif not exists (select from tidemark.inbound_route r where r.source_schema = mine.nspname and r.source_table = mine.relname) then
        problem := format('%s has no inbound route', name);
        advice := format('Make one first: select tidemark.inbound_route_set(''CODE'', ''%s'');', jsonb_build_object(
            'source_schema', mine.nspname, 'source_table', mine.relname, 'sql_event', 'insert', 'domain', '…', 'type', '…'));
    else
        select format('inbound route %s: %s has no column %s that can be shown', r.route_code, name, c.missing),
               'Virtual generated columns cannot be; change payload_columns.'
        into problem, advice
        from tidemark.inbound_route r cross join lateral tidemark.capture_columns(capture_attach.relation, r.payload_columns) c
        where r.source_schema = mine.nspname and r.source_table = mine.relname and c.missing is not null
        order by r.route_code limit 1;
        if not found then
            select format('trigger %I of %s is there already, and is not Tidemark''s', t.tgname, name), 'Rename it.' into problem, advice
            from pg_trigger t
            where t.tgrelid = capture_attach.relation and t.tgname like 'tidemark\_capture\_%'
              and not exists (select from tidemark.capture_attached x where x.relation = t.tgrelid and x.trigger_name = t.tgname and x.as_attached)
            limit 1;
        end if;
    end if;
    if problem is not null then
        raise exception using errcode = code, message = problem, hint = advice;
    end if;
    for operation, route, route_code in
        select r.sql_event, r.id, r.route_code from tidemark.inbound_route r
        where r.source_schema = mine.nspname and r.source_table = mine.relname
          and not exists (select from tidemark.capture_attached t where t.relation = capture_attach.relation and t.operation = r.sql_event and t.as_attached)
        order by array_position(array['insert', 'update', 'delete', 'truncate'], r.sql_event)
    loop
        statement := format('select tidemark.capture_make(%L)', route_code);
        return next;
        statements := statements || statement;
        statement := format('create trigger tidemark_capture_%1$s after %1$s on %2$s%3$s for each statement execute function tidemark.capture_%4$s()',
            operation, name, case operation
                when 'insert' then ' referencing new table as tidemark_new'
                when 'update' then ' referencing old table as tidemark_old new table as tidemark_new'
                when 'delete' then ' referencing old table as tidemark_old' else '' end, route);
        return next;
        statements := statements || statement;
        if always then
            statement := format('alter table %s enable always trigger tidemark_capture_%s', name, operation);
            return next;
            statements := statements || statement;
        end if;
    end loop;
    if statements = '{}' then
        raise exception using errcode = 'TM005', message = format('%s is attached already, for every operation that has an inbound route', name),
            hint = 'See: select * from tidemark.capture_list;';
    elsif not dry_run then
        perform tidemark.capture_record('capture_attach', capture_attach.relation, capture_attach.reason, statements);
        foreach line in array statements loop
            execute line;
        end loop;
    end if;
end
$_$;
ALTER FUNCTION tidemark.capture_attach(relation regclass, reason text, dry_run boolean, always boolean) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_attach(relation regclass, reason text, dry_run boolean, always boolean) IS 'Puts triggers that call tidemark.capture, each with a statement made for the table, on a table of the caller''s, for each operation that has an inbound route, and returns the SQL, a row for each statement. dry_run (default false): returns it only. always (default false): they fire for replicated changes too. Gives up after 3 s of waiting for the table (55P03): call it again. Raises TM005 where the table cannot be attached, or is already; 42501 for somebody else''s table.';
CREATE TABLE tidemark.inbound_route (
    id integer NOT NULL,
    route_code text NOT NULL,
    source_object_kind text DEFAULT 'table'::text NOT NULL,
    source_schema text NOT NULL,
    source_table text NOT NULL,
    sql_event text NOT NULL,
    domain text NOT NULL,
    type text NOT NULL,
    stream text,
    enabled boolean DEFAULT false NOT NULL,
    dry_run boolean DEFAULT true NOT NULL,
    fail_closed boolean DEFAULT true NOT NULL,
    idempotency_policy text DEFAULT 'change'::text NOT NULL,
    payload_columns text[] DEFAULT '{}'::text[] NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    CONSTRAINT idempotency_policy_is_known CHECK ((idempotency_policy = ANY (ARRAY['change'::text, 'transaction'::text]))),
    CONSTRAINT route_code_is_a_plain_name CHECK ((route_code ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'::text)),
    CONSTRAINT source_is_not_tidemark CHECK ((source_schema <> ALL (ARRAY['tidemark'::text, 'pg_catalog'::text, 'information_schema'::text]))),
    CONSTRAINT source_object_kind_is_table CHECK ((source_object_kind = 'table'::text)),
    CONSTRAINT sql_event_is_known CHECK ((sql_event = ANY (ARRAY['insert'::text, 'update'::text, 'delete'::text, 'truncate'::text]))),
    CONSTRAINT truncate_has_no_columns CHECK (((sql_event <> 'truncate'::text) OR (payload_columns = '{}'::text[])))
);
ALTER TABLE tidemark.inbound_route OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.inbound_route IS 'Which changes of which tables become events. A new route is off and in dry run; the table''s trigger comes with tidemark.capture_attach. Source: S1 iu_sql_event_route.';
COMMENT ON COLUMN tidemark.inbound_route.id IS 'Short number used in evidence.';
COMMENT ON COLUMN tidemark.inbound_route.route_code IS 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
COMMENT ON COLUMN tidemark.inbound_route.source_object_kind IS 'table (default, and the only kind).';
COMMENT ON COLUMN tidemark.inbound_route.source_schema IS 'Schema of the table, as the catalog spells it.';
COMMENT ON COLUMN tidemark.inbound_route.source_table IS 'The table, as the catalog spells it.';
COMMENT ON COLUMN tidemark.inbound_route.sql_event IS 'insert, update, delete or truncate.';
COMMENT ON COLUMN tidemark.inbound_route.domain IS 'Domain of the events.';
COMMENT ON COLUMN tidemark.inbound_route.type IS 'Type of the events. While it is not registered or not enabled there is no event, and tidemark.captured says so.';
COMMENT ON COLUMN tidemark.inbound_route.stream IS 'Stream of the events; null (default): none.';
COMMENT ON COLUMN tidemark.inbound_route.enabled IS 'False (default): changes leave nothing. One update; the trigger may stay.';
COMMENT ON COLUMN tidemark.inbound_route.dry_run IS 'True (default): a change leaves a row in tidemark.captured, and no event.';
COMMENT ON COLUMN tidemark.inbound_route.fail_closed IS 'True (default): a transaction whose event cannot be written fails. False: it goes on without the event, and tidemark.captured says so.';
COMMENT ON COLUMN tidemark.inbound_route.idempotency_policy IS 'change (default): each change of a row is an event. transaction: the first change of a row in a transaction is, later ones in it are not; rows without a primary key as change.';
COMMENT ON COLUMN tidemark.inbound_route.payload_columns IS 'The contract: columns whose values the payload shows. Default none: metadata only.';
COMMENT ON COLUMN tidemark.inbound_route.description IS 'For people.';
CREATE FUNCTION tidemark.capture_body(relation regclass, route tidemark.inbound_route) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    written constant text := tidemark.capture_written(relation, route.sql_event, route.payload_columns, route.idempotency_policy);
    general constant text := (select p.prosrc from pg_proc p where p.pronamespace = 'tidemark'::regnamespace and p.proname = 'capture');
    schema_name name;
    table_name name;
    own text := '';
begin
    select n.nspname, c.relname into schema_name, table_name
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = relation;
    if written is not null then
        own := format($own$
    -- Made by tidemark.capture_make. What follows below is tidemark.capture, for when this does not fit: the table is
    -- another than it was, the route is in dry run, …
    if tg_relid = %3$s and tg_table_schema = %1$L and tg_table_name = %2$L and tg_op = %4$L then
        select r.id, r.route_code, r.domain, r.type, r.stream, t.unchecked, t.metadata_only, t.schema,
               r.payload_columns = %5$L and r.idempotency_policy = %6$L and r.domain = %11$L and r.type = %12$L and t.type is not null
               and r.fail_closed and not r.dry_run and %7$s as fits
        into route
        from tidemark.inbound_route r
        left join tidemark.event_type t on t.domain = %11$L and t.type = %12$L and t.enabled
        where r.source_schema = %1$L and r.source_table = %2$L and r.sql_event = %9$L and r.enabled%8$s;
        if not found then
            return null;
        end if;
        if route.fits then
            %10$s;
            get diagnostics n = row_count;
        end if;
    end if;
$own$,
            schema_name, table_name, relation::oid, upper(route.sql_event), route.payload_columns, route.idempotency_policy,
            case route.sql_event when 'truncate' then 'true' else format('tidemark.capture_is_made(%s, %L)', relation::oid, tidemark.capture_fingerprint(relation)) end,
            case route.sql_event when 'truncate' then '' when 'delete' then ' and exists (select from tidemark_old)'
                else ' and exists (select from tidemark_new)' end,
            route.sql_event, written, route.domain, route.type);
    end if;
    return regexp_replace(general, '\n    -- Here stands[^\n]*\n', replace(own, '\', '\\'));
end
$_$;
ALTER FUNCTION tidemark.capture_body(relation regclass, route tidemark.inbound_route) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_body(relation regclass, route tidemark.inbound_route) IS 'tidemark.capture for one inbound route: with its statement written out, which PostgreSQL then plans once a session.';
CREATE FUNCTION tidemark.capture_check() RETURNS TABLE(object text, status text, problem text, hint text)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with route as (
        select r.*, format('%I.%I', r.source_schema, r.source_table) as name, c.oid as relation, c.relkind, c.relispartition,
               a.relation is not null as attached, a.enabled as fires, a.as_attached, e.type is not null as registered, e.metadata_only
        from tidemark.inbound_route r
        left join (pg_class c join pg_namespace n on n.oid = c.relnamespace)
            on n.nspname = r.source_schema and c.relname = r.source_table
        left join tidemark.capture_attached a on a.relation = c.oid and a.operation = r.sql_event
        left join tidemark.event_type e on e.domain = r.domain and e.type = r.type and e.enabled
    ), key as (
        select i.indrelid as relation, array_agg(a.attname::text) as columns
        from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
        where i.indisprimary group by 1
    ), found (object, status, problem, hint) as (
        -- A route may come before its table: a pack's does.
        select 'route ' || r.route_code, case when r.enabled then 'fail' else 'warn' end, format('there is no table %s', r.name),
               'Was it renamed? Change source_schema or source_table.'
        from route r where r.relation is null
        union all
        select 'route ' || r.route_code, case when r.enabled then 'fail' else 'warn' end,
               format('%s is %s, not a table', r.name, case r.relkind when 'v' then 'a view' when 'm' then 'a materialized view' when 'f' then 'a foreign table' else 'something else' end),
               'Capture the tables below it: change source_schema or source_table.'
        from route r where r.relkind not in ('r', 'p')
        union all
        select 'route ' || r.route_code, 'fail', format('%s is not attached for %s: its changes leave nothing', r.name, r.sql_event),
               format('As its owner: tidemark capture attach %s --reason …', r.name)
        from route r where r.enabled and r.relation is not null and r.relkind in ('r', 'p') and not r.attached
        union all
        select 'route ' || r.route_code, 'fail', format('%s has no column %s that can be shown', r.name, c.missing), 'Change payload_columns.'
        from route r cross join lateral tidemark.capture_columns(r.relation, r.payload_columns) c
        where r.relation is not null and c.missing is not null
        union all
        select 'route ' || r.route_code, case when r.enabled then 'fail' else 'warn' end,
               format('event type %s/%s is not registered or not enabled: there are no events', r.domain, r.type),
               format('tidemark type set %s %s --enabled', r.domain, r.type)
        from route r where not r.registered
        union all
        select 'route ' || r.route_code, 'fail',
               format('column %I of %s is a forbidden key, and domain %s is metadata-only: the events are refused', w.name, r.name, r.domain),
               'Take it out of payload_columns, or see tidemark.forbidden_key.'
        from route r left join key k on k.relation = r.relation
        cross join lateral unnest(r.payload_columns || case when r.sql_event <> 'truncate' then k.columns end) w (name)
        where r.metadata_only and tidemark.forbidden_key_in(jsonb_build_object(w.name, null)) is not null
        union all
        select 'table ' || x.name, 'warn', 'it has no primary key: its events have no key and name no row', 'Add one.'
        from (select distinct r.name, r.relation from route r where r.attached and r.sql_event <> 'truncate') x
        where not exists (select from key k where k.relation = x.relation)
        union all
        select 'table ' || x.name, 'warn', 'other tables inherit from it: what is written to them by their own names is not captured', 'Attach these too.'
        from (select distinct r.name, r.relation from route r where r.attached and r.relkind = 'r') x
        where exists (select from pg_inherits i where i.inhparent = x.relation)
        union all
        select 'table ' || x.name, 'warn', 'it is a partition: what is written by the name of its parent is not captured', 'Attach the parent.'
        from (select distinct r.name from route r where r.attached and r.relispartition) x
        union all
        select format('trigger %I of %I.%I', a.trigger_name, a.schema_name, a.table_name), 'fail',
               case when not a.as_attached then 'it is not as attach makes it: while its route is on, writers fail'
                    when a.enabled = 'D' then 'it is disabled: changes leave nothing'
                    else 'it fires for replicated changes only: others leave nothing' end,
               case when a.as_attached then format('alter table %I.%I enable trigger %I', a.schema_name, a.table_name, a.trigger_name)
                    else format('tidemark capture detach %I.%I, and attach it again', a.schema_name, a.table_name) end
        from tidemark.capture_attached a where not a.as_attached or a.enabled not in ('O', 'A')
        union all
        select format('trigger %I of %I.%I', a.trigger_name, a.schema_name, a.table_name), 'warn',
               'it has no inbound route: it costs, and does nothing', format('tidemark capture detach %I.%I', a.schema_name, a.table_name)
        from tidemark.capture_attached a
        where not exists (select from route r where r.relation = a.relation and r.sql_event = a.operation)
        union all
        select 'function tidemark.' || c.object, 'fail', 'changed by hand since it was installed', 'tidemark migrate up'
        from tidemark.code c join pg_proc p on p.pronamespace = 'tidemark'::regnamespace and p.proname = c.object
        where c.object in ('capture', 'capture_sql', 'capture_columns', 'capture_fits') and c.installed is distinct from md5(pg_get_functiondef(p.oid))
        union all
        select format('function tidemark.%I', s.function_name), 'warn',
               format('not what would be made now for %s of %I.%I: captures take the long way', s.operation, s.schema_name, s.table_name),
               'select tidemark.capture_refresh()'
        from tidemark.capture_stale s
    )
    select f.object, f.status, f.problem, f.hint from found f order by f.status, f.object, f.problem
$$;
ALTER FUNCTION tidemark.capture_check() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_check() IS 'What is wrong with inbound routes and their triggers, a row each: status fail (changes are lost, or writers fail) or warn. No row: nothing. Reads the catalogs only.';
CREATE FUNCTION tidemark.capture_columns(relation regclass, contract text[], OUT names text, OUT key_text text, OUT key_json text, OUT old_key_json text, OUT key_changed text, OUT changed text, OUT shown text, OUT bytes text, OUT may_fail boolean, OUT missing text) RETURNS record
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
begin
    with attribute as (
        select a.attnum, a.attname::text as name, c.ord as in_contract, k.ord as in_key, t.typlen = -1 as of_any_length,
               coalesce(nullif(t.typbasetype, 0), t.oid) = 'json'::regtype as is_json,
               case when t.typtype <> 'd' and t.oid < 16384 then '%s'
                    when t.typtype = 'd' and b.typtype <> 'd' and b.oid < 16384 then '%s::' || format_type(b.oid, null)
                    else 'nullif(format(''%%s'', %1$s), case when %1$s is null then '''' end)' end as json
        from pg_attribute a
        join pg_type t on t.oid = a.atttypid
        left join pg_type b on b.oid = t.typbasetype
        left join unnest(contract) with ordinality c (name, ord) on c.name = a.attname and a.attgenerated <> 'v'
        left join (pg_index i cross join unnest(i.indkey::int2[]) with ordinality k (attnum, ord))
            on i.indrelid = relation and i.indisprimary and k.ord <= i.indnkeyatts and k.attnum = a.attnum
        where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
    ), expression as (
        select a.*, format('format(''%%s'', n.c%s)', a.attnum) as text, format('%L, %s', a.name, format(a.json, 'n.c' || a.attnum)) as pair,
               format('%L, %s', a.name, format(a.json, 'o.c' || a.attnum)) as old_pair,
               format('record_image_ne(row(n.c%1$s), row(o.c%1$s))', a.attnum) as differs
        from attribute a
    )
    select coalesce(string_agg(format('x.%I as c%s', e.name, e.attnum), ', ' order by e.attnum), '1 as c0'),
           coalesce(case when count(e.in_key) > 1 then 'concat_ws('','', ' || string_agg(e.text, ', ' order by e.in_key) filter (where e.in_key > 0) || ')'
                         else max(e.text) filter (where e.in_key > 0) end, 'null::text'),
           coalesce('jsonb_build_object(' || string_agg(e.pair, ', ' order by e.in_key) filter (where e.in_key > 0) || ')', 'null::jsonb'),
           coalesce('jsonb_build_object(' || string_agg(e.old_pair, ', ' order by e.in_key) filter (where e.in_key > 0) || ')', 'null::jsonb'),
           coalesce(string_agg(e.differs, ' or ') filter (where e.in_key > 0), 'false'),
           'array_remove(array[' || coalesce(string_agg(format('case when %s then %L end', e.differs, e.name), ', ' order by e.attnum), '') || ']::text[], null)',
           -- A function takes 100 arguments at most.
           coalesce((select string_agg('jsonb_build_object(' || x.pairs || ')', ' || ' order by x.chunk)
                     from (select (s.in_contract - 1) / 50 as chunk, string_agg(s.pair, ', ' order by s.in_contract) as pairs
                           from expression s where s.in_contract > 0 group by 1) x), 'null::jsonb'),
           coalesce(string_agg(format('coalesce(octet_length(format(''%%s'', n.c%s)), 0)::bigint', e.attnum), ' + ')
                    filter (where e.in_contract > 0 and e.of_any_length), '0'),
           coalesce(bool_or(e.is_json) filter (where e.in_contract > 0), false),
           (select string_agg(quote_ident(w.name), ', ' order by w.ord) from unnest(contract) with ordinality w (name, ord)
            where not exists (select from attribute a where a.name = w.name and a.in_contract > 0))
    into names, key_text, key_json, old_key_json, key_changed, changed, shown, bytes, may_fail, missing
    from expression e;
end
$_$;
ALTER FUNCTION tidemark.capture_columns(relation regclass, contract text[], OUT names text, OUT key_text text, OUT key_json text, OUT old_key_json text, OUT key_changed text, OUT changed text, OUT shown text, OUT bytes text, OUT may_fail boolean, OUT missing text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_columns(relation regclass, contract text[], OUT names text, OUT key_text text, OUT key_json text, OUT old_key_json text, OUT key_changed text, OUT changed text, OUT shown text, OUT bytes text, OUT may_fail boolean, OUT missing text) IS 'SQL over a row n of a transition table (and o, the row before), whose columns are named c and their number: the primary key as text and as JSON, which columns changed, the contract''s columns as JSON and their bytes. names: the columns of the table x under these names, which no variable can be taken for. may_fail: JSON among them may be unreadable. missing: columns of the contract that the table has not, or cannot show.';
CREATE FUNCTION tidemark.capture_detach(relation regclass, reason text, dry_run boolean DEFAULT false) RETURNS TABLE(operation text, statement text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '3s'
    AS $$
#variable_conflict use_column
declare
    statements text[] := '{}';
    line text;
begin
    for operation, statement in
        select t.operation, format('drop trigger %I on %s', t.trigger_name, capture_detach.relation)
        from tidemark.capture_attached t where t.relation = capture_detach.relation order by t.trigger_name
    loop
        return next;
        statements := statements || statement;
    end loop;
    if statements = '{}' then
        raise exception using errcode = 'TM004', message = format('%s is not attached', capture_detach.relation),
            hint = 'See: select * from tidemark.capture_list;';
    elsif not dry_run then
        perform tidemark.capture_record('capture_detach', capture_detach.relation, capture_detach.reason, statements);
        foreach line in array statements loop
            execute line;
        end loop;
        perform tidemark.capture_refresh();
    end if;
end
$$;
ALTER FUNCTION tidemark.capture_detach(relation regclass, reason text, dry_run boolean) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_detach(relation regclass, reason text, dry_run boolean) IS 'Drops every trigger that calls tidemark.capture from a table of the caller''s, and returns the SQL. dry_run (default false): returns it only. Gives up after 3 s of waiting for the table (55P03): call it again. To stop capturing for a while disable the inbound route, which waits for nobody. Raises TM004 where there is none.';
CREATE FUNCTION tidemark.capture_findings() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    r record;
    unwritten text[] := '{}';
    gap tidemark.capture_gap;
begin
    -- A trigger that does not fire, and may be back before anything compares: a few rows of the catalogs.
    for r in
        select c.oid as relation, format('%I.%I', n.nspname, c.relname) as name, string_agg(i.sql_event, ', ' order by i.sql_event) as deaf
        from tidemark.inbound_route i
        join pg_namespace n on n.nspname = i.source_schema
        join pg_class c on c.relnamespace = n.oid and c.relname = i.source_table and c.relkind in ('r', 'p')
        where i.enabled and not i.dry_run and not exists (
            select from tidemark.capture_attached a
            where a.relation = c.oid and a.operation = i.sql_event and a.as_attached and a.enabled in ('O', 'A'))
          and not exists (select from tidemark.capture_gap g where g.name = format('%I.%I', n.nspname, c.relname) and g.resolved_at is null)
        group by 1, 2
    loop
        gap.relation := r.relation;
        gap.name := r.name;
        select c.at, c.snapshot into gap.since, gap.snapshot from tidemark.capture_checkpoint c where c.name = r.name;
        if not found then
            gap.since := clock_timestamp();
            gap.snapshot := pg_current_snapshot();
        end if;
        gap.detail := format('its trigger for %s is missing, altered or disabled', r.deaf);
        perform tidemark.capture_gap_open(gap);
    end loop;
    for r in
        select i.route_code, sum(c.rows) as changes, max(c.at) as last, (array_agg(c.reason order by c.at desc))[1] as reason
        from tidemark.captured c join tidemark.inbound_route i on i.id = c.route_id
        where c.at > clock_timestamp() - interval '1 hour'
          and (c.outcome = 'failed' or c.outcome = 'unregistered' and not exists (
              select from tidemark.event_type t where t.domain = i.domain and t.type = i.type and t.enabled))
        group by 1 order by 1
    loop
        unwritten := unwritten || r.route_code;
        -- Counted once for what is new.
        if not exists (select from tidemark.finding f where f.kind = 'capture_unwritten' and f.subject = r.route_code
                       and f.closed_at is null and f.last_seen_at >= r.last) then
            perform tidemark.finding_open('capture_unwritten', r.route_code, 'high',
                format('%s of the last hour became no event: %s', case r.changes when 1 then '1 change' else r.changes || ' changes' end, r.reason));
        end if;
    end loop;
    perform tidemark.finding_close(f.kind, f.subject)
    from tidemark.finding f
    where f.kind = 'capture_unwritten' and f.closed_at is null and f.subject <> all (unwritten);
end
$$;
ALTER FUNCTION tidemark.capture_findings() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_findings() IS 'tidemark.maintain''s part for captures: the finding capture_unwritten for each inbound route of which changes became no event in the last hour (its type is not registered, or the event could not be written and the route does not fail closed). Not in the users'' transactions, which must not wait for each other. Also the finding capture_gap, with its gap, for each table whose enabled route has no trigger that fires.';
CREATE FUNCTION tidemark.capture_fingerprint(relation oid) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select md5(concat(
        (select string_agg(concat_ws(' ', a.attnum, a.atttypid, a.attgenerated, a.attname), ',' order by a.attnum)
         from pg_attribute a where a.attrelid = relation and a.attnum > 0 and not a.attisdropped),
        ';',
        (select concat_ws(' ', i.indkey, i.indnkeyatts) from pg_index i where i.indrelid = relation and i.indisprimary)))
$$;
ALTER FUNCTION tidemark.capture_fingerprint(relation oid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_fingerprint(relation oid) IS 'Of what tidemark.capture_columns reads of a table: its columns and its primary key.';
CREATE FUNCTION tidemark.capture_fits(bytes bigint, place text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    payload_limit bigint;
begin
    -- Before they are made JSON: what is far too large costs no memory. tidemark.event_check looks at the whole payload.
    if bytes > 1000 then
        payload_limit := tidemark.payload_limit();
        if bytes > payload_limit then
            raise exception using errcode = 'TM005',
                message = format('%sthe columns of its contract have %s bytes, and the payload must have at most %s', place, bytes, payload_limit),
                hint = 'Take the large column out of payload_columns: send a reference. Or raise the setting emit.payload_limit.';
        end if;
    end if;
    return true;
end
$$;
ALTER FUNCTION tidemark.capture_fits(bytes bigint, place text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_fits(bytes bigint, place text) IS 'True, or raises TM005 where the columns of a contract hold more bytes in a row than the setting emit.payload_limit allows; place begins the message.';
CREATE FUNCTION tidemark.capture_gap_accept(id bigint, reason text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    gap constant tidemark.capture_gap := (
        select g from tidemark.capture_gap g where g.id = capture_gap_accept.id and g.resolved_at is null);
begin
    if gap.id is null then
        raise exception using errcode = 'TM004', message = format('there is no open gap %s', id),
            hint = 'See: select * from tidemark.capture_gap where resolved_at is null;';
    elsif coalesce(btrim(reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'to accept a gap needs a reason',
            hint = 'Its changes will never be events. Say why that may be so: it is recorded in tidemark.audit.';
    end if;
    perform tidemark.capture_gap_resolve(gap, 'accepted', reason);
end
$$;
ALTER FUNCTION tidemark.capture_gap_accept(id bigint, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_gap_accept(id bigint, reason text) IS 'Accepts that the changes of a gap have no events, for good; audited. Raises TM004 where there is no such open gap, TM005 without a reason.';
CREATE FUNCTION tidemark.capture_gap_emit(id bigint, reason text DEFAULT 'emitted from the table as it is'::text) RETURNS TABLE(emitted bigint, complete boolean)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    SET "IntervalStyle" TO 'postgres'
    SET "TimeZone" TO 'UTC'
    SET bytea_output TO 'hex'
    SET extra_float_digits TO '1'
    AS $_$
#variable_conflict use_variable
declare
    page constant integer := 1000;
    gap constant tidemark.capture_gap := (select g from tidemark.capture_gap g where g.id = capture_gap_emit.id and g.resolved_at is null);
    route tidemark.inbound_route;
    part record;
    found_rows jsonb;
begin
    if gap.id is null then
        raise exception using errcode = 'TM004', message = format('there is no open gap %s', id),
            hint = 'See: select * from tidemark.capture_gap where resolved_at is null;';
    end if;
    route := tidemark.capture_gap_route(gap.name);
    select c.* into part from tidemark.capture_columns(gap.name::regclass, route.payload_columns) c;
    if part.missing is not null or part.key_json = 'null::jsonb' then
        raise exception using errcode = 'TM005',
            message = case when part.missing is not null then format('inbound route %s: %s has no column %s that can be shown', route.route_code, gap.name, part.missing)
                      else format('%s has no primary key: which of its rows have no event cannot be told', gap.name) end,
            hint = 'Change payload_columns, or accept the gap.';
    end if;
    execute format($q$
        select jsonb_agg(k.shown) from (
            select jsonb_build_object('ref', %1$s, 'primary_key', %2$s) || case when $5 then jsonb_build_object('columns', %3$s) else '{}' end as shown
            from (select x.xmin as written, %4$s from %5$s x) n
            where not pg_visible_in_snapshot(tidemark.full_xid(n.written, $3), $1)
              and not exists (
                  select from tidemark.outbox o
                  where o.subject_table = $2 and o.subject_ref = %1$s and o.created_at > $4 - interval '1 day'
                    and not pg_visible_in_snapshot(tidemark.full_xid(o.xmin, $3), $1))
            limit %6$s) k$q$,
        part.key_text, part.key_json, part.shown, part.names, gap.name, page)
    into found_rows using gap.snapshot, gap.name, pg_snapshot_xmax(pg_current_snapshot()), gap.since, cardinality(route.payload_columns) > 0;
    complete := coalesce(jsonb_array_length(found_rows), 0) < page;
    emitted := tidemark.capture_gap_write(gap.id, found_rows, complete, capture_gap_emit.reason);
    return next;
end
$_$;
ALTER FUNCTION tidemark.capture_gap_emit(id bigint, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_gap_emit(id bigint, reason text) IS 'Emits up to 1000 rows of a gap''s table that were written since and have no event, as they are now: their payload has "reconciled": true, and the operation insert where inserts are captured, else update. complete: there were no more; then the gap is over, unless changes were counted that no row shows (others), which can only be accepted. Again, or twice at once: each row is emitted once. Needs SELECT on the table. Raises TM004, TM005, and what tidemark.emit raises for a row.';
CREATE TABLE tidemark.capture_gap (
    id bigint NOT NULL,
    relation oid NOT NULL,
    name text NOT NULL,
    since timestamp with time zone NOT NULL,
    snapshot pg_snapshot NOT NULL,
    keys text[] DEFAULT '{}'::text[] NOT NULL,
    rows bigint DEFAULT 0 NOT NULL,
    others bigint DEFAULT 0 NOT NULL,
    sampled boolean DEFAULT false NOT NULL,
    detail text NOT NULL,
    found_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    emitted bigint DEFAULT 0 NOT NULL,
    resolved_at timestamp with time zone,
    resolution text,
    resolved_by text,
    reason text,
    CONSTRAINT resolution_is_known CHECK ((resolution = ANY (ARRAY['emitted'::text, 'accepted'::text]))),
    CONSTRAINT resolved_is_whole CHECK ((((resolved_at IS NULL) = (resolution IS NULL)) AND ((resolved_at IS NULL) = (resolved_by IS NULL))))
);
ALTER TABLE tidemark.capture_gap OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.capture_gap IS 'Changes of captured tables that have no event. One open row for a table, which what is found later joins; it stays until its rows were emitted (tidemark.capture_gap_emit) or it was accepted (tidemark.capture_gap_accept).';
COMMENT ON COLUMN tidemark.capture_gap.id IS 'Number.';
COMMENT ON COLUMN tidemark.capture_gap.relation IS 'The table, when it was found.';
COMMENT ON COLUMN tidemark.capture_gap.name IS 'Its quoted name.';
COMMENT ON COLUMN tidemark.capture_gap.since IS 'The changes are younger than this.';
COMMENT ON COLUMN tidemark.capture_gap.snapshot IS 'What was visible then.';
COMMENT ON COLUMN tidemark.capture_gap.keys IS 'Keys of rows without event, 1,000 at most.';
COMMENT ON COLUMN tidemark.capture_gap.rows IS 'Rows found without event.';
COMMENT ON COLUMN tidemark.capture_gap.others IS 'Changes counted beyond these rows: deleted rows, updates, rows without a key. They can only be accepted.';
COMMENT ON COLUMN tidemark.capture_gap.sampled IS 'True: there may be more rows than were looked at.';
COMMENT ON COLUMN tidemark.capture_gap.detail IS 'What was found, latest.';
COMMENT ON COLUMN tidemark.capture_gap.found_at IS 'When it was found first.';
COMMENT ON COLUMN tidemark.capture_gap.emitted IS 'Rows emitted since.';
COMMENT ON COLUMN tidemark.capture_gap.resolved_at IS 'When it was over; null: open.';
COMMENT ON COLUMN tidemark.capture_gap.resolution IS 'emitted or accepted.';
COMMENT ON COLUMN tidemark.capture_gap.resolved_by IS 'Who did it.';
COMMENT ON COLUMN tidemark.capture_gap.reason IS 'Why, as given.';
CREATE FUNCTION tidemark.capture_gap_open(gap tidemark.capture_gap) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    insert into tidemark.capture_gap as g (relation, name, since, snapshot, keys, rows, others, sampled, detail)
    values (gap.relation, gap.name, gap.since, gap.snapshot, coalesce(gap.keys[1:1000], '{}'), coalesce(gap.rows, 0), coalesce(gap.others, 0),
            coalesce(gap.sampled, false) or coalesce(cardinality(gap.keys), 0) > 1000, gap.detail)
    -- The first since is the one to emit from.
    on conflict (name) where resolved_at is null do update
    set keys = (g.keys || excluded.keys)[1:1000], rows = g.rows + excluded.rows, others = g.others + excluded.others, detail = excluded.detail,
        sampled = g.sampled or excluded.sampled or cardinality(g.keys) + cardinality(excluded.keys) > 1000;
    perform tidemark.finding_open('capture_gap', gap.name, 'high', gap.detail);
end
$$;
ALTER FUNCTION tidemark.capture_gap_open(gap tidemark.capture_gap) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_gap_open(gap tidemark.capture_gap) IS 'Puts a gap on record, with the finding capture_gap; joins the one that is open for the table.';
CREATE FUNCTION tidemark.capture_gap_resolve(gap tidemark.capture_gap, resolution text, reason text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    resolved tidemark.capture_gap;
begin
    update tidemark.capture_gap g
    set resolved_at = clock_timestamp(), resolution = capture_gap_resolve.resolution, resolved_by = session_user, reason = capture_gap_resolve.reason
    where g.id = gap.id and g.resolved_at is null returning g.* into resolved;
    if found then
        insert into tidemark.audit (action, object, reason, before, after)
        values ('capture_gap_' || resolution, 'capture_gap ' || gap.id, capture_gap_resolve.reason, to_jsonb(gap), to_jsonb(resolved));
        perform tidemark.finding_close('capture_gap', gap.name);
    end if;
end
$$;
ALTER FUNCTION tidemark.capture_gap_resolve(gap tidemark.capture_gap, resolution text, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_gap_resolve(gap tidemark.capture_gap, resolution text, reason text) IS 'Ends an open gap and its finding; audited.';
CREATE FUNCTION tidemark.capture_gap_route(name text) RETURNS tidemark.inbound_route
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    route tidemark.inbound_route;
begin
    select r.* into route from tidemark.inbound_route r
    where format('%I.%I', r.source_schema, r.source_table) = capture_gap_route.name and r.sql_event in ('insert', 'update') and r.enabled and not r.dry_run
    order by r.sql_event limit 1;
    if not found then
        raise exception using errcode = 'TM005', message = format('%s has no enabled inbound route for inserts or updates that is not in dry run', name),
            hint = 'Rows are emitted as one of these. What has no row any more can only be accepted.';
    elsif not exists (select from tidemark.capture_attached a where a.schema_name = route.source_schema and a.table_name = route.source_table
                      and a.operation = route.sql_event and a.as_attached and a.enabled in ('O', 'A')) then
        raise exception using errcode = 'TM005', message = format('%s is not captured for %s at the moment: rows would be missed while others are emitted', name, route.sql_event),
            hint = format('As its owner: tidemark capture attach %s --reason …, or alter table … enable trigger ….', name);
    end if;
    return route;
end
$$;
ALTER FUNCTION tidemark.capture_gap_route(name text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_gap_route(name text) IS 'The inbound route by which rows of a table''s gap are emitted: of inserts, else of updates. Raises TM005 where there is none, or its trigger does not fire.';
CREATE FUNCTION tidemark.capture_gap_write(id bigint, rows_ jsonb, complete boolean, reason text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    gap tidemark.capture_gap;
    route tidemark.inbound_route;
    emitted bigint := 0;
begin
    -- Two at once: the second waits, and finds the rows emitted.
    select g.* into gap from tidemark.capture_gap g where g.id = capture_gap_write.id and g.resolved_at is null for update;
    if not found then
        return 0;
    end if;
    route := tidemark.capture_gap_route(gap.name);
    if rows_ is not null then
        select count(*) into emitted
        from tidemark.emit_all((
            select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                'domain', route.domain, 'type', route.type, 'stream', route.stream, 'subject_table', gap.name,
                'key', r ->> 'ref', 'subject_ref', r ->> 'ref',
                'idempotency_key', format('tidemark:gap/%s/%s', gap.id, encode(sha256(convert_to(r ->> 'primary_key', 'UTF8')), 'hex'))))
                || jsonb_build_object('payload', jsonb_build_object(
                    'schema', route.source_schema, 'table', route.source_table, 'operation', route.sql_event, 'reconciled', true)
                    || (r - 'ref')) order by e.ord)
            from jsonb_array_elements(rows_) with ordinality e (r, ord)), true, true);
        update tidemark.capture_gap g set emitted = g.emitted + jsonb_array_length(rows_) where g.id = gap.id;
    end if;
    if complete and gap.others = 0 then
        perform tidemark.capture_gap_resolve(gap, 'emitted', reason);
    end if;
    return emitted;
end
$$;
ALTER FUNCTION tidemark.capture_gap_write(id bigint, rows_ jsonb, complete boolean, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_gap_write(id bigint, rows_ jsonb, complete boolean, reason text) IS 'Behind tidemark.capture_gap_emit: emits rows ({"ref", "primary_key", "columns"}) of a gap''s table, each once for the gap; complete: there are no more, and the gap is over unless changes were counted that no row shows.';
CREATE FUNCTION tidemark.capture_guard("on" boolean, reason text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if not (select r.rolsuper from pg_roles r where r.rolname = current_user) then
        raise exception using errcode = '42501', message = 'the guard is an event trigger, which only a superuser may make or drop',
            hint = format('As a superuser: select tidemark.capture_guard(%L, ''why'');', capture_guard."on");
    end if;
    perform tidemark.capture_record('capture_guard', null, capture_guard.reason, array[capture_guard."on"::text]);
    drop event trigger if exists tidemark_capture_guard;
    if capture_guard."on" then
        create event trigger tidemark_capture_guard on ddl_command_end when tag in ('CREATE TRIGGER')
            execute function tidemark.capture_guard_check();
    end if;
    return capture_guard."on";
end
$$;
ALTER FUNCTION tidemark.capture_guard("on" boolean, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_guard("on" boolean, reason text) IS 'Puts up (true) or takes down (false) the event trigger tidemark_capture_guard, which refuses triggers that call functions of Tidemark on tables without an inbound route. Raises 42501 for who is no superuser, TM005 without a reason.';
CREATE FUNCTION tidemark.capture_guard_check() RETURNS event_trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    stray record;
begin
    select t.tgname, c.relname, n.nspname, p.proname into stray
    from pg_event_trigger_ddl_commands() d
    join pg_trigger t on t.oid = d.objid
    join pg_proc p on p.oid = t.tgfoid
    join pg_class c on c.oid = t.tgrelid
    join pg_namespace n on n.oid = c.relnamespace
    where d.classid = 'pg_trigger'::regclass and p.pronamespace = 'tidemark'::regnamespace and n.nspname <> 'tidemark'
      and not exists (select from tidemark.inbound_route r where r.source_schema = n.nspname and r.source_table = c.relname)
    limit 1;
    if found then
        raise exception using errcode = 'TM005',
            message = format('trigger %I of %I.%I calls tidemark.%s, and the table has no inbound route', stray.tgname, stray.nspname, stray.relname, stray.proname),
            hint = 'Register it first: tidemark.inbound_route_set. The guard is event trigger tidemark_capture_guard.';
    end if;
end
$$;
ALTER FUNCTION tidemark.capture_guard_check() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_guard_check() IS 'Event trigger of tidemark.capture_guard: raises TM005 where a trigger would call a function of Tidemark on a table without an inbound route.';
CREATE FUNCTION tidemark.capture_is_made(relation oid, fingerprint text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select tidemark.capture_fingerprint(relation) = fingerprint
       -- A trigger by hand, without transition tables, could have a table of the session's own for one.
       and not exists (
           select from pg_trigger t
           where t.tgrelid = relation and t.tgfoid::regproc::text ~ '^tidemark\.capture_'
             and (t.tgtype & 67 <> 0 or t.tgnewtable is null and t.tgtype & 20 > 0 or t.tgoldtable is null and t.tgtype & 24 > 0))
$$;
ALTER FUNCTION tidemark.capture_is_made(relation oid, fingerprint text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_is_made(relation oid, fingerprint text) IS 'Whether a function of tidemark.capture_make still fits its table: capture_fingerprint is the same, and no trigger is other than attached.';
CREATE FUNCTION tidemark.capture_make(route_code text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '3s'
    AS $$
declare
    route tidemark.inbound_route;
    relation regclass;
    name text;
    body text;
begin
    select r.* into route from tidemark.inbound_route r where r.route_code = capture_make.route_code;
    -- Not by to_regclass: the log's owner may not use the schema.
    relation := (select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = route.source_schema and c.relname = route.source_table);
    if relation is null then
        raise exception using errcode = 'TM004', message = format('there is no inbound route "%s", or not its table', capture_make.route_code);
    end if;
    name := format('capture_%s', route.id);
    -- Two at once would fail with "tuple concurrently updated". Captures and readers pass this mode by. Not an advisory
    -- lock, which any login could hold.
    begin
        lock table tidemark.inbound_route in share update exclusive mode;
    exception when lock_not_available then
        raise exception using errcode = 'lock_not_available', message = 'another session is making functions of captured tables',
            hint = 'Call it again. Who holds it: select * from tidemark.lock_blame(''tidemark.inbound_route'');';
    end;
    body := tidemark.capture_body(relation, route);
    if exists (select from pg_proc p where p.pronamespace = 'tidemark'::regnamespace and p.proname = name and p.prosrc = body) then
        return null;
    end if;
    -- A plan for the values of each statement would be no better, and be made each time.
    execute format('create or replace function tidemark.%I() returns trigger language plpgsql volatile security definer '
        'set search_path = pg_catalog, pg_temp set datestyle = ''ISO, YMD'' set intervalstyle = ''postgres'' set timezone = ''UTC'' '
        'set bytea_output = ''hex'' set extra_float_digits = 1 set plan_cache_mode = force_generic_plan as %L', name, body);
    execute format('revoke all on function tidemark.%I() from public', name);
    execute format('grant execute on function tidemark.%I() to tidemark_admin', name);
    execute format('comment on function tidemark.%I() is %L', name, format('tidemark.capture for inbound route %s. Made by tidemark.capture_make.', route.route_code));
    return name;
end
$$;
ALTER FUNCTION tidemark.capture_make(route_code text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_make(route_code text) IS 'Makes the trigger function tidemark.capture_<id> for an inbound route, as its table is now, and returns its name; null: it is so already. Called by tidemark.capture_attach, and by capture_refresh when table or route changed. Raises TM004 where there is no route or no table.';
CREATE FUNCTION tidemark.capture_reconcile(sample integer DEFAULT 1000) RETURNS TABLE(relation text, status text, changes bigint, events bigint, captured bigint, missing_keys text[], gap bigint, detail text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "DateStyle" TO 'ISO, YMD'
    SET "IntervalStyle" TO 'postgres'
    SET "TimeZone" TO 'UTC'
    SET bytea_output TO 'hex'
    SET extra_float_digits TO '1'
    AS $_$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    one record;
    last tidemark.capture_checkpoint;
    now_ tidemark.capture_checkpoint;
    part record;
    looked bigint;
    old tidemark.capture_checkpoint;
    found_gap tidemark.capture_gap;
begin
    for one in
        select c.oid as id, format('%I.%I', n.nspname, c.relname) as name, array_agg(r.id) as routes, array_agg(r.sql_event) as operations,
               array_agg('inbound_route ' || r.route_code) as objects,
               string_agg(r.sql_event, ', ' order by r.sql_event) filter (where not r.dry_run and not exists (
                   select from tidemark.capture_attached a
                   where a.relation = c.oid and a.operation = r.sql_event and a.as_attached and a.enabled in ('O', 'A'))) as deaf
        from tidemark.inbound_route r
        join pg_namespace n on n.nspname = r.source_schema
        join pg_class c on c.relnamespace = n.oid and c.relname = r.source_table and c.relkind in ('r', 'p')
        where r.enabled group by 1, 2 order by 2
    loop
        relation := one.name;
        old := (select c from tidemark.capture_checkpoint c where c.name = one.name and c.relation <> one.id order by c.at desc limit 1);
        last := (select c from tidemark.capture_checkpoint c where c.relation = one.id);
        select one.id, at, pg_current_snapshot(), (select q.last_value from tidemark.outbox_seq_seq q),
               coalesce(sum(s.n_tup_ins), 0), coalesce(sum(s.n_tup_upd), 0), coalesce(sum(s.n_tup_del), 0), d.xact_rollback, d.stats_reset, one.name
        into now_
        from pg_stat_database d
        left join pg_stat_all_tables s on s.relid = one.id or s.relid in (select p.relid from pg_partition_tree(one.id) p)
        where d.datname = current_database() group by d.xact_rollback, d.stats_reset;
        changes := null; events := null; captured := null; missing_keys := null;
        found_gap := null; looked := 0; detail := null;
        if last.relation is null and old.relation is not null then
            status := 'gap';
            detail := format('it is another table than the one that was captured until %s', date_trunc('second', old.at));
        elsif last.relation is null then
            status := 'first';
            detail := 'nothing to compare with yet';
        elsif exists (select from tidemark.audit u where u.at >= last.at and u.object = any (one.objects)) then
            -- That a trigger was dropped and attached again is no reason: its route was on.
            status := 'unknown';
            detail := 'its routes were changed meanwhile';
        else
            events := (select count(*) from tidemark.outbox o
                       where o.subject_table = relation and o.created_at > last.at - interval '1 day'
                         and not pg_visible_in_snapshot(tidemark.full_xid(o.xmin, pg_snapshot_xmax(now_.snapshot)), last.snapshot)
                         and o.payload ->> 'operation' = any (one.operations) and o.payload ->> 'operation' <> 'truncate');
            -- Of the hour in which the last call was, a sum may be of before or after it: better none is called a gap.
            captured := (select coalesce(sum(c.rows), 0) from tidemark.captured c
                         where c.route_id = any (one.routes) and (c.at >= last.at or c.at = date_trunc('hour', last.at)));
            changes := case when 'insert' = any (one.operations) then now_.inserted - last.inserted else 0 end
                     + case when 'update' = any (one.operations) then now_.updated - last.updated else 0 end
                     + case when 'delete' = any (one.operations) then now_.deleted - last.deleted else 0 end;
            begin
                select c.* into part from tidemark.capture_columns(one.id, '{}') c;
                -- What is there now and was written since the last time has an event, or is in captured, unless a part
                -- of the operations only is captured.
                if part.key_json <> 'null::jsonb' and 'insert' = any (one.operations) and captured = 0
                   and ('update' = any (one.operations) or now_.updated = last.updated) then
                    execute format($q$
                        with k as materialized (
                            select %s as key from (select x.xmin as written, %s from %s x) n
                            where not pg_visible_in_snapshot(tidemark.full_xid(n.written, $5), $1) limit $2)
                        select coalesce(array_agg(k.key order by k.key), '{}'), (select count(*) from k)
                        from k where not exists (
                            select from tidemark.outbox o
                            where o.subject_table = $3 and o.subject_ref = k.key and o.created_at > $4 - interval '1 day'
                              and not pg_visible_in_snapshot(tidemark.full_xid(o.xmin, $5), $1))$q$,
                        part.key_text, part.names, relation)
                    into missing_keys, looked using last.snapshot, sample, relation, last.at, pg_snapshot_xmax(now_.snapshot);
                end if;
            exception when insufficient_privilege then
                detail := 'its keys cannot be read: grant select to this role; ';
            end;
            detail := coalesce(detail, '') || format('%s changes counted by the server since %s, %s events, %s without event on record',
                                                     changes, date_trunc('second', last.at), events, captured);
            if cardinality(missing_keys) > 0 then
                status := 'gap';
                detail := detail || format('; rows without event (an update that changes nothing counts too): %s%s',
                                           array_to_string(missing_keys[1:10], ' '), case when cardinality(missing_keys) > 10 then ' …' else '' end);
            elsif last.stats_reset is distinct from now_.stats_reset or now_.inserted < last.inserted or now_.updated < last.updated
                  or now_.deleted < last.deleted then
                status := 'unknown';
                changes := null;
                detail := 'the server''s statistics were reset meanwhile; ' || detail;
            elsif changes <= events + captured then
                status := 'ok';
            elsif now_.rollbacks = last.rollbacks and not 'update' = any (one.operations) then
                status := 'gap';
            else
                status := 'unclear';
                detail := detail || '; the server also counts what was rolled back, and updates that change nothing';
            end if;
            if looked >= sample then
                detail := detail || format('; of the rows written since, %s were looked at', looked);
            end if;
        end if;
        if one.deaf is not null then
            status := 'gap';
            detail := format('its trigger for %s is missing, altered or disabled; %s', one.deaf, detail);
        end if;
        if status = 'gap' then
            found_gap.relation := one.id;
            found_gap.name := relation;
            found_gap.since := coalesce(last.at, old.at, at);
            found_gap.snapshot := coalesce(last.snapshot, old.snapshot, now_.snapshot);
            found_gap.keys := missing_keys;
            found_gap.rows := cardinality(missing_keys);
            found_gap.sampled := looked >= sample;
            -- What the server counted beyond rows, where nothing else explains it.
            found_gap.others := case when looked < sample and now_.rollbacks = last.rollbacks and not 'update' = any (one.operations)
                                     then greatest(changes - events - captured - coalesce(cardinality(missing_keys), 0), 0) end;
            found_gap.detail := detail;
        end if;
        gap := tidemark.capture_reconciled(now_, found_gap);
        -- It is no better for nothing having been missed since.
        if gap is not null and status <> 'gap' then
            detail := format('gap %s is open; since then %s: %s', gap, status, detail);
            status := 'gap';
        end if;
        return next;
    end loop;
end
$_$;
ALTER FUNCTION tidemark.capture_reconcile(sample integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_reconcile(sample integer) IS 'Compares what the server counted on each table with an enabled inbound route since the last call with the events and with tidemark.captured, and up to sample (default 1000) rows written since then with the events of their keys, where the role may read the table. status: ok; gap (with the number of its row in tidemark.capture_gap, which stays open, as the finding capture_gap does, until tidemark.capture_gap_emit or capture_gap_accept), also where an enabled route''s trigger is missing or disabled or another table has taken the name; unclear (the server counts more, which rolled back work explains as well); unknown (statistics reset, routes changed); first. Transactions of more than a day are taken for gaps.';
CREATE TABLE tidemark.capture_checkpoint (
    relation oid NOT NULL,
    at timestamp with time zone NOT NULL,
    snapshot pg_snapshot NOT NULL,
    seq bigint NOT NULL,
    inserted bigint NOT NULL,
    updated bigint NOT NULL,
    deleted bigint NOT NULL,
    rollbacks bigint NOT NULL,
    stats_reset timestamp with time zone,
    name text
);
ALTER TABLE tidemark.capture_checkpoint OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.capture_checkpoint IS 'Where the last tidemark.capture_reconcile of a table ended: the server''s counters then.';
COMMENT ON COLUMN tidemark.capture_checkpoint.relation IS 'The table.';
COMMENT ON COLUMN tidemark.capture_checkpoint.at IS 'When.';
COMMENT ON COLUMN tidemark.capture_checkpoint.snapshot IS 'What was visible then.';
COMMENT ON COLUMN tidemark.capture_checkpoint.seq IS 'Last number of the log then.';
COMMENT ON COLUMN tidemark.capture_checkpoint.inserted IS 'pg_stat_all_tables.n_tup_ins, of a partitioned table summed over its partitions.';
COMMENT ON COLUMN tidemark.capture_checkpoint.updated IS 'n_tup_upd, likewise.';
COMMENT ON COLUMN tidemark.capture_checkpoint.deleted IS 'n_tup_del, likewise.';
COMMENT ON COLUMN tidemark.capture_checkpoint.rollbacks IS 'pg_stat_database.xact_rollback.';
COMMENT ON COLUMN tidemark.capture_checkpoint.stats_reset IS 'pg_stat_database.stats_reset.';
COMMENT ON COLUMN tidemark.capture_checkpoint.name IS 'The table''s quoted name: another table under it is not the one that was captured.';
CREATE FUNCTION tidemark.capture_reconciled(checkpoint tidemark.capture_checkpoint, gap tidemark.capture_gap) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    delete from tidemark.capture_checkpoint c where c.relation = checkpoint.relation or c.name = checkpoint.name;
    insert into tidemark.capture_checkpoint select checkpoint.*;
    if gap.relation is not null then
        perform tidemark.capture_gap_open(gap);
    end if;
    return (select g.id from tidemark.capture_gap g where g.name = checkpoint.name and g.resolved_at is null);
end
$$;
ALTER FUNCTION tidemark.capture_reconciled(checkpoint tidemark.capture_checkpoint, gap tidemark.capture_gap) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_reconciled(checkpoint tidemark.capture_checkpoint, gap tidemark.capture_gap) IS 'Keeps where a tidemark.capture_reconcile ended, and what it found missing (gap; null: nothing). Returns the number of the table''s open gap.';
CREATE FUNCTION tidemark.capture_record(action text, relation regclass, reason text, statements text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if coalesce(btrim(capture_record.reason), '') = '' then
        raise exception using errcode = 'TM005', message = format('%s needs a reason', replace(capture_record.action, '_', ' ')),
            hint = 'It is recorded in tidemark.audit, with who and when.';
    elsif capture_record.action not in ('capture_attach', 'capture_detach', 'capture_guard') then
        raise exception using errcode = 'TM005', message = format('there is no action "%s" of capture', capture_record.action);
    end if;
    insert into tidemark.audit (action, object, reason, after)
    values (capture_record.action, coalesce(capture_record.relation::text, 'database'), capture_record.reason, to_jsonb(capture_record.statements));
end
$$;
ALTER FUNCTION tidemark.capture_record(action text, relation regclass, reason text, statements text[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_record(action text, relation regclass, reason text, statements text[]) IS 'Puts on record what was done to a table of others, and why: capture_attach, capture_detach, capture_guard. Raises TM005 without a reason.';
CREATE FUNCTION tidemark.capture_refresh() RETURNS SETOF text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '3s'
    AS $_$
declare
    name text;
begin
    return query
    select m.name from tidemark.capture_stale s cross join lateral tidemark.capture_make(s.route_code) m (name)
    where m.name is not null;
    if not exists (select from pg_proc p where p.pronamespace = 'tidemark'::regnamespace and p.proname ~ '^capture_[0-9]+$'
                   and not exists (select from pg_trigger t where t.tgfoid = p.oid)) then
        return;
    end if;
    -- As capture_make does: a session that has made a function puts a trigger on it before it lets go.
    lock table tidemark.inbound_route in share update exclusive mode;
    for name in
        select p.proname from pg_proc p
        where p.pronamespace = 'tidemark'::regnamespace and p.proname ~ '^capture_[0-9]+$' and not exists (select from pg_trigger t where t.tgfoid = p.oid)
    loop
        execute format('drop function tidemark.%I()', name);
    end loop;
end
$_$;
ALTER FUNCTION tidemark.capture_refresh() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_refresh() IS 'Makes the functions of attached tables anew where the table, the route or Tidemark changed, and drops those that no trigger calls; returns what it made. Until then captures go a longer way, twenty times as dear, with the same result. Called by tidemark.maintain, by inbound_route_set and by a migration.';
CREATE FUNCTION tidemark.capture_sql(relation regclass, operation text, contract text[], policy text, given text, OUT counted text, OUT written text, OUT may_fail boolean, OUT missing text) RETURNS record
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_variable
declare
    part record;
    subject text;
    changes text;
    payload text;
    event text;
    checks constant text := $checks$(g.unchecked or tidemark.payload_check(g.domain, g.type, c.payload, g.schema, g.metadata_only, g.place))
        and (tidemark.event_is_small(c.payload, c.ref, g.stream, null, c.ref, null, null, null)
             or tidemark.event_check(g.place, c.payload, c.ref, g.stream, null, c.ref, null, null, null))$checks$;
begin
    select c.*, n.nspname, k.relname into part
    from pg_class k join pg_namespace n on n.oid = k.relnamespace cross join tidemark.capture_columns(relation, contract) c
    where k.oid = relation;
    may_fail := part.may_fail;
    missing := part.missing;
    subject := format('%I.%I', part.nspname, part.relname);
    changes := case operation
        when 'insert' then format(' from (select %s from tidemark_new x) n', part.names)
        when 'delete' then format(' from (select %s from tidemark_old x) n', part.names)
        -- The two transition tables get a row and what it was before at the same time, so these have the same place in
        -- both. Nothing else pairs them: a key can change, and there may be none. A full join, though neither has a row
        -- without the other, since that is never done by a nested loop: the plan is kept, and was made for as many
        -- rows as the first statement had.
        when 'update' then format(
            ' from (select row_number() over () as ord, %1$s from tidemark_new x) n'
            ' full join (select row_number() over () as ord, %1$s from tidemark_old x) o on o.ord = n.ord'
            ' cross join lateral (select %2$s as changed offset 0) u where u.changed <> ''{}''', part.names, part.changed)
        else '' end;
    counted := 'select count(*)' || changes;
    -- Set into a constant, at half the cost of building it anew for each row.
    payload := format('jsonb %L', jsonb_build_object('schema', part.nspname, 'table', part.relname, 'operation', operation, 'primary_key', null));
    if operation <> 'truncate' and part.key_json <> 'null::jsonb' then
        payload := format('jsonb_set(%s, ''{primary_key}'', %s)', payload, part.key_json);
    end if;
    if operation = 'update' then
        payload := format('jsonb_set(%s, ''{changed}'', to_jsonb(u.changed))', payload);
        if part.key_changed <> 'false' then
            payload := format('%s || case when %s then jsonb_build_object(''old_primary_key'', %s) else ''{}'' end', payload, part.key_changed, part.old_key_json);
        end if;
    end if;
    if cardinality(contract) > 0 then
        payload := format('jsonb_set(%s, ''{columns}'', case when tidemark.capture_fits(%s, g.place) then %s end)',
            payload, part.bytes, part.shown);
    end if;
    -- With the id, which is volatile: outside it would be a further step of the plan.
    event := format('(select overlay(gen_random_uuid()::text placing g.head from 1 for 15)::uuid as id, %s as ref, %s as payload%s%s offset 0) c', case operation when 'truncate' then 'null::text' else part.key_text end,
        payload, case operation when 'update' then ', n.ord' end, changes);
    -- One statement for all rows, which takes the lock on the log before the first number, as emit does.
    written := 'insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, key, subject_table, subject_ref, idempotency_key, actor, payload) ';
    if policy = 'transaction' then
        -- The key is of this transaction alone, so that no other waits for it, and begins as no emitter's can. The id of a
        -- transaction comes again in a restored copy: hence its time. Of the primary key as JSON, since two keys may read
        -- the same as text.
        written := format(
            'with event as materialized ('
            'select g.*, c.*, row_number() over (%5$s) as n,'
            ' case when c.ref is not null then format(''tidemark:capture/%%s/%%s.%%s/%%s'', g.route, pg_current_xact_id(),'
            ' (extract(epoch from transaction_timestamp()) * 1000000)::bigint,'
            ' encode(sha256(convert_to(c.payload ->> ''primary_key'', ''UTF8'')), ''hex'')) end as once'
            ' from (select %1$s) g cross join lateral %2$s where %6$s'
            '), claimed as ('
            'insert into tidemark.emit_key as k (domain, idempotency_key, event_id, created_at, own)'
            ' select e.domain, e.once, e.id, e.at, true from event e where e.once is not null order by e.n on conflict do nothing returning k.event_id'
            ') %3$s'
            'select e.id, e.at, e.at, ''immediate'', ''info'', e.domain, e.type, e.stream, e.ref, %4$L, e.ref, e.once, session_user, e.payload from event e'
            ' where e.once is null or e.id in (select k.event_id from claimed k) or tidemark.own_key_check(e.domain, e.once, e.place)'
            ' order by e.n',
            given, event, written, subject, case operation when 'update' then 'order by c.ord' end, checks);
    else
        written := format(
            '%3$s'
            'select c.id, g.at, g.at, ''immediate'', ''info'', g.domain, g.type, g.stream, c.ref, %4$L, c.ref, null, session_user, c.payload'
            ' from (select %1$s) g cross join lateral %2$s'
            ' where %6$s%5$s',
            given, event, written, subject, case operation when 'update' then ' order by c.ord' end, checks);
    end if;
end
$_$;
ALTER FUNCTION tidemark.capture_sql(relation regclass, operation text, contract text[], policy text, given text, OUT counted text, OUT written text, OUT may_fail boolean, OUT missing text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_sql(relation regclass, operation text, contract text[], policy text, given text, OUT counted text, OUT written text, OUT may_fail boolean, OUT missing text) IS 'SQL for the trigger of a table, which reads its transition tables. counted: how many rows were changed. written: inserts their events. given: a list of expressions named at, head (tidemark.event_uuid_time), route (its id), place (begins messages), domain, type, stream, unchecked, schema and metadata_only. may_fail: JSON in the contract may be unreadable. missing: columns of the contract that the table has not, or cannot show.';
CREATE FUNCTION tidemark.capture_written(relation regclass, operation text, contract text[], policy text) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select s.written
    from tidemark.capture_sql(relation, operation, contract, policy,
        'at as at, head as head, route.id as route, ''inbound route '' || route.route_code || '': '' as place, route.domain as domain, '
        'route.type as type, route.stream as stream, route.unchecked as unchecked, route.schema as schema, route.metadata_only as metadata_only') s
    where s.missing is null and not s.may_fail
$$;
ALTER FUNCTION tidemark.capture_written(relation regclass, operation text, contract text[], policy text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.capture_written(relation regclass, operation text, contract text[], policy text) IS 'The statement that a function of tidemark.capture_make has for its table, over variables of tidemark.capture. Null: its contract names what the table cannot show, or JSON that may be unreadable; then tidemark.capture goes the long way.';
CREATE FUNCTION tidemark.changes_check(what text, changes jsonb, relation regclass, fixed text[]) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    unknown text;
    columns text[];
begin
    if jsonb_typeof(changes) is distinct from 'object' then
        raise exception using errcode = 'TM005',
            message = format('changes of a %s is %s, not an object', what, coalesce(jsonb_typeof(changes), 'null'));
    end if;
    columns := array(
        select a.attname::text from pg_attribute a
        where a.attrelid = relation and a.attnum > 0 and not a.attisdropped and a.attname <> all (fixed)
        order by a.attnum);
    select k into unknown from jsonb_object_keys(changes) k where k <> all (columns) limit 1;
    if found then
        raise exception using errcode = 'TM005', message = format('a %s has no column "%s" that can be set', what, unknown),
            hint = 'Columns: ' || array_to_string(columns, ', ') || '.';
    end if;
end
$$;
ALTER FUNCTION tidemark.changes_check(what text, changes jsonb, relation regclass, fixed text[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.changes_check(what text, changes jsonb, relation regclass, fixed text[]) IS 'Raises TM005 where changes is no object or names a column that the relation has not or that is fixed.';
CREATE FUNCTION tidemark.claim(worker text, owner text DEFAULT NULL::text, lease interval DEFAULT NULL::interval, source text DEFAULT 'outbox'::text, shard integer DEFAULT 0, OUT status text, OUT detail text, OUT epoch bigint, OUT settles bigint) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    executor constant text := tidemark.executor_id(claim.worker, claim.source, claim.shard);
    beat tidemark.heartbeat;
    at_ tidemark.worker_cursor;
begin
    perform tidemark.session_check('a worker', 'each of its statements must see what was committed before it.');
    if not exists (select from tidemark.worker_cursor c
                   where c.worker = claim.worker and c.source = claim.source and c.shard = claim.shard) then
        raise exception using errcode = 'TM004',
            message = case when exists (select from tidemark.worker w where w.worker = claim.worker)
                then format('worker %s has no cursor of source %s, shard %s', claim.worker, claim.source, claim.shard)
                else format('there is no worker "%s"', claim.worker) end,
            hint = case when claim.source = 'outbox' then 'Workers: select worker from tidemark.worker;'
                else 'Sources of workers: select worker, source, shard from tidemark.worker_cursor;' end;
    end if;
    if claim.lease not between interval '1 second' and interval '1 hour' then
        raise exception using errcode = 'TM005', message = format('lease is %s, and must be from 1 second to 1 hour', claim.lease);
    end if;
    perform tidemark.flush_on_commit();
    select h.* into beat from tidemark.heartbeat h where h.executor_id = executor for update skip locked;
    if not found then
        status := 'busy';
        detail := 'another instance is in the middle of a pass';
        return;
    end if;
    if beat.lease_until > clock_timestamp() and beat.lease_owner is distinct from claim.owner then
        status := 'busy';
        detail := format('leased by %s until %s', beat.lease_owner, beat.lease_until);
        return;
    end if;
    select c.* into at_ from tidemark.worker_cursor c
    where c.worker = claim.worker and c.source = claim.source and c.shard = claim.shard;
    settles := at_.settles;
    detail := tidemark.closed_gate(claim.worker);
    status := case when detail is null then 'claimed' else 'closed' end;
    -- A pass leaves both alike, a rewind lowers one. A watermark edited upwards passes over events in silence. Cursors
    -- of tables have their own rule (tidemark.source_plan).
    if status = 'claimed' and claim.source = 'outbox' and at_.watermark_id::bigint > at_.decided_through::bigint then
        status := 'held';
        detail := format('the watermark is %s, and events were decided through %s: it was edited by hand, or restored. '
            'Accept a place with tidemark.worker_rewind', at_.watermark_id, at_.decided_through);
        perform tidemark.finding_open('cursor_watermark_regression', claim.worker, 'high', detail);
    elsif status = 'claimed' and beat.last_status = 'held' then
        perform tidemark.finding_close('cursor_watermark_regression', claim.worker);
    end if;
    -- The epoch rises with every acquisition, the same owner's too: whoever held the lease before, and was
    -- only paused, can settle nothing any more.
    update tidemark.heartbeat h
    set last_beat_at = clock_timestamp(), ticks_total = ticks_total + 1,
        last_status = case claim.status when 'claimed' then 'ok' else claim.status end,
        lease_epoch = lease_epoch + (claim.status = 'claimed')::integer,
        lease_owner = case claim.status when 'claimed' then claim.owner end,
        lease_until = case claim.status when 'claimed' then clock_timestamp() + claim.lease end
    where h.executor_id = executor
    returning h.lease_epoch into epoch;
end
$$;
ALTER FUNCTION tidemark.claim(worker text, owner text, lease interval, source text, shard integer, OUT status text, OUT detail text, OUT epoch bigint, OUT settles bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.claim(worker text, owner text, lease interval, source text, shard integer, OUT status text, OUT detail text, OUT epoch bigint, OUT settles bigint) IS 'Takes the worker''s cursor: for this transaction, or with owner and lease (1 second to 1 hour) until the lease ends. owner names one instance of one process, and nobody else. status claimed: go on, epoch fences every older owner. closed: detail names the gate, nothing was taken. held: the watermark of the log was edited by hand, detail says how, nothing was taken; the finding cursor_watermark_regression is open until the place is accepted (tidemark.worker_rewind). busy: detail says who has it. Beats where it is not busy. Raises TM004 (unknown worker), TM005, TM006 (isolation level), TM007 (standby).';
CREATE FUNCTION tidemark.closed_gate(worker text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return case
        when not tidemark.gate_open('routes.enabled') then 'routes.enabled'
        when not tidemark.gate_open('worker.' || closed_gate.worker || '.enabled')
            then 'worker.' || closed_gate.worker || '.enabled'
        when exists (select from tidemark.worker_cursor c
                     where c.worker = closed_gate.worker and c.paused_at is not null) then 'paused'
        -- A copy that is not armed must not consume, as dry runs, what its live routes would have delivered.
        when exists (select from tidemark.outbound_route r
                     where r.worker = closed_gate.worker and r.enabled and not r.dry_run)
            and not tidemark.armed() then 'stage'
    end;
end
$$;
ALTER FUNCTION tidemark.closed_gate(worker text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.closed_gate(worker text) IS 'What forbids the worker to run: routes.enabled, worker.<name>.enabled, paused, or stage (it has an enabled live route and this installation is not armed). Null: nothing.';
CREATE FUNCTION tidemark.closed_switch(worker text, live_routes integer[]) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return coalesce(
        tidemark.closed_gate(closed_switch.worker),
        (select 'route ' || r.route_code from tidemark.outbound_route r
         where r.id = any (live_routes) and (not r.enabled or r.dry_run)
         order by r.id limit 1));
end
$$;
ALTER FUNCTION tidemark.closed_switch(worker text, live_routes integer[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.closed_switch(worker text, live_routes integer[]) IS 'What forbids the worker, by now, to deliver on these routes: a gate (tidemark.closed_gate), or a route that is off or in dry run. Null: nothing.';
CREATE FUNCTION tidemark.cursor_sample_take() RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    delete from tidemark.cursor_sample s
    where not exists (select from tidemark.worker_cursor c where c.worker = s.worker and c.source = s.source and c.shard = s.shard);
    insert into tidemark.cursor_sample as s (worker, source, shard, older_at, older_seen, newer_at, newer_seen)
    select c.worker, c.source, c.shard, clock_timestamp(), c.events_seen, clock_timestamp(), c.events_seen
    from tidemark.worker_cursor c
    on conflict (worker, source, shard) do update
    set older_at = s.newer_at, older_seen = s.newer_seen, newer_at = excluded.newer_at, newer_seen = excluded.newer_seen
    -- Several daemons call this: the rate shall count from some time ago all the same.
    where s.newer_at not between excluded.newer_at - interval '50 seconds' and excluded.newer_at
$$;
ALTER FUNCTION tidemark.cursor_sample_take() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.cursor_sample_take() IS 'Notes how many events each cursor has seen, once in 50 seconds at most.';
CREATE TABLE tidemark.dead_letter (
    id bigint NOT NULL,
    idempotency_key text NOT NULL,
    worker_id integer NOT NULL,
    route_id integer,
    seq bigint,
    event_id uuid,
    source text DEFAULT 'outbox'::text NOT NULL,
    shard integer DEFAULT 0 NOT NULL,
    item_id text,
    item_ts timestamp with time zone,
    event_snapshot jsonb NOT NULL,
    error_code text NOT NULL,
    error_detail text,
    attempts integer DEFAULT 1 NOT NULL,
    first_failed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_failed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    resolved_at timestamp with time zone,
    resolution text,
    resolved_by text,
    resolution_reason text,
    CONSTRAINT event_or_row CHECK ((((source = 'outbox'::text) AND (route_id IS NOT NULL) AND (seq IS NOT NULL) AND (item_id IS NULL) AND ((event_id IS NOT NULL) OR (error_code = 'event_missing'::text))) OR ((source <> 'outbox'::text) AND (route_id IS NULL) AND (seq IS NULL) AND (event_id IS NULL) AND (item_id IS NOT NULL)))),
    CONSTRAINT resolution_is_known CHECK ((resolution = ANY (ARRAY['sent'::text, 'dry_run'::text, 'discarded'::text]))),
    CONSTRAINT resolved_is_whole CHECK ((((resolved_at IS NULL) = (resolution IS NULL)) AND ((resolved_at IS NULL) = (resolved_by IS NULL))))
);
ALTER TABLE tidemark.dead_letter OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.dead_letter IS 'Events that could not be routed or delivered, and rows of sources that could not be handled, each with a full snapshot. Resolved, never deleted. Source: S0 iu_route_dead_letter.';
COMMENT ON COLUMN tidemark.dead_letter.id IS 'Number for `tidemark dead-letter`.';
COMMENT ON COLUMN tidemark.dead_letter.idempotency_key IS 'tm:{worker}:{route}:{event_id}; of an event that is gone tm:{worker}:{route}:seq-{seq}; of a row tm:{worker}:{source}:{item_id}.';
COMMENT ON COLUMN tidemark.dead_letter.worker_id IS 'tidemark.worker.id.';
COMMENT ON COLUMN tidemark.dead_letter.route_id IS 'tidemark.outbound_route.id; null for a row.';
COMMENT ON COLUMN tidemark.dead_letter.seq IS 'Number of the event; null for a row.';
COMMENT ON COLUMN tidemark.dead_letter.event_id IS 'Identity of the event; null for a row, and for an event that was gone from the log before it was delivered (event_missing).';
COMMENT ON COLUMN tidemark.dead_letter.source IS 'outbox, or the source that the row is of.';
COMMENT ON COLUMN tidemark.dead_letter.shard IS 'Shard of the worker that failed with the row.';
COMMENT ON COLUMN tidemark.dead_letter.item_id IS 'Id of the row, as text; null for an event.';
COMMENT ON COLUMN tidemark.dead_letter.item_ts IS 'Timestamp of the row.';
COMMENT ON COLUMN tidemark.dead_letter.event_snapshot IS 'The event as tidemark.event_json shows it, or the row as JSON, so that a replay needs no row of the log. Of an event that is gone what its pending delivery knew: seq, route, key, pending_since, attempts, last_error.';
COMMENT ON COLUMN tidemark.dead_letter.error_code IS 'Reason of the decision contract, or SQLSTATE.';
COMMENT ON COLUMN tidemark.dead_letter.error_detail IS 'Message of the error.';
COMMENT ON COLUMN tidemark.dead_letter.attempts IS 'Attempts so far.';
COMMENT ON COLUMN tidemark.dead_letter.first_failed_at IS 'First failure.';
COMMENT ON COLUMN tidemark.dead_letter.last_failed_at IS 'Latest failure.';
COMMENT ON COLUMN tidemark.dead_letter.resolved_at IS 'Null: open.';
COMMENT ON COLUMN tidemark.dead_letter.resolution IS 'sent or dry_run (replayed), or discarded.';
COMMENT ON COLUMN tidemark.dead_letter.resolved_by IS 'The role that logged in to resolve it.';
COMMENT ON COLUMN tidemark.dead_letter.resolution_reason IS 'Why it was discarded.';
CREATE FUNCTION tidemark.dead_letter_claim(id bigint) RETURNS tidemark.dead_letter
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    letter tidemark.dead_letter;
begin
    select l.* into letter from tidemark.dead_letter l where l.id = dead_letter_claim.id for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no dead letter %s', dead_letter_claim.id),
            hint = 'Open ones: select * from tidemark.dead_letter where resolved_at is null;';
    end if;
    if letter.resolved_at is not null then
        raise exception using errcode = 'TM013',
            message = format('dead letter %s is resolved already: %s at %s by %s', letter.id, letter.resolution,
                             letter.resolved_at, letter.resolved_by),
            hint = 'It stays on record: select * from tidemark.route_attempt.';
    end if;
    if exists (select from tidemark.pending p where p.dead_letter_id = letter.id)
        or exists (select from tidemark.pending_row p where p.dead_letter_id = letter.id) then
        raise exception using errcode = 'TM013',
            message = format('dead letter %s is being replayed: its delivery is pending', letter.id),
            hint = 'Wait for the outcome of that attempt.';
    end if;
    return letter;
end
$$;
ALTER FUNCTION tidemark.dead_letter_claim(id bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.dead_letter_claim(id bigint) IS 'Locks an open dead letter for this transaction. Raises TM004 (unknown) and TM013 (resolved, or a replay is pending).';
CREATE FUNCTION tidemark.dead_letter_discard(id bigint, reason text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    letter constant tidemark.dead_letter := tidemark.dead_letter_claim(dead_letter_discard.id);
begin
    if coalesce(btrim(dead_letter_discard.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a dead letter is not discarded without a reason';
    end if;
    update tidemark.dead_letter l
    set resolved_at = clock_timestamp(), resolution = 'discarded', resolved_by = session_user,
        resolution_reason = dead_letter_discard.reason
    where l.id = letter.id;
    insert into tidemark.audit (action, object, reason)
    values ('dead_letter_discard', 'dead_letter ' || letter.id, dead_letter_discard.reason);
end
$$;
ALTER FUNCTION tidemark.dead_letter_discard(id bigint, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.dead_letter_discard(id bigint, reason text) IS 'Resolves a dead letter that will never be delivered. It stays on record, with who and why. Raises TM004, TM005 (no reason), TM013.';
CREATE FUNCTION tidemark.dead_letter_findings(worker text, worker_id integer, subject text, dead bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    bound constant bigint := coalesce((
        select s.value::bigint from tidemark.setting s where s.key = 'dead_letter.overflow' and s.value ~ '^[0-9]{1,9}$'), 1000);
    open constant bigint := (
        select count(*) from (
            select from tidemark.dead_letter l
            where l.worker_id = dead_letter_findings.worker_id and l.resolved_at is null limit bound + 1) l);
begin
    perform tidemark.finding_open('cursor_dlq', subject, 'warning',
        format('%s more dead-lettered; see tidemark.dead_letter', dead));
    if open > bound then
        perform tidemark.finding_open('dlq_overflow', worker, 'high',
            format('more than %s dead letters are open', bound));
    end if;
end
$_$;
ALTER FUNCTION tidemark.dead_letter_findings(worker text, worker_id integer, subject text, dead bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.dead_letter_findings(worker text, worker_id integer, subject text, dead bigint) IS 'Opens the finding cursor_dlq on subject: the worker that reads the log, or worker/source/shard of the cursor of a table; and dlq_overflow on the worker, where more of its dead letters are open than the setting dead_letter.overflow (default 1000). tidemark.maintain closes them.';
CREATE FUNCTION tidemark.dead_letter_replay(id bigint, dry_run boolean DEFAULT false) RETURNS tidemark.replay
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    letter constant tidemark.dead_letter := tidemark.dead_letter_claim(dead_letter_replay.id);
    event constant tidemark.outbox := case when letter.source = 'outbox' then jsonb_populate_record(null::tidemark.outbox, letter.event_snapshot) end;
    route constant tidemark.outbound_route := (select r from tidemark.outbound_route r where r.id = letter.route_id);
    worker constant text := (select w.worker from tidemark.worker w where w.id = letter.worker_id);
    gate constant text := tidemark.closed_gate(worker);
    statement text;
    outcome tidemark.outcome;
    reason text;
    detail text;
    attempt_no integer := letter.attempts + 1;
begin
    if gate is not null and not dead_letter_replay.dry_run then
        raise exception using errcode = 'TM009',
            message = format('dead letter %s is not replayed: closed by %s', letter.id, gate),
            hint = 'Open the gate first, or ask for a dry run.';
    end if;
    if letter.source = 'outbox' and letter.event_id is null then
        raise exception using errcode = 'TM004',
            message = format('dead letter %s cannot be replayed: there is no event %s in the log any more', letter.id, letter.seq),
            hint = 'If the event is known from elsewhere, emit it again; then discard the letter.';
    end if;
    if letter.source <> 'outbox' then
        -- A row: its worker has the table and the handler.
        if not dead_letter_replay.dry_run then
            attempt_no := tidemark.dead_letter_requeue(letter.id);
        end if;
        return row(letter.id, letter.source, null, attempt_no, 'pending', null, 'worker ' || worker || ' tries it next')::tidemark.replay;
    end if;
    select d.outcome, d.reason into outcome, reason
    from tidemark.decide(route.worker, event, array(select r from tidemark.outbound_route r order by r.id),
                         row(true, true, true)::tidemark.gates) d
    where d.route_id = letter.route_id;
    if not found then
        outcome := 'skipped';
        reason := 'no_route';
        detail := 'the route does not claim this event any more';
    end if;
    if dead_letter_replay.dry_run then
        return row(letter.id, route.route_code, letter.event_id, attempt_no, outcome, reason, detail)::tidemark.replay;
    end if;
    if outcome = 'pending' and tidemark.target_is_inside(route.target_kind) then
        if tidemark.time_left() <= interval '0' then
            -- Another letter of this call has used it up, and nothing would end this one.
            return row(letter.id, route.route_code, letter.event_id, letter.attempts, outcome, 'busy',
                       'this statement has no time left: try it again')::tidemark.replay;
        end if;
        begin
            statement := tidemark.delivery_statement(route, 'select $2');
            select c.* into reason, detail
            from tidemark.target_call(statement, null, letter.event_snapshot, tidemark.default_search_path(), route.timeout) c;
        exception when undefined_function or undefined_table or invalid_parameter_value or feature_not_supported then
            get stacked diagnostics reason = returned_sqlstate, detail = message_text;
        end;
        outcome := case when reason is null then 'sent' else 'failed' end;
        if reason is null and route.target_kind = 'river' then
            perform tidemark.river_wake(route.options);
        end if;
        if outcome = 'sent' and tidemark.closed_switch(route.worker, array[route.id]) is not null then
            raise exception using errcode = 'TM009',
                message = format('dead letter %s is not replayed: closed meanwhile by %s', letter.id,
                                 tidemark.closed_switch(route.worker, array[route.id]));
        end if;
    end if;
    attempt_no := tidemark.dead_letter_settle(letter.id, outcome, reason, detail);
    return row(letter.id, route.route_code, letter.event_id, attempt_no, outcome, reason, detail)::tidemark.replay;
end
$_$;
ALTER FUNCTION tidemark.dead_letter_replay(id bigint, dry_run boolean) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.dead_letter_replay(id bigint, dry_run boolean) IS 'Tries one dead letter again, as a fresh attempt, from its snapshot and with the route as it is now; it is resolved when the outcome is sent or dry_run (the route is in dry run). With dry_run nothing is written or delivered, and the answer is what would happen: pending where it would be delivered. A row of a source is left to its worker, which tries it once more: pending. Raises TM004 (no such letter, or its event was gone before it was delivered), TM009 (a gate is closed), TM013 (resolved already, or its delivery is pending). Source: S0 fn_iu_route_dead_letter_replay.';
CREATE FUNCTION tidemark.dead_letter_replay_many(route text DEFAULT NULL::text, error_code text DEFAULT NULL::text, failed_since timestamp with time zone DEFAULT NULL::timestamp with time zone, failed_until timestamp with time zone DEFAULT NULL::timestamp with time zone, max_letters integer DEFAULT 1000, dry_run boolean DEFAULT false, source text DEFAULT NULL::text, after bigint DEFAULT NULL::bigint) RETURNS SETOF tidemark.replay
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    after_seq bigint := -1;
    after_route integer := 0;
    after_ts timestamptz := '-infinity';
begin
    if coalesce(dead_letter_replay_many.max_letters, 0) not between 1 and 50000 then
        raise exception using errcode = 'TM005',
            message = format('max_letters is %s, and must be from 1 to 50000', coalesce(max_letters::text, 'null')),
            hint = 'Ask for a part, and go on with after.';
    end if;
    if dead_letter_replay_many.route is not null
        and not exists (select from tidemark.outbound_route r where r.route_code = dead_letter_replay_many.route)
    then
        raise exception using errcode = 'TM004',
            message = format('there is no route "%s"', dead_letter_replay_many.route),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    end if;
    if dead_letter_replay_many.after is not null then
        select coalesce(l.seq, 9223372036854775807), coalesce(l.route_id, 0), coalesce(l.item_ts, 'infinity')
        into after_seq, after_route, after_ts
        from tidemark.dead_letter l where l.id = dead_letter_replay_many.after;
        if not found then
            raise exception using errcode = 'TM004', message = format('there is no dead letter %s to go on after', after),
                hint = 'after is the id of the last row of the call before.';
        end if;
    end if;
    return query
    select p.* from (
        select l.id from tidemark.dead_letter l left join tidemark.outbound_route r on r.id = l.route_id
        where l.resolved_at is null
          and (coalesce(l.seq, 9223372036854775807), coalesce(l.route_id, 0), coalesce(l.item_ts, 'infinity'), l.id)
              > (after_seq, after_route, after_ts, coalesce(dead_letter_replay_many.after, 0))
          -- There is nothing to send.
          and (l.source <> 'outbox' or l.event_id is not null)
          and (dead_letter_replay_many.route is null or r.route_code = dead_letter_replay_many.route)
          and (dead_letter_replay_many.error_code is null or l.error_code = dead_letter_replay_many.error_code)
          and (dead_letter_replay_many.source is null or l.source = dead_letter_replay_many.source)
          and (failed_since is null or l.last_failed_at >= failed_since)
          and (failed_until is null or l.last_failed_at < failed_until)
          and not exists (select from tidemark.pending q where q.dead_letter_id = l.id)
          and not exists (select from tidemark.pending_row q where q.dead_letter_id = l.id)
        -- The order in which the events were emitted, and the rows made.
        order by coalesce(l.seq, 9223372036854775807), coalesce(l.route_id, 0), coalesce(l.item_ts, 'infinity'), l.id
        limit max_letters) l
    cross join lateral tidemark.dead_letter_replay(l.id, dead_letter_replay_many.dry_run) p;
end
$$;
ALTER FUNCTION tidemark.dead_letter_replay_many(route text, error_code text, failed_since timestamp with time zone, failed_until timestamp with time zone, max_letters integer, dry_run boolean, source text, after bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.dead_letter_replay_many(route text, error_code text, failed_since timestamp with time zone, failed_until timestamp with time zone, max_letters integer, dry_run boolean, source text, after bigint) IS 'tidemark.dead_letter_replay for every open dead letter of the route, or of the source, with the error code, that last failed in [failed_since, failed_until); null: any. In the order of the events, at most max_letters (default 1000), in one transaction. For the next part, call it again with after, the id of the last row, in a transaction of its own: while it returns max_letters rows, there may be more. A letter that failed again lies before that place, and is not tried twice. Raises TM004, TM005, and what tidemark.dead_letter_replay raises.';
CREATE FUNCTION tidemark.dead_letter_requeue(id bigint) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    letter constant tidemark.dead_letter := tidemark.dead_letter_claim(dead_letter_requeue.id);
begin
    insert into tidemark.pending_row as p (worker_id, source, shard, item_id, item_ts, snapshot, error_count, last_error, next_attempt_at, dead_letter_id)
    values (letter.worker_id, letter.source, letter.shard, letter.item_id, letter.item_ts, letter.event_snapshot, letter.attempts,
            concat_ws(': ', letter.error_code, letter.error_detail), clock_timestamp(), letter.id)
    on conflict (worker_id, source, shard, item_id) do update
    set next_attempt_at = excluded.next_attempt_at, dead_letter_id = excluded.dead_letter_id;
    return letter.attempts + 1;
end
$$;
ALTER FUNCTION tidemark.dead_letter_requeue(id bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.dead_letter_requeue(id bigint) IS 'Lets the worker of a dead-lettered row try it once more. Returns the number that this attempt will have. Raises TM004, TM013.';
CREATE FUNCTION tidemark.dead_letter_settle(id bigint, outcome tidemark.outcome, reason text, detail text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    letter tidemark.dead_letter;
begin
    update tidemark.dead_letter l
    set attempts = attempts + 1,
        last_failed_at = case outcome when 'failed' then clock_timestamp() else last_failed_at end,
        error_code = case outcome when 'failed' then dead_letter_settle.reason else error_code end,
        error_detail = case outcome when 'failed' then dead_letter_settle.detail else error_detail end,
        resolved_at = case when outcome in ('sent', 'dry_run') then clock_timestamp() end,
        resolution = case when outcome in ('sent', 'dry_run') then outcome::text end,
        resolved_by = case when outcome in ('sent', 'dry_run') then session_user end
    where l.id = dead_letter_settle.id
    returning l.* into strict letter;
    insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
    values (letter.seq, letter.worker_id, letter.route_id, letter.attempts, outcome, dead_letter_settle.reason,
            dead_letter_settle.detail);
    if outcome = 'pending' then
        insert into tidemark.pending (worker_id, route_id, seq, attempt_no, key, replay, dead_letter_id)
        values (letter.worker_id, letter.route_id, letter.seq, letter.attempts, letter.event_snapshot ->> 'key', true, letter.id);
    end if;
    return letter.attempts;
end
$$;
ALTER FUNCTION tidemark.dead_letter_settle(id bigint, outcome tidemark.outcome, reason text, detail text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.dead_letter_settle(id bigint, outcome tidemark.outcome, reason text, detail text) IS 'Records a replay: a fresh attempt, whose number it returns, and the dead letter resolved on sent or dry_run, failed again, or pending.';
CREATE TABLE tidemark.outbox (
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    lane tidemark.lane NOT NULL,
    severity tidemark.severity NOT NULL,
    domain text NOT NULL,
    type text NOT NULL,
    stream text,
    key text,
    subject_table text,
    subject_ref text,
    idempotency_key text,
    trace text,
    actor text NOT NULL,
    payload jsonb NOT NULL
)
PARTITION BY RANGE (seq);
ALTER TABLE tidemark.outbox OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.outbox IS 'The log of events: append-only, partitioned by number. Written by tidemark.emit only; rows leave by retention, a partition at a time. Source: S0 event_outbox.';
COMMENT ON COLUMN tidemark.outbox.seq IS 'Number of the event, taken at emit. Not the order of commits: see tidemark.read_outbox.';
COMMENT ON COLUMN tidemark.outbox.event_id IS 'The event''s identity everywhere: uuid version 7, its time being created_at.';
COMMENT ON COLUMN tidemark.outbox.created_at IS 'When emit ran (clock_timestamp, not the start of the transaction).';
COMMENT ON COLUMN tidemark.outbox.occurred_at IS 'When it happened, as the emitter says. Default: created_at.';
COMMENT ON COLUMN tidemark.outbox.lane IS 'immediate (default) or batch.';
COMMENT ON COLUMN tidemark.outbox.severity IS 'info (default), warning, high or critical.';
COMMENT ON COLUMN tidemark.outbox.domain IS 'Domain of the type.';
COMMENT ON COLUMN tidemark.outbox.type IS 'Type of the event, registered in tidemark.event_type.';
COMMENT ON COLUMN tidemark.outbox.stream IS 'Free grouping inside a type, e.g. alert; null: none.';
COMMENT ON COLUMN tidemark.outbox.key IS 'Ordering key; null: no order is asked for. Order per key holds for writers that lock the key''s own row before they emit.';
COMMENT ON COLUMN tidemark.outbox.subject_table IS 'Table of the row that the event is about.';
COMMENT ON COLUMN tidemark.outbox.subject_ref IS 'Primary key of that row, as text.';
COMMENT ON COLUMN tidemark.outbox.idempotency_key IS 'A second emit with the same (domain, idempotency_key) stores nothing and returns the first event''s id. "tidemark:…": of a row, made by Tidemark; no emitter can write it.';
COMMENT ON COLUMN tidemark.outbox.trace IS 'W3C traceparent.';
COMMENT ON COLUMN tidemark.outbox.actor IS 'Who did it. Default: session_user.';
COMMENT ON COLUMN tidemark.outbox.payload IS 'JSON object.';
CREATE FUNCTION tidemark.decide(worker text, event tidemark.outbox, routes tidemark.outbound_route[], gates tidemark.gates) RETURNS TABLE(route_id integer, outcome tidemark.outcome, reason text)
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
begin
    return query
    with claim as materialized (
        select r.* from unnest(decide.routes) r where tidemark.route_matches(r, decide.event)
    ), refused as (
        select c.*,
            case
                when not c.enabled then null
                when not tidemark.target_is_known(c.target_kind)
                    then 'unknown_target_kind'
                when not tidemark.retry_policy_ok(c.retry_policy) then 'bad_retry_policy'
                -- A route in dry run never stands in the way of a live one; it does show what would
                -- happen if it went live beside it.
                when exists (
                    select from claim o
                    where o.id <> c.id and o.enabled and (c.dry_run or not o.dry_run)
                      and o.target_kind = c.target_kind and o.target_ref = c.target_ref
                      and (o.exclusive or c.exclusive))
                    then 'ambiguous_route'
            end as refusal
        from claim c where c.worker = decide.worker
    ), decided as (
        select r.id,
            case
                when not r.enabled then 'disabled'
                when r.refusal is not null then case when r.fail_closed then 'failed' else 'skipped' end
                when r.dry_run then 'dry_run'
                else 'pending'
            end::tidemark.outcome,
            r.refusal
        from refused r
        union all
        select 0, 'skipped', 'no_route' where not exists (select from refused)
    )
    select d.* from decided d
    where (decide.gates).master and (decide.gates).worker
      and ((decide.gates).armed
           or not exists (select from unnest(decide.routes) r
                          where r.worker = decide.worker and r.enabled and not r.dry_run))
    order by 1;
end
$$;
ALTER FUNCTION tidemark.decide(worker text, event tidemark.outbox, routes tidemark.outbound_route[], gates tidemark.gates) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.decide(worker text, event tidemark.outbox, routes tidemark.outbound_route[], gates tidemark.gates) IS 'What the worker decides for an event: one row per route of its that claims the event, or one row with route_id 0 and skipped where none does; no row while a gate is closed. pending: to be delivered. failed (skipped where the route does not fail closed) has a reason: unknown_target_kind, bad_retry_policy, ambiguous_route.';
CREATE FUNCTION tidemark.decide_batch(worker text, batch tidemark.batch) RETURNS tidemark.evidence[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_nestloop TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    worker_id constant integer := (select w.id from tidemark.worker w where w.worker = decide_batch.worker);
    -- To ask every route of a long list for every group costs their product. A route plays a part only for what it
    -- matches: one of an exact domain and type for the groups of that alone.
    possible constant tidemark.outbound_route[] := case when cardinality(batch.routes) <= 16 then batch.routes else array(
        select r from unnest(batch.routes) r
        where r.domain = '*' or right(r.type, 1) = '*' or (r.domain, r.type) in (select g.domain, g.type from unnest(batch.groups) g)) end;
    filtered constant boolean := exists (
        select from unnest(possible) r where r.key_filter is not null or r.payload_filter is not null);
    many constant boolean := cardinality(possible) > 16 and cardinality(batch.groups) > 4;
    patterns constant tidemark.outbound_route[] := case when many then array(
        select r from unnest(possible) r where r.domain = '*' or right(r.type, 1) = '*') end;
    evidence tidemark.evidence[];
begin
    -- The gates were open at the claim, in this transaction. One decision serves a whole group, whose events
    -- differ in nothing that a route looks at; the filters were answered when the batch was read.
    select array_agg(row(d.route_id, d.outcome, d.reason, null, d.events,
                         tidemark.group_numbers(batch, d.members))::tidemark.evidence) into evidence
    from (
        select d.route_id, d.outcome, d.reason, sum(g.events)::integer as events, array_agg(g.n::integer) as members
        from unnest(batch.groups) with ordinality g (domain, type, stream, matched, events, seqs, n)
        left join (
            select r.domain, r.type, array_agg(r) as routes from unnest(possible) r
            where many and r.domain <> '*' and right(r.type, 1) <> '*' group by r.domain, r.type) e on e.domain = g.domain and e.type = g.type
        cross join lateral (select case when many then patterns || coalesce(e.routes, '{}') else possible end as routes) c
        cross join lateral (
            select case when not filtered then c.routes else array(
                select jsonb_populate_record(r, '{"key_filter": null, "payload_filter": null}')
                from unnest(c.routes) r
                where r.key_filter is null and r.payload_filter is null or r.id = any (g.matched)) end as routes) a
        cross join lateral tidemark.decide(
            decide_batch.worker,
            (null, null, null, null, null, null, g.domain, g.type, g.stream, null, null, null, null, null, null,
             null)::tidemark.outbox,
            a.routes, row(true, true, true)::tidemark.gates) d
        group by d.route_id, d.outcome, d.reason) d;
    if batch.rewound then
        select array_agg(row(e.route_id, e.outcome, e.reason, null,
                             (select sum(upper(r) - lower(r)) from unnest(e.seqs) r), e.seqs)::tidemark.evidence)
        into evidence
        from (
            select e.route_id, e.outcome, e.reason,
                   e.seqs - tidemark.decided(worker_id, e.route_id, lower(e.seqs), upper(e.seqs)) as seqs
            from unnest(evidence) e) e
        where not isempty(e.seqs);
    end if;
    return coalesce(evidence, '{}');
end
$$;
ALTER FUNCTION tidemark.decide_batch(worker text, batch tidemark.batch) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.decide_batch(worker text, batch tidemark.batch) IS 'tidemark.decide for a whole batch: one element per route, outcome and reason, with the numbers of its events. After a rewind without what is already decided.';
CREATE FUNCTION tidemark.decided(worker_id integer, route_id integer, first_seq bigint, last_seq bigint) RETURNS int8multirange
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return (select coalesce(range_agg(d.seqs), '{}') from (
        select d.seqs from tidemark.decision d
        where d.worker_id = decided.worker_id and decided.route_id in (0, d.route_id)
          and d.last_seq >= decided.first_seq and d.first_seq <= decided.last_seq
        union all
        select int8multirange(int8range(a.seq, a.seq + 1)) from tidemark.attempt a
        where a.worker_id = decided.worker_id and decided.route_id in (0, a.route_id)
          and a.seq between decided.first_seq and decided.last_seq) d);
end
$$;
ALTER FUNCTION tidemark.decided(worker_id integer, route_id integer, first_seq bigint, last_seq bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.decided(worker_id integer, route_id integer, first_seq bigint, last_seq bigint) IS 'Numbers in the span that the worker has already decided for the route; for route_id 0 those it has decided at all. Only a cursor that was rewound asks.';
CREATE FUNCTION tidemark.default_search_path() RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    -- The view looks at every setting that there is. What a session began with does not change.
    if coalesce(current_setting('tidemark.default_search_path', true), '') = '' then
        perform set_config('tidemark.default_search_path', (select s.reset_val from pg_settings s where s.name = 'search_path'), false);
    end if;
    return current_setting('tidemark.default_search_path');
end
$$;
ALTER FUNCTION tidemark.default_search_path() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.default_search_path() IS 'The search_path that a new session of this role in this database begins with: what an SQL target runs with.';
CREATE FUNCTION tidemark.deferred_constraints() RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select string_agg(distinct format('%I.%I', n.nspname, c.conname), ', ')
    from pg_constraint c join pg_namespace n on n.oid = c.connamespace
    where c.condeferred
$$;
ALTER FUNCTION tidemark.deferred_constraints() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.deferred_constraints() IS 'The constraints that wait for the commit unless they are told otherwise; null: there are none.';
CREATE FUNCTION tidemark.deliver(route tidemark.outbound_route, left_over bigint[], suspects integer[], errors integer[], fresh bigint[], path text, until timestamp with time zone, OUT results tidemark.result[], OUT fallbacks integer) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    most constant integer := 1000;
    -- A single suspect of 1,000 is found with two more time-outs, and without more than 64 subtransactions a pass.
    parts constant integer := 32;
    max_bytes constant bigint := coalesce((
        select s.value::bigint from tidemark.setting s
        where s.key = 'batch.max_bytes' and s.value ~ '^[0-9]{1,15}$'), 16777216);
    aim constant interval := least(deliver.route.timeout / 4, interval '500 milliseconds');
    old constant integer := cardinality(deliver.left_over);
    numbers constant bigint[] := deliver.left_over || deliver.fresh;
    n constant integer := cardinality(numbers);
    sizes constant integer[] := tidemark.event_sizes(numbers);
    statement text;
    size integer := 100;
    bytes bigint;
    stack integer[];
    first integer;
    last integer;
    stop integer;
    done integer := 0;
    began timestamptz;
    took interval;
    called record;
    delay interval;
    odd int8multirange := '{}';
    waits bigint;
    gate text;
    code text;
    message text;
begin
    results := '{}';
    fallbacks := 0;
    begin
        statement := tidemark.delivery_statement(deliver.route,
            'select tidemark.event_json(o) from tidemark.events($1) o order by o.seq');
    exception when undefined_function or undefined_table or invalid_parameter_value or feature_not_supported then
        get stacked diagnostics code = returned_sqlstate, message = message_text;
        results := array(
            select row(deliver.route.id, f.fresh, 'failed', code, message, range_agg(int8range(f.seq, f.seq + 1)),
                       0)::tidemark.result
            from (select unnest(deliver.left_over), false
                  union all select unnest(deliver.fresh), true) f (seq, fresh)
            group by f.fresh);
        return;
    end;
    <<waves>>
    while done < n loop
        -- A gate or a route that was closed since the claim takes the batch back, also what this
        -- transaction has done so far: nothing of it was delivered yet.
        gate := tidemark.closed_switch(deliver.route.worker, array[deliver.route.id]);
        if gate is not null then
            raise exception using errcode = 'TM009', message = gate;
        end if;
        -- The next wave: as many as a target of this pace takes in a moment, no more than fit into memory, fewer where
        -- one of them may have taken too long. Those left over are not mixed with others.
        first := done + 1;
        last := first;
        stop := least(case when first <= old then old else n end, first + size - 1);
        bytes := sizes[first];
        while last < stop and bytes + sizes[last + 1] <= max_bytes
            and last - first + 1
                < greatest(coalesce(least(suspects[first], suspects[last + 1]), most * parts) / parts, 1)
        loop
            last := last + 1;
            bytes := bytes + sizes[last];
        end loop;
        -- The wave as a whole; where it fails, its halves, down to the single event, earlier ones first. A
        -- subtransaction per event would cost several times as much for the sake of the rare bad one.
        stack := array[first, last];
        while cardinality(stack) > 0 loop
            -- Each pass comes to an end with one event at least, be they ever so slow.
            exit waves when tidemark.time_left() <= interval '0' or done > 0 and clock_timestamp() >= until;
            first := stack[cardinality(stack) - 1];
            last := stack[cardinality(stack)];
            stack := stack[: cardinality(stack) - 2];
            began := clock_timestamp();
            called := tidemark.target_call(statement, numbers[first : last], null, path, deliver.route.timeout);
            took := clock_timestamp() - began;
            if called.code is null then
                done := last;
                size := greatest(1, least(most, size * 4, (last - first + 1)
                    * extract(epoch from aim) / greatest(extract(epoch from took), 0.001)));
                continue;
            end if;
            fallbacks := fallbacks + 1;
            if called.late and (first < last or not (
                -- It had its time, alone; or had less of it twice.
                took >= deliver.route.timeout
                or took >= current_setting('statement_timeout')::interval / 3 and called.code = '57014'
                or first <= old and suspects[first] = 1))
            then
                odd := odd + (select range_agg(int8range(s, s + 1)) from unnest(numbers[first : last]) s);
                results := results || row(deliver.route.id, first > old, 'pending', 'suspect', null,
                    (select range_agg(int8range(s, s + 1)) from unnest(numbers[first : last]) s), 0)::tidemark.result;
                done := last;
                exit waves;
            elsif first < last then
                stack := stack || array[(first + last) / 2 + 1, last, first, (first + last) / 2];
                continue;
            end if;
            done := last;
            odd := odd + int8multirange(int8range(numbers[first], numbers[first] + 1));
            -- Who holds a lock for long is not the event's fault.
            delay := case when called.late and called.code = '55P03'
                then tidemark.retry_delay(deliver.route.retry_policy, coalesce(errors[first], 0) + 1) end;
            if called.late then
                called.message := format('it took longer than %s: %s', deliver.route.timeout, called.message);
            end if;
            results := results || row(deliver.route.id, first > old,
                case when delay is null then 'failed' else 'pending' end, called.code, called.message,
                int8multirange(int8range(numbers[first], numbers[first] + 1)),
                coalesce(extract(epoch from delay), 0))::tidemark.result;
            if delay is not null and deliver.route.ordering = 'key' then
                waits := numbers[first];
                exit waves;
            end if;
        end loop;
    end loop;
    results := results || array(
        select row(deliver.route.id, f.fresh, 'sent', null, null, f.seqs - odd, 0)::tidemark.result
        from (select p.place > old as fresh, range_agg(int8range(p.seq, p.seq + 1)) as seqs
              from unnest(numbers[: done]) with ordinality p (seq, place) group by 1) f
        where not isempty(f.seqs - odd));
    if done < n then
        -- What was not tried; left over, it stays as it is, but for what waits behind another one from now on.
        odd := coalesce((
            select range_agg(int8range(o.seq, o.seq + 1))
            from tidemark.events(array[waits]) w
            join tidemark.events(array(select r from unnest(numbers[done + 1 :]) r order by r)) o on o.key = w.key),
            '{}');
        results := results || array(
            select row(deliver.route.id, f.fresh, 'pending', case when f.behind then 'behind_key' else 'busy' end, null,
                       f.seqs, case when not f.behind then 0 end)::tidemark.result
            from (select p.place + done > old as fresh, odd @> p.seq as behind,
                         range_agg(int8range(p.seq, p.seq + 1)) as seqs
                  from unnest(numbers[done + 1 :]) with ordinality p (seq, place) group by 1, 2) f
            where f.fresh or f.behind);
    end if;
    if deliver.route.target_kind = 'river' and exists (select from unnest(results) r where r.outcome = 'sent') then
        perform tidemark.river_wake(deliver.route.options);
    end if;
end
$_$;
ALTER FUNCTION tidemark.deliver(route tidemark.outbound_route, left_over bigint[], suspects integer[], errors integer[], fresh bigint[], path text, until timestamp with time zone, OUT results tidemark.result[], OUT fallbacks integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.deliver(route tidemark.outbound_route, left_over bigint[], suspects integer[], errors integer[], fresh bigint[], path text, until timestamp with time zone, OUT results tidemark.result[], OUT fallbacks integer) IS 'Delivers events to a target inside the database, in this transaction, with search_path path: left_over, which were pending, with their suspects and failed attempts, then fresh, each in rising order. An event that makes its target raise is failed, the others are sent; fallbacks counts the statements that failed on the way. Begins nothing more after until, when one is done. A statement that takes too long ends the pass for this route: its events are suspects, which are tried with fewer next time, down to the one that is failed, or waits, by the route''s retry policy, where it was a lock; what comes behind is pending (busy). Raises TM009 where a gate or the route was closed meanwhile; an error that is not the event''s fault (tidemark.is_transient) is raised on.';
CREATE FUNCTION tidemark.deliver_inside(worker text, evidence tidemark.evidence[], share interval, OUT settled tidemark.evidence[], OUT results tidemark.result[], OUT fallbacks integer) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    path constant text := tidemark.default_search_path();
    -- Half of what is left, so that what begins at the end has time.
    until constant timestamptz := clock_timestamp() + least(share, tidemark.time_left() / 2);
    -- What may hang comes last: then nothing can be tried any more.
    live constant integer[] := array(
        select l from unnest(tidemark.live_inside(deliver_inside.worker, deliver_inside.evidence)) l
        order by exists (select from tidemark.pending p where p.route_id = l and p.suspects is not null), l);
    route tidemark.outbound_route;
    left_over record;
    fresh int8multirange;
    behind int8multirange;
    delivered record;
begin
    settled := deliver_inside.evidence;
    results := '{}';
    fallbacks := 0;
    for i in 1 .. cardinality(live) loop
        select r.* into route from tidemark.outbound_route r where r.id = live[i];
        -- First what earlier passes have left over: the order of a key holds.
        left_over := tidemark.left_over(route);
        if left_over.gone then
            -- Delivered to nobody, they would be on record as sent.
            perform tidemark.settle_missing(deliver_inside.worker);
            left_over := tidemark.left_over(route);
        end if;
        fresh := coalesce((
            select range_agg(e.seqs) from unnest(settled) e
            where e.route_id = route.id and e.outcome = 'pending'), '{}');
        settled := array(
            select e from unnest(settled) e where not (e.route_id = route.id and e.outcome = 'pending'));
        behind := case when left_over.more then fresh
            else tidemark.behind_key(route, tidemark.multirange_numbers(fresh), left_over.numbers) end;
        if not isempty(behind) then
            results := results || row(route.id, true, 'pending',
                case when left_over.more then 'busy' else 'behind_key' end, null, behind,
                case when left_over.more then 0 end)::tidemark.result;
        end if;
        delivered := tidemark.deliver(route, left_over.numbers, left_over.suspects, left_over.errors,
            tidemark.multirange_numbers(fresh - behind), path,
            clock_timestamp() + (until - clock_timestamp()) / (cardinality(live) - i + 1));
        fallbacks := fallbacks + delivered.fallbacks;
        results := results || delivered.results;
    end loop;
end
$$;
ALTER FUNCTION tidemark.deliver_inside(worker text, evidence tidemark.evidence[], share interval, OUT settled tidemark.evidence[], OUT results tidemark.result[], OUT fallbacks integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.deliver_inside(worker text, evidence tidemark.evidence[], share interval, OUT settled tidemark.evidence[], OUT results tidemark.result[], OUT fallbacks integer) IS 'Delivers what is pending on the worker''s routes to targets inside the database, in this transaction; begins nothing more when share is over, which the routes have in equal parts. settled is the evidence without it, results what came of it and of events that were left over. Raises what tidemark.deliver raises.';
CREATE FUNCTION tidemark.delivery_statement(route tidemark.outbound_route, source text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    target constant regprocedure := tidemark.sql_target(route.target_ref);
    schema constant text := coalesce(route.options ->> 'schema', 'public');
    problem text;
    call text;
begin
    case route.target_kind
    when 'sql' then
        if target is null then
            raise exception using errcode = 'undefined_function',
                message = format('route %s: there is no function %s(jsonb)', route.route_code, route.target_ref),
                hint = 'target_ref is schema.function, taking one jsonb.';
        end if;
        select format('%I.%I(e.event)', n.nspname, p.proname) into call
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.oid = target;
    when 'notify' then
        -- Ids only: a notification wakes its listener, who reads what happened.
        call := format('pg_catalog.pg_notify(%L, pg_catalog.json_build_object(''event_id'', e.event -> ''event_id'', '
                       || '''domain'', e.event -> ''domain'', ''type'', e.event -> ''type'', ''route'', %L)::text)',
                       route.target_ref, route.route_code);
    when 'river' then
        problem := tidemark.river_error(route.target_ref, route.options);
        if problem is not null then
            raise exception using errcode = 'invalid_parameter_value', message = format('route %s: %s', route.route_code, problem);
        end if;
        if tidemark.river_table(route.options) is null then
            raise exception using errcode = 'undefined_table',
                message = format('route %s: there is no table %I.river_job', route.route_code, schema),
                hint = 'Migrate River''s schema, or name the one that has it: option "schema".';
        end if;
        -- All else that River's client would write is the default of its column, in every version of the table: the
        -- jobs may run at once. tidemark.river_wake tells River's clients, once for all of them.
        return format('insert into %I.river_job (kind, args, queue, priority, max_attempts, metadata) '
                      || 'select %L, e.event, %L, %s, %s, %L from (%s) e (event)',
                      schema, route.target_ref, coalesce(route.options ->> 'queue', 'default'),
                      coalesce(route.options -> 'priority', '1')::integer,
                      coalesce(route.options -> 'max_attempts', '25')::integer,
                      jsonb_build_object('tidemark_route', route.route_code), source);
    else
        raise exception using errcode = 'feature_not_supported',
            message = format('route %s: delivery to %s is not built into this function', route.route_code, route.target_kind);
    end case;
    return format('select %s from (%s) e (event)', call, source);
end
$$;
ALTER FUNCTION tidemark.delivery_statement(route tidemark.outbound_route, source text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.delivery_statement(route tidemark.outbound_route, source text) IS 'The statement that delivers the events which the query source yields (one jsonb column) to the route''s target inside the database. Raises undefined_function where an SQL target does not exist, undefined_table where River''s does not, invalid_parameter_value for options that river does not take, feature_not_supported for any other kind.';
CREATE TABLE tidemark.domain (
    domain text NOT NULL,
    metadata_only boolean DEFAULT false NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    CONSTRAINT domain_is_a_plain_name CHECK ((domain ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$'::text))
);
ALTER TABLE tidemark.domain OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.domain IS 'Namespaces of event types. Source: S0 event_domain.';
COMMENT ON COLUMN tidemark.domain.domain IS 'Name: letters, digits, "_", ".", "-"; at most 63 characters.';
COMMENT ON COLUMN tidemark.domain.metadata_only IS 'True: payloads may not hold a key of tidemark.forbidden_key at any depth. Default false.';
COMMENT ON COLUMN tidemark.domain.description IS 'For people.';
CREATE FUNCTION tidemark.domain_set(domain text, changes jsonb DEFAULT '{}'::jsonb, reason text DEFAULT NULL::text) RETURNS SETOF tidemark.domain
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    row_ tidemark.domain;
begin
    perform set_config('tidemark.reason', coalesce(domain_set.reason, ''), true);
    perform tidemark.changes_check('domain', domain_set.changes, 'tidemark.domain', array['domain']);
    insert into tidemark.domain (domain) values (domain_set.domain) on conflict do nothing;
    row_ := (select jsonb_populate_record(d, changes) from tidemark.domain d where d.domain = domain_set.domain for update);
    return query
    update tidemark.domain d set metadata_only = row_.metadata_only, description = row_.description
    where d.domain = domain_set.domain returning d.*;
end
$$;
ALTER FUNCTION tidemark.domain_set(domain text, changes jsonb, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.domain_set(domain text, changes jsonb, reason text) IS 'Creates a domain or changes the named columns of it. Returns the row. Raises TM005 for an unknown column.';
CREATE FUNCTION tidemark.domain_spread() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_table_name = 'domain' then
        update tidemark.event_type t set metadata_only = new.metadata_only where t.domain = new.domain;
    else
        -- Whoever changes the domain at the same time waits for this row, and then finds it.
        new.metadata_only := (select d.metadata_only from tidemark.domain d where d.domain = new.domain for share);
    end if;
    return new;
end
$$;
ALTER FUNCTION tidemark.domain_spread() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.domain_spread() IS 'Trigger: keeps event_type.metadata_only the same as its domain''s.';
CREATE FUNCTION tidemark.emit(domain text, type text, payload jsonb DEFAULT '{}'::jsonb, key text DEFAULT NULL::text, stream text DEFAULT NULL::text, lane tidemark.lane DEFAULT 'immediate'::tidemark.lane, severity tidemark.severity DEFAULT 'info'::tidemark.severity, subject_table text DEFAULT NULL::text, subject_ref text DEFAULT NULL::text, idempotency_key text DEFAULT NULL::text, trace text DEFAULT NULL::text, actor text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    id uuid := tidemark.event_uuid(at);
    awake boolean;
begin
    if not tidemark.event_is_small(payload, key, stream, subject_table, subject_ref, trace, actor, occurred_at) then
        perform tidemark.event_check('', payload, key, stream, subject_table, subject_ref, trace, actor, occurred_at);
    end if;
    if emit.idempotency_key is not null then
        perform tidemark.idempotency_key_check(emit.idempotency_key, '');
        insert into tidemark.emit_key (domain, idempotency_key, event_id, created_at)
        select t.domain, emit.idempotency_key, id, at from tidemark.event_type t
        where t.domain = emit.domain and t.type = emit.type and t.enabled
        on conflict do nothing;
        if not found then
            -- The claim above waited for whoever was inserting the same key; a new statement sees what
            -- that transaction committed.
            id := (
                select k.event_id from tidemark.emit_key k
                join tidemark.event_type t on t.domain = k.domain and t.type = emit.type and t.enabled
                where k.domain = emit.domain and k.idempotency_key = emit.idempotency_key);
            if id is null then
                perform tidemark.emit_noted(domain, type, 1);
            end if;
            return id;
        end if;
    end if;
    -- One statement for the look at the registry, the checks and the row: half the cost of three.
    insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, key,
                                 subject_table, subject_ref, idempotency_key, trace, actor, payload)
    select id, at, coalesce(emit.occurred_at, at), coalesce(emit.lane, 'immediate'), coalesce(emit.severity, 'info'),
           emit.domain, emit.type, emit.stream, emit.key, emit.subject_table, emit.subject_ref,
           emit.idempotency_key, emit.trace, coalesce(emit.actor, session_user), emit.payload
    from tidemark.event_type t
    where t.domain = emit.domain and t.type = emit.type and t.enabled
      and (t.unchecked and jsonb_typeof(emit.payload) = 'object'
           or tidemark.payload_check(emit.domain, emit.type, emit.payload, t.schema, t.metadata_only, ''));
    if not found then
        -- Somebody disabled the type since the claim. A key that stayed behind would make the next emit with
        -- it look done.
        delete from tidemark.emit_key k
        where k.domain = emit.domain and k.idempotency_key = emit.idempotency_key and k.event_id = id;
        perform tidemark.emit_noted(domain, type, 1);
        return null;
    end if;
    -- Last, behind the number: a worker that went to sleep without having seen it holds this lock by now.
    if pg_try_advisory_lock(1953064301, 1) then
        awake := pg_advisory_unlock(1953064301, 1);
    elsif pg_try_advisory_lock_shared(1953064301, 1) then
        -- Not another writer, who holds it for himself for a moment: a sleeper, who shares it.
        awake := pg_advisory_unlock_shared(1953064301, 1);
        perform tidemark.wake(array[emit.domain]);
    end if;
    return id;
end
$$;
ALTER FUNCTION tidemark.emit(domain text, type text, payload jsonb, key text, stream text, lane tidemark.lane, severity tidemark.severity, subject_table text, subject_ref text, idempotency_key text, trace text, actor text, occurred_at timestamp with time zone) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.emit(domain text, type text, payload jsonb, key text, stream text, lane tidemark.lane, severity tidemark.severity, subject_table text, subject_ref text, idempotency_key text, trace text, actor text, occurred_at timestamp with time zone) IS 'Emits one event in the caller''s transaction and returns its id. Null: the type is not registered or not enabled, and nothing was stored but a trace (tidemark.unregistered_type); tidemark.emit_strict raises then. The id of an earlier event: its (domain, idempotency_key) was the same, and nothing was stored. Raises TM002 (payload is no object or breaks its schema), TM003 (forbidden key in a metadata-only domain) and TM005 (a text over 1024 bytes, a payload over the setting emit.payload_limit, an idempotency_key that begins with "tidemark:", an occurred_at that is infinite or not of the years 1 to 9999). Source: S1 fn_iu_emit_event.';
CREATE FUNCTION tidemark.emit_all(events jsonb, strict boolean, own boolean) RETURNS TABLE("position" integer, event_id uuid)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    fields constant text[] := array['domain', 'type', 'payload', 'key', 'stream', 'lane', 'severity', 'subject_table',
                                    'subject_ref', 'idempotency_key', 'trace', 'actor', 'occurred_at'];
    bad record;
    ids uuid[];
    unknown integer;
    awake boolean;
begin
    if jsonb_typeof(events) is distinct from 'array' then
        raise exception using errcode = 'TM002',
            message = format('events is %s, not an array', coalesce(jsonb_typeof(events), 'null')),
            hint = 'Give a JSON array of objects: [{"domain": …, "type": …, "payload": {…}}].';
    end if;
    select e.ord, f.name into bad
    from jsonb_array_elements(events) with ordinality e (event, ord)
    left join lateral (
        select k as name from jsonb_object_keys(case jsonb_typeof(e.event) when 'object' then e.event else '{}' end) k
        where k <> all (fields) limit 1) f on true
    where jsonb_typeof(e.event) <> 'object' or f.name is not null
    order by e.ord limit 1;
    if found then
        raise exception using errcode = 'TM002',
            message = case when bad.name is null then format('event %s is not an object', bad.ord)
                      else format('event %s has the unknown field "%s"', bad.ord, bad.name) end,
            hint = 'Fields: ' || array_to_string(fields, ', ') || '.';
    end if;
    select e.ord, f.key, f.value into bad
    from jsonb_array_elements(events) with ordinality e (event, ord)
    cross join lateral jsonb_each(e.event) f
    where f.key = 'payload' and jsonb_typeof(f.value) <> 'object'
       or f.key = 'lane' and f.value <> all (
           array(select to_jsonb(l::text) from unnest(enum_range(null::tidemark.lane)) l) || 'null'::jsonb)
       or f.key = 'severity' and f.value <> all (
           array(select to_jsonb(l::text) from unnest(enum_range(null::tidemark.severity)) l) || 'null'::jsonb)
    order by e.ord, f.key limit 1;
    if found then
        raise exception using errcode = 'TM002',
            message = case bad.key
                when 'payload' then format('event %s: payload is %s, not an object', bad.ord, jsonb_typeof(bad.value))
                else format('event %s: there is no %s %s', bad.ord, bad.key, bad.value) end,
            hint = 'Lanes: immediate, batch. Severities: info, warning, high, critical.';
    end if;
    if not own then
        perform tidemark.idempotency_key_check(e.event ->> 'idempotency_key', format('event %s: ', e.ord))
        from jsonb_array_elements(events) with ordinality e (event, ord)
        where e.event ->> 'idempotency_key' is not null;
    end if;
    perform tidemark.event_check(format('event %s: ', e.ord), e.payload, e.key, e.stream, e.subject_table, e.subject_ref,
                                 e.trace, e.actor, e.occurred_at)
    from rows from (jsonb_to_recordset(events) as (
            payload jsonb, key text, stream text, subject_table text, subject_ref text, trace text, actor text,
            occurred_at timestamptz)) with ordinality
        e (payload, key, stream, subject_table, subject_ref, trace, actor, occurred_at, ord)
    where not tidemark.event_is_small(e.payload, e.key, e.stream, e.subject_table, e.subject_ref, e.trace, e.actor,
                                      e.occurred_at);
    -- Only registered types go on; the rest return null, as emit does.
    perform tidemark.payload_check(e.domain, e.type, coalesce(e.payload, '{}'), t.schema, t.metadata_only,
                                   format('event %s: ', e.ord))
    from rows from (jsonb_to_recordset(events) as (domain text, type text, payload jsonb))
         with ordinality e (domain, type, payload, ord)
    join tidemark.event_type t on t.domain = e.domain and t.type = e.type and t.enabled
    where not t.unchecked;
    with input as materialized (
        select e.*, tidemark.event_uuid(at) as id
        from rows from (jsonb_to_recordset(events) as (
                domain text, type text, payload jsonb, key text, stream text, lane tidemark.lane,
                severity tidemark.severity, subject_table text, subject_ref text, idempotency_key text, trace text,
                actor text, occurred_at timestamptz)) with ordinality
            e (domain, type, payload, key, stream, lane, severity, subject_table, subject_ref, idempotency_key, trace,
               actor, occurred_at, ord)
        join tidemark.event_type t on t.domain = e.domain and t.type = e.type and t.enabled
    ), claimed as (
        insert into tidemark.emit_key as k (domain, idempotency_key, event_id, created_at, own)
        select i.domain, i.idempotency_key, i.id, at, emit_all.own from input i
        where i.idempotency_key is not null
        -- Always in the same order, so that two callers cannot wait for each other in a circle; the first of
        -- equal keys in one call wins.
        order by i.domain, i.idempotency_key, i.ord
        on conflict do nothing
        returning k.event_id
    ), stored as (
        insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, key,
                                     subject_table, subject_ref, idempotency_key, trace, actor, payload)
        select i.id, at, coalesce(i.occurred_at, at), coalesce(i.lane, 'immediate'), coalesce(i.severity, 'info'),
               i.domain, i.type, i.stream, i.key, i.subject_table, i.subject_ref, i.idempotency_key, i.trace,
               coalesce(i.actor, session_user), coalesce(i.payload, '{}')
        from input i
        where i.idempotency_key is null or i.id in (select c.event_id from claimed c)
        order by i.ord
    )
    select array_agg(case when i.idempotency_key is null or i.id in (select c.event_id from claimed c) then i.id end
                     order by e.ord), min(e.ord) filter (where i.ord is null)
    into ids, unknown
    from jsonb_array_elements(events) with ordinality e (event, ord)
    left join input i on i.ord = e.ord;
    if strict and unknown is not null then
        -- By the statement that stores, so that no type is disabled in between; it is taken back with the call.
        raise exception using errcode = 'TM001',
            message = format('event %s: event type %s/%s is not registered or not enabled', unknown,
                             events -> (unknown - 1) ->> 'domain', events -> (unknown - 1) ->> 'type'),
            hint = format('Register it: select tidemark.type_set(%L, %L);',
                          events -> (unknown - 1) ->> 'domain', events -> (unknown - 1) ->> 'type');
    elsif unknown is not null then
        perform tidemark.emit_noted(e.domain, e.type, count(*))
        from rows from (jsonb_to_recordset(events) as (domain text, type text)) with ordinality e (domain, type, ord)
        where ids[e.ord] is null
          and not exists (select from tidemark.event_type t where t.domain = e.domain and t.type = e.type and t.enabled)
        group by e.domain, e.type;
    end if;
    -- As in emit: behind the numbers.
    if pg_try_advisory_lock(1953064301, 1) then
        awake := pg_advisory_unlock(1953064301, 1);
    elsif pg_try_advisory_lock_shared(1953064301, 1) then
        awake := pg_advisory_unlock_shared(1953064301, 1);
        perform tidemark.wake(array(select distinct e.event ->> 'domain' from jsonb_array_elements(events) e (event)
                                    where e.event ->> 'domain' is not null));
    end if;
    if own then
        perform tidemark.own_key_check(e.domain, e.idempotency_key, format('event %s: ', e.ord))
        from rows from (jsonb_to_recordset(events) as (domain text, idempotency_key text))
             with ordinality e (domain, idempotency_key, ord)
        where ids[e.ord] is null;
    end if;
    -- A new statement, which sees the keys that other transactions committed while the claim waited.
    return query
    select e.ord::integer, coalesce(ids[e.ord], k.event_id)
    from rows from (jsonb_to_recordset(events) as (domain text, type text, idempotency_key text))
         with ordinality e (domain, type, idempotency_key, ord)
    left join tidemark.event_type t on t.domain = e.domain and t.type = e.type and t.enabled
    left join tidemark.emit_key k on k.domain = t.domain and k.idempotency_key = e.idempotency_key
    order by e.ord;
end
$$;
ALTER FUNCTION tidemark.emit_all(events jsonb, strict boolean, own boolean) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.emit_all(events jsonb, strict boolean, own boolean) IS 'Behind tidemark.emit_many, emit_many_strict and source_emit, for their owner alone. strict: raises TM001 for a type that is not registered or not enabled. own: the idempotency keys are Tidemark''s own, "tidemark:…".';
CREATE FUNCTION tidemark.emit_findings() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    names_limit constant integer := 1000;
    told text;
    emits bigint;
    last timestamptz;
begin
    with raw as (
        delete from tidemark.emit_unregistered u
        where u.id = any (array(select o.id from tidemark.emit_unregistered o order by o.id limit 10000))
        returning u.*
    ), new as (
        select r.domain, r.type, r.role, sum(r.emits)::bigint as emits, min(r.at) as first_at, max(r.at) as last_at,
               exists (select from tidemark.unregistered_type k where k.domain = r.domain and k.type = r.type and k.role = r.role) as known
        from raw r group by 1, 2, 3
    ), placed as (
        select n.*, n.known or (select count(*) from tidemark.unregistered_type) + row_number() over (partition by n.known order by n.first_at) < names_limit as named
        from new n
    )
    insert into tidemark.unregistered_type as k (domain, type, role, emits, first_at, last_at)
    select case when p.named then p.domain else '*' end, case when p.named then p.type else '*' end, case when p.named then p.role else '*' end,
           sum(p.emits)::bigint, min(p.first_at), max(p.last_at)
    from placed p group by 1, 2, 3
    on conflict (domain, type, role) do update
    set emits = k.emits + excluded.emits, last_at = greatest(k.last_at, excluded.last_at);
    delete from tidemark.unregistered_type k
    where k.last_at < clock_timestamp() - interval '1 day'
       or exists (select from tidemark.event_type t where t.domain = k.domain and t.type = k.type and t.enabled);
    select sum(k.emits), max(k.last_at),
           string_agg(format('%s/%s by %s (%s)', k.domain, k.type, k.role, k.emits), ', ' order by k.last_at desc, k.domain, k.type, k.role) filter (where k.place <= 5)
           || case when count(*) > 5 then format(', and %s more', count(*) - 5) else '' end
    into emits, last, told
    from (select u.*, row_number() over (order by u.last_at desc, u.domain, u.type, u.role) as place from tidemark.unregistered_type u) k;
    if told is null then
        perform tidemark.finding_close('emit_unregistered', 'emit');
    -- Counted once for what is new.
    elsif not exists (select from tidemark.finding f where f.kind = 'emit_unregistered' and f.subject = 'emit'
                      and f.closed_at is null and f.last_seen_at >= last and f.detail like '%' || told) then
        perform tidemark.finding_open('emit_unregistered', 'emit', 'warning',
            format('%s stored nothing, since the type is not registered or not enabled: %s',
                   case emits when 1 then '1 emit' else emits || ' emits' end, told));
    end if;
end
$$;
ALTER FUNCTION tidemark.emit_findings() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.emit_findings() IS 'tidemark.maintain''s part for emits of types that are not registered or not enabled: sums up tidemark.emit_unregistered by name (10,000 rows a call) and opens the finding emit_unregistered; it closes when each type is enabled, or a day after its last emit.';
CREATE FUNCTION tidemark.emit_many(events jsonb) RETURNS TABLE("position" integer, event_id uuid)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select e.position, e.event_id from tidemark.emit_all(events, false, false) e
$$;
ALTER FUNCTION tidemark.emit_many(events jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.emit_many(events jsonb) IS 'Emits an array of events, [{"domain": …, "type": …, "payload": {…}, …}], in the caller''s transaction: the fields are the parameters of tidemark.emit. Returns for each position, from 1, what tidemark.emit would return. An event that is refused (TM002, TM003, TM005) refuses them all; the message names its position.';
CREATE FUNCTION tidemark.emit_many_strict(events jsonb) RETURNS TABLE("position" integer, event_id uuid)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select e.position, e.event_id from tidemark.emit_all(events, true, false) e
$$;
ALTER FUNCTION tidemark.emit_many_strict(events jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.emit_many_strict(events jsonb) IS 'As tidemark.emit_many, but raises TM001, with the position, where a type is not registered or not enabled; then nothing is stored.';
CREATE FUNCTION tidemark.emit_noted(domain text, type text, emits bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    -- No counter: one emitter's transaction would hold its row, and others would wait for it. No more than 8 MB, though
    -- maintain may never be called.
    if pg_relation_size('tidemark.emit_unregistered') < 8388608 then
        insert into tidemark.emit_unregistered (at, domain, type, role, emits)
        values (clock_timestamp(), left(coalesce(emit_noted.domain, ''), 63), left(coalesce(emit_noted.type, ''), 128), session_user, emit_noted.emits);
    end if;
end
$$;
ALTER FUNCTION tidemark.emit_noted(domain text, type text, emits bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.emit_noted(domain text, type text, emits bigint) IS 'Leaves a trace of emits of a type that is not registered or not enabled, in tidemark.emit_unregistered.';
CREATE FUNCTION tidemark.emit_strict(domain text, type text, payload jsonb DEFAULT '{}'::jsonb, key text DEFAULT NULL::text, stream text DEFAULT NULL::text, lane tidemark.lane DEFAULT 'immediate'::tidemark.lane, severity tidemark.severity DEFAULT 'info'::tidemark.severity, subject_table text DEFAULT NULL::text, subject_ref text DEFAULT NULL::text, idempotency_key text DEFAULT NULL::text, trace text DEFAULT NULL::text, actor text DEFAULT NULL::text, occurred_at timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    id constant uuid := tidemark.emit(domain, type, payload, key, stream, lane, severity, subject_table, subject_ref,
                                      idempotency_key, trace, actor, occurred_at);
begin
    if id is null then
        raise exception using errcode = 'TM001',
            message = format('event type %s/%s is not registered or not enabled', domain, type),
            hint = format('Register it: select tidemark.type_set(%L, %L);', domain, type);
    end if;
    return id;
end
$$;
ALTER FUNCTION tidemark.emit_strict(domain text, type text, payload jsonb, key text, stream text, lane tidemark.lane, severity tidemark.severity, subject_table text, subject_ref text, idempotency_key text, trace text, actor text, occurred_at timestamp with time zone) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.emit_strict(domain text, type text, payload jsonb, key text, stream text, lane tidemark.lane, severity tidemark.severity, subject_table text, subject_ref text, idempotency_key text, trace text, actor text, occurred_at timestamp with time zone) IS 'As tidemark.emit, but raises TM001 where the type is not registered or not enabled.';
CREATE FUNCTION tidemark.event_check(place text, payload jsonb, key text, stream text, subject_table text, subject_ref text, trace text, actor text, occurred_at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    payload_bytes constant bigint := octet_length(payload::text);
    payload_limit bigint;
    name text;
    value text;
begin
    -- A day inside the years 1 to 9999, which are those that JSON and RFC 3339 can write, in any time zone.
    if occurred_at < timestamptz '0001-01-02 00:00:00+00' or occurred_at >= timestamptz '9999-12-31 00:00:00+00' then
        raise exception using errcode = 'TM005',
            message = format('%soccurred_at is %s, and must be a time of the years 1 to 9999', place, occurred_at),
            hint = 'Leave it out where it is not known: then it is the time of the emit.';
    end if;
    if greatest(octet_length(key), octet_length(stream), octet_length(subject_table), octet_length(subject_ref),
                octet_length(trace), octet_length(actor)) > 1024 then
        select m.name, m.value into name, value
        from (values ('key', key), ('stream', stream), ('subject_table', subject_table), ('subject_ref', subject_ref),
                     ('trace', trace), ('actor', actor)) m (name, value)
        where octet_length(m.value) > 1024 limit 1;
        raise exception using errcode = 'TM005',
            message = format('%s%s has %s bytes, and must have at most 1024', place, name, octet_length(value)),
            hint = 'Use a digest of it, or put it into the payload.';
    end if;
    -- Not of the stored size, which says little: 1e100000 takes a few bytes, and compressed text a 270th.
    if payload_bytes > 1000 then
        payload_limit := tidemark.payload_limit();
        if payload_bytes > payload_limit then
            raise exception using errcode = 'TM005',
                message = format('%spayload has %s bytes, and must have at most %s', place, payload_bytes, payload_limit),
                hint = 'Send a reference to what is large, or raise the setting emit.payload_limit.';
        end if;
    end if;
    return true;
end
$$;
ALTER FUNCTION tidemark.event_check(place text, payload jsonb, key text, stream text, subject_table text, subject_ref text, trace text, actor text, occurred_at timestamp with time zone) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.event_check(place text, payload jsonb, key text, stream text, subject_table text, subject_ref text, trace text, actor text, occurred_at timestamp with time zone) IS 'True, or raises TM005: an occurred_at that is infinite or not of the years 1 to 9999, a text member over 1024 bytes, a payload whose JSON text is over the setting emit.payload_limit. place begins the message. The rule for emit, emit_many and capture.';
CREATE FUNCTION tidemark.event_evidence(seq bigint) RETURNS TABLE(worker text, route_code text, attempt_no integer, outcome tidemark.outcome, reason text, detail text, decided_at timestamp with time zone, idempotency_key text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select w.worker, r.route_code, e.attempt_no, e.outcome, e.reason, e.detail, e.decided_at,
           tidemark.attempt_key(w.worker, r.route_code, o.event_id)
    from (
        select d.worker_id, d.route_id, 1 as attempt_no, d.outcome, d.reason, null as detail, d.decided_at
        from tidemark.decision d
        where d.last_seq >= event_evidence.seq and d.first_seq <= event_evidence.seq and d.seqs @> event_evidence.seq
        union all
        select a.worker_id, a.route_id, a.attempt_no, a.outcome, a.reason, a.detail, a.decided_at
        from tidemark.attempt a
        where a.seq = event_evidence.seq) e
    join tidemark.worker w on w.id = e.worker_id
    left join tidemark.outbound_route r on r.id = e.route_id
    left join tidemark.outbox o on o.seq = event_evidence.seq
    order by w.worker, r.route_code, e.attempt_no
$$;
ALTER FUNCTION tidemark.event_evidence(seq bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.event_evidence(seq bigint) IS 'The rows of tidemark.route_attempt for one event, given by its number.';
CREATE FUNCTION tidemark.event_is_small(payload jsonb, key text, stream text, subject_table text, subject_ref text, trace text, actor text, occurred_at timestamp with time zone) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    -- The text of a large payload is made once, by event_check.
    select coalesce(pg_catalog.pg_column_size(payload), 0) <= 1000
       and pg_catalog.octet_length(pg_catalog.concat(payload, key, stream, subject_table, subject_ref, trace, actor)) <= 1000
       and (occurred_at is null
            or occurred_at >= timestamptz '0001-01-02 00:00:00+00' and occurred_at < timestamptz '9999-12-31 00:00:00+00')
$$;
ALTER FUNCTION tidemark.event_is_small(payload jsonb, key text, stream text, subject_table text, subject_ref text, trace text, actor text, occurred_at timestamp with time zone) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.event_is_small(payload jsonb, key text, stream text, subject_table text, subject_ref text, trace text, actor text, occurred_at timestamp with time zone) IS 'True: tidemark.event_check has nothing against the event. False: it has to be asked.';
CREATE FUNCTION tidemark.event_json(event tidemark.outbox) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    select pg_catalog.to_jsonb(event)
$$;
ALTER FUNCTION tidemark.event_json(event tidemark.outbox) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.event_json(event tidemark.outbox) IS 'An event as SQL targets get it, and as dead letters keep it: the columns of the log by name.';
CREATE FUNCTION tidemark.event_seq(event_id uuid) RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select o.seq from tidemark.outbox o
    where o.created_at >= tidemark.uuid_time(event_seq.event_id)
      and o.created_at < tidemark.uuid_time(event_seq.event_id) + interval '1 millisecond'
      and o.event_id = event_seq.event_id
$$;
ALTER FUNCTION tidemark.event_seq(event_id uuid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.event_seq(event_id uuid) IS 'Number of the event in the log, found through the time in its id; null: not in the log (any more).';
CREATE FUNCTION tidemark.event_sizes(numbers bigint[]) RETURNS integer[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
    return array(
        select coalesce(pg_column_size(o.payload), 0)
        from unnest(event_sizes.numbers) with ordinality n (seq, place)
        left join lateral (select e.payload from tidemark.outbox e where e.seq = n.seq) o on true
        order by n.place);
end
$$;
ALTER FUNCTION tidemark.event_sizes(numbers bigint[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.event_sizes(numbers bigint[]) IS 'How many bytes the payloads of these events have, as they are stored, in this order.';
CREATE FUNCTION tidemark.event_uuid(at timestamp with time zone) RETURNS uuid
    LANGUAGE sql PARALLEL SAFE
    AS $$
    select overlay(pg_catalog.gen_random_uuid()::text placing tidemark.event_uuid_time(at) from 1 for 15)::uuid
$$;
ALTER FUNCTION tidemark.event_uuid(at timestamp with time zone) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.event_uuid(at timestamp with time zone) IS 'A new version 7 uuid whose time is at, in milliseconds.';
CREATE FUNCTION tidemark.event_uuid_time(at timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    select overlay(
        pg_catalog.lpad(pg_catalog.to_hex((pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', at)) * 1000)::bigint), 12, '0')
        placing '-' from 9 for 0) || '-7'
$$;
ALTER FUNCTION tidemark.event_uuid_time(at timestamp with time zone) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.event_uuid_time(at timestamp with time zone) IS 'The first 15 characters of a version 7 uuid: its time, in milliseconds, and its version.';
CREATE FUNCTION tidemark.events(seqs bigint[]) RETURNS SETOF tidemark.outbox
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
    -- A run of neighbours, which is what a batch mostly is, is one index range.
    if seqs[cardinality(seqs)] - seqs[1] + 1 = cardinality(seqs) then
        return query select o.* from tidemark.outbox o
            where o.seq >= seqs[1] and o.seq <= seqs[cardinality(seqs)] order by o.seq;
    else
        return query select o.* from tidemark.outbox o where o.seq = any (seqs) order by o.seq;
    end if;
end
$$;
ALTER FUNCTION tidemark.events(seqs bigint[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.events(seqs bigint[]) IS 'Events by number (given in rising order), in the order of numbers.';
CREATE FUNCTION tidemark.executor_id(worker text, source text, shard integer) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select executor_id.worker || '/' || executor_id.source || '/' || executor_id.shard
$$;
ALTER FUNCTION tidemark.executor_id(worker text, source text, shard integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.executor_id(worker text, source text, shard integer) IS 'Name of a cursor in tidemark.heartbeat.';
CREATE FUNCTION tidemark.fence_blame(fence text[], relation regclass DEFAULT 'tidemark.outbox'::regclass) RETURNS text
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select string_agg(b.who, '; ' order by b.since nulls last) from (
        select format('pid %s, application "%s", user %s, in its transaction for %s', a.pid, a.application_name, a.usename,
                      coalesce(date_trunc('second', clock_timestamp() - a.xact_start)::text, 'unknown')) as who,
               a.xact_start as since
        from pg_locks l join pg_stat_activity a on a.pid = l.pid
        where l.locktype = 'relation' and l.granted and l.relation = any (tidemark.relation_tree(fence_blame.relation))
          and l.database = a.datid and a.datname = current_database()
          and l.mode = 'RowExclusiveLock' and l.virtualtransaction = any (fence)
        union all
        select format('prepared transaction "%s" of %s, for %s', p.gid, p.owner,
                      date_trunc('second', clock_timestamp() - p.prepared)), p.prepared
        from pg_prepared_xacts p
        where p.database = current_database()
        order by 2 nulls last limit 5) b
$$;
ALTER FUNCTION tidemark.fence_blame(fence text[], relation regclass) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.fence_blame(fence text[], relation regclass) IS 'Who keeps the fence from closing: pid, application, user and age of the oldest five, prepared transactions by gid. Null: nobody any more.';
CREATE FUNCTION tidemark.fence_closed(fence text[], relation regclass DEFAULT 'tidemark.outbox'::regclass) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return not exists (
        select from pg_locks l
        where l.locktype = 'relation' and l.granted
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.relation = any (tidemark.relation_tree(fence_closed.relation))
          and l.mode = 'RowExclusiveLock'
          -- A prepared transaction has no pid, and another virtual id after a restart of the server: it
          -- cannot be told apart, so any that holds the lock keeps every fence open.
          and (l.virtualtransaction = any (fence) or l.pid is null));
end
$$;
ALTER FUNCTION tidemark.fence_closed(fence text[], relation regclass) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.fence_closed(fence text[], relation regclass) IS 'True: no member of the fence holds the lock of the table (default the log) any more, and no prepared transaction does: what they wrote is visible to the next statement, or was rolled back.';
CREATE FUNCTION tidemark.fence_now(relation regclass DEFAULT 'tidemark.outbox'::regclass) RETURNS text[]
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return (select coalesce(array_agg(distinct l.virtualtransaction), '{}') from pg_locks l
    where l.locktype = 'relation' and l.granted
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and l.relation = any (tidemark.relation_tree(fence_now.relation))
      -- Only writers: autovacuum's and DDL's modes would keep holes open for nothing.
      and l.mode = 'RowExclusiveLock');
end
$$;
ALTER FUNCTION tidemark.fence_now(relation regclass) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.fence_now(relation regclass) IS 'Virtual transaction ids of everyone who holds RowExclusiveLock on the table (default the log) or a part of it, and so may own a number that is not visible yet.';
CREATE TABLE tidemark.finding (
    id bigint NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    severity tidemark.severity NOT NULL,
    detail text NOT NULL,
    opened_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    last_seen_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    closed_at timestamp with time zone,
    count bigint DEFAULT 1 NOT NULL,
    acked_at timestamp with time zone,
    acked_by text,
    ack_note text,
    CONSTRAINT ack_is_whole CHECK ((((acked_at IS NULL) = (acked_by IS NULL)) AND ((acked_at IS NULL) = (ack_note IS NULL))))
);
ALTER TABLE tidemark.finding OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.finding IS 'What needs an operator''s attention. One open row per kind and subject; seen again, it counts.';
COMMENT ON COLUMN tidemark.finding.id IS 'Number.';
COMMENT ON COLUMN tidemark.finding.kind IS 'What was found, e.g. cursor_holes.';
COMMENT ON COLUMN tidemark.finding.subject IS 'On what: a worker, a route, a table.';
COMMENT ON COLUMN tidemark.finding.severity IS 'How bad.';
COMMENT ON COLUMN tidemark.finding.detail IS 'The latest facts, blame included.';
COMMENT ON COLUMN tidemark.finding.opened_at IS 'First seen.';
COMMENT ON COLUMN tidemark.finding.last_seen_at IS 'Last seen.';
COMMENT ON COLUMN tidemark.finding.closed_at IS 'When it was over; null: open.';
COMMENT ON COLUMN tidemark.finding.count IS 'Times seen while open.';
COMMENT ON COLUMN tidemark.finding.acked_at IS 'When somebody said that they know of it; null: nobody. It is still open.';
COMMENT ON COLUMN tidemark.finding.acked_by IS 'The role that logged in to say so.';
COMMENT ON COLUMN tidemark.finding.ack_note IS 'What that person said.';
CREATE FUNCTION tidemark.finding_ack(id bigint, note text) RETURNS SETOF tidemark.finding
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    before jsonb;
    acked tidemark.finding;
begin
    if coalesce(note, '') !~ '[^[:space:]]' then
        raise exception using errcode = 'TM005', message = format('finding %s: a note is missing', id),
            hint = 'Say who looks after it, or why it may stay: others read it.';
    end if;
    select to_jsonb(f) into before from tidemark.finding f where f.id = finding_ack.id for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no finding %s', id),
            hint = 'Findings: select id, kind, subject from tidemark.finding where closed_at is null;';
    end if;
    if before ->> 'closed_at' is not null then
        raise exception using errcode = 'TM005', message = format('finding %s is closed since %s', id, before ->> 'closed_at'),
            hint = 'Only an open finding is acknowledged.';
    end if;
    update tidemark.finding f set acked_at = clock_timestamp(), acked_by = session_user, ack_note = finding_ack.note
    where f.id = finding_ack.id returning f.* into acked;
    insert into tidemark.audit (action, object, reason, before, after)
    values ('finding_ack', 'finding ' || acked.id, finding_ack.note, before, to_jsonb(acked));
    return next acked;
end
$$;
ALTER FUNCTION tidemark.finding_ack(id bigint, note text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.finding_ack(id bigint, note text) IS 'Says that somebody knows of an open finding; it stays open until what it is about is over. Again: the latest note holds. Returns the row; audited. Raises TM004 (no such finding), TM005 (it is closed, or the note is empty).';
CREATE FUNCTION tidemark.finding_close(kind text, subject text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    update tidemark.finding f set closed_at = clock_timestamp()
    where f.kind = finding_close.kind and f.subject = finding_close.subject and f.closed_at is null;
    return found;
end
$$;
ALTER FUNCTION tidemark.finding_close(kind text, subject text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.finding_close(kind text, subject text) IS 'Closes the open finding of the kind on the subject. True: there was one.';
CREATE FUNCTION tidemark.finding_event() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    told constant text := case when new.closed_at is null then 'finding_opened' else 'finding_closed' end;
begin
    -- A subtransaction is paid for only where somebody wants the event.
    if exists (select from tidemark.event_type t where t.domain = 'system' and t.type = told and t.enabled) then
        perform tidemark.system_event(told, new.severity, 'tidemark.finding', new.id::text, jsonb_build_object(
            'finding', new.id, 'kind', new.kind, 'subject', new.subject, 'severity', new.severity, 'detail', left(new.detail, 2000),
            'opened_at', new.opened_at, 'closed_at', new.closed_at, 'count', new.count));
    end if;
    return null;
end
$$;
ALTER FUNCTION tidemark.finding_event() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.finding_event() IS 'Trigger: emits system/finding_opened or system/finding_closed, where that type is enabled.';
CREATE FUNCTION tidemark.finding_open(kind text, subject text, severity tidemark.severity, detail text) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    opened bigint;
begin
    insert into tidemark.finding as f (kind, subject, severity, detail)
    values (finding_open.kind, finding_open.subject, finding_open.severity, finding_open.detail)
    on conflict (kind, subject) where closed_at is null do update
    set count = f.count + 1, last_seen_at = clock_timestamp(), severity = excluded.severity, detail = excluded.detail
    returning f.id into opened;
    return opened;
end
$$;
ALTER FUNCTION tidemark.finding_open(kind text, subject text, severity tidemark.severity, detail text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.finding_open(kind text, subject text, severity tidemark.severity, detail text) IS 'Opens a finding, or counts it where it is open already. Returns its number.';
CREATE FUNCTION tidemark.flush_on_commit() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    -- What leaves after this transaction (a notification, a delivery) must not be taken back by a crash. Waiting
    -- for our own commit to reach the disk makes every commit before it durable too, so an event whose writer
    -- did not wait for the disk cannot be handled and then un-happen.
    if current_setting('synchronous_commit') in ('off', 'local') then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end
$$;
ALTER FUNCTION tidemark.flush_on_commit() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.flush_on_commit() IS 'This transaction''s commit waits for the disk, and for the standby where one is waited for, whatever the session''s default is.';
CREATE FUNCTION tidemark.forbidden_key_in(document jsonb) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select f.key from tidemark.forbidden_key f
    where document::text ~* f.pattern
    order by f.key limit 1
$$;
ALTER FUNCTION tidemark.forbidden_key_in(document jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.forbidden_key_in(document jsonb) IS 'A key of tidemark.forbidden_key that the document holds at any depth, in any letter case, with or without separators, also inside encoded JSON. Null: none.';
CREATE FUNCTION tidemark.full_xid(id xid, next_id xid8) RETURNS xid8
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select (next_id::text::bigint - ((next_id::text::bigint - id::text::bigint) & 4294967295))::text::xid8
$$;
ALTER FUNCTION tidemark.full_xid(id xid, next_id xid8) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.full_xid(id xid, next_id xid8) IS 'The transaction that wrote a row (its xmin), with the half of its number that the row does not keep; next_id: a number that is not below it.';
CREATE FUNCTION tidemark.gate_open(gate text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return exists (select from tidemark.setting s where s.key = gate and s.value = 'true');
end
$$;
ALTER FUNCTION tidemark.gate_open(gate text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.gate_open(gate text) IS 'True: the gate (routes.enabled, worker.<name>.enabled, notify.bridge_enabled) is open. A gate that is absent is closed. Source: S0 fn_iu_core_routes_enabled.';
CREATE FUNCTION tidemark.gate_set(gate text, open boolean, reason text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if gate is null or gate not in ('routes.enabled', 'notify.bridge_enabled')
        and not exists (select from tidemark.worker w where 'worker.' || w.worker || '.enabled' = gate)
    then
        raise exception using errcode = 'TM004', message = format('there is no gate "%s"', gate),
            hint = 'Gates: routes.enabled, notify.bridge_enabled, and worker.<name>.enabled of each worker in tidemark.worker.';
    end if;
    if open is null then
        raise exception using errcode = 'TM005', message = format('gate %s is to be null, which is neither open nor closed', gate),
            hint = 'true opens it, false closes it.';
    end if;
    perform set_config('tidemark.reason', coalesce(reason, ''), true);
    insert into tidemark.setting as s (key, value, description)
    values (gate, open::text, 'Gate.')
    on conflict (key) do update set value = excluded.value;
    return open;
end
$$;
ALTER FUNCTION tidemark.gate_set(gate text, open boolean, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.gate_set(gate text, open boolean, reason text) IS 'Opens or closes a gate: routes.enabled, worker.<name>.enabled, or notify.bridge_enabled. Obeyed by every worker within a second. Raises TM004 for an unknown gate, TM005 for null.';
CREATE FUNCTION tidemark.group_numbers(batch tidemark.batch, members integer[]) RETURNS int8multirange
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    others integer[];
    numbers int8multirange;
begin
    if cardinality(members) = cardinality(batch.groups) then
        return batch.seqs;
    elsif cardinality(members) = 1 then
        return (batch.groups[members[1]]).seqs;
    end if;
    others := array(
        select n from generate_subscripts(batch.groups, 1) n where n <> all (members));
    if cardinality(others) < cardinality(members) then
        -- Taking the few from all is a merge; putting the many together is a sort.
        return batch.seqs - tidemark.group_numbers(batch, others);
    end if;
    select range_agg((batch.groups[m]).seqs) into numbers from unnest(members) m;
    return numbers;
end
$$;
ALTER FUNCTION tidemark.group_numbers(batch tidemark.batch, members integer[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.group_numbers(batch tidemark.batch, members integer[]) IS 'Numbers of the events in those groups of the batch that have these positions.';
CREATE FUNCTION tidemark.handlers_register(worker text, patterns text[], starts text DEFAULT 'now'::text) RETURNS TABLE(route_code text, pattern text, enabled boolean, dry_run boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    p text;
    code text;
begin
    perform set_config('tidemark.reason', 'registered by a Go program', true);
    if exists (select from tidemark.worker w where w.worker = handlers_register.worker and w.handler <> 'go') then
        raise exception using errcode = 'TM005',
            message = format('worker %s delivers by routes: a Go program needs a worker of its own', handlers_register.worker),
            hint = 'Give the program another worker name.';
    end if;
    insert into tidemark.worker as w (worker, handler, description)
    values (handlers_register.worker, 'go', 'Functions of a Go program.') on conflict do nothing;
    perform tidemark.worker_cursor_make(handlers_register.worker, handlers_register.starts);
    foreach p in array patterns loop
        if p !~ '^([*]|[^/*]+)/([*]|[^*]+|[^*]+[.][*])$' then
            raise exception using errcode = 'TM005', message = format('"%s" is no pattern', p),
                hint = 'Write DOMAIN/TYPE, where TYPE is exact, a prefix such as order.*, or *; DOMAIN may be * too.';
        end if;
        code := handlers_register.worker || '.' || regexp_replace(replace(replace(p, '*', 'all'), '/', '.'), '[^A-Za-z0-9_.-]', '-', 'g');
        insert into tidemark.outbound_route (route_code, worker, domain, type, target_kind, target_ref, description)
        select case when length(code) <= 63 then code else left(code, 54) || '-' || left(md5(p), 8) end, handlers_register.worker,
               split_part(p, '/', 1), substr(p, strpos(p, '/') + 1), 'go', p, 'Function of a Go program.'
        where not exists (select from tidemark.outbound_route r
                          where r.worker = handlers_register.worker and r.target_kind = 'go' and r.target_ref = p);
    end loop;
    return query
    select r.route_code, r.target_ref, r.enabled, r.dry_run from tidemark.outbound_route r
    where r.worker = handlers_register.worker and r.target_kind = 'go' and r.target_ref = any (patterns)
    order by r.id;
end
$_$;
ALTER FUNCTION tidemark.handlers_register(worker text, patterns text[], starts text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.handlers_register(worker text, patterns text[], starts text) IS 'Makes the worker of a Go program, its cursor at starts (as of tidemark.worker_set; a worker that has begun goes on where it is), and a route for each of its patterns (DOMAIN/TYPE), off and in dry run as every new one. What is there already stays as it is. Returns the routes. Raises TM005 for a pattern that is none, and for a worker that delivers by routes.';
CREATE FUNCTION tidemark.heartbeat_daemon(name text, status text DEFAULT 'running'::text, payload jsonb DEFAULT '{}'::jsonb) RETURNS timestamp with time zone
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    at timestamptz;
begin
    if name is null or name !~ '^[^[:space:][:cntrl:]]{1,190}$' then
        raise exception using errcode = 'TM005',
            message = format('a daemon cannot be named %s: 1 to 190 characters without white space', coalesce(quote_literal(left(name, 300)), 'null')),
            hint = 'Set "name" in its configuration.';
    end if;
    if status is null or length(status) not between 1 and 200 then
        raise exception using errcode = 'TM005', message = format('daemon %s: status must have 1 to 200 characters', name);
    end if;
    perform tidemark.heartbeat_payload_check('daemon/' || name, payload);
    -- What heartbeat_register set for it stays.
    insert into tidemark.heartbeat as h (executor_id, kind, expected_cadence_seconds, stale_threshold_seconds, watched_since,
                                         last_beat_at, ticks_total, last_status, payload)
    values ('daemon/' || heartbeat_daemon.name, 'PG_worker', 10, 30, clock_timestamp(), clock_timestamp(), 1,
            heartbeat_daemon.status, heartbeat_daemon.payload)
    on conflict (executor_id) do update
    set last_beat_at = excluded.last_beat_at, ticks_total = h.ticks_total + 1, last_status = excluded.last_status, payload = excluded.payload
    returning h.last_beat_at into at;
    return at;
end
$_$;
ALTER FUNCTION tidemark.heartbeat_daemon(name text, status text, payload jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.heartbeat_daemon(name text, status text, payload jsonb) IS 'A sign of life of the daemon daemon/<name>, which registers it where it is new: every 10 seconds, silent after 30. This is the one executor that registers itself, since it has no right to register others. Status stopped says goodbye: its silence is no alarm from then on. Returns the time of the beat. Raises TM002, TM003, TM005.';
CREATE TABLE tidemark.heartbeat (
    executor_id text NOT NULL,
    kind text DEFAULT 'PG_worker'::text NOT NULL,
    domain_scope text[] DEFAULT '{}'::text[] NOT NULL,
    last_beat_at timestamp with time zone,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    expected_cadence_seconds integer DEFAULT 60 NOT NULL,
    stale_threshold_seconds integer DEFAULT 300 NOT NULL,
    registered_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    registered_by text DEFAULT SESSION_USER NOT NULL,
    ticks_total bigint DEFAULT 0 NOT NULL,
    last_status text DEFAULT 'registered'::text NOT NULL,
    lease_owner text,
    lease_until timestamp with time zone,
    lease_epoch bigint DEFAULT 0 NOT NULL,
    watched_since timestamp with time zone,
    CONSTRAINT cadence_is_positive CHECK ((expected_cadence_seconds > 0)),
    CONSTRAINT threshold_is_not_under_cadence CHECK ((stale_threshold_seconds >= expected_cadence_seconds)),
    CONSTRAINT threshold_is_positive CHECK ((stale_threshold_seconds > 0))
)
WITH (fillfactor='50');
ALTER TABLE tidemark.heartbeat OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.heartbeat IS 'One row per executor: when it last gave a sign of life, and who holds its lease. Source: S4 queue_heartbeat.';
COMMENT ON COLUMN tidemark.heartbeat.executor_id IS 'Name; for a cursor worker/source/shard.';
COMMENT ON COLUMN tidemark.heartbeat.kind IS 'Kind of executor. Default PG_worker.';
COMMENT ON COLUMN tidemark.heartbeat.domain_scope IS 'Domains that it covers; empty: all.';
COMMENT ON COLUMN tidemark.heartbeat.last_beat_at IS 'Last sign of life, by the database''s clock; null: none yet.';
COMMENT ON COLUMN tidemark.heartbeat.payload IS 'Small facts, never a forbidden key.';
COMMENT ON COLUMN tidemark.heartbeat.expected_cadence_seconds IS 'A beat is expected this often. Default 60.';
COMMENT ON COLUMN tidemark.heartbeat.stale_threshold_seconds IS 'Silent for longer: stale. Default 300, at least the cadence.';
COMMENT ON COLUMN tidemark.heartbeat.registered_at IS 'When it was registered.';
COMMENT ON COLUMN tidemark.heartbeat.registered_by IS 'The role that logged in to register it.';
COMMENT ON COLUMN tidemark.heartbeat.ticks_total IS 'Beats so far.';
COMMENT ON COLUMN tidemark.heartbeat.last_status IS 'What it said with its last beat.';
COMMENT ON COLUMN tidemark.heartbeat.lease_owner IS 'Instance that holds the lease; null: nobody.';
COMMENT ON COLUMN tidemark.heartbeat.lease_until IS 'End of the lease, by the database''s clock.';
COMMENT ON COLUMN tidemark.heartbeat.lease_epoch IS 'Fencing token: rises with every acquisition, the same owner''s too.';
COMMENT ON COLUMN tidemark.heartbeat.watched_since IS 'Until the first beat, silence counts from here: set by tidemark.heartbeat_register. Null: an executor that never beat is not waited for.';
CREATE FUNCTION tidemark.heartbeat_deregister(executor_id text, reason text DEFAULT NULL::text) RETURNS SETOF tidemark.heartbeat
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    gone tidemark.heartbeat;
begin
    if tidemark.is_cursor(executor_id) then
        raise exception using errcode = 'TM005', message = format('executor %s is the cursor of a worker, and keeps its heartbeat', executor_id),
            hint = 'A worker that nobody is to wait for is paused: tidemark worker pause NAME, or its gate is closed.';
    end if;
    delete from tidemark.heartbeat h where h.executor_id = heartbeat_deregister.executor_id returning h.* into gone;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no executor "%s"', executor_id),
            hint = 'Executors: select executor_id from tidemark.heartbeat;';
    end if;
    delete from tidemark.silence s where s.executor_id = heartbeat_deregister.executor_id;
    perform tidemark.finding_close('heartbeat_silent', heartbeat_deregister.executor_id);
    insert into tidemark.audit (action, object, reason, before)
    values ('heartbeat_deregister', 'heartbeat ' || gone.executor_id, heartbeat_deregister.reason, to_jsonb(gone));
    return next gone;
end
$$;
ALTER FUNCTION tidemark.heartbeat_deregister(executor_id text, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.heartbeat_deregister(executor_id text, reason text) IS 'Forgets an executor that will not come back, and closes what its silence opened. Returns the row that was; audited. Raises TM004 (no such executor), TM005 (it is a worker''s cursor).';
CREATE FUNCTION tidemark.heartbeat_payload_check(executor_id text, payload jsonb) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    problem text;
begin
    if jsonb_typeof(payload) is distinct from 'object' then
        raise exception using errcode = 'TM002',
            message = format('executor %s: payload is %s, not an object', executor_id, coalesce(jsonb_typeof(payload), 'null')),
            hint = 'Give a JSON object of small facts, e.g. {"batch": 7}.';
    end if;
    problem := tidemark.forbidden_key_in(payload);
    if problem is not null then
        raise exception using errcode = 'TM003',
            message = format('executor %s: payload holds the forbidden key "%s"', executor_id, problem),
            hint = 'A heartbeat carries small facts and references only; see tidemark.forbidden_key.';
    end if;
    if octet_length(payload::text) > 8192 then
        raise exception using errcode = 'TM005',
            message = format('executor %s: payload has %s bytes, and may have 8192', executor_id, octet_length(payload::text)),
            hint = 'A heartbeat carries small facts and references only.';
    end if;
end
$$;
ALTER FUNCTION tidemark.heartbeat_payload_check(executor_id text, payload jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.heartbeat_payload_check(executor_id text, payload jsonb) IS 'Raises TM002 where a heartbeat''s payload is no object, TM003 where it holds a forbidden key at any depth, TM005 above 8192 bytes.';
CREATE FUNCTION tidemark.heartbeat_register(executor_id text, kind text DEFAULT NULL::text, domain_scope text[] DEFAULT '{}'::text[], cadence interval DEFAULT '00:01:00'::interval, threshold interval DEFAULT NULL::interval, payload jsonb DEFAULT '{}'::jsonb, reason text DEFAULT NULL::text) RETURNS SETOF tidemark.heartbeat
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    cadence_seconds constant numeric := extract(epoch from cadence);
    threshold_seconds constant numeric := coalesce(extract(epoch from threshold), 3 * cadence_seconds);
    unknown text;
    kind_ text;
    before jsonb;
    made tidemark.heartbeat;
begin
    if executor_id is null or executor_id !~ '^[^[:space:][:cntrl:]]{1,200}$' then
        raise exception using errcode = 'TM005',
            message = format('executor_id is %s, and must be 1 to 200 characters without white space', coalesce(quote_literal(left(executor_id, 300)), 'null')),
            hint = 'Name what runs and where, e.g. nightly_export or mailer/host-7.';
    end if;
    select to_jsonb(h), h.kind into before, kind_ from tidemark.heartbeat h where h.executor_id = heartbeat_register.executor_id for update;
    kind_ := coalesce(heartbeat_register.kind, kind_, 'external_worker');
    if not exists (select from tidemark.heartbeat_kind k where k.kind = kind_) then
        raise exception using errcode = 'TM004', message = format('there is no kind of executor "%s"', kind_),
            hint = format('Kinds: select kind from tidemark.heartbeat_kind; a new one: insert into tidemark.heartbeat_kind values (%s);', quote_nullable(kind_));
    end if;
    if cadence_seconds is null or cadence_seconds not between 1 and 31536000 or cadence_seconds <> trunc(cadence_seconds) then
        raise exception using errcode = 'TM005',
            message = format('executor %s: cadence is %s, and must be whole seconds, 1 to a year of them', executor_id, coalesce(cadence::text, 'null')),
            hint = 'The time from one beat to the next, e.g. cadence => ''30 seconds''.';
    end if;
    if threshold_seconds not between cadence_seconds and 31536000 or threshold_seconds <> trunc(threshold_seconds) then
        raise exception using errcode = 'TM005',
            message = format('executor %s: threshold is %s, and must be whole seconds, at least the cadence of %s s, at most a year', executor_id, threshold, trunc(cadence_seconds)),
            hint = 'It is silent when no beat came for longer than this. The default is three times the cadence.';
    end if;
    select s.d into unknown from unnest(domain_scope) s (d)
    where not exists (select from tidemark.domain d where d.domain = s.d) limit 1;
    if found then
        raise exception using errcode = 'TM004', message = format('executor %s: there is no domain "%s"', executor_id, unknown),
            hint = 'Domains: select domain from tidemark.domain; an empty scope is all of them.';
    end if;
    perform tidemark.heartbeat_payload_check(executor_id, payload);
    insert into tidemark.heartbeat as h (executor_id, kind, domain_scope, expected_cadence_seconds, stale_threshold_seconds, payload, watched_since)
    values (heartbeat_register.executor_id, kind_, coalesce(heartbeat_register.domain_scope, '{}'), cadence_seconds,
            threshold_seconds, heartbeat_register.payload, clock_timestamp())
    on conflict (executor_id) do update
    set kind = excluded.kind, domain_scope = excluded.domain_scope, expected_cadence_seconds = excluded.expected_cadence_seconds,
        stale_threshold_seconds = excluded.stale_threshold_seconds, payload = excluded.payload, watched_since = excluded.watched_since,
        registered_at = clock_timestamp(), registered_by = session_user
    returning h.* into made;
    insert into tidemark.audit (action, object, reason, before, after)
    values ('heartbeat_register', 'heartbeat ' || made.executor_id, heartbeat_register.reason, before, to_jsonb(made));
    return next made;
end
$_$;
ALTER FUNCTION tidemark.heartbeat_register(executor_id text, kind text, domain_scope text[], cadence interval, threshold interval, payload jsonb, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.heartbeat_register(executor_id text, kind text, domain_scope text[], cadence interval, threshold interval, payload jsonb, reason text) IS 'Registers an executor, or changes one that is registered: a beat is expected every cadence (whole seconds, default 60 seconds), and it is silent when none came for longer than threshold (default three times the cadence, at least the cadence). kind is one of tidemark.heartbeat_kind (default: as it is, and external_worker for a new one); domain_scope the domains that it covers, empty: all. From now on it is waited for, beat or not. An executor worker/source/shard is a worker''s cursor, whose beats are its passes. Returns the row; audited. Raises TM002 (payload is no object), TM003 (forbidden key), TM004 (unknown kind or domain), TM005. Source: S4 fn_queue_heartbeat_register.';
CREATE FUNCTION tidemark.heartbeat_write(executor_id text, status text DEFAULT 'ok'::text, payload jsonb DEFAULT '{}'::jsonb) RETURNS timestamp with time zone
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    at timestamptz;
begin
    if status is null or length(status) not between 1 and 200 then
        raise exception using errcode = 'TM005',
            message = format('executor %s: status has %s characters, and must have 1 to 200', executor_id, coalesce(length(status), 0)),
            hint = 'One short text, such as ok, running or failed:1.';
    end if;
    perform tidemark.heartbeat_payload_check(executor_id, payload);
    if tidemark.is_cursor(executor_id) then
        raise exception using errcode = 'TM005', message = format('executor %s is the cursor of a worker, whose beats are its passes', executor_id),
            hint = 'Run the worker: tidemark worker run NAME, or the daemon.';
    end if;
    update tidemark.heartbeat h
    set last_beat_at = clock_timestamp(), ticks_total = h.ticks_total + 1, last_status = heartbeat_write.status,
        payload = heartbeat_write.payload
    where h.executor_id = heartbeat_write.executor_id
    returning h.last_beat_at into at;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no executor "%s"', executor_id),
            hint = format('An administrator registers it: select tidemark.heartbeat_register(%s);', quote_nullable(executor_id));
    end if;
    return at;
end
$$;
ALTER FUNCTION tidemark.heartbeat_write(executor_id text, status text, payload jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.heartbeat_write(executor_id text, status text, payload jsonb) IS 'A sign of life of a registered executor, in a transaction of its own: status is what it says of itself (1 to 200 characters, default ok), payload small facts. Call it on every tick, work or none. Returns the time of the beat, by the database''s clock. Raises TM002 (payload is no object), TM003 (forbidden key), TM004 (not registered), TM005. Source: S4 fn_queue_heartbeat_write.';
CREATE FUNCTION tidemark.idempotency_key_check(idempotency_key text, place text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    -- Keys that Tidemark makes of rows can be guessed: an emitter who could claim one would make a row's event look
    -- stored already.
    if starts_with(idempotency_key, 'tidemark:') then
        raise exception using errcode = 'TM005',
            message = format('%sidempotency_key begins with "tidemark:", which is for keys that Tidemark makes itself', place),
            hint = 'Use another prefix.';
    end if;
    -- An index entry has room for some 2,700 bytes, and the domain stands in it too.
    if octet_length(idempotency_key) > 1024 then
        raise exception using errcode = 'TM005',
            message = format('%sidempotency_key has %s bytes, and must have at most 1024', place, octet_length(idempotency_key)),
            hint = 'Use a digest of it.';
    end if;
end
$$;
ALTER FUNCTION tidemark.idempotency_key_check(idempotency_key text, place text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.idempotency_key_check(idempotency_key text, place text) IS 'Raises TM005 for an idempotency key that begins with "tidemark:" or is over 1024 bytes; place begins the message.';
CREATE FUNCTION tidemark.inbound_route_set(route_code text, changes jsonb, reason text DEFAULT NULL::text, may_create boolean DEFAULT true) RETURNS SETOF tidemark.inbound_route
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    route tidemark.inbound_route;
    field text;
begin
    perform set_config('tidemark.reason', coalesce(inbound_route_set.reason, ''), true);
    perform tidemark.changes_check('inbound route', inbound_route_set.changes, 'tidemark.inbound_route', array['id', 'route_code']);
    select r.* into route from tidemark.inbound_route r where r.route_code = inbound_route_set.route_code for no key update;
    if not found then
        if not may_create then
            raise exception using errcode = 'TM004', message = format('there is no inbound route "%s"', inbound_route_set.route_code),
                hint = 'Inbound routes: select route_code from tidemark.inbound_route;';
        end if;
        foreach field in array array['source_schema', 'source_table', 'sql_event', 'domain', 'type'] loop
            if changes ->> field is null then
                raise exception using errcode = 'TM005',
                    message = format('inbound route %s is new and needs %s', inbound_route_set.route_code, field),
                    hint = 'A new inbound route needs source_schema, source_table, sql_event, domain and type.';
            end if;
        end loop;
        insert into tidemark.inbound_route as r (route_code, source_schema, source_table, sql_event, domain, type)
        values (inbound_route_set.route_code, changes ->> 'source_schema', changes ->> 'source_table', changes ->> 'sql_event',
                changes ->> 'domain', changes ->> 'type')
        returning r.* into route;
    end if;
    route := jsonb_populate_record(route, changes);
    return query
    update tidemark.inbound_route r
    set (source_object_kind, source_schema, source_table, sql_event, domain, type, stream, enabled, dry_run, fail_closed,
         idempotency_policy, payload_columns, description)
      = row(route.source_object_kind, route.source_schema, route.source_table, route.sql_event, route.domain, route.type,
            route.stream, route.enabled, route.dry_run, route.fail_closed, route.idempotency_policy, route.payload_columns,
            route.description)
    where r.id = route.id
    returning r.*;
    perform tidemark.capture_make(s.route_code) from tidemark.capture_stale s where s.route_code = route.route_code;
end
$$;
ALTER FUNCTION tidemark.inbound_route_set(route_code text, changes jsonb, reason text, may_create boolean) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.inbound_route_set(route_code text, changes jsonb, reason text, may_create boolean) IS 'Creates an inbound route or changes the named columns of it: tidemark.inbound_route_set(''orders-new'', ''{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "shop", "type": "order.placed"}''). Returns the row. With may_create false an unknown route raises TM004. Raises TM005 for an unknown column, TM008 for enabled and live in an installation that is not.';
CREATE FUNCTION tidemark.interval_setting(key text, fallback interval) RETURNS interval
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return coalesce((select s.value::interval from tidemark.setting s where s.key = interval_setting.key), fallback);
exception when data_exception then
    return fallback;
end
$$;
ALTER FUNCTION tidemark.interval_setting(key text, fallback interval) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.interval_setting(key text, fallback interval) IS 'The setting as an interval; fallback where it is missing or is none.';
CREATE FUNCTION tidemark.is_cursor(executor_id text) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select exists (select from tidemark.worker_cursor c where c.worker || '/' || c.source || '/' || c.shard = executor_id)
$$;
ALTER FUNCTION tidemark.is_cursor(executor_id text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.is_cursor(executor_id text) IS 'True: the executor is worker/source/shard of a cursor, and beats by its passes.';
CREATE FUNCTION tidemark.is_transient(sqlstate_ text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    select pg_catalog.left(sqlstate_, 2) in ('08', '25', '40', '53', '57', '58') or sqlstate_ in ('55P03', 'XX001', 'XX002', 'TM009')
$$;
ALTER FUNCTION tidemark.is_transient(sqlstate_ text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.is_transient(sqlstate_ text) IS 'True: the error is the surroundings'' fault, not the event''s: connection, transaction state, deadlock, resources, shutdown, system, damaged data, lock timeout, and a gate that was closed. The pass is given up whole and repeated; nothing is dead-lettered.';
CREATE FUNCTION tidemark.jsonb_add(one jsonb, other jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if one is null or other is null or jsonb_typeof(one) <> 'object' or jsonb_typeof(other) <> 'object' then
        return coalesce(other, one);
    end if;
    return one || (
        select coalesce(jsonb_object_agg(o.key, case
            when jsonb_typeof(o.value) = 'number' and jsonb_typeof(one -> o.key) = 'number'
                then to_jsonb((o.value #>> '{}')::numeric + (one ->> o.key)::numeric) else o.value end), '{}')
        from jsonb_each(other) o);
end
$$;
ALTER FUNCTION tidemark.jsonb_add(one jsonb, other jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.jsonb_add(one jsonb, other jsonb) IS 'Two objects as one: numbers that both have are added, of the rest the second one counts.';
CREATE FUNCTION tidemark.lag_findings() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    warn constant numeric := extract(epoch from tidemark.interval_setting('lag.warn', '1 minute'));
    bad constant numeric := extract(epoch from tidemark.interval_setting('lag.bad', '15 minutes'));
    l record;
begin
    for l in select c.*, c.worker || '/' || c.source || '/' || c.shard as name from tidemark.cursor_lag c order by 1, 2, 3 loop
        -- What is switched off on purpose falls behind on purpose.
        if l.gate is null and l.seconds > warn and l.last_run_at is not null then
            perform tidemark.finding_open('cursor_lag', l.name, case when l.seconds > bad then 'high' else 'warning' end::tidemark.severity,
                format('%s behind%s%s', make_interval(secs => l.seconds), ', ' || l.events || ' events', ', blocked by ' || l.blocked_by));
        else
            perform tidemark.finding_close('cursor_lag', l.name);
        end if;
    end loop;
end
$$;
ALTER FUNCTION tidemark.lag_findings() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.lag_findings() IS 'Opens the finding cursor_lag for each cursor that is behind for longer than the setting lag.warn (high: lag.bad), and closes it where that is over.';
CREATE FUNCTION tidemark.last_within(seqs int8multirange, max_bytes bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
    stored bigint;
    packed bigint;
    total bigint := 0;
    last bigint;
    n bigint;
begin
    -- Sizes as stored cost no look at the payloads. They are the real ones where nothing is compressed, as small events never are.
    select sum(s.stored), sum(s.packed) into stored, packed
    from unnest(seqs) r
    cross join lateral (
        select sum(pg_column_size(o.payload)) as stored, count(pg_column_compression(o.payload)) as packed
        from tidemark.outbox o where o.seq >= lower(r) and o.seq < upper(r)) s;
    if packed = 0 and stored <= max_bytes then
        return null;
    end if;
    foreach n in array tidemark.multirange_numbers(seqs) loop
        -- With nothing added to it, a payload is what it is, without compression. One at a time: no more is unpacked than fits.
        total := total + coalesce((
            select case when pg_column_compression(o.payload) is null then pg_column_size(o.payload)
                        else pg_column_size(o.payload || '{}') end
            from tidemark.outbox o where o.seq = n), 0);
        if total > max_bytes and last is not null then
            return last;
        end if;
        last := n;
    end loop;
    return null;
end
$$;
ALTER FUNCTION tidemark.last_within(seqs int8multirange, max_bytes bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.last_within(seqs int8multirange, max_bytes bigint) IS 'The number of the last of these events, in their order, that fits into max_bytes of payload with those before it; the first one always does. Null: all do.';
CREATE FUNCTION tidemark.lease_check(worker text, epoch bigint, source text DEFAULT 'outbox'::text, shard integer DEFAULT 0) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    -- The fence against an owner that was paused or replaced: compare, and keep the row locked to the end of
    -- this transaction, so that nobody can take over between this check and the commit.
    perform from tidemark.heartbeat h
    where h.executor_id = tidemark.executor_id(lease_check.worker, lease_check.source, lease_check.shard) and h.lease_epoch = lease_check.epoch
    for update;
    if not found then
        raise exception using errcode = 'TM011',
            message = format('worker %s: epoch %s is over, another instance has taken the cursor', lease_check.worker, epoch),
            hint = 'Nothing was written. The other instance has these events.';
    end if;
end
$$;
ALTER FUNCTION tidemark.lease_check(worker text, epoch bigint, source text, shard integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.lease_check(worker text, epoch bigint, source text, shard integer) IS 'Locks the worker''s lease for this transaction. Raises TM011 where the epoch is not the lease''s any more.';
CREATE FUNCTION tidemark.left_over(route tidemark.outbound_route, OUT numbers bigint[], OUT suspects integer[], OUT errors integer[], OUT more boolean, OUT gone boolean) RETURNS record
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
    most constant integer := 5000;
    at constant timestamptz := clock_timestamp();
    worker_ constant integer := (select w.id from tidemark.worker w where w.worker = route.worker);
begin
    select coalesce(array_agg(q.seq), '{}'), coalesce(array_agg(q.suspects), '{}'),
           coalesce(array_agg(q.error_count), '{}')
    into numbers, suspects, errors
    from (
        select p.seq, p.suspects, p.error_count from tidemark.pending p
        where p.worker_id = worker_ and p.route_id = (left_over.route).id
          and (p.next_attempt_at <= at or p.next_attempt_at = 'infinity' and (left_over.route).ordering = 'key')
          -- In order: with the first of a key goes what waits behind it.
          and not ((left_over.route).ordering = 'key' and p.key is not null and not p.replay and exists (
              select from tidemark.pending e
              where e.worker_id = p.worker_id and e.route_id = p.route_id and e.key = p.key and e.seq < p.seq
                and not e.replay and e.next_attempt_at > at and e.next_attempt_at <> 'infinity'))
        order by p.seq limit most) q;
    more := cardinality(numbers) = most;
    gone := exists (
        select from unnest(numbers) n where not exists (select from tidemark.outbox o where o.seq = n));
end
$$;
ALTER FUNCTION tidemark.left_over(route tidemark.outbound_route, OUT numbers bigint[], OUT suspects integer[], OUT errors integer[], OUT more boolean, OUT gone boolean) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.left_over(route tidemark.outbound_route, OUT numbers bigint[], OUT suspects integer[], OUT errors integer[], OUT more boolean, OUT gone boolean) IS 'What earlier passes have left over of a route to a target inside the database, and is due: numbers, the first 5,000 (more: that many), with their suspects and failed attempts; gone: some have no event in the log any more.';
CREATE FUNCTION tidemark.live_inside(worker text, evidence tidemark.evidence[]) RETURNS integer[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return array(
        select r.id from tidemark.outbound_route r
        where r.worker = live_inside.worker and r.enabled and not r.dry_run and tidemark.target_is_inside(r.target_kind)
          and (exists (select from unnest(evidence) e where e.route_id = r.id and e.outcome = 'pending')
               or exists (select from tidemark.pending p where p.route_id = r.id and p.next_attempt_at <= clock_timestamp()))
        order by r.id);
end
$$;
ALTER FUNCTION tidemark.live_inside(worker text, evidence tidemark.evidence[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.live_inside(worker text, evidence tidemark.evidence[]) IS 'The worker''s routes with something to deliver inside the database: from this evidence, or left over.';
CREATE FUNCTION tidemark.lock_blame(relation regclass DEFAULT NULL::regclass) RETURNS text
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with held as (
        select l.pid, l.virtualtransaction from pg_locks l
        where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.relation = any (tidemark.relation_tree(lock_blame.relation))
          and l.mode not in ('AccessShareLock', 'RowShareLock')
    ), blocker (pid) as (
        select h.pid from held h
        union
        select unnest(pg_blocking_pids(a.pid)) from pg_stat_activity a
        where lock_blame.relation is null and a.datname = current_database() and a.wait_event_type = 'Lock'
    )
    select string_agg(b.who, '; ' order by b.since nulls last) from (
        select format('pid %s, application "%s", user %s, in its transaction for %s', a.pid, a.application_name, a.usename,
                      coalesce(date_trunc('second', clock_timestamp() - a.xact_start)::text, 'unknown')) as who,
               a.xact_start as since
        from pg_stat_activity a where a.pid in (select k.pid from blocker k)
        union all
        select format('prepared transaction "%s" of %s, for %s', p.gid, p.owner,
                      date_trunc('second', clock_timestamp() - p.prepared)), p.prepared
        from pg_prepared_xacts p
        where p.database = current_database()
          and (exists (select from held h join pg_locks own on own.virtualtransaction = h.virtualtransaction
                       where h.pid is null and own.pid is null and own.locktype = 'transactionid' and own.transactionid = p.transaction)
               or exists (select from blocker k where k.pid = 0)) -- what pg_blocking_pids calls them all
        order by 2 nulls last limit 5) b
$$;
ALTER FUNCTION tidemark.lock_blame(relation regclass) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.lock_blame(relation regclass) IS 'Who holds locks on the table that keep a trigger from being put on it: pid, application, user and age of the oldest five, prepared transactions by gid. Without a table: who keeps sessions of this database waiting for locks. Null: nobody any more.';
CREATE FUNCTION tidemark.log_is_append_only() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    raise exception using errcode = 'TM010',
        message = format('%s on %I.%I refused: the log is append-only', lower(tg_op), tg_table_schema, tg_table_name),
        hint = 'Events leave by retention: select * from tidemark.maintain();';
end
$$;
ALTER FUNCTION tidemark.log_is_append_only() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.log_is_append_only() IS 'Trigger: raises TM010. A cursor would silently miss what an update, delete or truncate did.';
CREATE FUNCTION tidemark.look(owner text, lease interval, workers text[], sources text[], shards integer[], epochs bigint[]) RETURNS TABLE(n integer, why text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    SET lock_timeout TO '20ms'
    AS $$
#variable_conflict use_column
declare
    r record;
    rel regclass;
    ahead boolean;
    odd boolean;
    unreadable text[] := '{}';
    rests integer[] := '{}';
    looked boolean[] := '{}';
    sweeps xid8[] := '{}';
    horizons timestamptz[] := '{}';
begin
    for r in select s.* from tidemark.look_state(look.owner, look.workers, look.sources, look.shards, look.epochs) s loop
        if r.looks then
            if (r.source).source = any (unreadable) then
                r.why := 'unreadable';
            else
                begin
                    ahead := null; odd := null;
                    rel := format('%I.%I', (r.source).schema_name, (r.source).table_name)::regclass;
                    if row_security_active(rel) then
                        r.why := 'unreadable';
                    elsif (r.source).safety <> 'capture' then
                        execute tidemark.source_ahead(r.source) into ahead using r.after_ts, r.after_id, r.horizon, r.open;
                        if ahead is null and (r.source).safety = 'sequence'
                           and tidemark.source_behind(r.source, rel, r.after_id::bigint) is not null then
                            r.why := 'changed';
                        end if;
                        if r.sweep is not null and ahead is null then
                            execute tidemark.source_odd(r.source) into odd;
                        end if;
                    end if;
                    -- On purpose: it gives the locks of the table and its parts back at once.
                    raise exception using errcode = 'TM009', message = 'looked';
                exception
                    when sqlstate 'TM009' then
                        r.why := coalesce(r.why, case when ahead then 'rows' when odd then 'sweep' end);
                    when others or assert_failure then
                        -- Its own pass meets the error, and records it.
                        r.why := 'unreadable';
                        unreadable := unreadable || (r.source).source;
                end;
            end if;
        end if;
        if r.why is null then
            rests := rests || r.n;
            looked := looked || r.looks;
            sweeps := sweeps || r.sweep;
            horizons := horizons || r.horizon;
        else
            n := r.n; why := r.why;
            return next;
        end if;
    end loop;
    return query
    select l.n, 'locked' from tidemark.look_rest(look.owner, look.lease, look.workers, look.sources, look.shards, look.epochs,
                                                 rests, looked, sweeps, horizons) l (n);
end
$$;
ALTER FUNCTION tidemark.look(owner text, lease interval, workers text[], sources text[], shards integer[], epochs bigint[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.look(owner text, lease interval, workers text[], sources text[], shards integer[], epochs bigint[]) IS 'Which of the cursors (worker, source, shard) of a process there is something to do for, and why: events, rows, holes (numbers below the watermark have appeared, or are nobody''s), retry, replay (there is more of one to stage), sweep, phase, edited, clock, changed (the table or the handler), unreadable (or it could not be looked at), closed, fenced, locked, gone; for a cursor without an epoch, which waits for the lease: free. What is named is to make a pass, which finds out for itself. The others are told to sleep on: for those with an epoch that owner holds it beats and renews the lease, and makes a sweep that has nothing to read; a cursor that is closed beats. It waits for no lock longer than 20 ms, and reads one row at most of each table. Raises TM006 (isolation level), TM007 (standby).';
CREATE FUNCTION tidemark.look_rest(owner text, lease interval, workers text[], sources text[], shards integer[], epochs bigint[], rests integer[], looked boolean[], sweeps xid8[], horizons timestamp with time zone[]) RETURNS SETOF integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    now_ constant timestamptz := clock_timestamp();
    beaten integer[];
    swept integer[] := array(select r.n from unnest(rests, sweeps) r (n, xmin) where r.xmin is not null);
begin
    -- In order, and whoever is in the middle of something is left alone: nobody waits for anybody.
    with asleep as materialized (
        select r.n, h.executor_id, look_rest.epochs[r.n] is not null as leased
        from unnest(rests) r (n)
        join tidemark.heartbeat h on h.executor_id = tidemark.executor_id(look_rest.workers[r.n], look_rest.sources[r.n], look_rest.shards[r.n])
        where case when look_rest.epochs[r.n] is not null then h.lease_epoch = look_rest.epochs[r.n] and h.lease_owner = look_rest.owner
                   else h.lease_until is null or h.lease_until <= now_ end
        order by h.executor_id
        for update of h skip locked
    ), beat as (
        update tidemark.heartbeat h
        set last_beat_at = clock_timestamp(), ticks_total = h.ticks_total + 1,
            lease_until = case when a.leased then clock_timestamp() + look_rest.lease end,
            lease_owner = case when a.leased then h.lease_owner end,
            last_status = case when a.leased or h.last_status = 'held' then h.last_status else 'closed' end
        from asleep a where h.executor_id = a.executor_id
        returning a.n
    )
    select array_agg(b.n) into beaten from beat b;
    -- That nothing had to be done is worth a write now and then: the lag of a source is told by it.
    update tidemark.worker_cursor c
    set last_run_at = now_, horizon = greatest(c.horizon, r.horizon)
    from unnest(rests, looked, horizons) r (n, looked, horizon)
    where r.looked and r.n = any (beaten) and c.worker = look_rest.workers[r.n] and c.source = look_rest.sources[r.n] and c.shard = look_rest.shards[r.n]
      and c.last_run_at < now_ - interval '5 seconds' and (r.horizon is not null or c.horizon is null);
    -- A sweep that has nothing to read, as tidemark.source_swept ends it. Its transaction was noted before the look.
    if cardinality(swept) > 0 then
        delete from tidemark.source_ledger l
        using unnest(rests, sweeps) r (n, xmin), tidemark.worker w
        where r.xmin is not null and r.n = any (beaten) and w.worker = look_rest.workers[r.n] and l.worker_id = w.id
          and l.source = look_rest.sources[r.n] and l.shard = look_rest.shards[r.n] and l.xid < r.xmin;
        update tidemark.worker_cursor c
        set sweep = jsonb_build_object('xmin', r.xmin::text, 'segment_xmin', r.xmin::text, 'mark', c.watermark_ts, 'done_at', now_)
        from unnest(rests, sweeps) r (n, xmin)
        where r.xmin is not null and r.n = any (beaten) and c.worker = look_rest.workers[r.n] and c.source = look_rest.sources[r.n] and c.shard = look_rest.shards[r.n];
    end if;
    return query
    select r.n from unnest(rests) r (n) where look_rest.epochs[r.n] is not null and not r.n = any (coalesce(beaten, '{}'));
end
$$;
ALTER FUNCTION tidemark.look_rest(owner text, lease interval, workers text[], sources text[], shards integer[], epochs bigint[], rests integer[], looked boolean[], sweeps xid8[], horizons timestamp with time zone[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.look_rest(owner text, lease interval, workers text[], sources text[], shards integer[], epochs bigint[], rests integer[], looked boolean[], sweeps xid8[], horizons timestamp with time zone[]) IS 'Of the cursors that tidemark.look was asked for, those (rests) that are to sleep on: beats, renews the leases that owner holds, notes the horizon of those that were looked at, and the sweeps that had nothing to read. Returns those whose lease it could not renew.';
CREATE FUNCTION tidemark.look_state(owner text, workers text[], sources text[], shards integer[], epochs bigint[]) RETURNS TABLE(n integer, why text, looks boolean, source tidemark.source, after_ts timestamp with time zone, after_id text, open int8multirange, horizon timestamp with time zone, sweep xid8)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    clock constant timestamptz := clock_timestamp();
    oldest timestamptz;
    hidden boolean := false;
    prepared boolean := false;
begin
    perform tidemark.session_check('a worker', 'each of its statements must see what was committed before it.');
    if exists (select from tidemark.source s where s.source = any (look_state.sources) and s.safety = 'clock') then
        -- As in tidemark.source_horizon, and for its reasons: then, in later statements, the data.
        select o.oldest, o.hidden into oldest, hidden from tidemark.oldest_transaction() o;
        prepared := exists (
            select from pg_locks l
            where l.pid is null and l.locktype = 'relation' and l.mode = 'RowExclusiveLock'
              and l.database = (select d.oid from pg_database d where d.datname = current_database()));
    end if;
    return query
    select l.n, l.why, l.looks,
           l.definition, coalesce(l.watermark_ts, '-infinity'), l.watermark_id, l.open,
           -- What a prepared transaction has written may still appear below it.
           case when not prepared then l.horizon end,
           -- Only of a table that is looked at: else a later sweep would pass over what this one has not seen.
           case when l.looks and l.sweeps then pg_snapshot_xmin(pg_current_snapshot()) end
    from (select k.*, k.why is null and k.epoch is not null and k.source is not null and not k.quiet as looks from (
        select a.n::integer as n, a.epoch, s.source, s as definition, c.watermark_ts, c.watermark_id, c.holes + c.fenced as open,
               h_.horizon, q.quiet, s.safety in ('clock', 'declared') and d.due as sweeps,
               case
                   when c.worker is null or h.executor_id is null or c.source <> 'outbox' and s.source is null then 'gone'
                   when a.epoch is null then case
                       when (h.lease_until is null or h.lease_until <= clock_timestamp() or h.lease_owner = look_state.owner) and g.gate is null
                           and not edited then 'free' end
                   when h.lease_epoch <> a.epoch or h.lease_owner is distinct from look_state.owner then 'fenced'
                   when g.gate is not null then 'closed'
                   when edited then 'edited'
                   when c.source = 'outbox' and exists (
                       select from tidemark.outbound_route r
                       cross join lateral (
                           select from tidemark.pending p
                           where p.route_id = r.id and p.worker_id = w.id and p.next_attempt_at <= clock_timestamp() limit 1) p
                       where r.worker = w.worker and r.enabled and not r.dry_run) then 'retry'
                   when c.source = 'outbox' and exists (
                       select from tidemark.replay_job j join tidemark.outbound_route r on r.id = j.route_id
                       where j.worker_id = w.id and j.finished_at is null and j.due_at <= clock_timestamp()
                         and r.worker = w.worker and r.enabled and not r.dry_run
                         and not exists (select from tidemark.pending p where p.replay_id = j.id)) then 'replay'
                   when q.quiet then null
                   when (c.source = 'outbox' or s.safety = 'capture')
                       and c.watermark_id::bigint < (select max(o.seq) from tidemark.outbox o) then 'events'
                   when (c.source = 'outbox' or s.safety = 'capture') and exists (
                       select from unnest(c.holes + c.fenced) hole (span) cross join lateral (
                           select from tidemark.outbox o where o.seq >= lower(hole.span) and o.seq < upper(hole.span) limit 1) o) then 'holes'
                   when not isempty(c.holes + c.fenced) and (isempty(c.fenced) or tidemark.fence_closed(
                       c.fence, case c.source when 'outbox' then 'tidemark.outbox'::regclass else tidemark.source_fence(s) end)) then 'holes'
                   when c.source = 'outbox' then null
                   when exists (
                       select from tidemark.pending_row p
                       where p.worker_id = w.id and p.source = c.source and p.shard = c.shard and p.next_attempt_at <= clock_timestamp()) then 'retry'
                   when c.decided_through is distinct from tidemark.source_place(c.watermark_ts, c.watermark_id) then 'edited'
                   when s.safety = 'clock' and hidden then 'unreadable'
                   when s.safety = 'clock' and (c.horizon > clock or c.metadata ? 'clock_back') then 'clock'
                   when c.phase = 'seeding' or c.phase = 'reconciling' and (s.safety in ('clock', 'declared') or isempty(c.holes + c.fenced)) then 'phase'
                   -- The window has to be read, and a sweep under way be ended.
                   when d.due and s.safety in ('clock', 'declared') and (s.sweep_window is not null or c.sweep ? 'next_xmin') then 'sweep'
                   -- In turns: it takes longer than all the rest. Nothing is lost meanwhile: a pass looks first.
                   when (extract(epoch from clock)::bigint + a.n) % 10 = 0 and (tidemark.source_problem(w, s, c)).problem is not null then 'changed'
               end as why
        from unnest(look_state.workers, look_state.sources, look_state.shards, look_state.epochs) with ordinality a (worker, source, shard, epoch, n)
        left join tidemark.worker w on w.worker = a.worker
        left join tidemark.worker_cursor c on c.worker = a.worker and c.source = a.source and c.shard = a.shard
        left join tidemark.heartbeat h on h.executor_id = a.worker || '/' || a.source || '/' || a.shard
        left join tidemark.source s on s.source = a.source
        cross join lateral (select tidemark.closed_gate(a.worker) as gate offset 0) g
        -- As tidemark.claim has it.
        cross join lateral (select c.source = 'outbox' and c.watermark_id::bigint > c.decided_through::bigint as edited offset 0) e_
        cross join lateral (
            -- As tidemark.source_plan has it.
            select c.source <> 'outbox' and (
                w.coalesce_window is not null and c.last_run_at > clock - w.coalesce_window
                    and not coalesce((c.last_run_summary ->> 'more')::boolean, false)
                or (w.off_peak is not null or w.lock_wait_limit is not null or w.replication_lag_limit is not null or c.metadata ? 'storm_until')
                    and tidemark.source_throttle(w, c) is not null) as quiet offset 0) q
        cross join lateral (
            select coalesce((c.sweep ->> 'done_at')::timestamptz, '-infinity') < clock - s.sweep_every or c.sweep ? 'next_xmin' as due) d
        cross join lateral (
            select case s.safety
                when 'declared' then clock - m.margin
                when 'clock' then oldest - m.margin end as horizon
            from (select greatest(s.margin, make_interval(secs => (10 ^ -coalesce(substring(s.timestamp_type from '\(([0-6])\)')::integer, 6))::double precision))) m (margin)) h_
        ) k) l
    order by l.n;
end
$$;
ALTER FUNCTION tidemark.look_state(owner text, workers text[], sources text[], shards integer[], epochs bigint[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.look_state(owner text, workers text[], sources text[], shards integer[], epochs bigint[]) IS 'What tidemark.look can tell of each cursor without a look at its table: why it is to be woken; looks: its table is to be looked at, behind after_ts and after_id, into the numbers open, below horizon (null where nothing can be said of it, as for the safety sequence); sweep: a sweep is due, of transactions from this one on. Raises TM006, TM007.';
CREATE FUNCTION tidemark.maintain() RETURNS TABLE(action text, object text, detail text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '500ms'
    AS $$
#variable_conflict use_column
declare
    -- A setting that somebody removed has its default.
    size constant bigint := greatest(coalesce((select s.value::bigint from tidemark.setting s where s.key = 'outbox.partition_events'), 1000000), 1000);
    wanted constant integer := greatest(coalesce((select s.value::integer from tidemark.setting s where s.key = 'outbox.partitions_ahead'), 2), 1);
    retention constant interval := coalesce((select s.value::interval from tidemark.setting s where s.key = 'outbox.retention'), '30 days');
    key_retention constant interval := coalesce((select s.value::interval from tidemark.setting s where s.key = 'emit_key.retention'), '30 days');
    last_number bigint;
    needed bigint;
    needed_by text;
    end_of_all bigint;
    part record;
    name text;
    newest timestamptz;
    n bigint;
begin
    -- One at a time: two would make the same partition. Writers, readers and the fence pass this mode by, and making a
    -- partition takes it anyway. Not an advisory lock, which any login could hold.
    begin
        lock table only tidemark.outbox in share update exclusive mode nowait;
    exception when lock_not_available then
        return query select 'postponed', 'outbox', 'another call is under way';
        return;
    end;
    last_number := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
    end_of_all := (select max(p.end_seq) from tidemark.partitions('tidemark.outbox') p);
    if exists (select from tidemark.outbox_rest) then
        begin
            -- With this lock nobody is left who has taken a number and not yet written its row.
            lock table tidemark.outbox in access exclusive mode;
            last_number := (select q.last_value from tidemark.outbox_seq_seq q);
            perform tidemark.partition_absorb(end_of_all, last_number + 1);
            return query select 'absorbed', format('outbox_p%s', end_of_all),
                format('numbers %s to %s had no partition of their own: call maintain more often', end_of_all, last_number);
            end_of_all := last_number + 1;
        exception when lock_not_available then
            return query select 'kept', 'outbox_rest', 'the log is busy; will be absorbed by another call';
            return;
        end;
    end if;
    begin
        while (select count(*) from tidemark.partitions('tidemark.outbox') p where p.first_seq > last_number) < wanted loop
            perform tidemark.partition_add(end_of_all, end_of_all + size);
            return query select 'created', format('outbox_p%s', end_of_all),
                format('for numbers %s to %s', end_of_all, end_of_all + size - 1);
            end_of_all := end_of_all + size;
        end loop;
    exception when lock_not_available or check_violation then
        -- A check is violated where numbers have run into the rest meanwhile: the next call absorbs it.
        return query select 'postponed', 'outbox', 'the log is busy; partitions will be made by another call';
    end;
    -- The lowest number that somebody may still read.
    select k.seq, k.who into needed, needed_by from (
        select least(c.watermark_id::bigint + 1, lower(c.holes), lower(c.fenced)) as seq, 'the cursor of worker ' || c.worker as who
        from tidemark.worker_cursor c where c.source = 'outbox'
        union all
        -- The log as a table like others, or what a table's capture has written to it.
        -- The case is what keeps ids of other sources, which may be anything, from being taken for numbers before the join.
        select case when s.safety in ('capture', 'sequence') then least(c.watermark_id::bigint + 1, lower(c.holes), lower(c.fenced)) end,
               'the cursor of worker ' || c.worker
        from tidemark.worker_cursor c join tidemark.source s on s.source = c.source
        where s.safety = 'capture' or s.safety = 'sequence' and s.schema_name = 'tidemark' and s.table_name = 'outbox'
        union all
        select min(p.seq), 'a pending delivery' from tidemark.pending p where p.dead_letter_id is null
        union all
        select j.passed_seq + 1, 'replay ' || j.id from tidemark.replay_job j where j.finished_at is null) k
    where k.seq is not null
    order by k.seq limit 1;
    for part in select p.* from tidemark.partitions('tidemark.outbox') p where p.end_seq <= last_number + 1 loop
        name := format('outbox_p%s', part.first_seq);
        execute format('select o.created_at from %s o order by o.seq desc limit 1', part.partition) into newest;
        if part.end_seq > needed then
            return query select 'kept', name, format('needed from number %s by %s', needed, needed_by);
        elsif newest > clock_timestamp() - retention then
            return query select 'kept', name,
                format('its newest event is of %s, the retention is %s', date_trunc('second', newest), retention);
        else
            begin
                -- Somebody may have dropped one of them by hand.
                execute format('drop table if exists %s, tidemark.decision_p%s, tidemark.attempt_p%s', part.partition,
                               part.first_seq, part.first_seq);
                return query select 'dropped', name,
                    format('numbers %s to %s, with their evidence', part.first_seq, part.end_seq - 1);
            exception when lock_not_available then
                return query select 'kept', name, 'the log is busy; will be dropped by another call';
            end;
        end if;
    end loop;
    delete from tidemark.emit_key k
    where k.ctid = any (array(
        select e.ctid from tidemark.emit_key e
        where e.created_at < clock_timestamp() - key_retention order by e.created_at limit 10000));
    get diagnostics n = row_count;
    if n > 0 then
        return query select 'forgot', 'emit_key', format('%s idempotency keys older than %s%s', n, key_retention,
                                                         case when n = 10000 then ', more are left for another call' else '' end);
    end if;
    with old as (
        delete from tidemark.captured c
        where c.id = any (array(select o.id from tidemark.captured o
                                where o.statements = 1 and o.at < date_trunc('hour', clock_timestamp()) - interval '1 hour'
                                  and o.at <> date_trunc('hour', o.at)
                                order by o.at limit 10000))
        returning c.*
    ), summed as (
        insert into tidemark.captured (at, route_id, outcome, rows, statements, actor, reason)
        select date_trunc('hour', o.at), o.route_id, o.outcome, sum(o.rows), count(*), o.actor, o.reason
        from old o group by 1, 2, 3, 6, 7
    )
    select count(*) into n from old;
    if n > 0 then
        return query select 'summed up', 'captured', format('%s statements, by hour', n);
    end if;
    perform tidemark.capture_findings();
    perform tidemark.emit_findings();
    begin
        return query select 'made', m, 'for what its table and its route are now' from tidemark.capture_refresh() m;
    exception when lock_not_available then
        return query select 'postponed', 'captures', 'an operator is at it; will be made by another call';
    end;
    delete from tidemark.captured c
    where c.at < clock_timestamp() - coalesce((select s.value::interval from tidemark.setting s where s.key = 'captured.retention'), '30 days');
    get diagnostics n = row_count;
    if n > 0 then
        return query select 'forgot', 'captured', format('%s rows past captured.retention', n);
    end if;
    -- What nobody has run into for a while, or an operator has dealt with, is over.
    return query
    update tidemark.finding f set closed_at = clock_timestamp()
    where f.closed_at is null
      and (f.kind = 'cursor_lease_conflict' and f.last_seen_at < clock_timestamp() - interval '10 minutes'
           or f.kind in ('cursor_dlq', 'dlq_overflow') and not exists (
                select from tidemark.dead_letter l join tidemark.worker w on w.id = l.worker_id
                where l.resolved_at is null and f.subject = case when f.kind = 'cursor_dlq' and l.source <> 'outbox'
                    then tidemark.executor_id(w.worker, l.source, l.shard) else w.worker end))
    returning 'closed', 'finding ' || f.id, f.kind || ' ' || f.subject;
    delete from tidemark.finding f
    where f.id = any (array(
        select o.id from tidemark.finding o
        where o.closed_at < clock_timestamp() - tidemark.interval_setting('finding.retention', '90 days') order by o.closed_at limit 10000));
    get diagnostics n = row_count;
    if n > 0 then
        return query select 'forgot', 'finding', format('%s closed findings past the setting finding.retention', n);
    end if;
    return query
    delete from tidemark.heartbeat h
    where h.executor_id like 'daemon/%' and h.last_status = 'stopped' and h.last_beat_at < clock_timestamp() - interval '1 day'
    returning 'forgot', 'heartbeat ' || h.executor_id, 'stopped a day ago';
    perform tidemark.cursor_sample_take();
    perform tidemark.lag_findings();
end
$$;
ALTER FUNCTION tidemark.maintain() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.maintain() IS 'Keeps the log in shape: makes partitions ahead, drops those that are past retention and that no cursor, hole or pending delivery needs, forgets old idempotency keys (10,000 a call), sums up and forgets what tidemark.captured has, opens and closes cursor_lag, capture_unwritten and emit_unregistered, closes findings that are over and forgets those past the setting finding.retention, forgets daemons that stopped a day ago. Returns what it did, and what it kept and why. Call it every minute; if nobody does, events are still taken, and nothing is dropped.';
CREATE FUNCTION tidemark.multirange_numbers(seqs int8multirange) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return array(select n from unnest(seqs) r, generate_series(lower(r), upper(r) - 1) n order by n);
end
$$;
ALTER FUNCTION tidemark.multirange_numbers(seqs int8multirange) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.multirange_numbers(seqs int8multirange) IS 'The numbers in a multirange, rising.';
CREATE FUNCTION tidemark.oldest_transaction(OUT oldest timestamp with time zone, OUT hidden boolean, OUT blame text) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    -- Before the activity: a transaction that begins after this has a later now().
    clock constant timestamptz := clock_timestamp();
begin
    perform pg_stat_clear_snapshot();
    -- The caller's own transaction counts too: its handler may write to a source.
    with seen as materialized (
        select a.pid, a.application_name, a.usename, a.xact_start,
               -- Shown without its start: track_activities was off when its transaction began.
               a.query = '<insufficient privilege>' or a.state = 'disabled'
                   or a.state like 'idle in transaction%' and a.xact_start is null as hidden,
               case
                   when a.xact_start is not null then a.xact_start
                   -- Either it began a moment ago, or as above: nothing can be said.
                   when a.backend_xid is not null then '-infinity'
                   -- Between two transactions of one message: now() of each is the arrival of the message.
                   when a.state in ('active', 'fastpath function call') then a.query_start
                   -- A login trigger is still to come, and may write.
                   when a.state is null and a.backend_type = 'client backend' then a.backend_start end as since
        from pg_stat_activity a
        where a.datname = current_database() and a.backend_type is distinct from 'autovacuum worker'
          -- A replication command writes nothing, and lasts for days. No SQL command has an underscore in its first word.
          and not (a.backend_type = 'walsender' and a.query ~ '^\s*[A-Z]+_'))
    select nullif(least(clock, min(s.since)), '-infinity'), coalesce(bool_or(s.hidden), false),
           (array_agg(format('pid %s, application "%s", user %s, in its %s for %s', s.pid, s.application_name, s.usename,
                             case when s.xact_start is null then 'message' else 'transaction' end,
                             coalesce(date_trunc('second', clock - nullif(s.since, '-infinity'))::text, 'a time that is not shown'))
                      order by s.since) filter (where s.since < clock - interval '10 seconds'))[1]
    into oldest, hidden, blame
    from seen s;
end
$$;
ALTER FUNCTION tidemark.oldest_transaction(OUT oldest timestamp with time zone, OUT hidden boolean, OUT blame text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.oldest_transaction(OUT oldest timestamp with time zone, OUT hidden boolean, OUT blame text) IS 'oldest: no transaction of this database that is under way, or is still to come, has an earlier now(), but for one that the server does not show yet: callers leave a margin. Null: the start of one is not shown. hidden: sessions cannot be seen, so oldest says nothing. blame: who keeps oldest back by more than 10 s.';
CREATE FUNCTION tidemark.own_key_check(domain text, idempotency_key text, place text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
begin
    -- Another's claim must not make a row's event look stored already.
    if exists (select from tidemark.emit_key k
               where k.domain = own_key_check.domain and k.idempotency_key = own_key_check.idempotency_key and not k.own) then
        raise exception using errcode = 'TM005',
            message = format('%sthe key "%s" of domain %s in tidemark.emit_key is not Tidemark''s own', place,
                             own_key_check.idempotency_key, own_key_check.domain),
            hint = 'Only Tidemark makes keys that begin with "tidemark:". See which event it names, and delete it.';
    end if;
    return false;
end
$$;
ALTER FUNCTION tidemark.own_key_check(domain text, idempotency_key text, place text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.own_key_check(domain text, idempotency_key text, place text) IS 'Of a key of Tidemark''s own that was claimed before: false, there is no new event; raises TM005 where an emitter had claimed it. place begins the message.';
CREATE FUNCTION tidemark.partition_absorb(first_seq bigint, end_seq bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    parent text;
    ranged text;
    rest text;
    number text;
begin
    foreach parent in array array['outbox', 'decision', 'attempt'] loop
        ranged := parent || '_p' || first_seq;
        rest := parent || '_rest';
        number := case parent when 'decision' then 'last_seq' else 'seq' end;
        execute format('alter table tidemark.%I detach partition tidemark.%I', parent, rest);
        execute format('alter table tidemark.%I rename to %I', rest, ranged);
        execute format('create table tidemark.%I partition of tidemark.%I default', rest, parent);
        -- The rest of the evidence also holds replays of events whose own partition is gone. Few, and they
        -- stay there; the log has none.
        execute format('with stay as (delete from tidemark.%1$I where %2$I < %3$s returning *) insert into tidemark.%4$I overriding system value select * from stay',
                       ranged, number, first_seq, rest);
        execute format('alter table tidemark.%I attach partition tidemark.%I for values from (%s) to (%s)',
                       parent, ranged, first_seq, end_seq);
    end loop;
end
$_$;
ALTER FUNCTION tidemark.partition_absorb(first_seq bigint, end_seq bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.partition_absorb(first_seq bigint, end_seq bigint) IS 'Turns the partitions that took the rest into the ones for the numbers from first_seq to before end_seq, and makes new, empty ones for the rest. Stops writers for a moment.';
CREATE FUNCTION tidemark.partition_add(first_seq bigint, end_seq bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    parent text;
begin
    foreach parent in array array['outbox', 'decision', 'attempt'] loop
        -- Made first and attached then: that locks the parent in a mode that lets writers go on, where
        -- create table … partition of would stop them.
        execute format('create table tidemark.%I (like tidemark.%I including defaults including constraints including storage including compression)',
                       parent || '_p' || first_seq, parent);
        execute format('alter table tidemark.%I attach partition tidemark.%I for values from (%s) to (%s)',
                       parent, parent || '_p' || first_seq, first_seq, end_seq);
    end loop;
end
$$;
ALTER FUNCTION tidemark.partition_add(first_seq bigint, end_seq bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.partition_add(first_seq bigint, end_seq bigint) IS 'Adds the partition for the numbers from first_seq to before end_seq to the log and its evidence.';
CREATE FUNCTION tidemark.partitions(parent regclass) RETURNS TABLE(partition regclass, first_seq bigint, end_seq bigint)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select c.oid::regclass, b.bounds[1]::bigint, b.bounds[2]::bigint
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid),
                                    'FROM \(''?(\d+)''?\) TO \(''?(\d+)''?\)') b (bounds)
    where i.inhparent = parent
    order by 2 nulls last
$$;
ALTER FUNCTION tidemark.partitions(parent regclass) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.partitions(parent regclass) IS 'Partitions of a table, in order, each with the first number that it holds and the one after its last; both null for the partition that takes the rest.';
CREATE FUNCTION tidemark.pass_read(worker text, epoch bigint, batch_limit integer, after tidemark.batch, known_routes text, rooms integer[], room_of integer[]) RETURNS TABLE(gate text, events integer, open boolean, place text, batch text, evidence text, routes jsonb, routes_version text, route_ids integer[], attempt_no integer, error_count integer, fresh boolean, replay boolean, seq bigint, event_id uuid, created_at timestamp with time zone, occurred_at timestamp with time zone, lane tidemark.lane, severity tidemark.severity, domain text, type text, stream text, key text, subject_table text, subject_ref text, idempotency_key text, trace text, actor text, payload jsonb, missing bigint, inside double precision)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $_$
#variable_conflict use_column
declare
    worker_id constant integer := (select w.id from tidemark.worker w where w.worker = pass_read.worker);
    read tidemark.batch;
    decided tidemark.evidence[];
    outside tidemark.evidence[];
    due tidemark.pending[];
    needed integer[];
    numbers int8multirange;
    seen_to pg_lsn;
    max_bytes bigint := greatest(65536, coalesce((
        select s.value::bigint from tidemark.setting s where s.key = 'batch.max_bytes' and s.value ~ '^[0-9]{1,12}$'), 16777216));
    last bigint;
    tries integer := 0;
begin
    perform tidemark.flush_on_commit();
    if not exists (select from tidemark.heartbeat h
                   where h.executor_id = pass_read.worker || '/outbox/0' and h.lease_epoch = pass_read.epoch) then
        perform tidemark.lease_check(pass_read.worker, pass_read.epoch); -- it raises
    end if;
    gate := tidemark.closed_gate(pass_read.worker);
    if gate is null then
        if rooms is not null then
            perform tidemark.replay_stage(pass_read.worker);
            due := tidemark.pending_due(pass_read.worker, worker_id, rooms, room_of);
            if exists (select from unnest(due) d where d.dead_letter_id is null
                       and not exists (select from tidemark.outbox o where o.seq = d.seq)) then
                -- It would be due for ever, and in the way of what can be delivered.
                perform tidemark.lease_check(pass_read.worker, pass_read.epoch);
                missing := tidemark.settle_missing(pass_read.worker);
                due := tidemark.pending_due(pass_read.worker, worker_id, rooms, room_of);
            end if;
        end if;
        if cardinality(due) > 0 then
            max_bytes := max_bytes / 2; -- for each of the two
            due := tidemark.pending_within(due, max_bytes);
        end if;
        loop
            read := tidemark.read_outbox(pass_read.worker, batch_limit, after);
            exit when read.events = 0;
            decided := tidemark.decide_batch(pass_read.worker, read);
            outside := array(
                select e from unnest(decided) e join unnest(read.routes) r on r.id = e.route_id
                where e.outcome = 'pending' and not tidemark.target_is_inside(r.target_kind));
            exit when cardinality(outside) = 0 or tries = 3;
            -- What is too large for a page is read again, as far as it fits.
            last := tidemark.last_within((select range_agg(e.seqs) from unnest(outside) e), max_bytes);
            exit when last is null;
            batch_limit := (
                select sum(upper(s) - lower(s)) from unnest(read.seqs * int8multirange(int8range(null, last + 1))) s);
            tries := tries + 1;
        end loop;
        events := read.events;
        evidence := case
            when events = 0 then '{}'
            when cardinality(outside) = 0 then decided::text
            else (array(select e from unnest(decided) e where not e = any (outside)))::text end;
        open := not isempty(read.holes) or not isempty(read.fenced)
            or read.watermark < (select q.last_value from tidemark.outbox_seq_seq q where q.is_called);
        -- Two seconds for other deliveries and for the settle itself.
        inside := (
            select extract(epoch from max(r.timeout)) + 2 from tidemark.outbound_route r
            where r.id = any (tidemark.live_inside(pass_read.worker, coalesce(decided, '{}'))));
        if cardinality(outside) > 0 or cardinality(due) > 0 then
            seen_to := pg_current_wal_insert_lsn();
            needed := array(select e.route_id from unnest(outside) e union select p.route_id from unnest(due) p);
            routes_version := (
                select string_agg(concat_ws(':', r.id, r.xmin, r.ctid), ',' order by r.id)
                from tidemark.outbound_route r where r.id = any (needed));
            if routes_version is distinct from known_routes then
                routes := (
                    select jsonb_agg(to_jsonb(r) || jsonb_build_object('timeout_seconds', extract(epoch from r.timeout)) order by r.id)
                    from tidemark.outbound_route r where r.id = any (needed));
            end if;
        end if;
        -- Nothing after this looks at them, and they are most of it.
        read.groups := null; read.seqs := null; read.routes := null;
        batch := read::text;
        place := concat_ws(' ', read.watermark, read.holes, read.fenced, read.fence, read.blocked_by);
    end if;
    return next;
    if seen_to is null then
        return;
    end if;
    -- Before anything leaves it must be durable. A commit can be seen once it is flushed, except where its writer did
    -- not wait for that (synchronous_commit off, or local beside a standby that others wait for). So where all that was
    -- written when this was read is flushed, there is nothing to wait for; else the commit of this record waits. A
    -- record, and not a row: the settle of the page before holds the lease's row.
    if pg_current_wal_flush_lsn() < seen_to or current_setting('synchronous_standby_names') <> '' then
        perform pg_logical_emit_message(true, 'tidemark', '');
    end if;
    -- The head row's columns are not repeated.
    gate := null; events := null; open := null; place := null; batch := null; evidence := null; routes := null; missing := null; inside := null;
    numbers := (select range_agg(e.seqs) from unnest(outside) e);
    if numbers = range_merge(numbers)::int8multirange then
        -- One run of neighbours, as nearly always: straight from the log.
        return query
        select null::text, null::integer, null::boolean, null::text, null::text, null::text, null::jsonb, null::text,
               case when cardinality(outside) = 1 then array[outside[1].route_id] else array(
                   select e.route_id from unnest(outside) e where e.seqs @> o.seq order by e.route_id) end,
               1, 0, true, false, o.*, null::bigint, null::double precision
        from tidemark.outbox o where o.seq >= lower(numbers) and o.seq < upper(numbers) order by o.seq;
    elsif numbers is not null then
        return query
        select null::text, null::integer, null::boolean, null::text, null::text, null::text, null::jsonb, null::text,
               array(select e.route_id from unnest(outside) e where e.seqs @> o.seq order by e.route_id),
               1, 0, true, false, o.*, null::bigint, null::double precision
        from tidemark.events(tidemark.multirange_numbers(numbers)) o; -- in order
    end if;
    if due is null then
        return;
    end if;
    return query
    select null::text, null::integer, null::boolean, null::text, null::text, null::text, null::jsonb, null::text,
           array[p.route_id], p.attempt_no + 1, p.error_count, false, p.replay, o.*, null::bigint, null::double precision
    from unnest(due) p
    join (
        select e.* from tidemark.events(array(
            select distinct d.seq from unnest(due) d where d.dead_letter_id is null order by 1)) e) o on o.seq = p.seq
    where p.dead_letter_id is null
    order by o.seq;
    return query
    select null::text, null::integer, null::boolean, null::text, null::text, null::text, null::jsonb, null::text,
           array[p.route_id], p.attempt_no + 1, p.error_count, false, p.replay, o.*, null::bigint, null::double precision
    from unnest(due) p
    join tidemark.dead_letter l on l.id = p.dead_letter_id
    cross join lateral jsonb_populate_record(null::tidemark.outbox, l.event_snapshot) o;
end
$_$;
ALTER FUNCTION tidemark.pass_read(worker text, epoch bigint, batch_limit integer, after tidemark.batch, known_routes text, rooms integer[], room_of integer[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.pass_read(worker text, epoch bigint, batch_limit integer, after tidemark.batch, known_routes text, rooms integer[], room_of integer[]) IS 'The start of a pass by the owner of the lease epoch: reads at most batch_limit events after the cursor, or after the batch after, decides them, and adds what is pending and due, both within the setting batch.max_bytes of payload, half of it each where there is both (at least one event each). The first row has the gate that is closed (null: none), whether numbers up to the highest one taken are open still, where the batch leaves the cursor (for comparing), the batch and the evidence to hand to tidemark.pass_settle, the routes that are needed, unless their version is known_routes, how many that were pending it dead-lettered, since their events are gone from the log (missing), and how many seconds the settle may take, where it has something to deliver inside the database (inside; null: nothing). The other rows are what is to be delivered outside the database: an event with its routes, fresh or pending (fresh false), or one that an operator sends again (replay). Goes on with the replays on its routes (tidemark.replay_stage). rooms are routes that take at most room_of pending events; others take 100; null: nothing that is pending. Commit before anything leaves. Raises TM011, and TM012 where the watermark was edited by hand.';
CREATE FUNCTION tidemark.pass_settle(worker text, epoch bigint, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], settle_no bigint) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    at_ tidemark.worker_cursor;
    live integer[];
    fallbacks integer := 0;
    delivered record;
    gate text;
    summary jsonb;
begin
    perform tidemark.lease_check(pass_settle.worker, pass_settle.epoch);
    select c.* into at_ from tidemark.worker_cursor c
    where c.worker = pass_settle.worker and c.source = 'outbox' and c.shard = 0;
    if at_.settles >= settle_no then
        -- It was repeated, since its answer was lost or late, and this is the other one. The network may hold it back
        -- for any time: before anything is delivered again.
        return '{"status": "settled already"}';
    elsif batch.watermark < at_.watermark_id::bigint then
        -- Nobody but a rewind moves a cursor back, and a rewind ends the epoch.
        perform tidemark.worker_finding(pass_settle.worker, 'cursor_watermark_regression', pass_settle.worker,
            format('a batch that ends at %s was to be settled behind the watermark %s: the cursor was held, nothing of it was recorded',
                   batch.watermark, at_.watermark_id));
        return '{"status": "held"}';
    end if;
    evidence := coalesce(pass_settle.evidence, '{}');
    results := coalesce(pass_settle.results, '{}');
    live := tidemark.live_inside(pass_settle.worker, evidence);
    -- Without a batch a worker puts down what ended beside it, as it stops: nothing new is begun.
    if cardinality(live) > 0 and not (batch is null) then
        begin
            delivered := tidemark.deliver_inside(pass_settle.worker, evidence, interval '800 milliseconds');
            gate := tidemark.closed_switch(pass_settle.worker, live);
            if gate is not null then
                raise exception using errcode = 'TM009', message = gate;
            end if;
            evidence := delivered.settled;
            results := pass_settle.results || delivered.results;
            fallbacks := delivered.fallbacks;
        exception when sqlstate 'TM009' then
            -- What went outside before the gate closed has to be recorded all the same; the rest is left over.
            evidence := array(
                select case e.outcome when 'pending'
                           then row(e.route_id, e.outcome, 'gate_closed', null, e.events, e.seqs)::tidemark.evidence else e end
                from unnest(pass_settle.evidence) e);
        end;
    end if;
    if not (batch is null) then
        summary := tidemark.pass_summary(pass_settle.worker, batch, pass_settle.evidence, pass_settle.results, fallbacks);
    end if;
    perform tidemark.settle(pass_settle.worker, pass_settle.epoch, batch, pass_settle.evidence, pass_settle.results, summary, settle_no);
    return summary;
end
$$;
ALTER FUNCTION tidemark.pass_settle(worker text, epoch bigint, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], settle_no bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.pass_settle(worker text, epoch bigint, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], settle_no bigint) IS 'The end of a pass whose deliveries went outside the database: delivers what goes inside, in this transaction, and writes what became of everything (tidemark.settle). Where a gate closed meanwhile, what goes inside is left pending. settle_no is one more than that of the settle before: one that comes twice does nothing the second time (status settled already). Returns the summary of the pass; null without a batch. Raises TM011 where the epoch is not the lease''s any more.';
CREATE FUNCTION tidemark.pass_summary(worker text, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], fallbacks integer) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return jsonb_build_object(
        'worker', worker, 'status', 'ran', 'events', batch.events, 'late', batch.late,
        'decided', coalesce((select jsonb_object_agg(d.outcome, d.n) from (
            select e.outcome, sum(e.events) as n
            from (
                select f.outcome, f.events from unnest(evidence) f
                union all
                select r.outcome, (select sum(upper(s) - lower(s)) from unnest(r.seqs) s) from unnest(results) r where r.fresh) e
            group by e.outcome) d), '{}'),
        'watermark', batch.watermark, 'fallbacks', fallbacks)
        || case when batch.blocked_by is null then '{}' else jsonb_build_object('blocked_by', batch.blocked_by) end;
end
$$;
ALTER FUNCTION tidemark.pass_summary(worker text, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], fallbacks integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.pass_summary(worker text, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], fallbacks integer) IS 'What a pass did, as route_worker_run returns it and worker_cursor.last_run_summary keeps it.';
CREATE FUNCTION tidemark.pattern_matches(pattern text, value text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    select case when pg_catalog.right(pattern, 1) = '*'
                then pg_catalog.starts_with(value, pg_catalog.left(pattern, -1))
                else pattern = value end
$$;
ALTER FUNCTION tidemark.pattern_matches(pattern text, value text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.pattern_matches(pattern text, value text) IS 'True: the value is the pattern, or begins with what stands before the pattern''s final "*".';
CREATE FUNCTION tidemark.payload_check(domain text, type text, payload jsonb, schema jsonb, metadata_only boolean, place text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    problem text := tidemark.payload_error(payload, schema);
begin
    if problem is not null then
        raise exception using errcode = 'TM002',
            message = format('%s%s/%s: %s', place, domain, type, problem),
            hint = 'See the schema: select schema from tidemark.event_type.';
    end if;
    if metadata_only then
        problem := tidemark.forbidden_key_in(payload);
        if problem is not null then
            raise exception using errcode = 'TM003',
                message = format('%s%s/%s: payload holds the forbidden key "%s"', place, domain, type, problem),
                hint = format('Domain %s is metadata-only: send a reference instead, or see tidemark.forbidden_key.', domain);
        end if;
    end if;
    return true;
end
$$;
ALTER FUNCTION tidemark.payload_check(domain text, type text, payload jsonb, schema jsonb, metadata_only boolean, place text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.payload_check(domain text, type text, payload jsonb, schema jsonb, metadata_only boolean, place text) IS 'True, or raises: TM002 for a payload that breaks its schema, TM003 for a forbidden key; place begins the message.';
CREATE FUNCTION tidemark.payload_error(payload jsonb, schema jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    name text;
    wanted jsonb;
    found text;
begin
    if payload is null or jsonb_typeof(payload) <> 'object' then
        return format('payload is %s, not an object', coalesce(jsonb_typeof(payload), 'null'));
    end if;
    if jsonb_typeof(schema -> 'required') = 'array' then
        for name in select jsonb_array_elements_text(schema -> 'required') loop
            if not payload ? name then
                return format('payload has no key "%s", which its schema requires', name);
            end if;
        end loop;
    end if;
    if jsonb_typeof(schema -> 'properties') = 'object' then
        for name, wanted in
            select p.key, p.value -> 'type' from jsonb_each(schema -> 'properties') p
            where jsonb_typeof(p.value) = 'object' and p.value ? 'type' and payload ? p.key
        loop
            found := jsonb_typeof(payload -> name);
            -- JSON Schema counts 1.0 as an integer.
            if found = 'number' and (payload ->> name)::numeric = trunc((payload ->> name)::numeric) then
                continue when wanted @> '"integer"' or wanted @> '"number"';
            end if;
            if not wanted @> to_jsonb(found) then
                return format('payload key "%s" is %s, and its schema wants %s', name, found, wanted);
            end if;
        end loop;
    end if;
    return null;
end
$$;
ALTER FUNCTION tidemark.payload_error(payload jsonb, schema jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.payload_error(payload jsonb, schema jsonb) IS 'What is wrong with a payload by the part of a JSON Schema that SQL checks: that it is an object, "required", and the "type" of each of "properties". Null: nothing.';
CREATE FUNCTION tidemark.payload_limit() RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    value constant text := (select s.value from tidemark.setting s where s.key = 'emit.payload_limit');
begin
    -- An unreadable setting must not fail every emit, nor lift the limit.
    return case when value ~ '^[0-9]{1,15}$' then nullif(greatest(value::bigint, case when value::bigint > 0 then 1000 else 0 end), 0)
                else 1000000 end;
end
$_$;
ALTER FUNCTION tidemark.payload_limit() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.payload_limit() IS 'Bytes of JSON text that a payload may have: the setting emit.payload_limit, 1000000 where it is missing or unreadable, at least 1000. Null: no limit (0).';
CREATE FUNCTION tidemark.pending_at(worker_id integer, route_id integer, seqs int8multirange) RETURNS tid[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
begin
    -- One look into the primary key each. A join would be planned by statistics of a table that is empty one minute
    -- and large the next, and would then read all of it for each number.
    return array(
        select q.ctid
        from unnest(tidemark.multirange_numbers(pending_at.seqs)) n
        cross join lateral (
            select p.ctid from tidemark.pending p
            where p.worker_id = pending_at.worker_id and p.route_id = pending_at.route_id and p.seq = n limit 1) q);
end
$$;
ALTER FUNCTION tidemark.pending_at(worker_id integer, route_id integer, seqs int8multirange) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.pending_at(worker_id integer, route_id integer, seqs int8multirange) IS 'Where the pending rows of these events are, for statements of this transaction only.';
CREATE TABLE tidemark.pending (
    worker_id integer NOT NULL,
    route_id integer NOT NULL,
    seq bigint NOT NULL,
    attempt_no smallint DEFAULT 1 NOT NULL,
    key text,
    next_attempt_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    error_count integer DEFAULT 0 NOT NULL,
    last_error text,
    dead_letter_id bigint,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    replay boolean DEFAULT false NOT NULL,
    replay_id bigint,
    suspects integer,
    CONSTRAINT dead_letter_is_replayed CHECK ((replay OR (dead_letter_id IS NULL))),
    CONSTRAINT replay_is_replayed CHECK ((replay OR (replay_id IS NULL))),
    CONSTRAINT suspects_is_positive CHECK ((suspects > 0))
);
ALTER TABLE tidemark.pending OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.pending IS 'Events that a target is still to get: one outside the database, or one inside that was too slow for the pass or had its gate closed. Source: S2 event_pending.';
COMMENT ON COLUMN tidemark.pending.worker_id IS 'tidemark.worker.id.';
COMMENT ON COLUMN tidemark.pending.route_id IS 'tidemark.outbound_route.id.';
COMMENT ON COLUMN tidemark.pending.seq IS 'Number of the event.';
COMMENT ON COLUMN tidemark.pending.attempt_no IS 'Latest attempt on record; the next one has one more.';
COMMENT ON COLUMN tidemark.pending.key IS 'Ordering key of the event.';
COMMENT ON COLUMN tidemark.pending.next_attempt_at IS 'Not before. infinity: it waits behind an earlier event of its key.';
COMMENT ON COLUMN tidemark.pending.error_count IS 'Attempts that failed so far.';
COMMENT ON COLUMN tidemark.pending.last_error IS 'Why the last one failed.';
COMMENT ON COLUMN tidemark.pending.dead_letter_id IS 'Dead letter that this replays, whose snapshot holds the event; null: the event is in the log.';
COMMENT ON COLUMN tidemark.pending.created_at IS 'When it was staged.';
COMMENT ON COLUMN tidemark.pending.replay IS 'An operator sends the event again: it is outside the order of its key.';
COMMENT ON COLUMN tidemark.pending.replay_id IS 'Replay of the route that staged it; null: none.';
COMMENT ON COLUMN tidemark.pending.suspects IS 'How many events the statement had that was cut off, since it took too long, this one among them: it is tried again with fewer. Null: no such. For targets inside the database.';
CREATE FUNCTION tidemark.pending_due(worker text, worker_id integer, rooms integer[], room_of integer[]) RETURNS tidemark.pending[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
begin
    return array(
        select p
        from tidemark.outbound_route r
        cross join lateral (select coalesce(
            (select f.n from unnest(rooms, room_of) f (route_id, n) where f.route_id = r.id limit 1), 100) as n) room
        cross join lateral (
            with first as materialized (
                select p, row_number() over () as place from (
                    select p from tidemark.pending p
                    where p.route_id = r.id and p.next_attempt_at <= clock_timestamp() and p.worker_id = pending_due.worker_id
                      and not p.replay
                      -- The first of its key, where order is kept, whatever is due.
                      and not (r.ordering = 'key' and p.key is not null and exists (
                          select from tidemark.pending e
                          where e.worker_id = p.worker_id and e.route_id = p.route_id and e.key = p.key and e.seq < p.seq
                            and not e.replay))
                    order by p.next_attempt_at limit room.n) f (p)
            ), live as materialized (
                select d.p from (
                    select f.p, f.place from first f
                    union all
                    -- What waits behind them, in order: a key that was held up is made good in runs, not one by one.
                    select q.p, f.place from first f
                    cross join lateral (
                        select q as p from tidemark.pending q
                        where r.ordering = 'key' and room.n > 1
                          and q.worker_id = pending_due.worker_id and q.route_id = r.id and q.key = (f.p).key
                          and q.seq > (f.p).seq and not q.replay
                          and q.seq < coalesce((
                              select min(l.seq) from tidemark.pending l
                              where l.worker_id = q.worker_id and l.route_id = q.route_id and l.key = q.key and l.seq > (f.p).seq
                                and not l.replay and l.next_attempt_at > clock_timestamp()
                                and l.next_attempt_at <> 'infinity'), 9223372036854775807)
                        order by q.seq limit 50) q) d
                order by d.place, (d.p).seq limit room.n)
            select l.p from live l
            union all
            -- Replays get the room that live events leave, and a tenth of it in any case.
            select a.p from (
                select a as p from tidemark.pending a
                where a.route_id = r.id and a.next_attempt_at <= clock_timestamp() and a.worker_id = pending_due.worker_id
                  and a.replay
                order by a.next_attempt_at limit greatest(room.n - (select count(*) from live), room.n / 10)) a) due (p)
        where r.worker = pending_due.worker and r.enabled and not r.dry_run and not tidemark.target_is_inside(r.target_kind));
end
$$;
ALTER FUNCTION tidemark.pending_due(worker text, worker_id integer, rooms integer[], room_of integer[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.pending_due(worker text, worker_id integer, rooms integer[], room_of integer[]) IS 'What is pending on the worker''s live routes and due, live events first: at most 100 a route, or room_of for those in rooms; among them up to 50 that wait behind an event of a key. Replays get the room that is left, and at least a tenth.';
CREATE FUNCTION tidemark.pending_keys(worker text, max_keys integer) RETURNS TABLE(route_id integer, key text, events bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    of_worker constant integer := (select w.id from tidemark.worker w where w.worker = pending_keys.worker);
    -- Rows looked at per route: this is asked at each claim, and must not cost more the more there is pending.
    most constant bigint := 10 * max_keys::bigint;
begin
    return query
    with counted as materialized (
        select r.id, k.key, k.events
        from tidemark.outbound_route r
        cross join lateral (
            select p.key, count(*) as events
            from (select p.key from tidemark.pending p
                  where p.worker_id = of_worker and p.route_id = r.id and p.key is not null and not p.replay
                  limit most + 1) p
            group by p.key) k
    ), sized as (
        -- The routes with the fewest keys are known, as far as they go.
        select s.id, s.events, sum(s.keys) filter (where s.events <= most) over (order by s.keys, s.id) as keys_so_far
        from (select c.id, count(*) as keys, sum(c.events) as events from counted c group by c.id) s
    )
    select s.id, c.key, coalesce(c.events, s.events::bigint)
    from sized s left join counted c on c.id = s.id and s.events <= most and s.keys_so_far <= max_keys;
end
$$;
ALTER FUNCTION tidemark.pending_keys(worker text, max_keys integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.pending_keys(worker text, max_keys integer) IS 'Ordering keys with events pending on a route, and how many, at most max_keys of them in all: what an owner of the cursor has to know before it delivers in order. A route that has too many of them, or more than ten times as many events, has one row with key null and a number of events that is a lower bound. Replays do not count: they are outside the order of keys.';
CREATE FUNCTION tidemark.pending_within(due tidemark.pending[], max_bytes bigint) RETURNS tidemark.pending[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
declare
    stored bigint;
    packed bigint;
    total bigint := 0;
    kept tidemark.pending[] := '{}';
    p tidemark.pending;
begin
    select sum(pg_column_size(s.payload)), count(pg_column_compression(s.payload)) into stored, packed
    from unnest(due) d
    cross join lateral (
        select o.payload from tidemark.outbox o where d.dead_letter_id is null and o.seq = d.seq
        union all
        select l.event_snapshot from tidemark.dead_letter l where l.id = d.dead_letter_id) s;
    if packed = 0 and stored <= max_bytes then
        return due;
    end if;
    -- A route after the other takes one, so that large events of one route do not keep out the others; each in its order.
    for p in
        select (q.d).* from (
            select d, row_number() over (partition by (d).route_id order by n) as turn
            from generate_subscripts(due, 1) n
            cross join lateral (select due[n] as d) e) q
        order by q.turn
    loop
        total := total + coalesce((
            select case when pg_column_compression(o.payload) is null then pg_column_size(o.payload)
                        else pg_column_size(o.payload || '{}') end
            from tidemark.outbox o where p.dead_letter_id is null and o.seq = p.seq), (
            select case when pg_column_compression(l.event_snapshot) is null then pg_column_size(l.event_snapshot)
                        else pg_column_size(l.event_snapshot || '{}') end
            from tidemark.dead_letter l where l.id = p.dead_letter_id), 0);
        exit when total > max_bytes and cardinality(kept) > 0;
        kept := kept || p;
    end loop;
    return kept;
end
$$;
ALTER FUNCTION tidemark.pending_within(due tidemark.pending[], max_bytes bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.pending_within(due tidemark.pending[], max_bytes bigint) IS 'Those of the pending deliveries that fit into max_bytes of payload, each route in its order and none before another; the first one always does.';
CREATE FUNCTION tidemark.read_outbox(worker text, batch_limit integer, after tidemark.batch DEFAULT NULL::tidemark.batch) RETURNS tidemark.batch
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET work_mem TO '64MB'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
declare
    w constant tidemark.worker := (select w from tidemark.worker w where w.worker = read_outbox.worker);
    c tidemark.worker_cursor := (
        select c from tidemark.worker_cursor c
        where c.worker = read_outbox.worker and c.source = 'outbox' and c.shard = 0);
    -- Looked at once a pass: a filter that came or went between reading and deciding would be answered by
    -- nobody. Of the other workers' routes only those that could make one of ours ambiguous.
    routes constant tidemark.outbound_route[] := array(
        select r from tidemark.outbound_route r
        where r.worker = read_outbox.worker
           or r.enabled and exists (
                select from tidemark.outbound_route o
                where o.worker = read_outbox.worker and o.target_kind = r.target_kind and o.target_ref = r.target_ref
                  and (o.exclusive or r.exclusive))
        order by r.id);
    filtered constant tidemark.outbound_route[] := array(
        select r from unnest(routes) r where r.key_filter is not null or r.payload_filter is not null);
    mark bigint := c.watermark_id::bigint;
    in_order constant boolean := w.read_order = 'strict';
    open int8multirange;
    -- With read_order strict the open numbers lie above the watermark, where the read meets them anyway.
    below int8multirange;
    closed boolean := false;
    ahead integer := batch_limit;
    b tidemark.batch;
    missing int8multirange := '{}';
begin
    if mark > c.decided_through::bigint then
        raise exception using errcode = 'TM012',
            message = format('worker %s: the watermark is %s, and events were decided through %s: it was edited by hand, or restored',
                             read_outbox.worker, mark, c.decided_through),
            hint = 'Accept a place with tidemark.worker_rewind.';
    end if;
    if not (after is null) then
        -- The page before this one is being acted on: the cursor is where that page will leave it.
        mark := after.watermark;
        c.holes := after.holes;
        c.fenced := after.fenced;
        c.fence := after.fence;
    end if;
    open := c.holes + c.fenced;
    below := case when in_order then '{}' else open end;
    b := row(mark, 0, 0, mark < c.decided_through::bigint, c.holes, c.fenced, c.fence, '{}', '{}', routes, null);
    if not isempty(c.fenced) then
        closed := tidemark.fence_closed(c.fence);
        if not closed and (select count(*) from unnest(open)) >= w.hole_limit then
            ahead := 0;
            b.blocked_by := coalesce(tidemark.fence_blame(c.fence), 'a transaction that has just ended');
        end if;
    end if;
    if isempty(below) and cardinality(filtered) = 0 then
        -- The same without holes and filters, at half the cost: what most batches are.
        select array_agg(row(g.domain, g.type, g.stream, null, g.events, g.seqs)::tidemark.event_group),
               coalesce(sum(g.events), 0), 0, greatest(mark, max(g.last))
        into b.groups, b.events, b.late, b.watermark
        from (
            select o.domain, o.type, o.stream, count(*)::integer as events, max(o.seq) as last,
                   range_agg(int8range(o.seq, o.seq + 1)) as seqs
            from (
                select o.seq, o.domain, o.type, o.stream from tidemark.outbox o
                where o.seq > mark order by o.seq limit ahead) o
            group by o.domain, o.type, o.stream) g;
    else
        with late as materialized (
            select o.* from unnest(below) hole (span)
            cross join lateral (
                select o.seq, o.domain, o.type, o.stream,
                       case when cardinality(filtered) > 0 then array(
                           select r.id from unnest(filtered) r where tidemark.route_matches(r, o) order by r.id) end as matched
                from tidemark.outbox o
                where o.seq >= lower(hole.span) and o.seq < upper(hole.span)
                order by o.seq limit batch_limit) o
            order by o.seq limit batch_limit
        ), forward as (
            select o.seq, o.domain, o.type, o.stream,
                   case when cardinality(filtered) > 0 then array(
                       select r.id from unnest(filtered) r where tidemark.route_matches(r, o) order by r.id) end as matched
            from tidemark.outbox o
            where o.seq > mark
            -- Lower numbers first: what a full batch of late events leaves no room for is read next time.
            order by o.seq limit least(ahead, batch_limit - (select count(*) from late))
        ), grouped as materialized (
            select e.domain, e.type, e.stream, e.matched, count(*)::integer as events,
                   range_agg(int8range(e.seq, e.seq + 1)) as seqs
            from (select * from late union all select * from forward) e
            group by e.domain, e.type, e.stream, e.matched
        )
        select array_agg(row(g.domain, g.type, g.stream, g.matched, g.events, g.seqs)::tidemark.event_group),
               coalesce(sum(g.events), 0), (select count(*) from late), greatest(mark, max(upper(g.seqs)) - 1)
        into b.groups, b.events, b.late, b.watermark
        from grouped g;
    end if;
    b.seqs := int8multirange(int8range(mark + 1, b.watermark + 1));
    -- Where nothing is missing and nothing was late, that is what was read. Putting the groups together is
    -- a sort, for when it is not.
    if b.watermark - mark > b.events - b.late or b.late > 0 then
        missing := b.seqs;
        select coalesce(range_agg(g.seqs), '{}') into b.seqs from unnest(b.groups) g;
        missing := missing - b.seqs;
    end if;
    -- A full batch of late events has not looked at all the holes: none of them is dropped yet.
    if closed and b.late < batch_limit then
        b.fenced := '{}';
    else
        b.fenced := c.fenced - b.seqs;
    end if;
    if in_order then
        -- Numbers whose fence has closed without their showing up are nobody's: not missing any more.
        missing := missing - (c.fenced - b.fenced);
        if not isempty(missing) then
            b.watermark := lower(missing) - 1;
            b.groups := array(
                select row(g.domain, g.type, g.stream, g.matched,
                           (select sum(upper(r) - lower(r)) from unnest(g.seqs * int8multirange(int8range(null, b.watermark + 1))) r),
                           g.seqs * int8multirange(int8range(null, b.watermark + 1)))::tidemark.event_group
                from unnest(b.groups) g
                where g.seqs && int8range(null, b.watermark + 1));
            b.events := coalesce((select sum(g.events) from unnest(b.groups) g), 0);
            b.seqs := b.seqs * int8multirange(int8range(null, b.watermark + 1));
        end if;
        b.fenced := b.fenced * missing;
        b.holes := missing - b.fenced;
    else
        b.holes := c.holes - b.seqs + missing;
    end if;
    if isempty(b.fenced) then
        b.fenced := b.holes;
        b.holes := '{}';
        b.fence := case when isempty(b.fenced) then '{}' else tidemark.fence_now() end;
    end if;
    if w.domains is not null and exists (select from unnest(b.groups) g where g.domain <> all (w.domains)) then
        b.groups := array(select g from unnest(b.groups) g where g.domain = any (w.domains));
        select coalesce(range_agg(g.seqs), '{}') into b.seqs from unnest(b.groups) g;
    end if;
    return b;
end
$$;
ALTER FUNCTION tidemark.read_outbox(worker text, batch_limit integer, after tidemark.batch) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.read_outbox(worker text, batch_limit integer, after tidemark.batch) IS 'Reads the next batch of the log after the worker''s cursor, at most batch_limit events: those that have appeared in its holes, then those above its watermark. With after, from where that batch will leave the cursor. Writes nothing; tidemark.settle moves the cursor. Raises TM012 where the watermark was edited by hand.';
CREATE FUNCTION tidemark.relation_tree(relation regclass) RETURNS oid[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if relation_tree.relation = 'tidemark.outbox'::regclass then
        return array[relation_tree.relation::oid]; -- tidemark.emit names it, never a partition
    end if;
    -- Who inserts straight into a partition locks that alone.
    return (
        with recursive tree (id) as (
            select relation_tree.relation::oid
            union
            select i.inhrelid from tree t join pg_inherits i on i.inhparent = t.id)
        select array_agg(t.id) from tree t);
end
$$;
ALTER FUNCTION tidemark.relation_tree(relation regclass) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.relation_tree(relation regclass) IS 'The table, its partitions and what inherits from it.';
CREATE FUNCTION tidemark.release(worker text, epoch bigint, source text DEFAULT 'outbox'::text, shard integer DEFAULT 0) RETURNS boolean
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with released as (
        update tidemark.heartbeat h
        set lease_owner = null, lease_until = null, last_beat_at = clock_timestamp(), last_status = 'released'
        where h.executor_id = tidemark.executor_id(release.worker, release.source, release.shard) and h.lease_epoch = release.epoch
        returning h.executor_id)
    select exists (select from released)
$$;
ALTER FUNCTION tidemark.release(worker text, epoch bigint, source text, shard integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.release(worker text, epoch bigint, source text, shard integer) IS 'Gives the lease back before its end, so that another instance need not wait for it. False: it was not this epoch''s any more.';
CREATE FUNCTION tidemark.release_keys(worker_id integer, routes integer[], keys text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
begin
    -- Settling is serial (tidemark.lease_check): nobody can put an event behind one that leaves in this moment and
    -- be left waiting for nobody. By ctid, since a join with a table that grew since it was last analyzed is a
    -- loop over all of it for each key.
    update tidemark.pending p
    set next_attempt_at = clock_timestamp()
    where p.ctid = any (array(
        select first.ctid
        from unnest(release_keys.routes, release_keys.keys) k (route_id, key)
        cross join lateral (
            select q.ctid, q.next_attempt_at from tidemark.pending q
            where q.worker_id = release_keys.worker_id and q.route_id = k.route_id and q.key = k.key
              and not q.replay
            order by q.seq limit 1) first
        where first.next_attempt_at = 'infinity'));
end
$$;
ALTER FUNCTION tidemark.release_keys(worker_id integer, routes integer[], keys text[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.release_keys(worker_id integer, routes integer[], keys text[]) IS 'Of each key (given with its route), the first pending event need not wait any longer: none is before it.';
CREATE FUNCTION tidemark.replay_cancel(id bigint, reason text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    job tidemark.replay_job;
begin
    if coalesce(btrim(replay_cancel.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a replay is not cancelled without a reason';
    end if;
    select j.* into job from tidemark.replay_job j where j.id = replay_cancel.id for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no replay %s', replay_cancel.id),
            hint = 'Replays: select * from tidemark.replay_summary;';
    elsif job.finished_at is not null then
        raise exception using errcode = 'TM013', message = format('replay %s is over: %s at %s', job.id,
            case when job.cancelled_at is null then 'finished' else 'cancelled' end, job.finished_at);
    end if;
    update tidemark.replay_job j
    set cancelled_at = clock_timestamp(), cancelled_by = session_user, finished_at = clock_timestamp()
    where j.id = job.id;
    insert into tidemark.audit (action, object, reason, after)
    values ('replay_cancel', 'replay ' || job.id, replay_cancel.reason, jsonb_build_object('passed_seq', job.passed_seq, 'staged', job.staged));
    return (select count(*) from tidemark.pending p where p.replay_id = job.id);
end
$$;
ALTER FUNCTION tidemark.replay_cancel(id bigint, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.replay_cancel(id bigint, reason text) IS 'Ends a replay where it is. Returns how many of its events are staged already: they still go, at most 1000, or five seconds of its rate; switch the route off to stop them too. Raises TM004, TM005, TM013 (it is over).';
CREATE FUNCTION tidemark.replay_page(route tidemark.outbound_route, after bigint, upto bigint, key text, outcomes text[]) RETURNS TABLE(seq bigint, event_key text, former text, attempt_no integer, left_out text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    w constant tidemark.worker := (select w from tidemark.worker w where w.worker = (replay_page.route).worker);
    open constant int8multirange := (
        select c.holes + c.fenced from tidemark.worker_cursor c
        where c.worker = w.worker and c.source = 'outbox' and c.shard = 0);
begin
    return query
    with event as materialized (
        select o.seq, o.key, tidemark.route_matches(replay_page.route, o) and (w.domains is null or o.domain = any (w.domains)) as claimed
        from tidemark.outbox o
        where o.seq > after and o.seq <= upto and (replay_page.key is null or o.key = replay_page.key)
    ), tried as materialized (
        select distinct on (a.seq) a.seq, a.outcome, a.attempt_no from tidemark.attempt a
        where a.worker_id = w.id and a.route_id = (replay_page.route).id and a.seq > after and a.seq <= upto
        order by a.seq, a.attempt_no desc
    ), decided as materialized (
        select d.outcome, d.seqs from tidemark.decision d
        where d.worker_id = w.id and d.route_id = (replay_page.route).id and d.last_seq > after and d.first_seq <= upto
    ), letter as materialized (
        select l.seq, l.resolution, l.resolved_at is null as is_open from tidemark.dead_letter l
        where l.worker_id = w.id and l.route_id = (replay_page.route).id and l.seq > after and l.seq <= upto
          and (l.resolved_at is null or l.resolution = 'discarded')
    ), judged as (
        select e.seq, e.key, e.claimed, coalesce(t.outcome, d.outcome)::text as former,
               greatest(coalesce(t.attempt_no, 0), (d.outcome is not null)::integer) + 1 as attempt_no,
               case
                   when open @> e.seq then 'open'
                   when not e.claimed then 'no_match'
                   when exists (select from tidemark.pending p
                                where p.worker_id = w.id and p.route_id = (replay_page.route).id and p.seq = e.seq) then 'pending'
                   when l.is_open then 'dead_letter'
                   when l.resolution = 'discarded' and t.outcome = 'failed' then 'discarded'
                   when coalesce(t.outcome, d.outcome)::text <> all (replay_page.outcomes)
                       or replay_page.outcomes is not null and coalesce(t.outcome, d.outcome) is null
                          and 'none' <> all (replay_page.outcomes) then 'outcome'
               end as left_out
        from event e
        left join tried t on t.seq = e.seq
        left join letter l on l.seq = e.seq
        left join lateral (select d.outcome from decided d where d.seqs @> e.seq limit 1) d on true
    )
    select j.seq, j.key, coalesce(j.former, 'none'), j.attempt_no, j.left_out
    from judged j
    where j.claimed or j.former is not null
    order by j.seq;
end
$$;
ALTER FUNCTION tidemark.replay_page(route tidemark.outbound_route, after bigint, upto bigint, key text, outcomes text[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.replay_page(route tidemark.outbound_route, after bigint, upto bigint, key text, outcomes text[]) IS 'What a replay on the route would do with the events numbered after to upto (and of the key): each with its latest outcome on the route (none: no evidence), the number that its next attempt has, and why it is left out: open (its worker has still to read it), no_match (the route does not claim it any more), pending, dead_letter (an open one), discarded, outcome (not among outcomes). Null: it is sent.';
CREATE FUNCTION tidemark.replay_stage(worker text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    -- At most so many of a replay are pending, and so many events are looked at at once.
    page constant integer := 1000;
    look constant integer := 5000;
    until constant timestamptz := clock_timestamp() + interval '100 milliseconds';
    worker_id constant integer := (select w.id from tidemark.worker w where w.worker = replay_stage.worker);
    job tidemark.replay_job;
    route tidemark.outbound_route;
    mark bigint;
    now_ timestamptz;
    at timestamptz;
    room integer;
    upto bigint;
    passed bigint;
    taken integer;
    left_out jsonb;
    staged integer := 0;
begin
    for job in
        select j.* from tidemark.replay_job j join tidemark.outbound_route r on r.id = j.route_id
        where j.worker_id = worker_id and j.finished_at is null
          and r.worker = replay_stage.worker and r.enabled and not r.dry_run
        order by j.id
        -- A settle that counts its results has it: the next pass goes on.
        for update of j skip locked
    loop
        route := (select r from tidemark.outbound_route r where r.id = job.route_id);
        -- A rewind waits: what is staged here is on record before the log is read again.
        select c.watermark_id::bigint into mark from tidemark.worker_cursor c
        where c.worker = replay_stage.worker and c.source = 'outbox' and c.shard = 0 for key share;
        room := page - (select count(*) from (select from tidemark.pending p where p.replay_id = job.id limit page) p);
        loop
            now_ := clock_timestamp();
            at := greatest(job.due_at, now_);
            -- By events and not by numbers: a gap costs nothing.
            upto := coalesce((
                select o.seq from tidemark.outbox o
                where o.seq > job.passed_seq and o.seq <= least(job.last_seq, mark) order by o.seq offset look - 1 limit 1),
                least(job.last_seq, mark));
            -- Five seconds ahead, so that a cancelled replay is soon over.
            taken := case when job.rate is null then room
                else least(room, ceil(extract(epoch from now_ + interval '5 seconds' - at) * job.rate)) end;
            exit when taken <= 0 or upto <= job.passed_seq;
            with looked as materialized (
                select p.*, count(*) filter (where p.left_out is null) over (order by p.seq) as n
                from tidemark.replay_page(route, job.passed_seq, upto, job.key, job.outcomes) p
            ), last as (
                select case when max(l.n) >= taken then min(l.seq) filter (where l.n = taken) else upto end as seq from looked l
            ), sent as (
                select l.* from looked l, last where l.left_out is null and l.seq <= last.seq
            ), recorded as (
                insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason)
                select s.seq, worker_id, route.id, s.attempt_no, 'pending', 'replay' from sent s
            ), put as (
                insert into tidemark.pending (worker_id, route_id, seq, attempt_no, key, next_attempt_at, replay, replay_id)
                select worker_id, route.id, s.seq, s.attempt_no, s.event_key,
                       at + (s.n - 1) * make_interval(secs => coalesce(1 / job.rate, 0.000001)), true, job.id
                from sent s
                returning 1)
            select coalesce((select last.seq from last), upto), (select count(*) from put),
                   (select jsonb_object_agg(o.left_out, o.n) from (
                        select l.left_out, count(*) as n from looked l, last
                        where l.left_out is not null and l.seq <= last.seq group by 1) o)
            into passed, taken, left_out;
            job.passed_seq := passed;
            job.staged := job.staged + taken;
            job.due_at := at + taken * make_interval(secs => coalesce(1 / job.rate, 0.000001));
            job.left_out := tidemark.jsonb_add(job.left_out, coalesce(left_out, '{}'));
            staged := staged + taken;
            room := room - taken;
            exit when taken > 0 or clock_timestamp() > until;
        end loop;
        update tidemark.replay_job j
        set passed_seq = job.passed_seq, staged = job.staged, due_at = job.due_at, left_out = job.left_out,
            finished_at = case when job.passed_seq >= job.last_seq
                and not exists (select from tidemark.pending p where p.replay_id = job.id) then clock_timestamp() end
        where j.id = job.id
          and (j.passed_seq, j.staged, job.passed_seq >= job.last_seq) is distinct from (job.passed_seq, job.staged, false);
    end loop;
    return staged;
end
$$;
ALTER FUNCTION tidemark.replay_stage(worker text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.replay_stage(worker text) IS 'Goes on with the replays of the worker''s live routes: stages their next events as pending, at most 1000 of a replay and five seconds of its rate ahead, with an attempt on record for each. Returns how many.';
CREATE FUNCTION tidemark.retry_delay(policy jsonb, failed integer) RETURNS interval
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    -- Null: no other attempt. Spread, so that what failed together does not come back together.
    return case when failed < coalesce((policy ->> 'max_attempts')::integer, 10) then make_interval(secs =>
        least(coalesce((policy ->> 'base_seconds')::double precision, 1) * 2 ^ least(failed - 1, 60), coalesce((policy ->> 'max_seconds')::double precision, 3600))
        * (1 + coalesce((policy ->> 'jitter')::double precision, 0.2) * (2 * random() - 1))) end;
end
$$;
ALTER FUNCTION tidemark.retry_delay(policy jsonb, failed integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.retry_delay(policy jsonb, failed integer) IS 'How long a row that failed so many times waits before the next attempt; null: it was the last one. The policy is that of tidemark.outbound_route.retry_policy.';
CREATE FUNCTION tidemark.retry_policy_ok(policy jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    attempts numeric;
    base numeric;
    longest numeric;
    jitter numeric;
begin
    if policy is null then
        return true;
    end if;
    if jsonb_typeof(policy) <> 'object'
        or exists (select from jsonb_each(policy) p
                   where p.key not in ('max_attempts', 'base_seconds', 'max_seconds', 'jitter')
                      or jsonb_typeof(p.value) <> 'number')
    then
        return false;
    end if;
    attempts := coalesce((policy ->> 'max_attempts')::numeric, 10);
    base := coalesce((policy ->> 'base_seconds')::numeric, 1);
    longest := coalesce((policy ->> 'max_seconds')::numeric, 3600);
    jitter := coalesce((policy ->> 'jitter')::numeric, 0.2);
    return attempts between 1 and 100 and attempts = trunc(attempts)
       and base > 0 and longest >= base and longest <= 604800
       and jitter between 0 and 1;
end
$$;
ALTER FUNCTION tidemark.retry_policy_ok(policy jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.retry_policy_ok(policy jsonb) IS 'True: the retry policy can be read: null, or an object with numbers for any of max_attempts (whole, 1 to 100), base_seconds (above 0), max_seconds (at least base_seconds, at most a week), jitter (0 to 1), and nothing else.';
CREATE FUNCTION tidemark.rewind_outlook(worker text, to_seq bigint) RETURNS TABLE(was bigint, route_code text, outcome tidemark.outcome, events bigint, decided boolean, complete boolean)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    most constant integer := 1000000;
    w constant tidemark.worker := (select w from tidemark.worker w where w.worker = rewind_outlook.worker);
    at_ constant bigint := (
        select c.watermark_id::bigint from tidemark.worker_cursor c
        where c.worker = rewind_outlook.worker and c.source = 'outbox' and c.shard = 0);
    span constant int8multirange := int8multirange(int8range(to_seq + 1, at_ + 1));
begin
    -- What has a story of its own counts with its latest attempt, not with the range that it began in.
    return query
    with tried as materialized (
        select distinct on (a.route_id, a.seq) a.route_id, a.seq, a.outcome from tidemark.attempt a
        where a.worker_id = w.id and a.seq > to_seq and a.seq <= at_
        order by a.route_id, a.seq, a.attempt_no desc
    ), tried_of as (
        select t.route_id, range_agg(int8range(t.seq, t.seq + 1)) as seqs from tried t group by t.route_id
    ), on_record as (
        select d.route_id, d.outcome, upper(s) - lower(s) as events
        from tidemark.decision d
        left join tried_of t on t.route_id = d.route_id
        cross join lateral unnest(d.seqs * span - coalesce(t.seqs, '{}')) s
        where d.worker_id = w.id and d.last_seq > to_seq and d.first_seq <= at_
        union all
        select t.route_id, t.outcome, 1 from tried t
    )
    select at_, r.route_code, d.outcome, sum(d.events)::bigint, true, true
    from on_record d left join tidemark.outbound_route r on r.id = d.route_id
    group by r.route_code, d.outcome
    order by r.route_code nulls last, d.outcome;
    -- What a route has no evidence for: it is newer than the events, or claims more than it did.
    return query
    with routes as materialized (
        select r as row_, tidemark.decided(w.id, r.id, to_seq + 1, at_) as done
        from tidemark.outbound_route r where r.worker = rewind_outlook.worker
    ), log as materialized (
        select o.* from tidemark.outbox o where o.seq > to_seq and o.seq <= at_ order by o.seq limit most
    ), counted as (
        select (r.row_).route_code as code, (r.row_).enabled as on_, (r.row_).dry_run as dry, count(*) as n
        from log o join routes r on not r.done @> o.seq and tidemark.route_matches(r.row_, o)
        where w.domains is null or o.domain = any (w.domains)
        group by 1, 2, 3
    ), read as (
        select count(*) as n from log
    )
    select at_, c.code, case when not c.on_ then 'disabled' when c.dry then 'dry_run' else 'pending' end::tidemark.outcome,
           c.n, false, read.n < most
    from counted c, read
    union all
    select at_, null, null, read.n, null, read.n < most from read
    order by 2 nulls last, 3;
end
$$;
ALTER FUNCTION tidemark.rewind_outlook(worker text, to_seq bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.rewind_outlook(worker text, to_seq bigint) IS 'What a rewind of the worker to the number would come to, as rows of tidemark.worker_rewind.';
CREATE FUNCTION tidemark.river_error(target_ref text, options jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    select case when length(target_ref) not between 1 and 127
        then format('job kind "%s" must have 1 to 127 characters', left(target_ref, 200))
    else (
        select case when k.key is null
            then format('there is no option "%s" for river: only max_attempts, priority, queue and schema', left(o.key, 100))
            else format('option "%s" is %s, must be %s', o.key, left(o.value::text, 100), k.must) end
        from jsonb_each(options) o
        left join (values
            ('max_attempts', 'a whole number from 1 to 32767', 'strict $ >= 1 && $ <= 32767 && $ == $.floor()'::jsonpath),
            ('priority', 'a whole number from 1 to 4', 'strict $ >= 1 && $ <= 4 && $ == $.floor()'),
            ('queue', 'small letters and digits, single "_", "-" or "|" between them, at most 64 characters',
             'strict $ like_regex "^[a-z0-9]+([_|-][a-z0-9]+)*$" && $ like_regex "^.{1,64}$"'),
            -- Before ".river_leadership" it must still be the name of a channel.
            ('schema', 'a text of 1 to 46 characters', 'strict $ like_regex "^.{1,46}$"')
        ) k (key, must, rule) on k.key = o.key
        where jsonb_path_match(o.value, k.rule, silent => true) is not true
        order by o.key limit 1) end
$_$;
ALTER FUNCTION tidemark.river_error(target_ref text, options jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.river_error(target_ref text, options jsonb) IS 'What is wrong with the job kind or the options of a route to river; null: nothing. Options, all of which may be missing: max_attempts (1 to 32767, default 25), priority (1, the first, to 4, default 1), queue (default "default"), schema (River''s, default "public").';
CREATE FUNCTION tidemark.river_health() RETURNS TABLE(name text, readable boolean, waiting bigint, retrying bigint, oldest_seconds bigint, dead bigint, dead_seconds bigint)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    jobs regclass;
begin
    for jobs in
        select distinct t.t from (
            select tidemark.river_table('{}') as t
            union all
            select tidemark.river_table(r.options) from tidemark.outbound_route r where r.target_kind = 'river') t
        where t.t is not null
    loop
        name := (select format('%s.%s', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = jobs);
        readable := has_table_privilege(jobs, 'select')
            and has_schema_privilege((select c.relnamespace from pg_class c where c.oid = jobs), 'usage');
        if readable then
            -- By River's own indexes over the state; at most 10000 of each are counted.
            execute format('select (select count(*) from (select from %1$s j where j.state = ''available'' limit 10000) j),
                   (select count(*) from (select from %1$s j where j.state = ''retryable'' limit 10000) j),
                   (select greatest(extract(epoch from clock_timestamp() - min(j.scheduled_at)), 0)::bigint
                    from (select j.scheduled_at from %1$s j where j.state = ''available'' limit 10000) j),
                   (select count(*) from (select from %1$s j where j.state = ''discarded'' limit 10000) j),
                   (select extract(epoch from clock_timestamp() - max(j.finalized_at))::bigint
                    from (select j.finalized_at from %1$s j where j.state = ''discarded'' and j.finalized_at is not null limit 10000) j)', jobs)
            into waiting, retrying, oldest_seconds, dead, dead_seconds;
        else
            waiting := null; retrying := null; oldest_seconds := null; dead := null; dead_seconds := null;
        end if;
        return next;
    end loop;
end
$_$;
ALTER FUNCTION tidemark.river_health() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.river_health() IS 'Jobs of River, a row for each of its tables that is in the schema public or named by a route; no row: River is not installed. readable false: this role may not read the table. waiting, retrying and dead (discarded) count at most 10000; oldest_seconds is how long the oldest job that may run waits, dead_seconds how long ago one was last discarded.';
CREATE FUNCTION tidemark.river_table(options jsonb) RETURNS regclass
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select c.oid::regclass from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = coalesce(options ->> 'schema', 'public') and c.relname = 'river_job' and c.relkind in ('r', 'p')
$$;
ALTER FUNCTION tidemark.river_table(options jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.river_table(options jsonb) IS 'River''s table of jobs in the schema that a route''s options name. Null: there is none.';
CREATE FUNCTION tidemark.river_wake(options jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tidemark.gate_open('notify.bridge_enabled') then
        perform pg_notify(coalesce(options ->> 'schema', 'public') || '.river_insert',
                          jsonb_build_object('queue', coalesce(options ->> 'queue', 'default'))::text);
    end if;
end
$$;
ALTER FUNCTION tidemark.river_wake(options jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.river_wake(options jsonb) IS 'Signals River''s clients when this transaction commits that a queue has jobs which may run, where the gate notify.bridge_enabled is open: on <schema>.river_insert the name of the queue, both from a route''s options. Once for each queue and transaction, however often it is called. Whom the signal does not reach finds the jobs at its next poll.';
CREATE FUNCTION tidemark.route_backtest(route_code text, since timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone, samples integer DEFAULT 3) RETURNS TABLE(outcome tidemark.outcome, reason text, detail text, target_kind text, target_ref text, domain text, type text, events bigint, first_at timestamp with time zone, last_at timestamp with time zone, keys bigint, without_key bigint, payload_bytes bigint, largest_payload integer, busiest_minute timestamp with time zone, busiest_events bigint, newest bigint[])
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $_$
#variable_conflict use_column
declare
    route tidemark.outbound_route := (
        select r from tidemark.outbound_route r where r.route_code = route_backtest.route_code);
    domains text[];
    rivals tidemark.outbound_route[];
    filtered tidemark.outbound_route[];
    no_target text;
    no_target_detail text;
begin
    if route is null then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_backtest.route_code),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    end if;
    if since is null or since > clock_timestamp() then
        raise exception using errcode = 'TM005',
            message = format('a backtest is of the past: since %s is not in it', coalesce(since::text, 'null'));
    end if;
    if until <= since then
        raise exception using errcode = 'TM005', message = format('a backtest until %s does not begin at %s', until, since);
    end if;
    if samples is null or samples not between 0 and 100 then
        raise exception using errcode = 'TM005', message = format('samples is %s, must be 0 to 100', coalesce(samples::text, 'null'));
    end if;
    domains := (select w.domains from tidemark.worker w where w.worker = route.worker);
    rivals := array(
        select r from tidemark.outbound_route r
        where r.id <> route.id and r.enabled and r.target_kind = route.target_kind and r.target_ref = route.target_ref
          and (r.exclusive or route.exclusive)
        order by r.id);
    filtered := array(select r from unnest(rivals) r where r.key_filter is not null or r.payload_filter is not null);
    if tidemark.target_is_inside(route.target_kind) then
        begin
            perform tidemark.delivery_statement(route, 'select $1');
        exception when undefined_function or undefined_table or invalid_parameter_value or feature_not_supported then
            get stacked diagnostics no_target = returned_sqlstate, no_target_detail = message_text;
        end;
    end if;
    return query
    with claimed as materialized (
        select o.seq, o.created_at, date_trunc('minute', o.created_at) as minute, o.domain, o.type, o.stream, o.key,
               octet_length(o.payload::text) as bytes,
               case when cardinality(filtered) = 0 then '{}' else array(
                   select r.id from unnest(filtered) r where tidemark.route_matches(r, o) order by r.id) end as matched
        from tidemark.outbox o
        where o.created_at >= since and o.created_at < coalesce(until, 'infinity')
          and (domains is null or o.domain = any (domains)) and tidemark.route_matches(route, o)
    ), ruled as (
        -- As in tidemark.decide_batch: one decision serves a whole group, and the filters are answered already.
        select g.domain, g.type, g.stream, g.matched, r.outcome, r.reason, r.detail,
               dense_rank() over (order by r.outcome, r.reason) as ruling
        from (select distinct c.domain, c.type, c.stream, c.matched from claimed c) g
        cross join lateral tidemark.decide(
            route.worker,
            jsonb_populate_record(null::tidemark.outbox,
                                  jsonb_build_object('domain', g.domain, 'type', g.type, 'stream', g.stream)),
            array(select jsonb_populate_record(r, '{"key_filter": null, "payload_filter": null}') from unnest(rivals) r
                  where r.key_filter is null and r.payload_filter is null or r.id = any (g.matched))
            || jsonb_populate_record(route, '{"enabled": true, "dry_run": false, "key_filter": null, "payload_filter": null}'),
            row(true, true, true)::tidemark.gates) d
        cross join lateral (
            select d.outcome, d.reason, null::text as detail where d.outcome <> 'pending' or no_target is null
            union all
            select 'failed', no_target, no_target_detail where d.outcome = 'pending' and no_target is not null) r
        where d.route_id = route.id
    ), judged as materialized (
        select c.*, r.ruling, r.outcome, r.reason, r.detail
        from claimed c
        join ruled r on r.domain = c.domain and r.type = c.type and r.matched = c.matched and r.stream is not distinct from c.stream
    ), summed as (
        select j.ruling, j.outcome, j.reason, j.detail, j.domain, j.type, count(*) as events,
               min(j.created_at) as first_at, max(j.created_at) as last_at, count(distinct j.key) as keys,
               count(*) - count(j.key) as without_key, sum(j.bytes) as payload_bytes, max(j.bytes) as largest_payload
        from judged j
        group by grouping sets ((j.ruling, j.outcome, j.reason, j.detail), (j.ruling, j.outcome, j.reason, j.detail, j.domain, j.type))
    ), peak as (
        select m.ruling, m.domain, m.type, max(m.events) as events,
               (array_agg(m.minute order by m.events desc, m.minute))[1] as minute
        from (
            select j.ruling, j.domain, j.type, j.minute, count(*) as events from judged j
            group by grouping sets ((j.ruling, j.minute), (j.ruling, j.domain, j.type, j.minute))) m
        group by m.ruling, m.domain, m.type
    ), sample as (
        select n.ruling, n.domain, n.type, array_agg(n.seq order by n.seq desc) as newest
        from (
            select j.ruling, j.domain, j.type, j.seq,
                   row_number() over (partition by j.ruling, j.domain, j.type order by j.seq desc) as place
            from judged j) n
        where n.place <= samples
        group by n.ruling, n.domain, n.type
    )
    select s.outcome, s.reason, s.detail, route.target_kind, route.target_ref, s.domain, s.type, s.events, s.first_at, s.last_at,
           s.keys, s.without_key, s.payload_bytes, s.largest_payload, p.minute, p.events, coalesce(n.newest, '{}')
    from summed s
    join peak p on p.ruling = s.ruling and p.domain is not distinct from s.domain and p.type is not distinct from s.type
    left join sample n on n.ruling = s.ruling and n.domain = s.domain and n.type = s.type
    union all
    select null, null, null, route.target_kind, route.target_ref, o.domain, o.type, count(*), min(o.created_at), max(o.created_at),
           null, null, null, null, null, null, '{}'
    from tidemark.outbox o
    where o.created_at >= since and o.created_at < coalesce(until, 'infinity')
      and (domains is null or o.domain = any (domains)) and not tidemark.route_matches(route, o)
    group by o.domain, o.type
    order by 1 desc nulls last, 2, 6 nulls first, 7;
end
$_$;
ALTER FUNCTION tidemark.route_backtest(route_code text, since timestamp with time zone, until timestamp with time zone, samples integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.route_backtest(route_code text, since timestamp with time zone, until timestamp with time zone, samples integer) IS 'What the route would have done with the events created from since to until (null: now), had it been enabled and live, all gates open, beside the other routes as they are; of a worker with domains, with events of these. Writes nothing. Per outcome a row for all types together (domain and type null) and one per type, with the numbers of the newest samples events; outcome null: events that the route does not claim. pending is what would be delivered: what the target itself would say is not known, only whether it is there. keys are distinct ordering keys; payload_bytes and largest_payload count the payloads as JSON text; busiest_minute had busiest_events. Raises TM004, TM005.';
CREATE FUNCTION tidemark.route_gone(worker text, epoch bigint, route_id integer, detail text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    code text;
begin
    perform tidemark.lease_check(route_gone.worker, route_gone.epoch);
    perform set_config('tidemark.reason', 'the target is gone', true);
    update tidemark.outbound_route r set enabled = false
    where r.id = route_gone.route_id and r.worker = route_gone.worker and r.enabled
    returning r.route_code into code;
    if found then
        perform tidemark.finding_open('route_gone', code, 'high',
            format('the target says that it is gone for good; the route was switched off: %s', route_gone.detail));
    end if;
end
$$;
ALTER FUNCTION tidemark.route_gone(worker text, epoch bigint, route_id integer, detail text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.route_gone(worker text, epoch bigint, route_id integer, detail text) IS 'Switches a route off whose target answered that it is gone for good (HTTP 410), and opens the finding route_gone. What is pending on it stays. Raises TM011.';
CREATE FUNCTION tidemark.route_matches(route tidemark.outbound_route, event tidemark.outbox) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    select coalesce(
        (route.domain = '*' or route.domain = event.domain)
        and tidemark.pattern_matches(route.type, event.type)
        and (route.stream is null or route.stream = event.stream)
        and (route.key_filter is null or tidemark.pattern_matches(route.key_filter, event.key))
        and (route.payload_filter is null or event.payload operator(pg_catalog.@>) route.payload_filter), false)
$$;
ALTER FUNCTION tidemark.route_matches(route tidemark.outbound_route, event tidemark.outbox) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.route_matches(route tidemark.outbound_route, event tidemark.outbox) IS 'True: the route claims the event, by domain, type, stream, key and payload. Switches play no part.';
CREATE FUNCTION tidemark.route_replay(route text, reason text DEFAULT NULL::text, since timestamp with time zone DEFAULT NULL::timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone, from_seq bigint DEFAULT NULL::bigint, to_seq bigint DEFAULT NULL::bigint, key text DEFAULT NULL::text, outcomes text[] DEFAULT NULL::text[], rate double precision DEFAULT NULL::double precision, dry_run boolean DEFAULT false) RETURNS TABLE(id bigint, first_seq bigint, last_seq bigint, former text, left_out text, events bigint, complete boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    most constant bigint := 1000000;
    step constant integer := 20000;
    route_ constant tidemark.outbound_route := (
        select r from tidemark.outbound_route r where r.route_code = route_replay.route);
    mark bigint;
    first_number bigint;
    low bigint;
    high bigint;
    seen bigint := 0;
    at bigint;
    upto bigint;
    counts jsonb := '{}';
    job bigint;
begin
    if route_ is null then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_replay.route),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    elsif (since is null) = (from_seq is null) or until is not null and to_seq is not null then
        raise exception using errcode = 'TM005', message = 'a replay has one beginning, since or from_seq, and at most one end, until or to_seq';
    elsif not coalesce(dry_run, false) and coalesce(btrim(route_replay.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a route is not replayed without a reason',
            hint = 'Or ask for a dry run.';
    elsif rate <= 0 or rate > 1000000 then
        raise exception using errcode = 'TM005', message = format('rate is %s events per second, and must be above 0', rate);
    elsif not (outcomes <@ array['sent', 'disabled', 'dry_run', 'skipped', 'failed', 'pending', 'none']) then
        raise exception using errcode = 'TM005', message = format('outcomes %s: there are sent, disabled, dry_run, skipped, failed, pending and none', outcomes);
    end if;
    -- What lies above the watermark comes anyway.
    mark := (select c.watermark_id::bigint from tidemark.worker_cursor c
             where c.worker = route_.worker and c.source = 'outbox' and c.shard = 0);
    first_number := (select min(p.first_seq) from tidemark.partitions('tidemark.outbox') p);
    -- Numbers and times do not rise together exactly: from the lowest to the highest number of that time.
    low := coalesce(from_seq, (select min(o.seq) from tidemark.outbox o where o.created_at >= since), mark + 1);
    high := least(mark, coalesce(to_seq, case when until is not null then coalesce(
        (select max(o.seq) from tidemark.outbox o where o.created_at < until), 0) end, mark));
    first_seq := greatest(low, first_number, 1);
    last_seq := high;
    at := first_seq - 1;
    while at < high and seen < most loop
        seen := seen + step;
        upto := coalesce((
            select o.seq from tidemark.outbox o
            where o.seq > at and o.seq <= high order by o.seq offset step - 1 limit 1), high);
        counts := tidemark.jsonb_add(counts, (
            select coalesce(jsonb_object_agg(k.k, k.n), '{}') from (
                select p.former || '/' || coalesce(p.left_out, '') as k, count(*) as n
                from tidemark.replay_page(route_, at, upto, route_replay.key, route_replay.outcomes) p
                group by 1) k));
        at := upto;
    end loop;
    complete := at >= high;
    if not coalesce(dry_run, false) and first_seq <= high then
        insert into tidemark.replay_job as j (route_id, worker_id, first_seq, last_seq, passed_seq, key, outcomes, rate, reason)
        select route_.id, w.id, first_seq, high, first_seq - 1, route_replay.key, route_replay.outcomes, route_replay.rate, route_replay.reason
        from tidemark.worker w where w.worker = route_.worker
        returning j.id into job;
        insert into tidemark.audit (action, object, reason, after)
        values ('route_replay', 'route ' || route_.route_code, route_replay.reason,
                jsonb_build_object('replay', job, 'first_seq', first_seq, 'last_seq', high, 'key', route_replay.key,
                                   'outcomes', route_replay.outcomes, 'rate', route_replay.rate, 'counts', counts));
    end if;
    id := job;
    if low < first_number then
        former := 'none'; left_out := 'gone'; events := least(first_number, high + 1) - low;
        return next;
    end if;
    return query
    select job, route_replay.first_seq, route_replay.last_seq, split_part(c.key, '/', 1), nullif(split_part(c.key, '/', 2), ''),
           (c.value #>> '{}')::bigint, route_replay.complete
    from jsonb_each(counts) c order by 5 nulls first, 4;
    former := null; left_out := null;
    events := coalesce((select sum((c.value #>> '{}')::bigint) from jsonb_each(counts) c where right(c.key, 1) = '/'), 0);
    return next;
end
$$;
ALTER FUNCTION tidemark.route_replay(route text, reason text, since timestamp with time zone, until timestamp with time zone, from_seq bigint, to_seq bigint, key text, outcomes text[], rate double precision, dry_run boolean) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.route_replay(route text, reason text, since timestamp with time zone, until timestamp with time zone, from_seq bigint, to_seq bigint, key text, outcomes text[], rate double precision, dry_run boolean) IS 'Sends events on a route again, or for the first time where it is newer than they are: those from since or from_seq to until or to_seq, at most to the watermark of its worker (what lies above comes anyway), of the key, with one of the outcomes on this route so far (sent, disabled, dry_run, skipped, failed, pending; none: no evidence). Each is a new attempt on record, marked as a replay, in the order of numbers, at most rate a second; live events of the key are not held up. The passes of the worker do it step by step: while a gate is closed, or the route is off or in dry run, it waits. Returns what was counted before anything moved: by the latest outcome (former), how many go, and how many are left out and why (pending, dead_letter: an open one, discarded, no_match, open, outcome; gone: numbers that retention has dropped); the last row (former null) has the sum that goes. complete false: only the first million events of the span were looked at; all are replayed. dry_run: it only counts. Progress: tidemark.replay_summary. Raises TM004, TM005.';
CREATE FUNCTION tidemark.route_set(route_code text, changes jsonb, reason text DEFAULT NULL::text, may_create boolean DEFAULT true) RETURNS SETOF tidemark.outbound_route
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    route tidemark.outbound_route;
    field text;
begin
    perform set_config('tidemark.reason', coalesce(route_set.reason, ''), true);
    perform tidemark.changes_check('route', route_set.changes, 'tidemark.outbound_route', array['id', 'route_code']);
    select r.* into route from tidemark.outbound_route r where r.route_code = route_set.route_code for update;
    if not found then
        if not may_create then
            raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_set.route_code),
                hint = 'Routes: select route_code from tidemark.outbound_route;';
        end if;
        foreach field in array array['domain', 'target_kind', 'target_ref'] loop
            if changes ->> field is null then
                raise exception using errcode = 'TM005',
                    message = format('route %s is new and needs %s', route_set.route_code, field),
                    hint = 'A new route needs domain, target_kind and target_ref.';
            end if;
        end loop;
        insert into tidemark.outbound_route as r (route_code, domain, target_kind, target_ref)
        values (route_set.route_code, changes ->> 'domain', changes ->> 'target_kind', changes ->> 'target_ref')
        returning r.* into route;
    end if;
    route := jsonb_populate_record(route, changes);
    if not exists (select from tidemark.worker w where w.worker = route.worker) then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', route.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    end if;
    -- By a plain update it can still get here; then its events fail and are kept (tidemark.decide).
    if not tidemark.retry_policy_ok(route.retry_policy) then
        raise exception using errcode = 'TM005',
            message = format('route %s: retry_policy %s cannot be read', route.route_code, route.retry_policy),
            hint = 'An object with any of max_attempts (1 to 100), base_seconds, max_seconds, jitter (0 to 1); or null.';
    end if;
    return query
    update tidemark.outbound_route r
    set (worker, domain, type, stream, key_filter, payload_filter, target_kind, target_ref, exclusive, enabled, dry_run,
         fail_closed, ordering, retry_policy, timeout, concurrency, options, description)
      = row(route.worker, route.domain, route.type, route.stream, route.key_filter, route.payload_filter,
            route.target_kind, route.target_ref, route.exclusive, route.enabled, route.dry_run, route.fail_closed,
            route.ordering, route.retry_policy, route.timeout, route.concurrency, route.options, route.description)
    where r.id = route.id
    returning r.*;
end
$$;
ALTER FUNCTION tidemark.route_set(route_code text, changes jsonb, reason text, may_create boolean) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.route_set(route_code text, changes jsonb, reason text, may_create boolean) IS 'Creates a route or changes the named columns of it: tidemark.route_set(''orders'', ''{"domain": "shop", "type": "order.*", "target_kind": "sql", "target_ref": "app.on_order"}''). Returns the row. With may_create false an unknown route raises TM004. Raises TM005 for an unknown column or an unreadable retry policy, TM008 for enabled and live in an installation that is not.';
CREATE FUNCTION tidemark.route_stage_check() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if new.enabled and not new.dry_run
        and (tg_op = 'INSERT' or not old.enabled or old.dry_run)
        and not tidemark.armed()
    then
        raise exception using errcode = 'TM008',
            message = format('route %s cannot be enabled and live: this installation is not live', new.route_code),
            hint = 'Leave dry_run on, or raise the stage: select tidemark.stage_set(''live'', ''why'');';
    end if;
    return new;
end
$$;
ALTER FUNCTION tidemark.route_stage_check() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.route_stage_check() IS 'Trigger: raises TM008 where a route would become enabled and live in an installation that is not armed.';
CREATE FUNCTION tidemark.route_worker_run(worker text DEFAULT 'default'::text, batch_limit integer DEFAULT 5000) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    claimed record;
    batch tidemark.batch;
    evidence tidemark.evidence[];
    live integer[];
    delivered record;
    gate text;
    summary jsonb;
    staged integer;
begin
    if route_worker_run.batch_limit is null or route_worker_run.batch_limit not between 1 and 50000 then
        raise exception using errcode = 'TM005',
            message = format('batch_limit is %s, and must be from 1 to 50000', coalesce(route_worker_run.batch_limit::text, 'null')),
            hint = 'The default, 5000, suits most.';
    end if;
    if exists (select from tidemark.worker w where w.worker = route_worker_run.worker and w.handler <> 'route') then
        raise exception using errcode = 'TM005',
            message = format('worker %s belongs to a Go program and is not run from here', route_worker_run.worker),
            hint = 'Start the program.';
    end if;
    claimed := tidemark.claim(route_worker_run.worker);
    if claimed.status <> 'claimed' then
        return jsonb_build_object('worker', route_worker_run.worker, 'status', claimed.status,
                                  case claimed.status when 'closed' then 'gate' else 'detail' end, claimed.detail,
                                  'events', 0);
    end if;
    staged := tidemark.replay_stage(route_worker_run.worker);
    batch := tidemark.read_outbox(route_worker_run.worker, route_worker_run.batch_limit);
    evidence := tidemark.decide_batch(route_worker_run.worker, batch);
    live := tidemark.live_inside(route_worker_run.worker, evidence);
    if cardinality(live) = 0 then
        summary := tidemark.pass_summary(route_worker_run.worker, batch, evidence, '{}', 0);
        perform tidemark.settle(route_worker_run.worker, claimed.epoch, batch, evidence, '{}', summary);
        return summary || jsonb_build_object('staged', staged);
    end if;
    if tidemark.time_left() is null and coalesce(current_setting('tidemark.told_of_time', true), '') = '' then
        perform set_config('tidemark.told_of_time', 'yes', false);
        raise notice using message = 'nothing ends a target that hangs: this session has no statement_timeout',
            hint = 'Before the pass: set statement_timeout = ''30s''; a multiple of the longest timeout of the routes.';
    end if;
    begin
        delivered := tidemark.deliver_inside(route_worker_run.worker, evidence, interval '10 seconds');
        summary := tidemark.pass_summary(route_worker_run.worker, batch, delivered.settled, delivered.results, delivered.fallbacks);
        perform tidemark.settle(route_worker_run.worker, claimed.epoch, batch, delivered.settled, delivered.results, summary);
        -- The last look at the switches comes after the last delivery: what a slow target did after they
        -- were closed is taken back with everything else.
        gate := tidemark.closed_switch(route_worker_run.worker, live);
        if gate is not null then
            raise exception using errcode = 'TM009', message = gate;
        end if;
    exception when sqlstate 'TM009' then
        get stacked diagnostics gate = message_text;
        return jsonb_build_object('worker', route_worker_run.worker, 'status', 'closed', 'gate', gate, 'events', 0);
    end;
    return summary || jsonb_build_object('staged', staged);
end
$$;
ALTER FUNCTION tidemark.route_worker_run(worker text, batch_limit integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.route_worker_run(worker text, batch_limit integer) IS 'One pass of a worker: claims its cursor, reads at most batch_limit (1 to 50000, default 5000) events, decides, delivers to targets inside the database, stages what must go outside as pending, writes the evidence and moves the cursor, all in the caller''s transaction. Deliveries inside begin for 10 seconds at most; a target that hangs is ended by statement_timeout alone, which the caller sets. Call it as a transaction of its own, again while status is ran and events is batch_limit, or staged (events of replays that it staged) is not 0. Returns {"status": "ran"|"closed"|"held"|"busy", …}; closed names the gate, held says why it must not go on, busy who has it. Raises TM004, TM005, TM006, TM007. Source: S0 fn_iu_route_worker_run.';
CREATE FUNCTION tidemark.rows_register(worker text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
begin
    if exists (select from tidemark.worker w where w.worker = rows_register.worker and (w.source, w.handler) <> ('table', 'go')) then
        raise exception using errcode = 'TM005',
            message = format('worker %s is of another kind: a Go program that takes rows needs a worker of its own', rows_register.worker),
            hint = 'Choose another Config.Worker.';
    end if;
    insert into tidemark.worker (worker, source, handler, description)
    values (rows_register.worker, 'table', 'go', 'Functions of a Go program that take rows.') on conflict do nothing;
end
$$;
ALTER FUNCTION tidemark.rows_register(worker text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.rows_register(worker text) IS 'Makes the worker of a Go program that takes rows, if there is none: behind a closed gate. Raises TM005 where it is a worker of another kind.';
CREATE FUNCTION tidemark.session_check(who text, why text) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception using errcode = 'TM006',
            message = format('%s cannot run in a transaction that is %s', who, current_setting('transaction_isolation')),
            hint = 'Use READ COMMITTED: ' || why;
    end if;
    if pg_is_in_recovery() then
        raise exception using errcode = 'TM007', message = format('%s cannot run on a standby', who), hint = 'Connect to the primary.';
    end if;
end
$$;
ALTER FUNCTION tidemark.session_check(who text, why text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.session_check(who text, why text) IS 'Raises TM006 where the transaction is not read committed, which who needs (why), and TM007 on a standby.';
CREATE FUNCTION tidemark.settle(worker text, epoch bigint, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], summary jsonb, settle_no bigint DEFAULT NULL::bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    worker_id constant integer := (select w.id from tidemark.worker w where w.worker = settle.worker);
    fresh constant tidemark.result[] := array(select r from unnest(results) r where r.fresh);
    retried constant tidemark.result[] := array(select r from unnest(results) r where not r.fresh);
    written bigint;
    dead bigint := 0;
    n bigint;
begin
    perform tidemark.lease_check(settle.worker, settle.epoch);
    -- What many came to alike is a range; what has its own story is a row.
    insert into tidemark.decision (worker_id, route_id, last_seq, first_seq, events, outcome, reason, seqs)
    select worker_id, d.route_id, upper(d.seqs) - 1, lower(d.seqs), d.events, d.outcome, d.reason, d.seqs
    from (
        select e.route_id, e.outcome, e.reason, e.events, e.seqs from unnest(evidence) e
        where e.outcome <> 'failed' and e.detail is null
        union all
        select r.route_id, r.outcome, r.reason, (select sum(upper(s) - lower(s)) from unnest(r.seqs) s), r.seqs
        from unnest(fresh) r
        where r.outcome <> 'failed' and r.detail is null) d;
    written := coalesce((select sum(e.events) from unnest(evidence) e), 0)
        + coalesce((select sum(upper(s) - lower(s)) from unnest(results) r, unnest(r.seqs) s), 0);
    if cardinality(fresh) > 0 or exists (select from unnest(evidence) e where e.outcome in ('pending', 'failed')) then
        n := tidemark.settle_fresh(settle.worker, worker_id, evidence, fresh);
        dead := dead + n;
    end if;
    if cardinality(retried) > 0 then
        n := tidemark.settle_retried(settle.worker, worker_id, retried);
        dead := dead + n;
    end if;
    if dead > 0 then
        perform tidemark.dead_letter_findings(settle.worker, worker_id, settle.worker, dead);
    end if;
    if batch is null then
        update tidemark.worker_cursor c set settles = coalesce(settle_no, c.settles), dead_lettered = dead_lettered + dead
        where c.worker = settle.worker and c.source = 'outbox' and c.shard = 0;
        return;
    end if;
    if batch.blocked_by is not null then
        perform tidemark.finding_open('cursor_holes', settle.worker, 'high',
            format('the cursor waits: too many numbers below it are open, kept so by %s', batch.blocked_by));
    elsif (select c.last_run_summary ? 'blocked_by' from tidemark.worker_cursor c
           where c.worker = settle.worker and c.source = 'outbox' and c.shard = 0) then
        perform tidemark.finding_close('cursor_holes', settle.worker);
    end if;
    update tidemark.worker_cursor c
    set watermark_id = batch.watermark::text,
        decided_through = greatest(decided_through::bigint, batch.watermark)::text,
        holes = batch.holes, fenced = batch.fenced, fence = batch.fence,
        last_run_at = clock_timestamp(), last_run_summary = summary,
        events_seen = events_seen + batch.events,
        attempts_written = attempts_written + written,
        dead_lettered = dead_lettered + dead,
        settles = coalesce(settle_no, c.settles),
        updated_at = clock_timestamp()
    where c.worker = settle.worker and c.source = 'outbox' and c.shard = 0;
end
$$;
ALTER FUNCTION tidemark.settle(worker text, epoch bigint, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], summary jsonb, settle_no bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.settle(worker text, epoch bigint, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], summary jsonb, settle_no bigint) IS 'Writes what became of a batch (evidence, results of deliveries, pending, dead letters) and moves the cursor, in one transaction. batch null: only of what was pending. settle_no is kept as worker_cursor.settles. Raises TM011 where the epoch is not the cursor''s any more.';
CREATE FUNCTION tidemark.settle_fresh(worker text, worker_id integer, evidence tidemark.evidence[], fresh tidemark.result[]) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    outcomes constant tidemark.result[] := fresh || array(
        select row(e.route_id, true, e.outcome, e.reason, e.detail, e.seqs, 0)::tidemark.result
        from unnest(evidence) e where e.outcome in ('pending', 'failed'));
    routes integer[];
    keys text[];
    dead bigint;
begin
    insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
    select n, worker_id, r.route_id, 1, r.outcome, r.reason, r.detail
    from unnest(outcomes) r, unnest(r.seqs) s, generate_series(lower(s), upper(s) - 1) n
    where r.outcome = 'failed' or r.detail is not null;
    with staged as (
        insert into tidemark.pending (worker_id, route_id, seq, key, next_attempt_at, error_count, last_error, suspects)
        select worker_id, r.route_id, o.seq, o.key,
               case when r.delay is null then 'infinity' else at + make_interval(secs => r.delay) end,
               (r.detail is not null)::integer, coalesce(r.reason || ': ' || r.detail, r.reason),
               case when r.reason = 'suspect' and r.detail is null then (select sum(upper(s) - lower(s)) from unnest(r.seqs) s) end
        from unnest(outcomes) r cross join lateral tidemark.events(tidemark.multirange_numbers(r.seqs)) o
        where r.outcome = 'pending'
        returning route_id, key, next_attempt_at)
    select array_agg(s.route_id), array_agg(s.key) into routes, keys
    from (select distinct route_id, key from staged where next_attempt_at = 'infinity') s;
    if routes is not null then
        perform tidemark.release_keys(worker_id, routes, keys);
    end if;
    insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot,
                                      error_code, error_detail, first_failed_at, last_failed_at)
    select tidemark.attempt_key(settle_fresh.worker, r.route_code, o.event_id), worker_id, f.route_id, o.seq, o.event_id,
           tidemark.event_json(o), f.reason, f.detail, at, at
    from unnest(outcomes) f
    join tidemark.outbound_route r on r.id = f.route_id
    cross join lateral tidemark.events(tidemark.multirange_numbers(f.seqs)) o
    where f.outcome = 'failed';
    get diagnostics dead = row_count;
    return dead;
end
$$;
ALTER FUNCTION tidemark.settle_fresh(worker text, worker_id integer, evidence tidemark.evidence[], fresh tidemark.result[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.settle_fresh(worker text, worker_id integer, evidence tidemark.evidence[], fresh tidemark.result[]) IS 'tidemark.settle''s part for events at their first attempt that failed or wait. Returns how many were dead-lettered.';
CREATE FUNCTION tidemark.settle_missing(worker text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    worker_ constant integer := (select w.id from tidemark.worker w where w.worker = settle_missing.worker);
    gone tidemark.pending[];
    routes integer[];
    keys text[];
    dead bigint;
begin
    -- Settling is serial (tidemark.release_keys): the lease's row is what serializes it.
    perform from tidemark.heartbeat h
    where h.executor_id = tidemark.executor_id(settle_missing.worker, 'outbox', 0) for update;
    with left_ as (
        delete from tidemark.pending p
        where p.ctid = any (array(
            select q.ctid from tidemark.pending q join tidemark.outbound_route r on r.id = q.route_id
            where q.worker_id = worker_
              -- A replay has its letter's snapshot, which only a target inside the database does without.
              and (q.dead_letter_id is null or tidemark.target_is_inside(r.target_kind))
              and not exists (select from tidemark.outbox o where o.seq = q.seq)
            limit 10000))
        returning p as row_)
    select array_agg(l.row_) into gone from left_ l;
    if gone is null then
        return 0;
    end if;
    insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
    select g.seq, worker_, g.route_id, g.attempt_no + 1, 'failed', 'event_missing', 'the event is not in the log any more'
    from unnest(gone) g;
    update tidemark.replay_job j
    set failed = j.failed + k.n,
        finished_at = coalesce(j.finished_at, case when j.passed_seq >= j.last_seq
            and not exists (select from tidemark.pending p where p.replay_id = j.id) then at end)
    from (select g.replay_id, count(*) as n from unnest(gone) g where g.replay_id is not null group by 1) k
    where j.id = k.replay_id;
    perform tidemark.settle_replay(g.dead_letter_id, g.attempt_no + 1, 'failed', 'event_missing', 'the event is not in the log any more')
    from unnest(gone) g where g.dead_letter_id is not null;
    insert into tidemark.dead_letter as l (idempotency_key, worker_id, route_id, seq, event_snapshot, error_code, error_detail,
                                           attempts, first_failed_at, last_failed_at)
    select format('tm:%s:%s:seq-%s', settle_missing.worker, r.route_code, g.seq), worker_, g.route_id, g.seq,
           jsonb_build_object('seq', g.seq, 'route', r.route_code, 'key', g.key, 'pending_since', g.created_at,
                              'attempts', g.attempt_no, 'last_error', g.last_error),
           'event_missing', 'the event is not in the log any more', g.attempt_no + 1, at, at
    from unnest(gone) g join tidemark.outbound_route r on r.id = g.route_id
    where g.dead_letter_id is null
    -- Numbers are used again after a failover or a restore.
    on conflict (idempotency_key) do update
    set event_snapshot = excluded.event_snapshot, attempts = l.attempts + 1, last_failed_at = at,
        resolved_at = null, resolution = null, resolved_by = null, resolution_reason = null;
    get diagnostics dead = row_count;
    select array_agg(k.route_id), array_agg(k.key) into routes, keys
    from (select distinct g.route_id, g.key from unnest(gone) g where g.key is not null) k;
    if routes is not null then
        perform tidemark.release_keys(worker_, routes, keys);
    end if;
    if dead > 0 then
        perform tidemark.dead_letter_findings(settle_missing.worker, worker_, settle_missing.worker, dead);
        update tidemark.worker_cursor c set dead_lettered = dead_lettered + dead
        where c.worker = settle_missing.worker and c.source = 'outbox' and c.shard = 0;
    end if;
    return cardinality(gone);
end
$$;
ALTER FUNCTION tidemark.settle_missing(worker text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.settle_missing(worker text) IS 'Dead-letters, as event_missing, what is pending on the worker''s routes and has no event in the log any more, since a partition was dropped by hand: at most 10,000 a call. What waited behind it goes on. Returns how many were pending.';
CREATE FUNCTION tidemark.settle_replay(id bigint, attempt_no integer, outcome tidemark.outcome, reason text, detail text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    update tidemark.dead_letter l
    set attempts = settle_replay.attempt_no,
        last_failed_at = case settle_replay.outcome when 'failed' then clock_timestamp() else l.last_failed_at end,
        error_code = case settle_replay.outcome when 'failed' then settle_replay.reason else l.error_code end,
        error_detail = case settle_replay.outcome when 'failed' then settle_replay.detail else l.error_detail end,
        resolved_at = case settle_replay.outcome when 'sent' then clock_timestamp() end,
        resolution = case settle_replay.outcome when 'sent' then 'sent' end,
        resolved_by = case settle_replay.outcome when 'sent' then session_user end
    where l.id = settle_replay.id;
end
$$;
ALTER FUNCTION tidemark.settle_replay(id bigint, attempt_no integer, outcome tidemark.outcome, reason text, detail text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.settle_replay(id bigint, attempt_no integer, outcome tidemark.outcome, reason text, detail text) IS 'What a replay outside the database came to: the dead letter is resolved (sent) or has failed again.';
CREATE FUNCTION tidemark.settle_retried(worker text, worker_id integer, retried tidemark.result[]) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    r tidemark.result;
    rows_ tid[];
    due timestamptz;
    done tidemark.pending[];
    gone tidemark.pending[] := '{}';
    routes integer[];
    keys text[];
    dead bigint := 0;
begin
    -- One element for all that came to the same: a few statements.
    foreach r in array retried loop
        rows_ := tidemark.pending_at(worker_id, r.route_id, r.seqs);
        due := case when r.delay is null then 'infinity' else at + make_interval(secs => r.delay) end;
        if r.outcome = 'pending' and r.detail is null then
            -- Not tried after all (a closed gate, an open breaker, an earlier event of its key): no attempt.
            update tidemark.pending p
            set next_attempt_at = due, suspects = case when r.reason = 'suspect' then cardinality(rows_) else p.suspects end
            where p.ctid = any (rows_);
            continue;
        elsif r.outcome = 'pending' then
            with tried as (
                update tidemark.pending p
                set attempt_no = p.attempt_no + 1, error_count = p.error_count + 1, next_attempt_at = due,
                    last_error = r.reason || ': ' || r.detail
                where p.ctid = any (rows_)
                returning p.seq, p.attempt_no)
            insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
            select t.seq, worker_id, r.route_id, t.attempt_no, r.outcome, r.reason, r.detail from tried t;
            continue;
        end if;
        with left_ as (
            delete from tidemark.pending p
            where p.ctid = any (rows_)
            returning p as row_)
        select array_agg(l.row_) into done from left_ l;
        gone := gone || done;
        insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
        select d.seq, worker_id, r.route_id, d.attempt_no + 1, r.outcome, r.reason, r.detail from unnest(done) d;
        update tidemark.replay_job j
        set sent = j.sent + case r.outcome when 'sent' then k.n else 0 end,
            failed = j.failed + case r.outcome when 'failed' then k.n else 0 end,
            finished_at = coalesce(j.finished_at, case when j.passed_seq >= j.last_seq
                and not exists (select from tidemark.pending p where p.replay_id = j.id) then at end)
        from (select d.replay_id, count(*) as n from unnest(done) d where d.replay_id is not null group by 1) k
        where j.id = k.replay_id;
        perform tidemark.settle_replay(d.dead_letter_id, d.attempt_no + 1, r.outcome, r.reason, r.detail)
        from unnest(done) d where d.dead_letter_id is not null;
        if r.outcome = 'failed' then
            insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot,
                                              error_code, error_detail, attempts, first_failed_at, last_failed_at)
            select tidemark.attempt_key(settle_retried.worker, o.route_code, e.event_id), worker_id, o.id, e.seq, e.event_id,
                   tidemark.event_json(e), r.reason, r.detail, d.attempt_no + 1, d.created_at, at
            from unnest(done) d
            cross join lateral tidemark.events(array[d.seq]) e
            join tidemark.outbound_route o on o.id = r.route_id
            where d.dead_letter_id is null
            -- A replay of an event whose dead letter was resolved: it is open again, with its history in the attempts.
            on conflict (idempotency_key) do update
            set error_code = excluded.error_code, error_detail = excluded.error_detail, attempts = excluded.attempts,
                last_failed_at = excluded.last_failed_at, resolved_at = null, resolution = null, resolved_by = null,
                resolution_reason = null;
            dead := dead + cardinality(done);
        end if;
    end loop;
    select array_agg(k.route_id), array_agg(k.key) into routes, keys
    from (select distinct g.route_id, g.key from unnest(gone) g where g.key is not null) k;
    if routes is not null then
        perform tidemark.release_keys(worker_id, routes, keys);
    end if;
    return dead;
end
$$;
ALTER FUNCTION tidemark.settle_retried(worker text, worker_id integer, retried tidemark.result[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.settle_retried(worker text, worker_id integer, retried tidemark.result[]) IS 'tidemark.settle''s part for events that were pending: done, dead, or to be tried again. Returns how many were dead-lettered.';
CREATE FUNCTION tidemark.silence_add() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    insert into tidemark.silence (executor_id) values (new.executor_id) on conflict do nothing;
    return null;
end
$$;
ALTER FUNCTION tidemark.silence_add() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.silence_add() IS 'Gives a new executor the row of tidemark.silence that tidemark.stale_check locks.';
CREATE FUNCTION tidemark.source_advise(definition tidemark.source) RETURNS TABLE(safety text, status text, detail text, hint text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
begin
    foreach safety in array array['sequence', 'clock', 'declared', 'capture'] loop
        definition.safety := safety;
        definition.sweep_window := case when safety in ('clock', 'declared') then coalesce(definition.sweep_window, interval '1 hour') end;
        select case max(case c.status when 'fail' then 3 when 'warn' then 2 else 1 end) when 3 then 'fail' when 2 then 'warn' else 'ok' end,
               coalesce(string_agg(c."check" || ': ' || c.detail, '; ' order by c.n) filter (where c.status = 'fail'),
                        string_agg(c."check" || ': ' || c.detail, '; ' order by c.n) filter (where c.status = 'warn'), ''),
               coalesce((array_agg(c.hint order by c.n) filter (where c.status = 'fail' and c.hint <> ''))[1],
                        (array_agg(c.hint order by c.n) filter (where c.status = 'warn' and c.hint <> ''))[1], '')
        into status, detail, hint
        from tidemark.source_check(tidemark.source_guess(definition)) with ordinality c ("check", status, detail, hint, n);
        return next;
    end loop;
end
$$;
ALTER FUNCTION tidemark.source_advise(definition tidemark.source) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_advise(definition tidemark.source) IS 'Which safety suits a table, the strongest first: for each the worst that tidemark.source_check finds, what it is, and the first thing to do. declared and clock are looked at with a sweep_window, of 1 hour unless given. Columns that are null are guessed by tidemark.source_guess.';
CREATE FUNCTION tidemark.source_ahead(definition tidemark.source) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    rel constant text := format('%I.%I', definition.schema_name, definition.table_name);
    id constant text := format('tidemark_row.%I', definition.id_column) || case when definition.id_collate_c then ' collate "C"' else '' end;
    ts constant text := 'tidemark_row.' || quote_ident(definition.timestamp_column);
    zone constant text := coalesce(' at time zone ' || quote_literal(definition.time_zone), '');
begin
    if definition.safety = 'sequence' then
        return format(
            'select true from (
    (select from unnest($4::int8multirange) hole (span) cross join lateral (
        select from %1$s tidemark_row where %2$s >= lower(hole.span) and %2$s < upper(hole.span) order by %2$s limit 1) x limit 1)
    union all
    (select from %1$s tidemark_row where %2$s > $2::bigint order by %2$s limit 1)) x limit 1', rel, id);
    end if;
    return format(
        'select true from %s tidemark_row where (%s, %s) > (($1%s), $2::%s) and %2$s < ($3%4$s)%6$s order by %2$s, %3$s limit 1',
        rel, ts, id, zone, definition.id_type, case when zone <> '' then format(' and (%s%s) < $3', ts, zone) else '' end);
end
$_$;
ALTER FUNCTION tidemark.source_ahead(definition tidemark.source) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_ahead(definition tidemark.source) IS 'The statement that says (true, or no row) whether a pass forward over a source with the safety sequence, clock or declared would read anything.';
CREATE FUNCTION tidemark.source_behind(definition tidemark.source, relation regclass, mark bigint) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    sequence constant regclass := case when definition.safety = 'sequence' then tidemark.source_sequence(relation, definition.id_column) end;
    last bigint;
begin
    if sequence is null or not has_sequence_privilege(sequence, 'select, usage') then
        return null;
    end if;
    last := coalesce(pg_sequence_last_value(sequence), (select q.seqstart - 1 from pg_sequence q where q.seqrelid = sequence));
    return case when last < mark then format(
        'sequence %s is at %s, behind %s: it was set back, or rows came with numbers of their own. What it hands out next would be '
        'passed over. Set it forward (select setval), or rewind to where its numbers go on: tidemark worker rewind NAME --source %s --to-id %s',
        sequence, last, mark, definition.source, last) end;
end
$$;
ALTER FUNCTION tidemark.source_behind(definition tidemark.source, relation regclass, mark bigint) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_behind(definition tidemark.source, relation regclass, mark bigint) IS 'Whether the sequence of a source with the safety sequence is behind the number mark, which was read, so that rows to come would be passed over; null: it is not, or may not be looked at. Ask after the number was read.';
CREATE FUNCTION tidemark.source_budget(plan tidemark.source_plan) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    max_bytes constant bigint := coalesce((
        select s.value::bigint from tidemark.setting s where s.key = 'batch.max_bytes' and s.value ~ '^[0-9]{1,15}$'), 16777216);
    rows_limit constant integer := plan.rows_limit;
    wide boolean;
    mean double precision;
    sizes text;
    fits tidemark.source_page;
begin
    select bool_or(pg_relation_size(c.reltoastrelid) > 0),
           sum(pg_table_size(c.oid)) / nullif(sum(greatest(c.reltuples, 0)), 0)
    into wide, mean
    from pg_class c where c.oid = any (tidemark.relation_tree(plan.relation)) and c.relkind = 'r';
    -- A row without columns that are stored out of line is no larger than a block.
    if not coalesce(wide, false) and rows_limit * current_setting('block_size')::bigint <= 3 * max_bytes then
        return rows_limit;
    elsif plan.step = 'retry' then
        -- Rows that failed are few, and were measured when they were read first.
        return greatest(1, least(rows_limit, max_bytes / greatest(1, coalesce(mean, 1))));
    end if;
    select string_agg(case
        when a.attlen > 0 then a.attlen::text
        -- What is compressed is larger for the handler; of these types the server knows by how much.
        when a.atttypid = any (array['text', 'character varying', 'bytea']::regtype[])
            then format('coalesce(octet_length(tidemark_row.%I), 0)', a.attname)
        when a.attstorage in ('x', 'm') then format('coalesce(4 * pg_column_size(tidemark_row.%I), 0)', a.attname)
        else format('coalesce(pg_column_size(tidemark_row.%I), 0)', a.attname) end || '::bigint', ' + ' order by a.attnum)
    into sizes
    from pg_attribute a where a.attrelid = plan.relation and a.attnum > 0 and not a.attisdropped;
    fits := tidemark.source_read(plan, format(E'\x02%s\x02(%s)', max_bytes, sizes));
    -- A few more than there were, should rows have come since.
    return case when fits.examined < fits.taken then greatest(1, fits.examined) else least(rows_limit, fits.taken + 16) end;
end
$_$;
ALTER FUNCTION tidemark.source_budget(plan tidemark.source_plan) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_budget(plan tidemark.source_plan) IS 'How many rows the next page of a source may have: at most the rows_limit of the plan, at least one, and as many as fit into the setting batch.max_bytes.';
CREATE FUNCTION tidemark.source_check(definition tidemark.source) RETURNS TABLE("check" text, status text, detail text, hint text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    relation constant oid := (
        select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = definition.schema_name and c.relname = definition.table_name);
    failed boolean := false;
begin
    -- A definition that nobody has stored yet has no defaults.
    definition.margin := coalesce(definition.margin, interval '1 second');
    definition.key_columns := coalesce(definition.key_columns, '{}');
    definition.group_key := coalesce(definition.group_key, '{}');
    for "check", status, detail, hint in select t."check", t.status, t.detail, t.hint from tidemark.source_check_table(definition, relation) t loop
        failed := failed or status = 'fail';
        return next;
    end loop;
    if failed then
        return;
    end if;
    for "check", status, detail, hint in select c."check", c.status, c.detail, c.hint from tidemark.source_check_columns(definition, relation) c loop
        failed := failed or status = 'fail';
        return next;
    end loop;
    if failed then
        return;
    end if;
    return query select * from tidemark.source_check_safety(definition, relation);
    if definition.safety = 'sequence' then
        return query select * from tidemark.source_check_sequence(definition, relation);
    end if;
    if definition.timestamp_column is not null then
        return query select * from tidemark.source_check_time(definition, relation);
    end if;
    return query select * from tidemark.source_check_index(definition, relation);
    return query select * from tidemark.source_check_rights(definition, relation);
    return query select * from tidemark.source_check_filter(definition, relation);
    return query select * from tidemark.source_check_rows(definition, relation);
end
$$;
ALTER FUNCTION tidemark.source_check(definition tidemark.source) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_check(definition tidemark.source) IS 'The doctor: looks in the catalog, and in a few rows, for what the source''s safety rests on. A row per check: status ok, warn (cannot be proved, or will cost) or fail (cannot hold); detail says what was found, hint what to run. definition need not be stored, nor its types be filled in. Only reads, with the rights of the caller.';
CREATE FUNCTION tidemark.source_check_columns(definition tidemark.source, relation oid) RETURNS TABLE("check" text, status text, detail text, hint text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    columns constant text[] := array(
        select a.attname::text from pg_attribute a where a.attrelid = relation and a.attnum > 0 and not a.attisdropped order by a.attnum);
    there constant text := 'Columns: ' || array_to_string(columns, ', ') || '.';
    id pg_attribute;
    parted text[];
    missing text;
begin
    "check" := 'id column'; status := 'fail'; hint := '';
    select a.* into id from pg_attribute a where a.attrelid = relation and a.attname = definition.id_column and a.attnum > 0 and not a.attisdropped;
    if not found then
        detail := format('%s has no column "%s"', name, definition.id_column);
        hint := there;
    elsif id.atttypid <> all (array['int2', 'int4', 'int8', 'uuid', 'text', 'varchar', 'numeric']::regtype[]) then
        detail := format('%s.%I is of type %s', name, definition.id_column, format_type(id.atttypid, id.atttypmod));
        hint := 'An id is smallint, integer, bigint, uuid, text, character varying or numeric.';
    elsif definition.safety = 'sequence' and id.atttypid <> all (array['int2', 'int4', 'int8']::regtype[]) then
        detail := format('%s.%I is of type %s: numbers of a sequence are needed for the safety sequence', name, definition.id_column,
                         format_type(id.atttypid, id.atttypmod));
        hint := 'Use clock, where the server sets a timestamp; else declared with a sweep_window.';
    elsif not id.attnotnull then
        detail := format('%s.%I may be null: a row without an id is nowhere in the order', name, definition.id_column);
        hint := format('alter table %s alter column %I set not null;', name, definition.id_column);
    else
        status := 'ok';
        detail := format('%I %s, not null', definition.id_column, format_type(id.atttypid, id.atttypmod));
    end if;
    return next;
    if id.attnum is not null then
        parted := array(select a.attname::text from pg_partitioned_table p join pg_attribute a on a.attrelid = relation and a.attnum = any (p.partattrs::int2[])
                        where p.partrelid = relation);
        "check" := 'id unique'; status := 'ok'; hint := '';
        if exists (select from pg_index i where i.indrelid = relation and i.indisunique and i.indisvalid and i.indpred is null
                     and i.indnkeyatts = 1 and i.indkey[0] = id.attnum) then
            detail := format('a unique index on %I', definition.id_column);
        elsif exists (
            select from pg_index i
            where i.indrelid = relation and i.indisunique and i.indisvalid and i.indpred is null and cardinality(parted) > 0
              and array(select a.attname::text from pg_attribute a where a.attrelid = relation and a.attnum = any ((i.indkey::int2[])[0 : i.indnkeyatts - 1]))
                  <@ (parted || definition.id_column)
              and id.attnum = any ((i.indkey::int2[])[0 : i.indnkeyatts - 1])) then
            status := 'warn';
            detail := format('%I is unique only together with %s, by which the table is partitioned: of two rows with one id, the second is taken for the first',
                             definition.id_column, array_to_string(parted, ', '));
            hint := 'See that no id comes twice: an identity, or a random uuid.';
        else
            status := 'fail';
            detail := format('nothing makes %s.%I unique', name, definition.id_column);
            hint := format('create unique index concurrently on %s (%I);', name, definition.id_column);
        end if;
        return next;
    end if;
    "check" := 'timestamp column'; status := 'fail'; hint := there;
    if definition.timestamp_column is null then
        if definition.safety in ('clock', 'declared') then
            detail := format('the safety %s goes by a timestamp, and no column is named', definition.safety);
            return next;
        end if;
    elsif definition.timestamp_column <> all (columns) then
        detail := format('%s has no column "%s"', name, definition.timestamp_column);
        return next;
    else
        select format('%I %s%s', a.attname, format_type(a.atttypid, a.atttypmod), case when a.attnotnull then ', not null' end),
               case when a.atttypid = any (array['timestamptz', 'timestamp']::regtype[]) then 'ok' else 'fail' end
        into detail, status
        from pg_attribute a where a.attrelid = relation and a.attname = definition.timestamp_column;
        hint := case status when 'ok' then '' else 'It is timestamp with or without time zone: a date or a number says too little or too much.' end;
        return next;
    end if;
    missing := (select string_agg(format('"%s"', k), ', ') from unnest(definition.key_columns || definition.group_key) k where k <> all (columns));
    if cardinality(definition.key_columns || definition.group_key) > 0 then
        "check" := 'key columns';
        status := case when missing is null then 'ok' else 'fail' end;
        detail := case when missing is null then array_to_string(definition.key_columns || definition.group_key, ', ') else format('%s has no column %s', name, missing) end;
        hint := case when missing is null then '' else there end;
        return next;
    end if;
end
$$;
ALTER FUNCTION tidemark.source_check_columns(definition tidemark.source, relation oid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_check_columns(definition tidemark.source, relation oid) IS 'Part of tidemark.source_check: that the columns are there, are of types that can be ordered exactly, and that the id names one row.';
CREATE FUNCTION tidemark.source_check_filter(definition tidemark.source, relation oid) RETURNS TABLE("check" text, status text, detail text, hint text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    bare constant text := regexp_replace(definition.filter, '''([^'']|'''')*''|"([^"]|"")*"', ' ', 'g');
begin
    if definition.filter is null then
        return;
    end if;
    "check" := 'filter'; status := 'ok'; hint := ''; detail := definition.filter;
    if bare ~* '\m(select|table)\M|\$[0-9]' then
        status := 'fail';
        detail := format('the filter asks more than the row: %s', definition.filter);
        hint := 'A row is passed over once and for good: the filter may name the columns of the row only.';
        return next;
        return;
    end if;
    if not has_schema_privilege(definition.schema_name, 'usage') then
        status := 'warn';
        detail := format('the filter was not looked at: %s may not enter the schema', current_user);
        hint := format('grant usage on schema %I to %I;', definition.schema_name, current_user);
        return next;
        return;
    end if;
    begin
        -- Prepared and not run: that needs no right to read, and runs nothing of it. Once in round and once in square
        -- brackets: what closes the one early is an error in the other.
        execute format('prepare tidemark_source_check as select from %s where (%s)', name, definition.filter);
        deallocate tidemark_source_check;
        execute format('prepare tidemark_source_check as select (array[%2$s])[1] from %1$s', name, definition.filter);
        deallocate tidemark_source_check;
    exception when others then
        status := 'fail';
        detail := format('the filter does not compile: %s', sqlerrm);
        hint := 'It is one condition over the columns, such as: kind = ''order'' and amount > 0. Functions and types outside of pg_catalog want their schema.';
    end;
    return next;
end
$_$;
ALTER FUNCTION tidemark.source_check_filter(definition tidemark.source, relation oid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_check_filter(definition tidemark.source, relation oid) IS 'Part of tidemark.source_check: that the filter is one condition over the row.';
CREATE FUNCTION tidemark.source_check_index(definition tidemark.source, relation oid) RETURNS TABLE("check" text, status text, detail text, hint text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    parts constant oid[] := array(select relation union select p.relid from pg_partition_tree(relation) p);
    wanted constant text[] := case when definition.safety = 'sequence' then array[definition.id_column]
                                   else array[definition.timestamp_column, definition.id_column] end;
    id constant pg_attribute := (select a from pg_attribute a where a.attrelid = relation and a.attname = definition.id_column);
    -- As tidemark.source_types has it: text of another collation than these, or the database's own, is compared in "C" (950).
    in_c constant boolean := id.attcollation not in (0, 950, 951) and not (id.attcollation = 100 and exists (
        select from pg_database d where d.datname = current_database() and d.datcollate in ('C', 'POSIX') and d.datlocprovider = 'c'));
    columns text;
    found_ record;
    estimate double precision;
    other text;
begin
    if definition.safety = 'capture' then
        return;
    end if;
    columns := (select string_agg(format('%I', w.name) || case when in_c and w.name = definition.id_column then ' collate "C"' else '' end, ', ' order by w.n)
                from unnest(wanted) with ordinality w (name, n));
    "check" := 'index'; hint := '';
    with candidate as (
        select i.indexrelid::regclass as index, i.indisvalid and i.indisready as valid,
               array(select a.attname::text from unnest((i.indkey::int2[])[0 : cardinality(wanted) - 1]) with ordinality k (attnum, n)
                     join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum order by k.n) = wanted as fits,
               (i.indcollation::oid[])[cardinality(wanted) - 1] = case when in_c then 950 else id.attcollation end as collated,
               (i.indoption::int2[]::integer[])[0 : cardinality(wanted) - 1] in (array[0, 0], array[3, 3], array[0], array[3]) as ordered,
               i.indpred is null as whole
        from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
        where i.indrelid = relation and m.amname = 'btree' and i.indnkeyatts >= cardinality(wanted))
    select k.* into found_ from candidate k where k.fits
    order by k.valid and k.collated and k.ordered and k.whole desc, k.collated desc, k.whole desc, k.index::text limit 1;
    if found_.valid and found_.collated and found_.ordered and found_.whole then
        status := 'ok'; detail := found_.index::text;
        return next;
        return;
    end if;
    -- Never analyzed: by its size, 100 bytes a row.
    estimate := (select sum(case when c.reltuples >= 0 then c.reltuples else pg_relation_size(c.oid) / 100 end)
                 from pg_class c where c.oid = any (parts) and c.relkind = 'r');
    status := case when estimate > 100000 then 'fail' else 'warn' end;
    other := case
        when found_.index is null then ''
        when not found_.collated then format('; %s is of another collation', found_.index)
        when not found_.whole then format('; %s is only of some rows', found_.index)
        when not found_.ordered then format('; %s is of mixed order', found_.index)
        else format('; %s is invalid', found_.index) end;
    detail := format('no index on (%s)%s: every page reads the whole table, of about %s rows', columns, other, round(estimate));
    hint := case
        when found_.collated and found_.whole and found_.ordered and cardinality(parts) = 1 then format('reindex index concurrently %s;', found_.index)
        when cardinality(parts) > 1 then format('create index on only %1$s (%2$s); then for each partition create index concurrently on … (%2$s); and alter index … attach partition …;', name, columns)
        else format('create index concurrently on %s (%s);', name, columns) end;
    return next;
end
$_$;
ALTER FUNCTION tidemark.source_check_index(definition tidemark.source, relation oid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_check_index(definition tidemark.source, relation oid) IS 'Part of tidemark.source_check: the index by which pages are read, with the statement that makes it. Missing: warn for a small table, fail above about 100,000 rows.';
CREATE FUNCTION tidemark.source_check_rights(definition tidemark.source, relation oid) RETURNS TABLE("check" text, status text, detail text, hint text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    class constant pg_class := (select c from pg_class c where c.oid = relation);
begin
    "check" := 'rights'; status := 'ok'; hint := ''; detail := 'tidemark_executor may read it';
    if not has_schema_privilege('tidemark_executor', class.relnamespace, 'usage') or not has_table_privilege('tidemark_executor', relation, 'select') then
        status := 'warn';
        detail := 'tidemark_executor may not read it: whoever runs the worker needs the right';
        hint := concat_ws(' ',
            case when not has_schema_privilege('tidemark_executor', class.relnamespace, 'usage')
                then format('grant usage on schema %I to tidemark_executor;', definition.schema_name) end,
            case when not has_table_privilege('tidemark_executor', relation, 'select') then format('grant select on %s to tidemark_executor;', name) end);
    end if;
    return next;
    "check" := 'row security'; status := 'ok'; hint := ''; detail := 'off: whoever may read sees all rows';
    if class.relrowsecurity then
        status := case when row_security_active(relation) then 'fail' else 'warn' end;
        detail := case when row_security_active(relation) then format('on, and %s would not see all rows: those that are hidden would be passed over', current_user)
            else 'on: a worker that is run by a role to which it applies would not see all rows, and is held' end;
        hint := format('Run the worker as the owner of %s%s, or as a role with bypassrls.', name, case when class.relforcerowsecurity then ' without force row level security' else '' end);
    end if;
    return next;
end
$$;
ALTER FUNCTION tidemark.source_check_rights(definition tidemark.source, relation oid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_check_rights(definition tidemark.source, relation oid) IS 'Part of tidemark.source_check: who may read the table, and all of it.';
CREATE FUNCTION tidemark.source_check_rows(definition tidemark.source, relation oid) RETURNS TABLE("check" text, status text, detail text, hint text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $_$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    parts constant oid[] := array(select relation union select p.relid from pg_partition_tree(relation) p);
    stamp constant pg_attribute := (select a from pg_attribute a where a.attrelid = relation and a.attname = definition.timestamp_column);
    updated bigint;
    deleted bigint;
    triggers text;
    seen boolean[];
    known boolean;
begin
    select sum(s.n_tup_upd), sum(s.n_tup_del) into updated, deleted from pg_stat_all_tables s where s.relid = any (parts);
    triggers := (
        select string_agg(t.tgname, ', ' order by t.tgname) from pg_trigger t join pg_proc p on p.oid = t.tgfoid
        where t.tgrelid = any (parts) and t.tgparentid = 0 and not t.tgisinternal and t.tgenabled in ('O', 'A')
          and p.pronamespace <> 'tidemark'::regnamespace and t.tgtype & 3 = 3 and t.tgtype & 20 <> 0);
    if definition.safety <> 'capture' then
        "check" := 'rows are only added'; status := 'ok'; hint := ''; detail := 'no update or delete since the statistics began';
        if updated > 0 or deleted > 0 then
            status := 'warn';
            detail := format('%s rows were updated and %s deleted since the statistics began: a row is read once, as it is then; one that is deleted before is not read', updated, deleted);
            hint := format('See that id%s are never updated. For changes of rows: the safety capture.', case when stamp.attnum is null then '' else ' and timestamp' end);
        end if;
        return next;
        "check" := 'triggers and rules'; status := 'ok'; hint := ''; detail := 'none before insert or update';
        triggers := concat_ws(', ', triggers, (select string_agg(r.rulename, ', ') from pg_rewrite r where r.ev_class = relation));
        if triggers <> '' then
            status := 'warn';
            detail := format('%s can change a row on its way in, or later', triggers);
            hint := format('See that none sets %s.', concat_ws(' or ', definition.id_column,
                case when definition.safety <> 'clock' then definition.timestamp_column end,
                case when definition.safety = 'clock' then definition.timestamp_column || ' to anything but the time of the insert' end));
        end if;
        return next;
    end if;
    if stamp.attnum is null or definition.safety not in ('clock', 'declared') or not has_column_privilege(relation, stamp.attnum, 'select')
       or not has_schema_privilege(definition.schema_name, 'usage') then
        return;
    end if;
    "check" := 'timestamps'; status := 'ok'; hint := ''; detail := 'none is null, infinite or in the future';
    known := exists (select from pg_index i where i.indrelid = relation and i.indisvalid and i.indpred is null and i.indkey[0] = stamp.attnum);
    execute format('select array[exists (select from %2$s t where t.%1$I is null), exists (select from %2$s t where t.%1$I in (''infinity'', ''-infinity'')),
                                 exists (select from %2$s t where t.%1$I > %3$s and t.%1$I <> ''infinity'')]',
        definition.timestamp_column,
        -- Without an index only a thousand rows, wherever they are.
        case when known then name else format('(select x.%I from %s x limit 1000)', definition.timestamp_column, name) end,
        case when stamp.atttypid = 'timestamptz'::regtype then 'statement_timestamp() + interval ''1 minute'''
             else format('(statement_timestamp() at time zone %L) + interval ''1 minute''', coalesce(definition.time_zone, 'UTC')) end) into seen;
    if seen[3] then
        status := case when definition.safety = 'clock' then 'fail' else 'warn' end;
        detail := 'there are timestamps in the future: the server did not set them, and rows with them wait until then';
        hint := format('select * from %s where %I > now() + interval ''1 minute'' limit 10;', name, definition.timestamp_column);
    elsif seen[1] or seen[2] then
        status := 'warn';
        detail := format('there are rows whose timestamp is %s: they are read by id alone, after the others, with the sweep',
                         concat_ws(' or ', case when seen[1] then 'null' end, case when seen[2] then 'infinite' end));
    elsif not known then
        detail := 'none of a thousand rows is null, infinite or in the future; no index shows more';
    end if;
    return next;
end
$_$;
ALTER FUNCTION tidemark.source_check_rows(definition tidemark.source, relation oid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_check_rows(definition tidemark.source, relation oid) IS 'Part of tidemark.source_check: what the statistics and a bounded look at the rows say against the safety.';
CREATE FUNCTION tidemark.source_check_safety(definition tidemark.source, relation oid) RETURNS TABLE("check" text, status text, detail text, hint text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    parts constant oid[] := array(select relation union select p.relid from pg_partition_tree(relation) p);
    publisher text;
    prepared text;
    triggers text[];
begin
    "check" := 'safety'; hint := '';
    case definition.safety
    when 'sequence' then
        status := 'ok'; detail := 'sequence: every committed row is read once, late ones too; nothing waits for others';
    when 'clock' then
        status := 'ok'; detail := 'clock: every committed row is read once, if its timestamp is of its own transaction; reading waits for the oldest one';
    when 'capture' then
        status := 'ok'; detail := 'capture: a trigger writes each change to the log, in its transaction; what was there before is not read';
    when 'declared' then
        if definition.sweep_window is null then
            status := 'warn';
            detail := 'declared, without a sweep: a row that is committed after rows with a later timestamp were read is lost, and nobody is told';
            hint := 'Give a sweep_window, longer than the longest transaction and the worst clock of a writer.';
        else
            status := 'ok';
            detail := format('declared: a row that comes up to %s late is read by the sweep. One that comes later is not read; verified_through stops below it and a finding says so',
                             definition.sweep_window);
        end if;
    else
        status := 'fail'; detail := format('there is no safety "%s"', coalesce(definition.safety, 'null')); hint := 'sequence, clock, capture or declared.';
    end case;
    return next;
    if definition.safety in ('clock', 'sequence', 'capture') then
        "check" := 'replication'; hint := '';
        publisher := (select string_agg(distinct r.srrelid::regclass::text, ', ') from pg_subscription_rel r where r.srrelid = any (parts));
        status := case when publisher is null then 'ok' else 'fail' end;
        detail := case when publisher is null then 'no subscription writes it'
            else publisher || case definition.safety
                when 'clock' then ' is written by a subscription: its timestamps are of another server, and older than the transactions here'
                when 'sequence' then ' is written by a subscription: its numbers are of another server, in whatever order they come'
                else ' is written by a subscription, for which statement triggers do not fire' end end;
        hint := case when publisher is null then '' else 'Make it a source where it is written, or use declared with a sweep_window.' end;
        return next;
    end if;
    if definition.safety = 'clock' then
        "check" := 'transaction starts';
        -- As a function of tidemark_owner sees it: the reading asks for them that way.
        if exists (select from pg_roles r where r.rolname = 'tidemark_owner'
                   and (r.rolsuper or pg_has_role(r.oid, 'pg_read_all_stats', 'usage'))) then
            status := 'ok'; detail := 'tidemark_owner sees when other sessions'' transactions began'; hint := '';
            if exists (select from pg_settings s where s.name = 'track_activities' and s.reset_val = 'off') then
                status := 'fail'; detail := 'sessions do not show when their transactions began: track_activities is off';
                hint := 'alter system set track_activities = on; select pg_reload_conf();';
            end if;
        else
            status := 'fail';
            detail := 'tidemark_owner does not see when other sessions'' transactions began: the oldest one cannot be waited for';
            hint := 'grant pg_read_all_stats to tidemark_owner;';
        end if;
        return next;
        prepared := (select string_agg(p.gid, ', ') from pg_prepared_xacts p where p.database = current_database());
        "check" := 'prepared transactions'; hint := '';
        status := case when prepared is null then 'ok' else 'warn' end;
        detail := case when prepared is not null then format('prepared and not ended: %s. While such a one has the table locked, nothing is read', prepared)
            when current_setting('max_prepared_transactions') = '0' then 'off: there are none'
            else 'allowed: while one has the table locked, nothing is read' end;
        hint := case when prepared is null then '' else 'commit prepared …; or rollback prepared …;' end;
        return next;
    end if;
    if definition.safety = 'capture' then
        "check" := 'capture trigger'; hint := '';
        triggers := array(
            select t.tgenabled::text from pg_trigger t join pg_proc p on p.oid = t.tgfoid
            where t.tgrelid = relation and not t.tgisinternal and p.pronamespace = 'tidemark'::regnamespace and t.tgtype & 4 = 4);
        if triggers && array['O', 'A'] then
            status := 'ok'; detail := 'a trigger writes what is inserted to the log';
        elsif cardinality(triggers) > 0 then
            status := 'fail'; detail := format('the trigger that writes what is inserted to the log is disabled on %s', name);
            hint := format('alter table %s enable always trigger …;', name);
        elsif pg_has_role((select c.relowner from pg_class c where c.oid = relation), 'usage') or has_table_privilege(relation, 'trigger') then
            status := 'warn'; detail := format('no trigger writes what is inserted into %s to the log yet: until one does, nothing is read', name);
            hint := 'Make an inbound route for the table.';
        else
            status := 'fail'; detail := format('no trigger writes what is inserted to the log, and %s is neither the owner of %s nor has it the privilege trigger', current_user, name);
            hint := format('grant trigger on %s to %I;', name, current_user);
        end if;
        return next;
        if cardinality(parts) > 1 then
            "check" := 'partitions'; status := 'warn'; hint := 'See that all writers name the table, or make each partition a source.';
            detail := 'a statement that names a partition does not fire the trigger of the table';
            return next;
        end if;
    end if;
    if definition.safety in ('sequence', 'capture') and definition.sweep_window is not null then
        "check" := 'sweep'; status := 'fail'; detail := format('the safety %s has no sweep: it needs none', definition.safety);
        hint := 'Take sweep_window away.';
        return next;
    end if;
end
$$;
ALTER FUNCTION tidemark.source_check_safety(definition tidemark.source, relation oid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_check_safety(definition tidemark.source, relation oid) IS 'Part of tidemark.source_check: what the safety promises, and what of the whole server would break it.';
CREATE FUNCTION tidemark.source_check_sequence(definition tidemark.source, relation oid) RETURNS TABLE("check" text, status text, detail text, hint text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    parts constant oid[] := array(select relation union select p.relid from pg_partition_tree(relation) p);
    id constant pg_attribute := (select a from pg_attribute a where a.attrelid = relation and a.attname = definition.id_column);
    expression constant text := (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d where d.adrelid = relation and d.adnum = id.attnum);
    sequence regclass;
    settings pg_sequence;
    others text;
    highest bigint;
    last bigint;
begin
    sequence := tidemark.source_sequence(relation, definition.id_column);
    "check" := 'sequence';
    if sequence is null then
        status := 'fail';
        detail := format('%s.%I has %s: its numbers come from somewhere that cannot be watched', name, definition.id_column,
                         coalesce('the default ' || expression, 'no default'));
        hint := format('alter table %s alter column %I add generated always as identity; or another safety.', name, definition.id_column);
        return next;
        return;
    end if;
    select s.* into settings from pg_sequence s where s.seqrelid = sequence;
    status := 'ok'; hint := '';
    detail := format('%s, cache 1, increment 1', sequence);
    if settings.seqcache <> 1 or settings.seqincrement <> 1 or settings.seqcycle then
        status := 'fail';
        detail := format('%s has %s', sequence, concat_ws(', ',
            case when settings.seqcache <> 1 then format('cache %s: sessions keep numbers in reserve and use them out of order', settings.seqcache) end,
            case when settings.seqincrement <> 1 then format('increment %s: every number between is waited for', settings.seqincrement) end,
            case when settings.seqcycle then 'cycle: its numbers come again' end));
        hint := format('alter sequence %s cache 1 increment 1 no cycle; then end the sessions that still keep numbers.', sequence);
    end if;
    return next;
    others := (
        select string_agg(distinct format('%s.%I', f.adrelid::regclass, a.attname), ', ')
        from pg_depend d join pg_attrdef f on d.classid = 'pg_attrdef'::regclass and f.oid = d.objid
        join pg_attribute a on a.attrelid = f.adrelid and a.attnum = f.adnum
        where d.refclassid = 'pg_class'::regclass and d.refobjid = sequence
          and (f.adrelid <> all (parts) or a.attname <> definition.id_column));
    "check" := 'sequence is its own';
    status := case when others is null then 'ok' else 'fail' end;
    detail := case when others is null then 'no other column takes its numbers' else format('%s also numbers %s', sequence, others) end;
    hint := case when others is null then '' else 'Give each column a sequence of its own.' end;
    return next;
    others := (
        select string_agg(f.adrelid::regclass::text, ', ' order by f.adrelid::regclass::text)
        from pg_attrdef f join pg_attribute a on a.attrelid = f.adrelid and a.attnum = f.adnum
        where f.adrelid = any (parts) and f.adrelid <> relation and a.attname = definition.id_column
          and not exists (select from pg_depend d where d.classid = 'pg_attrdef'::regclass and d.objid = f.oid
                            and d.refclassid = 'pg_class'::regclass and d.refobjid = sequence));
    if others is not null then
        "check" := 'numbers of partitions'; status := 'fail';
        detail := format('in %s the column has a default of its own: rows written there take other numbers', others);
        hint := format('alter table … alter column %I drop default;', definition.id_column);
        return next;
    end if;
    "check" := 'numbers by hand'; hint := '';
    others := (
        select string_agg(p.oid::regprocedure::text, ', ' order by p.oid::regprocedure::text) from (
            select p.oid from pg_proc p join pg_namespace n on n.oid = p.pronamespace
            where p.prosrc ~* 'nextval' and strpos(p.prosrc, (select c.relname from pg_class c where c.oid = sequence)) > 0
              and n.nspname <> 'pg_catalog' limit 5) p);
    if id.attidentity = 'a' and others is null then
        status := 'ok';
        detail := 'generated always: only insert … overriding system value, COPY and whoever may use the sequence can give numbers of their own';
    else
        status := 'warn';
        detail := concat_ws('; ',
            case when id.attidentity <> 'a' then 'the id is a default: an insert may give a number of its own, which nobody can see from here. '
                || 'One that was taken (nextval) before the insert began, or that is below numbers read already, may be lost' end,
            'these functions take numbers: ' || others);
        hint := case when id.attidentity = 'd' then format('alter table %s alter column %I set generated always;', name, definition.id_column)
            when id.attidentity = '' then 'See that all writers leave the id out. An ORM that takes blocks of numbers does not: use clock or declared there.'
            else 'See that they insert in the same statement.' end;
    end if;
    return next;
    -- The order matters: a number taken between the two is no mistake.
    if has_column_privilege(relation, id.attnum, 'select') and has_schema_privilege(definition.schema_name, 'usage')
       and exists (select from pg_index i where i.indrelid = relation and i.indisvalid and i.indpred is null and i.indkey[0] = id.attnum) then
        execute format('select max(t.%1$I) from %2$s t', definition.id_column, name) into highest;
        last := (select s.last_value from pg_sequences s join pg_class c on c.relname = s.sequencename
                 join pg_namespace n on n.oid = c.relnamespace and n.nspname = s.schemaname where c.oid = sequence);
        "check" := 'numbers in use'; status := 'ok'; hint := '';
        detail := format('the highest id is %s, the sequence is at %s', coalesce(highest::text, 'none'), coalesce(last::text, 'its beginning'));
        if highest >= settings.seqstart and highest > coalesce(last, settings.seqstart - 1)
           and has_sequence_privilege(sequence, 'select,usage') then
            status := 'fail';
            detail := format('the highest id is %s, and the sequence is only at %s: rows came with numbers of their own, and those to come would be passed over',
                             highest, coalesce(last::text, 'its beginning'));
            hint := format('select setval(%L, (select max(%I) from %s));', sequence, definition.id_column, name);
        end if;
        return next;
    end if;
end
$_$;
ALTER FUNCTION tidemark.source_check_sequence(definition tidemark.source, relation oid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_check_sequence(definition tidemark.source, relation oid) IS 'Part of tidemark.source_check, for the safety sequence: where the ids come from.';
CREATE FUNCTION tidemark.source_check_table(definition tidemark.source, relation oid) RETURNS TABLE("check" text, status text, detail text, hint text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    class constant pg_class := (select c from pg_class c where c.oid = relation);
    parts constant oid[] := array(select relation union select p.relid from pg_partition_tree(relation) p);
    bad text;
begin
    "check" := 'primary';
    if pg_is_in_recovery() then
        status := 'fail'; detail := 'this is a standby: what it shows of running transactions is not true'; hint := 'Connect to the primary.';
    else
        status := 'ok'; detail := 'this is no standby'; hint := '';
    end if;
    return next;
    "check" := 'table'; status := 'fail'; hint := '';
    if relation is null then
        detail := format('there is no table %s', name);
        hint := coalesce((select format('Did you mean %s?', string_agg(format('%I.%I', n.nspname, c.relname), ', '))
            from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where c.relkind in ('r', 'p') and lower(c.relname) = lower(definition.table_name)), 'Names are as the catalog spells them: \dt *.*');
        return next;
        return;
    elsif class.relkind not in ('r', 'p') then
        detail := format('%s is a %s, not a table', name, case class.relkind when 'v' then 'view' when 'm' then 'materialized view'
            when 'f' then 'foreign table' when 'S' then 'sequence' when 'c' then 'type' else 'thing of kind ' || class.relkind::text end);
        hint := case class.relkind
            when 'f' then 'Rows that come from elsewhere have no transaction here: read it where it is.'
            when 'm' then 'A refresh makes all of its rows anew: read the table that it is made of.'
            else 'Name the table.' end;
        return next;
        return;
    end if;
    bad := (
        select string_agg(format('%s %s', c.oid::regclass, case when c.relkind = 'f' then 'is a foreign table'
                   when c.relpersistence = 't' then 'is temporary' else 'is stored as ' || m.amname end), ', ' order by c.oid::regclass::text)
        from pg_class c left join pg_am m on m.oid = c.relam
        where c.oid = any (parts) and (c.relkind = 'f' or c.relpersistence = 't' or c.relkind = 'r' and m.amname <> 'heap'));
    if bad is not null then
        detail := bad;
        hint := 'Rows are told apart by transactions and found by indexes as heap tables keep them.';
    elsif definition.schema_name in ('pg_catalog', 'information_schema', 'pg_toast') then
        detail := format('%s is the system''s', name);
        hint := 'Its rows are changed in place.';
    elsif definition.schema_name = 'tidemark' and (definition.table_name <> 'outbox' or definition.safety <> 'sequence') then
        detail := format('%s is Tidemark''s own: only tidemark.outbox can be a source, with the safety sequence', name);
        hint := 'Findings and the audit have functions of their own.';
    elsif class.relkind = 'r' and exists (select from pg_inherits i where i.inhparent = relation) then
        detail := format('%s has children that inherit from it: their rows show in it, and no index makes an id unique among them', name);
        hint := 'Make each child a source, or make the table a partitioned one.';
    elsif exists (select from pg_attribute a where a.attrelid = relation and a.attname = 'tidemark_row' and a.attnum > 0) then
        detail := format('%s has a column tidemark_row, a name that Tidemark needs for itself', name);
        hint := format('alter table %s rename column tidemark_row to …;', name);
    elsif exists (select from pg_class c where c.oid = any (parts) and c.relpersistence = 'u') then
        status := 'warn';
        detail := format('%s is unlogged: a crash of the server empties it, and what was not read by then is lost', name);
        hint := format('alter table %s set logged;', name);
    else
        status := 'ok';
        detail := case class.relkind when 'p' then format('%s is a partitioned table', name) else format('%s is a table', name) end;
    end if;
    return next;
end
$$;
ALTER FUNCTION tidemark.source_check_table(definition tidemark.source, relation oid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_check_table(definition tidemark.source, relation oid) IS 'Part of tidemark.source_check: that the table is there, and of a kind that can be read in order. relation null: it is not.';
CREATE FUNCTION tidemark.source_check_time(definition tidemark.source, relation oid) RETURNS TABLE("check" text, status text, detail text, hint text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    of_clock constant boolean := definition.safety = 'clock';
    stamp constant pg_attribute := (select a from pg_attribute a where a.attrelid = relation and a.attname = definition.timestamp_column);
    -- (now() AT TIME ZONE 'UTC'::text) and its spellings: what is left is the clock, the zone is kept.
    given constant text := (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d where d.adrelid = relation and d.adnum = stamp.attnum);
    zoned constant text[] := regexp_match(given, '^(?:timezone\(''([^'']+)''::text, (.+)\)|\((.+) AT TIME ZONE ''([^'']+)''::text\))$', 'i');
    clock constant text := coalesce(zoned[2], zoned[3], given);
    known_clock constant boolean := coalesce(clock ~* '^(now|clock_timestamp|statement_timestamp|transaction_timestamp)\(\)$|^(CURRENT_TIMESTAMP|LOCALTIMESTAMP)(\(\d\))?$', false);
    offsets interval[];
    precision_ constant integer := least(case when stamp.atttypmod < 0 then 6 else stamp.atttypmod end,
                                         coalesce((regexp_match(clock, '^(?:CURRENT_TIMESTAMP|LOCALTIMESTAMP)\((\d)\)$', 'i'))[1]::integer, 6));
    step constant interval := interval '1 second' / power(10, precision_);
begin
    if definition.safety in ('clock', 'declared') then
        "check" := 'timestamp not null'; hint := '';
        status := case when stamp.attnotnull then 'ok' else 'warn' end;
        detail := case when stamp.attnotnull then format('%I is not null', definition.timestamp_column)
            else format('%I may be null: such rows are read by id alone, after the others, with the sweep', definition.timestamp_column) end;
        hint := case when stamp.attnotnull then '' else format('alter table %s alter column %I set not null;', name, definition.timestamp_column) end;
        return next;
    end if;
    "check" := 'time zone'; hint := '';
    if stamp.atttypid = 'timestamptz'::regtype then
        status := case when definition.time_zone is null then 'ok' else 'fail' end;
        detail := format('%I is with time zone', definition.timestamp_column);
        if zoned is not null and definition.time_zone is null then
            status := case when of_clock then 'fail' else 'warn' end;
            detail := format('%I is with time zone, and its default %s has lost it: what is stored depends on the TimeZone of the session', definition.timestamp_column, given);
            hint := format('alter table %s alter column %I set default now();', name, definition.timestamp_column);
        elsif definition.time_zone is not null then
            detail := detail || ': it has no other';
            hint := 'Take time_zone away.';
        end if;
    elsif definition.time_zone is null then
        status := 'fail';
        detail := format('%s.%I is without time zone, and time_zone does not say which one its writers mean', name, definition.timestamp_column);
        hint := 'Give time_zone, such as UTC.';
    else
        -- Not whatever AT TIME ZONE takes: in UTC+3 it turns the sign around.
        if exists (select from pg_timezone_names z where z.name = definition.time_zone) then
            offsets := array(
                select distinct (d at time zone 'UTC') - (d at time zone definition.time_zone)
                from generate_series(localtimestamp - interval '5 years', localtimestamp + interval '5 years', interval '1 day') d);
        end if;
        if offsets is null then
            status := 'fail'; detail := format('"%s" is no time zone', definition.time_zone);
            hint := 'select name from pg_timezone_names;';
        elsif cardinality(offsets) > 1 then
            status := case when of_clock then 'fail' else 'warn' end;
            detail := format('in %s clocks are put back: an hour of timestamps without time zone comes twice, and one never', definition.time_zone);
            hint := case when of_clock then 'Have it written in UTC, or use declared with a sweep_window of more than an hour.'
                else 'Give a sweep_window of more than an hour, or have it written in UTC.' end;
            if not of_clock and (definition.safety <> 'declared' or definition.sweep_window > interval '1 hour') then
                status := 'ok'; hint := '';
            end if;
        elsif coalesce(zoned[1], zoned[4]) is not null
              and (timestamptz 'epoch' at time zone coalesce(zoned[1], zoned[4])) <> (timestamptz 'epoch' at time zone definition.time_zone) then
            status := 'fail';
            detail := format('the default writes %s, and time_zone is %s', coalesce(zoned[1], zoned[4]), definition.time_zone);
            hint := format('Set time_zone to %s.', coalesce(zoned[1], zoned[4]));
        elsif zoned is null and known_clock then
            status := 'warn';
            detail := format('the default %s is written as each session''s TimeZone has it; yours begins with %s', given,
                             (select s.reset_val from pg_settings s where s.name = 'TimeZone'));
            hint := format('alter table %s alter column %I set default (now() at time zone %L);', name, definition.timestamp_column, definition.time_zone);
        else
            status := 'ok'; detail := format('%s, whose clocks are not put back', definition.time_zone);
        end if;
    end if;
    return next;
    if not of_clock then
        return;
    end if;
    "check" := 'set by the server'; hint := '';
    if clock ~* '^statement_timestamp' then
        status := 'fail';
        detail := format('the default is %s: in a procedure, or a DO block, that commits, that is the time of the call, older than the transaction', given);
        hint := format('alter table %s alter column %I set default %s; or declared with a sweep_window.', name, definition.timestamp_column,
            replace(given, clock, 'now()'));
    elsif known_clock then
        status := 'warn';
        detail := format('the default is %s; nothing stops an insert from giving another time, and a row whose time is older than its transaction may be lost', given);
        hint := 'See that all writers leave the column out. Where one may not: declared with a sweep_window.';
    elsif exists (select from pg_trigger t where t.tgrelid = relation and not t.tgisinternal and t.tgenabled in ('O', 'A') and t.tgtype & 7 = 7) then
        status := 'warn';
        detail := format('the default is %s; a trigger before insert may set the time, which nobody can see from here', coalesce(given, 'none'));
        hint := 'See that it sets now() or clock_timestamp(), always.';
    else
        status := 'fail';
        detail := case when given is null then format('%I has no default: whoever inserts says what time it is', definition.timestamp_column)
            else format('the default of %I is %s, which is not known to be the server''s clock', definition.timestamp_column, given) end;
        hint := format('alter table %s alter column %I set default %s; or declared with a sweep_window.', name, definition.timestamp_column,
            case when stamp.atttypid = 'timestamptz'::regtype then 'now()' else format('(now() at time zone %L)', coalesce(definition.time_zone, 'UTC')) end);
    end if;
    return next;
    "check" := 'margin'; hint := '';
    if definition.margin < step then
        status := 'fail';
        detail := format('the margin is %s, and a timestamp of %s digits is up to %s off', definition.margin, precision_, step);
        hint := format('Set the margin to 1 second%s.', case when precision_ > 0 then ', or at least ' || step else '' end);
    elsif definition.margin < interval '1 second' then
        status := 'warn';
        detail := format('the margin is %s: a second is what has been shown to do', definition.margin);
        hint := 'Set the margin to 1 second.';
    else
        status := 'ok'; detail := format('%s, timestamps of %s digits', definition.margin, precision_);
    end if;
    return next;
end
$_$;
ALTER FUNCTION tidemark.source_check_time(definition tidemark.source, relation oid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_check_time(definition tidemark.source, relation oid) IS 'Part of tidemark.source_check: what is known of the timestamp: null, zone, who sets it, precision.';
CREATE FUNCTION tidemark.source_close(epoch bigint, plan tidemark.source_plan, read tidemark.source_page, failed tidemark.failed_row[], splits integer, began timestamp with time zone) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    -- The last look at the gates comes after the last effect.
    gate constant text := tidemark.closed_gate((plan.worker).worker);
begin
    if gate is not null then
        raise exception using errcode = 'TM009', message = gate;
    end if;
    return tidemark.source_settle(source_close.plan, source_close.epoch, source_close.read, source_close.failed, splits, began,
                                  tidemark.source_recount(source_close.plan, source_close.read));
end
$$;
ALTER FUNCTION tidemark.source_close(epoch bigint, plan tidemark.source_plan, read tidemark.source_page, failed tidemark.failed_row[], splits integer, began timestamp with time zone) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_close(epoch bigint, plan tidemark.source_plan, read tidemark.source_page, failed tidemark.failed_row[], splits integer, began timestamp with time zone) IS 'The second half: records what became of the page and moves the cursor. Returns the summary of the pass. Raises TM009 (a gate was closed meanwhile), TM011.';
CREATE FUNCTION tidemark.source_due(worker_id integer, source text, shard integer, rows_limit integer) RETURNS TABLE(item_id text, item_ts timestamp with time zone, snapshot jsonb)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select p.item_id, p.item_ts, p.snapshot
    from tidemark.pending_row p
    where p.worker_id = source_due.worker_id and p.source = source_due.source and p.shard = source_due.shard
      and p.next_attempt_at <= now()
    order by p.next_attempt_at, p.item_id limit least(source_due.rows_limit, 100)
$$;
ALTER FUNCTION tidemark.source_due(worker_id integer, source text, shard integer, rows_limit integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_due(worker_id integer, source text, shard integer, rows_limit integer) IS 'Rows that failed and are to be tried again by now, at most 100.';
CREATE FUNCTION tidemark.source_emit(worker_id integer, source text, rows_ jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    w constant tidemark.worker := (select w from tidemark.worker w where w.id = source_emit.worker_id);
    s constant tidemark.source := (select s from tidemark.source s where s.source = source_emit.source);
    shown constant text[] := s.key_columns || w.payload_columns;
    emitted bigint;
begin
    if rows_ is null then
        return null;
    end if;
    -- With a key for each row: a cursor that was rewound emits nothing twice.
    select count(*) into emitted
    from tidemark.emit_all((
        select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
            'domain', split_part(w.handler_ref, '/', 1), 'type', substr(w.handler_ref, strpos(w.handler_ref, '/') + 1),
            'subject_table', format('%I.%I', s.schema_name, s.table_name), 'subject_ref', r ->> 'id',
            'key', coalesce((select string_agg(r -> 'row' ->> k, ',') from unnest(s.key_columns) k), r ->> 'id'),
            'idempotency_key', format('tidemark:source/%s/%s/%s', w.worker, s.source,
                case when octet_length(r ->> 'id') <= 512 then r ->> 'id'
                     else 'sha256/' || encode(sha256(convert_to(r ->> 'id', 'UTF8')), 'hex') end), 'occurred_at', r ->> 'ts'))
            || jsonb_build_object('payload', jsonb_build_object('id', r -> 'row' -> s.id_column)
               || coalesce((select jsonb_object_agg(k, r -> 'row' -> k) from unnest(shown) k), '{}')) order by e.ord)
        from jsonb_array_elements(rows_) with ordinality e (r, ord)), true, true);
    return jsonb_build_object('emitted', emitted);
end
$$;
ALTER FUNCTION tidemark.source_emit(worker_id integer, source text, rows_ jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_emit(worker_id integer, source text, rows_ jsonb) IS 'Makes an event of each row ({"id", "ts", "row"}): its payload shows the id, the source''s key columns and the worker''s payload_columns, its key is that of the row. Raises TM001 for a type that is not registered, and what tidemark.emit_many raises. The idempotency key of an event is "tidemark:source/WORKER/SOURCE/ID", which no emitter can write.';
CREATE FUNCTION tidemark.source_failures(plan tidemark.source_plan, page tidemark.source_page, failed tidemark.failed_row[]) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    w constant tidemark.worker := plan.worker;
    s constant tidemark.source := plan.source;
    at constant timestamptz := clock_timestamp();
    dead bigint;
begin
    if plan.step = 'retry' then
        -- What went well this time. A replay of a dead letter resolves it.
        with done as (
            delete from tidemark.pending_row p
            where p.worker_id = w.id and p.source = s.source and p.shard = (plan.cursor).shard
              and p.item_id = any (page.ledger_ids) and p.item_id not in (select f.item_id from unnest(failed) f)
            returning p.*)
        update tidemark.dead_letter l
        set resolved_at = at, resolution = 'sent', resolved_by = session_user, attempts = l.attempts + 1
        from done d where l.id = d.dead_letter_id;
    end if;
    if cardinality(failed) = 0 then
        return 0;
    end if;
    insert into tidemark.pending_row as p (worker_id, source, shard, item_id, item_ts, snapshot, last_error, next_attempt_at)
    select w.id, s.source, (plan.cursor).shard, f.item_id, f.item_ts, f.snapshot, f.code || ': ' || f.message, at
    from unnest(failed) f
    on conflict (worker_id, source, shard, item_id) do update
    set error_count = p.error_count + 1, last_error = excluded.last_error;
    with due as (
        select p.*, f.code, f.message, case when not f.permanent then coalesce(make_interval(secs => f.delay), tidemark.retry_delay(w.retry_policy, p.error_count)) end as delay,
               p.error_count >= coalesce((w.retry_policy ->> 'max_attempts')::integer, 10) as last_one
        from unnest(failed) f
        join tidemark.pending_row p on p.worker_id = w.id and p.source = s.source and p.shard = (plan.cursor).shard and p.item_id = f.item_id
    ), again as (
        update tidemark.pending_row p set next_attempt_at = at + d.delay
        from due d
        where p.worker_id = d.worker_id and p.source = d.source and p.shard = d.shard and p.item_id = d.item_id
          and d.delay is not null and not d.last_one and d.dead_letter_id is null
    ), given_up as (
        delete from tidemark.pending_row p using due d
        where p.worker_id = d.worker_id and p.source = d.source and p.shard = d.shard and p.item_id = d.item_id
          and (d.delay is null or d.last_one or d.dead_letter_id is not null)
        returning p.*, d.code, d.message)
    insert into tidemark.dead_letter as l (idempotency_key, worker_id, source, shard, item_id, item_ts, event_snapshot, error_code, error_detail,
                                      attempts, first_failed_at, last_failed_at)
    select format('tm:%s:%s:%s', w.worker, s.source, g.item_id), w.id, s.source, g.shard, g.item_id, g.item_ts, g.snapshot, g.code, g.message,
           g.error_count, g.created_at, at
    from given_up g
    -- A replay that failed, or a row that was read again after a rewind: the letter is open (again).
    on conflict (idempotency_key) do update
    set error_code = excluded.error_code, error_detail = excluded.error_detail, last_failed_at = excluded.last_failed_at,
        attempts = l.attempts + 1, event_snapshot = excluded.event_snapshot,
        resolved_at = null, resolution = null, resolved_by = null, resolution_reason = null;
    get diagnostics dead = row_count;
    if dead > 0 then
        perform tidemark.dead_letter_findings(w.worker, w.id, tidemark.executor_id(w.worker, s.source, (plan.cursor).shard), dead);
    end if;
    return dead;
end
$$;
ALTER FUNCTION tidemark.source_failures(plan tidemark.source_plan, page tidemark.source_page, failed tidemark.failed_row[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_failures(plan tidemark.source_plan, page tidemark.source_page, failed tidemark.failed_row[]) IS 'Rows that failed wait for another attempt, or are dead-lettered after the last; rows that were tried again and went well are done. Returns how many were dead-lettered.';
CREATE FUNCTION tidemark.source_fence(definition tidemark.source) RETURNS regclass
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return case definition.safety when 'capture' then 'tidemark.outbox'::regclass else (tidemark.source_shape(definition)).relation end;
end
$$;
ALTER FUNCTION tidemark.source_fence(definition tidemark.source) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_fence(definition tidemark.source) IS 'The table whose writers keep a number of the source open: the source''s own; for the safety capture the log.';
CREATE FUNCTION tidemark.source_fits(definition tidemark.source, shards integer, shard text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return coalesce('coalesce((' || definition.filter || '), false)', 'true')
        || case when shards > 1 then format(' and (hashtextextended(concat_ws(chr(31), %s), 0) & 9223372036854775807) %% %s = %s', (
               select string_agg(format('tidemark_row.%I::text', k), ', ')
               from unnest(case when cardinality(definition.key_columns) > 0 then definition.key_columns
                                else array[definition.id_column] end) k), shards, shard) else '' end;
end
$$;
ALTER FUNCTION tidemark.source_fits(definition tidemark.source, shards integer, shard text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_fits(definition tidemark.source, shards integer, shard text) IS 'The condition that a row is of the source, and, where a worker has several shards, of the shard (a parameter, as text).';
CREATE FUNCTION tidemark.source_guess(definition tidemark.source) RETURNS tidemark.source
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    relation constant oid := (
        select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = definition.schema_name and c.relname = definition.table_name);
begin
    definition.id_column := coalesce(definition.id_column, (
        select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = relation and i.indisunique and i.indisvalid and i.indpred is null and i.indnkeyatts = 1 and a.attnotnull
        order by i.indisprimary desc, a.attnum limit 1));
    if definition.safety in ('sequence', 'capture') then
        return definition;
    end if;
    -- The one that an index leads to, else one that the server fills.
    definition.timestamp_column := coalesce(definition.timestamp_column, (
        select a.attname from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
          and a.atttypid = any (array['timestamptz', 'timestamp']::regtype[]) and a.attname !~* 'updat|modif|chang|delet|expir|until|due'
        order by exists (select from pg_index i join pg_attribute k on k.attrelid = relation and k.attnum = i.indkey[1]
                         where i.indrelid = relation and i.indkey[0] = a.attnum and k.attname = definition.id_column) desc,
                 pg_get_expr(d.adbin, d.adrelid) ~* 'now\(|_timestamp|localtimestamp' desc nulls last, a.attnum
        limit 1));
    return definition;
end
$$;
ALTER FUNCTION tidemark.source_guess(definition tidemark.source) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_guess(definition tidemark.source) IS 'The definition with id_column and timestamp_column as they look best, where they are null: the primary key, and a timestamp that has an index with it or that the server sets. For tidemark.source_check and tidemark.source_advise; look at what it chose.';
CREATE FUNCTION tidemark.source_handler(worker tidemark.worker, relation regclass, OUT call text, OUT problem text) RETURNS record
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    name text[];
    row_type constant oid := (select t.typarray from pg_class c join pg_type t on t.oid = c.reltype where c.oid = source_handler.relation);
begin
    case worker.handler
    when 'sql' then
        begin
            name := parse_ident(worker.handler_ref);
        exception when invalid_parameter_value then
            name := '{}';
        end;
        select format(case p.prorettype when 'jsonb'::regtype then E'%I.%I(\x01)' else E'nullif(%I.%I(\x01)::text, '''')::jsonb' end,
                      n.nspname, p.proname)
        into call
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where cardinality(name) = 2 and n.nspname = name[1] and p.proname = name[2] and p.prokind = 'f' and p.pronargs = 1 and not p.proretset
          and p.prorettype in ('jsonb'::regtype, 'void'::regtype)
          and p.proargtypes[0] in (row_type, 'anyarray'::regtype)
        order by p.proargtypes[0] = row_type desc limit 1;
        if call is null then
            problem := format('there is no function %s(%s[]), nor (anyarray), that returns void or jsonb', worker.handler_ref, relation);
        end if;
    when 'emit' then
        if not exists (select from tidemark.event_type t
                       where t.domain = split_part(worker.handler_ref, '/', 1) and t.type = substr(worker.handler_ref, strpos(worker.handler_ref, '/') + 1)
                         and t.enabled) then
            problem := format('the event type %s is not registered, or not enabled', worker.handler_ref);
        end if;
    else
    end case;
end
$$;
ALTER FUNCTION tidemark.source_handler(worker tidemark.worker, relation regclass, OUT call text, OUT problem text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_handler(worker tidemark.worker, relation regclass, OUT call text, OUT problem text) IS 'How to call the worker''s SQL function (character 1: its argument), or what is wrong with its handler: problem, null: nothing.';
CREATE FUNCTION tidemark.source_hold(plan tidemark.source_plan, kind text, detail text) RETURNS tidemark.source_plan
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    perform tidemark.finding_open(source_hold.kind, tidemark.executor_id((plan.cursor).worker, (plan.cursor).source, (plan.cursor).shard),
                                  'high', source_hold.detail);
    plan.status := 'held';
    plan.detail := source_hold.detail;
    return plan;
end
$$;
ALTER FUNCTION tidemark.source_hold(plan tidemark.source_plan, kind text, detail text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_hold(plan tidemark.source_plan, kind text, detail text) IS 'The plan of a worker that must not go on, with a finding that says why.';
CREATE FUNCTION tidemark.source_home(relation regclass) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select c.system_identifier || '/' || source_home.relation::oid from pg_control_system() c
$$;
ALTER FUNCTION tidemark.source_home(relation regclass) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_home(relation regclass) IS 'Which table of which cluster this is: another one where it was dropped and made anew, or the database was restored elsewhere. Then transaction numbers and what was read say nothing.';
CREATE FUNCTION tidemark.source_horizon(definition tidemark.source, relation regclass, OUT horizon timestamp with time zone, OUT held text, OUT hidden text, OUT blame text) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    clock constant timestamptz := clock_timestamp();
    digits constant integer := coalesce(substring(definition.timestamp_type from '\(([0-6])\)')::integer, 6);
    margin constant interval := greatest(definition.margin, make_interval(secs => (10 ^ -digits)::double precision));
    seen record;
begin
    if definition.safety = 'declared' then
        horizon := clock - margin;
        return;
    end if;
    seen := tidemark.oldest_transaction();
    if seen.hidden then
        hidden := 'the transactions of other sessions cannot be seen';
        return;
    end if;
    blame := seen.blame;
    if exists (
        select from pg_locks l
        where l.pid is null and l.locktype = 'relation' and l.mode = 'RowExclusiveLock'
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.relation = any (tidemark.relation_tree(source_horizon.relation)))
    then
        held := coalesce((
            select string_agg(format('prepared transaction "%s" of %s, for %s', p.gid, p.owner,
                                     date_trunc('second', clock - p.prepared)), '; ')
            from pg_prepared_xacts p where p.database = current_database()), 'a prepared transaction');
    end if;
    horizon := seen.oldest - margin;
end
$$;
ALTER FUNCTION tidemark.source_horizon(definition tidemark.source, relation regclass, OUT horizon timestamp with time zone, OUT held text, OUT hidden text, OUT blame text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_horizon(definition tidemark.source, relation regclass, OUT horizon timestamp with time zone, OUT held text, OUT hidden text, OUT blame text) IS 'Up to where (exclusive) the rows of a source are complete for the statements after this one: the clock, or the start of the oldest transaction of this database, less the margin. blame: who keeps it back by more than 10 s. held: a prepared transaction has the table. hidden: other sessions'' transactions cannot be seen. For the safety declared the clock less the margin.';
CREATE FUNCTION tidemark.source_misread(plan tidemark.source_plan, kind text, detail text) RETURNS tidemark.source_plan
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if kind not in ('source_changed', 'source_misconfigured', 'cursor_watermark_regression') then
        raise exception using errcode = 'TM005', message = format('a worker cannot report "%s"', source_misread.kind);
    end if;
    return tidemark.source_hold(source_misread.plan, source_misread.kind, source_misread.detail);
end
$$;
ALTER FUNCTION tidemark.source_misread(plan tidemark.source_plan, kind text, detail text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_misread(plan tidemark.source_plan, kind text, detail text) IS 'What a worker finds out while it reads: source_changed, source_misconfigured or cursor_watermark_regression. It is held, with a finding.';
CREATE FUNCTION tidemark.source_numbering(definition tidemark.source, relation regclass) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return (
        select c.oid || '/' || c.relfilenode from pg_class c
        where c.oid = tidemark.source_sequence(source_numbering.relation, definition.id_column) and definition.safety = 'sequence');
end
$$;
ALTER FUNCTION tidemark.source_numbering(definition tidemark.source, relation regclass) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_numbering(definition tidemark.source, relation regclass) IS 'Which sequence numbers the rows of a source with the safety sequence, and since when: another text after truncate … restart identity or alter sequence. Not after setval. Null: another safety, or no sequence.';
CREATE FUNCTION tidemark.source_numbers(plan tidemark.source_plan, page tidemark.source_page, cursor tidemark.worker_cursor) RETURNS tidemark.worker_cursor
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    c tidemark.worker_cursor := cursor;
    mark constant bigint := c.watermark_id::bigint;
    reached constant bigint := greatest(mark, page.last_id::bigint);
    passed constant int8multirange := int8multirange(int8range(mark + 1, reached + 1));
    seen int8multirange := passed;
begin
    if reached - mark > page.examined - page.late or page.late > 0 then
        select coalesce(range_agg(int8range(n, n + 1)), '{}') into seen from unnest(page.numbers) n;
    end if;
    -- A full page of late rows has not looked at all the holes.
    c.fenced := case when plan.fence_closed and page.late < plan.rows_limit then '{}' else c.fenced - seen end;
    c.holes := c.holes - seen + (passed - seen);
    if isempty(c.fenced) then
        c.fenced := c.holes;
        c.holes := '{}';
        -- After the read, in a later statement: whoever began in between is in it.
        c.fence := case when isempty(c.fenced) then '{}' else tidemark.fence_now(tidemark.source_fence(plan.source)) end;
    end if;
    if (plan.source).safety = 'sequence' and (plan.source).timestamp_column is not null then
        -- The last ones that were read, for tidemark.source_restarted.
        c.metadata := c.metadata || jsonb_build_object('below', (
            select coalesce(jsonb_object_agg(b.id, b.at), '{}') from (
                select k.key::bigint as id, k.value as at from jsonb_each(coalesce(c.metadata -> 'below', '{}')) k
                union all
                select r.n, to_jsonb(r.at) from unnest(page.numbers, page.times) r (n, at) where r.at is not null
                order by 1 desc limit 16) b));
    end if;
    c.watermark_id := reached;
    c.watermark_ts := greatest(c.watermark_ts, page.last_ts);
    return c;
end
$$;
ALTER FUNCTION tidemark.source_numbers(plan tidemark.source_plan, page tidemark.source_page, cursor tidemark.worker_cursor) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_numbers(plan tidemark.source_plan, page tidemark.source_page, cursor tidemark.worker_cursor) IS 'The cursor of a source with the safety sequence behind a page: watermark, and the numbers below it that had not shown up.';
CREATE FUNCTION tidemark.source_odd(definition tidemark.source) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    select format('select true from (
    (select from %1$s tidemark_row where %2$s is null limit 1)
    union all (select from %1$s tidemark_row where %2$s = ''-infinity'' limit 1)
    union all (select from %1$s tidemark_row where %2$s = ''infinity'' limit 1)) x limit 1',
        format('%I.%I', source_odd.definition.schema_name, source_odd.definition.table_name),
        format('tidemark_row.%I', source_odd.definition.timestamp_column))
$_$;
ALTER FUNCTION tidemark.source_odd(definition tidemark.source) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_odd(definition tidemark.source) IS 'The statement that says (true, or no row) whether a source has rows without a usable timestamp, which only a sweep reads.';
CREATE FUNCTION tidemark.source_open(worker text, source text, shard integer, epoch bigint, page integer, lease interval, OUT status text, OUT detail text, OUT plan text, OUT read text, OUT items jsonb) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    next tidemark.source_plan := tidemark.source_plan(source_open.worker, source_open.source, source_open.shard, source_open.epoch,
                                                      source_open.page, source_open.lease);
    got tidemark.source_page;
    problem text;
    kind text;
begin
    if next.status = 'go' then
        if row_security_active(next.relation) then
            next := tidemark.source_misread(next, 'source_changed', format('row security of %s hides rows from %s', next.relation::regclass, current_user));
        else
            problem := tidemark.source_restarted(next);
            if problem is not null then
                next := tidemark.source_misread(next, 'source_changed', problem);
                problem := null;
            end if;
        end if;
    end if;
    status := next.status;
    detail := next.detail;
    if status <> 'go' then
        perform tidemark.source_rest(next);
        return;
    end if;
    begin
        next.rows_limit := tidemark.source_budget(next);
        got := tidemark.source_read(next, 'rows');
        problem := case when next.step = 'forward' and (next.source).safety = 'sequence' then tidemark.source_behind(next.source, next.relation, got.last_id::bigint) end;
        kind := 'source_changed';
    exception
        when undefined_table or undefined_column or undefined_function or feature_not_supported or insufficient_privilege
          or datatype_mismatch or syntax_error then
            get stacked diagnostics problem = message_text;
            kind := 'source_misconfigured';
    end;
    if problem is not null then
        next := tidemark.source_misread(next, kind, problem);
        status := next.status;
        detail := next.detail;
        perform tidemark.source_rest(next);
        return;
    end if;
    items := got.result;
    got.result := null;
    plan := next;
    read := got;
end
$$;
ALTER FUNCTION tidemark.source_open(worker text, source text, shard integer, epoch bigint, page integer, lease interval, OUT status text, OUT detail text, OUT plan text, OUT read text, OUT items jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_open(worker text, source text, shard integer, epoch bigint, page integer, lease interval, OUT status text, OUT detail text, OUT plan text, OUT read text, OUT items jsonb) IS 'The first half of a pass over a source by a Go program: the page as items [{"id", "ts", "row"}], and plan and read for tidemark.source_close in the same transaction. status other than go: why there is none. Raises TM011.';
CREATE FUNCTION tidemark.source_pass(worker text, source text, shard integer, epoch bigint, page integer DEFAULT NULL::integer, too_long text DEFAULT NULL::text, lease interval DEFAULT NULL::interval) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    began constant timestamptz := clock_timestamp();
    plan tidemark.source_plan;
    act text;
    read tidemark.source_page;
    failed tidemark.failed_row[] := '{}';
    splits integer := 0;
    problem text;
    gate text;
    code text;
    message text;
    kind text;
begin
    plan := tidemark.source_plan(source_pass.worker, source_pass.source, source_pass.shard, source_pass.epoch, source_pass.page,
                                 source_pass.lease);
    if plan.status <> 'go' then
        return tidemark.source_rest(plan);
    end if;
    if row_security_active(plan.relation) then
        return tidemark.source_rest(tidemark.source_misread(plan, 'source_changed',
            format('row security of %s hides rows from %s', plan.relation::regclass, current_user)));
    end if;
    problem := tidemark.source_restarted(plan);
    if problem is not null then
        return tidemark.source_rest(tidemark.source_misread(plan, 'source_changed', problem));
    end if;
    if (plan.cursor).phase = 'seeding' then
        -- The rows of a first sweep can all be read again: what a crash takes back it takes back whole, effects and
        -- cursor, so that nothing waits for the disk page by page.
        perform set_config('synchronous_commit', 'off', true);
    end if;
    act := coalesce(plan.call, (plan.worker).handler);
    if act = 'go' then
        raise exception using errcode = 'TM005', message = format('worker %s belongs to a Go program and is not run from here', source_pass.worker),
            hint = 'Start the program.';
    end if;
    begin
        begin
            plan.rows_limit := tidemark.source_budget(plan);
            if too_long is null then
                read := tidemark.source_read(plan, act);
            end if;
        exception when others or assert_failure then
            get stacked diagnostics code = returned_sqlstate, message = message_text;
            if tidemark.is_transient(code) then
                raise;
            end if;
            splits := 1;
        end;
        if read is null then
            -- Halves of the page, down to the row that is at fault. What is read now is the page: of the first try
            -- nothing has remained.
            read := tidemark.source_read(plan, 'ids');
            select s.failed, splits + s.splits, s.result into failed, splits, read.result
            from tidemark.source_split(plan, act, array(select jsonb_array_elements_text(read.result)), too_long) s;
        end if;
        if plan.step = 'forward' and (plan.source).safety = 'sequence' then
            problem := tidemark.source_behind(plan.source, plan.relation, read.last_id::bigint);
            if problem is not null then
                -- The rows were handed over: that has to be taken back.
                raise exception using errcode = 'TM012', message = problem, constraint = 'source_changed';
            end if;
        end if;
        -- The last look at the gates comes after the last effect.
        gate := tidemark.closed_gate(source_pass.worker);
        if gate is not null then
            raise exception using errcode = 'TM009', message = gate;
        end if;
        return tidemark.source_settle(plan, source_pass.epoch, read, failed, splits, began, tidemark.source_recount(plan, read));
    exception
        when sqlstate 'TM009' then
            get stacked diagnostics gate = message_text;
            plan.status := 'closed';
            plan.detail := gate;
            return tidemark.source_rest(plan);
        when sqlstate 'TM012' then
            get stacked diagnostics message = message_text, kind = constraint_name;
            return tidemark.source_rest(tidemark.source_misread(plan, coalesce(nullif(kind, ''), 'cursor_watermark_regression'), message));
        when undefined_table or undefined_column or undefined_function or feature_not_supported or insufficient_privilege or datatype_mismatch or syntax_error
          or sqlstate 'TM001' then
            -- Not a row's fault: whoever has changed the table, the function or the rights must put it right.
            get stacked diagnostics message = message_text;
            return tidemark.source_rest(tidemark.source_misread(plan, 'source_misconfigured', message));
    end;
end
$$;
ALTER FUNCTION tidemark.source_pass(worker text, source text, shard integer, epoch bigint, page integer, too_long text, lease interval) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_pass(worker text, source text, shard integer, epoch bigint, page integer, too_long text, lease interval) IS 'A pass over a source by the owner of the lease epoch, as a transaction of its own: reads a page, hands it to the handler, records what came of it and moves the cursor. page: rows at most (null: the worker''s page_size). too_long: the page is not handed over; its rows have failed with this message. lease: how long it is to last from now on (null: as it is). Returns what tidemark.worker_run returns. Raises TM011.';
CREATE FUNCTION tidemark.source_place(at timestamp with time zone, id text) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    -- Not by the text of a timestamp, which depends on the session.
    select concat_ws(' ', case when isfinite(source_place.at) then (extract(epoch from source_place.at) * 1000000)::bigint::text end, coalesce(source_place.id, '-'))
$$;
ALTER FUNCTION tidemark.source_place(at timestamp with time zone, id text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_place(at timestamp with time zone, id text) IS 'A watermark as one text, for comparing.';
CREATE FUNCTION tidemark.source_plan(worker text, source text, shard integer, epoch bigint, page integer, lease interval) RETURNS tidemark.source_plan
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    p tidemark.source_plan;
    w tidemark.worker;
    s tidemark.source;
    c tidemark.worker_cursor;
    fit record;
    bound record;
    back interval;
begin
    perform tidemark.lease_check(source_plan.worker, source_plan.epoch, source_plan.source, source_plan.shard);
    if source_plan.lease is not null then
        update tidemark.heartbeat h set lease_until = clock_timestamp() + source_plan.lease
        where h.executor_id = tidemark.executor_id(source_plan.worker, source_plan.source, source_plan.shard);
    end if;
    select x.* into w from tidemark.worker x where x.worker = source_plan.worker;
    select x.* into s from tidemark.source x where x.source = source_plan.source;
    select x.* into c from tidemark.worker_cursor x
    where x.worker = source_plan.worker and x.source = source_plan.source and x.shard = source_plan.shard;
    p.worker := w; p.source := s; p.cursor := c;
    p.sweep := c.sweep;
    p.rows_limit := least(coalesce(source_plan.page, w.page_size), 50000);
    p.detail := tidemark.closed_gate(source_plan.worker);
    if p.detail is not null then
        p.status := 'closed';
        return p;
    end if;
    p.detail := tidemark.source_throttle(w, c);
    if p.detail is not null then
        p.status := 'throttled';
        return p;
    end if;
    if w.coalesce_window is not null and c.last_run_at > clock_timestamp() - w.coalesce_window
        and not coalesce((c.last_run_summary ->> 'more')::boolean, false) then
        p.status := 'waiting';
        p.detail := format('changes are gathered for %s', w.coalesce_window);
        return p;
    end if;
    fit := tidemark.source_problem(w, s, c);
    if fit.problem is not null then
        return tidemark.source_hold(p, fit.finding, fit.problem);
    end if;
    p.relation := fit.relation;
    p.call := fit.call;
    -- Whoever edits a watermark by hand skips rows, or handles them twice, and leaves no trace of it.
    if c.decided_through is distinct from tidemark.source_place(c.watermark_ts, c.watermark_id) then
        return tidemark.source_hold(p, 'cursor_watermark_regression',
            format('the watermark is %s, and was left at %s: it was edited by hand, or restored. Accept a place with tidemark.source_rewind',
                   tidemark.source_place(c.watermark_ts, c.watermark_id), c.decided_through));
    end if;
    if s.safety in ('sequence', 'capture') then
        p.fence_closed := isempty(c.fenced) or tidemark.fence_closed(c.fence, tidemark.source_fence(s));
    else
        bound := tidemark.source_horizon(s, p.relation);
        if bound.hidden is not null then
            return tidemark.source_hold(p, 'source_unreadable', bound.hidden || ': as superuser, grant pg_read_all_stats to tidemark_owner, and leave track_activities on');
        elsif bound.held is not null then
            p.status := 'waiting';
            p.detail := 'kept by ' || bound.held;
            return p;
        end if;
        -- A step of less than the margin is harmless: what is written then is still behind the horizon.
        back := c.horizon - clock_timestamp();
        if back > coalesce(s.sweep_window, interval '0') and not c.metadata ? 'clock_back' then
            update tidemark.worker_cursor x
            set metadata = x.metadata || jsonb_build_object('clock_back', clock_timestamp())
            where x.worker = c.worker and x.source = c.source and x.shard = c.shard
            returning x.metadata into c.metadata;
        end if;
        if c.metadata ? 'clock_back' then
            return tidemark.source_hold(p, 'source_clock_back', format(
                'the clock of the server stepped back to %s, behind the horizon of an earlier pass: rows written since may lie behind the '
                'watermark. Rewind to that time with tidemark.source_rewind, or accept the place as it is', c.metadata ->> 'clock_back'));
        elsif back > interval '0' then
            return tidemark.source_hold(p, 'source_clock_back', 'the clock of the server stepped back: the sweep will find what is written meanwhile');
        end if;
        p.horizon := bound.horizon;
        p.detail := bound.blame;
    end if;
    p.status := 'go';
    p.step := case
        when c.last_run_summary ->> 'step' is distinct from 'retry' and exists (
            select from tidemark.pending_row q
            where q.worker_id = w.id and q.source = s.source and q.shard = c.shard and q.next_attempt_at <= clock_timestamp())
            then 'retry'
        when s.safety in ('clock', 'declared') and c.phase <> 'seeding' and c.last_run_summary ->> 'step' = 'forward'
            and (c.sweep ? 'next_xmin' or coalesce((c.sweep ->> 'done_at')::timestamptz, '-infinity') < clock_timestamp() - s.sweep_every)
            then 'sweep'
        else 'forward' end;
    if p.step = 'sweep' and not p.sweep ? 'next_xmin' then
        -- Taken before its first read: rows of transactions below it are visible to every read of this sweep.
        p.sweep := p.sweep || jsonb_build_object('next_xmin', pg_snapshot_xmin(pg_current_snapshot())::text, 'next_mark', c.watermark_ts, 'segment', 'null');
    end if;
    return p;
end
$$;
ALTER FUNCTION tidemark.source_plan(worker text, source text, shard integer, epoch bigint, page integer, lease interval) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_plan(worker text, source text, shard integer, epoch bigint, page integer, lease interval) IS 'What the owner of the lease epoch is to do next with a source, at most page rows of it (null: the worker''s page_size). Renews the lease, where one is given. Where the worker must not go on it opens a finding. Raises TM011.';
CREATE FUNCTION tidemark.source_problem(worker tidemark.worker, source tidemark.source, cursor tidemark.worker_cursor, OUT relation regclass, OUT call text, OUT finding text, OUT problem text) RETURNS record
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    shape constant record := tidemark.source_shape(source);
begin
    finding := 'source_changed';
    problem := coalesce(shape.problem, case
        when shape.id_type <> source.id_type then format('column %I is %s now, not %s', source.id_column, shape.id_type, source.id_type)
        when shape.id_collate_c <> source.id_collate_c then format('the collation of column %I has changed', source.id_column)
        when shape.timestamp_type <> source.timestamp_type
            then format('column %I is %s now, not %s', source.timestamp_column, shape.timestamp_type, source.timestamp_type)
        when cursor.metadata ->> 'home' <> tidemark.source_home(shape.relation)
            then 'the table is another one than that which was read: dropped and made anew, or in a database that was restored. '
                 'Accept the place, or rewind, with tidemark.source_rewind'
        when source.safety = 'sequence' and cursor.metadata ->> 'numbering' is distinct from tidemark.source_numbering(source, shape.relation)
            then format('the sequence of %I was restarted (truncate … restart identity, alter … restart), altered or replaced: numbers at or '
                 'below the watermark %s may be given out again, and would be passed over. Read from where they begin again: '
                 'tidemark worker rewind %s --source %s --to-id N; or go on, where only its options were altered: --accept',
                 source.id_column, cursor.watermark_id, cursor.worker, cursor.source) end);
    if problem is not null then
        return;
    end if;
    relation := shape.relation;
    finding := 'source_misconfigured';
    select h.call, h.problem into call, problem from tidemark.source_handler(worker, relation) h;
end
$$;
ALTER FUNCTION tidemark.source_problem(worker tidemark.worker, source tidemark.source, cursor tidemark.worker_cursor, OUT relation regclass, OUT call text, OUT finding text, OUT problem text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_problem(worker tidemark.worker, source tidemark.source, cursor tidemark.worker_cursor, OUT relation regclass, OUT call text, OUT finding text, OUT problem text) IS 'What keeps a worker from reading a source, and the kind of its finding: the table is not what it was, or the worker''s handler cannot be called. problem null: nothing; then relation is the table and call calls the handler.';
CREATE FUNCTION tidemark.source_query(definition tidemark.source, shards integer, step text, act text, coalesced boolean DEFAULT false) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    rel text := format('%I.%I', definition.schema_name, definition.table_name);
    -- The row, also where a column has our name for it.
    whole constant text := case when act like E'\x02%' then split_part(act, E'\x02', 3) else '(tidemark_row.*)::' || rel end;
    -- Always qualified: a bare name in ORDER BY would be the output column of that name, in another type.
    id_ constant text := format('tidemark_row.%I', definition.id_column);
    id text := id_ || case when definition.id_collate_c then ' collate "C"' else '' end;
    ts constant text := 'tidemark_row.' || quote_ident(definition.timestamp_column);
    zone constant text := coalesce(' at time zone ' || quote_literal(definition.time_zone), '');
    after_ts constant text := '($1' || zone || ')';
    after_id constant text := '$2::' || definition.id_type;
    numbered constant boolean := definition.safety in ('sequence', 'capture');
    segment constant boolean := step in ('null', '-infinity', 'infinity');
    sweeping constant boolean := segment or step = 'sweep';
    swept constant boolean := definition.sweep_window is not null;
    together constant boolean := coalesced and step not in ('ids', 'retry');
    -- A row carries 32 bits of its transaction's number. Those that can be seen are below the snapshot's end.
    bound constant text := '(select pg_snapshot_xmax(pg_current_snapshot())::text::bigint)';
    wide constant text := format('(%s & -4294967296 | tidemark_row.xmin::text::bigint)', bound);
    fits constant text := tidemark.source_fits(definition, shards, '$6');
    forwards constant text := case when definition.safety in ('sequence', 'capture') then 'e.pos'
        else 'e.ts, e.id' || case when definition.id_collate_c then ' collate "C"' else '' end end;
    backwards constant text := replace(forwards, ',', ' desc,') || ' desc';
    columns text;
    page text;
    fresh text := 'e.fits';
    noted text;
begin
    columns := format('%s as r, %s as id, %s as ts, %s as fits, %s as xid, %s as g, %s as pos', whole, id_,
        coalesce('(' || ts || zone || ')', 'null::timestamptz'), fits,
        case when sweeping or swept and step = 'forward' then format('case when %1$s >= %2$s then %1$s - 4294967296 else %1$s end', wide, bound)
             else 'null::bigint' end,
        case when together then format('row(%s)', (select string_agg(format('tidemark_row.%I', g), ', ') from unnest(definition.group_key) g))
             else 'null' end, case when definition.safety = 'sequence' then id_ || '::bigint' else id_ end);
    if definition.safety = 'capture' and step = 'forward' then
        -- The log says which rows there are to read; by id, since they are spread over the table. A row that is gone by
        -- now is passed over.
        columns := 'x.r, x.id, x.ts, coalesce(x.fits, false) as fits, null::bigint as xid, x.g, o.seq as pos';
        rel := format('tidemark.outbox o left join lateral (
        select %s from %s tidemark_row
        where %s = (case when o.subject_table = %L and o.payload ->> ''operation'' = ''insert'' then o.subject_ref end)::%s limit 1) x on true',
            format('%s as r, %s as id, %s as ts, %s as fits, %s as g', whole, id_, coalesce('(' || ts || zone || ')', 'null::timestamptz'), fits,
                case when together then format('row(%s)', (select string_agg(format('tidemark_row.%I', g), ', ') from unnest(definition.group_key) g)) else 'null' end),
            rel, id_, rel, definition.id_type);
        id := 'o.seq';
    elsif step <> 'retry' then
        rel := rel || ' tidemark_row';
    end if;
    page := case
        when step = 'forward' and numbered then format(
            'with late as materialized (
    select x.* from unnest($8::int8multirange) hole (span) cross join lateral (
        select %1$s from %2$s where %3$s >= lower(hole.span) and %3$s < upper(hole.span) order by %3$s limit $4) x
    order by x.pos limit $4)
select l.*, true as late from late l
union all
select x.*, false from (
    select %1$s from %2$s where %3$s > $2::bigint order by %3$s limit greatest(0, $4 - (select count(*) from late))) x',
            columns, rel, id)
        when step = 'forward' then format(
            'select %s, false as late from %s where (%s, %s) > (%s, %s) and %3$s < ($3%7$s)%8$s order by %3$s, %4$s limit $4',
            columns, rel, ts, id, after_ts, after_id, zone,
            -- A local time that comes twice, when summer ends, may be the second one: it waits until that is over too.
            case when zone <> '' then format(' and (%s%s) < $3', ts, zone) else '' end)
        when step = 'sweep' then format(
            'select %s, false as late from %s where (%s, %s) > (%s, %s) and (%3$s, %4$s) <= (($9%7$s), $10::%8$s) order by %3$s, %4$s limit $4',
            columns, rel, ts, id, after_ts, after_id, zone, definition.id_type)
        when segment then format(
            'select %s, false as late from %s where %s and ($2 is null or %s > %s) order by %s, %4$s limit $4',
            columns, rel, case step when 'null' then ts || ' is null' else format('%s = %L', ts, step) end, id, after_id, ts)
        when step = 'ids' then format(
            'select %s, false as late from %s where %s = any ($5::%s[]) order by %s',
            columns, rel, id_, definition.id_type, concat_ws(', ', ts, id))
        when step = 'retry' then format(
            'select coalesce(t.r, jsonb_populate_record(null::%2$s, p.snapshot)) as r, p.item_id as id, p.item_ts as ts, true as fits,
    null::bigint as xid, null as g, p.item_id as pos, false as late
from tidemark.source_due($11, %4$L, $6, $4) p
left join lateral (select %5$s as r from %2$s tidemark_row where %3$s = p.item_id::%1$s) t on true
where $5::text[] is null or p.item_id = any ($5) order by p.item_ts, p.item_id',
            definition.id_type, rel, id_, definition.source, whole)
        end;
    if sweeping then
        fresh := format('e.fits and e.xid >= $7 and not exists (
    select from tidemark.source_ledger l where l.worker_id = $11 and l.source = %L and l.shard = $6 and l.item_id = e.id::text)', definition.source);
    end if;
    page := format('select e.*, %s as fresh from (%s) e', fresh, page);
    page := format('select e.*, e.fresh%s as takes from (%s) e',
        case when together then ' and row_number() over (partition by e.fresh, e.g order by ' || backwards || ') = 1' else '' end, page);
    if together then
        page := page || ' order by ' || forwards;
    end if;
    if act like E'\x02%' then
        return format('select (count(*) filter (where b.bytes <= %s))::integer, count(*)::integer
from (select sum(e.r) over (rows between unbounded preceding and current row) as bytes from (%s) e) b', split_part(act, E'\x02', 2), page);
    end if;
    noted := case when sweeping or swept and step = 'forward' then 'filter (where e.fresh and e.xid >= $12)' end;
    return format('with e as %s(%s)
select count(*)::integer, (count(*) filter (where e.takes))::integer, (count(*) filter (where e.fresh))::integer, max(e.ts),
    (array_agg(e.pos))[count(*)::integer]::text, (count(*) filter (where e.late))::integer, %s, %s, %s, %s, %s, %s from e',
        case when sweeping then 'materialized ' else '' end, page,
        case when step = 'forward' and numbered then 'array_agg(e.pos)' else 'null::bigint[]' end,
        case act
            when 'ids' then 'to_jsonb(array_agg(e.id::text) filter (where e.takes))'
            when 'rows' then 'jsonb_agg(jsonb_build_object(''id'', e.id::text, ''ts'', case when e.ts >= ''0001-01-02'' and e.ts < ''9999-12-31'' then to_char(e.ts at time zone ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS.US"Z"'') end, ''row'', to_jsonb(e.r))) filter (where e.takes)'
            when 'emit' then format('tidemark.source_emit($11, %L, jsonb_agg(jsonb_build_object(''id'', e.id::text, ''ts'', case when e.ts >= ''0001-01-02'' and e.ts < ''9999-12-31'' then to_char(e.ts at time zone ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS.US"Z"'') end, ''row'', to_jsonb(e.r))) filter (where e.takes))', definition.source)
            else 'case when count(*) filter (where e.takes) > 0 then ' || replace(act, E'\x01', 'array_agg(e.r) filter (where e.takes)') || ' end' end,
        case when step in ('retry', 'ids') then 'array_agg(e.id::text)' when noted is not null then 'array_agg(e.id::text) ' || noted else 'null::text[]' end,
        case when noted is not null then 'array_agg(e.xid::text) ' || noted else 'null::text[]' end,
        case when swept and step in ('forward', 'sweep') then format(
            '(select jsonb_object_agg(b.at, b.n) from (select date_bin(%L, f.ts, %L) as at, count(*) as n from e f where f.fresh group by 1) b)',
            definition.bucket, '2000-01-01 00:00:00+00') else 'null::jsonb' end,
        case when step = 'forward' and definition.safety = 'sequence' and definition.timestamp_column is not null then 'array_agg(e.ts)'
             else 'null::timestamptz[]' end);
end
$_$;
ALTER FUNCTION tidemark.source_query(definition tidemark.source, shards integer, step text, act text, coalesced boolean) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_query(definition tidemark.source, shards integer, step text, act text, coalesced boolean) IS 'The statement that reads a page of a source and hands it on: step forward, sweep, null, -infinity, infinity (rows without a usable timestamp, by id), ids or retry; act: the call of an SQL function (its argument left open by tidemark.source_handler), emit, rows (as JSON), ids, or, between two characters 2 and behind them, a number of bytes and the size of a row: how many rows of the page fit, and how many there are. Yields the columns of a tidemark.source_page. Every name is quoted; values are parameters.';
CREATE FUNCTION tidemark.source_read(plan tidemark.source_plan, act text, ids text[] DEFAULT NULL::text[]) RETURNS tidemark.source_page
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    s constant tidemark.source := plan.source;
    c constant tidemark.worker_cursor := plan.cursor;
    step constant text := case
        when plan.step = 'retry' then 'retry'
        when source_read.ids is not null then 'ids'
        when plan.step = 'sweep' then case plan.sweep ->> 'segment' when 'window' then 'sweep' else plan.sweep ->> 'segment' end
        else plan.step end;
    from_ts timestamptz := c.watermark_ts;
    from_id text := c.watermark_id;
    rows_limit integer := plan.rows_limit;
    page tidemark.source_page;
    deferred text;
begin
    if plan.step = 'sweep' then
        from_id := plan.sweep ->> 'id';
        from_ts := coalesce((plan.sweep ->> 'ts')::timestamptz,
            -- What came since the last sweep may lie so far behind the watermark of then.
            (plan.sweep ->> 'mark')::timestamptz - s.sweep_window, '-infinity');
    elsif s.safety in ('sequence', 'capture') and not plan.fence_closed
        and (select count(*) from unnest(c.holes + c.fenced)) >= (plan.worker).hole_limit then
        -- No further: too many numbers below are open. What has appeared of them is still read.
        from_id := '9223372036854775807';
    end if;
    perform set_config('search_path', tidemark.default_search_path(), true);
    execute tidemark.source_query(s, (plan.worker).shards, step, act, (plan.worker).coalesce_window is not null and cardinality(s.group_key) > 0)
    into page
    using coalesce(from_ts, '-infinity'), from_id, plan.horizon, rows_limit, source_read.ids, c.shard,
          case when step = 'sweep' then coalesce((plan.sweep ->> 'xmin')::bigint, 0) else coalesce((plan.sweep ->> 'segment_xmin')::bigint, 0) end,
          c.holes + c.fenced, c.watermark_ts, c.watermark_id, (plan.worker).id,
          case when plan.step = 'sweep' then (plan.sweep ->> 'next_xmin')::bigint else coalesce((plan.sweep ->> 'xmin')::bigint, 0) end;
    perform set_config('search_path', 'pg_catalog, pg_temp', true);
    if act not in ('ids', 'rows') then
        -- What a handler has deferred to the commit would fail there: nobody could tell for which row.
        deferred := tidemark.deferred_constraints();
        if deferred is not null then
            execute 'set constraints ' || deferred || ' immediate';
            execute 'set constraints ' || deferred || ' deferred';
        end if;
    end if;
    return page;
end
$$;
ALTER FUNCTION tidemark.source_read(plan tidemark.source_plan, act text, ids text[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_read(plan tidemark.source_plan, act text, ids text[]) IS 'Reads the page that the plan names, and in the same statement hands it on: act as in tidemark.source_query. With ids only these rows of it.';
CREATE FUNCTION tidemark.source_recount(plan tidemark.source_plan, page tidemark.source_page) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    s constant tidemark.source := plan.source;
    c constant tidemark.worker_cursor := plan.cursor;
    origin constant timestamptz := '2000-01-01 00:00:00+00';
    ts constant text := format('(tidemark_row.%I%s)', coalesce(s.timestamp_column, s.id_column), coalesce(' at time zone ' || quote_literal(s.time_zone), ''));
    rel constant text := format('%I.%I', s.schema_name, s.table_name);
    groups double precision;
    first timestamptz;
    upto timestamptz;
    counts jsonb;
    told jsonb;
begin
    if (plan.worker).storm_fraction is not null and (plan.worker).coalesce_window is not null then
        -- As many groups as the planner knows of: to count them would cost more than the storm.
        select max(case when t.n_distinct < 0 then -t.n_distinct * r.reltuples else t.n_distinct end) into groups
        from pg_stats t join pg_class r on r.oid = plan.relation
        where t.schemaname = s.schema_name and t.tablename = s.table_name and t.attname = any (s.group_key);
        told := jsonb_build_object('groups', groups);
    end if;
    if plan.step <> 'sweep' or plan.sweep ->> 'segment' <> 'window' or page.examined >= plan.rows_limit then
        return told;
    end if;
    -- At most 500 buckets at a time, and not those between two of which there is nothing.
    upto := date_bin(s.bucket, c.watermark_ts - s.sweep_window, origin);
    execute format('select min(%s) from %s tidemark_row where tidemark_row.%I >= ($1%s)', ts, rel, s.timestamp_column,
                   coalesce(' at time zone ' || quote_literal(s.time_zone), ''))
    into first using greatest(coalesce(c.verified_through, '-infinity'), '0001-01-01 00:00:00+00');
    first := date_bin(s.bucket, first, origin);
    upto := least(upto, first + 500 * s.bucket);
    if c.watermark_ts is null or first is null or upto <= coalesce(c.verified_through, '-infinity') then
        return told;
    end if;
    execute format('select jsonb_object_agg(b.at, b.n) from (
        select date_bin(%L, %s, %L) as at, count(*) as n from %s tidemark_row
        where tidemark_row.%I >= ($1%s) and tidemark_row.%5$I < ($2%6$s) and %s group by 1) b',
        s.bucket, ts, origin, rel, s.timestamp_column, coalesce(' at time zone ' || quote_literal(s.time_zone), ''),
        tidemark.source_fits(s, (plan.worker).shards, '$3'))
    into counts using coalesce(c.verified_through, first), upto, c.shard;
    return coalesce(told, '{}') || jsonb_build_object('from', coalesce(c.verified_through, first), 'upto', upto, 'counts', coalesce(counts, '{}'));
end
$_$;
ALTER FUNCTION tidemark.source_recount(plan tidemark.source_plan, page tidemark.source_page) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_recount(plan tidemark.source_plan, page tidemark.source_page) IS 'At the end of a sweep: how many rows the table has in the time buckets behind the window that were not verified yet, at most 500 of them. For a worker with a storm guard: how many groups there are, as the planner estimates it. Null: nothing.';
CREATE FUNCTION tidemark.source_remove(source text, reason text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    readers text;
begin
    if coalesce(btrim(source_remove.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a source is not removed without a reason';
    end if;
    perform set_config('tidemark.reason', source_remove.reason, true);
    -- Cursors are made under a lock of this row that does not go with this one.
    perform from tidemark.source s where s.source = source_remove.source for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no source "%s"', source_remove.source),
            hint = 'Sources: select source from tidemark.source;';
    end if;
    select string_agg(distinct c.worker, ', ') into readers from tidemark.worker_cursor c where c.source = source_remove.source;
    if readers is not null then
        raise exception using errcode = 'TM005',
            message = format('source %s is not removed: it is read by %s', source_remove.source, readers),
            hint = 'Take it from the worker first: select tidemark.worker_source_remove(''worker'', ''source'', ''why'');';
    end if;
    delete from tidemark.source s where s.source = source_remove.source;
end
$$;
ALTER FUNCTION tidemark.source_remove(source text, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_remove(source text, reason text) IS 'Removes a source that no worker has a cursor of; nothing else goes, least of all its table. Raises TM004, TM005 (no reason, or workers read it: they are named).';
CREATE FUNCTION tidemark.source_rest(plan tidemark.source_plan) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    c constant tidemark.worker_cursor := plan.cursor;
    summary constant jsonb := jsonb_build_object('worker', c.worker, 'source', c.source, 'shard', c.shard, 'status', plan.status,
        'detail', plan.detail, 'rows', 0, 'phase', c.phase, 'more', false);
begin
    update tidemark.heartbeat h set last_beat_at = clock_timestamp(), ticks_total = ticks_total + 1, last_status = plan.status
    where h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard);
    if plan.status = 'held' then
        update tidemark.worker_cursor x set last_run_at = clock_timestamp(), last_run_summary = summary
        where x.worker = c.worker and x.source = c.source and x.shard = c.shard;
    end if;
    return summary;
end
$$;
ALTER FUNCTION tidemark.source_rest(plan tidemark.source_plan) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_rest(plan tidemark.source_plan) IS 'A pass that did nothing: beats, and returns why.';
CREATE FUNCTION tidemark.source_restarted(plan tidemark.source_plan) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    s constant tidemark.source := plan.source;
    c constant tidemark.worker_cursor := plan.cursor;
    problem text;
    again text;
begin
    if plan.step <> 'forward' or s.safety <> 'sequence' then
        return null;
    end if;
    problem := tidemark.source_behind(s, plan.relation, c.watermark_id::bigint);
    if problem is null and s.timestamp_column is not null and c.metadata ? 'below' then
        execute format(
            'select tidemark_row.%1$I::text from %2$I.%3$I tidemark_row where tidemark_row.%1$I = any ($1::%4$s[])
                 and tidemark_row.%5$I%6$s is distinct from ($2 ->> tidemark_row.%1$I::text)::timestamptz limit 1',
            s.id_column, s.schema_name, s.table_name, s.id_type, s.timestamp_column, coalesce(' at time zone ' || quote_literal(s.time_zone), ''))
        into again using array(select jsonb_object_keys(c.metadata -> 'below')), c.metadata -> 'below';
        if again is not null then
            problem := format(
                'the row %s is another than that which was read, or its %I was changed: was the sequence set back (setval)? Rows at or '
                'below the watermark %s are passed over. Find the lowest number that was given out again, and read from there: '
                'tidemark worker rewind %s --source %s --to-id N; or go on: --accept', again, s.timestamp_column, c.watermark_id, c.worker, c.source);
        end if;
    end if;
    return problem;
end
$_$;
ALTER FUNCTION tidemark.source_restarted(plan tidemark.source_plan) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_restarted(plan tidemark.source_plan) IS 'Whether numbers at or below the watermark of a source with the safety sequence were, or are going to be, given out again, so that their rows would be passed over; null: nothing shows it. Ask before a page is read.';
CREATE FUNCTION tidemark.source_rewind(worker text, source text, reason text, to_ts timestamp with time zone DEFAULT NULL::timestamp with time zone, to_id text DEFAULT NULL::text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    s constant tidemark.source := (select s from tidemark.source s where s.source = source_rewind.source);
    place_ts timestamptz := source_rewind.to_ts;
    relation constant regclass := (tidemark.source_shape(s)).relation;
    home constant text := tidemark.source_home(relation);
    c tidemark.worker_cursor;
    done integer := 0;
begin
    if coalesce(btrim(source_rewind.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a cursor is not rewound without a reason';
    elsif s.safety in ('sequence', 'capture') and (source_rewind.to_ts is not null or source_rewind.to_id !~ '^-?[0-9]{1,18}$') then
        raise exception using errcode = 'TM005', message = format('source %s goes by its id alone: rewind it to a number', s.source);
    elsif s.safety not in ('sequence', 'capture') and source_rewind.to_ts is null and source_rewind.to_id is not null then
        raise exception using errcode = 'TM005', message = format('source %s goes by its timestamp: rewind it to a time', s.source);
    end if;
    if s.sweep_window is not null and isfinite(place_ts) then
        -- Rows are counted by whole buckets.
        place_ts := date_bin(s.bucket, place_ts, '2000-01-01 00:00:00+00');
    end if;
    -- Whoever is in the middle of a pass read what it settles from the old place.
    update tidemark.heartbeat h set lease_epoch = lease_epoch + 1, lease_until = null, lease_owner = null
    from tidemark.worker_cursor x
    where x.worker = source_rewind.worker and x.source = source_rewind.source
      and h.executor_id = tidemark.executor_id(x.worker, x.source, x.shard);
    for c in
        select x.* from tidemark.worker_cursor x
        where x.worker = source_rewind.worker and x.source = source_rewind.source order by x.shard for update
    loop
        done := done + 1;
        if s.safety in ('sequence', 'capture') and source_rewind.to_id::bigint > c.watermark_id::bigint or place_ts > c.watermark_ts then
            raise exception using errcode = 'TM005',
                message = format('worker %s, source %s, shard %s is at %s: it can be rewound, not moved forwards to %s', c.worker, c.source,
                                 c.shard, coalesce(c.watermark_ts::text, c.watermark_id), coalesce(source_rewind.to_ts::text, to_id));
        end if;
        if s.safety in ('sequence', 'capture') and to_id is not null then
            c.watermark_id := source_rewind.to_id;
            c.holes := c.holes * int8multirange(int8range(null, to_id::bigint + 1));
            c.fenced := c.fenced * int8multirange(int8range(null, to_id::bigint + 1));
        elsif place_ts is not null then
            -- Rows of that very moment are read again.
            c.watermark_ts := case when isfinite(place_ts) then place_ts - interval '1 microsecond' else place_ts end;
            c.watermark_id := null;
            c.verified_through := least(c.verified_through, place_ts);
            delete from tidemark.source_count k
            where k.worker_id = (select w.id from tidemark.worker w where w.worker = c.worker) and k.source = c.source and k.shard = c.shard
              and k.bucket >= place_ts;
        end if;
        c.sweep := c.sweep - 'next_xmin' - 'next_mark' - 'segment' - 'id' - 'ts';
        if c.metadata ->> 'home' is distinct from home then
            -- Its transactions were numbered elsewhere.
            c.sweep := jsonb_build_object('xmin', pg_snapshot_xmin(pg_current_snapshot())::text,
                'segment_xmin', pg_snapshot_xmin(pg_current_snapshot())::text, 'mark', c.watermark_ts);
        end if;
        update tidemark.worker_cursor x
        set watermark_ts = c.watermark_ts, watermark_id = c.watermark_id, decided_through = tidemark.source_place(c.watermark_ts, c.watermark_id),
            holes = c.holes, fenced = c.fenced, verified_through = c.verified_through, horizon = null,
            sweep = c.sweep, metadata = c.metadata - 'clock_back' - 'below'
                || jsonb_build_object('home', home, 'numbering', tidemark.source_numbering(s, relation)), updated_at = clock_timestamp()
        where x.worker = c.worker and x.source = c.source and x.shard = c.shard;
        insert into tidemark.audit (action, object, reason, before, after)
        values ('source_rewind', 'worker_cursor ' || tidemark.executor_id(c.worker, c.source, c.shard), source_rewind.reason,
                (select jsonb_build_object('place', c.decided_through)), jsonb_build_object('watermark_ts', c.watermark_ts, 'watermark_id', c.watermark_id));
    end loop;
    if done = 0 then
        raise exception using errcode = 'TM004', message = format('worker %s has no cursor of source %s', source_rewind.worker, source_rewind.source),
            hint = 'select worker, source, shard from tidemark.worker_cursor;';
    end if;
    return done;
end
$_$;
ALTER FUNCTION tidemark.source_rewind(worker text, source text, reason text, to_ts timestamp with time zone, to_id text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_rewind(worker text, source text, reason text, to_ts timestamp with time zone, to_id text) IS 'Moves a worker''s cursors of a source back: to a time (rows of that moment and later are read again; with a sweep from the beginning of its bucket), or for the safety sequence behind the number to_id. With neither it accepts the place where the cursors are, after a finding that held them. What is read again is handed over again: handlers must not mind. Waits for a pass under way. Returns how many cursors. Raises TM004, TM005.';
CREATE FUNCTION tidemark.source_sequence(relation oid, id_column text) RETURNS regclass
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
    select case
        when a.attidentity <> '' then (
            select d.objid from pg_depend d join pg_class c on c.oid = d.objid and c.relkind = 'S'
            where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass and d.refobjid = a.attrelid
              and d.refobjsubid = a.attnum and d.deptype = 'i')
        when pg_get_expr(f.adbin, f.adrelid) ~ '^nextval\(''([^'']|'''')+''::regclass\)$' then (
            select d.refobjid from pg_depend d join pg_class c on c.oid = d.refobjid and c.relkind = 'S'
            where d.classid = 'pg_attrdef'::regclass and d.objid = f.oid and d.refclassid = 'pg_class'::regclass) end
    from pg_attribute a left join pg_attrdef f on f.adrelid = a.attrelid and f.adnum = a.attnum
    where a.attrelid = source_sequence.relation and a.attname = source_sequence.id_column
$_$;
ALTER FUNCTION tidemark.source_sequence(relation oid, id_column text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_sequence(relation oid, id_column text) IS 'The sequence from which a column takes its numbers: by its identity, or by a default that is nextval and nothing else. Null: none.';
CREATE FUNCTION tidemark.source_set(source text, changes jsonb DEFAULT '{}'::jsonb, reason text DEFAULT NULL::text) RETURNS SETOF tidemark.source
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    was constant tidemark.source := (select s from tidemark.source s where s.source = source_set.source);
    definition tidemark.source := was;
    name text[];
    bad record;
begin
    perform tidemark.changes_check('source', source_set.changes - 'table', 'tidemark.source',
        array['source', 'id_type', 'id_collate_c', 'timestamp_type', 'created_at', 'created_by']);
    if definition.source is null then
        if not changes ?& array['table', 'id_column', 'safety'] and not changes ?& array['schema_name', 'table_name', 'id_column', 'safety'] then
            raise exception using errcode = 'TM005', message = format('source %s is new and needs table, id_column and safety', source_set.source),
                hint = 'select tidemark.source_set(''births'', ''{"table": "public.birth_registry", "id_column": "id", "timestamp_column": "born_at", "safety": "clock"}'');';
        end if;
        definition := jsonb_populate_record(null::tidemark.source, jsonb_build_object(
            'source', source_set.source, 'id_collate_c', false, 'key_columns', '{}'::text[], 'group_key', '{}'::text[], 'margin', '1 second', 'sweep_every', '1 minute',
            'bucket', '1 hour', 'description', '', 'created_at', clock_timestamp(), 'created_by', session_user));
    end if;
    definition := jsonb_populate_record(definition, changes - 'table');
    if changes ? 'table' then
        begin
            name := parse_ident(changes ->> 'table');
        exception when invalid_parameter_value then
            name := '{}';
        end;
        if cardinality(name) <> 2 then
            raise exception using errcode = 'TM005', message = format('table is %s, and must be schema.table', changes -> 'table'),
                hint = 'Quote what is in capitals: "Shop"."Orders".';
        end if;
        definition.schema_name := name[1];
        definition.table_name := name[2];
    end if;
    definition := tidemark.source_types(definition);
    select c."check", c.detail, c.hint into bad from tidemark.source_check(definition) c where c.status = 'fail' limit 1;
    if found then
        raise exception using errcode = 'TM005', message = format('source %s: %s', source_set.source, bad.detail), hint = bad.hint;
    end if;
    return query select * from tidemark.source_write(definition, source_set.reason);
end
$$;
ALTER FUNCTION tidemark.source_set(source text, changes jsonb, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_set(source text, changes jsonb, reason text) IS 'Makes a table a source, or changes the named columns of one ("table": "schema.table" names the table): types are read from the catalog, and what the safety cannot hold on is refused (tidemark.source_check). Returns the row. Raises TM005.';
CREATE FUNCTION tidemark.source_settle(plan tidemark.source_plan, epoch bigint, page tidemark.source_page, failed tidemark.failed_row[], splits integer, began timestamp with time zone, recount jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    s constant tidemark.source := plan.source;
    w constant tidemark.worker := plan.worker;
    c tidemark.worker_cursor;
    full_ constant boolean := page.examined >= plan.rows_limit;
    executor constant text := tidemark.executor_id(w.worker, s.source, (plan.cursor).shard);
    dead bigint;
    blocked_by text;
    more boolean;
    summary jsonb;
begin
    perform tidemark.lease_check(w.worker, source_settle.epoch, s.source, (plan.cursor).shard);
    select x.* into c from tidemark.worker_cursor x
    where x.worker = w.worker and x.source = s.source and x.shard = (plan.cursor).shard for update;
    if tidemark.source_place(c.watermark_ts, c.watermark_id) is distinct from (plan.cursor).decided_through
        or c.decided_through is distinct from (plan.cursor).decided_through
        or plan.step = 'forward' and s.safety not in ('sequence', 'capture') and page.last_ts < c.watermark_ts
    then
        raise exception using errcode = 'TM012',
            message = format('a page that ends at %s was to be settled behind the watermark %s', tidemark.source_place(page.last_ts, page.last_id), c.decided_through),
            hint = 'Nothing of it was recorded.';
    end if;
    -- Whatever held it is over, now that a pass has come through.
    if c.last_run_summary ->> 'status' = 'held' then
        update tidemark.finding f set closed_at = clock_timestamp()
        where f.subject = tidemark.executor_id(c.worker, c.source, c.shard) and f.closed_at is null
          and f.kind in ('source_changed', 'source_misconfigured', 'source_unreadable', 'source_clock_back', 'cursor_watermark_regression');
    end if;
    -- Before the end of a sweep compares them with the table.
    if page.counts is not null then
        insert into tidemark.source_count as k (worker_id, source, shard, bucket, items)
        select w.id, s.source, (plan.cursor).shard, b.key::timestamptz, b.value::bigint from jsonb_each_text(page.counts) b order by 4
        on conflict (worker_id, source, shard, bucket) do update set items = k.items + excluded.items;
    end if;
    dead := tidemark.source_failures(plan, page, failed);
    case plan.step
    when 'forward' then
        if s.safety in ('sequence', 'capture') then
            c := tidemark.source_numbers(plan, page, c);
            if not isempty(c.fenced) and (select count(*) from unnest(c.holes + c.fenced)) >= w.hole_limit then
                blocked_by := coalesce(tidemark.fence_blame(c.fence, tidemark.source_fence(s)), 'a transaction that has just ended');
            end if;
        elsif page.examined > 0 then
            c.watermark_ts := page.last_ts;
            c.watermark_id := page.last_id;
        end if;
        c.horizon := greatest(c.horizon, plan.horizon);
        if not full_ and c.phase = 'seeding' then
            c.phase := 'reconciling';
        elsif not full_ and c.phase = 'reconciling' and s.safety in ('sequence', 'capture') and isempty(c.holes + c.fenced) then
            c.phase := 'incremental';
        end if;
    when 'sweep' then
        c := tidemark.source_swept(plan, page, c, recount);
    else
    end case;
    if plan.step <> 'retry' and page.ledger_ids is not null then
        insert into tidemark.source_ledger as l (worker_id, source, shard, item_id, xid)
        select w.id, s.source, c.shard, n.id, n.xid::xid8 from unnest(page.ledger_ids, page.ledger_xids) n (id, xid)
        on conflict (worker_id, source, shard, item_id) do update set xid = excluded.xid;
    end if;
    if blocked_by is not null then
        perform tidemark.finding_open('cursor_holes', executor, 'high',
            format('the cursor waits: too many numbers below it are open, kept so by %s', blocked_by));
    elsif c.last_run_summary ? 'blocked_by' then
        perform tidemark.finding_close('cursor_holes', executor);
    end if;
    if w.storm_fraction is not null then
        if page.taken >= 10 and page.taken > w.storm_fraction * (recount ->> 'groups')::double precision then
            perform tidemark.finding_open('group_invalidation_storm', executor, 'high',
                format('%s of about %s groups changed at once, more than %s of them', page.taken, (recount ->> 'groups')::numeric::bigint, w.storm_fraction));
            c.metadata := c.metadata || jsonb_build_object('storm_until', clock_timestamp() + greatest(w.coalesce_window, interval '10 seconds'));
        elsif c.metadata ? 'storm_until' then
            c.metadata := c.metadata - 'storm_until';
            perform tidemark.finding_close('group_invalidation_storm', executor);
        end if;
    end if;
    more := full_ or plan.step = 'retry' or c.phase <> (plan.cursor).phase or c.sweep ? 'next_xmin'
        or plan.step = 'forward' and s.safety in ('clock', 'declared') and c.phase = 'reconciling';
    summary := jsonb_strip_nulls(jsonb_build_object(
        'worker', w.worker, 'source', s.source, 'shard', c.shard, 'status', 'ran', 'step', plan.step, 'rows', page.examined,
        'taken', page.taken - cardinality(failed), 'failed', cardinality(failed), 'dead_lettered', dead, 'late', page.late,
        'coalesced', page.fresh - page.taken, 'splits', splits, 'phase', c.phase, 'watermark_ts', c.watermark_ts, 'watermark_id', c.watermark_id,
        'blocked_by', blocked_by, 'held_back_by', plan.detail, 'result', page.result, 'more', more, 'started_at', began, 'ended_at', clock_timestamp()));
    update tidemark.worker_cursor x
    set watermark_ts = c.watermark_ts, watermark_id = c.watermark_id,
        decided_through = tidemark.source_place(c.watermark_ts, c.watermark_id),
        holes = c.holes, fenced = c.fenced, fence = c.fence, horizon = c.horizon, sweep = c.sweep,
        verified_through = c.verified_through, phase = c.phase, metadata = c.metadata,
        last_run_at = clock_timestamp(), last_run_summary = summary,
        events_seen = x.events_seen + case plan.step when 'retry' then 0 else page.fresh end,
        attempts_written = x.attempts_written + page.taken,
        dead_lettered = x.dead_lettered + dead, updated_at = clock_timestamp()
    where x.worker = c.worker and x.source = c.source and x.shard = c.shard;
    update tidemark.heartbeat h set last_beat_at = clock_timestamp(), ticks_total = ticks_total + 1, last_status = 'ok'
    where h.executor_id = executor;
    return summary;
end
$$;
ALTER FUNCTION tidemark.source_settle(plan tidemark.source_plan, epoch bigint, page tidemark.source_page, failed tidemark.failed_row[], splits integer, began timestamp with time zone, recount jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_settle(plan tidemark.source_plan, epoch bigint, page tidemark.source_page, failed tidemark.failed_row[], splits integer, began timestamp with time zone, recount jsonb) IS 'Records what became of a page of a source and moves the cursor, in the transaction in which it was handled. Returns the summary of the pass. Raises TM011 where the epoch is over, TM012 where the cursor would go back.';
CREATE FUNCTION tidemark.source_shape(definition tidemark.source, OUT relation regclass, OUT id_type text, OUT id_collate_c boolean, OUT timestamp_type text, OUT problem text) RETURNS record
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    missing text;
begin
    -- Not by regclass, for which a table in a schema that the caller may not enter is an error of another kind.
    select c.oid into relation from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = definition.schema_name and c.relname = definition.table_name and c.relkind in ('r', 'p');
    if relation is null then
        problem := format('there is no table %s', name);
        return;
    end if;
    select string_agg(format('%I', w.name), ', ') into missing
    from unnest(array[definition.id_column, definition.timestamp_column] || definition.key_columns || definition.group_key) w (name)
    where w.name is not null and not exists (
        select from pg_attribute a where a.attrelid = relation and a.attname = w.name and a.attnum > 0 and not a.attisdropped);
    if missing is not null then
        problem := format('table %s has no column %s', name, missing);
        return;
    end if;
    -- 0: no text; 950 and 951: "C" and "POSIX"; 100: the database's own.
    select format_type(a.atttypid, null), a.attcollation not in (0, 950, 951) and not (a.attcollation = 100 and exists (
        select from pg_database d where d.datname = current_database() and d.datcollate in ('C', 'POSIX') and d.datlocprovider = 'c'))
    into id_type, id_collate_c
    from pg_attribute a where a.attrelid = relation and a.attname = definition.id_column;
    if id_type not in ('smallint', 'integer', 'bigint', 'uuid', 'text', 'character varying', 'numeric') then
        problem := format('column %s.%I is %s: an id is smallint, integer, bigint, uuid, text, character varying or numeric',
                          name, definition.id_column, id_type);
        return;
    elsif definition.safety = 'sequence' and id_type not in ('smallint', 'integer', 'bigint') then
        problem := format('column %s.%I is %s: the safety sequence needs an integer', name, definition.id_column, id_type);
        return;
    end if;
    if definition.timestamp_column is not null then
        select format_type(a.atttypid, a.atttypmod) into timestamp_type
        from pg_attribute a where a.attrelid = relation and a.attname = definition.timestamp_column;
        if timestamp_type !~ '^timestamp(\([0-6]\))? with(out)? time zone$' then
            problem := format('column %s.%I is %s: a timestamp is timestamp with or without time zone',
                              name, definition.timestamp_column, timestamp_type);
        elsif timestamp_type ~ 'without' and definition.time_zone is null then
            problem := format('column %s.%I is without time zone: say by time_zone which one its writers mean', name, definition.timestamp_column);
        elsif timestamp_type !~ 'without' and definition.time_zone is not null then
            problem := format('column %s.%I has a time zone of its own: time_zone must be null', name, definition.timestamp_column);
        elsif definition.time_zone is not null and not exists (select from pg_timezone_names z where z.name = definition.time_zone) then
            problem := format('there is no time zone "%s"', definition.time_zone);
        end if;
    end if;
end
$_$;
ALTER FUNCTION tidemark.source_shape(definition tidemark.source, OUT relation regclass, OUT id_type text, OUT id_collate_c boolean, OUT timestamp_type text, OUT problem text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_shape(definition tidemark.source, OUT relation regclass, OUT id_type text, OUT id_collate_c boolean, OUT timestamp_type text, OUT problem text) IS 'The source''s table and the types of its columns as the catalog has them now; problem says what is missing or unfit, null: nothing.';
CREATE FUNCTION tidemark.source_split(plan tidemark.source_plan, act text, ids text[], too_long text, OUT failed tidemark.failed_row[], OUT splits integer, OUT result jsonb) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    stack integer[] := case when cardinality(ids) > 0 then array[1, cardinality(ids)] else '{}' end;
    first integer;
    last integer;
    part tidemark.source_page;
    code text;
    message text;
    culprits text[] := '{}';
    codes text[] := '{}';
    messages text[] := '{}';
begin
    splits := 0;
    if too_long is not null then
        stack := '{}';
        culprits := ids;
        codes := array_fill('57014'::text, array[cardinality(ids)]);
        messages := array_fill(too_long, array[cardinality(ids)]);
    end if;
    while cardinality(stack) > 0 loop
        first := stack[cardinality(stack) - 1];
        last := stack[cardinality(stack)];
        stack := stack[: cardinality(stack) - 2];
        begin
            part := tidemark.source_read(plan, act, ids[first : last]);
            result := tidemark.jsonb_add(result, part.result);
        exception when others or assert_failure then
            get stacked diagnostics code = returned_sqlstate, message = message_text;
            if tidemark.is_transient(code) or code in ('42P01', '42703', '42883', '0A000', '42501', '42804', '42601', 'TM001') then
                raise;
            end if;
            splits := splits + 1;
            if first = last then
                culprits := culprits || ids[first];
                codes := codes || code;
                messages := messages || message;
            else
                stack := stack || array[(first + last) / 2 + 1, last, first, (first + last) / 2];
            end if;
        end;
    end loop;
    failed := '{}';
    if cardinality(culprits) > 0 then
        part := tidemark.source_read(plan, 'rows', culprits);
        failed := array(
            select row(r ->> 'id', (r ->> 'ts')::timestamptz, r -> 'row', f.code, f.message, false, null)::tidemark.failed_row
            from jsonb_array_elements(part.result) r
            join unnest(culprits, codes, messages) f (id, code, message) on f.id = r ->> 'id');
    end if;
end
$$;
ALTER FUNCTION tidemark.source_split(plan tidemark.source_plan, act text, ids text[], too_long text, OUT failed tidemark.failed_row[], OUT splits integer, OUT result jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_split(plan tidemark.source_plan, act text, ids text[], too_long text, OUT failed tidemark.failed_row[], OUT splits integer, OUT result jsonb) IS 'Hands the rows ids of a page to the handler, all together; where that fails, their halves, down to the rows that fail alone. too_long: none is handed over, all have failed with this message. result sums what the handler returned.';
CREATE FUNCTION tidemark.source_swept(plan tidemark.source_plan, page tidemark.source_page, cursor tidemark.worker_cursor, recount jsonb) RETURNS tidemark.worker_cursor
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    c tidemark.worker_cursor := cursor;
    s constant tidemark.source := plan.source;
    executor constant text := tidemark.executor_id(c.worker, c.source, c.shard);
    next constant text := case plan.sweep ->> 'segment' when 'null' then '-infinity' when '-infinity' then 'infinity'
                                                        when 'infinity' then 'window' end;
    wrong record;
begin
    c.sweep := plan.sweep;
    if page.examined >= plan.rows_limit then
        c.sweep := c.sweep || jsonb_build_object('id', page.last_id, 'ts', page.last_ts);
        return c;
    elsif next = 'window' and s.sweep_window is not null or next <> 'window' then
        c.sweep := c.sweep - 'id' - 'ts' || jsonb_build_object('segment', next);
        return c;
    end if;
    -- Rows of transactions below next_xmin were visible to all of this sweep; nobody asks for them again.
    delete from tidemark.source_ledger l
    where l.worker_id = (plan.worker).id and l.source = s.source and l.shard = c.shard
      and l.xid < (plan.sweep ->> 'next_xmin')::xid8;
    c.sweep := jsonb_build_object('xmin', plan.sweep ->> 'next_xmin', 'segment_xmin', plan.sweep ->> 'next_xmin',
                                  'mark', plan.sweep ->> 'next_mark', 'done_at', clock_timestamp());
    if c.phase = 'reconciling' then
        c.phase := 'incremental';
    end if;
    if recount ? 'upto' then
        select b.at, b.there, b.handled into wrong
        from (
            select coalesce(k.bucket, r.at) as at, coalesce(r.there, 0) as there, coalesce(k.items, 0) as handled
            from (select t.key::timestamptz as at, t.value::bigint as there from jsonb_each_text(recount -> 'counts') t) r
            full join (
                select k.bucket, k.items from tidemark.source_count k
                where k.worker_id = (plan.worker).id and k.source = s.source and k.shard = c.shard
                  and k.bucket >= (recount ->> 'from')::timestamptz and k.bucket < (recount ->> 'upto')::timestamptz) k
            on k.bucket = r.at) b
        where b.there > b.handled
        order by b.at limit 1;
        if found then
            perform tidemark.finding_open('source_count_mismatch', executor, 'high', format(
                'from %s on for %s the table has %s rows, and %s were handled: rows appeared later than sweep_window allows. '
                'Handle them by a rewind to that time with tidemark.source_rewind', wrong.at, s.bucket, wrong.there, wrong.handled));
            c.verified_through := wrong.at;
        else
            perform tidemark.finding_close('source_count_mismatch', executor);
            c.verified_through := (recount ->> 'upto')::timestamptz;
        end if;
        delete from tidemark.source_count k
        where k.worker_id = (plan.worker).id and k.source = s.source and k.shard = c.shard and k.bucket < c.verified_through;
    end if;
    return c;
end
$$;
ALTER FUNCTION tidemark.source_swept(plan tidemark.source_plan, page tidemark.source_page, cursor tidemark.worker_cursor, recount jsonb) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_swept(plan tidemark.source_plan, page tidemark.source_page, cursor tidemark.worker_cursor, recount jsonb) IS 'The cursor behind a page of a sweep. At its end the ledger is pruned, and verified_through moves up to the first bucket in which the table has more rows than were handled.';
CREATE FUNCTION tidemark.source_throttle(worker tidemark.worker, cursor tidemark.worker_cursor) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    now_ constant timestamptz := clock_timestamp();
    at time;
    from_ time;
    to_ time;
    waiting bigint;
    lag interval;
begin
    if (cursor.metadata ->> 'storm_until')::timestamptz > now_ then
        return 'after a storm of changes, until ' || date_trunc('second', (cursor.metadata ->> 'storm_until')::timestamptz);
    end if;
    if worker.off_peak is not null and cursor.last_run_at > now_ - worker.peak_pause then
        at := (now_ at time zone split_part(worker.off_peak, ' ', 2))::time;
        from_ := split_part(split_part(worker.off_peak, ' ', 1), '-', 1)::time;
        to_ := split_part(split_part(worker.off_peak, ' ', 1), '-', 2)::time;
        if not (case when from_ <= to_ then at >= from_ and at < to_ else at >= from_ or at < to_ end) then
            return format('outside of %s it rests for %s between two passes', worker.off_peak, worker.peak_pause);
        end if;
    end if;
    if worker.lock_wait_limit is not null then
        perform pg_stat_clear_snapshot();
        select count(*) into waiting from pg_stat_activity a
        where a.datname = current_database() and a.wait_event_type = 'Lock' and a.pid <> pg_backend_pid();
        if waiting > worker.lock_wait_limit then
            return format('%s sessions wait for locks, more than %s%s', waiting, worker.lock_wait_limit, ', kept so by ' || tidemark.lock_blame());
        end if;
    end if;
    if worker.replication_lag_limit is not null then
        select max(r.replay_lag) into lag from pg_stat_replication r;
        if lag > worker.replication_lag_limit then
            return format('a standby is %s behind, more than %s', lag, worker.replication_lag_limit);
        end if;
    end if;
    return null;
end
$$;
ALTER FUNCTION tidemark.source_throttle(worker tidemark.worker, cursor tidemark.worker_cursor) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_throttle(worker tidemark.worker, cursor tidemark.worker_cursor) IS 'Why a worker of tables should wait now: a storm, the hours, locks that others wait for, standbys that are behind. Null: nothing.';
CREATE FUNCTION tidemark.source_types(definition tidemark.source) RETURNS tidemark.source
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    shape constant record := tidemark.source_shape(source_types.definition);
begin
    if shape.problem is not null then
        raise exception using errcode = 'TM005', message = format('source %s: %s', definition.source, shape.problem);
    end if;
    definition.id_type := shape.id_type;
    definition.id_collate_c := shape.id_collate_c;
    definition.timestamp_type := shape.timestamp_type;
    return definition;
end
$$;
ALTER FUNCTION tidemark.source_types(definition tidemark.source) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_types(definition tidemark.source) IS 'The source with the types that the catalog has. Raises TM005 naming the table or column that is missing or unfit.';
CREATE FUNCTION tidemark.source_write(definition tidemark.source, reason text) RETURNS SETOF tidemark.source
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    was constant tidemark.source := (select s from tidemark.source s where s.source = definition.source for update);
begin
    perform set_config('tidemark.reason', coalesce(source_write.reason, ''), true);
    if (was.schema_name, was.table_name, was.id_column, was.timestamp_column, was.safety in ('sequence', 'capture'), was.time_zone)
        is distinct from (definition.schema_name, definition.table_name, definition.id_column, definition.timestamp_column, definition.safety in ('sequence', 'capture'), definition.time_zone)
        and exists (select from tidemark.worker_cursor c where c.source = definition.source)
    then
        raise exception using errcode = 'TM005',
            message = format('source %s is read by %s: its table, columns and kind of safety are fixed', definition.source,
                (select string_agg(distinct c.worker, ', ') from tidemark.worker_cursor c where c.source = definition.source)),
            hint = 'Make another source and another cursor.';
    end if;
    if was.key_columns is distinct from definition.key_columns and exists (
        select from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker where c.source = definition.source and w.shards > 1)
    then
        raise exception using errcode = 'TM005', message = format('source %s is read in shards, by its key_columns: they are fixed', definition.source),
            hint = 'Make another source and another cursor.';
    end if;
    if definition.sweep_window is not null
        and (was.sweep_window is null, was.bucket, was.filter) is distinct from (false, definition.bucket, definition.filter)
    then
        -- What was read so far was not counted so: begin behind it.
        delete from tidemark.source_count k where k.source = definition.source;
        update tidemark.worker_cursor c
        set verified_through = greatest(c.verified_through, date_bin(definition.bucket, c.watermark_ts, '2000-01-01 00:00:00+00') + definition.bucket),
            sweep = case when was.sweep_window is null then c.sweep - 'next_xmin' - 'next_mark' - 'segment' - 'id' - 'ts'
                || jsonb_build_object('xmin', pg_snapshot_xmin(pg_current_snapshot())::text, 'mark', c.watermark_ts) else c.sweep end
        where c.source = definition.source and isfinite(c.watermark_ts);
    end if;
    return query
    insert into tidemark.source as s select definition.*
    on conflict (source) do update
    set (schema_name, table_name, id_column, id_type, id_collate_c, timestamp_column, timestamp_type, time_zone, key_columns, group_key,
         filter, safety, margin, sweep_window, sweep_every, bucket, description)
      = row(excluded.schema_name, excluded.table_name, excluded.id_column, excluded.id_type, excluded.id_collate_c, excluded.timestamp_column,
            excluded.timestamp_type, excluded.time_zone, excluded.key_columns, excluded.group_key, excluded.filter, excluded.safety,
            excluded.margin, excluded.sweep_window, excluded.sweep_every, excluded.bucket, excluded.description)
    returning s.*;
end
$$;
ALTER FUNCTION tidemark.source_write(definition tidemark.source, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.source_write(definition tidemark.source, reason text) IS 'Stores a source that tidemark.source_set has checked. Raises TM005 where a worker reads it already and its table, columns or kind of safety would change, or in shards its key_columns.';
CREATE FUNCTION tidemark.sql_target(target_ref text) RETURNS regprocedure
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    name text[];
begin
    begin
        name := parse_ident(target_ref);
    exception when invalid_parameter_value then
        return null;
    end;
    -- Not to_regprocedure, for which a function in a schema that the caller may not enter is not there: that
    -- is another mistake, and has its own error.
    return (
        select p.oid::regprocedure from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where cardinality(name) = 2 and n.nspname = name[1] and p.proname = name[2]
          and p.prokind = 'f' and p.proargtypes = array['jsonb'::regtype::oid]::oidvector);
end
$$;
ALTER FUNCTION tidemark.sql_target(target_ref text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.sql_target(target_ref text) IS 'The function that an SQL target names, schema.function taking one jsonb. Null: there is none.';
CREATE FUNCTION tidemark.stage_set(stage text, reason text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
begin
    if coalesce(stage_set.stage, '') not in ('dry_run', 'live') then
        raise exception using errcode = 'TM005',
            message = format('stage "%s" is neither dry_run nor live', coalesce(stage_set.stage, 'null')),
            hint = 'select tidemark.stage_set(''live'', ''why'');';
    end if;
    if coalesce(btrim(stage_set.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'the stage is not changed without a reason',
            hint = 'select tidemark.stage_set(''live'', ''why'');';
    end if;
    perform set_config('tidemark.reason', stage_set.reason, true);
    update tidemark.stage
    set stage = stage_set.stage, changed_at = clock_timestamp(), changed_by = session_user, reason = stage_set.reason,
        (system_identifier, database) = (
            select c.system_identifier, current_database() from pg_control_system() c
            where stage_set.stage = 'live');
    return stage_set.stage;
end
$$;
ALTER FUNCTION tidemark.stage_set(stage text, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.stage_set(stage text, reason text) IS 'Sets the stage: live (binds this cluster and database, so that routes may deliver) or dry_run. Recorded with who, when and why. Raises TM005 for another stage or an empty reason.';
CREATE FUNCTION tidemark.stale_check() RETURNS TABLE(executor_id text, state text, severity tidemark.severity, age_seconds bigint, expected_cadence_seconds integer, stale_threshold_seconds integer, last_status text, event_id uuid)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    overdue text;
    h tidemark.heartbeat_health;
    f record;
    told boolean;
    id uuid;
begin
    perform tidemark.session_check('stale_check', 'it must see what another check has told meanwhile.');
    -- A row that somebody has deleted would be silence about silence.
    insert into tidemark.silence (executor_id)
    select h.executor_id from tidemark.heartbeat h
    where not exists (select from tidemark.silence s where s.executor_id = h.executor_id)
    on conflict do nothing;
    for overdue in
        select v.executor_id from tidemark.heartbeat_health v
        where v.state = 'silent' or v.worker is not null and v.state = 'quiet' and v.last_beat_at is not null
                                    and v.age_seconds > v.stale_threshold_seconds / 2
        order by 1
    loop
        -- Of two checks at once one tells, and the other does not wait: a session that reads the result of a check at
        -- leisure, in an open transaction, holds up the telling of that executor alone, and its worker not at all. Not an
        -- advisory lock, which any login could hold. The row is there since the heartbeat is (trigger heartbeat_silence).
        perform from tidemark.silence s where s.executor_id = overdue for update skip locked;
        continue when not found;
        -- A new statement, which sees what a check committed that had the lock just before.
        select v.* into h from tidemark.heartbeat_health v where v.executor_id = overdue;
        if h.state = 'quiet' then
            -- When its gate opens, it has half its threshold at least to come back.
            update tidemark.silence s set excused_at = clock_timestamp() where s.executor_id = overdue;
        end if;
        continue when h.state is distinct from 'silent';
        update tidemark.silence s set told_at = clock_timestamp()
        where s.executor_id = overdue
          and coalesce(s.told_at <= clock_timestamp() - make_interval(secs => 2 * h.stale_threshold_seconds)
                       or s.told_at > clock_timestamp(), true);
        told := found;
        id := null;
        if told then
            id := tidemark.system_event('queue_worker_silent', h.severity, 'tidemark.heartbeat', overdue, jsonb_build_object(
                'executor_id', overdue, 'kind', h.kind, 'age_seconds', h.age_seconds,
                'expected_cadence_seconds', h.expected_cadence_seconds, 'stale_threshold_seconds', h.stale_threshold_seconds,
                'gap_ratio', round(h.age_seconds::numeric / h.expected_cadence_seconds, 1), 'last_status', h.last_status), 'alert');
        end if;
        select o.severity into f from tidemark.finding o
        where o.kind = case when h.worker is null then 'heartbeat_silent' else 'cursor_silent_gap' end
          and o.subject = overdue and o.closed_at is null;
        if told or f.severity is distinct from h.severity then
            perform tidemark.finding_open(case when h.worker is null then 'heartbeat_silent' else 'cursor_silent_gap' end, overdue, h.severity,
                format('silent for %s, a beat is expected every %s s; its last words were "%s"%s',
                       make_interval(secs => h.age_seconds), h.expected_cadence_seconds, h.last_status,
                       ', as ' || h.lease_owner));
        end if;
        return query select overdue, h.state, h.severity, h.age_seconds, h.expected_cadence_seconds, h.stale_threshold_seconds, h.last_status, id;
    end loop;
    for f in
        select o.id, o.kind, o.subject, o.severity from tidemark.finding o
        where o.closed_at is null and o.kind in ('cursor_silent_gap', 'heartbeat_silent')
          and not exists (select from tidemark.heartbeat_health v where v.executor_id = o.subject and v.state = 'silent')
        order by o.id
        for update of o skip locked
    loop
        perform tidemark.finding_close(f.kind, f.subject);
        select v.* into h from tidemark.heartbeat_health v where v.executor_id = f.subject;
        return query select f.subject, case when h.executor_id is null then 'gone' when h.state = 'quiet' then 'quiet' else 'returned' end,
                            f.severity, h.age_seconds, h.expected_cadence_seconds, h.stale_threshold_seconds, h.last_status, null::uuid;
    end loop;
end
$$;
ALTER FUNCTION tidemark.stale_check() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.stale_check() IS 'Looks for executors that have been silent for longer than their threshold, by the database''s clock alone: for each one event system/queue_worker_silent (stream alert), not again within twice the threshold, and the finding cursor_silent_gap (a worker''s cursor) or heartbeat_silent, which counts the events. Closes the finding of whoever is back, excused or gone. Returns a row for each that is silent (event_id: what told of it just now) and for each whose finding it closed (state returned, quiet or gone). Any number of sessions may call it at once, at any time; every daemon does, every 10 seconds. Raises TM006 (isolation level), TM007 (standby). Source: S4 fn_queue_stale_check.';
CREATE FUNCTION tidemark.system_event(type text, severity tidemark.severity, subject_table text, subject_ref text, payload jsonb, stream text DEFAULT NULL::text) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return tidemark.emit('system', system_event.type, system_event.payload, key => system_event.subject_ref, stream => system_event.stream,
                         severity => system_event.severity, subject_table => system_event.subject_table,
                         subject_ref => system_event.subject_ref, actor => 'tidemark');
exception when others then
    -- A schema or a forbidden key that somebody gave the type must not take back what the event is about.
    raise warning 'event system/% was not emitted: %', type, sqlerrm using errcode = sqlstate;
    return null;
end
$$;
ALTER FUNCTION tidemark.system_event(type text, severity tidemark.severity, subject_table text, subject_ref text, payload jsonb, stream text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.system_event(type text, severity tidemark.severity, subject_table text, subject_ref text, payload jsonb, stream text) IS 'Emits an event of the domain system and returns its id. Null: its type is not registered or not enabled, or emit refused it, which is a warning: it never fails what it is about.';
CREATE FUNCTION tidemark.target_call(statement text, numbers bigint[], snapshot jsonb, path text, timeout interval, OUT code text, OUT message text, OUT late boolean) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '0'
    AS $$
declare
    began constant timestamptz := clock_timestamp();
    deferred constant text := tidemark.deferred_constraints();
begin
    late := false;
    -- Unlike statement_timeout this one holds for the statement under way.
    perform set_config('lock_timeout', least(ceil(extract(epoch from timeout) * 1000), 2147483647)::text, true);
    perform set_config('search_path', path, true);
    execute statement using numbers, snapshot;
    -- At the commit it would fail with nobody to tell for which event.
    if deferred is not null then
        execute 'set constraints ' || deferred || ' immediate';
        execute 'set constraints ' || deferred || ' deferred';
    end if;
exception when others or assert_failure or query_canceled then
    get stacked diagnostics code = returned_sqlstate, message = message_text;
    -- An operator's cancel has the same code as the timer, and comes earlier.
    late := coalesce(code = '57014' and tidemark.time_left() <= interval '0', false)
        or code = '55P03' and clock_timestamp() - began >= timeout;
    if not late and tidemark.is_transient(code) then
        raise;
    end if;
end
$$;
ALTER FUNCTION tidemark.target_call(statement text, numbers bigint[], snapshot jsonb, path text, timeout interval, OUT code text, OUT message text, OUT late boolean) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.target_call(statement text, numbers bigint[], snapshot jsonb, path text, timeout interval, OUT code text, OUT message text, OUT late boolean) IS 'Runs a delivery statement ($1: numbers, $2: snapshot) with search_path path, and what it deferred to the commit; no lock is waited for longer than timeout. code is the SQLSTATE with which it failed, of which nothing remains then; null: it went well. late: it took too long, by statement_timeout (57014: the rest of the client''s statement has no timer) or by timeout (55P03). Another error that is not the event''s fault (tidemark.is_transient) is raised on.';
CREATE FUNCTION tidemark.target_is_inside(target_kind text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return target_kind in ('sql', 'notify', 'river');
end
$$;
ALTER FUNCTION tidemark.target_is_inside(target_kind text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.target_is_inside(target_kind text) IS 'True: targets of this kind are served in the transaction of the pass; others are staged as pending.';
CREATE FUNCTION tidemark.target_is_known(target_kind text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    return target_kind in ('sql', 'notify', 'webhook', 'kafka', 'nats', 'river', 'stdout', 'go');
end
$$;
ALTER FUNCTION tidemark.target_is_known(target_kind text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.target_is_known(target_kind text) IS 'True: a route may name this kind of target.';
CREATE FUNCTION tidemark.time_left() RETURNS interval
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    whole constant interval := current_setting('statement_timeout')::interval;
begin
    -- The timer runs from the statement that the client sent; that a function sets another one changes nothing. Its
    -- last tenth is spent: PostgreSQL's clock for it begins a little earlier than statement_timestamp().
    return case when whole > interval '0' then whole * 0.9 - (clock_timestamp() - statement_timestamp()) end;
end
$$;
ALTER FUNCTION tidemark.time_left() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.time_left() IS 'How long the statement that the client sent may still run, with a tenth of its statement_timeout kept back. Not above 0: the timer has fired or is about to, and fires no second time. Null: there is no statement_timeout.';
CREATE TABLE tidemark.event_type (
    domain text NOT NULL,
    type text NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    schema jsonb,
    enabled boolean DEFAULT true NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    metadata_only boolean DEFAULT false NOT NULL,
    unchecked boolean GENERATED ALWAYS AS (((schema IS NULL) AND (NOT metadata_only))) STORED NOT NULL,
    CONSTRAINT schema_is_an_object CHECK ((jsonb_typeof(schema) = 'object'::text)),
    CONSTRAINT type_has_no_space_or_star CHECK ((type ~ '^[^[:space:]*]{1,128}$'::text)),
    CONSTRAINT version_is_positive CHECK ((version > 0))
);
ALTER TABLE tidemark.event_type OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.event_type IS 'Event types that may be emitted. A type that is not here, or not enabled, is not emitted. Source: S0, S1 event_type_registry.';
COMMENT ON COLUMN tidemark.event_type.domain IS 'Domain that the type belongs to.';
COMMENT ON COLUMN tidemark.event_type.type IS 'Name of the type: no white space, no "*"; at most 128 characters.';
COMMENT ON COLUMN tidemark.event_type.version IS 'Version of the payload''s schema; only informative. Default 1.';
COMMENT ON COLUMN tidemark.event_type.schema IS 'JSON Schema of the payload, or null. SQL checks "required" and the "type" of each of "properties"; the Go client checks all of it.';
COMMENT ON COLUMN tidemark.event_type.enabled IS 'False: emit returns null and stores nothing. Default true.';
COMMENT ON COLUMN tidemark.event_type.description IS 'For people.';
COMMENT ON COLUMN tidemark.event_type.metadata_only IS 'Copy of the domain''s metadata_only, kept by triggers: emit reads one row of the registry, not two.';
COMMENT ON COLUMN tidemark.event_type.unchecked IS 'True: of a payload only that it is an object is checked.';
CREATE FUNCTION tidemark.type_set(domain text, type text, changes jsonb DEFAULT '{}'::jsonb, reason text DEFAULT NULL::text) RETURNS SETOF tidemark.event_type
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    row_ tidemark.event_type;
begin
    perform set_config('tidemark.reason', coalesce(type_set.reason, ''), true);
    perform tidemark.changes_check('type', type_set.changes, 'tidemark.event_type', array['domain', 'type', 'metadata_only', 'unchecked']);
    insert into tidemark.domain (domain) values (type_set.domain) on conflict do nothing;
    insert into tidemark.event_type (domain, type) values (type_set.domain, type_set.type) on conflict do nothing;
    row_ := (select jsonb_populate_record(t, changes) from tidemark.event_type t
    where t.domain = type_set.domain and t.type = type_set.type for update);
    return query
    update tidemark.event_type t
    set version = row_.version, schema = row_.schema, enabled = row_.enabled, description = row_.description
    where t.domain = type_set.domain and t.type = type_set.type returning t.*;
end
$$;
ALTER FUNCTION tidemark.type_set(domain text, type text, changes jsonb, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.type_set(domain text, type text, changes jsonb, reason text) IS 'Registers an event type, and its domain where that is new, or changes the named columns of it. Returns the row. Raises TM005 for an unknown column.';
CREATE FUNCTION tidemark.uuid_time(id uuid) RETURNS timestamp with time zone
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    select timestamptz 'epoch' + interval '1 millisecond'
        * ('x' || pg_catalog.lpad(pg_catalog.left(pg_catalog.replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint
$$;
ALTER FUNCTION tidemark.uuid_time(id uuid) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.uuid_time(id uuid) IS 'The millisecond that a version 7 uuid holds: an event has uuid_time(event_id) <= created_at < uuid_time(event_id) + 1 ms.';
CREATE FUNCTION tidemark.verify() RETURNS TABLE("check" text, status text, detail text, hint text)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with number as (
        select q.last_value - (not q.is_called)::integer as last, coalesce((select min(o.seq) from tidemark.outbox o), q.last_value + 1) as first
        from tidemark.outbox_seq_seq q
    ), cursor as (
        select c.*, w.id, w.domains, c.watermark_id::bigint as mark
        from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker where c.source = 'outbox'
    ), decided as (
        select d.worker_id, d.route_id, range_agg(d.seqs) as seqs, sum(d.events) as events
        from (
            select d.worker_id, d.route_id, d.seqs, d.events from tidemark.decision d
            union all
            select a.worker_id, a.route_id, int8multirange(int8range(a.seq, a.seq + 1)), 1
            from tidemark.attempt a where a.attempt_no = 1) d
        group by 1, 2
    ), covered as (
        select d.worker_id, range_agg(d.seqs) as seqs from decided d group by 1
    ), logged as materialized (
        select o.domain, range_agg(int8range(o.seq, o.seq + 1)) as seqs from tidemark.outbox o group by 1
    ), target as (
        select r.*, case when r.target_kind = 'sql' then tidemark.sql_target(r.target_ref) end as procedure,
               case when r.target_kind = 'river' then tidemark.river_error(r.target_ref, r.options) end as river_error
        from tidemark.outbound_route r
    ), capture as materialized (
        -- A warning about a route is one about a route that is off.
        select c.object, c.status, c.problem from tidemark.capture_check() c
        where not (c.status = 'warn' and starts_with(c.object, 'route '))
    ), doctor as materialized (
        -- Who verifies may see less of a table than who runs its worker. A standby is no place to run it from.
        select s.source, c."check", case when c."check" = 'row security' then 'warn' else c.status end as status, c.detail
        from tidemark.source s cross join lateral tidemark.source_check(s) c
        where c.status <> 'ok' and c."check" <> 'primary'
    ), told as (
        -- What a worker or maintain has found of this already, and keeps a finding of.
        select f.kind, l.executor_id as subject
        from doctor d join tidemark.worker_cursor c on c.source = d.source
        cross join lateral tidemark.executor_id(c.worker, c.source, c.shard) l (executor_id)
        cross join (values ('source_changed'), ('source_misconfigured')) f (kind)
        where d.status = 'fail'
        union all
        select 'capture_unwritten', substr(c.object, 7) from capture c where c.status = 'fail' and starts_with(c.object, 'route ')
    ), torn as materialized (
        -- The log and its evidence are partitioned alike.
        select p.first_seq, p.end_seq, string_agg(t.name || '_p' || p.first_seq, ', ' order by t.name desc) as left_
        from (values ('outbox'), ('decision'), ('attempt')) t (name)
        cross join lateral tidemark.partitions(('tidemark.' || t.name)::regclass) p
        where p.first_seq is not null
        group by 1, 2 having count(*) < 3
    ), gone as materialized (
        select count(*) as n from tidemark.pending p
        where p.dead_letter_id is null and not exists (select from tidemark.outbox o where o.seq = p.seq)
    ), problem ("check", bad, detail, hint) as (
        select 'W1 objects', 'fail',
               (select string_agg(c.object, ', ' order by c.object) from tidemark.code c
                where not exists (select from pg_proc p where p.pronamespace = 'tidemark'::regnamespace and p.proname = c.object)
                  and not exists (select from pg_class v where v.relnamespace = 'tidemark'::regnamespace and v.relname = c.object)
                  and not exists (select from pg_trigger t join pg_class r on r.oid = t.tgrelid
                                  where r.relnamespace = 'tidemark'::regnamespace and t.tgname = c.object)) || ' missing',
               'tidemark migrate up'
        union all
        select 'W2 gates', 'warn',
               (select string_agg(format('%s closed by %s', c.worker, g.gate), '; ')
                from cursor c cross join lateral tidemark.closed_gate(c.worker) g (gate) where g.gate is not null),
               'tidemark gate open GATE'
        union all
        select 'W3 workers', 'fail',
               (select string_agg(w.worker, ', ') from tidemark.worker w
                where w.source = 'outbox' and (
                    not exists (select from tidemark.worker_cursor c where c.worker = w.worker)
                    or not exists (select from tidemark.heartbeat h where h.executor_id = tidemark.executor_id(w.worker, 'outbox', 0))))
               || ' without cursor or heartbeat',
               'tidemark worker set NAME'
        union all
        select 'W4 cursor within the log', 'fail',
               (select string_agg(format('%s at %s, last number %s', c.worker, c.mark, n.last), '; ') from cursor c, number n
                where c.mark > n.last),
               'The log was restored from an older state than the cursor: rewind the worker.'
        union all
        select 'W5 evidence without event', 'fail',
               (select string_agg(format('worker %s: %s', w.worker, left(d.extra::text, 200)), '; ')
                from (select c.worker_id,
                             c.seqs * int8multirange(int8range(n.first, null))
                             - coalesce((select range_agg(l.seqs) from logged l), '{}') as extra
                      from covered c, number n) d
                join tidemark.worker w on w.id = d.worker_id where not isempty(d.extra)),
               'Somebody deleted from the log.'
        union all
        select 'W6 event without evidence', 'fail',
               (select string_agg(format('worker %s: %s', d.worker, left(d.missing::text, 200)), '; ')
                from (select c.worker,
                             coalesce((select range_agg(l.seqs) from logged l where c.domains is null or l.domain = any (c.domains)), '{}')
                             * int8multirange(int8range(c.begins_after + 1, greatest(c.mark, c.begins_after) + 1))
                             - c.holes - c.fenced
                             - coalesce((select v.seqs from covered v where v.worker_id = c.id), '{}') as missing
                      from cursor c) d
                where not isempty(d.missing)),
               'The cursor has passed events that it did not decide: tidemark worker rewind NAME.'
        union all
        select 'W7 evidence twice', 'fail',
               (select string_agg(format('worker %s, route %s', d.worker_id, d.route_id), '; ') from decided d
                where d.events <> (select sum(upper(r) - lower(r)) from unnest(d.seqs) r)),
               'Report it: this must not happen.'
        union all
        select 'W8 dead letters', 'warn',
               (select nullif(count(*), 0) || ' open' from tidemark.dead_letter l where l.resolved_at is null),
               'tidemark dead-letter list'
        union all
        select 'W9 failed without dead letter', 'fail',
               (select nullif(count(*), 0) || ' attempts' from tidemark.attempt a
                where a.outcome = 'failed' and a.attempt_no = 1
                  and not exists (select from tidemark.dead_letter l
                                  where l.worker_id = a.worker_id and l.route_id = a.route_id and l.seq = a.seq)),
               'Report it: this must not happen.'
        union all
        select 'stage', 'fail',
               (select 'live for another cluster or database: disarmed' from tidemark.stage s
                where s.stage = 'live' and not tidemark.armed()),
               'If this copy is to deliver: select tidemark.stage_set(''live'', ''why'');'
        union all
        select 'routes live only where armed', 'fail',
               (select string_agg(r.route_code, ', ') from tidemark.outbound_route r
                where r.enabled and not r.dry_run and not tidemark.armed()),
               'tidemark route set CODE --dry-run, or raise the stage.'
        union all
        select 'route targets', 'fail',
               (select string_agg(format('%s: %s', t.route_code,
                    case when not tidemark.target_is_known(t.target_kind)
                              then 'unknown kind ' || t.target_kind
                         when not tidemark.retry_policy_ok(t.retry_policy) then 'unreadable retry policy'
                         when t.target_kind = 'sql' then 'no function ' || t.target_ref || '(jsonb)'
                         else coalesce(t.river_error, 'no table river_job') end), '; ')
                from target t
                where t.enabled and (not tidemark.target_is_known(t.target_kind)
                    or not tidemark.retry_policy_ok(t.retry_policy)
                    or t.target_kind = 'sql' and t.procedure is null
                    or t.target_kind = 'river' and (t.river_error is not null or tidemark.river_table(t.options) is null))),
               'tidemark route set CODE'
        union all
        select 'routes of types that exist', 'warn',
               (select string_agg(r.route_code, ', ') from tidemark.outbound_route r
                where r.enabled and not exists (
                    select from tidemark.event_type t
                    where (r.domain = '*' or r.domain = t.domain) and tidemark.pattern_matches(r.type, t.type))),
               'No registered event type can reach them.'
        union all
        select 'sources', (select case when bool_or(d.status = 'fail') then 'fail' else 'warn' end from doctor d),
               (select string_agg(s.detail, '; ' order by s.source) from (
                    -- A warning was read when the source was made: its name will do.
                    select d.source, d.source || ': ' || concat_ws(', ',
                        string_agg(d."check" || ': ' || d.detail, ', ') filter (where d.status = 'fail'),
                        'cannot be proved or will cost: ' || string_agg(d."check", ', ') filter (where d.status = 'warn')) as detail
                    from doctor d group by 1) s),
               'tidemark source check NAME'
        union all
        select 'captures', (select case when bool_or(c.status = 'fail') then 'fail' else 'warn' end from capture c),
               (select string_agg(c.object || ': ' || c.problem, '; ' order by c.status, c.object, c.problem) from capture c),
               'tidemark capture check'
        union all
        select 'pending', (select case when g.n > 0 then 'fail' else 'warn' end from gone g),
               (select nullif(concat_ws('; ', nullif(count(*), 0) || ' deliveries wait for the daemon',
                                        (select nullif(g.n, 0) || ' of events that are not in the log any more' from gone g)), '')
                from tidemark.pending p where p.next_attempt_at < clock_timestamp() - interval '1 minute'),
               (select case when g.n > 0 then 'A pass makes them dead letters (event_missing), and delivers what waits behind them.'
                            else 'Targets outside the database are served by the daemon.' end from gone g)
        union all
        select 'partitions', case when exists (select from torn) then 'fail' else 'warn' end,
               case when exists (select from torn)
                         then (select string_agg(format('of numbers %s to %s only %s is left', t.first_seq, t.end_seq - 1, t.left_), '; '
                                                 order by t.first_seq) from torn t)
                    when exists (select from tidemark.outbox o
                                 where o.seq >= (select max(p.end_seq) from tidemark.partitions('tidemark.outbox') p))
                         then 'events have no partition of their own'
                    when not exists (select from tidemark.partitions('tidemark.outbox') p, number n where p.first_seq > n.last)
                         then 'no empty partition is left ahead' end,
               case when exists (select from torn)
                         then 'Dropped by hand? tidemark.maintain() drops, by outbox.retention. Restore what is gone, or drop what is left.'
                    else 'select * from tidemark.maintain();' end
        union all
        select 'privileges', 'fail',
               (select string_agg(x.object, ', ') from (
                    select p.oid::regprocedure::text as object from pg_proc p
                    where p.pronamespace = 'tidemark'::regnamespace
                      and has_function_privilege('public', p.oid, 'execute')
                    union all
                    select c.oid::regclass::text from pg_class c
                    where c.relnamespace = 'tidemark'::regnamespace and c.relkind in ('r', 'p', 'v', 'S')
                      and exists (select from aclexplode(c.relacl) a where a.grantee = 0)) x) || ' granted to PUBLIC',
               'tidemark migrate up restores the grants of functions and views.'
        union all
        select 'triggers', 'fail',
               (select string_agg(t.tgname, ', ') from pg_trigger t join pg_class c on c.oid = t.tgrelid
                where c.relnamespace = 'tidemark'::regnamespace and not t.tgisinternal and t.tgenabled = 'D') || ' disabled',
               'alter table … enable trigger …'
        union all
        select 'heartbeats', 'warn',
               (select string_agg(format('%s silent since %s', h.executor_id, date_trunc('second', h.last_beat_at)), '; ')
                from tidemark.heartbeat_health h where h.state = 'silent'),
               'Is it still run? tidemark doctor'
        union all
        select 'statistics of other sessions', 'warn',
               case when not pg_has_role('tidemark_owner', 'pg_read_all_stats', 'usage')
                    then 'tidemark_owner cannot read them: tables cannot be sources with safety clock, and blame lacks ages' end,
               'As superuser: grant pg_read_all_stats to tidemark_owner;'
        union all
        select 'roles', 'warn',
               nullif(concat_ws('; ',
                   (select 'a right here is one in ' || string_agg(d.datname, ', ' order by d.datname)
                    from pg_shdepend s join pg_database d on d.oid = s.dbid
                    where s.refclassid = 'pg_authid'::regclass and s.refobjid = to_regrole('tidemark_owner') and s.deptype = 'o'
                      and s.classid = 'pg_namespace'::regclass and d.datname <> current_database()),
                   (select 'tidemark_owner ' || concat_ws(' and ', case when r.rolsuper then 'is a superuser' end,
                                                          case when r.rolcanlogin then 'can log in' end)
                    from pg_roles r where r.rolname = 'tidemark_owner' and (r.rolsuper or r.rolcanlogin))), ''),
               'See docs/roles.md: a prefix gives a database roles of its own; alter role tidemark_owner nologin nosuperuser;'
        union all
        select 'findings', 'warn',
               (select string_agg(format('%s %s: %s', f.kind, f.subject, f.detail), '; ') from tidemark.finding f
                where f.closed_at is null and not exists (select from told t where t.kind = f.kind and t.subject = f.subject)),
               'select * from tidemark.finding where closed_at is null;'
    )
    select p."check", case when p.detail is null then 'ok' else p.bad end, coalesce(p.detail, ''),
           case when p.detail is null then '' else p.hint end
    from problem p
$$;
ALTER FUNCTION tidemark.verify() OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.verify() IS 'Read-only checks of the whole installation, one row each: status ok, warn or fail, what was found, and what to do. Reads the log and its evidence once, and looks at each source and capture as tidemark.source_check and tidemark.capture_check do: for operators, not for a tight loop. What one of them fails is not listed again as a finding. Source: S0 070_route_worker_verification, W1 to W9.';
CREATE FUNCTION tidemark.wake(domains text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    -- Only while a worker sleeps: commits with a notification are made one after the other, in the whole cluster.
    if tidemark.gate_open('notify.bridge_enabled') then
        perform pg_notify(left('tidemark_wake_' || d, 63), '') from (select distinct unnest(domains)) d (d);
    end if;
end
$$;
ALTER FUNCTION tidemark.wake(domains text[]) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.wake(domains text[]) IS 'Signals tidemark_wake_<domain> (cut at 63 bytes, no payload) when this transaction commits, where the gate notify.bridge_enabled is open. Called by emit while a worker sleeps: it holds the advisory lock (1953064301, 1) meanwhile. A signal that is missed loses nothing.';
CREATE FUNCTION tidemark.worker_cursor_make(worker text, starts text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    c tidemark.worker_cursor;
    made boolean;
begin
    if exists (select from tidemark.worker_cursor k where k.worker = worker_cursor_make.worker and k.source = 'outbox') then
        return false;
    end if;
    c := tidemark.worker_start(coalesce(worker_cursor_make.starts, 'now'));
    insert into tidemark.worker_cursor (worker, source, watermark_id, decided_through, begins_after, fenced, fence)
    values (worker_cursor_make.worker, 'outbox', c.watermark_id, c.decided_through, c.begins_after, c.fenced, c.fence)
    on conflict do nothing;
    made := found;
    insert into tidemark.heartbeat (executor_id) values (tidemark.executor_id(worker_cursor_make.worker, 'outbox', 0))
    on conflict do nothing;
    return made;
end
$$;
ALTER FUNCTION tidemark.worker_cursor_make(worker text, starts text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.worker_cursor_make(worker text, starts text) IS 'Makes the cursor of a worker of the log, where it has none, beginning at starts (tidemark.worker_start; null: now), and its heartbeat. False: it has one.';
CREATE FUNCTION tidemark.worker_cursors_make(worker text, source text, first text, reason text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    shards constant integer := (select w.shards from tidemark.worker w where w.worker = worker_cursors_make.worker);
    made integer;
begin
    -- The session's, since here the current user is the owner. Members of the owner are as good as operators.
    if not pg_has_role(session_user, 'tidemark_admin', 'member') and not pg_has_role(session_user, 'tidemark_owner', 'member')
        and not exists (select from tidemark.worker w where w.worker = worker_cursors_make.worker and w.handler = 'go') then
        raise exception using errcode = 'insufficient_privilege', message = 'only members of tidemark_admin give a worker its sources',
            hint = 'A Go program may for its own worker.';
    end if;
    -- A source that is removed at this moment has no cursor yet.
    perform from tidemark.source s where s.source = worker_cursors_make.source for key share;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no source "%s"', worker_cursors_make.source),
            hint = 'Sources: select source from tidemark.source;';
    end if;
    insert into tidemark.worker_cursor (worker, source, shard, watermark_id, decided_through, phase, sweep, metadata)
    select worker_cursors_make.worker, worker_cursors_make.source, n, worker_cursors_make.first,
           tidemark.source_place(null, worker_cursors_make.first), 'seeding',
           jsonb_build_object('xmin', pg_snapshot_xmin(pg_current_snapshot())::text, 'mark', clock_timestamp()),
           (select jsonb_build_object('home', tidemark.source_home(t.relation), 'numbering', tidemark.source_numbering(s, t.relation))
            from tidemark.source s cross join tidemark.source_shape(s) t where s.source = worker_cursors_make.source)
    from generate_series(0, shards - 1) n
    on conflict do nothing;
    get diagnostics made = row_count;
    insert into tidemark.heartbeat (executor_id)
    select tidemark.executor_id(worker_cursors_make.worker, worker_cursors_make.source, n) from generate_series(0, shards - 1) n
    on conflict do nothing;
    if made > 0 then
        insert into tidemark.audit (action, object, reason, after)
        values ('worker_source_add', 'worker_cursor ' || worker_cursors_make.worker, worker_cursors_make.reason,
                jsonb_build_object('source', worker_cursors_make.source, 'shards', shards));
    end if;
    return made;
end
$$;
ALTER FUNCTION tidemark.worker_cursors_make(worker text, source text, first text, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.worker_cursors_make(worker text, source text, first text, reason text) IS 'Makes the cursors and heartbeats of a worker for a source; first is where they begin. Returns how many it made.';
CREATE FUNCTION tidemark.worker_finding(worker text, kind text, subject text, detail text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    lease text;
begin
    if worker_finding.kind is null or worker_finding.kind not in ('cursor_lease_conflict', 'cursor_watermark_regression', 'route_misconfigured', 'target_down',
                                                              'worker_failing') then
        raise exception using errcode = 'TM005', message = format('a worker cannot report "%s"', worker_finding.kind);
    end if;
    if worker_finding.detail is null then
        perform tidemark.finding_close(worker_finding.kind, worker_finding.subject);
    else
        if worker_finding.kind = 'cursor_lease_conflict' then
            -- Its subject is the worker, or one cursor of it.
            select format(', told by pid %s, application "%s", user %s; %s', pg_backend_pid(), current_setting('application_name'), session_user,
                          coalesce(format('the lease is of %s, epoch %s, until %s', h.lease_owner, h.lease_epoch, date_trunc('second', h.lease_until)),
                                   'nobody has the lease now')) into lease
            from tidemark.heartbeat h
            where h.executor_id in (worker_finding.subject, tidemark.executor_id(worker_finding.subject, 'outbox', 0));
        end if;
        perform tidemark.finding_open(worker_finding.kind, worker_finding.subject,
            case worker_finding.kind when 'cursor_lease_conflict' then 'warning' else 'high' end::tidemark.severity,
            format('worker %s: %s%s', worker_finding.worker, worker_finding.detail, lease));
    end if;
end
$$;
ALTER FUNCTION tidemark.worker_finding(worker text, kind text, subject text, detail text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.worker_finding(worker text, kind text, subject text, detail text) IS 'What a worker reports about itself or a route: cursor_lease_conflict, cursor_watermark_regression, route_misconfigured, target_down or worker_failing. detail null: it is over. Of a lease conflict it adds who tells, and who has the lease.';
CREATE FUNCTION tidemark.worker_outlook(worker text, most integer DEFAULT 10000) RETURNS TABLE(route_code text, becomes tidemark.outcome, events bigint, waiting bigint, first_seq bigint, last_seq bigint, complete boolean)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
declare
    w constant tidemark.worker := (select w from tidemark.worker w where w.worker = worker_outlook.worker);
    mark constant bigint := (
        select c.watermark_id::bigint from tidemark.worker_cursor c
        where c.worker = worker_outlook.worker and c.source = 'outbox' and c.shard = 0);
begin
    if w is null then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', worker_outlook.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    elsif most is null or most not between 1 and 1000000 then
        raise exception using errcode = 'TM005',
            message = format('most is %s, and must be from 1 to 1000000', coalesce(most::text, 'null'));
    elsif mark is null then
        return; -- of tables
    end if;
    return query
    with log as materialized (
        select o.* from tidemark.outbox o where o.seq > mark order by o.seq limit most
    ), read as (
        select count(*) as n, min(l.seq) as low, max(l.seq) as high from log l
    ), claimed as (
        select r.id, count(*) as n, min(l.seq) as low, max(l.seq) as high
        from tidemark.outbound_route r join log l on tidemark.route_matches(r, l)
        where r.worker = worker_outlook.worker and (w.domains is null or l.domain = any (w.domains))
        group by r.id
    ), route as (
        select r.route_code as code, r.enabled as on_, r.dry_run as dry, coalesce(c.n, 0) as n, c.low, c.high, p.n as waiting
        from tidemark.outbound_route r
        left join claimed c on c.id = r.id
        cross join lateral (
            select count(*) as n from (
                select from tidemark.pending p where p.route_id = r.id order by p.next_attempt_at limit most) p) p
        where r.worker = worker_outlook.worker
    )
    select null::text, null::tidemark.outcome, read.n, (select coalesce(sum(t.waiting), 0)::bigint from route t),
           read.low, read.high, read.n < most and not exists (select from route t where t.waiting = most)
    from read
    union all
    select t.code, case when not t.on_ then 'disabled' when t.dry then 'dry_run' else 'pending' end::tidemark.outcome,
           t.n, t.waiting, t.low, t.high, read.n < most and t.waiting < most
    from route t, read where t.n > 0 or t.waiting > 0
    order by 1 nulls first;
end
$$;
ALTER FUNCTION tidemark.worker_outlook(worker text, most integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.worker_outlook(worker text, most integer) IS 'What a worker of the log is about to do with the events above its watermark, were its gates open: first (route_code null) how many there are, then for each route how many it claims and what they become: pending (delivered), disabled or dry_run (recorded, and not delivered later unless tidemark.route_replay sends them). waiting: deliveries of the route that wait already. Looks at the first most events (1 to 1000000, default 10000), and counts as many deliveries; complete false: there may be more. No row for a worker of tables. Raises TM004, TM005.';
CREATE FUNCTION tidemark.worker_pause(worker text, pause boolean, reason text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    changed boolean;
begin
    if pause is null then
        raise exception using errcode = 'TM005', message = 'pause is null: true pauses the worker, false lets it go on';
    end if;
    update tidemark.worker_cursor c
    set paused_at = case when worker_pause.pause then clock_timestamp() end, updated_at = clock_timestamp()
    where c.worker = worker_pause.worker and (c.paused_at is null) = worker_pause.pause;
    changed := found;
    if not changed and not exists (select from tidemark.worker_cursor c where c.worker = worker_pause.worker) then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', worker_pause.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    end if;
    if changed then
        insert into tidemark.audit (action, object, reason, after)
        values (case when pause then 'pause' else 'resume' end, 'worker ' || worker_pause.worker, worker_pause.reason,
                jsonb_build_object('paused', pause));
    end if;
    return changed;
end
$$;
ALTER FUNCTION tidemark.worker_pause(worker text, pause boolean, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.worker_pause(worker text, pause boolean, reason text) IS 'Pauses a worker where it stands (true) or lets it go on (false). Obeyed within a second, as a gate; the gates stay as they are. True: it changed. Raises TM004, TM005.';
CREATE FUNCTION tidemark.worker_rewind(worker text, to_seq bigint, reason text, dry_run boolean DEFAULT false) RETURNS TABLE(was bigint, route_code text, outcome tidemark.outcome, events bigint, decided boolean, complete boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
begin
    if not coalesce(worker_rewind.dry_run, false) and coalesce(btrim(worker_rewind.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a cursor is not rewound without a reason';
    end if;
    if not coalesce(worker_rewind.dry_run, false) then
        -- A pass under way has read what it settles from the old place: its epoch ends. First the heartbeat, then
        -- the cursor: the order in which a pass takes them.
        update tidemark.heartbeat h set lease_epoch = lease_epoch + 1, lease_until = null, lease_owner = null
        where h.executor_id = worker_rewind.worker || '/outbox/0';
        perform from tidemark.worker_cursor c
        where c.worker = worker_rewind.worker and c.source = 'outbox' and c.shard = 0 for update;
    end if;
    select c.watermark_id::bigint into was from tidemark.worker_cursor c
    where c.worker = worker_rewind.worker and c.source = 'outbox' and c.shard = 0;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', worker_rewind.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    end if;
    if to_seq is null or to_seq not between 0 and was then
        raise exception using errcode = 'TM005',
            message = format('worker %s is at %s: it can be rewound to 0 to %s, not to %s', worker_rewind.worker, was, was,
                             coalesce(to_seq::text, 'null'));
    end if;
    -- Counted before it moves.
    return query select * from tidemark.rewind_outlook(worker_rewind.worker, to_seq);
    if coalesce(worker_rewind.dry_run, false) then
        return;
    end if;
    -- What is open above the new watermark is met again by reading on.
    update tidemark.worker_cursor c
    set watermark_id = to_seq::text,
        decided_through = greatest(c.decided_through::bigint, to_seq)::text, -- lower: the watermark was edited by hand
        holes = c.holes * int8multirange(int8range(null, to_seq + 1)),
        fenced = c.fenced * int8multirange(int8range(null, to_seq + 1)),
        begins_after = least(c.begins_after, to_seq),
        updated_at = clock_timestamp()
    where c.worker = worker_rewind.worker and c.source = 'outbox' and c.shard = 0;
    insert into tidemark.audit (action, object, reason, before, after)
    values ('worker_rewind', 'worker_cursor ' || worker_rewind.worker, worker_rewind.reason,
            jsonb_build_object('watermark', was), jsonb_build_object('watermark', to_seq));
end
$$;
ALTER FUNCTION tidemark.worker_rewind(worker text, to_seq bigint, reason text, dry_run boolean) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.worker_rewind(worker text, to_seq bigint, reason text, dry_run boolean) IS 'Moves a worker''s cursor back to the event numbered to_seq, and returns what that comes to, counted before it moved; with dry_run it only counts. What was decided stays decided: rows with decided true (of each route and latest outcome; route_code null: no route claimed them) are not delivered again, tidemark.route_replay does that. Rows with decided false are events that a route has no evidence for: they come to the outcome (pending: delivered). The row with decided null has the events of the log in between. was is the watermark before. complete false: only the first million of these events were looked at for what is undecided. Waits for a pass under way. Raises TM004, TM005.';
CREATE FUNCTION tidemark.worker_run(worker text DEFAULT 'default'::text, source text DEFAULT NULL::text, shard integer DEFAULT NULL::integer, page integer DEFAULT NULL::integer) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    kind constant text := (select w.source from tidemark.worker w where w.worker = worker_run.worker);
    c record;
    claimed record;
    summary jsonb;
    runs jsonb[] := '{}';
begin
    if worker_run.page not between 1 and 50000 then
        raise exception using errcode = 'TM005', message = format('page is %s, and must be from 1 to 50000', worker_run.page);
    end if;
    if kind = 'outbox' then
        return tidemark.route_worker_run(worker_run.worker, coalesce(worker_run.page, 5000));
    end if;
    for c in
        select c.source, c.shard from tidemark.worker_cursor c
        where c.worker = worker_run.worker and (worker_run.source is null or c.source = worker_run.source)
          and (worker_run.shard is null or c.shard = worker_run.shard)
        order by c.source, c.shard
    loop
        claimed := tidemark.claim(worker_run.worker, null, null, c.source, c.shard);
        summary := case when claimed.status = 'claimed'
            then tidemark.source_pass(worker_run.worker, c.source, c.shard, claimed.epoch, worker_run.page)
            else jsonb_build_object('worker', worker_run.worker, 'source', c.source, 'shard', c.shard, 'status', claimed.status,
                                    'detail', claimed.detail, 'rows', 0, 'more', false) end;
        runs := runs || summary;
    end loop;
    if cardinality(runs) = 0 then
        raise exception using errcode = 'TM004',
            message = case when kind is null then format('there is no worker "%s"', worker_run.worker)
                else format('worker %s has no cursor of %s', worker_run.worker,
                            coalesce('source ' || worker_run.source, 'any source') || coalesce(', shard ' || worker_run.shard, '')) end,
            hint = case when kind is null then 'Workers: select worker from tidemark.worker;'
                else 'Give it one: select tidemark.worker_source_add(worker, source, reason);' end;
    elsif cardinality(runs) = 1 then
        return summary;
    end if;
    return jsonb_build_object('worker', worker_run.worker, 'status', 'ran', 'runs', to_jsonb(runs),
        'rows', (select sum((r ->> 'rows')::bigint) from unnest(runs) r), 'more', (select bool_or((r ->> 'more')::boolean) from unnest(runs) r));
end
$$;
ALTER FUNCTION tidemark.worker_run(worker text, source text, shard integer, page integer) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.worker_run(worker text, source text, shard integer, page integer) IS 'One pass of a worker of any kind, in the caller''s transaction: of the outbox tidemark.route_worker_run; of tables a page (rows at most page, default the worker''s page_size) of each of its cursors, or of those of one source or shard. Call it as a transaction of its own, again while more is true. Returns {"worker", "source", "shard", "status": "ran"|"closed"|"held"|"throttled"|"waiting"|"busy", "detail", "step", "rows", "taken", "failed", …}; of several cursors their runs. Raises TM004, TM005, TM006, TM007.';
CREATE FUNCTION tidemark.worker_set(worker text, changes jsonb DEFAULT '{}'::jsonb, reason text DEFAULT NULL::text, starts text DEFAULT NULL::text) RETURNS SETOF tidemark.worker
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    row_ tidemark.worker;
begin
    perform set_config('tidemark.reason', coalesce(worker_set.reason, ''), true);
    perform tidemark.changes_check('worker', worker_set.changes, 'tidemark.worker', array['id', 'worker']);
    insert into tidemark.worker (worker, source, handler, handler_ref)
    select worker_set.worker, coalesce(changes ->> 'source', 'outbox'),
           coalesce(changes ->> 'handler', case changes ->> 'source' when 'table' then 'sql' else 'route' end), changes ->> 'handler_ref'
    where not exists (select from tidemark.worker w where w.worker = worker_set.worker)
    on conflict do nothing;
    select w.* into row_ from tidemark.worker w where w.worker = worker_set.worker for update;
    if (changes ? 'source' and changes ->> 'source' is distinct from row_.source) or (changes ? 'handler' and changes ->> 'handler' is distinct from row_.handler) then
        raise exception using errcode = 'TM005',
            message = format('worker %s reads %s for %s, and cannot become another kind', row_.worker, row_.source, row_.handler),
            hint = 'Make another worker.';
    elsif (changes ->> 'shards')::integer <> row_.shards and exists (
        select from tidemark.worker_cursor c where c.worker = row_.worker and c.source <> 'outbox')
    then
        raise exception using errcode = 'TM005', message = format('worker %s has cursors for %s shards', row_.worker, row_.shards),
            hint = 'Set shards before the first source is added, or make another worker.';
    elsif not tidemark.retry_policy_ok(nullif(changes -> 'retry_policy', 'null')) then
        raise exception using errcode = 'TM005', message = format('worker %s: retry_policy %s cannot be read', row_.worker, changes -> 'retry_policy'),
            hint = 'An object with any of max_attempts (1 to 100), base_seconds, max_seconds, jitter (0 to 1); or null.';
    end if;
    row_ := jsonb_populate_record(row_, changes - 'source' - 'handler');
    if row_.off_peak is not null and not exists (select from pg_timezone_names z where z.name = split_part(row_.off_peak, ' ', 2)) then
        raise exception using errcode = 'TM005', message = format('worker %s: off_peak is %s, and there is no time zone "%s"', row_.worker, row_.off_peak, split_part(row_.off_peak, ' ', 2)),
            hint = 'For example 22:00-06:00 Europe/Berlin.';
    end if;
    if row_.source = 'outbox' then
        if not tidemark.worker_cursor_make(row_.worker, worker_set.starts) and worker_set.starts is not null then
            raise exception using errcode = 'TM005', message = format('worker %s has begun: where it starts is of a new one', row_.worker),
                hint = 'To read again what it has read: tidemark.worker_rewind. To send it again: tidemark.route_replay.';
        end if;
    elsif worker_set.starts is not null then
        raise exception using errcode = 'TM005', message = format('worker %s reads tables, each from its beginning', row_.worker);
    end if;
    update tidemark.heartbeat h set domain_scope = coalesce(row_.domains, '{}')
    where h.executor_id = tidemark.executor_id(row_.worker, 'outbox', 0);
    return query
    update tidemark.worker w
    set (handler_ref, payload_columns, domains, read_order, hole_limit, shards, page_size, page_timeout, retry_policy, coalesce_window,
         storm_fraction, off_peak, peak_pause, lock_wait_limit, replication_lag_limit, description)
      = row(row_.handler_ref, row_.payload_columns, row_.domains, row_.read_order, row_.hole_limit, row_.shards, row_.page_size,
            row_.page_timeout, row_.retry_policy, row_.coalesce_window, row_.storm_fraction, row_.off_peak, row_.peak_pause,
            row_.lock_wait_limit, row_.replication_lag_limit, row_.description)
    where w.worker = worker_set.worker returning w.*;
end
$$;
ALTER FUNCTION tidemark.worker_set(worker text, changes jsonb, reason text, starts text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.worker_set(worker text, changes jsonb, reason text, starts text) IS 'Creates a worker, with its heartbeat and its cursor, or changes the named columns of it. starts is where the cursor of a new one begins: now (the default: with the next event), start (of the log, what retention has left of it), the number of the first event, or a time. With {"source": "table", "handler": …} a worker of tables, which gets its cursors by tidemark.worker_source_add. Its gate stays as it is: closed for a new one. Returns the row. Raises TM005 for an unknown column, another source or handler than it has, an unreadable retry policy, a start of a worker that has begun.';
CREATE FUNCTION tidemark.worker_source_add(worker text, source text, reason text DEFAULT NULL::text) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    w constant tidemark.worker := (select w from tidemark.worker w where w.worker = worker_source_add.worker);
    s constant tidemark.source := (select s from tidemark.source s where s.source = worker_source_add.source);
    shape record;
    first text;
begin
    if w.worker is null then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', worker_source_add.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    elsif w.source <> 'table' then
        raise exception using errcode = 'TM005', message = format('worker %s reads the outbox', w.worker),
            hint = 'A worker of tables: select tidemark.worker_set(''name'', ''{"source": "table", "handler": "sql", "handler_ref": "schema.function"}'');';
    elsif s.source is null then
        raise exception using errcode = 'TM004', message = format('there is no source "%s"', worker_source_add.source),
            hint = 'Sources: select source from tidemark.source;';
    elsif w.coalesce_window is not null and cardinality(s.group_key) = 0 then
        raise exception using errcode = 'TM005', message = format('worker %s coalesces, and source %s has no group_key', w.worker, s.source);
    end if;
    shape := tidemark.source_shape(s);
    if w.shards > 1 and exists (
        select from pg_attribute a
        where a.attrelid = shape.relation
          and a.attname = any (case when cardinality(s.key_columns) > 0 then s.key_columns else array[s.id_column] end)
          and format_type(a.atttypid, null) not in ('smallint', 'integer', 'bigint', 'numeric', 'uuid', 'text', 'character varying', 'boolean'))
    then
        -- Another type's text depends on settings of the session, and its row would change the shard with them.
        raise exception using errcode = 'TM005',
            message = format('worker %s has shards, and key_columns of source %s are not all integers, numeric, uuid, text or boolean', w.worker, s.source),
            hint = 'Set key_columns to others, or use one shard.';
    end if;
    if s.safety = 'capture' then
        first := '0';
    elsif s.safety = 'sequence' and shape.problem is null then
        -- Below the lowest number that there is or can come.
        execute format('select min(t.%I)::text from %s t', s.id_column, shape.relation) into first;
        first := greatest(-9223372036854775808, least(first::numeric, 1, (
            select q.seqmin from pg_sequence q
            where q.seqrelid = tidemark.source_sequence(shape.relation, s.id_column))) - 1)::text;
    end if;
    return tidemark.worker_cursors_make(w.worker, s.source, first, worker_source_add.reason);
end
$$;
ALTER FUNCTION tidemark.worker_source_add(worker text, source text, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.worker_source_add(worker text, source text, reason text) IS 'Gives a worker of tables a cursor of the source for each of its shards, at the beginning of the table. Returns how many it made. Raises TM004, TM005.';
CREATE FUNCTION tidemark.worker_source_remove(worker text, source text, reason text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    id constant integer := (select w.id from tidemark.worker w where w.worker = worker_source_remove.worker);
    waiting bigint;
    removed integer;
begin
    if coalesce(btrim(worker_source_remove.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a source is not taken from a worker without a reason';
    elsif worker_source_remove.source = 'outbox' then
        raise exception using errcode = 'TM005', message = format('worker %s reads the log, and nothing else', worker_source_remove.worker);
    end if;
    -- Waits for a pass under way, in the order in which a pass takes its rows.
    perform from tidemark.heartbeat h join tidemark.worker_cursor c on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
    where c.worker = worker_source_remove.worker and c.source = worker_source_remove.source for update of h;
    select count(*) into waiting from tidemark.pending_row p where p.worker_id = id and p.source = worker_source_remove.source;
    if waiting > 0 then
        raise exception using errcode = 'TM005',
            message = format('worker %s has %s rows of source %s that failed and wait', worker_source_remove.worker, waiting, worker_source_remove.source),
            hint = 'See them with tidemark pending list; they end as handled or as dead letters.';
    end if;
    insert into tidemark.audit (action, object, reason, before)
    select 'worker_source_remove', 'worker_cursor ' || tidemark.executor_id(c.worker, c.source, c.shard), worker_source_remove.reason, to_jsonb(c)
    from tidemark.worker_cursor c where c.worker = worker_source_remove.worker and c.source = worker_source_remove.source;
    delete from tidemark.source_ledger l where l.worker_id = id and l.source = worker_source_remove.source;
    delete from tidemark.source_count k where k.worker_id = id and k.source = worker_source_remove.source;
    delete from tidemark.heartbeat h using tidemark.worker_cursor c
    where c.worker = worker_source_remove.worker and c.source = worker_source_remove.source
      and h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard);
    delete from tidemark.worker_cursor c where c.worker = worker_source_remove.worker and c.source = worker_source_remove.source;
    get diagnostics removed = row_count;
    if removed = 0 then
        raise exception using errcode = 'TM004',
            message = format('worker %s has no cursor of source %s', worker_source_remove.worker, worker_source_remove.source),
            hint = 'select worker, source, shard from tidemark.worker_cursor;';
    end if;
    return removed;
end
$$;
ALTER FUNCTION tidemark.worker_source_remove(worker text, source text, reason text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.worker_source_remove(worker text, source text, reason text) IS 'Takes a source from a worker: its cursors are gone, what they were is in tidemark.audit. Given it again, the worker begins at the beginning. Waits for a pass under way. Returns how many cursors. Raises TM004, TM005 (no reason, or rows that failed still wait).';
CREATE FUNCTION tidemark.worker_start(starts text) RETURNS tidemark.worker_cursor
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET jit TO 'off'
    AS $_$
#variable_conflict use_column
declare
    last_number bigint;
    place bigint;
    since timestamptz;
    known tidemark.worker_cursor;
    low bigint;
    c tidemark.worker_cursor;
begin
    last_number := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
    if starts = 'start' then
        place := 0;
    elsif starts = 'now' then
        place := last_number;
    elsif starts ~ '^[0-9]{1,18}$' then
        place := greatest(starts::bigint - 1, 0);
        if place > last_number then
            raise exception using errcode = 'TM005',
                message = format('the log ends at number %s: a worker cannot begin at %s', last_number, starts),
                hint = 'now begins with the next event.';
        end if;
    else
        begin
            since := starts::timestamptz;
        exception when invalid_datetime_format or datetime_field_overflow then
            raise exception using errcode = 'TM005', message = format('a worker cannot begin at "%s"', starts),
                hint = 'now, start, the number of an event, or a time such as 2026-01-31T12:00:00Z.';
        end;
        -- Numbers and times do not rise together exactly: the lowest number of that time or later.
        place := coalesce((select min(o.seq) - 1 from tidemark.outbox o where o.created_at >= since), last_number);
    end if;
    c.watermark_id := place::text;
    c.decided_through := place::text;
    c.begins_after := place;
    c.holes := '{}';
    c.fenced := '{}';
    c.fence := '{}';
    if starts in ('now') or since is not null then
        if place > 0 and cardinality(tidemark.fence_now()) > 0 then
            -- A cursor of another worker knows what is open below its own watermark; only above that has the log to be
            -- looked through.
            select k.* into known from tidemark.worker_cursor k
            where k.source = 'outbox' and k.watermark_id::bigint <= place
            order by k.watermark_id::bigint desc limit 1;
            low := greatest(coalesce(known.watermark_id::bigint, 0),
                            (select min(p.first_seq) - 1 from tidemark.partitions('tidemark.outbox') p));
            c.fenced := int8multirange(int8range(low + 1, place + 1)) + coalesce(known.holes + known.fenced, '{}')
                - coalesce((
                    select range_agg(int8range(o.seq, o.seq + 1)) from tidemark.outbox o
                    where o.seq > low and o.seq <= place), '{}')
                - coalesce((
                    select range_agg(int8range(o.seq, o.seq + 1))
                    from unnest(known.holes + known.fenced) h (span)
                    join tidemark.outbox o on o.seq >= lower(h.span) and o.seq < upper(h.span)), '{}');
        end if;
        if not isempty(c.fenced) then
            c.fence := tidemark.fence_now();
        end if;
    end if;
    return c;
end
$_$;
ALTER FUNCTION tidemark.worker_start(starts text) OWNER TO tidemark_owner;
COMMENT ON FUNCTION tidemark.worker_start(starts text) IS 'Where a cursor of the log that is made now begins, in its columns watermark_id, decided_through, begins_after, fenced and fence: now, start, the number of the first event to read, or a time: the first event of then or later. Raises TM005.';
ALTER TABLE public.counted ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.counted_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.handled (
    at bigint NOT NULL,
    source text NOT NULL,
    n integer NOT NULL
);
ALTER TABLE public.handled OWNER TO ada;
ALTER TABLE public.handled ALTER COLUMN at ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.handled_at_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE public.loose ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.loose_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.orders (
    id integer NOT NULL,
    n integer
);
ALTER TABLE public.orders OWNER TO ada;
CREATE TABLE public.received (
    at bigint NOT NULL,
    n integer NOT NULL,
    key text
);
ALTER TABLE public.received OWNER TO ada;
ALTER TABLE public.received ALTER COLUMN at ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.received_at_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tidemark.attempt (
    seq bigint NOT NULL,
    worker_id integer NOT NULL,
    route_id integer NOT NULL,
    attempt_no smallint NOT NULL,
    outcome tidemark.outcome NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    reason text,
    detail text,
    CONSTRAINT attempt_no_is_positive CHECK ((attempt_no > 0))
)
PARTITION BY RANGE (seq);
ALTER TABLE tidemark.attempt OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.attempt IS 'One row per event, route and attempt for what has a story of its own: what failed, was tried again or replayed. Shown by tidemark.route_attempt. Source: S0 iu_route_attempt.';
COMMENT ON COLUMN tidemark.attempt.seq IS 'Number of the event.';
COMMENT ON COLUMN tidemark.attempt.worker_id IS 'tidemark.worker.id.';
COMMENT ON COLUMN tidemark.attempt.route_id IS 'tidemark.outbound_route.id.';
COMMENT ON COLUMN tidemark.attempt.attempt_no IS '1 for the first, then one more with each replay.';
COMMENT ON COLUMN tidemark.attempt.outcome IS 'sent, failed or pending; dry_run or disabled for a replay.';
COMMENT ON COLUMN tidemark.attempt.decided_at IS 'When.';
COMMENT ON COLUMN tidemark.attempt.reason IS 'Why it failed: a reason of the decision contract, the SQLSTATE of the error, or the code that the sink gave.';
COMMENT ON COLUMN tidemark.attempt.detail IS 'Message of the error.';
CREATE TABLE tidemark.attempt_p0 (
    seq bigint NOT NULL,
    worker_id integer NOT NULL,
    route_id integer NOT NULL,
    attempt_no smallint NOT NULL,
    outcome tidemark.outcome NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    reason text,
    detail text,
    CONSTRAINT attempt_no_is_positive CHECK ((attempt_no > 0))
);
ALTER TABLE tidemark.attempt_p0 OWNER TO tidemark_owner;
CREATE TABLE tidemark.attempt_p1000000 (
    seq bigint NOT NULL,
    worker_id integer NOT NULL,
    route_id integer NOT NULL,
    attempt_no smallint NOT NULL,
    outcome tidemark.outcome NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    reason text,
    detail text,
    CONSTRAINT attempt_no_is_positive CHECK ((attempt_no > 0))
);
ALTER TABLE tidemark.attempt_p1000000 OWNER TO tidemark_owner;
CREATE TABLE tidemark.attempt_p2000000 (
    seq bigint NOT NULL,
    worker_id integer NOT NULL,
    route_id integer NOT NULL,
    attempt_no smallint NOT NULL,
    outcome tidemark.outcome NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    reason text,
    detail text,
    CONSTRAINT attempt_no_is_positive CHECK ((attempt_no > 0))
);
ALTER TABLE tidemark.attempt_p2000000 OWNER TO tidemark_owner;
CREATE TABLE tidemark.attempt_rest (
    seq bigint NOT NULL,
    worker_id integer NOT NULL,
    route_id integer NOT NULL,
    attempt_no smallint NOT NULL,
    outcome tidemark.outcome NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    reason text,
    detail text,
    CONSTRAINT attempt_no_is_positive CHECK ((attempt_no > 0))
);
ALTER TABLE tidemark.attempt_rest OWNER TO tidemark_owner;
CREATE TABLE tidemark.audit (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    actor text DEFAULT SESSION_USER NOT NULL,
    action text NOT NULL,
    object text NOT NULL,
    reason text,
    before jsonb,
    after jsonb
);
ALTER TABLE tidemark.audit OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.audit IS 'What operators changed: every insert, update and delete of a configuration row, and every operator''s function.';
COMMENT ON COLUMN tidemark.audit.id IS 'Number.';
COMMENT ON COLUMN tidemark.audit.at IS 'When.';
COMMENT ON COLUMN tidemark.audit.actor IS 'The role that logged in (session_user).';
COMMENT ON COLUMN tidemark.audit.action IS 'insert, update, delete, or the name of a function.';
COMMENT ON COLUMN tidemark.audit.object IS 'What was changed: table and key.';
COMMENT ON COLUMN tidemark.audit.reason IS 'Why: given to the function, or set with: set local tidemark.reason = ''…''.';
COMMENT ON COLUMN tidemark.audit.before IS 'The row before.';
COMMENT ON COLUMN tidemark.audit.after IS 'The row after.';
ALTER TABLE tidemark.audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidemark.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE VIEW tidemark.capture_attached AS
 SELECT t.tgrelid AS relation,
    (n.nspname)::text AS schema_name,
    (c.relname)::text AS table_name,
    (t.tgname)::text AS trigger_name,
    (p.proname)::text AS function_name,
        CASE ((t.tgtype)::integer & 60)
            WHEN 4 THEN 'insert'::text
            WHEN 8 THEN 'delete'::text
            WHEN 16 THEN 'update'::text
            WHEN 32 THEN 'truncate'::text
            ELSE NULL::text
        END AS operation,
    (t.tgenabled)::text AS enabled,
    ((((t.tgtype)::integer & 67) = 0) AND (t.tgqual IS NULL) AND ((t.tgattr)::text = ''::text) AND (NOT (t.tgnewtable IS DISTINCT FROM
        CASE
            WHEN (((t.tgtype)::integer & 20) > 0) THEN 'tidemark_new'::text
            ELSE NULL::text
        END)) AND (NOT (t.tgoldtable IS DISTINCT FROM
        CASE
            WHEN (((t.tgtype)::integer & 24) > 0) THEN 'tidemark_old'::text
            ELSE NULL::text
        END)) AND (((t.tgtype)::integer & 60) = ANY (ARRAY[4, 8, 16, 32]))) AS as_attached
   FROM (((pg_trigger t
     JOIN pg_class c ON ((c.oid = t.tgrelid)))
     JOIN pg_namespace n ON ((n.oid = c.relnamespace)))
     JOIN pg_proc p ON ((p.oid = t.tgfoid)))
  WHERE ((NOT t.tgisinternal) AND (p.pronamespace = ('tidemark'::regnamespace)::oid) AND (p.proname ~ '^capture(_[0-9]+)?$'::text));
ALTER TABLE tidemark.capture_attached OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.capture_attached IS 'Triggers of tables that call tidemark.capture, or what tidemark.capture_make made of it: the function, the operation, pg_trigger.tgenabled, and whether they are as tidemark.capture_attach makes them.';
ALTER TABLE tidemark.capture_gap ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidemark.capture_gap_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE VIEW tidemark.capture_list AS
 SELECT COALESCE(r.source_schema, t.schema_name) AS schema_name,
    COALESCE(r.source_table, t.table_name) AS table_name,
    COALESCE(r.sql_event, t.operation) AS operation,
    r.route_code,
    r.domain,
    r.type,
        CASE
            WHEN (r.id IS NULL) THEN 'no route'::text
            WHEN (NOT r.enabled) THEN 'off'::text
            WHEN r.dry_run THEN 'dry run'::text
            ELSE 'live'::text
        END AS state,
        CASE
            WHEN (t.relation IS NULL) THEN 'not attached'::text
            WHEN (NOT t.as_attached) THEN 'altered'::text
            WHEN (t.enabled = 'A'::text) THEN 'always'::text
            WHEN (t.enabled = 'O'::text) THEN 'attached'::text
            WHEN (t.enabled = 'R'::text) THEN 'replica only'::text
            ELSE 'disabled'::text
        END AS trigger,
    r.payload_columns
   FROM (tidemark.inbound_route r
     FULL JOIN tidemark.capture_attached t ON (((t.schema_name = r.source_schema) AND (t.table_name = r.source_table) AND (t.operation = r.sql_event))));
ALTER TABLE tidemark.capture_list OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.capture_list IS 'Each operation of a table that has an inbound route or a trigger of capture: the route''s state (no route, off, dry run, live) and the trigger''s (not attached, attached, always, replica only, disabled, altered).';
CREATE VIEW tidemark.capture_stale AS
 SELECT r.route_code,
    a.function_name,
    r.sql_event AS operation,
    a.schema_name,
    a.table_name
   FROM ((tidemark.inbound_route r
     JOIN tidemark.capture_attached a ON (((a.schema_name = r.source_schema) AND (a.table_name = r.source_table) AND (a.operation = r.sql_event) AND (a.function_name = ('capture_'::text || r.id)))))
     JOIN pg_proc p ON (((p.pronamespace = ('tidemark'::regnamespace)::oid) AND (p.proname = a.function_name))))
  WHERE (p.prosrc <> tidemark.capture_body((a.relation)::regclass, r.*));
ALTER TABLE tidemark.capture_stale OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.capture_stale IS 'Functions that tidemark.capture_make made, and would make otherwise now: the table, the route or Tidemark changed since. Captures go the long way meanwhile, with the same result.';
CREATE TABLE tidemark.captured (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    route_id integer NOT NULL,
    outcome text NOT NULL,
    rows bigint NOT NULL,
    statements bigint DEFAULT 1 NOT NULL,
    actor text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    CONSTRAINT outcome_is_known CHECK ((outcome = ANY (ARRAY['dry_run'::text, 'unregistered'::text, 'failed'::text])))
);
ALTER TABLE tidemark.captured OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.captured IS 'Statements whose changes became no event though a route was on. Only ever inserted into by the statement''s transaction; tidemark.maintain sums up what is older than an hour, by hour.';
COMMENT ON COLUMN tidemark.captured.id IS 'Number.';
COMMENT ON COLUMN tidemark.captured.at IS 'When; of a sum, the beginning of the hour.';
COMMENT ON COLUMN tidemark.captured.route_id IS 'tidemark.inbound_route.id.';
COMMENT ON COLUMN tidemark.captured.outcome IS 'dry_run: the route is one. unregistered: its type is not registered or not enabled. failed: the event could not be written, and the route is not fail_closed.';
COMMENT ON COLUMN tidemark.captured.rows IS 'Rows that would have been events.';
COMMENT ON COLUMN tidemark.captured.statements IS 'Statements summed up here. Default 1.';
COMMENT ON COLUMN tidemark.captured.actor IS 'The role that logged in.';
COMMENT ON COLUMN tidemark.captured.reason IS 'Why there is no event. Never a value of the row.';
ALTER TABLE tidemark.captured ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidemark.captured_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tidemark.code (
    object text NOT NULL,
    checksum text NOT NULL,
    installed text,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
ALTER TABLE tidemark.code OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.code IS 'Functions and views as last re-created from sql/code/.';
COMMENT ON COLUMN tidemark.code.object IS 'File name without suffix, which is the name of the function or view.';
COMMENT ON COLUMN tidemark.code.checksum IS 'SHA-256 of the file, in hex.';
COMMENT ON COLUMN tidemark.code.installed IS 'MD5 of the definition as the catalog shows it after the file ran; a difference later means that somebody changed the object by hand.';
COMMENT ON COLUMN tidemark.code.applied_at IS 'When it was re-created.';
CREATE TABLE tidemark.cursor_sample (
    worker text NOT NULL,
    source text NOT NULL,
    shard integer NOT NULL,
    older_at timestamp with time zone NOT NULL,
    older_seen bigint NOT NULL,
    newer_at timestamp with time zone NOT NULL,
    newer_seen bigint NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE tidemark.cursor_sample OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.cursor_sample IS 'How many events each cursor had seen a minute or two ago, for its rate. Kept by tidemark.maintain.';
COMMENT ON COLUMN tidemark.cursor_sample.worker IS 'The worker.';
COMMENT ON COLUMN tidemark.cursor_sample.source IS 'The source it reads.';
COMMENT ON COLUMN tidemark.cursor_sample.shard IS 'Part of the source.';
COMMENT ON COLUMN tidemark.cursor_sample.older_at IS 'When the sample that the rate counts from was taken.';
COMMENT ON COLUMN tidemark.cursor_sample.older_seen IS 'worker_cursor.events_seen then.';
COMMENT ON COLUMN tidemark.cursor_sample.newer_at IS 'When the sample that takes its place next was taken.';
COMMENT ON COLUMN tidemark.cursor_sample.newer_seen IS 'worker_cursor.events_seen then.';
CREATE VIEW tidemark.cursor_lag AS
 SELECT c.worker,
    c.source,
    c.shard,
    g.gate,
        CASE
            WHEN (c.source = 'outbox'::text) THEN GREATEST((s.last_seq - s.mark), (0)::bigint)
            ELSE NULL::bigint
        END AS events,
        CASE
            WHEN isfinite(t.since) THEN (GREATEST(floor(EXTRACT(epoch FROM (clock_timestamp() - t.since))), (0)::numeric))::bigint
            ELSE NULL::bigint
        END AS seconds,
    ( SELECT (COALESCE(sum((upper(r.r) - lower(r.r))), (0)::numeric))::bigint AS "coalesce"
           FROM unnest((c.holes + c.fenced)) r(r)) AS holes,
    round((((c.events_seen - p.older_seen))::numeric / NULLIF(EXTRACT(epoch FROM (clock_timestamp() - p.older_at)), (0)::numeric)), 1) AS rate,
    c.events_seen,
    c.attempts_written,
    c.dead_lettered,
    c.last_run_at,
    (c.last_run_summary ->> 'blocked_by'::text) AS blocked_by
   FROM ((((tidemark.worker_cursor c
     LEFT JOIN tidemark.cursor_sample p ON (((p.worker = c.worker) AND (p.source = c.source) AND (p.shard = c.shard) AND (p.older_at > (clock_timestamp() - '00:10:00'::interval)) AND (p.older_seen <= c.events_seen))))
     CROSS JOIN LATERAL ( SELECT tidemark.closed_gate(c.worker) AS gate) g)
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN (c.source = 'outbox'::text) THEN (c.watermark_id)::bigint
                    ELSE NULL::bigint
                END AS mark,
                CASE
                    WHEN (c.source = 'outbox'::text) THEN ( SELECT COALESCE(max(o.seq), (0)::bigint) AS "coalesce"
                       FROM tidemark.outbox o)
                    ELSE NULL::bigint
                END AS last_seq) s)
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN (c.source <> 'outbox'::text) THEN c.watermark_ts
                    WHEN (s.last_seq > s.mark) THEN ( SELECT o.created_at
                       FROM tidemark.outbox o
                      WHERE (o.seq > s.mark)
                      ORDER BY o.seq
                     LIMIT 1)
                    ELSE clock_timestamp()
                END AS since) t);
ALTER TABLE tidemark.cursor_lag OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.cursor_lag IS 'How far each cursor is behind: events (of the log; null for other sources), seconds (age of the oldest event not read, or of the watermark of another source; null: it has none yet), holes, rate (events a second over the last minutes; null: nobody called tidemark.maintain), gate (what it is closed by).';
ALTER TABLE tidemark.dead_letter ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidemark.dead_letter_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tidemark.decision (
    worker_id integer NOT NULL,
    route_id integer NOT NULL,
    last_seq bigint NOT NULL,
    first_seq bigint NOT NULL,
    events integer NOT NULL,
    outcome tidemark.outcome NOT NULL,
    reason text,
    seqs int8multirange NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT events_is_positive CHECK ((events > 0)),
    CONSTRAINT outcome_is_not_failed CHECK ((outcome <> 'failed'::tidemark.outcome))
)
PARTITION BY RANGE (last_seq);
ALTER TABLE tidemark.decision OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.decision IS 'What many events of a batch came to alike, at their first attempt, as ranges of event numbers: one row per batch, route and outcome. Shown one row an event by tidemark.route_attempt.';
COMMENT ON COLUMN tidemark.decision.worker_id IS 'tidemark.worker.id.';
COMMENT ON COLUMN tidemark.decision.route_id IS 'tidemark.outbound_route.id; 0: no route matched.';
COMMENT ON COLUMN tidemark.decision.last_seq IS 'Highest number in seqs. A number is decided once per worker and route, so this makes the key.';
COMMENT ON COLUMN tidemark.decision.first_seq IS 'Lowest number in seqs.';
COMMENT ON COLUMN tidemark.decision.events IS 'How many numbers seqs holds.';
COMMENT ON COLUMN tidemark.decision.outcome IS 'skipped, disabled, dry_run, sent, or pending (not tried yet).';
COMMENT ON COLUMN tidemark.decision.reason IS 'Closed set: no_route, or why a route that does not fail closed was skipped; why it is pending: behind_key, busy, breaker_open, gate_closed, suspect (the statement that it was in took too long); null where the outcome says it all.';
COMMENT ON COLUMN tidemark.decision.seqs IS 'Numbers of the events.';
COMMENT ON COLUMN tidemark.decision.decided_at IS 'When.';
CREATE TABLE tidemark.decision_p0 (
    worker_id integer NOT NULL,
    route_id integer NOT NULL,
    last_seq bigint NOT NULL,
    first_seq bigint NOT NULL,
    events integer NOT NULL,
    outcome tidemark.outcome NOT NULL,
    reason text,
    seqs int8multirange NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT events_is_positive CHECK ((events > 0)),
    CONSTRAINT outcome_is_not_failed CHECK ((outcome <> 'failed'::tidemark.outcome))
);
ALTER TABLE tidemark.decision_p0 OWNER TO tidemark_owner;
CREATE TABLE tidemark.decision_p1000000 (
    worker_id integer NOT NULL,
    route_id integer NOT NULL,
    last_seq bigint NOT NULL,
    first_seq bigint NOT NULL,
    events integer NOT NULL,
    outcome tidemark.outcome NOT NULL,
    reason text,
    seqs int8multirange NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT events_is_positive CHECK ((events > 0)),
    CONSTRAINT outcome_is_not_failed CHECK ((outcome <> 'failed'::tidemark.outcome))
);
ALTER TABLE tidemark.decision_p1000000 OWNER TO tidemark_owner;
CREATE TABLE tidemark.decision_p2000000 (
    worker_id integer NOT NULL,
    route_id integer NOT NULL,
    last_seq bigint NOT NULL,
    first_seq bigint NOT NULL,
    events integer NOT NULL,
    outcome tidemark.outcome NOT NULL,
    reason text,
    seqs int8multirange NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT events_is_positive CHECK ((events > 0)),
    CONSTRAINT outcome_is_not_failed CHECK ((outcome <> 'failed'::tidemark.outcome))
);
ALTER TABLE tidemark.decision_p2000000 OWNER TO tidemark_owner;
CREATE TABLE tidemark.decision_rest (
    worker_id integer NOT NULL,
    route_id integer NOT NULL,
    last_seq bigint NOT NULL,
    first_seq bigint NOT NULL,
    events integer NOT NULL,
    outcome tidemark.outcome NOT NULL,
    reason text,
    seqs int8multirange NOT NULL,
    decided_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT events_is_positive CHECK ((events > 0)),
    CONSTRAINT outcome_is_not_failed CHECK ((outcome <> 'failed'::tidemark.outcome))
);
ALTER TABLE tidemark.decision_rest OWNER TO tidemark_owner;
CREATE TABLE tidemark.emit_key (
    domain text NOT NULL,
    idempotency_key text NOT NULL,
    event_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    own boolean DEFAULT false NOT NULL
);
ALTER TABLE tidemark.emit_key OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.emit_key IS 'Idempotency keys of events, claimed in the emitter''s transaction. Kept for setting emit_key.retention.';
COMMENT ON COLUMN tidemark.emit_key.domain IS 'Scope of the key.';
COMMENT ON COLUMN tidemark.emit_key.idempotency_key IS 'The key as given to emit.';
COMMENT ON COLUMN tidemark.emit_key.event_id IS 'The first event emitted with it.';
COMMENT ON COLUMN tidemark.emit_key.created_at IS 'When that event was emitted.';
COMMENT ON COLUMN tidemark.emit_key.own IS 'True: a key that Tidemark made of a row, "tidemark:…", which no emitter can write. Default false.';
CREATE TABLE tidemark.emit_unregistered (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    domain text NOT NULL,
    type text NOT NULL,
    role text NOT NULL,
    emits bigint NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');
ALTER TABLE tidemark.emit_unregistered OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.emit_unregistered IS 'Emits that stored nothing, since their type was not registered or not enabled. Only ever inserted into, in the emitter''s transaction, and not beyond 8 MB; tidemark.maintain moves it to tidemark.unregistered_type.';
COMMENT ON COLUMN tidemark.emit_unregistered.id IS 'Number.';
COMMENT ON COLUMN tidemark.emit_unregistered.at IS 'When.';
COMMENT ON COLUMN tidemark.emit_unregistered.domain IS 'Domain as given, its first 63 characters; empty: null.';
COMMENT ON COLUMN tidemark.emit_unregistered.type IS 'Type as given, its first 128 characters; empty: null.';
COMMENT ON COLUMN tidemark.emit_unregistered.role IS 'The role that logged in.';
COMMENT ON COLUMN tidemark.emit_unregistered.emits IS 'How many, in one call.';
ALTER TABLE tidemark.emit_unregistered ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidemark.emit_unregistered_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE tidemark.finding ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidemark.finding_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tidemark.forbidden_key (
    key text NOT NULL,
    pattern text GENERATED ALWAYS AS ((('\\*"[[:space:]_.-]*'::text || regexp_replace(replace(key, '_'::text, ''::text), '(.)(?=.)'::text, '\1[[:space:]_.-]*'::text, 'g'::text)) || '[[:space:]_.-]*\\*"[[:space:]]*:'::text)) STORED NOT NULL,
    CONSTRAINT key_is_lower_case_words CHECK ((key ~ '^[a-z0-9]+(_[a-z0-9]+)*$'::text))
);
ALTER TABLE tidemark.forbidden_key OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.forbidden_key IS 'Keys refused in payloads of metadata-only domains, in heartbeats, in signals and in logs: at any depth, in any letter case, with or without separators, also inside encoded JSON. Source: S4 last_beat_payload CHECK.';
COMMENT ON COLUMN tidemark.forbidden_key.key IS 'Lower case, words joined by "_".';
COMMENT ON COLUMN tidemark.forbidden_key.pattern IS 'Regular expression that finds the key in the text of a JSON document.';
CREATE TABLE tidemark.silence (
    executor_id text NOT NULL,
    told_at timestamp with time zone,
    excused_at timestamp with time zone
);
ALTER TABLE tidemark.silence OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.silence IS 'What tidemark.stale_check knows of each executor, and the row that it locks while it tells of one.';
COMMENT ON COLUMN tidemark.silence.executor_id IS 'tidemark.heartbeat.executor_id.';
COMMENT ON COLUMN tidemark.silence.told_at IS 'When its silence was last told by an event; null: never.';
COMMENT ON COLUMN tidemark.silence.excused_at IS 'When it was last found to be silent because its worker is closed or paused: silence counts from here at the earliest.';
CREATE VIEW tidemark.heartbeat_health AS
 SELECT h.executor_id,
    h.kind,
    h.domain_scope,
        CASE
            WHEN (e.excuse IS NOT NULL) THEN 'quiet'::text
            WHEN (a.age > (h.stale_threshold_seconds)::numeric) THEN 'silent'::text
            ELSE 'alive'::text
        END AS state,
    e.excuse,
    (floor(a.age))::bigint AS age_seconds,
    h.expected_cadence_seconds,
    h.stale_threshold_seconds,
    (
        CASE
            WHEN (((a.age / (h.expected_cadence_seconds)::numeric) >= (3)::numeric) AND ((a.age / (h.expected_cadence_seconds)::numeric) < (10)::numeric)) THEN 'warning'::text
            ELSE 'critical'::text
        END)::tidemark.severity AS severity,
    h.last_status,
    h.last_beat_at,
    h.ticks_total,
    h.registered_at,
    h.registered_by,
    h.lease_owner,
    h.payload,
    c.worker
   FROM ((((tidemark.heartbeat h
     LEFT JOIN LATERAL ( SELECT c_1.worker,
            tidemark.closed_gate(c_1.worker) AS gate
           FROM tidemark.worker_cursor c_1
          WHERE (((((c_1.worker || '/'::text) || c_1.source) || '/'::text) || c_1.shard) = h.executor_id)
         LIMIT 1) c ON (true))
     LEFT JOIN tidemark.silence s ON ((s.executor_id = h.executor_id)))
     CROSS JOIN LATERAL ( SELECT EXTRACT(epoch FROM (clock_timestamp() - GREATEST(COALESCE(h.last_beat_at, h.watched_since, h.registered_at), s.excused_at))) AS age) a)
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN (c.gate = 'paused'::text) THEN 'paused'::text
                    WHEN (c.gate IS NOT NULL) THEN ('closed by '::text || c.gate)
                    WHEN ((h.last_beat_at IS NULL) AND (h.watched_since IS NULL)) THEN 'never run'::text
                    WHEN ((h.executor_id ~~ 'daemon/%'::text) AND (h.last_status = 'stopped'::text)) THEN 'stopped'::text
                    ELSE NULL::text
                END AS excuse) e);
ALTER TABLE tidemark.heartbeat_health OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.heartbeat_health IS 'How each executor is, by the database''s clock: state alive, silent (no beat for longer than its threshold), or quiet, excuse saying why its silence is no alarm: its worker is closed or paused, it was never run and nobody registered it to be waited for, or it is a daemon that was stopped. severity is that of its silence: warning where the age is 3 to below 10 cadences, else critical. worker is set where it is a worker''s cursor.';
CREATE TABLE tidemark.heartbeat_kind (
    kind text NOT NULL
);
ALTER TABLE tidemark.heartbeat_kind OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.heartbeat_kind IS 'Kinds of executor. Open: insert a row for a new kind. Source: S4 executor_kind.';
COMMENT ON COLUMN tidemark.heartbeat_kind.kind IS 'Name of the kind.';
ALTER TABLE tidemark.inbound_route ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidemark.inbound_route_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tidemark.migration (
    version integer NOT NULL,
    name text NOT NULL,
    breaking boolean DEFAULT false NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    applied_by text DEFAULT SESSION_USER NOT NULL,
    CONSTRAINT version_is_positive CHECK ((version > 0))
);
ALTER TABLE tidemark.migration OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.migration IS 'Migrations that have run, once each. Written by `tidemark migrate up`.';
COMMENT ON COLUMN tidemark.migration.version IS 'Number at the head of the file name.';
COMMENT ON COLUMN tidemark.migration.name IS 'File name without number and suffix.';
COMMENT ON COLUMN tidemark.migration.breaking IS 'True: workers of an earlier release must not run after it.';
COMMENT ON COLUMN tidemark.migration.checksum IS 'SHA-256 of the file, in hex. `tidemark migrate verify` compares it.';
COMMENT ON COLUMN tidemark.migration.applied_at IS 'When it was applied, by the clock of the database.';
COMMENT ON COLUMN tidemark.migration.applied_by IS 'The role that logged in to apply it.';
ALTER TABLE tidemark.outbound_route ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidemark.outbound_route_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tidemark.outbox_p0 (
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    lane tidemark.lane NOT NULL,
    severity tidemark.severity NOT NULL,
    domain text NOT NULL,
    type text NOT NULL,
    stream text,
    key text,
    subject_table text,
    subject_ref text,
    idempotency_key text,
    trace text,
    actor text NOT NULL,
    payload jsonb NOT NULL
);
ALTER TABLE tidemark.outbox_p0 OWNER TO tidemark_owner;
CREATE TABLE tidemark.outbox_p1000000 (
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    lane tidemark.lane NOT NULL,
    severity tidemark.severity NOT NULL,
    domain text NOT NULL,
    type text NOT NULL,
    stream text,
    key text,
    subject_table text,
    subject_ref text,
    idempotency_key text,
    trace text,
    actor text NOT NULL,
    payload jsonb NOT NULL
);
ALTER TABLE tidemark.outbox_p1000000 OWNER TO tidemark_owner;
CREATE TABLE tidemark.outbox_p2000000 (
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    lane tidemark.lane NOT NULL,
    severity tidemark.severity NOT NULL,
    domain text NOT NULL,
    type text NOT NULL,
    stream text,
    key text,
    subject_table text,
    subject_ref text,
    idempotency_key text,
    trace text,
    actor text NOT NULL,
    payload jsonb NOT NULL
);
ALTER TABLE tidemark.outbox_p2000000 OWNER TO tidemark_owner;
CREATE TABLE tidemark.outbox_rest (
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    lane tidemark.lane NOT NULL,
    severity tidemark.severity NOT NULL,
    domain text NOT NULL,
    type text NOT NULL,
    stream text,
    key text,
    subject_table text,
    subject_ref text,
    idempotency_key text,
    trace text,
    actor text NOT NULL,
    payload jsonb NOT NULL
);
ALTER TABLE tidemark.outbox_rest OWNER TO tidemark_owner;
ALTER TABLE tidemark.outbox ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidemark.outbox_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE tidemark.pack (
    pack text NOT NULL,
    version text NOT NULL,
    checksum text NOT NULL,
    installed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    installed_by text DEFAULT SESSION_USER NOT NULL
);
ALTER TABLE tidemark.pack OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.pack IS 'Packs installed: sets of domains, types, routes and workers.';
COMMENT ON COLUMN tidemark.pack.pack IS 'Name, e.g. iu-core.';
COMMENT ON COLUMN tidemark.pack.version IS 'Version of the pack.';
COMMENT ON COLUMN tidemark.pack.checksum IS 'SHA-256 of its SQL, in hex.';
COMMENT ON COLUMN tidemark.pack.installed_at IS 'When it was last installed.';
COMMENT ON COLUMN tidemark.pack.installed_by IS 'The role that logged in to install it.';
CREATE TABLE tidemark.pending_row (
    worker_id integer NOT NULL,
    source text NOT NULL,
    shard integer NOT NULL,
    item_id text NOT NULL,
    item_ts timestamp with time zone,
    snapshot jsonb NOT NULL,
    error_count integer DEFAULT 1 NOT NULL,
    last_error text NOT NULL,
    next_attempt_at timestamp with time zone NOT NULL,
    dead_letter_id bigint,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
ALTER TABLE tidemark.pending_row OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.pending_row IS 'Rows of sources that failed and are to be tried again. Source: S2 event_pending.';
COMMENT ON COLUMN tidemark.pending_row.worker_id IS 'tidemark.worker.id.';
COMMENT ON COLUMN tidemark.pending_row.source IS 'The source.';
COMMENT ON COLUMN tidemark.pending_row.shard IS 'The worker''s shard.';
COMMENT ON COLUMN tidemark.pending_row.item_id IS 'Id of the row, as text.';
COMMENT ON COLUMN tidemark.pending_row.item_ts IS 'Timestamp of the row.';
COMMENT ON COLUMN tidemark.pending_row.snapshot IS 'The row as it was: used where it is gone by then.';
COMMENT ON COLUMN tidemark.pending_row.error_count IS 'Attempts that failed so far.';
COMMENT ON COLUMN tidemark.pending_row.last_error IS 'Why the last one failed.';
COMMENT ON COLUMN tidemark.pending_row.next_attempt_at IS 'Not before.';
COMMENT ON COLUMN tidemark.pending_row.dead_letter_id IS 'Dead letter that this replays.';
COMMENT ON COLUMN tidemark.pending_row.created_at IS 'When it was staged.';
CREATE VIEW tidemark.queue_health AS
 WITH bound AS (
         SELECT EXTRACT(epoch FROM tidemark.interval_setting('lag.warn'::text, '00:01:00'::interval)) AS warn,
            EXTRACT(epoch FROM tidemark.interval_setting('lag.bad'::text, '00:15:00'::interval)) AS bad
        ), cursor AS MATERIALIZED (
         SELECT l.worker,
            l.source,
            l.shard,
            l.gate,
            l.events,
            l.seconds,
            l.holes,
            l.rate,
            l.events_seen,
            l.attempts_written,
            l.dead_lettered,
            l.last_run_at,
            l.blocked_by,
            ((((l.worker || '/'::text) || l.source) || '/'::text) || l.shard) AS name
           FROM tidemark.cursor_lag l
        ), beat AS MATERIALIZED (
         SELECT h.executor_id,
            h.kind,
            h.domain_scope,
            h.state,
            h.excuse,
            h.age_seconds,
            h.expected_cadence_seconds,
            h.stale_threshold_seconds,
            h.severity,
            h.last_status,
            h.last_beat_at,
            h.ticks_total,
            h.registered_at,
            h.registered_by,
            h.lease_owner,
            h.payload,
            h.worker
           FROM tidemark.heartbeat_health h
        ), waiting AS MATERIALIZED (
         SELECT r.route_code,
            r.worker,
            p.n,
            p.retried
           FROM (tidemark.outbound_route r
             CROSS JOIN LATERAL ( SELECT count(*) AS n,
                    count(*) FILTER (WHERE (p_1.error_count > 0)) AS retried
                   FROM ( SELECT p_2.error_count
                           FROM tidemark.pending p_2
                          WHERE (p_2.route_id = r.id)
                          ORDER BY p_2.next_attempt_at
                         LIMIT 10000) p_1) p)
          WHERE (p.n > 0)
        ), dead AS MATERIALIZED (
         SELECT r.route_code,
            d.n,
            d.last_failed_at
           FROM (tidemark.outbound_route r
             CROSS JOIN LATERAL ( SELECT count(*) AS n,
                    max(l.last_failed_at) AS last_failed_at
                   FROM ( SELECT l_1.last_failed_at
                           FROM tidemark.dead_letter l_1
                          WHERE ((l_1.route_id = r.id) AND (l_1.resolved_at IS NULL))
                          ORDER BY l_1.last_failed_at DESC
                         LIMIT 10000) l) d)
          WHERE (d.n > 0)
        )
 SELECT 'cursor'::text AS kind,
    c.name,
        CASE
            WHEN (c.gate IS NOT NULL) THEN 'ok'::text
            WHEN ((c.blocked_by IS NOT NULL) OR (b.state = 'silent'::text)) THEN 'bad'::text
            WHEN (c.last_run_at IS NULL) THEN 'warn'::text
            ELSE 'ok'::text
        END AS status,
    (floor(EXTRACT(epoch FROM (clock_timestamp() - c.last_run_at))))::bigint AS age_seconds,
    c.holes AS count,
    jsonb_build_object('events_seen', c.events_seen, 'attempts_written', c.attempts_written, 'dead_lettered', c.dead_lettered, 'holes', c.holes, 'rate', c.rate) AS numbers,
        CASE
            WHEN (c.gate IS NOT NULL) THEN
            CASE c.gate
                WHEN 'paused'::text THEN 'paused'::text
                ELSE ('closed by '::text || c.gate)
            END
            WHEN (c.blocked_by IS NOT NULL) THEN ('waits: too many numbers below it are open, kept so by '::text || c.blocked_by)
            WHEN (c.last_run_at IS NULL) THEN 'never run'::text
            WHEN (b.state = 'silent'::text) THEN 'silent'::text
            ELSE ''::text
        END AS note
   FROM (cursor c
     LEFT JOIN beat b ON ((b.executor_id = c.name)))
UNION ALL
 SELECT 'backlog'::text AS kind,
    c.name,
        CASE
            WHEN ((c.gate IS NOT NULL) OR ((COALESCE(c.seconds, (0)::bigint))::numeric <= w.warn)) THEN 'ok'::text
            WHEN ((c.seconds)::numeric <= w.bad) THEN 'warn'::text
            ELSE 'bad'::text
        END AS status,
    c.seconds AS age_seconds,
    c.events AS count,
    jsonb_build_object('events', c.events, 'seconds', c.seconds, 'rate', c.rate) AS numbers,
        CASE
            WHEN (c.gate IS NOT NULL) THEN
            CASE c.gate
                WHEN 'paused'::text THEN 'paused'::text
                ELSE ('closed by '::text || c.gate)
            END
            WHEN (c.seconds IS NULL) THEN 'at the beginning'::text
            ELSE ''::text
        END AS note
   FROM cursor c,
    bound w
UNION ALL
 SELECT 'heartbeat'::text AS kind,
    b.executor_id AS name,
        CASE
            WHEN (b.state = 'silent'::text) THEN 'bad'::text
            WHEN ((b.state = 'alive'::text) AND (b.last_status ~~ 'failed%'::text)) THEN 'warn'::text
            ELSE 'ok'::text
        END AS status,
    b.age_seconds,
    b.ticks_total AS count,
    jsonb_build_object('age_seconds', b.age_seconds, 'cadence_seconds', b.expected_cadence_seconds, 'threshold_seconds', b.stale_threshold_seconds, 'ticks_total', b.ticks_total) AS numbers,
        CASE b.state
            WHEN 'quiet'::text THEN b.excuse
            WHEN 'silent'::text THEN ('silent; it last said '::text || b.last_status)
            ELSE b.last_status
        END AS note
   FROM beat b
UNION ALL
 SELECT 'dead_letter_event'::text AS kind,
    d.route_code AS name,
    'warn'::text AS status,
    (floor(EXTRACT(epoch FROM (clock_timestamp() - d.last_failed_at))))::bigint AS age_seconds,
    d.n AS count,
    jsonb_build_object('open', d.n) AS numbers,
        CASE
            WHEN (d.n = 10000) THEN '10000 or more'::text
            ELSE ''::text
        END AS note
   FROM dead d
UNION ALL
 SELECT 'pending'::text AS kind,
    p.route_code AS name,
        CASE
            WHEN ((tidemark.closed_gate(p.worker) IS NOT NULL) OR ((COALESCE(t.overdue, (0)::bigint))::numeric <= w.warn)) THEN 'ok'::text
            WHEN ((t.overdue)::numeric <= w.bad) THEN 'warn'::text
            ELSE 'bad'::text
        END AS status,
    t.overdue AS age_seconds,
    p.n AS count,
    jsonb_build_object('waiting', p.n, 'retried', p.retried, 'overdue_seconds', t.overdue) AS numbers,
        CASE
            WHEN (p.n = 10000) THEN '10000 or more'::text
            ELSE ''::text
        END AS note
   FROM (((waiting p
     JOIN tidemark.outbound_route r ON ((r.route_code = p.route_code)))
     CROSS JOIN bound w)
     CROSS JOIN LATERAL ( SELECT (GREATEST(floor(EXTRACT(epoch FROM (clock_timestamp() - NULLIF(min(n.next_attempt_at), 'infinity'::timestamp with time zone)))), (0)::numeric))::bigint AS overdue
           FROM tidemark.pending n
          WHERE (n.route_id = r.id)) t)
UNION ALL
 SELECT 'job_backlog'::text AS kind,
    j.name,
        CASE
            WHEN (NOT j.readable) THEN 'unknown'::text
            WHEN ((COALESCE(j.oldest_seconds, (0)::bigint))::numeric <= w.warn) THEN 'ok'::text
            WHEN ((j.oldest_seconds)::numeric <= w.bad) THEN 'warn'::text
            ELSE 'bad'::text
        END AS status,
    j.oldest_seconds AS age_seconds,
    (j.waiting + j.retrying) AS count,
    jsonb_build_object('waiting', j.waiting, 'retrying', j.retrying) AS numbers,
        CASE
            WHEN (NOT j.readable) THEN 'this role may not read the table'::text
            WHEN (GREATEST(j.waiting, j.retrying) = 10000) THEN '10000 or more'::text
            ELSE ''::text
        END AS note
   FROM tidemark.river_health() j(name, readable, waiting, retrying, oldest_seconds, dead, dead_seconds),
    bound w
UNION ALL
 SELECT 'dead_letter_job'::text AS kind,
    j.name,
    'warn'::text AS status,
    j.dead_seconds AS age_seconds,
    j.dead AS count,
    jsonb_build_object('discarded', j.dead) AS numbers,
        CASE
            WHEN (j.dead = 10000) THEN '10000 or more'::text
            ELSE ''::text
        END AS note
   FROM tidemark.river_health() j(name, readable, waiting, retrying, oldest_seconds, dead, dead_seconds)
  WHERE (j.dead > 0)
UNION ALL
 SELECT 'finding'::text AS kind,
    ((f.kind || ' '::text) || f.subject) AS name,
        CASE
            WHEN (f.severity >= 'high'::tidemark.severity) THEN 'bad'::text
            WHEN (f.severity = 'warning'::tidemark.severity) THEN 'warn'::text
            ELSE 'ok'::text
        END AS status,
    (floor(EXTRACT(epoch FROM (clock_timestamp() - f.opened_at))))::bigint AS age_seconds,
    f.count,
    jsonb_build_object('finding', f.id, 'count', f.count) AS numbers,
    f.detail AS note
   FROM tidemark.finding f
  WHERE (f.closed_at IS NULL);
ALTER TABLE tidemark.queue_health OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.queue_health IS 'One pane for watchdogs, a row for each thing: kind cursor, backlog (of a cursor), heartbeat, dead_letter_event and pending (of a route, where there are any), job_backlog and dead_letter_job (of River, where it is installed), finding (open). status: ok, warn (somebody should look), bad (something does not work) or unknown (it cannot be told). age_seconds: since the last run, beat or failure; of the oldest that waits. count: what waits or is open; of a cursor its holes, of a heartbeat its beats. What is switched off on purpose is ok, and note says so. Reads configuration, cursors and indexes, never a table that grows. Source: S4 v_queue_health.';
CREATE TABLE tidemark.replay_job (
    id bigint NOT NULL,
    route_id integer NOT NULL,
    worker_id integer NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    passed_seq bigint NOT NULL,
    key text,
    outcomes text[],
    rate double precision,
    due_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    staged bigint DEFAULT 0 NOT NULL,
    sent bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    left_out jsonb DEFAULT '{}'::jsonb NOT NULL,
    requested_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    requested_by text DEFAULT SESSION_USER NOT NULL,
    reason text NOT NULL,
    finished_at timestamp with time zone,
    cancelled_at timestamp with time zone,
    cancelled_by text,
    CONSTRAINT cancelled_is_whole CHECK (((cancelled_at IS NULL) = (cancelled_by IS NULL))),
    CONSTRAINT rate_is_positive CHECK ((rate > (0)::double precision)),
    CONSTRAINT span_is_in_order CHECK ((first_seq <= last_seq))
);
ALTER TABLE tidemark.replay_job OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.replay_job IS 'Replays of events on a route that an operator asked for, done step by step by the passes of its worker. Shown by tidemark.replay_summary.';
COMMENT ON COLUMN tidemark.replay_job.id IS 'Number for `tidemark route replay --cancel`.';
COMMENT ON COLUMN tidemark.replay_job.route_id IS 'tidemark.outbound_route.id.';
COMMENT ON COLUMN tidemark.replay_job.worker_id IS 'tidemark.worker.id: the worker of the route.';
COMMENT ON COLUMN tidemark.replay_job.first_seq IS 'First number of the span.';
COMMENT ON COLUMN tidemark.replay_job.last_seq IS 'Last number of the span, at most the worker''s watermark when the replay was asked for.';
COMMENT ON COLUMN tidemark.replay_job.passed_seq IS 'The replay has staged what is up to this number. It moves in the transaction that stages.';
COMMENT ON COLUMN tidemark.replay_job.key IS 'Only events with this ordering key; null: all.';
COMMENT ON COLUMN tidemark.replay_job.outcomes IS 'Only events that came to one of these on the route: sent, disabled, dry_run, skipped, failed, pending, or none (no evidence); null: any.';
COMMENT ON COLUMN tidemark.replay_job.rate IS 'Events per second at most, by the database''s clock; null: as many as the route takes.';
COMMENT ON COLUMN tidemark.replay_job.due_at IS 'When the next event may go.';
COMMENT ON COLUMN tidemark.replay_job.staged IS 'Events staged for delivery so far.';
COMMENT ON COLUMN tidemark.replay_job.sent IS 'Of these delivered.';
COMMENT ON COLUMN tidemark.replay_job.failed IS 'Of these dead-lettered.';
COMMENT ON COLUMN tidemark.replay_job.left_out IS 'Events passed over so far, by the reason: pending, dead_letter, discarded, no_match, open, outcome.';
COMMENT ON COLUMN tidemark.replay_job.requested_at IS 'When it was asked for.';
COMMENT ON COLUMN tidemark.replay_job.requested_by IS 'The role that logged in to ask.';
COMMENT ON COLUMN tidemark.replay_job.reason IS 'Why.';
COMMENT ON COLUMN tidemark.replay_job.finished_at IS 'When the last event of it was settled, or, of a cancelled one, it was cancelled; null: not yet.';
COMMENT ON COLUMN tidemark.replay_job.cancelled_at IS 'When it was cancelled.';
COMMENT ON COLUMN tidemark.replay_job.cancelled_by IS 'The role that logged in to cancel it.';
ALTER TABLE tidemark.replay_job ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidemark.replay_job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE VIEW tidemark.replay_summary AS
 SELECT j.id,
    r.route_code,
    w.worker,
        CASE
            WHEN (j.cancelled_at IS NOT NULL) THEN 'cancelled'::text
            WHEN (j.finished_at IS NOT NULL) THEN 'finished'::text
            WHEN (s.waits_for IS NOT NULL) THEN 'waiting'::text
            ELSE 'running'::text
        END AS state,
        CASE
            WHEN (j.finished_at IS NULL) THEN s.waits_for
            ELSE NULL::text
        END AS waits_for,
    j.first_seq,
    j.last_seq,
    j.passed_seq,
    j.key,
    j.outcomes,
    j.rate,
    j.staged,
    j.sent,
    j.failed,
    j.left_out,
    j.requested_at,
    j.requested_by,
    j.reason,
    j.finished_at
   FROM (((tidemark.replay_job j
     JOIN tidemark.outbound_route r ON ((r.id = j.route_id)))
     JOIN tidemark.worker w ON ((w.id = j.worker_id)))
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN (r.worker <> w.worker) THEN (('the route is of worker '::text || r.worker) || ' now'::text)
                    WHEN (NOT r.enabled) THEN 'the route is off'::text
                    WHEN r.dry_run THEN 'the route is in dry run'::text
                    ELSE tidemark.closed_gate(w.worker)
                END AS waits_for) s);
ALTER TABLE tidemark.replay_summary OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.replay_summary IS 'Replays on routes: state (running, waiting, finished, cancelled) and what it waits for, how far it has come (passed_seq from first_seq to last_seq), events staged and of these sent and failed (dead-lettered), and left out by reason.';
CREATE VIEW tidemark.route_attempt AS
 SELECT w.worker,
    r.route_code,
    o.event_id,
    s.seq,
    1 AS attempt_no,
    d.outcome,
    d.reason,
    NULL::text AS detail,
    d.decided_at,
    tidemark.attempt_key(w.worker, r.route_code, o.event_id) AS idempotency_key
   FROM ((((tidemark.decision d
     CROSS JOIN LATERAL unnest(tidemark.multirange_numbers(d.seqs)) s(seq))
     JOIN tidemark.worker w ON ((w.id = d.worker_id)))
     LEFT JOIN tidemark.outbound_route r ON ((r.id = d.route_id)))
     LEFT JOIN tidemark.outbox o ON ((o.seq = s.seq)))
UNION ALL
 SELECT w.worker,
    r.route_code,
    COALESCE(o.event_id, l.event_id) AS event_id,
    a.seq,
    a.attempt_no,
    a.outcome,
    a.reason,
    a.detail,
    a.decided_at,
    COALESCE(tidemark.attempt_key(w.worker, r.route_code, COALESCE(o.event_id, l.event_id)), l.idempotency_key) AS idempotency_key
   FROM ((((tidemark.attempt a
     JOIN tidemark.worker w ON ((w.id = a.worker_id)))
     JOIN tidemark.outbound_route r ON ((r.id = a.route_id)))
     LEFT JOIN tidemark.outbox o ON ((o.seq = a.seq)))
     LEFT JOIN tidemark.dead_letter l ON (((o.seq IS NULL) AND (l.seq = a.seq) AND (l.worker_id = a.worker_id) AND (l.route_id = a.route_id))));
ALTER TABLE tidemark.route_attempt OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.route_attempt IS 'The evidence, one row per event, route and attempt: what was decided, and what came of it. route_code null: no route claimed the event. Unique by (idempotency_key, attempt_no). For one event tidemark.event_evidence is quicker. Source: S0 iu_route_attempt.';
CREATE VIEW tidemark.route_summary AS
 SELECT r.route_code,
    r.worker,
    r.target_kind,
        CASE
            WHEN (NOT r.enabled) THEN 'off'::text
            WHEN r.dry_run THEN 'dry run'::text
            ELSE 'live'::text
        END AS state,
    (COALESCE(d.sent, (0)::bigint) + a.sent) AS sent,
    a.retried,
    a.failed AS dead,
    p.pending,
    p.retrying,
    (floor(EXTRACT(epoch FROM (clock_timestamp() - f.created_at))))::bigint AS oldest_pending_seconds,
    l.open AS open_dead_letters,
        CASE
            WHEN (EXISTS ( SELECT
               FROM tidemark.finding t
              WHERE ((t.kind = 'target_down'::text) AND (t.subject = r.route_code) AND (t.closed_at IS NULL)))) THEN 'open'::text
            WHEN (EXISTS ( SELECT
               FROM tidemark.finding t
              WHERE ((t.kind = 'route_misconfigured'::text) AND (t.subject = r.route_code) AND (t.closed_at IS NULL)))) THEN 'misconfigured'::text
            ELSE NULL::text
        END AS breaker
   FROM ((((((tidemark.outbound_route r
     JOIN tidemark.worker w ON ((w.worker = r.worker)))
     CROSS JOIN LATERAL ( SELECT sum(d_1.events) FILTER (WHERE (d_1.outcome = 'sent'::tidemark.outcome)) AS sent
           FROM ( SELECT d_2.outcome,
                    d_2.events
                   FROM tidemark.decision d_2
                  WHERE ((d_2.worker_id = w.id) AND (d_2.route_id = r.id))
                  ORDER BY d_2.last_seq DESC
                 LIMIT 100) d_1) d)
     CROSS JOIN LATERAL ( SELECT count(*) FILTER (WHERE (a_1.outcome = 'sent'::tidemark.outcome)) AS sent,
            count(*) FILTER (WHERE ((a_1.outcome = 'pending'::tidemark.outcome) AND (a_1.detail IS NOT NULL))) AS retried,
            count(*) FILTER (WHERE (a_1.outcome = 'failed'::tidemark.outcome)) AS failed
           FROM ( SELECT a_2.outcome,
                    a_2.detail
                   FROM tidemark.attempt a_2
                  WHERE ((a_2.worker_id = w.id) AND (a_2.route_id = r.id))
                  ORDER BY a_2.seq DESC
                 LIMIT 1000) a_1) a)
     CROSS JOIN LATERAL ( SELECT count(*) AS pending,
            count(*) FILTER (WHERE (p_1.error_count > 0)) AS retrying
           FROM ( SELECT p_2.error_count
                   FROM tidemark.pending p_2
                  WHERE (p_2.route_id = r.id)
                  ORDER BY p_2.next_attempt_at
                 LIMIT 10000) p_1) p)
     LEFT JOIN LATERAL ( SELECT p_1.created_at
           FROM tidemark.pending p_1
          WHERE ((p_1.worker_id = w.id) AND (p_1.route_id = r.id))
          ORDER BY p_1.seq
         LIMIT 1) f ON (true))
     CROSS JOIN LATERAL ( SELECT count(*) AS open
           FROM ( SELECT
                   FROM tidemark.dead_letter l_2
                  WHERE ((l_2.route_id = r.id) AND (l_2.resolved_at IS NULL))
                  ORDER BY l_2.last_failed_at
                 LIMIT 10000) l_1) l);
ALTER TABLE tidemark.route_summary OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.route_summary IS 'How each route is doing: sent, retried and dead over its newest evidence (100 batches and 1000 single attempts), so that no growing table is read; pending, retrying (of these, tried before) and open_dead_letters, counted up to 10000; how long the first pending event has waited; breaker: open (finding target_down), misconfigured, or null.';
CREATE TABLE tidemark.setting (
    key text NOT NULL,
    value text NOT NULL,
    description text DEFAULT ''::text NOT NULL
);
ALTER TABLE tidemark.setting OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.setting IS 'Settings and gates. A gate (a key that ends in ".enabled") is open when its value is "true"; absent means closed. Source: S0 dot_config.';
COMMENT ON COLUMN tidemark.setting.key IS 'Name, e.g. routes.enabled, worker.<name>.enabled, outbox.retention.';
COMMENT ON COLUMN tidemark.setting.value IS 'Value as text. Never a secret.';
COMMENT ON COLUMN tidemark.setting.description IS 'Meaning and unit, for people.';
CREATE TABLE tidemark.source_count (
    worker_id integer NOT NULL,
    source text NOT NULL,
    shard integer NOT NULL,
    bucket timestamp with time zone NOT NULL,
    items bigint NOT NULL
)
WITH (fillfactor='70');
ALTER TABLE tidemark.source_count OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.source_count IS 'How many rows of each time bucket were handled, of sources with a sweep: compared with the table before verified_through moves.';
COMMENT ON COLUMN tidemark.source_count.worker_id IS 'tidemark.worker.id.';
COMMENT ON COLUMN tidemark.source_count.source IS 'The source.';
COMMENT ON COLUMN tidemark.source_count.shard IS 'The worker''s shard.';
COMMENT ON COLUMN tidemark.source_count.bucket IS 'Beginning of the bucket.';
COMMENT ON COLUMN tidemark.source_count.items IS 'Rows handled, staged as pending or dead-lettered.';
CREATE VIEW tidemark.source_cursor AS
 SELECT c.worker,
    c.source,
    c.shard,
    w.handler,
    w.handler_ref,
    c.phase,
    c.watermark_ts,
    c.watermark_id,
        CASE
            WHEN isfinite(o.oldest) THEN GREATEST((clock_timestamp() - o.oldest), '00:00:00'::interval)
            ELSE NULL::interval
        END AS lag,
    c.verified_through,
    c.events_seen,
    ( SELECT count(*) AS count
           FROM tidemark.pending_row p
          WHERE ((p.worker_id = w.id) AND (p.source = c.source) AND (p.shard = c.shard))) AS pending,
    ( SELECT count(*) AS count
           FROM tidemark.dead_letter l
          WHERE ((l.worker_id = w.id) AND (l.source = c.source) AND (l.shard = c.shard) AND (l.resolved_at IS NULL))) AS open_dead_letters,
    c.dead_lettered,
    c.last_run_at,
    c.last_run_summary,
    c.paused_at
   FROM ((tidemark.worker_cursor c
     JOIN tidemark.worker w ON ((w.worker = c.worker)))
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN (((c.last_run_summary ->> 'status'::text) = 'ran'::text) AND ((c.last_run_summary ->> 'more'::text) = 'false'::text)) THEN COALESCE(c.horizon, c.last_run_at)
                    ELSE c.watermark_ts
                END AS watermark_ts) o(oldest))
  WHERE (c.source <> 'outbox'::text);
ALTER TABLE tidemark.source_cursor OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.source_cursor IS 'How far each worker has come in each source. lag: age of the oldest row that may not have been read yet; null: nothing was read, or the source has no timestamp and rows are left.';
CREATE TABLE tidemark.source_ledger (
    worker_id integer NOT NULL,
    source text NOT NULL,
    shard integer NOT NULL,
    item_id text NOT NULL,
    xid xid8 NOT NULL
);
ALTER TABLE tidemark.source_ledger OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.source_ledger IS 'Rows handled already of transactions that the last sweep could not be sure to have seen whole. A sweep drops what has become older.';
COMMENT ON COLUMN tidemark.source_ledger.worker_id IS 'tidemark.worker.id.';
COMMENT ON COLUMN tidemark.source_ledger.source IS 'The source.';
COMMENT ON COLUMN tidemark.source_ledger.shard IS 'The worker''s shard.';
COMMENT ON COLUMN tidemark.source_ledger.item_id IS 'Id of the row, as text.';
COMMENT ON COLUMN tidemark.source_ledger.xid IS 'Transaction that wrote the row (xmin, widened).';
CREATE VIEW tidemark.sources AS
 SELECT s.source,
    format('%I.%I'::text, s.schema_name, s.table_name) AS "table",
    s.id_column,
    s.timestamp_column,
    s.safety,
    s.sweep_window,
    COALESCE(c.workers, '{}'::text[]) AS workers,
    c.lag,
    c.verified_through,
    COALESCE(c.pending, (0)::bigint) AS pending,
    COALESCE(c.open_dead_letters, (0)::bigint) AS open_dead_letters,
    s.description
   FROM (tidemark.source s
     LEFT JOIN ( SELECT c_1.source,
            array_agg(DISTINCT c_1.worker) AS workers,
            max(c_1.lag) AS lag,
                CASE
                    WHEN (count(*) = count(c_1.verified_through)) THEN min(c_1.verified_through)
                    ELSE NULL::timestamp with time zone
                END AS verified_through,
            (sum(c_1.pending))::bigint AS pending,
            (sum(c_1.open_dead_letters))::bigint AS open_dead_letters
           FROM tidemark.source_cursor c_1
          GROUP BY c_1.source) c ON ((c.source = s.source)));
ALTER TABLE tidemark.sources OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.sources IS 'Each source with the workers that read it, the lag of the slowest, and how far all of them have verified by count.';
CREATE TABLE tidemark.stage (
    singleton boolean DEFAULT true NOT NULL,
    stage text DEFAULT 'dry_run'::text NOT NULL,
    system_identifier bigint,
    database text,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    changed_by text DEFAULT SESSION_USER NOT NULL,
    reason text DEFAULT 'installed'::text NOT NULL,
    CONSTRAINT live_is_bound CHECK (((stage = 'dry_run'::text) OR ((system_identifier IS NOT NULL) AND (database IS NOT NULL)))),
    CONSTRAINT stage_is_known CHECK ((stage = ANY (ARRAY['dry_run'::text, 'live'::text]))),
    CONSTRAINT there_is_one_row CHECK (singleton)
);
ALTER TABLE tidemark.stage OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.stage IS 'One row: dry_run (fresh installs) or live. Live is bound to this cluster and database, so a restored or cloned copy is disarmed. Source: S1 "route CHECK enabled=false OR dry_run=true".';
COMMENT ON COLUMN tidemark.stage.singleton IS 'Always true: there is one row.';
COMMENT ON COLUMN tidemark.stage.stage IS 'dry_run: no route may be enabled and live. live: it may.';
COMMENT ON COLUMN tidemark.stage.system_identifier IS 'Cluster that was made live; another one does not deliver.';
COMMENT ON COLUMN tidemark.stage.database IS 'Database that was made live; a copy under another name does not deliver.';
COMMENT ON COLUMN tidemark.stage.changed_at IS 'When the stage was last set.';
COMMENT ON COLUMN tidemark.stage.changed_by IS 'The role that logged in to set it.';
COMMENT ON COLUMN tidemark.stage.reason IS 'Why, as that person said.';
CREATE TABLE tidemark.unregistered_type (
    domain text NOT NULL,
    type text NOT NULL,
    role text NOT NULL,
    emits bigint NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL
);
ALTER TABLE tidemark.unregistered_type OWNER TO tidemark_owner;
COMMENT ON TABLE tidemark.unregistered_type IS 'Types that were emitted and are not registered, or not enabled: by which role, how often. At most 1,000 rows, then domain and type "*" stand for the others. Kept by tidemark.maintain: a row goes when its type is enabled, or a day after the last emit.';
COMMENT ON COLUMN tidemark.unregistered_type.domain IS 'Domain as given, its first 63 characters; empty: null.';
COMMENT ON COLUMN tidemark.unregistered_type.type IS 'Type as given, its first 128 characters; empty: null.';
COMMENT ON COLUMN tidemark.unregistered_type.role IS 'The role that logged in; "*" for the others.';
COMMENT ON COLUMN tidemark.unregistered_type.emits IS 'How many emits stored nothing.';
COMMENT ON COLUMN tidemark.unregistered_type.first_at IS 'The first of them.';
COMMENT ON COLUMN tidemark.unregistered_type.last_at IS 'The latest of them.';
CREATE VIEW tidemark.waiting AS
 SELECT w.worker,
    'outbox'::text AS source,
    r.route_code,
    0 AS shard,
    (p.seq)::text AS item,
    p.error_count,
    p.last_error,
    p.next_attempt_at,
    p.dead_letter_id,
    p.created_at
   FROM ((tidemark.pending p
     JOIN tidemark.worker w ON ((w.id = p.worker_id)))
     JOIN tidemark.outbound_route r ON ((r.id = p.route_id)))
UNION ALL
 SELECT w.worker,
    p.source,
    NULL::text AS route_code,
    p.shard,
    p.item_id AS item,
    p.error_count,
    p.last_error,
    p.next_attempt_at,
    p.dead_letter_id,
    p.created_at
   FROM (tidemark.pending_row p
     JOIN tidemark.worker w ON ((w.id = p.worker_id)));
ALTER TABLE tidemark.waiting OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.waiting IS 'What waits to be tried: events (source outbox, item: the number) and rows of sources (item: the id), why, and not before when; infinity: behind an earlier event of its key.';
CREATE VIEW tidemark.worker_health AS
 SELECT c.worker,
    c.source,
    c.shard,
        CASE
            WHEN (g.gate IS NOT NULL) THEN 'closed'::text
            WHEN (c.last_run_at IS NULL) THEN 'never ran'::text
            WHEN ((c.last_run_summary ->> 'status'::text) = 'held'::text) THEN 'held'::text
            WHEN (c.last_run_summary ? 'blocked_by'::text) THEN 'blocked'::text
            WHEN (m.number IS NULL) THEN
            CASE
                WHEN ((c.last_run_summary ->> 'more'::text))::boolean THEN 'behind'::text
                ELSE 'idle'::text
            END
            WHEN (s.last_seq > m.number) THEN 'behind'::text
            ELSE 'idle'::text
        END AS status,
    g.gate,
    m.number AS watermark,
        CASE
            WHEN (m.number IS NOT NULL) THEN s.last_seq
            ELSE NULL::bigint
        END AS last_seq,
        CASE
            WHEN (m.number IS NOT NULL) THEN GREATEST((s.last_seq - m.number), (0)::bigint)
            ELSE NULL::bigint
        END AS behind,
    ( SELECT (COALESCE(sum((upper(r.r) - lower(r.r))), (0)::numeric))::bigint AS "coalesce"
           FROM unnest((c.holes + c.fenced)) r(r)) AS holes,
    c.last_run_at,
    c.last_run_summary,
    c.events_seen,
    c.attempts_written,
    c.dead_lettered,
    ( SELECT count(*) AS count
           FROM tidemark.dead_letter l
          WHERE ((l.worker_id = w.id) AND (l.source = c.source) AND (l.shard = c.shard) AND (l.resolved_at IS NULL))) AS open_dead_letters,
        CASE
            WHEN (m.number IS NOT NULL) THEN ( SELECT count(*) AS count
               FROM tidemark.pending p
              WHERE (p.worker_id = w.id))
            ELSE ( SELECT count(*) AS count
               FROM tidemark.pending_row p
              WHERE ((p.worker_id = w.id) AND (p.source = c.source) AND (p.shard = c.shard)))
        END AS pending
   FROM ((((tidemark.worker_cursor c
     JOIN tidemark.worker w ON ((w.worker = c.worker)))
     CROSS JOIN LATERAL ( SELECT tidemark.closed_gate(c.worker) AS closed_gate) g(gate))
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN (c.source = 'outbox'::text) THEN (c.watermark_id)::bigint
                    ELSE NULL::bigint
                END AS "case") m(number))
     CROSS JOIN ( SELECT COALESCE(max(o.seq), (0)::bigint) AS "coalesce"
           FROM tidemark.outbox o) s(last_seq));
ALTER TABLE tidemark.worker_health OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.worker_health IS 'How each worker is: status closed (gate says by what), never ran, held or blocked (last_run_summary says why), behind or idle; how far it is behind in numbers (of the log; null for tables); what is open of the cursor. Source: S0 fn_iu_route_worker_health.';
ALTER TABLE tidemark.worker ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tidemark.worker_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE VIEW tidemark.worker_summary AS
 SELECT l.worker,
    l.source,
    l.shard,
        CASE
            WHEN (l.gate IS NOT NULL) THEN 'closed'::text
            WHEN (l.last_run_at IS NULL) THEN 'never ran'::text
            WHEN (l.blocked_by IS NOT NULL) THEN 'blocked'::text
            WHEN (l.events > 0) THEN 'behind'::text
            ELSE 'idle'::text
        END AS status,
    l.gate,
    l.events,
    l.seconds,
    l.rate,
    l.holes,
    p.pending,
    p.oldest_pending_seconds,
    p.open_dead_letters,
    l.last_run_at
   FROM (tidemark.cursor_lag l
     CROSS JOIN LATERAL ( SELECT (COALESCE(sum(r.pending), (0)::numeric))::bigint AS pending,
            max(r.oldest_pending_seconds) AS oldest_pending_seconds,
            (COALESCE(sum(r.open_dead_letters), (0)::numeric))::bigint AS open_dead_letters
           FROM tidemark.route_summary r
          WHERE (r.worker = l.worker)
         HAVING (l.source = 'outbox'::text)
        UNION ALL
         SELECT ( SELECT count(*) AS count
                   FROM tidemark.pending_row r
                  WHERE ((r.worker_id = w.id) AND (r.source = l.source) AND (r.shard = l.shard))) AS count,
            ( SELECT (EXTRACT(epoch FROM (clock_timestamp() - min(r.created_at))))::bigint AS "extract"
                   FROM tidemark.pending_row r
                  WHERE ((r.worker_id = w.id) AND (r.source = l.source) AND (r.shard = l.shard))) AS "extract",
            ( SELECT count(*) AS count
                   FROM tidemark.dead_letter d
                  WHERE ((d.worker_id = w.id) AND (d.source = l.source) AND (d.shard = l.shard) AND (d.resolved_at IS NULL))) AS count
           FROM tidemark.worker w
          WHERE ((l.source <> 'outbox'::text) AND (w.worker = l.worker))) p);
ALTER TABLE tidemark.worker_summary OWNER TO tidemark_owner;
COMMENT ON VIEW tidemark.worker_summary IS 'How each cursor is doing: status closed (gate says by what), never ran, blocked, behind or idle; how far behind in events (of the log only) and seconds, events a second, holes, and what is pending and dead: of the log by the worker''s routes, as tidemark.route_summary counts it, of a table the rows that could not be handled.';
ALTER TABLE ONLY tidemark.attempt ATTACH PARTITION tidemark.attempt_p0 FOR VALUES FROM ('0') TO ('1000000');
ALTER TABLE ONLY tidemark.attempt ATTACH PARTITION tidemark.attempt_p1000000 FOR VALUES FROM ('1000000') TO ('2000000');
ALTER TABLE ONLY tidemark.attempt ATTACH PARTITION tidemark.attempt_p2000000 FOR VALUES FROM ('2000000') TO ('3000000');
ALTER TABLE ONLY tidemark.attempt ATTACH PARTITION tidemark.attempt_rest DEFAULT;
ALTER TABLE ONLY tidemark.decision ATTACH PARTITION tidemark.decision_p0 FOR VALUES FROM ('0') TO ('1000000');
ALTER TABLE ONLY tidemark.decision ATTACH PARTITION tidemark.decision_p1000000 FOR VALUES FROM ('1000000') TO ('2000000');
ALTER TABLE ONLY tidemark.decision ATTACH PARTITION tidemark.decision_p2000000 FOR VALUES FROM ('2000000') TO ('3000000');
ALTER TABLE ONLY tidemark.decision ATTACH PARTITION tidemark.decision_rest DEFAULT;
ALTER TABLE ONLY tidemark.outbox ATTACH PARTITION tidemark.outbox_p0 FOR VALUES FROM ('0') TO ('1000000');
ALTER TABLE ONLY tidemark.outbox ATTACH PARTITION tidemark.outbox_p1000000 FOR VALUES FROM ('1000000') TO ('2000000');
ALTER TABLE ONLY tidemark.outbox ATTACH PARTITION tidemark.outbox_p2000000 FOR VALUES FROM ('2000000') TO ('3000000');
ALTER TABLE ONLY tidemark.outbox ATTACH PARTITION tidemark.outbox_rest DEFAULT;
INSERT INTO public.counted OVERRIDING SYSTEM VALUE VALUES
	(1, 600),
	(2, 1),
	(3, 2),
	(4, 3),
	(5, 4),
	(6, 601),
	(7, 5),
	(8, 6);
INSERT INTO public.handled OVERRIDING SYSTEM VALUE VALUES
	(1, 'counted', 1),
	(2, 'counted', 2),
	(3, 'counted', 3),
	(4, 'counted', 4),
	(5, 'timed', 1),
	(6, 'timed', 2),
	(7, 'timed', 3),
	(8, 'timed', 4),
	(9, 'loose', 1),
	(10, 'loose', 2),
	(11, 'loose', 3),
	(12, 'loose', 4),
	(13, 'parcels', 1),
	(14, 'parcels', 2),
	(15, 'parcels', 3);
INSERT INTO public.loose OVERRIDING SYSTEM VALUE VALUES
	(1, 1, '2026-11-22 10:11:39.702612+00'),
	(2, 2, '2026-11-22 10:11:39.702732+00'),
	(3, 3, '2026-11-22 10:11:39.702738+00'),
	(4, 4, '2026-11-22 10:11:39.702742+00'),
	(5, 5, '2026-11-22 10:11:41.574891+00'),
	(6, 6, '2026-11-22 10:11:41.574923+00'),
	(7, 7, '2026-11-22 10:01:41.575428+00');
INSERT INTO public.orders OVERRIDING SYSTEM VALUE VALUES
	(1, 1),
	(2, 2),
	(3, 3);
INSERT INTO public.parcels OVERRIDING SYSTEM VALUE VALUES
	('88c82940-76d9-478a-ba35-959d49352651', 1, NULL),
	('10854013-e4c9-40c9-b715-b66ab750bac9', 2, NULL),
	('b1fd9728-8271-4921-9c4c-a1274f2992de', 3, NULL),
	('9b17e99d-dfd8-40be-a209-607c07d92871', 4, NULL),
	('eb60607c-0e7d-498f-8e47-ae3aa4acf359', 5, NULL),
	('22f943f1-9067-486d-b303-4c6a18b275fa', 6, NULL);
INSERT INTO public.received OVERRIDING SYSTEM VALUE VALUES
	(6, 1, NULL),
	(7, 2, NULL),
	(8, 3, 'a'),
	(9, 4, 'a'),
	(12, 5, NULL),
	(13, 7, NULL),
	(14, 8, NULL),
	(15, 10, 'a');
INSERT INTO public.timed OVERRIDING SYSTEM VALUE VALUES
	('f57b3d0b-e966-4755-b2d9-aa5379c4a046', 1, '2026-11-22 10:11:39.70226+00'),
	('f83aa0d0-4f24-4e73-81ec-444cd8173687', 2, '2026-11-22 10:11:39.702361+00'),
	('740956e9-bb90-4675-a2f4-23c3684b3d8b', 3, '2026-11-22 10:11:39.70237+00'),
	('6a1e5d66-fe34-4845-80f7-5dee0a9ace0d', 4, '2026-11-22 10:11:39.702377+00'),
	('2c4ba1e9-b027-4cc1-9b04-541d61e2e2f9', 5, '2026-11-22 10:11:41.571002+00'),
	('33bb1eb2-5877-4d51-b9b5-6c7d15580f82', 6, '2026-11-22 10:11:41.57103+00');
INSERT INTO tidemark.attempt_p0 OVERRIDING SYSTEM VALUE VALUES
	(2, 1, 2, 1, 'failed', '2026-11-22 10:11:38.592274+00', 'http_400', 'never'),
	(7, 1, 2, 1, 'failed', '2026-11-22 10:11:38.592564+00', 'http_400', 'never'),
	(8, 1, 2, 1, 'failed', '2026-11-22 10:11:38.592571+00', 'http_400', 'never'),
	(3, 1, 2, 1, 'pending', '2026-11-22 10:11:38.59258+00', 'http_503', 'not now'),
	(6, 1, 1, 1, 'failed', '2026-11-22 10:11:38.592588+00', 'P0001', 'no 6'),
	(7, 1, 2, 2, 'pending', '2026-11-22 10:11:38.636348+00', NULL, NULL),
	(7, 1, 2, 3, 'sent', '2026-11-22 10:11:38.64753+00', NULL, NULL),
	(2, 1, 2, 2, 'pending', '2026-11-22 10:11:38.667831+00', NULL, NULL),
	(6, 1, 2, 2, 'pending', '2026-11-22 10:11:38.737259+00', 'replay', NULL),
	(7, 1, 2, 4, 'pending', '2026-11-22 10:11:38.737282+00', 'replay', NULL);
INSERT INTO tidemark.audit OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-22 10:11:37.66918+00', 'ada', 'insert', 'domain test', NULL, NULL, '{"domain": "test", "description": "", "metadata_only": false}'),
	(2, '2026-11-22 10:11:37.670424+00', 'ada', 'insert', 'event_type tick', NULL, NULL, '{"type": "tick", "domain": "test", "schema": null, "enabled": true, "version": 1, "unchecked": true, "description": "", "metadata_only": false}'),
	(3, '2026-11-22 10:11:37.671281+00', 'ada', 'insert', 'domain parcels', NULL, NULL, '{"domain": "parcels", "description": "", "metadata_only": false}'),
	(4, '2026-11-22 10:11:37.67148+00', 'ada', 'insert', 'event_type made', NULL, NULL, '{"type": "made", "domain": "parcels", "schema": null, "enabled": true, "version": 1, "unchecked": true, "description": "", "metadata_only": false}'),
	(5, '2026-11-22 10:11:37.673306+00', 'ada', 'insert', 'domain orders', NULL, NULL, '{"domain": "orders", "description": "", "metadata_only": false}'),
	(6, '2026-11-22 10:11:37.674551+00', 'ada', 'insert', 'event_type insert', NULL, NULL, '{"type": "insert", "domain": "orders", "schema": null, "enabled": true, "version": 1, "unchecked": true, "description": "", "metadata_only": false}'),
	(7, '2026-11-22 10:11:37.675204+00', 'ada', 'insert', 'event_type update', NULL, NULL, '{"type": "update", "domain": "orders", "schema": null, "enabled": true, "version": 1, "unchecked": true, "description": "", "metadata_only": false}'),
	(8, '2026-11-22 10:11:37.681997+00', 'ada', 'update', 'stage live', 'in use', '{"stage": "dry_run", "reason": "installed", "database": null, "singleton": true, "changed_at": "2026-11-22T10:11:18.835499+00:00", "changed_by": "ada", "system_identifier": null}', '{"stage": "live", "reason": "in use", "database": "shop", "singleton": true, "changed_at": "2026-11-22T10:11:37.678089+00:00", "changed_by": "ada", "system_identifier": 7710936354221278716}'),
	(9, '2026-11-22 10:11:37.684764+00', 'ada', 'insert', 'outbound_route app', NULL, NULL, '{"id": 1, "type": "*", "domain": "test", "stream": null, "worker": "default", "dry_run": true, "enabled": false, "options": {}, "timeout": "00:00:10", "ordering": "none", "exclusive": false, "key_filter": null, "route_code": "app", "target_ref": "public.receive", "concurrency": 4, "description": "", "fail_closed": true, "target_kind": "sql", "retry_policy": null, "payload_filter": null}'),
	(10, '2026-11-22 10:11:37.723627+00', 'ada', 'update', 'outbound_route app', NULL, '{"id": 1, "type": "*", "domain": "test", "stream": null, "worker": "default", "dry_run": true, "enabled": false, "options": {}, "timeout": "00:00:10", "ordering": "none", "exclusive": false, "key_filter": null, "route_code": "app", "target_ref": "public.receive", "concurrency": 4, "description": "", "fail_closed": true, "target_kind": "sql", "retry_policy": null, "payload_filter": null}', '{"id": 1, "type": "*", "domain": "test", "stream": null, "worker": "default", "dry_run": false, "enabled": true, "options": {}, "timeout": "00:00:10", "ordering": "key", "exclusive": false, "key_filter": null, "route_code": "app", "target_ref": "public.receive", "concurrency": 4, "description": "", "fail_closed": true, "target_kind": "sql", "retry_policy": {"max_attempts": 1}, "payload_filter": null}'),
	(11, '2026-11-22 10:11:37.725076+00', 'ada', 'insert', 'outbound_route hook', NULL, NULL, '{"id": 2, "type": "*", "domain": "test", "stream": null, "worker": "default", "dry_run": true, "enabled": false, "options": {}, "timeout": "00:00:10", "ordering": "none", "exclusive": false, "key_filter": null, "route_code": "hook", "target_ref": "https://example.com/hook", "concurrency": 4, "description": "", "fail_closed": true, "target_kind": "webhook", "retry_policy": null, "payload_filter": null}'),
	(12, '2026-11-22 10:11:37.725794+00', 'ada', 'update', 'outbound_route hook', NULL, '{"id": 2, "type": "*", "domain": "test", "stream": null, "worker": "default", "dry_run": true, "enabled": false, "options": {}, "timeout": "00:00:10", "ordering": "none", "exclusive": false, "key_filter": null, "route_code": "hook", "target_ref": "https://example.com/hook", "concurrency": 4, "description": "", "fail_closed": true, "target_kind": "webhook", "retry_policy": null, "payload_filter": null}', '{"id": 2, "type": "*", "domain": "test", "stream": null, "worker": "default", "dry_run": false, "enabled": true, "options": {"unsigned": true}, "timeout": "00:00:10", "ordering": "key", "exclusive": false, "key_filter": null, "route_code": "hook", "target_ref": "https://example.com/hook", "concurrency": 4, "description": "", "fail_closed": true, "target_kind": "webhook", "retry_policy": null, "payload_filter": null}'),
	(13, '2026-11-22 10:11:37.741834+00', 'ada', 'insert', 'outbound_route off', NULL, NULL, '{"id": 3, "type": "*", "domain": "test", "stream": null, "worker": "default", "dry_run": true, "enabled": false, "options": {}, "timeout": "00:00:10", "ordering": "none", "exclusive": false, "key_filter": null, "route_code": "off", "target_ref": "public.receive", "concurrency": 4, "description": "", "fail_closed": true, "target_kind": "sql", "retry_policy": null, "payload_filter": null}'),
	(14, '2026-11-22 10:11:37.79128+00', 'ada', 'insert', 'outbound_route rehearsed', NULL, NULL, '{"id": 4, "type": "*", "domain": "test", "stream": null, "worker": "default", "dry_run": true, "enabled": false, "options": {}, "timeout": "00:00:10", "ordering": "none", "exclusive": false, "key_filter": null, "route_code": "rehearsed", "target_ref": "public.receive", "concurrency": 4, "description": "", "fail_closed": true, "target_kind": "sql", "retry_policy": null, "payload_filter": null}'),
	(15, '2026-11-22 10:11:37.792022+00', 'ada', 'update', 'outbound_route rehearsed', NULL, '{"id": 4, "type": "*", "domain": "test", "stream": null, "worker": "default", "dry_run": true, "enabled": false, "options": {}, "timeout": "00:00:10", "ordering": "none", "exclusive": false, "key_filter": null, "route_code": "rehearsed", "target_ref": "public.receive", "concurrency": 4, "description": "", "fail_closed": true, "target_kind": "sql", "retry_policy": null, "payload_filter": null}', '{"id": 4, "type": "*", "domain": "test", "stream": null, "worker": "default", "dry_run": true, "enabled": true, "options": {}, "timeout": "00:00:10", "ordering": "none", "exclusive": false, "key_filter": null, "route_code": "rehearsed", "target_ref": "public.receive", "concurrency": 4, "description": "", "fail_closed": true, "target_kind": "sql", "retry_policy": null, "payload_filter": {"n": 3}}'),
	(16, '2026-11-22 10:11:37.793289+00', 'ada', 'update', 'setting routes.enabled', NULL, '{"key": "routes.enabled", "value": "false", "description": "Master gate: nothing is routed or delivered while it is closed."}', '{"key": "routes.enabled", "value": "true", "description": "Master gate: nothing is routed or delivered while it is closed."}'),
	(17, '2026-11-22 10:11:37.793572+00', 'ada', 'insert', 'setting worker.default.enabled', NULL, NULL, '{"key": "worker.default.enabled", "value": "true", "description": "Gate."}'),
	(18, '2026-11-22 10:11:37.795318+00', 'ada', 'insert', 'worker idle', 'for later', NULL, '{"id": 2, "shards": 1, "source": "outbox", "worker": "idle", "domains": null, "handler": "route", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": null, "page_timeout": "00:00:05", "retry_policy": null, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}'),
	(49, '2026-11-22 10:11:41.599495+00', 'ada', 'insert', 'inbound_route orders-update', 'in use', NULL, '{"id": 3, "type": "update", "domain": "orders", "stream": null, "dry_run": true, "enabled": false, "sql_event": "update", "route_code": "orders-update", "description": "", "fail_closed": true, "source_table": "orders", "source_schema": "public", "payload_columns": [], "idempotency_policy": "change", "source_object_kind": "table"}'),
	(19, '2026-11-22 10:11:37.837114+00', 'ada', 'update', 'worker idle', 'for later', '{"id": 2, "shards": 1, "source": "outbox", "worker": "idle", "domains": null, "handler": "route", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": null, "page_timeout": "00:00:05", "retry_policy": null, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}', '{"id": 2, "shards": 1, "source": "outbox", "worker": "idle", "domains": ["parcels"], "handler": "route", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": null, "page_timeout": "00:00:05", "retry_policy": null, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}'),
	(20, '2026-11-22 10:11:37.838339+00', 'ada', 'update', 'setting batch.max_bytes', NULL, '{"key": "batch.max_bytes", "value": "16777216", "description": "Bytes of payload in a page of the log that is handed out for delivery outside the database; a single event may have more. At least 65536."}', '{"key": "batch.max_bytes", "value": "12345678", "description": "Bytes of payload in a page of the log that is handed out for delivery outside the database; a single event may have more. At least 65536."}'),
	(21, '2026-11-22 10:11:38.661891+00', 'ada', 'dead_letter_discard', 'dead_letter 3', 'obsolete', NULL, NULL),
	(22, '2026-11-22 10:11:38.711745+00', 'ada', 'route_replay', 'route hook', 'they lost them', NULL, '{"key": null, "rate": null, "counts": {"sent/": 2}, "replay": 1, "last_seq": 7, "outcomes": null, "first_seq": 6}'),
	(23, '2026-11-22 10:11:38.852356+00', 'ada', 'insert', 'inbound_route parcels', 'in use', NULL, '{"id": 1, "type": "made", "domain": "parcels", "stream": null, "dry_run": true, "enabled": false, "sql_event": "insert", "route_code": "parcels", "description": "", "fail_closed": true, "source_table": "parcels", "source_schema": "public", "payload_columns": [], "idempotency_policy": "change", "source_object_kind": "table"}'),
	(24, '2026-11-22 10:11:38.853054+00', 'ada', 'update', 'inbound_route parcels', 'in use', '{"id": 1, "type": "made", "domain": "parcels", "stream": null, "dry_run": true, "enabled": false, "sql_event": "insert", "route_code": "parcels", "description": "", "fail_closed": true, "source_table": "parcels", "source_schema": "public", "payload_columns": [], "idempotency_policy": "change", "source_object_kind": "table"}', '{"id": 1, "type": "made", "domain": "parcels", "stream": null, "dry_run": false, "enabled": true, "sql_event": "insert", "route_code": "parcels", "description": "", "fail_closed": true, "source_table": "parcels", "source_schema": "public", "payload_columns": [], "idempotency_policy": "change", "source_object_kind": "table"}'),
	(25, '2026-11-22 10:11:38.921593+00', 'ada', 'capture_attach', 'public.parcels', 'in use', NULL, '["select tidemark.capture_make(''parcels'')", "create trigger tidemark_capture_insert after insert on public.parcels referencing new table as tidemark_new for each statement execute function tidemark.capture_1()"]'),
	(26, '2026-11-22 10:11:39.181493+00', 'ada', 'insert', 'source counted', 'in use', NULL, '{"bucket": "01:00:00", "filter": null, "margin": "00:00:01", "safety": "sequence", "source": "counted", "id_type": "bigint", "group_key": [], "id_column": "id", "time_zone": null, "created_at": "2026-11-22T10:11:38.985152+00:00", "created_by": "ada", "table_name": "counted", "description": "", "key_columns": [], "schema_name": "public", "sweep_every": "00:01:00", "id_collate_c": false, "sweep_window": null, "timestamp_type": null, "timestamp_column": null}'),
	(27, '2026-11-22 10:11:39.325052+00', 'ada', 'insert', 'source timed', 'in use', NULL, '{"bucket": "01:00:00", "filter": null, "margin": "00:00:00.000001", "safety": "clock", "source": "timed", "id_type": "uuid", "group_key": [], "id_column": "id", "time_zone": null, "created_at": "2026-11-22T10:11:39.181872+00:00", "created_by": "ada", "table_name": "timed", "description": "", "key_columns": [], "schema_name": "public", "sweep_every": "00:01:00", "id_collate_c": false, "sweep_window": null, "timestamp_type": "timestamp with time zone", "timestamp_column": "born_at"}'),
	(28, '2026-11-22 10:11:39.419031+00', 'ada', 'insert', 'source loose', 'in use', NULL, '{"bucket": "01:00:00", "filter": null, "margin": "00:00:00.000001", "safety": "declared", "source": "loose", "id_type": "bigint", "group_key": [], "id_column": "id", "time_zone": null, "created_at": "2026-11-22T10:11:39.325269+00:00", "created_by": "ada", "table_name": "loose", "description": "", "key_columns": [], "schema_name": "public", "sweep_every": "00:01:00", "id_collate_c": false, "sweep_window": "3650 days", "timestamp_type": "timestamp with time zone", "timestamp_column": "born_at"}'),
	(29, '2026-11-22 10:11:39.444097+00', 'ada', 'insert', 'source parcels', 'in use', NULL, '{"bucket": "01:00:00", "filter": null, "margin": "00:00:01", "safety": "capture", "source": "parcels", "id_type": "uuid", "group_key": [], "id_column": "id", "time_zone": null, "created_at": "2026-11-22T10:11:39.419314+00:00", "created_by": "ada", "table_name": "parcels", "description": "", "key_columns": [], "schema_name": "public", "sweep_every": "00:01:00", "id_collate_c": false, "sweep_window": null, "timestamp_type": "timestamp with time zone", "timestamp_column": "born_at"}'),
	(30, '2026-11-22 10:11:39.47406+00', 'ada', 'insert', 'worker w_counted', 'in use', NULL, '{"id": 3, "shards": 1, "source": "table", "worker": "w_counted", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_counted", "page_timeout": "00:00:05", "retry_policy": null, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}'),
	(31, '2026-11-22 10:11:39.602459+00', 'ada', 'update', 'worker w_counted', 'in use', '{"id": 3, "shards": 1, "source": "table", "worker": "w_counted", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_counted", "page_timeout": "00:00:05", "retry_policy": null, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}', '{"id": 3, "shards": 1, "source": "table", "worker": "w_counted", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_counted", "page_timeout": "00:00:05", "retry_policy": {"max_seconds": 0.001, "base_seconds": 0.001, "max_attempts": 2}, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}'),
	(32, '2026-11-22 10:11:39.603121+00', 'ada', 'insert', 'worker w_timed', 'in use', NULL, '{"id": 4, "shards": 1, "source": "table", "worker": "w_timed", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_timed", "page_timeout": "00:00:05", "retry_policy": null, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}'),
	(33, '2026-11-22 10:11:39.603931+00', 'ada', 'update', 'worker w_timed', 'in use', '{"id": 4, "shards": 1, "source": "table", "worker": "w_timed", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_timed", "page_timeout": "00:00:05", "retry_policy": null, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}', '{"id": 4, "shards": 1, "source": "table", "worker": "w_timed", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_timed", "page_timeout": "00:00:05", "retry_policy": {"max_seconds": 0.001, "base_seconds": 0.001, "max_attempts": 2}, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}'),
	(34, '2026-11-22 10:11:39.604467+00', 'ada', 'insert', 'worker w_loose', 'in use', NULL, '{"id": 5, "shards": 1, "source": "table", "worker": "w_loose", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_loose", "page_timeout": "00:00:05", "retry_policy": null, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}'),
	(35, '2026-11-22 10:11:39.605068+00', 'ada', 'update', 'worker w_loose', 'in use', '{"id": 5, "shards": 1, "source": "table", "worker": "w_loose", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_loose", "page_timeout": "00:00:05", "retry_policy": null, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}', '{"id": 5, "shards": 1, "source": "table", "worker": "w_loose", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_loose", "page_timeout": "00:00:05", "retry_policy": {"max_seconds": 0.001, "base_seconds": 0.001, "max_attempts": 2}, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}'),
	(36, '2026-11-22 10:11:39.605503+00', 'ada', 'insert', 'worker w_parcels', 'in use', NULL, '{"id": 6, "shards": 1, "source": "table", "worker": "w_parcels", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_parcels", "page_timeout": "00:00:05", "retry_policy": null, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}'),
	(37, '2026-11-22 10:11:39.606084+00', 'ada', 'update', 'worker w_parcels', 'in use', '{"id": 6, "shards": 1, "source": "table", "worker": "w_parcels", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_parcels", "page_timeout": "00:00:05", "retry_policy": null, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}', '{"id": 6, "shards": 1, "source": "table", "worker": "w_parcels", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_parcels", "page_timeout": "00:00:05", "retry_policy": {"max_seconds": 0.001, "base_seconds": 0.001, "max_attempts": 2}, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}'),
	(38, '2026-11-22 10:11:39.645577+00', 'ada', 'worker_source_add', 'worker_cursor w_counted', 'in use', NULL, '{"shards": 1, "source": "counted"}'),
	(39, '2026-11-22 10:11:39.645872+00', 'ada', 'insert', 'setting worker.w_counted.enabled', NULL, NULL, '{"key": "worker.w_counted.enabled", "value": "true", "description": "Gate."}'),
	(40, '2026-11-22 10:11:39.653742+00', 'ada', 'worker_source_add', 'worker_cursor w_timed', 'in use', NULL, '{"shards": 1, "source": "timed"}'),
	(41, '2026-11-22 10:11:39.654007+00', 'ada', 'insert', 'setting worker.w_timed.enabled', NULL, NULL, '{"key": "worker.w_timed.enabled", "value": "true", "description": "Gate."}'),
	(42, '2026-11-22 10:11:39.689388+00', 'ada', 'worker_source_add', 'worker_cursor w_loose', 'in use', NULL, '{"shards": 1, "source": "loose"}'),
	(43, '2026-11-22 10:11:39.689676+00', 'ada', 'insert', 'setting worker.w_loose.enabled', NULL, NULL, '{"key": "worker.w_loose.enabled", "value": "true", "description": "Gate."}'),
	(44, '2026-11-22 10:11:39.691583+00', 'ada', 'worker_source_add', 'worker_cursor w_parcels', 'in use', NULL, '{"shards": 1, "source": "parcels"}'),
	(45, '2026-11-22 10:11:39.691776+00', 'ada', 'insert', 'setting worker.w_parcels.enabled', NULL, NULL, '{"key": "worker.w_parcels.enabled", "value": "true", "description": "Gate."}'),
	(46, '2026-11-22 10:11:41.500349+00', 'ada', 'update', 'worker w_counted', 'in use', '{"id": 3, "shards": 1, "source": "table", "worker": "w_counted", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_counted", "page_timeout": "00:00:05", "retry_policy": {"max_seconds": 0.001, "base_seconds": 0.001, "max_attempts": 2}, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}', '{"id": 3, "shards": 1, "source": "table", "worker": "w_counted", "domains": null, "handler": "sql", "off_peak": null, "page_size": 5000, "hole_limit": 10000, "peak_pause": "00:00:01", "read_order": "eager", "description": "", "handler_ref": "public.take_counted", "page_timeout": "00:00:05", "retry_policy": {"max_seconds": 86400, "base_seconds": 86400, "max_attempts": 2}, "storm_fraction": null, "coalesce_window": null, "lock_wait_limit": null, "payload_columns": [], "replication_lag_limit": null}'),
	(47, '2026-11-22 10:11:41.578101+00', 'ada', 'insert', 'inbound_route orders-insert', 'in use', NULL, '{"id": 2, "type": "insert", "domain": "orders", "stream": null, "dry_run": true, "enabled": false, "sql_event": "insert", "route_code": "orders-insert", "description": "", "fail_closed": true, "source_table": "orders", "source_schema": "public", "payload_columns": [], "idempotency_policy": "change", "source_object_kind": "table"}'),
	(48, '2026-11-22 10:11:41.583345+00', 'ada', 'update', 'inbound_route orders-insert', 'in use', '{"id": 2, "type": "insert", "domain": "orders", "stream": null, "dry_run": true, "enabled": false, "sql_event": "insert", "route_code": "orders-insert", "description": "", "fail_closed": true, "source_table": "orders", "source_schema": "public", "payload_columns": [], "idempotency_policy": "change", "source_object_kind": "table"}', '{"id": 2, "type": "insert", "domain": "orders", "stream": null, "dry_run": false, "enabled": true, "sql_event": "insert", "route_code": "orders-insert", "description": "", "fail_closed": true, "source_table": "orders", "source_schema": "public", "payload_columns": [], "idempotency_policy": "change", "source_object_kind": "table"}'),
	(50, '2026-11-22 10:11:41.599982+00', 'ada', 'update', 'inbound_route orders-update', 'in use', '{"id": 3, "type": "update", "domain": "orders", "stream": null, "dry_run": true, "enabled": false, "sql_event": "update", "route_code": "orders-update", "description": "", "fail_closed": true, "source_table": "orders", "source_schema": "public", "payload_columns": [], "idempotency_policy": "change", "source_object_kind": "table"}', '{"id": 3, "type": "update", "domain": "orders", "stream": null, "dry_run": false, "enabled": true, "sql_event": "update", "route_code": "orders-update", "description": "", "fail_closed": true, "source_table": "orders", "source_schema": "public", "payload_columns": [], "idempotency_policy": "change", "source_object_kind": "table"}'),
	(51, '2026-11-22 10:11:41.632692+00', 'ada', 'capture_attach', 'public.orders', 'in use', NULL, '["select tidemark.capture_make(''orders-insert'')", "create trigger tidemark_capture_insert after insert on public.orders referencing new table as tidemark_new for each statement execute function tidemark.capture_2()", "select tidemark.capture_make(''orders-update'')", "create trigger tidemark_capture_update after update on public.orders referencing old table as tidemark_old new table as tidemark_new for each statement execute function tidemark.capture_3()"]'),
	(52, '2026-11-22 10:11:41.824109+00', 'ada', 'heartbeat_register', 'heartbeat backup', NULL, NULL, '{"kind": "external_worker", "payload": {}, "executor_id": "backup", "last_status": "registered", "lease_epoch": 0, "lease_owner": null, "lease_until": null, "ticks_total": 0, "domain_scope": [], "last_beat_at": null, "registered_at": "2026-11-22T10:11:41.823791+00:00", "registered_by": "ada", "watched_since": "2026-11-22T10:11:41.823793+00:00", "stale_threshold_seconds": 86400, "expected_cadence_seconds": 60}'),
	(53, '2026-11-22 10:11:41.843519+00', 'ada', 'finding_ack', 'finding 4', 'known', '{"id": 4, "kind": "cursor_lease_conflict", "count": 1, "detail": "worker default: an instance was fenced, told by pid 30382, application \"psql\", user ada; the lease is of , epoch 1, until ", "subject": "default", "ack_note": null, "acked_at": null, "acked_by": null, "severity": "warning", "closed_at": null, "opened_at": "2026-11-22T10:11:41.842074+00:00", "last_seen_at": "2026-11-22T10:11:41.842074+00:00"}', '{"id": 4, "kind": "cursor_lease_conflict", "count": 1, "detail": "worker default: an instance was fenced, told by pid 30382, application \"psql\", user ada; the lease is of , epoch 1, until ", "subject": "default", "ack_note": "known", "acked_at": "2026-11-22T10:11:41.843326+00:00", "acked_by": "ada", "severity": "warning", "closed_at": null, "opened_at": "2026-11-22T10:11:41.842074+00:00", "last_seen_at": "2026-11-22T10:11:41.842074+00:00"}');
INSERT INTO tidemark.capture_checkpoint OVERRIDING SYSTEM VALUE VALUES
	(17588, '2026-11-22 10:11:41.761512+00', '853:853:', 22, 3, 0, 0, 1, NULL, 'public.orders'),
	(17582, '2026-11-22 10:11:41.761512+00', '853:853:', 22, 6, 0, 0, 1, NULL, 'public.parcels');
INSERT INTO tidemark.capture_gap OVERRIDING SYSTEM VALUE VALUES
	(1, 17588, 'public.orders', '2026-11-22 10:11:41.708422+00', '848:848:', '{2}', 1, 0, false, '2 changes counted by the server since 2026-11-22 10:11:41+00, 1 events, 0 without event on record; rows without event (an update that changes nothing counts too): 2', '2026-11-22 10:11:41.788324+00', 0, NULL, NULL, NULL, NULL);
INSERT INTO tidemark.code OVERRIDING SYSTEM VALUE VALUES
	('armed', 'a56f835d893418b9e07fd431bf8a483e0450c668c18901405938ae8d52d6ab95', 'bbf6116831e832498e7f768c56183b94', '2026-11-22 10:11:21.831077+00'),
	('attempt_key', '71b46c56a4f23a1c776aacd6a67284ce2b0904d68dbc93d4ad2ea8213e557b40', '3ba55fd14cf9b71eac6b5699ba0b3cd0', '2026-11-22 10:11:22.024418+00'),
	('audit_change', '136e34c7e99db27f045b5829b9e75a9f6fec8d7be6e643a69ee6122d8c065d2a', 'e23eaf4c3a10f566b35508b62f0cd14f', '2026-11-22 10:11:22.093671+00'),
	('beat', 'dafe3efc2e5f344a4f03a8e63198046e8be82acc5e44ebf53334379ca9d1172f', 'f1faa2e617491d30eb3ad73bce762708', '2026-11-22 10:11:22.140871+00'),
	('behind_key', '4b1a815486e97acd83d479b543b83757340a390874e73e199f312890bf68d7e1', '234cc58ab7fb71ff261267288c007f0f', '2026-11-22 10:11:22.191657+00'),
	('capture', '92b08731ea01b7c6a52bfb83b7bee92703f1ec619c88f94ecda8e448edba606d', '3dd4ae4b50b4bad43cc13efe7a919fa1', '2026-11-22 10:11:22.223862+00'),
	('capture_attach', '18f492ff85aca90e36a7a2e0b511fdbcc2168abc76086dc1815f9871eebc534e', '0a942678de0578d1ec5e28a7d781ab54', '2026-11-22 10:11:22.272109+00'),
	('capture_body', '17dc0808ab3a88e3d8f56e68f265531fef39d0de1176e3b3aee4536085bcd501', '985946ede802ada1846a118ae9542e2c', '2026-11-22 10:11:22.299497+00'),
	('capture_check', '1b4fb1e19192553c344f2fa5c5b26a75c0252b7a56ac748ae0ea1eb1e34f15b6', 'caa893842af7136f52242a2f83fc8970', '2026-11-22 10:11:22.337017+00'),
	('capture_columns', 'c50fe732f3e455698bc5935fc840b558bf854efaf469fd40167806e91d0ea369', 'abc0d0176fcbe47a9d5b33110b0dea0b', '2026-11-22 10:11:22.365866+00'),
	('capture_detach', '410b98374f9bf6e597ea637b524478d4955e22ffcd3ad4e3e170e6623ddbec17', '9804f8f3e34ff68804763cdbce2f1213', '2026-11-22 10:11:22.404015+00'),
	('capture_findings', 'c4adb6097f1e96c0d74024c2d2c2f8f2441516fed630eded3b0cbb0292775e29', '83103ec229b1f966720b1868e8dec515', '2026-11-22 10:11:22.436992+00'),
	('capture_fingerprint', '23a70151cf77addade8c480e616cd028669c5d7d6e6c22d564cd22bac83b0f62', '141e74b5172e78ef12e97e6ca2d42448', '2026-11-22 10:11:22.490236+00'),
	('capture_fits', '4571dd9d799f5e328a710ab7b1eaadc20d9461e118168bd1fdc27999e3eea8fe', '5d0076f89bb0174c8fd667ff23e690b6', '2026-11-22 10:11:22.518091+00'),
	('capture_gap_accept', '47e7aa6bc30a8a1d9b6bbe2daa47ae91b0e870b07373e40bde67a194cae4fa76', 'f06c8b3455e43186fe7deefe269efbe0', '2026-11-22 10:11:22.556579+00'),
	('capture_gap_emit', '885a1217934fcc48238afa1d2b1458a4e608012a3d5ee2655968aabf58244460', '099fdff3f186ea336f91f99250da7d27', '2026-11-22 10:11:22.59152+00'),
	('capture_gap_open', 'c8d3914492f773fa0adc8ba7cb58764797bc772af451bf6174dc1605638992ae', 'f91348728972614b7292a72556be537f', '2026-11-22 10:11:22.643998+00'),
	('capture_gap_resolve', '31195fd77a3b05e53273ee77f6c2bdd4b620f6ebd12485656184797b713210d4', 'add259b5de19eceeb85493fd549724da', '2026-11-22 10:11:22.70061+00'),
	('capture_gap_route', 'eee00708a981c1694d6e7175a728e4827425ed28d4c8db2e6dba2794e2666a7f', '0f4fb360a9a8300f5e9fdb95915bf834', '2026-11-22 10:11:22.748242+00'),
	('capture_gap_write', 'edac5bf4e0b01b3006bc02aeed2a3e269d2eacd7191428b68019b2d65c834355', 'e96d9301355d1edf2652fe2db20bf006', '2026-11-22 10:11:22.801649+00'),
	('capture_guard', 'b296c126658fe57212a2d42b96cac0d2a1dcc21251f74643f529b64e8c0d4bed', '3595766fa1518124736b50f4d5dc9c06', '2026-11-22 10:11:22.855774+00'),
	('capture_guard_check', '23eb3c115b2c0e1a6205704c77533e7d22303bc3716e43096d72809331628a3f', 'e51566411349651ba9813942c8b9cd43', '2026-11-22 10:11:22.898038+00'),
	('capture_is_made', 'd455e62c2c224c3ac8e4c06240233d909c675671ca41041ee29787f7398eb787', '98edd355369789958a675388636b2dc8', '2026-11-22 10:11:22.951594+00'),
	('capture_make', '6bb2eee50b5b637dcc1781c42515da4080c1f803503eabcad839aed64aa7a54f', '7c812f3446f1ea148127808e825bff14', '2026-11-22 10:11:22.989616+00'),
	('capture_reconcile', 'f36a90d33ff1ef33a366a0ba196e171882a208183348f1ecfd97b7e060665080', 'c33dc66bcc55c3fbc27567aa1ce037ed', '2026-11-22 10:11:23.037482+00'),
	('capture_reconciled', 'c501e146fba6250c24b2c4fe3f151ba25d17716cb236b89c3fde331f44139155', 'ace879c753a36073a442bdeb28173ad7', '2026-11-22 10:11:23.073763+00'),
	('capture_record', '05c4e3d9ba5d48004bbd38b94b4d77e6ad03bcd654113234562544c36b998a0f', 'e449082125a558ec261a1bf796d7727b', '2026-11-22 10:11:23.126804+00'),
	('capture_refresh', 'e8d1d7e3f53cd29f3cb83673cb33e05e1b94001358db9f37e006a28d133902aa', '9b8593d54ab30df87c5f1fe1e653b360', '2026-11-22 10:11:23.158769+00'),
	('capture_sql', '03abe29395fce4fd22f5dd22eae7fb8b52cd0b1ebb78c16ac5eef34af1426cd5', '1438a1dc0f47427bf14e182cc7ab2535', '2026-11-22 10:11:23.18967+00'),
	('capture_written', '48fe40748c03770888a7c052f1d49f30ba8b8864ccba0ad8ffd2540a125b5fae', 'c0a798cb3ece72665d83232026de0501', '2026-11-22 10:11:23.224777+00'),
	('changes_check', '68660f487e3ef66f0a04ff1e12cbab69760da072f234d59f0c1a817f63e1aeee', '517b5941611183496edc0b7e75e577ba', '2026-11-22 10:11:23.264991+00'),
	('claim', '1fb701fac2f4dcc184d1956ba1e1446412363fd9a34e21e1ea48f9d88d32a1ca', 'd4f8c7b865bae06989056c1bd6a3c8a0', '2026-11-22 10:11:23.307301+00'),
	('closed_gate', '0521e0a53262ea47e5b054d58325859a5fbb1fb996c6254cf8a991bbd8fa6ffd', '8f6ac64b9042dca40dc31473ec8b8701', '2026-11-22 10:11:23.348033+00'),
	('closed_switch', '98c3487dd0f4cff1df45ad88a326165ee01f8483fe591102cfe67bfe98353d99', '61163713b57c64ff1908529729067c95', '2026-11-22 10:11:23.379942+00'),
	('cursor_sample_take', 'd75a8796bc272b41d4ed1b41df2f20268ac9f51a880fcba8f8adf2ec7f49985f', '4cdf98340239a31a469aaa6ab5d14300', '2026-11-22 10:11:23.416939+00'),
	('dead_letter_claim', '483ad29b72182e043b9efde1367f0756a73ccb197e00c43478feda013a150f81', 'f60b371c108b8969be4e2cd890c294a7', '2026-11-22 10:11:23.450494+00'),
	('dead_letter_discard', '5f3e24908c901c9608f231abf77c06c27c60ad704e481382edfbf2b44a33326a', '72688238e9ee3adc361f3bc000280fa2', '2026-11-22 10:11:23.483497+00'),
	('dead_letter_findings', '5069bf35a56b4dbd35a9eb6a2be10d1f7c2feca7b40df774cfde691247776545', '8f38789d5ed9f1e4c0920e34939f9d94', '2026-11-22 10:11:23.532741+00'),
	('dead_letter_replay', '0cf03beadd37f3550f2cab852df234965eec6bb23de8b1785446f89c42532da1', '6539ade4023e59bdab14c4993ee62235', '2026-11-22 10:11:23.579139+00'),
	('dead_letter_replay_many', 'd244a7090fe88806a8b70c56bf95d5b07ed1e15d08a0e23cf92bb1b11ff40671', '1e35416e40029bb556a79bcb05cc6c4c', '2026-11-22 10:11:23.606836+00'),
	('dead_letter_requeue', '452226efe2b4fefa7468c3ab66497581e55348f18604e34e9438394f89bc2658', 'f9b6b0aa188c7c4ad6430b417efbc462', '2026-11-22 10:11:23.803559+00'),
	('dead_letter_settle', '837bab1de83b51512c7a9f49e154569fd9b8ed584d6f807bc65cfd47d3a0fb47', '05296ca5f507b85f25123a6d8c49e23f', '2026-11-22 10:11:23.85564+00'),
	('decide', 'b2aec6843bb9a569d2d2315e25210c6b6e7f51493a0497ad578aa96829ad9d5f', '0e6e480f039220c906521ca9235549d9', '2026-11-22 10:11:23.914655+00'),
	('decide_batch', '927b2bb5ecb7830c002ea130e7f2a2668dd801f7efe2e62bac34468532eae8a9', '067598b8a015a6e34441c513470a0ca7', '2026-11-22 10:11:23.959066+00'),
	('decided', '2e9d0754428339753beaa0da1f5824b9fed8f6a0a3cd601c5b0140c76822f47e', '0305eb04b7c703073746dca397266f41', '2026-11-22 10:11:24.026844+00'),
	('default_search_path', 'e6ac12abe453e01091097de55730caca82e0aad67a1e68efd0d5b1d17f0f9661', '20c41f9e7423b33fb642152debbb110e', '2026-11-22 10:11:24.085031+00'),
	('deferred_constraints', '665a5234e5e1336ffb87cab9e2cd990b1acc981121bcca2e75be502667e5d806', 'e44e628cb138c2947cd11c76258b5188', '2026-11-22 10:11:24.139933+00'),
	('deliver', 'b2a7ed05ef56af5312c0f93b9374917c8f8f76ba7092ffcf2a232452baba6aa8', '8c62f53cac14f97da1a14a6561d19374', '2026-11-22 10:11:24.197837+00'),
	('deliver_inside', '2aa9c84e058b458ab040e56d925b9c1439f42274239522f9cc57513faa685a86', 'd0868a11e92fb40fd9b40d93d27cee13', '2026-11-22 10:11:24.256587+00'),
	('delivery_statement', '91cdf352c67db4e915420cf5251dc6271906bfd724a716211f9098ef3c650f8e', 'b8ac00cb50c18c7f75a952f15b0cfba9', '2026-11-22 10:11:24.305728+00'),
	('domain_set', '8926b89ce9dc9f4ae4cae0b5f598b7cb9da85537d0668323439200f34189f2cc', 'e97788977179d84eeabb0dc7f3531421', '2026-11-22 10:11:24.368726+00'),
	('domain_spread', '93dcb5696bbf644c685ab688f1a383e7fa6e6180cd87ea3333d3b71083996e70', '0cd54d9e50134e3359a8f9b8f9c1d058', '2026-11-22 10:11:24.426216+00'),
	('emit', 'dcdf12b72d3385d96f04629849e6a7bbdcecaeb36b9964d5db3866119ba0bd52', 'd965f39f823932c6fe8901ed13776317', '2026-11-22 10:11:24.48186+00'),
	('emit_all', '81fa5715add81efa70f0c23cdcd6a9c21b1f0826df4541e330dd0c4c19434cd7', '51b1c2ac055f6a437af8f097d07ad42f', '2026-11-22 10:11:24.533053+00'),
	('emit_findings', '9773cd79bcf8eba73288108bf8686c064f8a8b9155fafaac7fb8c76b1fde3ef8', 'e5cec852866f05c96910a01f76898521', '2026-11-22 10:11:24.600448+00'),
	('emit_many', '46245b5b3cb3e44e74aba2d14bbd9b1406de7ea778da4a962e31225498819f96', 'ffea454d49c7d3444b8962fc3728e907', '2026-11-22 10:11:24.66024+00'),
	('emit_many_strict', 'f6bfbcee36284244e3c37dbbf89546118424b9a02418e48421ce95715817de1d', '0b969b0e883f4c5e3747071c032e3ebc', '2026-11-22 10:11:24.712355+00'),
	('emit_noted', 'ea1b2754e33ef2f77ea3d90f3e4e54cd64a1b59940f8d21a31e44c3dc582ab9a', '696b75224ae91ecbdc07de0cdb225ce5', '2026-11-22 10:11:24.774847+00'),
	('emit_strict', 'fa7c4eac4bd516acbd76798bf4591b13001fead0fd2f00f9c0d7de56bba84d69', 'b8c17202720918e585a37375b652c413', '2026-11-22 10:11:24.823654+00'),
	('event_check', '5d465f12c56286497557f1a6cf041658d47c78aab3ce018a5aa06b86e2e7f1eb', '3601c9a10db2ab596b0a816493e4cd3e', '2026-11-22 10:11:24.877286+00'),
	('event_evidence', '13da798151764178954ec014e587f8e374f4eb4c6e5d365987e924fd49e1c6c7', '668666c9344dee74fabd75792f5e85f7', '2026-11-22 10:11:24.931327+00'),
	('event_is_small', '52bcf659d375f439110e18df3abfb58e047c6ce628ef1a32ca256c6c88f9b4c3', 'a4f173188c0a1ed2780c533eb1c25abe', '2026-11-22 10:11:24.983884+00'),
	('event_json', 'f37d185c0ef6e34ef7eb6aab696f59728c7cecbae3ade7347f3789b54fd14bb6', 'b921f68661e3a91c93acc328d179c1aa', '2026-11-22 10:11:25.040669+00'),
	('event_seq', '27860b81caa28e071b6fb80e177bd7f05c9561b4bd02f7a13c85d7b84d83eed9', 'd4b8c41c9a31854bd4199b2278623b42', '2026-11-22 10:11:25.099078+00'),
	('event_sizes', '533858bb86a7d60cadb9353b64807c8f451d4b4373cd31776c4dc2d58b24d141', 'ac03b05baeb8d34699db0434f07092d6', '2026-11-22 10:11:25.142503+00'),
	('event_uuid', '105a89b32433bbe59320a4549472832b38aa7cf79f45c15a242b0fb335ce7a75', 'a570f3c95c4a4a4f2a8a37e105cf8617', '2026-11-22 10:11:25.203074+00'),
	('event_uuid_time', '867d4cb4124f4ee256b1c6a89ee908cda71116db1312c9332cb67d118370d368', '7b678368333670849139bfeb9e91d10d', '2026-11-22 10:11:25.245056+00'),
	('events', 'f190d0e4f4d5b5f8adf18e33817fbe560fb74bce2c69b6c9a40017bda84fd052', '1dd072bed0035f30a93a542d5972f848', '2026-11-22 10:11:25.285153+00'),
	('executor_id', '96ad4353d2d48330e9558a01398860a8c520afcdd5d6ef4081c9f391af16cf04', 'c0331aedf2c125e5a70e1742c4e78cf4', '2026-11-22 10:11:25.327302+00'),
	('fence_blame', '268278409165bff1aa42caef2a56eb93108ff105e2642cd794ec420d51fdd0e6', '2ad9580a5fab586e3b929a3966d475fb', '2026-11-22 10:11:25.369601+00'),
	('fence_closed', '5a3b7a39e2c2e2dd0626eeed89222561cb8a96241d7cb33008220956cc1c0028', '9d325287c2017ed77d62506ee748a7ca', '2026-11-22 10:11:25.418355+00'),
	('fence_now', 'd620022e4f1aa3fb00916c1726b067860e2ae0116b16d69ea1d0f930fcfe5fbb', '934a32a5537e09fe37795175eb4cf906', '2026-11-22 10:11:25.463144+00'),
	('finding_ack', 'e2e6ddddd222626958b9d88d504eee8925e2345d6e5c2c4ce3e5e627d7dfe2c6', '8bc0bfbcf7f6e210652c4ad711dea6bd', '2026-11-22 10:11:25.499669+00'),
	('finding_close', '1f74cb65d91598078c7dac9dbe402f7687a3d7b4efb5e869e6bf393b5a0859f6', '0dbed7bc522190c25b8b073f2b53b24c', '2026-11-22 10:11:25.545619+00'),
	('finding_event', 'ab29e5034e57e18172318194de1a63db058f74d9e2015949c544469b22ffa0c7', '5cca8fa4bebc03d7970f9f2364d0e697', '2026-11-22 10:11:25.597154+00'),
	('finding_open', 'b0fab6f081261281a79e3b43af3aa406a51f8a16ce451e2d24c6a59a5b0d1258', '2ce2fb89448adb8374fe3f2c61950d58', '2026-11-22 10:11:25.639398+00'),
	('flush_on_commit', '588aee0b00397d2dd447d9b376f650089a8976d3a461b56f8d452ec4b1cf25db', 'cda95723e5ffc2b6808c5214d86c1ac6', '2026-11-22 10:11:25.6879+00'),
	('forbidden_key_in', 'b2c78d0afb0f693b847b78e67c8728b61484739dab4159fb62c85afb6d7c721d', '9e28e1ed19a550c46fd3a1f0dd01afe7', '2026-11-22 10:11:25.735557+00'),
	('full_xid', '585435ce0f09df72f01296190dea8cc66ca16005ee581dd5990ec3ff82fde992', '61cfbc484107944ca6adf0fd422d6067', '2026-11-22 10:11:25.795906+00'),
	('gate_open', '506cee0202f01703ac9a3360e9045c90607bf09e971d5b90b83e1e95afbc9591', 'd58b66de70eb3e8a4f1509e379c07b86', '2026-11-22 10:11:25.847306+00'),
	('gate_set', 'a163b5e249a91f625c17390bc85d6a9e76433ede61f75a56738febae0e501da8', '0a12e69fc659379900c434f52fed75e3', '2026-11-22 10:11:25.900377+00'),
	('group_numbers', 'aa6c7f40d9e93954ca08401a8db6f7b76c9654b9abf1dee64b4dab490104edc2', '5a9d5e0ada2323f7af143ba81bf6a159', '2026-11-22 10:11:25.947056+00'),
	('handlers_register', '8e6edcc3413efc59e1d2072520a86db7359ca2497eb67a03f175720d547c9230', 'd6b442c2852ef3b2f8383a86d0cf6666', '2026-11-22 10:11:25.99729+00'),
	('heartbeat_daemon', '8ead744d63d035be547e1c37e61a683406fece9a66f476913841e8d1b259c202', '913ececf6541a8d971aa18e6de330444', '2026-11-22 10:11:26.050442+00'),
	('heartbeat_deregister', '772eb9426505a1799194f89514684fcc3014ad0f3d4773e6661e7dbaa3825c4f', 'd8a60600aaeee590c27284cac67ca972', '2026-11-22 10:11:26.092536+00'),
	('heartbeat_payload_check', 'c7564f20bd146e3f513900a9f0deae2aeaaf4c8c89c7fe68c8cc5adb598fb4da', 'feab34ef1c4a2386809a3a654b79e025', '2026-11-22 10:11:26.146069+00'),
	('heartbeat_register', '133f36e059d00cc73187cb703d8d7399b196408013ca1df806081184a4c167b6', '4ab04e732d2430f94cc095e8ece2a07b', '2026-11-22 10:11:26.190003+00'),
	('heartbeat_write', '8b934e44a844895b585a1a3b2f792ee1e8bec83184b6668d619819453d00939a', '76e4ed0d8d9dc44a5fad8d15956a2fb8', '2026-11-22 10:11:26.243678+00'),
	('idempotency_key_check', '0dc301302d62751073203a6f3f57ed0db66c51594b3a5b1206d640ea1c01e19f', 'b62d7c14edc07a9250029fc9cd0ece0d', '2026-11-22 10:11:26.295015+00'),
	('inbound_route_set', '2a1cb2f2df267592c072743917f0de81d44d05cc6d13cc09f236a5f0ed89986f', '2d59f5f1323a44f369628adaa13b54fc', '2026-11-22 10:11:26.345244+00'),
	('interval_setting', '7baa2cf96fe2aef2263c9dc0a0d64b4d71d0be4bd0f4411038a49824091e77a8', '3b206f365d567236820ac96cf7f696bd', '2026-11-22 10:11:26.399736+00'),
	('is_cursor', '1c55f96ca2c955941d200f3399fb04d58a7c21132ec018c6c46b4c4ca31df3b9', 'f104164f239a9fe8def46c2a37244357', '2026-11-22 10:11:26.453014+00'),
	('is_transient', 'd9dc38bc9c562915d3c2ce8a0e769f19f8f05d16533c8426e194a9843570cf9f', '0cebc0edd63cac124ed8ae81a2728c5d', '2026-11-22 10:11:26.500856+00'),
	('jsonb_add', 'baa3842d91cc8a616e2b5f6c01ebc85e0f0c41c95270a1ecabc92ffeed955f03', '4ca92a5f0b72db5d55af5ccd021cf46e', '2026-11-22 10:11:26.555008+00'),
	('lag_findings', 'e97d58e5a96d0f9665311f0c598d3c0d8dcce960cdccb8fc1b12c81c3b1de6d8', '9e47e6b055b92d82bf143c1f4dd6167b', '2026-11-22 10:11:26.603652+00'),
	('last_within', 'ae71e6265c9f8639bba0a5925d278517123cb620c630fcdba04a356a78338bed', 'e56699f06b29594616fe3807061ffaef', '2026-11-22 10:11:26.654977+00'),
	('lease_check', 'b39b514633e60a4d068a20174f50a26770411ab0bf061ed968d54a14b794c9f1', '2dc871658ccde43201e75cd62e4bec90', '2026-11-22 10:11:26.693358+00'),
	('left_over', '8d43290356089afa05a791e15b68704cc62407a2f0e1845f03b463809f39f9ba', 'e0bfc0d85a1f23245edd19b042fc7783', '2026-11-22 10:11:26.749358+00'),
	('live_inside', '17342a50c2d65680bd2261154b73939d347a80d6e75e429d00e8b621350b0a23', '710afbecae313233cc89cc33eae5e045', '2026-11-22 10:11:26.779488+00'),
	('lock_blame', '247217a4bf761d2b8ae1b355a90c1ff37592d8381c66474f6b809247e04b835f', 'f65bdb953498e60b19a14fc5f3a63f8b', '2026-11-22 10:11:26.810041+00'),
	('log_is_append_only', '4f4422734a25c6dbb22b8b8d540c7f8fa604f3934d5ba43150964427910df3e8', 'a4498ae4d8d01d4e04771b49fd326004', '2026-11-22 10:11:26.877912+00'),
	('look', '98ef40b8187f87f4bdd197dcfe646396397fffa898edb6ce8a9613c454baad99', '60ab8dad3ea70cd624d123a1f0565800', '2026-11-22 10:11:26.915079+00'),
	('look_rest', '937b6291ead0a9ef4a0b902929a74636ede1f4082f4c1d029916427b79dbdd42', '7e23c027f0fa2c34eb17d5642696d9d8', '2026-11-22 10:11:26.956633+00'),
	('look_state', 'b13005d6146adf0ac7355fa9f55056aabed1389a26fb7cdf75f3426d45564515', '3eff05f482639c2f21671633e1200555', '2026-11-22 10:11:26.995223+00'),
	('maintain', '70a3222174c7d45433d08975c34f8080aa11c8069f0bfd40210b5ff91fb8a590', '01ad7cbee5c8391b703611e528f2d941', '2026-11-22 10:11:27.039741+00'),
	('multirange_numbers', '4c45f1e51182bc685a833569766738b3534f2aca7ef46a612a4f1faa1b3bbfa3', '50c7e87c4f608d96153e670bf7922d8a', '2026-11-22 10:11:27.101355+00'),
	('oldest_transaction', '9fd090f955ac5cb317675b28f88cdcc604da47f605d8256a806af9cc5c969277', 'f081209b47f416cb641e3b57020da80d', '2026-11-22 10:11:27.135045+00'),
	('own_key_check', '53360f7826674eb4905f2e22b24318e67c303b0ea9cfd889d11292c16fb8f0a2', 'cc858bdb93ec575fa93c3323c1312c3b', '2026-11-22 10:11:27.164873+00'),
	('partition_absorb', '8f7577faccb6a8f7a3b96e67f0f9202ed31a566bd2fe623856381f922f711322', '1b434104b5a836c700779eae42cc38e0', '2026-11-22 10:11:27.204768+00'),
	('partition_add', '79ecbabb42d0aa084cf66a49aa3f4412d0f883451ead9b2e9e2030b06ee7c6a9', '9fffe9b3b60790c8561fe60f5dd9b36e', '2026-11-22 10:11:27.244758+00'),
	('partitions', 'b69be1934113f29dac0bb19a71cdb1352508f64cbc9f6c620e6f0edbbc376259', '60553684870e5d81be1fc2e9ef97ea05', '2026-11-22 10:11:27.294668+00'),
	('pass_read', 'd636e7c46c58860c20112e9e24117a92e4c63b9bb0831c6227b4f57402796491', '1bea13e8add76ad5222aacfed6a50df1', '2026-11-22 10:11:27.339006+00'),
	('pass_settle', 'bf7e45687c76f198335c43e904276b80537b24dafdc5992be932ab3ca46c1157', 'a247a3eb73124413cba99914bafa5365', '2026-11-22 10:11:27.383052+00'),
	('pass_summary', 'b37fe6b0e1552d12ad87aeba9c058bc0bfde07cefbd1c47c7771c011745a7a6c', 'ff05d43f4954b6027694126171ba490e', '2026-11-22 10:11:27.421893+00'),
	('pattern_matches', 'c5ba471c8d88eec4b477b79c11e4ccf1a779afdd2f29776eaec7b3485f3d8307', '11df583e07179939ebcc949c0a24363e', '2026-11-22 10:11:27.479039+00'),
	('payload_check', '57ce1966f23d9c5a02fdd4dbcbcba6a6f5826844080487617e865a81cbf05392', 'a82db3f75784a280f7743e86adcb701b', '2026-11-22 10:11:27.536057+00'),
	('payload_error', 'fe0cbf9ccb8d8cce8cf427f916097af2b6d32ec4995c2fe8380d21d14e581947', 'd36f125b2b9693c7a4f3a585198c4a99', '2026-11-22 10:11:27.569358+00'),
	('payload_limit', 'a1560e25ad3070dd0c59e4ec4c27aa392aec7e5bcd380dd1ab5aea79b8d778f6', 'bf93173e1fdacfa77406029616f079ab', '2026-11-22 10:11:27.610483+00'),
	('pending_at', '30c53dbe954a5b87eaf86c3f0d41c70ac2ef8c8313866d9605b0a95a72b7e270', 'b9309dcebac10feae93fbf3eb396e71a', '2026-11-22 10:11:27.659087+00'),
	('pending_due', '46027dc03361b21fce0f339e7a3c8adb25ce19314d0ca1c65480d0477d0d7045', '1c0b6f0fb6922b5bd2cf39ab906d7e98', '2026-11-22 10:11:27.721931+00'),
	('pending_keys', '231ec0d5002649d29ac60ea3491243b64e40ed82a86133539219a0088d27dde3', '3be5d4914868be7990f647de0fc79f51', '2026-11-22 10:11:27.786889+00'),
	('pending_within', 'bb04381aa57b02bdc3c539c7d8f2b0f375b669a0b3c8467d322796c98f7ff261', '0a7c8a0e40a2b1211b0236e7645d331a', '2026-11-22 10:11:27.854431+00'),
	('read_outbox', '18a1d67fed63dfd2c65f7b9779bcccb635c1cb5c00b39260a239df9323d363b8', 'a8cda05ec77d6ac032372801fce0c7a7', '2026-11-22 10:11:27.918316+00'),
	('relation_tree', 'b21332a2bfbaab9b3c267b190977fcd8f8602d7ee2cff67c704d6575e20b77f2', '36d66bcbebee1c66d60f26b4e69ae97a', '2026-11-22 10:11:27.978319+00'),
	('release', '94e06d4e0cdf936d9db0a2db343804fa7f789122fbc616beab7ffc13db4160c0', '273d93bfda43ae5437e805453b683b45', '2026-11-22 10:11:28.048208+00'),
	('release_keys', 'b0c19c2f6f1a237cfa05d6cd87b840dc067337773bf29102ddab630e953b955e', '72bcedf25f986a5839ee5f3193587b25', '2026-11-22 10:11:28.099569+00'),
	('replay_cancel', '1366a57b47a66d8fc1f2b2922461f49f72cb52b51806fb75aebdd220a0857b0b', 'eb370b383f10a4e65665695c19fe0c65', '2026-11-22 10:11:28.143726+00'),
	('replay_page', '9ba90387dfcde1e6e6d3db7c53fed655c4166df7ee0952a0d7e10fa8c52496c5', 'c4dfa67c0396e1142814a818ecafd0b3', '2026-11-22 10:11:28.186472+00'),
	('replay_stage', 'b26f31ddc2fe5382d60498d92dd593bf147d8a6938bf163ed11b35eda4680180', '74ae75c2ffb31f972df0a76eaf1db22b', '2026-11-22 10:11:28.221381+00'),
	('retry_delay', '2b337d3306d40b2130d6b225108c87dda562c3c22eabea311bb7e88751a3985e', 'd439b2711ba05762c91bddc48fb81f1c', '2026-11-22 10:11:28.291868+00'),
	('retry_policy_ok', 'b7c05ee34859f5a0e9cedab441b926fdb6ad1fd830b015a16734c0b8aaebdc67', '948a67efe46528374f63b8b3fd80d163', '2026-11-22 10:11:28.349939+00'),
	('rewind_outlook', 'c93a96c468531b841b242978d54128342f50a840c5ad2f1e6fe78798a5daa43b', '4a62ae51bef1adb3fbc99cedd441f0ba', '2026-11-22 10:11:28.404244+00'),
	('river_error', '377a16a22c7732418fa81cba23261aea58ee92e3c431ea691b1e2768e8836815', '43438cfd1b74cdc0c78142ed9bd34ee9', '2026-11-22 10:11:28.454712+00'),
	('river_health', '30e3824a325531974e9c9bb666d0778135a38883500d87ce07d155e6a4097669', 'cad7c58afbc7424e84d8c95c3a82f3cb', '2026-11-22 10:11:28.503465+00'),
	('river_table', 'c4dd2a8c52da0a4e6f8f0ced02d8d0cb10f8f88b61112abc4941d41f038f7d6c', '0a6e182c7aee2bcfdfe6e1729cee06ee', '2026-11-22 10:11:28.560792+00'),
	('river_wake', 'd5efe8737b4db6555de0be152a5d7ad5f887ec7daa5d5c7ca464a1542b012f0a', '8fbdf4af7d96095ae2bb09e1935bed14', '2026-11-22 10:11:28.617362+00'),
	('route_backtest', 'fc2a16dd95f2852e8fe449802047f25999ed7b9ba7f20bc08c0ed8a42d59947e', '74501f926eef3f799340ef001df38089', '2026-11-22 10:11:28.67361+00'),
	('route_gone', '0a04981eed5e7a7119e29275b6daf6a776531df0527379e544d7b42c3f43cb32', '751f58daaffd1e8baadfe5e70650ba02', '2026-11-22 10:11:28.732928+00'),
	('route_matches', '2d35a49dbea3fd303a6c7e2622b6ed7da706a36f4642074bb4d4ce06ed7f2a43', 'a7810e2f928367e05f35b9aacf3daf5f', '2026-11-22 10:11:28.800245+00'),
	('route_replay', 'a5411215a6dd8cd62b881b77ce2030e4afdc33afb624bd33d54118599f247c19', '3cea86842d5ef22c42bc8d72c5811c6a', '2026-11-22 10:11:28.859693+00'),
	('route_set', 'fb882f0704a26dc26c5e83b49233100f1e601132ae7b2401e4283f12f317f17a', '4449a5b63bf8e918061d5a2ba4e9673d', '2026-11-22 10:11:29.124467+00'),
	('route_stage_check', '3b19e0ca915a2029ceacde6a537616eb569d604d38cdd22c1ffa5b362d97fdea', '9ed2df1ab3c22a78a13680d9ccf8a030', '2026-11-22 10:11:29.165476+00'),
	('route_worker_run', '59079fdc84c0e0ed06a1254cc0d23a45acd90cd229c543ebe290405fb9f6f632', 'a3c33ff2143c9cf4d7cb283bb4cff955', '2026-11-22 10:11:29.210829+00'),
	('rows_register', 'c6acfbe98f350fa20466e07a339e800d0bbd1dc3184d6a68227b7cd7efa773b7', '1a680e3fcbe451688110aaaebe8f515b', '2026-11-22 10:11:29.24607+00'),
	('session_check', '74575c74e2c3f804f8b262a5a778f0c61ce4735aefbd5d8190d8920e278f2296', '247823dab4836f30799b520c184dd55c', '2026-11-22 10:11:29.300155+00'),
	('settle', 'ca10c1833c1b4aa10e0595e44b0ca52a80fe47e143239d58f9bcf7d3636612c7', 'd5aabab0b409e2f6a4a91f01515c939f', '2026-11-22 10:11:29.379402+00'),
	('settle_fresh', 'faed7de2a98df8cbf0fde6816dd67b114b05178570ad33584a244adc3d026455', '84f54e6ab7eae952bf057a770ae4a719', '2026-11-22 10:11:29.484683+00'),
	('settle_missing', 'f06677ece6b4ff6bcc2d9859bfd8aae72b477d40f0dfb1cce0452766684f12df', '1a9a906a5766c8fccae8009889fb3d3c', '2026-11-22 10:11:29.664812+00'),
	('settle_replay', '612eae87d28d6b544cb8a208116ba2f2d49839b2013c85b76221f20a47d52e7b', '205703b8617327fb3289ebd0bccaa59a', '2026-11-22 10:11:29.788362+00'),
	('settle_retried', 'faa5098ca3762e3f95f9657cb8f32991ccff889da3a48b64755c3a7f77533315', 'dcaf8e693153137623ca5c76723d3750', '2026-11-22 10:11:29.827638+00'),
	('silence_add', '599e41e0be9894c419507132cc34afea278e5a135da49d026e4685ac3928c32a', 'da6103e0b7bec4d9c25ad2d8c67c006c', '2026-11-22 10:11:29.857571+00'),
	('source_advise', '43d8464c00805e02a15a146927615803d5e5508f35bbaa5115525c22b886fed3', '9774dce5056b56bad87b87452d44721f', '2026-11-22 10:11:29.900914+00'),
	('source_ahead', '7a1c8c277668bd02d83d08ed7369362863e237a34e9ddf23640d93317b6aca81', '4e6fd92f65b5424a716277586b24cf02', '2026-11-22 10:11:29.933993+00'),
	('source_behind', '9e02ff43a8c0b10e417b8d6f16f0e83544d0146a9c0cd8194edecd459d1051ab', 'c931176e679223f03508e90522d0d491', '2026-11-22 10:11:29.967363+00'),
	('source_budget', '2d58ec4984e51f829068a270e47bebf4d8c11f904fcfff1a02da7afc2105f898', 'd2b729dada3033e4b5e0c4ef8a3b53ef', '2026-11-22 10:11:30.008957+00'),
	('source_check', 'c89e141f98b4453fd50cac37ec9c435de49eefc899a9f94e33a000ceac6d293d', '4a575819faee7aa54983fd80fabe0a46', '2026-11-22 10:11:30.061704+00'),
	('source_check_columns', 'cd8f40d6c38b3d6b499284d25344efdbfef4c7b50eb79336de4c4d90d569ed87', '4cfda7b7a73bcbb00ecbddf407e55bda', '2026-11-22 10:11:30.107476+00'),
	('source_check_filter', 'c699398848c0d4110cd7181491084352654c96117f7cb85c4498a342ef3f3078', 'd10d03ed37ae460a046762cb77141607', '2026-11-22 10:11:30.156805+00'),
	('source_check_index', 'd1bbf4fa40a013f713b5117c51008cc209b5877cc74be4d8da971dca11330ce9', '39296499761622b4f77cc45fa05a2df1', '2026-11-22 10:11:30.191456+00'),
	('source_check_rights', '7f5724e43c2faa135fc7396742c6f6ceba21b45b2ac235edd00e9bb0d82ef662', 'c62030fa1fd42cd1472a0d14a789771a', '2026-11-22 10:11:30.228684+00'),
	('source_check_rows', '6a9a06ae0aa98638b39352305529b3040be6fcdcb705c1ed6ab0fd5be68b7d25', '185903b2b42d3810d87a41807b82c9fd', '2026-11-22 10:11:30.275834+00'),
	('source_check_safety', '9adefec6c358f193266d44d1e0eabc7b05e044c7d97d4490c6e2ea6a04dbbfe2', 'c65cdf4e918a17f68f8b25a550c7448b', '2026-11-22 10:11:30.332996+00'),
	('source_check_sequence', '630a9e245d9af7a726ceb6ad899a73585dda1578e0504cdd6e95e20e3329e825', 'd118706b6f11f9c168f5f5c6c2353826', '2026-11-22 10:11:30.542604+00'),
	('source_check_table', '57cf4f365ce55aa46d96e986d42b6c1d3506828570d92e64fcea1d00edba7e9c', 'a437a2685e71c7e2fc7dd2eecb9b84b7', '2026-11-22 10:11:30.662451+00'),
	('source_check_time', '46397eb8477150c5484c1f744a88ff06cfdcf0e77e7963f65d9fd5983f8ceeee', 'eec72bc0809c6b8bf80e70addfd81bec', '2026-11-22 10:11:30.723809+00'),
	('source_close', '46c12abb3290eb13dfe96708f636b3fe8151543e8f98f6f919330f2603c82f1a', 'becba8c2199386e6d7f779890e1018c9', '2026-11-22 10:11:30.793508+00'),
	('source_due', '934f2be84aec844a23302b2030fcc2c846ceb17b373fc2bbf4630783535bf612', 'd0369853a36479e9110f9ddf7efd2fd0', '2026-11-22 10:11:30.851606+00'),
	('source_emit', '32f4a2062d38e9032f3cd30c3c4394dd64d96ed3d1a3de0945aac10f92afdaef', 'e7224cfe265fb8346b320a70dd52e90a', '2026-11-22 10:11:30.903506+00'),
	('source_failures', '606c10f6ecc5fe9f3619e1c9de40d7bb79ef5814a9818603847951bd44992e84', '9de869343a73a2f5e62e6450c30ca5e3', '2026-11-22 10:11:30.951578+00'),
	('source_fence', 'b32768a6fc16437e680eb113a4182d4102e62ccc085dfe97afef4e1340447052', '52a33eb362c3eeae09f10fa87883910e', '2026-11-22 10:11:30.993255+00'),
	('source_fits', 'af6c6e0efbf8d288c6770387cde09abcab545882c37e29c1ccf0c10f085870ae', '6528c545d7d5ee00136ed7743fa55b63', '2026-11-22 10:11:31.040317+00'),
	('source_guess', '0d949ba11d76c1160cf72439f142e24b7a73b34bcf801185d0a17e47b07097a9', '492a1dcde99be254c59dda5464f60ac1', '2026-11-22 10:11:31.093171+00'),
	('source_handler', '74e3b6a38ea2e29c090612e90631b873ca9e89b7b60270c3d5929517e61508e2', '10ffb0d56f8c779256dd2e73c884574b', '2026-11-22 10:11:31.150264+00'),
	('source_hold', 'ab670ad95d4316aa715109dca480bbd4db03e1a984481cbc187975c25a3175f3', '0a695f5882eb2ab43711846f131aef80', '2026-11-22 10:11:31.205942+00'),
	('source_home', 'b486f55e5a8258c7f7b119a56c4e7338b4585a5f529bafa7b08018dd1788a0d8', '6f0003abf994e4cabde3c3796e554904', '2026-11-22 10:11:31.258952+00'),
	('source_horizon', 'e6f48eeec770736b5e99ab7630c81642cb5cfa4e46c4e332dd901db8311d8308', '2bcf8a1cf82536685ca940769994c078', '2026-11-22 10:11:31.301985+00'),
	('source_misread', '63ee31abefdd3d7a7f67a723d7b833dcc71ad1b754649d29141c649202c710ce', 'a81cc34d44171f69c22598683435d43f', '2026-11-22 10:11:31.368705+00'),
	('source_numbering', '796eadd0528e2a75a8f401a4c99b23da9d0cfe2731f76f8e7913c6e4f06b8c13', '7191ff6aeeae50aa8676070d6cb81815', '2026-11-22 10:11:31.422988+00'),
	('source_numbers', '0d6c01526c986e3a5f3566b5666f9ed0dc57df71d91a425715cbdf0da34093da', '2fe4a9cd8e255152b2141493c086836c', '2026-11-22 10:11:31.528434+00'),
	('source_odd', '35bcc5bcf2d014e9364cf4c9fe204fccd9a83188d553e008d132722815ea0379', 'f2249582899a7c1f100e9f757be623d9', '2026-11-22 10:11:31.584806+00'),
	('source_open', '05d72306befc1a2dcd3d0914cf2d3b47032d0b26c4c225399ca02ae94ce9d01b', 'afa96491d706e6b7331187c1fe7d14b0', '2026-11-22 10:11:31.636175+00'),
	('source_pass', 'cff219033d437286d9b1557b54fb1bec7e98714cd5bec73a36bfe1053a9167a2', '2315bb8de7d2f59d40d780e1b89324d2', '2026-11-22 10:11:31.709893+00'),
	('source_place', 'fccbe73740c0658fdbda83ed03108461ea1fa271b180351796a719d153681645', '5358416fb2200c6e8ee47ac883c9b0b6', '2026-11-22 10:11:31.757365+00'),
	('source_plan', '7d39831d1f065324a8e8c7700dc7631b5cac7467489532d43174b6f0fd5df292', '7576c9365fe7fee1607ccc40b457fc27', '2026-11-22 10:11:31.789076+00'),
	('source_problem', '3cd33a280467896aedef1fdd5f8627094e5bfd126b1cc901e6ccb0d321b78e02', 'aeb2a4dcb021503824afb90b06ae1e73', '2026-11-22 10:11:31.839161+00'),
	('source_query', 'a235a730e02ea3c13f1a98b60109aee54502f8682af690fe0dd62f07a2eeb378', '6467306433ba1c41dea67b46b6bc731c', '2026-11-22 10:11:31.892529+00'),
	('source_read', 'bd4fa1962a51820fe468eacf85497700d1dc17dd8958d884356a7a95ef32162d', '8bb4cd9a36a9a2040fb836bb88677201', '2026-11-22 10:11:31.968955+00'),
	('source_recount', '401360447d2f12e64514fe1ca2beeee19c48cf783a4bf0536824fc150f41e1bb', '3fb4519f3735b5bafb1101d4dfb78a9a', '2026-11-22 10:11:32.017463+00'),
	('source_remove', '1ff1c67a68da294ca1f697043eb8c7a87a0ef2b81310e0ad70b3c5743276d87f', '8346957bc02aeb930789f5e463b0947e', '2026-11-22 10:11:32.071954+00'),
	('source_rest', '956d9caa4f96c63803f55157d12560cc9de82083d66f7ed325b08fda607514a1', '83e69c2d8e62744de049e4d6b09b3e13', '2026-11-22 10:11:32.117178+00'),
	('source_restarted', '28ef4eb18866eff0a806402cee08c577c963b4f877ffeb17a3a2b4b2941afeb5', '6057987bed503bd66823dd1af77b75c9', '2026-11-22 10:11:32.172047+00'),
	('source_rewind', 'cef60f268b161a574c1232d3e2d353ca41ccdd40a88fc522f4076008e7d75465', '8fa99e3cd4ba865e7874bd62ec17330a', '2026-11-22 10:11:32.213288+00'),
	('source_sequence', '290100c1bce6f2ccaec96ad13eaef786f9b622d762326d336319f84c1c474a4e', '8529e34bdc6972d0de3f4415b1de368c', '2026-11-22 10:11:32.260759+00'),
	('source_set', 'ff056067f00295ca75ecae81d97d8c87fb9e7174d585e3a7de61247b45d93472', 'a368d6095e6b565f1d689317f2ad5d13', '2026-11-22 10:11:32.301978+00'),
	('source_settle', '560ba9b1f1f5fe116fa098d96e4f16a8312f747570b68b67458364f840970252', '82d084763ebdbee9a282027b9391d866', '2026-11-22 10:11:32.365866+00'),
	('source_shape', '300ff583443c1e4e2f9374c9c80fb1fe8bd9199080d8d37e9c2046cbcf7e6fcc', '376f52735419aca08c5bc9dfc01293c4', '2026-11-22 10:11:32.429156+00'),
	('source_split', 'ed4e895a7a310b756cb1fbcecf630e78d2327bd41bc01fa326cb7af5d04b977a', '967844bd2cadf7dcf87b9dbf68f6f76a', '2026-11-22 10:11:32.603058+00'),
	('source_swept', 'ac1d8b517b98a5a4830fdfa87f4724ebc9235d5e62790c30aed8ae7d1099c3f1', 'a58965eb282f4a2a601edc2bfbe95c7b', '2026-11-22 10:11:32.811219+00'),
	('source_throttle', 'bb5212f6784d30e082898b5aaf7f5af2ee72a3b1d7057418a9864b6abe7b6906', '9f2d927613baeb413a004d8d34a62016', '2026-11-22 10:11:33.343484+00'),
	('source_types', 'faea9b3c81bb275773b7473520694a1757b9f7f2234ca2558bdb65460713eeda', 'd4e3dc958d22b947d0e8f2f55e0bf457', '2026-11-22 10:11:33.560409+00'),
	('source_write', '4d792f3f942c6de6ba6b8ac645263a2d2abe0daa06253121a596dbf8f799ad56', '06b120863e68223901c8775f1392c927', '2026-11-22 10:11:34.366743+00'),
	('sql_target', '41a4a50d57e05270ed12672f3946fbef84ef77af761ef1ab88cb31bb4ad7377c', 'f59d765778e3f842ee607100b9a56d40', '2026-11-22 10:11:34.428011+00'),
	('stage_set', 'efbb3336a76e14ad1380450c74082fb2ec043e6d6a1ab25050a341909e254de2', 'a2fceb97a1c532992fc57a829a4eaab9', '2026-11-22 10:11:34.532948+00'),
	('stale_check', '40ebc3c6356649563181d4a9aed257f92e4b03f6be0271660f1db4bf3bb39518', 'a04c1f88039c31a336b8186cb3ede5d3', '2026-11-22 10:11:34.720572+00'),
	('system_event', 'b8fd77b27a054ffff071cb2bf91160b96100708ec5cb2461fa20579d0ebe93d8', 'fd8917fbbd39407ccc3c8df676e1f603', '2026-11-22 10:11:34.766068+00'),
	('target_call', '7a54545e9f1f9e1c95b279dd4da88611adc90234d3bf6d7f60039c4584d1fe52', '30db3e799f98e2ebca602c8869812966', '2026-11-22 10:11:34.817227+00'),
	('target_is_inside', '4360518489a0d3fc7a629a9abe864202d0c49b90a5959ef8da4678188b44e145', '799ba6be63e630f6afebaa16bfa8f231', '2026-11-22 10:11:34.879793+00'),
	('target_is_known', 'cc039ec47fc3cee925d54b052ae30cd86c976152b403b51bea615814a1d4f0cc', 'c5529888aa27c464914d35d3cb35a79b', '2026-11-22 10:11:34.968636+00'),
	('time_left', '3746e4ebd613f70d4152085f2a3b84990e5b2f86490609c16c6164b616e79f70', '6cc1547ede034ddb5b2cd920500cb16e', '2026-11-22 10:11:35.01786+00'),
	('type_set', '0f24dbda42c9432415ac344eb2a9fa1a7ba29e46a35bc36db5d4f9d27b22078f', '35d2f6d3dae9a6801bac80da955aae53', '2026-11-22 10:11:35.067592+00'),
	('uuid_time', '06cadd4371cef35dffaef4a52468876c3c3b60c70233559c49c7c4265acab533', '3a4d488ffdfd45d22a69bccc2dfcfc95', '2026-11-22 10:11:35.150344+00'),
	('verify', '7ab6ad0e3bd536cbe7aaadaa936c064252048bd8547a5109d0dfdaae7510e5de', 'aa1fa5dcdf4348d4de8b7e8a1525a905', '2026-11-22 10:11:35.199929+00'),
	('wake', '94aa4b1ea5dc08b6abc2a89766bbd630e1d702bb11a4a48e3b04b0df56d62adb', '69a01cf41e837696ca4a7a6417811b74', '2026-11-22 10:11:35.253019+00'),
	('worker_cursor_make', 'dfa277034f641f25ddb452c7e2d7bc4d61ad92d8928cb71158a474f609ebd13f', 'dc691db14cfd68188de0108042d5ec1b', '2026-11-22 10:11:35.294935+00'),
	('worker_cursors_make', '1314fcfe58c88514c4c563d42483388bbe4235851383ec6400152fdaac038b79', '4a631441d3165982738616fbe67c0982', '2026-11-22 10:11:35.344785+00'),
	('worker_finding', 'e08c9ff2e69dd9a7f807efeb0de3dc44dd616676afddb24522e0388aada1b2b8', 'b9bb83b639742c7b7c3b091fc804f1ca', '2026-11-22 10:11:35.405074+00'),
	('worker_outlook', 'bd1c047431718eb4262f5ee21e563d511d5b1c34a1ee6976a94f0d17c9226017', 'c85d462fc0da1436a98e3df9b60c6f6a', '2026-11-22 10:11:35.453389+00'),
	('worker_pause', '27b47a56e7d0204e85db435dc8242ce70858e31495a880a2e21947c9aa97a524', '65641e61845912d67cf0c18e5313bb52', '2026-11-22 10:11:35.501285+00'),
	('worker_rewind', '98e657ce40faa1d3594d3d43f57fe85242edabf396973ae05ae2ce801da40370', 'a13b008f40d7327d4c8437fa5b6b2cd1', '2026-11-22 10:11:35.541988+00'),
	('worker_run', 'bf8064eaf092a5c30a5ce5272a8f46ec0fe67e05d434e835d731bc893b6e85e6', '97d8bc64eb5b679a4d6726e3dbb1f7bb', '2026-11-22 10:11:35.603418+00'),
	('worker_set', '2cb36f78fdd0d79d6e28abe8c47c74dc3cd93fd90c37160ab135391ce645bda7', '5d8494aa2d622e4c264643b2855f713d', '2026-11-22 10:11:35.660514+00'),
	('worker_source_add', '8f67b2fbd79aec9dcf6821fdd53d543837b08e590109df4ec004ae4c6837d973', '92668647b25bc974c1d1e862daf2cc7f', '2026-11-22 10:11:35.711547+00'),
	('worker_source_remove', '9dc3584a07d4908dc90439c8cbec3db2ff85688cdf7bdbc606c6020ced4e3686', '736074782d9294ef5ae5a259bf30c27f', '2026-11-22 10:11:35.760904+00'),
	('worker_start', 'ba2bddf25e37a875eb4d78f3aa26d08e9f1e408db7e5dd981ab52aef6207ad4c', 'afe8b92a4d0afbdc771b7252ca71df76', '2026-11-22 10:11:35.811463+00'),
	('domain_audit', '768d6c45239da30abbb279e3873ad5975ea43eb5f2847011a90d3a0fdd4bbbd1', '1ad6a892965738b2075b1c0d6e2265de', '2026-11-22 10:11:35.862881+00'),
	('domain_spread_down', '6b0efb2a6bd91acf5539fb82f289e2c8806ccc25f9ab1879ed483351223d6fb5', 'b583ac2601bd32dc0c5a8adf71a7bde6', '2026-11-22 10:11:35.91671+00'),
	('event_type_audit', '6878bd65db1023ecdb6f2909cad11691e3c0bc33f480a9f72487a2ef22e592a1', 'dc55050b65029af13b224bf5f4ae7906', '2026-11-22 10:11:35.960602+00'),
	('event_type_spread', 'c328ce96591ac9a3fa42ce54586f35d49209290c7880ca31fa5adc337109549e', 'a4f7d639302863064923b53751a87047', '2026-11-22 10:11:36.00995+00'),
	('finding_closed', 'c75357882464a0c27b81967a1d8b9f7c757e7a106536b1c6e7c2a73ea51b8156', '4896c1e93f0a7077ef9b3a5a7fe8e0b8', '2026-11-22 10:11:36.067379+00'),
	('finding_opened', 'cdf19eb4b1aa5bfe0f7c0c584bdaf0181651e45206c98a7b3caae728810b769b', '88a1f742b2c72b76122bcc59ffac5f9a', '2026-11-22 10:11:36.123058+00'),
	('forbidden_key_audit', 'c3906565a639da77265453419ffea5165093f9dbf04d86ffe182ef851bc8ed69', 'a8e878dfbbcc45e6973422ad971b695e', '2026-11-22 10:11:36.165876+00'),
	('heartbeat_kind_audit', '8be1a7a5fd49445ae24efbc7ff14c63f654e48a7db630e7e0dada019d7fd1a39', '8484f11f80c1665706605424c757a6d9', '2026-11-22 10:11:36.220914+00'),
	('heartbeat_silence', '0504bd00c3d1bcfc17e2721daae6d67489b2202be9ea19976a84a43faf6278b1', 'b7d647c1bc960e070b9f55d6c55803fb', '2026-11-22 10:11:36.274867+00'),
	('inbound_route_audit', '8e51be00f7e0f39030542c26dc0805a2988d855cf1b00996ff37e2ba4896e97b', 'b943132a76b8d00e0e08055cbc02d5c1', '2026-11-22 10:11:36.326964+00'),
	('inbound_route_stage', '5c95b77af3389809db1a07bfca490e17ccc0b3f5236e0d85cfbfd58d70d51d1b', '3d96d8d46ff565361ff93e0b1882240c', '2026-11-22 10:11:36.379303+00'),
	('outbound_route_audit', '01f5cf431ad9e32e32fae37cfde12ee81a5fe6a54e1fa302c3f378d4d9b6c3c2', '2d639826d73b74d49ca020a0aee92e85', '2026-11-22 10:11:36.424419+00'),
	('outbound_route_stage', 'f63a8e363baa2bf37bfc6daf56767be875ae4ef4a2c308853ffc1ce6608d735b', '1532e57211f25e81ac4a3ecec8b69234', '2026-11-22 10:11:36.473805+00'),
	('outbox_append_only', 'f17c17145053a3af7f5df82f78bff4db475983a16b308132e9d304da375c7979', '25f42e26410c7f76e924ac3fdcc214ea', '2026-11-22 10:11:36.528454+00'),
	('outbox_no_truncate', '3b2569b501237d62b9a55a362555e9fdf12095ccb10e6d4a60eed098d11f7640', '8076acb8cbe002d80fad4b269b312382', '2026-11-22 10:11:36.590468+00'),
	('setting_audit', 'b1401a3c5123633241314eb03b6120adeac5f8d5621650aafdf3b3891be9e696', '2a1deca8c40482e305914e4f08c30ed9', '2026-11-22 10:11:36.628079+00'),
	('source_audit', 'fd1bdf2e5d50bd9665eeae257c57fa4d77ae6c2082a562ce9c6d365b58c5c916', '6ff26bbef4d0e9c26455aeab7e206f58', '2026-11-22 10:11:36.673375+00'),
	('stage_audit', '341960e7c513648bf62f1bc2debd81321251d35cac5bd67d2500760fb8efffb3', '6957be1e2ffb5ddbb1c4e850b0df925e', '2026-11-22 10:11:36.733984+00'),
	('worker_audit', '17ddeaa0d6101a3ca6518908d478913c25a222470da4ad395c1822bded797e17', '19d25349f2bdedee5bd76cc8b3024f47', '2026-11-22 10:11:36.777159+00'),
	('capture_attached', '47da2775158ed29583954213fced046ce05df0b309980de9594c5ffed5b6b01f', '4b195a0222e5a67dd14ad83af7f27a2f', '2026-11-22 10:11:36.847591+00'),
	('capture_list', '5d6f7a326262779a34d7aa358919ea6e205b74c6871c43d876790bc7739ee4df', '76c8a81fca7ad89a3c108568c2222844', '2026-11-22 10:11:36.897156+00'),
	('capture_stale', '3e2e9b492932a5c9b6ce60ab58b2a3e167a2486898da284648b5ff9007baf571', 'cb7bcd2fd636a0fa9d0d1f7fc9303e44', '2026-11-22 10:11:36.952537+00'),
	('cursor_lag', '4f5228a1a0c38a8695a3d766128bd507d1a5f47cb32093df8c04567489f43443', '5f221e7f79d7d9842037b4cc03160f3f', '2026-11-22 10:11:37.005834+00'),
	('heartbeat_health', 'b7053a65824156c790be69bd87044e471ee5670921f8810577350df127b7dc4c', '4ba22d7b23d42408f35b8d7a58d1671e', '2026-11-22 10:11:37.068747+00'),
	('queue_health', 'a4e54f50b95b1eea873df647072d2ae50c004e51b8fa9071972484f9f3b696ec', 'f6705f1d4798944e467b0a81bdb5c12c', '2026-11-22 10:11:37.132737+00'),
	('replay_summary', 'c82b97ed703f0b712323fba4d0095f77a12822d2520266ec80d48ed66791592d', '8b9e7e446858a9dae541f9d929c417bc', '2026-11-22 10:11:37.185015+00'),
	('route_attempt', '1a18247f3359a165d337034590c665d53e4592f455b373391ae3dd6fee1434de', '223fe786255519d64c9b21583b39e57e', '2026-11-22 10:11:37.225306+00'),
	('route_summary', '5afa2cda974b7bbb8dd9d5bb29fd11e5cd36a27ea6ff37c17960d89df9aeef76', '815a6474802332ed4d7a46a9fcdfe703', '2026-11-22 10:11:37.264016+00'),
	('source_cursor', '3cccba8ff889b697e5d62d76f58ffa378505ec029a3a551411a4a7f3aee737c0', 'bf440cbcbb4a356b161326981ac019ae', '2026-11-22 10:11:37.309404+00'),
	('sources', 'd94ea88c3077517816290c47d437318b75c3fa0eaac1e7f0e7a332b4a6a1a10b', 'bfd0ed0d396ea226228e56896a44a61f', '2026-11-22 10:11:37.362075+00'),
	('waiting', '1c6b9013b308d1896e563975e15594e4c1cac5c0fe52fe37a84fb90e6fe490ed', 'df3f02303d886befd3d8b0348bb9664b', '2026-11-22 10:11:37.420977+00'),
	('worker_health', 'fa12bf67b4a14448058932b81595bc36d223fac8c736eb80a4ab6c8e9220b7c4', '60481e85a6d06ea4fad487e64f71c7c3', '2026-11-22 10:11:37.471205+00'),
	('worker_summary', '72f168a978ec7746416d350a61a2878f8d2e3c2378cc73899569664546df0abc', 'fe63a87f824ba5c346425bcb85cb872c', '2026-11-22 10:11:37.529467+00');
INSERT INTO tidemark.dead_letter OVERRIDING SYSTEM VALUE VALUES
	(4, 'tm:default:app:01a202bd-6af2-788d-841e-5feff69b7d23', 1, 1, 6, '01a202bd-6af2-788d-841e-5feff69b7d23', 'outbox', 0, NULL, NULL, '{"key": null, "seq": 6, "lane": "immediate", "type": "tick", "actor": "ada", "trace": null, "domain": "test", "stream": null, "payload": {"n": 6}, "event_id": "01a202bd-6af2-788d-841e-5feff69b7d23", "severity": "info", "created_at": "2026-11-22T10:11:37.84268+00:00", "occurred_at": "2026-11-22T10:11:37.84268+00:00", "subject_ref": null, "subject_table": null, "idempotency_key": null}', 'P0001', 'no 6', 1, '2026-11-22 10:11:38.591538+00', '2026-11-22 10:11:38.591538+00', NULL, NULL, NULL, NULL),
	(2, 'tm:default:hook:01a202bd-6be0-757e-a31d-ed9a49510c1b', 1, 2, 7, '01a202bd-6be0-757e-a31d-ed9a49510c1b', 'outbox', 0, NULL, NULL, '{"key": null, "seq": 7, "lane": "immediate", "type": "tick", "actor": "ada", "trace": null, "domain": "test", "stream": null, "payload": {"n": 7}, "event_id": "01a202bd-6be0-757e-a31d-ed9a49510c1b", "severity": "info", "created_at": "2026-11-22T10:11:38.080264+00:00", "occurred_at": "2026-11-22T10:11:38.080264+00:00", "subject_ref": null, "subject_table": null, "idempotency_key": null}', 'http_400', 'never', 3, '2026-11-22 10:11:38.591538+00', '2026-11-22 10:11:38.591538+00', '2026-11-22 10:11:38.648642+00', 'sent', 'ada', NULL),
	(3, 'tm:default:hook:01a202bd-6be0-7135-8d8f-91708ad28144', 1, 2, 8, '01a202bd-6be0-7135-8d8f-91708ad28144', 'outbox', 0, NULL, NULL, '{"key": null, "seq": 8, "lane": "immediate", "type": "tick", "actor": "ada", "trace": null, "domain": "test", "stream": null, "payload": {"n": 8}, "event_id": "01a202bd-6be0-7135-8d8f-91708ad28144", "severity": "info", "created_at": "2026-11-22T10:11:38.080432+00:00", "occurred_at": "2026-11-22T10:11:38.080432+00:00", "subject_ref": null, "subject_table": null, "idempotency_key": null}', 'http_400', 'never', 1, '2026-11-22 10:11:38.591538+00', '2026-11-22 10:11:38.591538+00', '2026-11-22 10:11:38.661515+00', 'discarded', 'ada', 'obsolete'),
	(1, 'tm:default:hook:01a202bd-6af2-7437-aa08-b2a2816ad61b', 1, 2, 2, '01a202bd-6af2-7437-aa08-b2a2816ad61b', 'outbox', 0, NULL, NULL, '{"key": null, "seq": 2, "lane": "immediate", "type": "tick", "actor": "ada", "trace": null, "domain": "test", "stream": null, "payload": {"n": 2}, "event_id": "01a202bd-6af2-7437-aa08-b2a2816ad61b", "severity": "info", "created_at": "2026-11-22T10:11:37.842037+00:00", "occurred_at": "2026-11-22T10:11:37.842037+00:00", "subject_ref": null, "subject_table": null, "idempotency_key": null}', 'http_400', 'never', 2, '2026-11-22 10:11:38.591538+00', '2026-11-22 10:11:38.591538+00', NULL, NULL, NULL, NULL);
INSERT INTO tidemark.decision_p0 OVERRIDING SYSTEM VALUE VALUES
	(1, 3, 8, 1, 8, 'disabled', NULL, '{[1,9)}', '2026-11-22 10:11:38.59+00'),
	(1, 4, 3, 3, 1, 'dry_run', NULL, '{[3,4)}', '2026-11-22 10:11:38.590355+00'),
	(1, 2, 6, 1, 2, 'sent', NULL, '{[1,2),[6,7)}', '2026-11-22 10:11:38.590418+00'),
	(1, 2, 4, 4, 1, 'pending', 'behind_key', '{[4,5)}', '2026-11-22 10:11:38.590429+00'),
	(1, 2, 5, 5, 1, 'pending', 'busy', '{[5,6)}', '2026-11-22 10:11:38.590437+00'),
	(1, 1, 8, 1, 7, 'sent', NULL, '{[1,6),[7,9)}', '2026-11-22 10:11:38.590444+00'),
	(1, 3, 10, 10, 1, 'disabled', NULL, '{[10,11)}', '2026-11-22 10:11:38.812347+00'),
	(1, 2, 10, 10, 1, 'pending', 'behind_key', '{[10,11)}', '2026-11-22 10:11:38.831195+00'),
	(1, 1, 10, 10, 1, 'sent', NULL, '{[10,11)}', '2026-11-22 10:11:38.831231+00');
INSERT INTO tidemark.domain OVERRIDING SYSTEM VALUE VALUES
	('system', true, 'What Tidemark says of itself.'),
	('test', false, ''),
	('parcels', false, ''),
	('orders', false, '');
INSERT INTO tidemark.emit_key OVERRIDING SYSTEM VALUE VALUES
	('test', 'once', '01a202bd-6aef-7acf-927b-77f7c629b1a1', '2026-11-22 10:11:37.83908+00', false);
INSERT INTO tidemark.emit_unregistered OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-22 10:11:41.829237+00', 'test', 'unheard', 'ada', 1);
INSERT INTO tidemark.event_type OVERRIDING SYSTEM VALUE VALUES
	('system', 'queue_worker_silent', 1, NULL, true, 'An executor has been silent for longer than its threshold. Source: S4.', true, DEFAULT),
	('system', 'finding_opened', 1, NULL, false, 'A finding was opened.', true, DEFAULT),
	('system', 'finding_closed', 1, NULL, false, 'A finding was closed.', true, DEFAULT),
	('test', 'tick', 1, NULL, true, '', false, DEFAULT),
	('parcels', 'made', 1, NULL, true, '', false, DEFAULT),
	('orders', 'insert', 1, NULL, true, '', false, DEFAULT),
	('orders', 'update', 1, NULL, true, '', false, DEFAULT);
INSERT INTO tidemark.finding OVERRIDING SYSTEM VALUE VALUES
	(1, 'cursor_dlq', 'default', 'warning', '4 more dead-lettered; see tidemark.dead_letter', '2026-11-22 10:11:38.62783+00', '2026-11-22 10:11:38.62783+00', NULL, 1, NULL, NULL, NULL),
	(2, 'capture_gap', 'public.orders', 'high', '2 changes counted by the server since 2026-11-22 10:11:41+00, 1 events, 0 without event on record; rows without event (an update that changes nothing counts too): 2', '2026-11-22 10:11:41.78875+00', '2026-11-22 10:11:41.78875+00', NULL, 1, NULL, NULL, NULL),
	(4, 'cursor_lease_conflict', 'default', 'warning', 'worker default: an instance was fenced, told by pid 30382, application "psql", user ada; the lease is of , epoch 1, until ', '2026-11-22 10:11:41.842074+00', '2026-11-22 10:11:41.842074+00', NULL, 1, '2026-11-22 10:11:41.843326+00', 'ada', 'known'),
	(3, 'target_down', 'hook', 'high', 'worker default: its target fails', '2026-11-22 10:11:41.837901+00', '2026-11-22 10:11:41.837901+00', '2026-11-22 10:11:41.851119+00', 1, NULL, NULL, NULL);
INSERT INTO tidemark.forbidden_key OVERRIDING SYSTEM VALUE VALUES
	('body', DEFAULT),
	('content', DEFAULT),
	('raw', DEFAULT),
	('vector', DEFAULT),
	('embedding', DEFAULT),
	('secret', DEFAULT),
	('token', DEFAULT),
	('password', DEFAULT),
	('ssn', DEFAULT),
	('personal_data', DEFAULT);
INSERT INTO tidemark.heartbeat OVERRIDING SYSTEM VALUE VALUES
	('idle/outbox/0', 'PG_worker', '{parcels}', NULL, '{}', 60, 300, '2026-11-22 10:11:37.811589+00', 'ada', 0, 'registered', NULL, NULL, 0, NULL),
	('default/outbox/0', 'PG_worker', '{}', '2026-11-22 10:11:38.840997+00', '{}', 60, 300, '2026-11-22 10:11:19.107832+00', 'ada', 1, 'released', NULL, NULL, 1, NULL),
	('w_counted/counted/0', 'PG_worker', '{}', '2026-11-22 10:11:41.568756+00', '{}', 60, 300, '2026-11-22 10:11:39.645262+00', 'ada', 10, 'ok', NULL, NULL, 5, NULL),
	('backup', 'external_worker', '{}', '2026-11-22 10:11:41.826287+00', '{}', 60, 86400, '2026-11-22 10:11:41.823791+00', 'ada', 1, 'ok', NULL, NULL, 0, '2026-11-22 10:11:41.823793+00'),
	('w_timed/timed/0', 'PG_worker', '{}', '2026-11-22 10:11:41.432025+00', '{}', 60, 300, '2026-11-22 10:11:39.653295+00', 'ada', 8, 'ok', NULL, NULL, 4, NULL),
	('w_loose/loose/0', 'PG_worker', '{}', '2026-11-22 10:11:41.449848+00', '{}', 60, 300, '2026-11-22 10:11:39.689194+00', 'ada', 8, 'ok', NULL, NULL, 4, NULL),
	('w_parcels/parcels/0', 'PG_worker', '{}', '2026-11-22 10:11:41.485407+00', '{}', 60, 300, '2026-11-22 10:11:39.691392+00', 'ada', 8, 'ok', NULL, NULL, 4, NULL);
INSERT INTO tidemark.heartbeat_kind OVERRIDING SYSTEM VALUE VALUES
	('DOT'),
	('Agent'),
	('Hermes'),
	('Codex'),
	('PG_worker'),
	('external_worker'),
	('future_Kestra_adapter');
INSERT INTO tidemark.inbound_route OVERRIDING SYSTEM VALUE VALUES
	(1, 'parcels', 'table', 'public', 'parcels', 'insert', 'parcels', 'made', NULL, true, false, true, 'change', '{}', ''),
	(2, 'orders-insert', 'table', 'public', 'orders', 'insert', 'orders', 'insert', NULL, true, false, true, 'change', '{}', ''),
	(3, 'orders-update', 'table', 'public', 'orders', 'update', 'orders', 'update', NULL, true, false, true, 'change', '{}', '');
INSERT INTO tidemark.migration OVERRIDING SYSTEM VALUE VALUES
	(1, 'schema', false, 'c88cb9bfad3ddc7cdd4490cfb2317cd61ef37c168ac2cb334f600403fd985b9f', '2026-11-22 10:11:18.577654+00', 'ada'),
	(2, 'events', false, '411c906c881c494ff76b6dc9efd43a5d860e53b4d8b77ee93df41f970e068fd2', '2026-11-22 10:11:18.640739+00', 'ada'),
	(3, 'routes', false, '470559c1f3cb769a7d717e2efa099c39f6cde6aadab256a07f505ba2812edde6', '2026-11-22 10:11:18.966676+00', 'ada'),
	(4, 'workers', false, '97bff08ebf7b823242009374feede15a5a40f3c7ed7a94190e45321e514f9cb9', '2026-11-22 10:11:19.155467+00', 'ada'),
	(5, 'evidence', false, 'afb4eed24be21cf529308d1220eef47517fb49af7275ba95ed2159abd607ffd1', '2026-11-22 10:11:19.538335+00', 'ada'),
	(6, 'operations', false, 'ee294c6a28029b3a3654b72ad431a7b8a125d49d369799f5aa6f33be396aa102', '2026-11-22 10:11:19.576411+00', 'ada'),
	(7, 'sources', false, '0bf9d70f158b0bbc16aa88c631e370c9fbb9530d1f613b605421ef0e785513d1', '2026-11-22 10:11:19.680742+00', 'ada'),
	(8, 'liveness', false, '6f952faadf14312cf69faf7cc5351d2c8af99c6b23c6c0480e1225f757b780b1', '2026-11-22 10:11:19.729253+00', 'ada'),
	(9, 'capture', false, 'a992735542ac69fa38579fff33baa4fca58a69c0b5d6569113e43caae1d3dbb2', '2026-11-22 10:11:19.780093+00', 'ada'),
	(10, 'replays', false, 'fb776f760973badcee579fa62f438d6be7f45797f9f892d6e9c9152c00b84c5d', '2026-11-22 10:11:19.802275+00', 'ada'),
	(11, 'limits', false, '34fbf00d407cee4a70298931c42cd27a5ff536923bf322ca366160426af1ea40', '2026-11-22 10:11:19.822932+00', 'ada'),
	(12, 'unregistered', false, 'ef523477f47957befc7722e89bc4e5e3ce13b905301e893dd50543254e634d36', '2026-11-22 10:11:19.912535+00', 'ada'),
	(13, 'numbering', false, '6f7ce428e7f6758f51a813a830e4aa8695d25fa3fd8d6eaf483d61f33419ae8a', '2026-11-22 10:11:19.929924+00', 'ada'),
	(14, 'pending_replays', false, 'b277cb0db812435d1d6494db72fcfd3df701d35a12a2d1debb62fd11cf51efe5', '2026-11-22 10:11:20.029757+00', 'ada'),
	(15, 'silence', false, '8c82d1690fdc1591e49ab23fd282f88662ada518f5cf82914396baf2aff9c219', '2026-11-22 10:11:20.059737+00', 'ada'),
	(16, 'page_bytes', false, '0d31ef3eb336108250a1e9343e57e39dde491e45945362bd29c8ca904c15d2ad', '2026-11-22 10:11:20.082649+00', 'ada'),
	(17, 'capture_gap', false, '45dd28c05c80b088528d0c0c4049a43926e6508b66a2d9ec8e696a0c8821bd25', '2026-11-22 10:11:20.15555+00', 'ada'),
	(18, 'start', false, '123d09fe5d2da3cb5a9270d18842f23b64295c5230f936b988350be156cd2e71', '2026-11-22 10:11:20.245961+00', 'ada'),
	(19, 'replay_job', false, '2590da0f5f054ea4ca4ad252ca1be1c29284da7d5ef6749b001b30b1af6da22d', '2026-11-22 10:11:20.370386+00', 'ada'),
	(20, 'event_missing', false, '8a4074edd02552e8c86a87aa9e4975cf7251ce695f436059718bd5c8445476df', '2026-11-22 10:11:20.487781+00', 'ada'),
	(21, 'inside_time', false, '9890737a6e1cf8da72bc7f0538c3f47ffd7a9b6c0d097fe1e1fcfd090a46bc0b', '2026-11-22 10:11:20.508063+00', 'ada');
INSERT INTO tidemark.outbound_route OVERRIDING SYSTEM VALUE VALUES
	(1, 'app', 'default', 'test', '*', NULL, NULL, NULL, 'sql', 'public.receive', false, true, false, true, 'key', '{"max_attempts": 1}', '00:00:10', '{}', 4, ''),
	(2, 'hook', 'default', 'test', '*', NULL, NULL, NULL, 'webhook', 'https://example.com/hook', false, true, false, true, 'key', NULL, '00:00:10', '{"unsigned": true}', 4, ''),
	(3, 'off', 'default', 'test', '*', NULL, NULL, NULL, 'sql', 'public.receive', false, false, true, true, 'none', NULL, '00:00:10', '{}', 4, ''),
	(4, 'rehearsed', 'default', 'test', '*', NULL, NULL, '{"n": 3}', 'sql', 'public.receive', false, true, true, true, 'none', NULL, '00:00:10', '{}', 4, '');
INSERT INTO tidemark.outbox_p0 OVERRIDING SYSTEM VALUE VALUES
	(1, '01a202bd-6aef-7acf-927b-77f7c629b1a1', '2026-11-22 10:11:37.83908+00', '2026-11-22 10:11:37.83908+00', 'immediate', 'info', 'test', 'tick', NULL, NULL, NULL, NULL, 'once', NULL, 'ada', '{"n": 1}'),
	(2, '01a202bd-6af2-7437-aa08-b2a2816ad61b', '2026-11-22 10:11:37.842037+00', '2026-11-22 10:11:37.842037+00', 'immediate', 'info', 'test', 'tick', NULL, NULL, NULL, NULL, NULL, NULL, 'ada', '{"n": 2}'),
	(3, '01a202bd-6af2-717f-9309-3b5b4ecf1fcf', '2026-11-22 10:11:37.842311+00', '2026-11-22 10:11:37.842311+00', 'immediate', 'info', 'test', 'tick', NULL, 'a', NULL, NULL, NULL, NULL, 'ada', '{"n": 3}'),
	(4, '01a202bd-6af2-7a95-ac35-d0891daeaef1', '2026-11-22 10:11:37.842469+00', '2026-11-22 10:11:37.842469+00', 'immediate', 'info', 'test', 'tick', NULL, 'a', NULL, NULL, NULL, NULL, 'ada', '{"n": 4}'),
	(5, '01a202bd-6af2-7960-8c13-8abf54a8caa1', '2026-11-22 10:11:37.842586+00', '2026-11-22 10:11:37.842586+00', 'immediate', 'info', 'test', 'tick', NULL, NULL, NULL, NULL, NULL, NULL, 'ada', '{"n": 5}'),
	(6, '01a202bd-6af2-788d-841e-5feff69b7d23', '2026-11-22 10:11:37.84268+00', '2026-11-22 10:11:37.84268+00', 'immediate', 'info', 'test', 'tick', NULL, NULL, NULL, NULL, NULL, NULL, 'ada', '{"n": 6}'),
	(7, '01a202bd-6be0-757e-a31d-ed9a49510c1b', '2026-11-22 10:11:38.080264+00', '2026-11-22 10:11:38.080264+00', 'immediate', 'info', 'test', 'tick', NULL, NULL, NULL, NULL, NULL, NULL, 'ada', '{"n": 7}'),
	(8, '01a202bd-6be0-7135-8d8f-91708ad28144', '2026-11-22 10:11:38.080432+00', '2026-11-22 10:11:38.080432+00', 'immediate', 'info', 'test', 'tick', NULL, NULL, NULL, NULL, NULL, NULL, 'ada', '{"n": 8}'),
	(10, '01a202bd-6e5b-7df8-9b38-9b038379e3fb', '2026-11-22 10:11:38.715594+00', '2026-11-22 10:11:38.715594+00', 'immediate', 'info', 'test', 'tick', NULL, 'a', NULL, NULL, NULL, NULL, 'ada', '{"n": 10}'),
	(11, '01a202bd-6edb-7cec-8afd-4ef9f5cc5d2b', '2026-11-22 10:11:38.843007+00', '2026-11-22 10:11:38.843007+00', 'immediate', 'info', 'test', 'tick', NULL, 'a', NULL, NULL, NULL, NULL, 'ada', '{"n": 11}'),
	(12, '01a202bd-6edb-7565-8470-35d7e211c957', '2026-11-22 10:11:38.843227+00', '2026-11-22 10:11:38.843227+00', 'immediate', 'info', 'test', 'tick', NULL, 'b', NULL, NULL, NULL, NULL, 'ada', '{"n": 12}'),
	(13, '01a202bd-6edb-7dfc-ab9f-1b0602bc09da', '2026-11-22 10:11:38.843292+00', '2026-11-22 10:11:38.843292+00', 'immediate', 'info', 'test', 'tick', NULL, 'b', NULL, NULL, NULL, NULL, 'ada', '{"n": 13}'),
	(14, '01a202bd-6edb-7b4d-bad2-b7ed03a9ab30', '2026-11-22 10:11:38.84334+00', '2026-11-22 10:11:38.84334+00', 'immediate', 'info', 'test', 'tick', NULL, NULL, NULL, NULL, NULL, NULL, 'ada', '{"n": 14}'),
	(15, '01a202bd-724c-70a3-bf96-339a0e3995cb', '2026-11-22 10:11:39.724028+00', '2026-11-22 10:11:39.724028+00', 'immediate', 'info', 'parcels', 'made', NULL, '88c82940-76d9-478a-ba35-959d49352651', 'public.parcels', '88c82940-76d9-478a-ba35-959d49352651', NULL, NULL, 'ada', '{"table": "parcels", "schema": "public", "operation": "insert", "primary_key": {"id": "88c82940-76d9-478a-ba35-959d49352651"}}'),
	(16, '01a202bd-724c-70b8-b155-262bd79fd3f3', '2026-11-22 10:11:39.724028+00', '2026-11-22 10:11:39.724028+00', 'immediate', 'info', 'parcels', 'made', NULL, '10854013-e4c9-40c9-b715-b66ab750bac9', 'public.parcels', '10854013-e4c9-40c9-b715-b66ab750bac9', NULL, NULL, 'ada', '{"table": "parcels", "schema": "public", "operation": "insert", "primary_key": {"id": "10854013-e4c9-40c9-b715-b66ab750bac9"}}'),
	(17, '01a202bd-724c-70a5-bd54-cfcb42dac985', '2026-11-22 10:11:39.724028+00', '2026-11-22 10:11:39.724028+00', 'immediate', 'info', 'parcels', 'made', NULL, 'b1fd9728-8271-4921-9c4c-a1274f2992de', 'public.parcels', 'b1fd9728-8271-4921-9c4c-a1274f2992de', NULL, NULL, 'ada', '{"table": "parcels", "schema": "public", "operation": "insert", "primary_key": {"id": "b1fd9728-8271-4921-9c4c-a1274f2992de"}}'),
	(18, '01a202bd-724c-7cc2-be33-8a37a594e6fb', '2026-11-22 10:11:39.724028+00', '2026-11-22 10:11:39.724028+00', 'immediate', 'info', 'parcels', 'made', NULL, '9b17e99d-dfd8-40be-a209-607c07d92871', 'public.parcels', '9b17e99d-dfd8-40be-a209-607c07d92871', NULL, NULL, 'ada', '{"table": "parcels", "schema": "public", "operation": "insert", "primary_key": {"id": "9b17e99d-dfd8-40be-a209-607c07d92871"}}'),
	(19, '01a202bd-7987-7936-b5d5-91f5cb73e3c1', '2026-11-22 10:11:41.575933+00', '2026-11-22 10:11:41.575933+00', 'immediate', 'info', 'parcels', 'made', NULL, 'eb60607c-0e7d-498f-8e47-ae3aa4acf359', 'public.parcels', 'eb60607c-0e7d-498f-8e47-ae3aa4acf359', NULL, NULL, 'ada', '{"table": "parcels", "schema": "public", "operation": "insert", "primary_key": {"id": "eb60607c-0e7d-498f-8e47-ae3aa4acf359"}}'),
	(20, '01a202bd-7987-7650-ac47-1dbbce7a5c1e', '2026-11-22 10:11:41.575933+00', '2026-11-22 10:11:41.575933+00', 'immediate', 'info', 'parcels', 'made', NULL, '22f943f1-9067-486d-b303-4c6a18b275fa', 'public.parcels', '22f943f1-9067-486d-b303-4c6a18b275fa', NULL, NULL, 'ada', '{"table": "parcels", "schema": "public", "operation": "insert", "primary_key": {"id": "22f943f1-9067-486d-b303-4c6a18b275fa"}}'),
	(21, '01a202bd-79fb-7071-920b-2d485daac2cc', '2026-11-22 10:11:41.691812+00', '2026-11-22 10:11:41.691812+00', 'immediate', 'info', 'orders', 'insert', NULL, '1', 'public.orders', '1', NULL, NULL, 'ada', '{"table": "orders", "schema": "public", "operation": "insert", "primary_key": {"id": 1}}'),
	(22, '01a202bd-7a3b-70ce-9d0b-2499d0bc2ab8', '2026-11-22 10:11:41.755238+00', '2026-11-22 10:11:41.755238+00', 'immediate', 'info', 'orders', 'insert', NULL, '3', 'public.orders', '3', NULL, NULL, 'ada', '{"table": "orders", "schema": "public", "operation": "insert", "primary_key": {"id": 3}}');
INSERT INTO tidemark.pending OVERRIDING SYSTEM VALUE VALUES
	(1, 2, 3, 1, 'a', '2026-11-22 11:11:38.591538+00', 1, 'http_503: not now', NULL, '2026-11-22 10:11:38.593897+00', false, NULL, NULL),
	(1, 2, 4, 1, 'a', 'infinity', 0, 'behind_key', NULL, '2026-11-22 10:11:38.602845+00', false, NULL, NULL),
	(1, 2, 5, 1, NULL, '2026-11-22 10:11:38.591538+00', 0, 'busy', NULL, '2026-11-22 10:11:38.606858+00', false, NULL, NULL),
	(1, 2, 2, 2, NULL, '2026-11-22 10:11:38.6679+00', 0, NULL, 1, '2026-11-22 10:11:38.6679+00', true, NULL, NULL),
	(1, 2, 6, 2, NULL, '2026-11-22 10:11:38.721248+00', 0, NULL, NULL, '2026-11-22 10:11:38.737055+00', true, 1, NULL),
	(1, 2, 7, 4, NULL, '2026-11-22 10:11:38.721249+00', 0, NULL, NULL, '2026-11-22 10:11:38.73723+00', true, 1, NULL),
	(1, 2, 10, 1, 'a', 'infinity', 0, 'behind_key', NULL, '2026-11-22 10:11:38.831708+00', false, NULL, NULL);
INSERT INTO tidemark.pending_row OVERRIDING SYSTEM VALUE VALUES
	(3, 'counted', 0, '1', NULL, '{"n": 600, "id": 1}', 1, 'P0001: no such row', '2026-11-22 10:11:40.500274+00', NULL, '2026-11-22 10:11:40.500965+00'),
	(3, 'counted', 0, '6', NULL, '{"n": 601, "id": 6}', 1, 'P0001: no such row', '2026-11-23 11:00:46.280576+00', NULL, '2026-11-22 10:11:41.562868+00');
INSERT INTO tidemark.replay_job OVERRIDING SYSTEM VALUE VALUES
	(1, 2, 1, 6, 7, 7, NULL, NULL, NULL, '2026-11-22 10:11:38.72125+00', 2, 0, 0, '{}', '2026-11-22 10:11:38.705934+00', 'ada', 'they lost them', NULL, NULL, NULL);
INSERT INTO tidemark.setting OVERRIDING SYSTEM VALUE VALUES
	('notify.bridge_enabled', 'false', 'Gate: while a worker sleeps, emit wakes it by a notification. A transaction that notified cannot be prepared (two-phase commit).'),
	('outbox.retention', '30 days', 'Interval: a partition of the log is dropped when its newest event is older and nothing needs it any more.'),
	('outbox.partition_events', '1000000', 'Events per partition of the log, for partitions made from now on.'),
	('outbox.partitions_ahead', '2', 'Empty partitions that tidemark.maintain keeps ahead of the newest event.'),
	('dead_letter.overflow', '1000', 'Open dead letters of a worker above which the finding dlq_overflow opens.'),
	('emit_key.retention', '30 days', 'Interval for which an idempotency key of emit is remembered.'),
	('finding.retention', '90 days', 'Interval for which a closed finding is kept.'),
	('lag.warn', '1 minute', 'Interval: a backlog or a delivery that is due for longer is a warning, and opens the finding cursor_lag.'),
	('lag.bad', '15 minutes', 'Interval: a backlog or a delivery that is due for longer is bad.'),
	('captured.retention', '30 days', 'Interval for which tidemark.captured is kept.'),
	('emit.payload_limit', '1000000', 'Bytes of JSON text that a payload may have, emitted or captured; at least 1000; 0: no limit.'),
	('routes.enabled', 'true', 'Master gate: nothing is routed or delivered while it is closed.'),
	('worker.default.enabled', 'true', 'Gate.'),
	('batch.max_bytes', '12345678', 'Bytes of payload in a page of the log that is handed out for delivery outside the database; a single event may have more. At least 65536.'),
	('worker.w_counted.enabled', 'true', 'Gate.'),
	('worker.w_timed.enabled', 'true', 'Gate.'),
	('worker.w_loose.enabled', 'true', 'Gate.'),
	('worker.w_parcels.enabled', 'true', 'Gate.');
INSERT INTO tidemark.silence OVERRIDING SYSTEM VALUE VALUES
	('default/outbox/0', NULL, NULL),
	('idle/outbox/0', NULL, NULL),
	('w_counted/counted/0', NULL, NULL),
	('w_timed/timed/0', NULL, NULL),
	('w_loose/loose/0', NULL, NULL),
	('w_parcels/parcels/0', NULL, NULL),
	('backup', NULL, NULL);
INSERT INTO tidemark.source OVERRIDING SYSTEM VALUE VALUES
	('counted', 'public', 'counted', 'id', 'bigint', false, NULL, NULL, NULL, '{}', '{}', NULL, 'sequence', '00:00:01', NULL, '00:01:00', '01:00:00', '', '2026-11-22 10:11:38.985152+00', 'ada'),
	('timed', 'public', 'timed', 'id', 'uuid', false, 'born_at', 'timestamp with time zone', NULL, '{}', '{}', NULL, 'clock', '00:00:00.000001', NULL, '00:01:00', '01:00:00', '', '2026-11-22 10:11:39.181872+00', 'ada'),
	('loose', 'public', 'loose', 'id', 'bigint', false, 'born_at', 'timestamp with time zone', NULL, '{}', '{}', NULL, 'declared', '00:00:00.000001', '3650 days', '00:01:00', '01:00:00', '', '2026-11-22 10:11:39.325269+00', 'ada'),
	('parcels', 'public', 'parcels', 'id', 'uuid', false, 'born_at', 'timestamp with time zone', NULL, '{}', '{}', NULL, 'capture', '00:00:01', NULL, '00:01:00', '01:00:00', '', '2026-11-22 10:11:39.419314+00', 'ada');
INSERT INTO tidemark.source_count OVERRIDING SYSTEM VALUE VALUES
	(5, 'loose', 0, '2026-11-22 10:00:00+00', 4);
INSERT INTO tidemark.source_ledger OVERRIDING SYSTEM VALUE VALUES
	(5, 'loose', 0, '1', '811'),
	(5, 'loose', 0, '2', '811'),
	(5, 'loose', 0, '3', '811'),
	(5, 'loose', 0, '4', '811');
INSERT INTO tidemark.stage OVERRIDING SYSTEM VALUE VALUES
	(true, 'live', 7710936354221278716, 'shop', '2026-11-22 10:11:37.678089+00', 'ada', 'in use');
INSERT INTO tidemark.worker OVERRIDING SYSTEM VALUE VALUES
	(1, 'default', 'outbox', 'route', NULL, '{}', NULL, 'eager', 10000, 1, 5000, '00:00:05', NULL, NULL, NULL, NULL, '00:00:01', NULL, NULL, 'Routes events of every domain.'),
	(2, 'idle', 'outbox', 'route', NULL, '{}', '{parcels}', 'eager', 10000, 1, 5000, '00:00:05', NULL, NULL, NULL, NULL, '00:00:01', NULL, NULL, ''),
	(4, 'w_timed', 'table', 'sql', 'public.take_timed', '{}', NULL, 'eager', 10000, 1, 5000, '00:00:05', '{"max_seconds": 0.001, "base_seconds": 0.001, "max_attempts": 2}', NULL, NULL, NULL, '00:00:01', NULL, NULL, ''),
	(5, 'w_loose', 'table', 'sql', 'public.take_loose', '{}', NULL, 'eager', 10000, 1, 5000, '00:00:05', '{"max_seconds": 0.001, "base_seconds": 0.001, "max_attempts": 2}', NULL, NULL, NULL, '00:00:01', NULL, NULL, ''),
	(6, 'w_parcels', 'table', 'sql', 'public.take_parcels', '{}', NULL, 'eager', 10000, 1, 5000, '00:00:05', '{"max_seconds": 0.001, "base_seconds": 0.001, "max_attempts": 2}', NULL, NULL, NULL, '00:00:01', NULL, NULL, ''),
	(3, 'w_counted', 'table', 'sql', 'public.take_counted', '{}', NULL, 'eager', 10000, 1, 5000, '00:00:05', '{"max_seconds": 86400, "base_seconds": 86400, "max_attempts": 2}', NULL, NULL, NULL, '00:00:01', NULL, NULL, '');
INSERT INTO tidemark.worker_cursor OVERRIDING SYSTEM VALUE VALUES
	('idle', 'outbox', 0, NULL, '0', '0', '{}', '{}', '{}', NULL, '{}', 0, 0, 0, 0, NULL, '{}', NULL, 'incremental', '{}', NULL, '2026-11-22 10:11:37.810927+00', '2026-11-22 10:11:37.810927+00', 0),
	('default', 'outbox', 0, NULL, '10', '10', '{}', '{[9,10)}', '{}', '2026-11-22 10:11:38.832061+00', '{"late": 0, "events": 1, "status": "ran", "worker": "default", "decided": {"sent": 1, "pending": 1, "disabled": 1}, "fallbacks": 0, "watermark": 10}', 9, 28, 4, 3, NULL, '{}', NULL, 'incremental', '{}', NULL, '2026-11-22 10:11:19.107266+00', '2026-11-22 10:11:38.832061+00', 0),
	('w_counted', 'counted', 0, NULL, '6', '6', '{}', '{}', '{}', '2026-11-22 10:11:41.568378+00', '{"late": 0, "more": false, "rows": 1, "step": "forward", "phase": "incremental", "shard": 0, "taken": 0, "failed": 1, "source": "counted", "splits": 2, "status": "ran", "worker": "w_counted", "ended_at": "2026-11-22T10:11:41.56435+00:00", "coalesced": 0, "started_at": "2026-11-22T10:11:41.507545+00:00", "watermark_id": "6", "dead_lettered": 0}', 6, 6, 0, 0, NULL, '{"mark": "2026-11-22T10:11:39.632801+00:00", "xmin": "808"}', NULL, 'incremental', '{"home": "7710936354221278716/17562", "numbering": "17561/17561"}', NULL, '2026-11-22 10:11:39.644769+00', '2026-11-22 10:11:41.56838+00', 0),
	('w_timed', 'timed', 0, '2026-11-22 10:11:39.702377+00', '6a1e5d66-fe34-4845-80f7-5dee0a9ace0d', '1795342299702377 6a1e5d66-fe34-4845-80f7-5dee0a9ace0d', '{}', '{}', '{}', '2026-11-22 10:11:41.431897+00', '{"late": 0, "more": true, "rows": 0, "step": "sweep", "phase": "reconciling", "shard": 0, "taken": 0, "failed": 0, "source": "timed", "splits": 0, "status": "ran", "worker": "w_timed", "ended_at": "2026-11-22T10:11:41.43177+00:00", "coalesced": 0, "started_at": "2026-11-22T10:11:41.40873+00:00", "watermark_id": "6a1e5d66-fe34-4845-80f7-5dee0a9ace0d", "watermark_ts": "2026-11-22T10:11:39.702377+00:00", "dead_lettered": 0}', 4, 4, 0, 0, '2026-11-22 10:11:39.826384+00', '{"mark": "2026-11-22T10:11:39.652387+00:00", "xmin": "808", "segment": "infinity", "next_mark": "2026-11-22T10:11:39.702377+00:00", "next_xmin": "813"}', NULL, 'reconciling', '{"home": "7710936354221278716/17567", "numbering": null}', NULL, '2026-11-22 10:11:39.653023+00', '2026-11-22 10:11:41.431898+00', 0),
	('w_loose', 'loose', 0, '2026-11-22 10:11:39.702742+00', '4', '1795342299702742 4', '{}', '{}', '{}', '2026-11-22 10:11:41.449712+00', '{"late": 0, "more": true, "rows": 0, "step": "sweep", "phase": "reconciling", "shard": 0, "taken": 0, "failed": 0, "source": "loose", "splits": 0, "status": "ran", "worker": "w_loose", "ended_at": "2026-11-22T10:11:41.449584+00:00", "coalesced": 0, "started_at": "2026-11-22T10:11:41.43251+00:00", "watermark_id": "4", "watermark_ts": "2026-11-22T10:11:39.702742+00:00", "dead_lettered": 0}', 4, 4, 0, 0, '2026-11-22 10:11:41.324051+00', '{"mark": "2026-11-22T10:11:39.670945+00:00", "xmin": "808", "segment": "infinity", "next_mark": "2026-11-22T10:11:39.702742+00:00", "next_xmin": "813"}', NULL, 'reconciling', '{"home": "7710936354221278716/17576", "numbering": null}', NULL, '2026-11-22 10:11:39.68881+00', '2026-11-22 10:11:41.449713+00', 0),
	('w_parcels', 'parcels', 0, NULL, '17', '17', '{}', '{}', '{}', '2026-11-22 10:11:41.485289+00', '{"late": 0, "more": true, "rows": 4, "step": "forward", "phase": "seeding", "shard": 0, "taken": 3, "failed": 0, "source": "parcels", "splits": 0, "status": "ran", "worker": "w_parcels", "ended_at": "2026-11-22T10:11:41.485151+00:00", "coalesced": 0, "started_at": "2026-11-22T10:11:41.453938+00:00", "watermark_id": "17", "dead_lettered": 0}', 3, 3, 0, 0, NULL, '{"mark": "2026-11-22T10:11:39.690708+00:00", "xmin": "808"}', NULL, 'seeding', '{"home": "7710936354221278716/17582", "numbering": null}', NULL, '2026-11-22 10:11:39.691156+00', '2026-11-22 10:11:41.48529+00', 0);
SELECT pg_catalog.setval('public.counted_id_seq', 8, true);
SELECT pg_catalog.setval('public.handled_at_seq', 15, true);
SELECT pg_catalog.setval('public.loose_id_seq', 7, true);
SELECT pg_catalog.setval('public.received_at_seq', 15, true);
SELECT pg_catalog.setval('tidemark.audit_id_seq', 53, true);
SELECT pg_catalog.setval('tidemark.capture_gap_id_seq', 1, true);
SELECT pg_catalog.setval('tidemark.captured_id_seq', 1, false);
SELECT pg_catalog.setval('tidemark.dead_letter_id_seq', 4, true);
SELECT pg_catalog.setval('tidemark.emit_unregistered_id_seq', 1, true);
SELECT pg_catalog.setval('tidemark.finding_id_seq', 4, true);
SELECT pg_catalog.setval('tidemark.inbound_route_id_seq', 3, true);
SELECT pg_catalog.setval('tidemark.outbound_route_id_seq', 4, true);
SELECT pg_catalog.setval('tidemark.outbox_seq_seq', 22, true);
SELECT pg_catalog.setval('tidemark.replay_job_id_seq', 1, true);
SELECT pg_catalog.setval('tidemark.worker_id_seq', 6, true);
ALTER TABLE ONLY public.counted
    ADD CONSTRAINT counted_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.handled
    ADD CONSTRAINT handled_pkey PRIMARY KEY (at);
ALTER TABLE ONLY public.loose
    ADD CONSTRAINT loose_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.parcels
    ADD CONSTRAINT parcels_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.received
    ADD CONSTRAINT received_pkey PRIMARY KEY (at);
ALTER TABLE ONLY public.timed
    ADD CONSTRAINT timed_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tidemark.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (worker_id, route_id, seq, attempt_no);
ALTER TABLE ONLY tidemark.attempt_p0
    ADD CONSTRAINT attempt_p0_pkey PRIMARY KEY (worker_id, route_id, seq, attempt_no);
ALTER TABLE ONLY tidemark.attempt_p1000000
    ADD CONSTRAINT attempt_p1000000_pkey PRIMARY KEY (worker_id, route_id, seq, attempt_no);
ALTER TABLE ONLY tidemark.attempt_p2000000
    ADD CONSTRAINT attempt_p2000000_pkey PRIMARY KEY (worker_id, route_id, seq, attempt_no);
ALTER TABLE ONLY tidemark.attempt_rest
    ADD CONSTRAINT attempt_rest_pkey PRIMARY KEY (worker_id, route_id, seq, attempt_no);
ALTER TABLE ONLY tidemark.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tidemark.capture_checkpoint
    ADD CONSTRAINT capture_checkpoint_pkey PRIMARY KEY (relation);
ALTER TABLE ONLY tidemark.capture_gap
    ADD CONSTRAINT capture_gap_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tidemark.captured
    ADD CONSTRAINT captured_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tidemark.code
    ADD CONSTRAINT code_pkey PRIMARY KEY (object);
ALTER TABLE ONLY tidemark.cursor_sample
    ADD CONSTRAINT cursor_sample_pkey PRIMARY KEY (worker, source, shard);
ALTER TABLE ONLY tidemark.dead_letter
    ADD CONSTRAINT dead_letter_idempotency_key_key UNIQUE (idempotency_key);
ALTER TABLE ONLY tidemark.dead_letter
    ADD CONSTRAINT dead_letter_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tidemark.decision
    ADD CONSTRAINT decision_pkey PRIMARY KEY (worker_id, route_id, last_seq);
ALTER TABLE ONLY tidemark.decision_p0
    ADD CONSTRAINT decision_p0_pkey PRIMARY KEY (worker_id, route_id, last_seq);
ALTER TABLE ONLY tidemark.decision_p1000000
    ADD CONSTRAINT decision_p1000000_pkey PRIMARY KEY (worker_id, route_id, last_seq);
ALTER TABLE ONLY tidemark.decision_p2000000
    ADD CONSTRAINT decision_p2000000_pkey PRIMARY KEY (worker_id, route_id, last_seq);
ALTER TABLE ONLY tidemark.decision_rest
    ADD CONSTRAINT decision_rest_pkey PRIMARY KEY (worker_id, route_id, last_seq);
ALTER TABLE ONLY tidemark.domain
    ADD CONSTRAINT domain_pkey PRIMARY KEY (domain);
ALTER TABLE ONLY tidemark.emit_key
    ADD CONSTRAINT emit_key_pkey PRIMARY KEY (domain, idempotency_key);
ALTER TABLE ONLY tidemark.emit_unregistered
    ADD CONSTRAINT emit_unregistered_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tidemark.event_type
    ADD CONSTRAINT event_type_pkey PRIMARY KEY (domain, type);
ALTER TABLE ONLY tidemark.finding
    ADD CONSTRAINT finding_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tidemark.forbidden_key
    ADD CONSTRAINT forbidden_key_pkey PRIMARY KEY (key);
ALTER TABLE ONLY tidemark.heartbeat_kind
    ADD CONSTRAINT heartbeat_kind_pkey PRIMARY KEY (kind);
ALTER TABLE ONLY tidemark.heartbeat
    ADD CONSTRAINT heartbeat_pkey PRIMARY KEY (executor_id);
ALTER TABLE ONLY tidemark.inbound_route
    ADD CONSTRAINT inbound_route_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tidemark.inbound_route
    ADD CONSTRAINT inbound_route_route_code_key UNIQUE (route_code);
ALTER TABLE ONLY tidemark.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);
ALTER TABLE ONLY tidemark.inbound_route
    ADD CONSTRAINT one_route_for_an_operation UNIQUE (source_schema, source_table, sql_event);
ALTER TABLE ONLY tidemark.outbound_route
    ADD CONSTRAINT outbound_route_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tidemark.outbound_route
    ADD CONSTRAINT outbound_route_route_code_key UNIQUE (route_code);
ALTER TABLE ONLY tidemark.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY tidemark.outbox_p0
    ADD CONSTRAINT outbox_p0_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY tidemark.outbox_p1000000
    ADD CONSTRAINT outbox_p1000000_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY tidemark.outbox_p2000000
    ADD CONSTRAINT outbox_p2000000_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY tidemark.outbox_rest
    ADD CONSTRAINT outbox_rest_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY tidemark.pack
    ADD CONSTRAINT pack_pkey PRIMARY KEY (pack);
ALTER TABLE ONLY tidemark.pending
    ADD CONSTRAINT pending_pkey PRIMARY KEY (worker_id, route_id, seq);
ALTER TABLE ONLY tidemark.pending_row
    ADD CONSTRAINT pending_row_pkey PRIMARY KEY (worker_id, source, shard, item_id);
ALTER TABLE ONLY tidemark.replay_job
    ADD CONSTRAINT replay_job_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tidemark.setting
    ADD CONSTRAINT setting_pkey PRIMARY KEY (key);
ALTER TABLE ONLY tidemark.silence
    ADD CONSTRAINT silence_pkey PRIMARY KEY (executor_id);
ALTER TABLE ONLY tidemark.source_count
    ADD CONSTRAINT source_count_pkey PRIMARY KEY (worker_id, source, shard, bucket);
ALTER TABLE ONLY tidemark.source_ledger
    ADD CONSTRAINT source_ledger_pkey PRIMARY KEY (worker_id, source, shard, item_id);
ALTER TABLE ONLY tidemark.source
    ADD CONSTRAINT source_pkey PRIMARY KEY (source);
ALTER TABLE ONLY tidemark.stage
    ADD CONSTRAINT stage_pkey PRIMARY KEY (singleton);
ALTER TABLE ONLY tidemark.unregistered_type
    ADD CONSTRAINT unregistered_type_pkey PRIMARY KEY (domain, type, role);
ALTER TABLE ONLY tidemark.worker_cursor
    ADD CONSTRAINT worker_cursor_pkey PRIMARY KEY (worker, source, shard);
ALTER TABLE ONLY tidemark.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (id);
ALTER TABLE ONLY tidemark.worker
    ADD CONSTRAINT worker_worker_key UNIQUE (worker);
CREATE INDEX loose_born_at_id_idx ON public.loose USING btree (born_at, id);
CREATE INDEX timed_born_at_id_idx ON public.timed USING btree (born_at, id);
CREATE INDEX audit_at ON tidemark.audit USING brin (at);
CREATE UNIQUE INDEX capture_gap_open ON tidemark.capture_gap USING btree (name) WHERE (resolved_at IS NULL);
CREATE INDEX captured_at ON tidemark.captured USING brin (at);
CREATE INDEX captured_route ON tidemark.captured USING btree (route_id, at);
CREATE INDEX dead_letter_in_order ON tidemark.dead_letter USING btree (COALESCE(seq, '9223372036854775807'::bigint), COALESCE(route_id, 0), COALESCE(item_ts, 'infinity'::timestamp with time zone), id) WHERE (resolved_at IS NULL);
CREATE INDEX dead_letter_open ON tidemark.dead_letter USING btree (last_failed_at) WHERE (resolved_at IS NULL);
CREATE INDEX dead_letter_open_route ON tidemark.dead_letter USING btree (route_id, last_failed_at) WHERE (resolved_at IS NULL);
CREATE INDEX dead_letter_route ON tidemark.dead_letter USING btree (route_id);
CREATE INDEX dead_letter_worker ON tidemark.dead_letter USING btree (worker_id);
CREATE INDEX emit_key_created_at ON tidemark.emit_key USING brin (created_at);
CREATE INDEX finding_closed_at ON tidemark.finding USING btree (closed_at) WHERE (closed_at IS NOT NULL);
CREATE UNIQUE INDEX finding_open ON tidemark.finding USING btree (kind, subject) WHERE (closed_at IS NULL);
CREATE INDEX heartbeat_kind_fk ON tidemark.heartbeat USING btree (kind);
CREATE INDEX outbound_route_worker ON tidemark.outbound_route USING btree (worker);
CREATE INDEX outbox_created_at ON ONLY tidemark.outbox USING brin (created_at) WITH (pages_per_range='32');
CREATE INDEX outbox_p0_created_at_idx ON tidemark.outbox_p0 USING brin (created_at) WITH (pages_per_range='32');
CREATE INDEX outbox_p1000000_created_at_idx ON tidemark.outbox_p1000000 USING brin (created_at) WITH (pages_per_range='32');
CREATE INDEX outbox_p2000000_created_at_idx ON tidemark.outbox_p2000000 USING brin (created_at) WITH (pages_per_range='32');
CREATE INDEX outbox_rest_created_at_idx ON tidemark.outbox_rest USING brin (created_at) WITH (pages_per_range='32');
CREATE INDEX pending_dead_letter ON tidemark.pending USING btree (dead_letter_id) WHERE (dead_letter_id IS NOT NULL);
CREATE INDEX pending_due ON tidemark.pending USING btree (route_id, next_attempt_at);
CREATE INDEX pending_key ON tidemark.pending USING btree (worker_id, route_id, key, seq) WHERE ((key IS NOT NULL) AND (NOT replay));
CREATE INDEX pending_live ON tidemark.pending USING btree (route_id, next_attempt_at) WHERE (NOT replay);
CREATE INDEX pending_replay ON tidemark.pending USING btree (route_id, next_attempt_at) WHERE replay;
CREATE INDEX pending_replay_job ON tidemark.pending USING btree (replay_id) WHERE (replay_id IS NOT NULL);
CREATE INDEX pending_row_dead_letter ON tidemark.pending_row USING btree (dead_letter_id) WHERE (dead_letter_id IS NOT NULL);
CREATE INDEX pending_row_due ON tidemark.pending_row USING btree (worker_id, source, shard, next_attempt_at);
CREATE INDEX pending_row_source ON tidemark.pending_row USING btree (source);
CREATE INDEX pending_suspect ON tidemark.pending USING btree (route_id) WHERE (suspects IS NOT NULL);
CREATE INDEX replay_job_open ON tidemark.replay_job USING btree (worker_id) WHERE (finished_at IS NULL);
CREATE INDEX replay_job_route ON tidemark.replay_job USING btree (route_id);
CREATE INDEX replay_job_worker ON tidemark.replay_job USING btree (worker_id);
CREATE INDEX source_count_source ON tidemark.source_count USING btree (source);
CREATE INDEX source_ledger_source ON tidemark.source_ledger USING btree (source);
ALTER INDEX tidemark.attempt_pkey ATTACH PARTITION tidemark.attempt_p0_pkey;
ALTER INDEX tidemark.attempt_pkey ATTACH PARTITION tidemark.attempt_p1000000_pkey;
ALTER INDEX tidemark.attempt_pkey ATTACH PARTITION tidemark.attempt_p2000000_pkey;
ALTER INDEX tidemark.attempt_pkey ATTACH PARTITION tidemark.attempt_rest_pkey;
ALTER INDEX tidemark.decision_pkey ATTACH PARTITION tidemark.decision_p0_pkey;
ALTER INDEX tidemark.decision_pkey ATTACH PARTITION tidemark.decision_p1000000_pkey;
ALTER INDEX tidemark.decision_pkey ATTACH PARTITION tidemark.decision_p2000000_pkey;
ALTER INDEX tidemark.decision_pkey ATTACH PARTITION tidemark.decision_rest_pkey;
ALTER INDEX tidemark.outbox_created_at ATTACH PARTITION tidemark.outbox_p0_created_at_idx;
ALTER INDEX tidemark.outbox_pkey ATTACH PARTITION tidemark.outbox_p0_pkey;
ALTER INDEX tidemark.outbox_created_at ATTACH PARTITION tidemark.outbox_p1000000_created_at_idx;
ALTER INDEX tidemark.outbox_pkey ATTACH PARTITION tidemark.outbox_p1000000_pkey;
ALTER INDEX tidemark.outbox_created_at ATTACH PARTITION tidemark.outbox_p2000000_created_at_idx;
ALTER INDEX tidemark.outbox_pkey ATTACH PARTITION tidemark.outbox_p2000000_pkey;
ALTER INDEX tidemark.outbox_created_at ATTACH PARTITION tidemark.outbox_rest_created_at_idx;
ALTER INDEX tidemark.outbox_pkey ATTACH PARTITION tidemark.outbox_rest_pkey;
CREATE TRIGGER tidemark_capture_insert AFTER INSERT ON public.orders REFERENCING NEW TABLE AS tidemark_new FOR EACH STATEMENT EXECUTE FUNCTION tidemark.capture_2();
CREATE TRIGGER tidemark_capture_insert AFTER INSERT ON public.parcels REFERENCING NEW TABLE AS tidemark_new FOR EACH STATEMENT EXECUTE FUNCTION tidemark.capture_1();
CREATE TRIGGER tidemark_capture_update AFTER UPDATE ON public.orders REFERENCING OLD TABLE AS tidemark_old NEW TABLE AS tidemark_new FOR EACH STATEMENT EXECUTE FUNCTION tidemark.capture_3();
CREATE TRIGGER domain_audit AFTER INSERT OR DELETE OR UPDATE ON tidemark.domain FOR EACH ROW EXECUTE FUNCTION tidemark.audit_change('domain');
COMMENT ON TRIGGER domain_audit ON tidemark.domain IS 'Every change goes to tidemark.audit.';
CREATE TRIGGER domain_spread_down AFTER UPDATE OF metadata_only ON tidemark.domain FOR EACH ROW EXECUTE FUNCTION tidemark.domain_spread();
COMMENT ON TRIGGER domain_spread_down ON tidemark.domain IS 'Types follow their domain.';
CREATE TRIGGER event_type_audit AFTER INSERT OR DELETE OR UPDATE ON tidemark.event_type FOR EACH ROW EXECUTE FUNCTION tidemark.audit_change('type');
COMMENT ON TRIGGER event_type_audit ON tidemark.event_type IS 'Every change goes to tidemark.audit.';
CREATE TRIGGER event_type_spread BEFORE INSERT OR UPDATE ON tidemark.event_type FOR EACH ROW EXECUTE FUNCTION tidemark.domain_spread();
COMMENT ON TRIGGER event_type_spread ON tidemark.event_type IS 'A type is as its domain is.';
CREATE TRIGGER finding_closed AFTER UPDATE OF closed_at ON tidemark.finding FOR EACH ROW WHEN (((old.closed_at IS NULL) AND (new.closed_at IS NOT NULL))) EXECUTE FUNCTION tidemark.finding_event();
COMMENT ON TRIGGER finding_closed ON tidemark.finding IS 'Emits system/finding_closed, where that type is enabled.';
CREATE TRIGGER finding_opened AFTER INSERT ON tidemark.finding FOR EACH ROW WHEN ((new.closed_at IS NULL)) EXECUTE FUNCTION tidemark.finding_event();
COMMENT ON TRIGGER finding_opened ON tidemark.finding IS 'Emits system/finding_opened, where that type is enabled. A finding that is seen again is an update.';
CREATE TRIGGER forbidden_key_audit AFTER INSERT OR DELETE OR UPDATE ON tidemark.forbidden_key FOR EACH ROW EXECUTE FUNCTION tidemark.audit_change('key');
COMMENT ON TRIGGER forbidden_key_audit ON tidemark.forbidden_key IS 'Every change goes to tidemark.audit.';
CREATE TRIGGER heartbeat_kind_audit AFTER INSERT OR DELETE OR UPDATE ON tidemark.heartbeat_kind FOR EACH ROW EXECUTE FUNCTION tidemark.audit_change('kind');
COMMENT ON TRIGGER heartbeat_kind_audit ON tidemark.heartbeat_kind IS 'Every change goes to tidemark.audit.';
CREATE TRIGGER heartbeat_silence AFTER INSERT ON tidemark.heartbeat FOR EACH ROW EXECUTE FUNCTION tidemark.silence_add();
COMMENT ON TRIGGER heartbeat_silence ON tidemark.heartbeat IS 'Gives a new executor the row of tidemark.silence that tidemark.stale_check locks.';
CREATE TRIGGER inbound_route_audit AFTER INSERT OR DELETE OR UPDATE ON tidemark.inbound_route FOR EACH ROW EXECUTE FUNCTION tidemark.audit_change('route_code');
COMMENT ON TRIGGER inbound_route_audit ON tidemark.inbound_route IS 'Every change goes to tidemark.audit.';
CREATE TRIGGER inbound_route_stage BEFORE INSERT OR UPDATE ON tidemark.inbound_route FOR EACH ROW EXECUTE FUNCTION tidemark.route_stage_check();
COMMENT ON TRIGGER inbound_route_stage ON tidemark.inbound_route IS 'No route is enabled and live before the stage is.';
CREATE TRIGGER outbound_route_audit AFTER INSERT OR DELETE OR UPDATE ON tidemark.outbound_route FOR EACH ROW EXECUTE FUNCTION tidemark.audit_change('route_code');
COMMENT ON TRIGGER outbound_route_audit ON tidemark.outbound_route IS 'Every change goes to tidemark.audit.';
CREATE TRIGGER outbound_route_stage BEFORE INSERT OR UPDATE ON tidemark.outbound_route FOR EACH ROW EXECUTE FUNCTION tidemark.route_stage_check();
COMMENT ON TRIGGER outbound_route_stage ON tidemark.outbound_route IS 'No route is enabled and live before the stage is.';
CREATE TRIGGER outbox_append_only BEFORE DELETE OR UPDATE ON tidemark.outbox FOR EACH ROW EXECUTE FUNCTION tidemark.log_is_append_only();
COMMENT ON TRIGGER outbox_append_only ON tidemark.outbox IS 'Rows of the log are never changed. Row-level, since that is what every partition inherits.';
CREATE TRIGGER outbox_no_truncate BEFORE TRUNCATE ON tidemark.outbox FOR EACH STATEMENT EXECUTE FUNCTION tidemark.log_is_append_only();
COMMENT ON TRIGGER outbox_no_truncate ON tidemark.outbox IS 'The log is not truncated.';
CREATE TRIGGER setting_audit AFTER INSERT OR DELETE OR UPDATE ON tidemark.setting FOR EACH ROW EXECUTE FUNCTION tidemark.audit_change('key');
COMMENT ON TRIGGER setting_audit ON tidemark.setting IS 'Every change goes to tidemark.audit.';
CREATE TRIGGER source_audit AFTER INSERT OR DELETE OR UPDATE ON tidemark.source FOR EACH ROW EXECUTE FUNCTION tidemark.audit_change('source');
COMMENT ON TRIGGER source_audit ON tidemark.source IS 'Every change goes to tidemark.audit.';
CREATE TRIGGER stage_audit AFTER INSERT OR DELETE OR UPDATE ON tidemark.stage FOR EACH ROW EXECUTE FUNCTION tidemark.audit_change('stage');
COMMENT ON TRIGGER stage_audit ON tidemark.stage IS 'Every change goes to tidemark.audit.';
CREATE TRIGGER worker_audit AFTER INSERT OR DELETE OR UPDATE ON tidemark.worker FOR EACH ROW EXECUTE FUNCTION tidemark.audit_change('worker');
COMMENT ON TRIGGER worker_audit ON tidemark.worker IS 'Every change goes to tidemark.audit.';
ALTER TABLE ONLY tidemark.dead_letter
    ADD CONSTRAINT dead_letter_route_id_fkey FOREIGN KEY (route_id) REFERENCES tidemark.outbound_route(id);
ALTER TABLE ONLY tidemark.dead_letter
    ADD CONSTRAINT dead_letter_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES tidemark.worker(id);
ALTER TABLE ONLY tidemark.event_type
    ADD CONSTRAINT event_type_domain_fkey FOREIGN KEY (domain) REFERENCES tidemark.domain(domain);
ALTER TABLE ONLY tidemark.heartbeat
    ADD CONSTRAINT heartbeat_kind_fkey FOREIGN KEY (kind) REFERENCES tidemark.heartbeat_kind(kind);
ALTER TABLE ONLY tidemark.outbound_route
    ADD CONSTRAINT outbound_route_worker_fkey FOREIGN KEY (worker) REFERENCES tidemark.worker(worker);
ALTER TABLE ONLY tidemark.pending
    ADD CONSTRAINT pending_dead_letter_id_fkey FOREIGN KEY (dead_letter_id) REFERENCES tidemark.dead_letter(id);
ALTER TABLE ONLY tidemark.pending
    ADD CONSTRAINT pending_replay_id_fkey FOREIGN KEY (replay_id) REFERENCES tidemark.replay_job(id);
ALTER TABLE ONLY tidemark.pending
    ADD CONSTRAINT pending_route_id_fkey FOREIGN KEY (route_id) REFERENCES tidemark.outbound_route(id);
ALTER TABLE ONLY tidemark.pending_row
    ADD CONSTRAINT pending_row_dead_letter_id_fkey FOREIGN KEY (dead_letter_id) REFERENCES tidemark.dead_letter(id);
ALTER TABLE ONLY tidemark.pending_row
    ADD CONSTRAINT pending_row_source_fkey FOREIGN KEY (source) REFERENCES tidemark.source(source);
ALTER TABLE ONLY tidemark.pending_row
    ADD CONSTRAINT pending_row_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES tidemark.worker(id);
ALTER TABLE ONLY tidemark.pending
    ADD CONSTRAINT pending_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES tidemark.worker(id);
ALTER TABLE ONLY tidemark.replay_job
    ADD CONSTRAINT replay_job_route_id_fkey FOREIGN KEY (route_id) REFERENCES tidemark.outbound_route(id);
ALTER TABLE ONLY tidemark.replay_job
    ADD CONSTRAINT replay_job_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES tidemark.worker(id);
ALTER TABLE ONLY tidemark.source_count
    ADD CONSTRAINT source_count_source_fkey FOREIGN KEY (source) REFERENCES tidemark.source(source);
ALTER TABLE ONLY tidemark.source_count
    ADD CONSTRAINT source_count_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES tidemark.worker(id);
ALTER TABLE ONLY tidemark.source_ledger
    ADD CONSTRAINT source_ledger_source_fkey FOREIGN KEY (source) REFERENCES tidemark.source(source);
ALTER TABLE ONLY tidemark.source_ledger
    ADD CONSTRAINT source_ledger_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES tidemark.worker(id);
ALTER TABLE ONLY tidemark.worker_cursor
    ADD CONSTRAINT worker_cursor_worker_fkey FOREIGN KEY (worker) REFERENCES tidemark.worker(worker);
GRANT USAGE ON SCHEMA tidemark TO tidemark_admin;
GRANT USAGE ON SCHEMA tidemark TO tidemark_executor;
GRANT USAGE ON SCHEMA tidemark TO tidemark_emitter;
GRANT USAGE ON SCHEMA tidemark TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.outbound_route TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.outbound_route TO tidemark_executor;
GRANT INSERT,UPDATE ON TABLE tidemark.outbound_route TO tidemark_admin;
GRANT SELECT ON TABLE tidemark.source TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.source TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.worker TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.worker TO tidemark_executor;
GRANT INSERT,UPDATE ON TABLE tidemark.worker TO tidemark_admin;
GRANT SELECT ON TABLE tidemark.worker_cursor TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.worker_cursor TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.armed() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.armed() TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.armed() TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.attempt_key(worker text, route_code text, event_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.attempt_key(worker text, route_code text, event_id uuid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.attempt_key(worker text, route_code text, event_id uuid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.audit_change() FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.beat(worker text, epoch bigint, lease interval, OUT gate text, OUT live_routes integer[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.beat(worker text, epoch bigint, lease interval, OUT gate text, OUT live_routes integer[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.behind_key(route tidemark.outbound_route, numbers bigint[], ahead bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.behind_key(route tidemark.outbound_route, numbers bigint[], ahead bigint[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.capture() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture() TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_1() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_1() TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_2() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_2() TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_3() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_3() TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_attach(relation regclass, reason text, dry_run boolean, always boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_attach(relation regclass, reason text, dry_run boolean, always boolean) TO tidemark_admin;
GRANT SELECT ON TABLE tidemark.inbound_route TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.inbound_route TO tidemark_executor;
GRANT INSERT,UPDATE ON TABLE tidemark.inbound_route TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_body(relation regclass, route tidemark.inbound_route) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_body(relation regclass, route tidemark.inbound_route) TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.capture_check() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_check() TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.capture_columns(relation regclass, contract text[], OUT names text, OUT key_text text, OUT key_json text, OUT old_key_json text, OUT key_changed text, OUT changed text, OUT shown text, OUT bytes text, OUT may_fail boolean, OUT missing text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_columns(relation regclass, contract text[], OUT names text, OUT key_text text, OUT key_json text, OUT old_key_json text, OUT key_changed text, OUT changed text, OUT shown text, OUT bytes text, OUT may_fail boolean, OUT missing text) TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.capture_detach(relation regclass, reason text, dry_run boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_detach(relation regclass, reason text, dry_run boolean) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_findings() FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.capture_fingerprint(relation oid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_fingerprint(relation oid) TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.capture_fits(bytes bigint, place text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.capture_gap_accept(id bigint, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_gap_accept(id bigint, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_gap_emit(id bigint, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_gap_emit(id bigint, reason text) TO tidemark_admin;
GRANT SELECT ON TABLE tidemark.capture_gap TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.capture_gap TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.capture_gap_open(gap tidemark.capture_gap) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.capture_gap_resolve(gap tidemark.capture_gap, resolution text, reason text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.capture_gap_route(name text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_gap_route(name text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_gap_write(id bigint, rows_ jsonb, complete boolean, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_gap_write(id bigint, rows_ jsonb, complete boolean, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_guard("on" boolean, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_guard("on" boolean, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_guard_check() FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.capture_is_made(relation oid, fingerprint text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.capture_make(route_code text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_make(route_code text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_reconcile(sample integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_reconcile(sample integer) TO tidemark_admin;
GRANT SELECT ON TABLE tidemark.capture_checkpoint TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.capture_checkpoint TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.capture_reconciled(checkpoint tidemark.capture_checkpoint, gap tidemark.capture_gap) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_reconciled(checkpoint tidemark.capture_checkpoint, gap tidemark.capture_gap) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_record(action text, relation regclass, reason text, statements text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_record(action text, relation regclass, reason text, statements text[]) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_refresh() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_refresh() TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.capture_sql(relation regclass, operation text, contract text[], policy text, given text, OUT counted text, OUT written text, OUT may_fail boolean, OUT missing text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_sql(relation regclass, operation text, contract text[], policy text, given text, OUT counted text, OUT written text, OUT may_fail boolean, OUT missing text) TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.capture_written(relation regclass, operation text, contract text[], policy text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.capture_written(relation regclass, operation text, contract text[], policy text) TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.changes_check(what text, changes jsonb, relation regclass, fixed text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.changes_check(what text, changes jsonb, relation regclass, fixed text[]) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.claim(worker text, owner text, lease interval, source text, shard integer, OUT status text, OUT detail text, OUT epoch bigint, OUT settles bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.claim(worker text, owner text, lease interval, source text, shard integer, OUT status text, OUT detail text, OUT epoch bigint, OUT settles bigint) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.closed_gate(worker text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.closed_gate(worker text) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.closed_gate(worker text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.closed_switch(worker text, live_routes integer[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.closed_switch(worker text, live_routes integer[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.cursor_sample_take() FROM PUBLIC;
GRANT SELECT ON TABLE tidemark.dead_letter TO tidemark_admin;
GRANT SELECT(id) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(id) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(idempotency_key) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(idempotency_key) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(worker_id) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(worker_id) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(route_id) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(route_id) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(seq) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(seq) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(event_id) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(event_id) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(source) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(source) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(shard) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(shard) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(item_id) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(item_id) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(item_ts) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(item_ts) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(error_code) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(error_code) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(error_detail) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(error_detail) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(attempts) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(attempts) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(first_failed_at) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(first_failed_at) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(last_failed_at) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(last_failed_at) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(resolved_at) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(resolved_at) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(resolution) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(resolution) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(resolved_by) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(resolved_by) ON TABLE tidemark.dead_letter TO tidemark_executor;
GRANT SELECT(resolution_reason) ON TABLE tidemark.dead_letter TO tidemark_reader;
GRANT SELECT(resolution_reason) ON TABLE tidemark.dead_letter TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.dead_letter_claim(id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.dead_letter_claim(id bigint) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.dead_letter_discard(id bigint, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.dead_letter_discard(id bigint, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.dead_letter_findings(worker text, worker_id integer, subject text, dead bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.dead_letter_replay(id bigint, dry_run boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.dead_letter_replay(id bigint, dry_run boolean) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.dead_letter_replay_many(route text, error_code text, failed_since timestamp with time zone, failed_until timestamp with time zone, max_letters integer, dry_run boolean, source text, after bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.dead_letter_replay_many(route text, error_code text, failed_since timestamp with time zone, failed_until timestamp with time zone, max_letters integer, dry_run boolean, source text, after bigint) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.dead_letter_requeue(id bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.dead_letter_requeue(id bigint) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.dead_letter_settle(id bigint, outcome tidemark.outcome, reason text, detail text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.dead_letter_settle(id bigint, outcome tidemark.outcome, reason text, detail text) TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.outbox TO tidemark_admin;
GRANT SELECT ON TABLE tidemark.outbox TO tidemark_executor;
GRANT SELECT(seq) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(event_id) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(created_at) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(occurred_at) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(lane) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(severity) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(domain) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(type) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(stream) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(key) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(subject_table) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(subject_ref) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(idempotency_key) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(trace) ON TABLE tidemark.outbox TO tidemark_reader;
GRANT SELECT(actor) ON TABLE tidemark.outbox TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.decide(worker text, event tidemark.outbox, routes tidemark.outbound_route[], gates tidemark.gates) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.decide(worker text, event tidemark.outbox, routes tidemark.outbound_route[], gates tidemark.gates) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.decide(worker text, event tidemark.outbox, routes tidemark.outbound_route[], gates tidemark.gates) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.decide_batch(worker text, batch tidemark.batch) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.decide_batch(worker text, batch tidemark.batch) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.decided(worker_id integer, route_id integer, first_seq bigint, last_seq bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.decided(worker_id integer, route_id integer, first_seq bigint, last_seq bigint) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.default_search_path() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.default_search_path() TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.deferred_constraints() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.deferred_constraints() TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.deliver(route tidemark.outbound_route, left_over bigint[], suspects integer[], errors integer[], fresh bigint[], path text, until timestamp with time zone, OUT results tidemark.result[], OUT fallbacks integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.deliver(route tidemark.outbound_route, left_over bigint[], suspects integer[], errors integer[], fresh bigint[], path text, until timestamp with time zone, OUT results tidemark.result[], OUT fallbacks integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.deliver_inside(worker text, evidence tidemark.evidence[], share interval, OUT settled tidemark.evidence[], OUT results tidemark.result[], OUT fallbacks integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.deliver_inside(worker text, evidence tidemark.evidence[], share interval, OUT settled tidemark.evidence[], OUT results tidemark.result[], OUT fallbacks integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.delivery_statement(route tidemark.outbound_route, source text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.delivery_statement(route tidemark.outbound_route, source text) TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.domain TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.domain TO tidemark_emitter;
GRANT SELECT ON TABLE tidemark.domain TO tidemark_executor;
GRANT INSERT,UPDATE ON TABLE tidemark.domain TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.domain_set(domain text, changes jsonb, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.domain_set(domain text, changes jsonb, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.domain_spread() FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.emit(domain text, type text, payload jsonb, key text, stream text, lane tidemark.lane, severity tidemark.severity, subject_table text, subject_ref text, idempotency_key text, trace text, actor text, occurred_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.emit(domain text, type text, payload jsonb, key text, stream text, lane tidemark.lane, severity tidemark.severity, subject_table text, subject_ref text, idempotency_key text, trace text, actor text, occurred_at timestamp with time zone) TO tidemark_emitter;
REVOKE ALL ON FUNCTION tidemark.emit_all(events jsonb, strict boolean, own boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.emit_findings() FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.emit_many(events jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.emit_many(events jsonb) TO tidemark_emitter;
REVOKE ALL ON FUNCTION tidemark.emit_many_strict(events jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.emit_many_strict(events jsonb) TO tidemark_emitter;
REVOKE ALL ON FUNCTION tidemark.emit_noted(domain text, type text, emits bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.emit_strict(domain text, type text, payload jsonb, key text, stream text, lane tidemark.lane, severity tidemark.severity, subject_table text, subject_ref text, idempotency_key text, trace text, actor text, occurred_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.emit_strict(domain text, type text, payload jsonb, key text, stream text, lane tidemark.lane, severity tidemark.severity, subject_table text, subject_ref text, idempotency_key text, trace text, actor text, occurred_at timestamp with time zone) TO tidemark_emitter;
REVOKE ALL ON FUNCTION tidemark.event_check(place text, payload jsonb, key text, stream text, subject_table text, subject_ref text, trace text, actor text, occurred_at timestamp with time zone) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.event_evidence(seq bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.event_evidence(seq bigint) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.event_evidence(seq bigint) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.event_is_small(payload jsonb, key text, stream text, subject_table text, subject_ref text, trace text, actor text, occurred_at timestamp with time zone) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.event_json(event tidemark.outbox) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.event_json(event tidemark.outbox) TO tidemark_executor;
GRANT ALL ON FUNCTION tidemark.event_json(event tidemark.outbox) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.event_seq(event_id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.event_seq(event_id uuid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.event_seq(event_id uuid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.event_sizes(numbers bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.event_sizes(numbers bigint[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.event_uuid(at timestamp with time zone) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.event_uuid_time(at timestamp with time zone) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.events(seqs bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.events(seqs bigint[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.executor_id(worker text, source text, shard integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.executor_id(worker text, source text, shard integer) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.executor_id(worker text, source text, shard integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.fence_blame(fence text[], relation regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.fence_closed(fence text[], relation regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.fence_now(relation regclass) FROM PUBLIC;
GRANT SELECT ON TABLE tidemark.finding TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.finding TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.finding_ack(id bigint, note text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.finding_ack(id bigint, note text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.finding_close(kind text, subject text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.finding_event() FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.finding_open(kind text, subject text, severity tidemark.severity, detail text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.flush_on_commit() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.flush_on_commit() TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.forbidden_key_in(document jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.forbidden_key_in(document jsonb) TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.full_xid(id xid, next_id xid8) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.full_xid(id xid, next_id xid8) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.gate_open(gate text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.gate_open(gate text) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.gate_open(gate text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.gate_set(gate text, open boolean, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.gate_set(gate text, open boolean, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.group_numbers(batch tidemark.batch, members integer[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.group_numbers(batch tidemark.batch, members integer[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.handlers_register(worker text, patterns text[], starts text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.handlers_register(worker text, patterns text[], starts text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.heartbeat_daemon(name text, status text, payload jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.heartbeat_daemon(name text, status text, payload jsonb) TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.heartbeat TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.heartbeat TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.heartbeat_deregister(executor_id text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.heartbeat_deregister(executor_id text, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.heartbeat_payload_check(executor_id text, payload jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.heartbeat_register(executor_id text, kind text, domain_scope text[], cadence interval, threshold interval, payload jsonb, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.heartbeat_register(executor_id text, kind text, domain_scope text[], cadence interval, threshold interval, payload jsonb, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.heartbeat_write(executor_id text, status text, payload jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.heartbeat_write(executor_id text, status text, payload jsonb) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.idempotency_key_check(idempotency_key text, place text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.inbound_route_set(route_code text, changes jsonb, reason text, may_create boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.inbound_route_set(route_code text, changes jsonb, reason text, may_create boolean) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.interval_setting(key text, fallback interval) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.interval_setting(key text, fallback interval) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.interval_setting(key text, fallback interval) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.is_cursor(executor_id text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.is_transient(sqlstate_ text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.is_transient(sqlstate_ text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.jsonb_add(one jsonb, other jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.jsonb_add(one jsonb, other jsonb) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.lag_findings() FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.last_within(seqs int8multirange, max_bytes bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.lease_check(worker text, epoch bigint, source text, shard integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.lease_check(worker text, epoch bigint, source text, shard integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.left_over(route tidemark.outbound_route, OUT numbers bigint[], OUT suspects integer[], OUT errors integer[], OUT more boolean, OUT gone boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.left_over(route tidemark.outbound_route, OUT numbers bigint[], OUT suspects integer[], OUT errors integer[], OUT more boolean, OUT gone boolean) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.live_inside(worker text, evidence tidemark.evidence[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.live_inside(worker text, evidence tidemark.evidence[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.lock_blame(relation regclass) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.lock_blame(relation regclass) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.log_is_append_only() FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.look(owner text, lease interval, workers text[], sources text[], shards integer[], epochs bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.look(owner text, lease interval, workers text[], sources text[], shards integer[], epochs bigint[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.look_rest(owner text, lease interval, workers text[], sources text[], shards integer[], epochs bigint[], rests integer[], looked boolean[], sweeps xid8[], horizons timestamp with time zone[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.look_rest(owner text, lease interval, workers text[], sources text[], shards integer[], epochs bigint[], rests integer[], looked boolean[], sweeps xid8[], horizons timestamp with time zone[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.look_state(owner text, workers text[], sources text[], shards integer[], epochs bigint[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.look_state(owner text, workers text[], sources text[], shards integer[], epochs bigint[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.maintain() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.maintain() TO tidemark_admin;
GRANT ALL ON FUNCTION tidemark.maintain() TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.multirange_numbers(seqs int8multirange) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.multirange_numbers(seqs int8multirange) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.multirange_numbers(seqs int8multirange) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.oldest_transaction(OUT oldest timestamp with time zone, OUT hidden boolean, OUT blame text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.own_key_check(domain text, idempotency_key text, place text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.partition_absorb(first_seq bigint, end_seq bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.partition_add(first_seq bigint, end_seq bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.partitions(parent regclass) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.partitions(parent regclass) TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.pass_read(worker text, epoch bigint, batch_limit integer, after tidemark.batch, known_routes text, rooms integer[], room_of integer[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.pass_read(worker text, epoch bigint, batch_limit integer, after tidemark.batch, known_routes text, rooms integer[], room_of integer[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.pass_settle(worker text, epoch bigint, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], settle_no bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.pass_settle(worker text, epoch bigint, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], settle_no bigint) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.pass_summary(worker text, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], fallbacks integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.pass_summary(worker text, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], fallbacks integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.pattern_matches(pattern text, value text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.pattern_matches(pattern text, value text) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.pattern_matches(pattern text, value text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.payload_check(domain text, type text, payload jsonb, schema jsonb, metadata_only boolean, place text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.payload_error(payload jsonb, schema jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.payload_error(payload jsonb, schema jsonb) TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.payload_limit() FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.pending_at(worker_id integer, route_id integer, seqs int8multirange) FROM PUBLIC;
GRANT SELECT ON TABLE tidemark.pending TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.pending TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.pending_due(worker text, worker_id integer, rooms integer[], room_of integer[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.pending_keys(worker text, max_keys integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.pending_keys(worker text, max_keys integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.pending_within(due tidemark.pending[], max_bytes bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.read_outbox(worker text, batch_limit integer, after tidemark.batch) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.read_outbox(worker text, batch_limit integer, after tidemark.batch) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.relation_tree(relation regclass) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.relation_tree(relation regclass) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.release(worker text, epoch bigint, source text, shard integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.release(worker text, epoch bigint, source text, shard integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.release_keys(worker_id integer, routes integer[], keys text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.replay_cancel(id bigint, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.replay_cancel(id bigint, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.replay_page(route tidemark.outbound_route, after bigint, upto bigint, key text, outcomes text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.replay_stage(worker text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.replay_stage(worker text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.retry_delay(policy jsonb, failed integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.retry_delay(policy jsonb, failed integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.retry_policy_ok(policy jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.retry_policy_ok(policy jsonb) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.retry_policy_ok(policy jsonb) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.rewind_outlook(worker text, to_seq bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.river_error(target_ref text, options jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.river_error(target_ref text, options jsonb) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.river_error(target_ref text, options jsonb) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.river_health() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.river_health() TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.river_health() TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.river_table(options jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.river_table(options jsonb) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.river_table(options jsonb) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.river_wake(options jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.river_wake(options jsonb) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.route_backtest(route_code text, since timestamp with time zone, until timestamp with time zone, samples integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.route_backtest(route_code text, since timestamp with time zone, until timestamp with time zone, samples integer) TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.route_gone(worker text, epoch bigint, route_id integer, detail text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.route_gone(worker text, epoch bigint, route_id integer, detail text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.route_matches(route tidemark.outbound_route, event tidemark.outbox) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.route_matches(route tidemark.outbound_route, event tidemark.outbox) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.route_matches(route tidemark.outbound_route, event tidemark.outbox) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.route_replay(route text, reason text, since timestamp with time zone, until timestamp with time zone, from_seq bigint, to_seq bigint, key text, outcomes text[], rate double precision, dry_run boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.route_replay(route text, reason text, since timestamp with time zone, until timestamp with time zone, from_seq bigint, to_seq bigint, key text, outcomes text[], rate double precision, dry_run boolean) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.route_set(route_code text, changes jsonb, reason text, may_create boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.route_set(route_code text, changes jsonb, reason text, may_create boolean) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.route_stage_check() FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.route_worker_run(worker text, batch_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.route_worker_run(worker text, batch_limit integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.rows_register(worker text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.rows_register(worker text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.session_check(who text, why text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.settle(worker text, epoch bigint, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], summary jsonb, settle_no bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.settle(worker text, epoch bigint, batch tidemark.batch, evidence tidemark.evidence[], results tidemark.result[], summary jsonb, settle_no bigint) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.settle_fresh(worker text, worker_id integer, evidence tidemark.evidence[], fresh tidemark.result[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.settle_missing(worker text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.settle_missing(worker text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.settle_replay(id bigint, attempt_no integer, outcome tidemark.outcome, reason text, detail text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.settle_retried(worker text, worker_id integer, retried tidemark.result[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.silence_add() FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.source_advise(definition tidemark.source) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_advise(definition tidemark.source) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_advise(definition tidemark.source) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_ahead(definition tidemark.source) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_ahead(definition tidemark.source) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_behind(definition tidemark.source, relation regclass, mark bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_behind(definition tidemark.source, relation regclass, mark bigint) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_budget(plan tidemark.source_plan) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_budget(plan tidemark.source_plan) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_check(definition tidemark.source) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_check(definition tidemark.source) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_check(definition tidemark.source) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_check_columns(definition tidemark.source, relation oid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_check_columns(definition tidemark.source, relation oid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_check_columns(definition tidemark.source, relation oid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_check_filter(definition tidemark.source, relation oid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_check_filter(definition tidemark.source, relation oid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_check_filter(definition tidemark.source, relation oid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_check_index(definition tidemark.source, relation oid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_check_index(definition tidemark.source, relation oid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_check_index(definition tidemark.source, relation oid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_check_rights(definition tidemark.source, relation oid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_check_rights(definition tidemark.source, relation oid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_check_rights(definition tidemark.source, relation oid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_check_rows(definition tidemark.source, relation oid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_check_rows(definition tidemark.source, relation oid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_check_rows(definition tidemark.source, relation oid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_check_safety(definition tidemark.source, relation oid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_check_safety(definition tidemark.source, relation oid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_check_safety(definition tidemark.source, relation oid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_check_sequence(definition tidemark.source, relation oid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_check_sequence(definition tidemark.source, relation oid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_check_sequence(definition tidemark.source, relation oid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_check_table(definition tidemark.source, relation oid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_check_table(definition tidemark.source, relation oid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_check_table(definition tidemark.source, relation oid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_check_time(definition tidemark.source, relation oid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_check_time(definition tidemark.source, relation oid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_check_time(definition tidemark.source, relation oid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_close(epoch bigint, plan tidemark.source_plan, read tidemark.source_page, failed tidemark.failed_row[], splits integer, began timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_close(epoch bigint, plan tidemark.source_plan, read tidemark.source_page, failed tidemark.failed_row[], splits integer, began timestamp with time zone) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_due(worker_id integer, source text, shard integer, rows_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_due(worker_id integer, source text, shard integer, rows_limit integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_emit(worker_id integer, source text, rows_ jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_emit(worker_id integer, source text, rows_ jsonb) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_failures(plan tidemark.source_plan, page tidemark.source_page, failed tidemark.failed_row[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.source_fence(definition tidemark.source) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.source_fits(definition tidemark.source, shards integer, shard text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_fits(definition tidemark.source, shards integer, shard text) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_fits(definition tidemark.source, shards integer, shard text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_guess(definition tidemark.source) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_guess(definition tidemark.source) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_guess(definition tidemark.source) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_handler(worker tidemark.worker, relation regclass, OUT call text, OUT problem text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_handler(worker tidemark.worker, relation regclass, OUT call text, OUT problem text) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_handler(worker tidemark.worker, relation regclass, OUT call text, OUT problem text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_hold(plan tidemark.source_plan, kind text, detail text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.source_home(relation regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.source_horizon(definition tidemark.source, relation regclass, OUT horizon timestamp with time zone, OUT held text, OUT hidden text, OUT blame text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_horizon(definition tidemark.source, relation regclass, OUT horizon timestamp with time zone, OUT held text, OUT hidden text, OUT blame text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_misread(plan tidemark.source_plan, kind text, detail text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_misread(plan tidemark.source_plan, kind text, detail text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_numbering(definition tidemark.source, relation regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.source_numbers(plan tidemark.source_plan, page tidemark.source_page, cursor tidemark.worker_cursor) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.source_odd(definition tidemark.source) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_odd(definition tidemark.source) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_open(worker text, source text, shard integer, epoch bigint, page integer, lease interval, OUT status text, OUT detail text, OUT plan text, OUT read text, OUT items jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_open(worker text, source text, shard integer, epoch bigint, page integer, lease interval, OUT status text, OUT detail text, OUT plan text, OUT read text, OUT items jsonb) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_pass(worker text, source text, shard integer, epoch bigint, page integer, too_long text, lease interval) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_pass(worker text, source text, shard integer, epoch bigint, page integer, too_long text, lease interval) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_place(at timestamp with time zone, id text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.source_plan(worker text, source text, shard integer, epoch bigint, page integer, lease interval) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_plan(worker text, source text, shard integer, epoch bigint, page integer, lease interval) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_problem(worker tidemark.worker, source tidemark.source, cursor tidemark.worker_cursor, OUT relation regclass, OUT call text, OUT finding text, OUT problem text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.source_query(definition tidemark.source, shards integer, step text, act text, coalesced boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_query(definition tidemark.source, shards integer, step text, act text, coalesced boolean) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_query(definition tidemark.source, shards integer, step text, act text, coalesced boolean) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_read(plan tidemark.source_plan, act text, ids text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_read(plan tidemark.source_plan, act text, ids text[]) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_recount(plan tidemark.source_plan, page tidemark.source_page) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_recount(plan tidemark.source_plan, page tidemark.source_page) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_remove(source text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_remove(source text, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.source_rest(plan tidemark.source_plan) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_rest(plan tidemark.source_plan) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_restarted(plan tidemark.source_plan) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_restarted(plan tidemark.source_plan) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_rewind(worker text, source text, reason text, to_ts timestamp with time zone, to_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_rewind(worker text, source text, reason text, to_ts timestamp with time zone, to_id text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.source_sequence(relation oid, id_column text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_sequence(relation oid, id_column text) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_sequence(relation oid, id_column text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_set(source text, changes jsonb, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_set(source text, changes jsonb, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.source_settle(plan tidemark.source_plan, epoch bigint, page tidemark.source_page, failed tidemark.failed_row[], splits integer, began timestamp with time zone, recount jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_settle(plan tidemark.source_plan, epoch bigint, page tidemark.source_page, failed tidemark.failed_row[], splits integer, began timestamp with time zone, recount jsonb) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_shape(definition tidemark.source, OUT relation regclass, OUT id_type text, OUT id_collate_c boolean, OUT timestamp_type text, OUT problem text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_shape(definition tidemark.source, OUT relation regclass, OUT id_type text, OUT id_collate_c boolean, OUT timestamp_type text, OUT problem text) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.source_shape(definition tidemark.source, OUT relation regclass, OUT id_type text, OUT id_collate_c boolean, OUT timestamp_type text, OUT problem text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_split(plan tidemark.source_plan, act text, ids text[], too_long text, OUT failed tidemark.failed_row[], OUT splits integer, OUT result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_split(plan tidemark.source_plan, act text, ids text[], too_long text, OUT failed tidemark.failed_row[], OUT splits integer, OUT result jsonb) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.source_swept(plan tidemark.source_plan, page tidemark.source_page, cursor tidemark.worker_cursor, recount jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.source_throttle(worker tidemark.worker, cursor tidemark.worker_cursor) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.source_types(definition tidemark.source) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_types(definition tidemark.source) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.source_write(definition tidemark.source, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.source_write(definition tidemark.source, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.sql_target(target_ref text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.sql_target(target_ref text) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.sql_target(target_ref text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.stage_set(stage text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.stage_set(stage text, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.stale_check() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.stale_check() TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.system_event(type text, severity tidemark.severity, subject_table text, subject_ref text, payload jsonb, stream text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.target_call(statement text, numbers bigint[], snapshot jsonb, path text, timeout interval, OUT code text, OUT message text, OUT late boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.target_call(statement text, numbers bigint[], snapshot jsonb, path text, timeout interval, OUT code text, OUT message text, OUT late boolean) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.target_is_inside(target_kind text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.target_is_inside(target_kind text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.target_is_known(target_kind text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.target_is_known(target_kind text) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.target_is_known(target_kind text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.time_left() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.time_left() TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.event_type TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.event_type TO tidemark_emitter;
GRANT SELECT ON TABLE tidemark.event_type TO tidemark_executor;
GRANT INSERT,UPDATE ON TABLE tidemark.event_type TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.type_set(domain text, type text, changes jsonb, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.type_set(domain text, type text, changes jsonb, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.uuid_time(id uuid) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.uuid_time(id uuid) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.uuid_time(id uuid) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.verify() FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.verify() TO tidemark_reader;
REVOKE ALL ON FUNCTION tidemark.wake(domains text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.worker_cursor_make(worker text, starts text) FROM PUBLIC;
REVOKE ALL ON FUNCTION tidemark.worker_cursors_make(worker text, source text, first text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.worker_cursors_make(worker text, source text, first text, reason text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.worker_finding(worker text, kind text, subject text, detail text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.worker_finding(worker text, kind text, subject text, detail text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.worker_outlook(worker text, most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.worker_outlook(worker text, most integer) TO tidemark_reader;
GRANT ALL ON FUNCTION tidemark.worker_outlook(worker text, most integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.worker_pause(worker text, pause boolean, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.worker_pause(worker text, pause boolean, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.worker_rewind(worker text, to_seq bigint, reason text, dry_run boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.worker_rewind(worker text, to_seq bigint, reason text, dry_run boolean) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.worker_run(worker text, source text, shard integer, page integer) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.worker_run(worker text, source text, shard integer, page integer) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.worker_set(worker text, changes jsonb, reason text, starts text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.worker_set(worker text, changes jsonb, reason text, starts text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.worker_source_add(worker text, source text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.worker_source_add(worker text, source text, reason text) TO tidemark_executor;
REVOKE ALL ON FUNCTION tidemark.worker_source_remove(worker text, source text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION tidemark.worker_source_remove(worker text, source text, reason text) TO tidemark_admin;
REVOKE ALL ON FUNCTION tidemark.worker_start(starts text) FROM PUBLIC;
GRANT SELECT ON TABLE tidemark.attempt TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.attempt TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.audit TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.audit TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.capture_attached TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.capture_attached TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.capture_list TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.capture_list TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.capture_stale TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.captured TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.captured TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.code TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.code TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.code TO tidemark_emitter;
GRANT SELECT ON TABLE tidemark.cursor_sample TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.cursor_sample TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.cursor_lag TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.cursor_lag TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.decision TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.decision TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.emit_unregistered TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.emit_unregistered TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.forbidden_key TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.forbidden_key TO tidemark_emitter;
GRANT SELECT ON TABLE tidemark.forbidden_key TO tidemark_executor;
GRANT INSERT,DELETE ON TABLE tidemark.forbidden_key TO tidemark_admin;
GRANT SELECT ON TABLE tidemark.silence TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.silence TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.heartbeat_health TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.heartbeat_health TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.heartbeat_kind TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.heartbeat_kind TO tidemark_executor;
GRANT INSERT,DELETE ON TABLE tidemark.heartbeat_kind TO tidemark_admin;
GRANT SELECT ON TABLE tidemark.migration TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.migration TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.migration TO tidemark_emitter;
GRANT SELECT ON SEQUENCE tidemark.outbox_seq_seq TO tidemark_reader;
GRANT SELECT ON SEQUENCE tidemark.outbox_seq_seq TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.pack TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.pack TO tidemark_executor;
GRANT INSERT,UPDATE ON TABLE tidemark.pack TO tidemark_admin;
GRANT SELECT ON TABLE tidemark.pending_row TO tidemark_admin;
GRANT SELECT(worker_id) ON TABLE tidemark.pending_row TO tidemark_reader;
GRANT SELECT(worker_id) ON TABLE tidemark.pending_row TO tidemark_executor;
GRANT SELECT(source) ON TABLE tidemark.pending_row TO tidemark_reader;
GRANT SELECT(source) ON TABLE tidemark.pending_row TO tidemark_executor;
GRANT SELECT(shard) ON TABLE tidemark.pending_row TO tidemark_reader;
GRANT SELECT(shard) ON TABLE tidemark.pending_row TO tidemark_executor;
GRANT SELECT(item_id) ON TABLE tidemark.pending_row TO tidemark_reader;
GRANT SELECT(item_id) ON TABLE tidemark.pending_row TO tidemark_executor;
GRANT SELECT(item_ts) ON TABLE tidemark.pending_row TO tidemark_reader;
GRANT SELECT(item_ts) ON TABLE tidemark.pending_row TO tidemark_executor;
GRANT SELECT(error_count) ON TABLE tidemark.pending_row TO tidemark_reader;
GRANT SELECT(error_count) ON TABLE tidemark.pending_row TO tidemark_executor;
GRANT SELECT(last_error) ON TABLE tidemark.pending_row TO tidemark_reader;
GRANT SELECT(last_error) ON TABLE tidemark.pending_row TO tidemark_executor;
GRANT SELECT(next_attempt_at) ON TABLE tidemark.pending_row TO tidemark_reader;
GRANT SELECT(next_attempt_at) ON TABLE tidemark.pending_row TO tidemark_executor;
GRANT SELECT(dead_letter_id) ON TABLE tidemark.pending_row TO tidemark_reader;
GRANT SELECT(dead_letter_id) ON TABLE tidemark.pending_row TO tidemark_executor;
GRANT SELECT(created_at) ON TABLE tidemark.pending_row TO tidemark_reader;
GRANT SELECT(created_at) ON TABLE tidemark.pending_row TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.queue_health TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.queue_health TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.replay_job TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.replay_job TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.replay_summary TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.replay_summary TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.route_attempt TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.route_attempt TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.route_summary TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.route_summary TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.setting TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.setting TO tidemark_executor;
GRANT INSERT,UPDATE ON TABLE tidemark.setting TO tidemark_admin;
GRANT SELECT ON TABLE tidemark.source_count TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.source_count TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.source_cursor TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.source_cursor TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.source_ledger TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.source_ledger TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.sources TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.sources TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.stage TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.stage TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.unregistered_type TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.unregistered_type TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.waiting TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.waiting TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.worker_health TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.worker_health TO tidemark_executor;
GRANT SELECT ON TABLE tidemark.worker_summary TO tidemark_reader;
GRANT SELECT ON TABLE tidemark.worker_summary TO tidemark_executor;
