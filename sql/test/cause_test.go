package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const causes = `select concat_ws(' ', status, cause, subject, waiting, symptoms) from tidemark.cause`

// LI7: a cause is shown once, with its symptoms folded under it. The order of the rows is that of the view.
func TestCause(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.pass()
	w.wantRows(causes)

	// A worker that fell silent is one cause, not three.
	w.emit(1)
	w.exec(`update tidemark.worker_cursor set last_run_at = now() - interval '20 minutes'`)
	w.exec(`update tidemark.heartbeat set last_beat_at = now() - interval '20 minutes'`)
	w.exec(`set session_replication_role = replica`)
	w.exec(`update tidemark.outbox set created_at = now() - interval '20 minutes' where key = '1' or true`)
	w.exec(`reset session_replication_role`)
	w.exec(`select tidemark.stale_check()`)
	w.exec(`select tidemark.maintain()`)
	w.wantRows(causes, "bad cursor_silent_gap default/outbox/0 2 {\"backlog default/outbox/0\",\"cursor default/outbox/0\","+
		"\"finding cursor_lag default/outbox/0\",\"heartbeat default/outbox/0\"}")
	w.wantRows(`select cli[1] from tidemark.cause`, "tidemark worker run default")
	w.pass()
	w.exec(`select tidemark.stale_check()`)
	w.exec(`select tidemark.maintain()`)
	w.wantRows(causes)

	// Deliveries that wait for a daemon: all routes are one cause while none runs, and none is told to start one that lives.
	for _, code := range []string{"out", "in_out"} {
		w.exec(fmt.Sprintf(`select tidemark.route_set('%s', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "enabled": true, "dry_run": false}')`, code))
	}
	w.emit(2)
	w.pass()
	w.exec(`update tidemark.pending set next_attempt_at = now() - interval '2 minutes'`)
	w.wantRows(causes, `warn no_daemon daemon 2 {"pending in_out","pending out"}`)
	w.exec(`select tidemark.heartbeat_daemon('courier', 'running', '{"host": "h7", "pid": 12, "config": "/etc/it''s here.yaml"}')`)
	w.wantRows(causes, `warn pending in_out 1 {"pending in_out"}`, `warn pending out 1 {"pending out"}`)
	w.exec(`update tidemark.heartbeat set last_beat_at = now() - interval '31 seconds' where executor_id = 'daemon/courier'`)
	w.wantRows(causes, `bad daemon_dead daemon/courier 2 {"heartbeat daemon/courier","pending in_out","pending out"}`)
	w.wantRows(`select cli[1] from tidemark.cause`, `tidemark run --config '/etc/it'\''s here.yaml'`)
	// A reader, who sees no payloads, sees the same.
	w.exec(`set role tidemark_reader`)
	w.wantRows(causes, `bad daemon_dead daemon/courier 2 {"heartbeat daemon/courier","pending in_out","pending out"}`)
	w.exec(`reset role`)

	// Of a copy, all this is how the original was.
	w.exec(`update tidemark.stage set database = 'original'`)
	w.wantRows(causes, `warn disarmed `+one[string](w, `select current_database()::text`)+` {"heartbeat daemon/courier"}`)
	w.exec(`select tidemark.heartbeat_daemon('other')`)
	w.wantRows(`select status || ' ' || found from tidemark.cause where found like '%it is run by daemon/other'`,
		one[string](w, `select 'bad ' || found from tidemark.cause where cause = 'disarmed'`))
	w.exec(`select tidemark.stage_set('dry_run', 'a copy')`)
	w.wantRows(`select executor_id from tidemark.heartbeat where executor_id like 'daemon/%'`, "daemon/other")
	w.wantRows(`select cause from tidemark.cause where cause in ('disarmed', 'daemon_dead')`)
}

// A daemon that died is bad where none is left, and a warning where another does its work, unless a worker stands still.
func TestDeadDaemonBesideAnother(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.pass()
	w.exec(`select tidemark.heartbeat_daemon('a'), tidemark.heartbeat_daemon('b')`)
	w.exec(`update tidemark.heartbeat set last_beat_at = now() - interval '31 seconds' where executor_id = 'daemon/a'`)
	w.exec(`select tidemark.stale_check()`)
	w.wantRows(causes, `warn daemon_dead daemon/a {"finding heartbeat_silent daemon/a","heartbeat daemon/a"}`)
	w.exec(`update tidemark.heartbeat set last_beat_at = now() - interval '20 minutes', lease_owner = 'a/1' where executor_id = 'default/outbox/0'`)
	w.wantRows(`select status || ' ' || cause from tidemark.cause where 'heartbeat default/outbox/0' = any (symptoms)`, "bad daemon_dead")
	w.pass()
	w.exec(`update tidemark.heartbeat set last_beat_at = now() - interval '31 seconds' where executor_id = 'daemon/b'`)
	w.wantRows(`select status || ' ' || subject from tidemark.cause where cause = 'daemon_dead' order by subject`, "bad daemon/a", "bad daemon/b")
}

// older moves what the audit has into the past.
func (s session) older(by string) {
	s.t.Helper()
	s.exec(`set session_replication_role = replica; update tidemark.audit set at = at - interval '` + by + `'; reset session_replication_role`)
}

const closedGates = `select concat_ws(' ', status, subject, waiting) from tidemark.cause where cause = 'gate_closed' order by subject`

// What waits behind a closed gate is known of topics of commands too, as far as the last pass saw it. Where a role may not count it, it
// sees that something waits.
func TestGateClosedOfCommandsAndUnseenTables(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(`select tidemark.stage_set('live', 'test')`)
	s.exec(`select tidemark.command_partition('t', 0, 'id', 0, 5)`)
	s.exec(`select tidemark.gate_set('commands.enabled', false, 'why')`)
	s.older("2 hours")
	const passed = `update tidemark.worker_cursor set last_run_summary = jsonb_build_object('behind', $1::int, 'since', now() - interval '2 hours') where worker = 'commands'`
	s.exec(passed, 0)
	s.wantRows(closedGates)
	s.exec(passed, 5)
	s.wantRows(closedGates, "warn commands.enabled 5")
	s.wantRows(`select array_to_string(sql || cli, ' ') from tidemark.cause where cause = 'gate_closed'`,
		"select tidemark.gate_set('commands.enabled', true, 'its events wait'); tidemark gate open commands.enabled --reason 'its events wait'")
	s.exec(`select tidemark.gate_set('commands.enabled', true)`)
	s.wantRows(`select split_part(found, ',', 1) from tidemark.cause where cause = 'worker_behind'`, "5 records are unread")

	s.exec(`insert into births (born_at) values (now() - interval '2 hours')`)
	s.exec(`select tidemark.worker_pause('w', true, 'why')`)
	s.older("2 hours")
	s.exec(`select tidemark.maintain()`)
	s.wantRows(closedGates, "warn worker w 1")
	s.exec(`set role tidemark_reader`)
	s.refused("42501", "permission denied", `select from births`)
	s.wantRows(closedGates, "warn worker w")
}

// Each domain whose gate is closed is named, however much another one holds.
func TestGateClosedOfTwoDomains(t *testing.T) {
	t.Parallel()
	s := gated(t)
	s.exec(`select tidemark.gate_set('domain.a.enabled', false), tidemark.gate_set('domain.b.enabled', false)`)
	s.older("2 hours")
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq, domain, held, next_attempt_at, created_at)
		select 1, 1, n, case when n <= 10001 then 'a' else 'b' end, true, 'infinity', now() - interval '2 hours' from generate_series(1, 10002) n`)
	s.wantRows(closedGates, "warn domain.a.enabled 10000", "warn domain.b.enabled 1")
	s.exec(`select tidemark.gate_set('domain.b.enabled', true)`)
	s.wantRows(closedGates, "warn domain.a.enabled 10000")
}

// An executor can beat with any payload, for any daemon. That takes neither the causes from operators, nor its beats from the daemon.
func TestCauseOfOddBeats(t *testing.T) {
	t.Parallel()
	s := live(t, tidemarktest.NewDB(t))
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq) select 1, 1, n from generate_series(1, 10) n`)
	for _, payload := range []string{
		`{"slow": [1, null, "x", [2], {}, {"route": {"a": 1}, "since": "soon"}, {"route": "app", "p50": "1", "p99": {}, "since": "2026-02-30T00:00:00Z"}]}`,
		`{"slow": {"route": "app"}, "uptime": -1e300, "commands": "perhaps", "host": [], "pid": {}, "config": 7}`,
		`{"uptime": 1e300}`,
		`{"uptime": "long", "instance": "a", "clock": "soon", "clock_next": {}}`,
		`{"instance": "a", "clock": 5, "clock_next": "soon"}`,
		`{"instance": "a", "clock": -1e300}`,
	} {
		for _, beat := range []string{`select tidemark.heartbeat_daemon('x', 'running', $1)`, `select tidemark.heartbeat_write('daemon/x', 'running', $1)`} {
			s.exec(`set role tidemark_executor`)
			s.exec(beat, payload)
			s.exec(`set role tidemark_reader`)
			s.exec(`select * from tidemark.cause`)
			s.exec(`set role tidemark_executor`)
			for range 2 {
				s.exec(`select tidemark.heartbeat_daemon('x', 'running', '{"instance": "a", "uptime": 5}')`)
			}
			s.exec(`reset role`)
		}
	}
	s.exec(`select tidemark.heartbeat_daemon('x', 'running', '{"slow": [7, {"route": "app", "p50": 1.5, "p99": 3, "since": "2026-11-26T12:00:00.25Z"}]}')`)
	s.wantRows(`select concat_ws(' ', subject, waiting, since at time zone 'UTC', found like '%half took 1.5 s or more, and 99 of 100 up to 3 s%') from tidemark.cause where cause = 'slow_target'`,
		"app 10 2026-11-26 12:00:00 t")
}

// What an operator looks at every few seconds reads no table that grows, although all open letters are of one route.
func TestCauseReadsNoGrowingTable(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	w.exec(`select tidemark.route_set('out', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "enabled": true, "dry_run": false}')`)
	w.exec(`select tidemark.type_set('test', 'a')`)
	w.exec(`select count(tidemark.emit('test', 'a')) from generate_series(1, 30000)`)
	w.exec(`insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome) select n, 1, 1, 2, 'sent' from generate_series(1, 30000) n`)
	w.exec(`insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code)
		select n, 1, 1, n, gen_random_uuid(), '{}', 'x' from generate_series(1, 30000) n`)
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq) select 1, 1, n from generate_series(1, 30000) n`)
	w.exec(`insert into tidemark.audit (action, object) select 'x', 'setting other' from generate_series(1, 30000) n`)
	w.exec(`select tidemark.gate_set('worker.default.enabled', false)`)
	w.exec(`analyze`)
	r := open(t, db, "reader") // the counts of a session also have what it did before
	r.exec(`begin`)
	r.exec(`select * from tidemark.cause`)
	r.wantRows(`select relname::text || ' ' || sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))
		from (select c.oid, c.relname from pg_class c where c.relnamespace = 'tidemark'::regnamespace and c.relkind in ('r', 'i')) c
		group by relname having sum(pg_stat_get_xact_tuples_returned(oid)) > 25000`)
	r.exec(`commit`)
}

// A session that has looked while little waited goes on to read indexes once much waits, and not the whole table for each route.
func TestCauseOfASessionThatLookedBefore(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_set('r' || n, '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true},
		"enabled": true, "dry_run": false}') from generate_series(1, 20) n`)
	const wait = `insert into tidemark.pending (worker_id, route_id, seq, domain, next_attempt_at)
		select 1, r.id, n, 'test', now() - interval '1 hour' from tidemark.outbound_route r, generate_series(%d, %d) n where r.route_code like 'r%%'`
	w.exec(`alter table tidemark.pending set (autovacuum_enabled = off)`)
	w.exec(fmt.Sprintf(wait, 1, 1))
	w.exec(`analyze tidemark.pending`)
	for range 2 {
		w.exec(causes)
	}
	w.exec(fmt.Sprintf(wait, 2, 500))
	const read = `select seq_tup_read from pg_stat_xact_user_tables where relid = 'tidemark.pending'::regclass`
	w.begin()
	before := one[int](w, read)
	w.wantRows(`select concat_ws(' ', cause, subject, waiting) from tidemark.cause where cause = 'no_daemon'`, "no_daemon daemon 10000")
	if n := one[int](w, read) - before; n > 0 {
		t.Errorf("%d rows are read without an index", n)
	}
}

// What the database has grown by is compared with what its disk has left. A setting that cannot be read is as none.
func TestDiskFilling(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "app")
	const found = `select status || ': ' || split_part(found, '; ', 2) from tidemark.cause_disk()`
	for _, c := range []struct{ size, bytes, older, age, want string }{
		{"0", "90 GB", "80 GB", "1 hour", ""},
		{"many", "90 GB", "80 GB", "1 hour", ""},
		{"9e9 GB", "90 GB", "80 GB", "1 hour", ""},
		{"1 TB", "90 GB", "80 GB", "1 hour", ""}, // a load into an empty disk
		{"1 TB", "600 GB", "599 GB", "1 hour", ""},
		{"1 TB", "600 GB", "570 GB", "1 hour", "warn: it grows by 30 GB an hour, and is full in 14 hours"},
		{"1 TB", "600 GB", "570 GB", "1 minute", ""}, // not known yet
		{"100GB", "90 GB", "90 GB", "1 hour", "warn: it does not grow"},
		{"100 GB", "90 GB", "95 GB", "1 hour", "warn: it does not grow"},
		{"100 GB", "90 GB", "89 GB", "1 minute", "warn: how fast it grows is known some minutes after maintain has begun to measure it"},
		{"100 GB", "90 GB", "70 GB", "1 hour", "bad: it grows by 20 GB an hour, and is full in 30 minutes"},
		{"100 GB", "96 GB", "96 GB", "1 hour", "bad: it does not grow"},
		{"100 GB", "110 GB", "100 GB", "1 hour", "bad: it grows by 10 GB an hour, and is full in no time"},
	} {
		s.exec(`update tidemark.setting set value = $1 where key = 'disk.size'`, c.size)
		s.exec(`insert into tidemark.storage_sample (at, bytes, log_bytes, older_at, older_bytes, newer_at, newer_bytes)
			select now(), pg_size_bytes($1), 0, now() - $3::text::interval, pg_size_bytes($2), now(), 0
			on conflict (one) do update set at = excluded.at, bytes = excluded.bytes, older_at = excluded.older_at, older_bytes = excluded.older_bytes`, c.bytes, c.older, c.age)
		if c.want == "" {
			s.wantRows(found)
		} else {
			s.wantRows(found, c.want)
		}
	}
}

// If maintain cannot absorb, make or drop partitions for a while, the cause upkeep_failing names the transactions in the way, readers too.
func TestUpkeepHeldUp(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, reader := live(t, db), open(t, db, "reader")
	const (
		causes = `select concat_ws(' ', status, cause, subject, date_trunc('minute', clock_timestamp() - since), substring(found from 'left work undone: ([a-z0-9_ ]+)')) from tidemark.cause_upkeep()`
		drop   = "outbox_p0 is past the retention"
	)
	terminate := fmt.Sprintf(`select pg_terminate_backend(%d); select * from tidemark.maintain();`, reader.conn.PgConn().PID())
	named := fmt.Sprintf(`select array_to_string(sql, ' ') from tidemark.cause where cause = 'upkeep_failing' and found like '%%locked now, readers too: pid %d, application%%, idle, in its transaction for %%'`, reader.conn.PgConn().PID())
	older := func(by string) {
		t.Helper()
		w.exec(`update tidemark.storage_sample set undone_since = undone_since - $1::text::interval`, by)
	}
	w.set("outbox.retention", "0")
	w.emit(1)
	w.next(1_000_000)
	w.emit(2)
	w.maintain()
	w.drain()
	reader.begin()
	reader.exec(`select from tidemark.outbox limit 1`)
	w.wantMaintain("kept outbox_p0 the log is busy")
	w.wantRows(causes)
	older("14 minutes")
	w.wantRows(causes)
	older("2 minutes")
	w.wantMaintain("kept outbox_p0 the log is busy")
	w.wantRows(causes, "warn upkeep_failing maintain 00:16:00 "+drop)
	w.wantRows(named, terminate)
	older("6 hours")
	w.wantRows(causes, "bad upkeep_failing maintain 06:16:00 "+drop)
	w.exec(`insert into tidemark.clock_step (at, step, seen_by) values (clock_timestamp(), '1 day', 'daemon/d')`)
	w.wantRows(causes)
	w.exec(`delete from tidemark.clock_step`)
	reader.commit()
	w.wantMaintain("dropped outbox_p0 ")
	w.wantRows(causes)

	// What is in the way of the rest, and not of a partition, keeps it from being dropped no longer.
	w.next(2_500_000)
	w.emit(3)
	w.next(5_000_000)
	w.emit(4)
	w.drain()
	reader.begin()
	reader.exec(`lock table tidemark.outbox_p3000000 in access share mode`)
	w.wantMaintain("kept outbox_rest the log is busy", "dropped outbox_p1000000 ", "dropped outbox_p2000000 ", "kept outbox_p3000000 the log is busy")
	older("16 minutes")
	w.wantRows(causes, "warn upkeep_failing maintain 00:16:00 outbox_rest is not absorbed")
	w.wantRows(named, terminate)
	reader.commit()
	w.maintain()
	w.wantRows(causes)
	equal(t, "left in the rest", one[int](w, `select count(*) from tidemark.outbox_rest`), 0)

	// Partitions that cannot be made.
	w.exec(`select setval('tidemark.outbox_seq_seq', (select max(end_seq) - 1000 from tidemark.partitions('tidemark.outbox')))`)
	reader.begin()
	reader.exec(`select from tidemark.outbox limit 1`)
	w.maintain()
	older("16 minutes")
	w.wantRows(causes, "warn upkeep_failing maintain 00:16:00 no partition is made")
	older("-1 hour") // the clock went back
	w.maintain()
	w.wantRows(`select (undone_since <= clock_timestamp())::text from tidemark.storage_sample`, "true")
	older("16 minutes")
	reader.prepare("forgotten")
	w.wantRows(`select array_to_string(sql, ' ') from tidemark.cause_upkeep() where found like '%locked now, readers too: prepared transaction "forgotten" of %'`,
		"rollback prepared 'forgotten'; select * from tidemark.maintain();")
	w.exec(`rollback prepared 'forgotten'`)
	w.maintain()
	w.wantRows(causes)
}

// Where databases are closed to PUBLIC, the owner may not see how large this one is: maintain does all its work, and only the
// alarm of the disk says that it cannot know.
func TestDatabaseClosedToPublic(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	const causes = `select concat_ws(' ', status, cause, found) from tidemark.cause_disk()`
	// The role belongs to the cluster, and other tests need what it may: only this transaction takes it away.
	w.begin()
	w.exec(`revoke pg_read_all_stats from tidemark_owner`)
	w.exec(`do $$ begin execute format('revoke connect on database %I from public', current_database()); end $$`)
	w.wantMaintain()
	w.wantRows(`select concat_ws(' ', bytes is null, log_bytes > 0) from tidemark.storage_sample`, "t t")
	w.wantRows(causes)
	w.set("disk.size", "1 TB")
	w.wantRows(causes, "unknown disk_filling how large the database is, is not shown to tidemark_owner")
	grant := column[string](w, `select sql[1] from tidemark.cause_disk()`)[0]
	w.exec(grant)
	w.wantMaintain()
	w.wantRows(causes)
	w.wantRows(`select (bytes > log_bytes)::text from tidemark.storage_sample`, "true")
	w.rollback()
}

// A role that may not use the schema of a source sees the session that holds its numbers.
func TestCauseOfASchemaThatIsClosed(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := tail(t, db, "declared", "")
	w.exec(`create schema closed; alter table births set schema closed; update tidemark.source set schema_name = 'closed'`)
	w.rewrite("open_transactions", `'20 seconds'`, `'-1 minute'`)
	idle := open(t, db, "idle")
	idle.begin()
	idle.exec(`insert into closed.births (born_at, name) values (now(), 'a'); select tidemark.emit('test', 'a')`)
	const sessions = `select cause from tidemark.cause where found like '%"idle"%'`
	w.wantRows(sessions, "open_transaction")
	for _, role := range []string{"tidemark_reader", "tidemark_executor"} {
		looks := login(t, db, role[9:], role)
		looks.refused("42501", "permission denied for schema closed", `select 'closed.births'::regclass`)
		looks.wantRows(sessions, "open_transaction")
	}
}

// Upkeep that does not do its work is a cause: it fails, is held up, or is not called. A daemon that has just started is given time.
func TestUpkeepFailing(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator := live(t, db), open(t, db, "operator")
	const (
		causes = `select concat_ws(' ', status, cause, subject, since = (select at from tidemark.storage_sample), split_part(split_part(found, ' was ', 1), ';', 1)) from tidemark.cause_upkeep()`
		fails  = "bad upkeep_failing maintain t the last call of tidemark.maintain that did all its work"
	)
	older := func(by string) {
		t.Helper()
		w.exec(`update tidemark.storage_sample set at = clock_timestamp() - $1::text::interval`, by)
	}
	w.wantRows(causes) // a new installation
	w.emit(1)
	w.exec(`select tidemark.maintain()`)
	older("10 minutes")
	w.wantRows(causes, fails) // the event is newer: something has to call it
	w.wantRows(`select (found like '%; the newest event is % old, and no daemon runs that calls it.%')::text from tidemark.cause_upkeep()`, "true")
	older("4 minutes")
	w.wantRows(causes)
	w.exec(`set session_replication_role = replica; update tidemark.outbox set created_at = now() - interval '1 hour'; reset session_replication_role`)
	older("1 hour")
	w.wantRows(causes) // it is called, or nothing comes

	// A daemon that lives calls it, once it has had the time.
	beats := func(uptime int) {
		t.Helper()
		w.exec(`select tidemark.heartbeat_daemon('courier', 'running', jsonb_build_object('uptime', $1::int, 'instance', $1::int))`, uptime)
	}
	beats(10)
	w.wantRows(causes)
	beats(301)
	w.wantRows(causes, fails)
	w.wantRows(`select array_to_string(sql || cli, ' ') from tidemark.cause where cause = 'upkeep_failing' and found like '%each call by daemon/courier has failed%'`,
		"select * from tidemark.maintain(); tidemark maintain")
	w.exec(`set role tidemark_reader`)
	w.wantRows(causes, fails)
	w.exec(`reset role`)

	// A call that fails, and one that has to leave its rows, do not end it.
	w.exec(`alter function tidemark.history_note() rename to history_note_`)
	w.refused("42883", "history_note", `select tidemark.maintain()`)
	w.exec(`alter function tidemark.history_note_() rename to history_note`)
	w.exec(`select tidemark.finding_open('target_down', 'r1', 'high', 'for an operator')`)
	w.exec(`update tidemark.finding set opened_at = clock_timestamp() - interval '1 year', closed_at = clock_timestamp() - interval '1 year'`)
	operator.begin()
	operator.exec(`select from tidemark.finding for update`)
	w.wantMaintain("postponed rows another session holds rows ")
	w.wantRows(causes, fails)
	operator.commit()
	w.exec(`select tidemark.maintain()`)
	w.wantRows(causes)

	// What was before a step of the clock forward is not as old as it looks. A daemon that died has a cause of its own.
	older("1 hour")
	w.exec(`insert into tidemark.clock_step (at, step, seen_by) values (clock_timestamp(), '1 hour', 'daemon/d')`)
	w.wantRows(causes)
	w.exec(`delete from tidemark.clock_step`)
	// The last one was before the clock went back: it says nothing of now. It counts from the step.
	older("-1 hour")
	w.wantRows(causes, "bad upkeep_failing maintain no call of tidemark.maintain has done all its work since the clock")
	w.exec(`insert into tidemark.clock_step (at, step, seen_by) values (clock_timestamp(), '-1 hour', 'daemon/d')`)
	w.wantRows(causes)
	w.exec(`delete from tidemark.clock_step`)
	// A small step is not recorded. A large one is by the next beat, and gives time from there.
	older("-20 seconds")
	w.wantRows(causes)
	beats(7200)
	older("-1 hour")
	w.exec(`update tidemark.heartbeat set last_beat_at = last_beat_at + interval '1 hour',
		payload = payload || jsonb_build_object('clock', (payload ->> 'clock')::numeric + 3600) where executor_id = 'daemon/courier'`)
	w.wantRows(causes)
	beats(7200)
	w.wantRows(`select step::text from tidemark.clock_step`, "-01:00:00")
	w.wantRows(causes)
	w.exec(`update tidemark.clock_step set at = at - interval '301 seconds'`)
	w.wantRows(causes, "bad upkeep_failing maintain no call of tidemark.maintain has done all its work since the clock")
	w.exec(`delete from tidemark.clock_step`)
	older("1 hour")
	w.exec(`update tidemark.heartbeat set last_beat_at = now() - interval '31 seconds' where executor_id = 'daemon/courier'`)
	w.emit(2)
	w.wantRows(causes)
	w.exec(`delete from tidemark.heartbeat where executor_id = 'daemon/courier'`)
	w.wantRows(causes, fails)

	// The log is read at its ends, by index, although its statistics are those of an empty table.
	w.exec(`analyze tidemark.outbox; alter table tidemark.outbox_p0 set (autovacuum_enabled = off)`)
	w.exec(`select count(tidemark.emit('test', 'a', '{}', key => n::text)) from generate_series(1, 2000) n`)
	if n := w.readsOf("outbox", func() { w.wantRows(causes, fails) }); n > 4 {
		t.Errorf("%d rows of the log are read", n)
	}
}
