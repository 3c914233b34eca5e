package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A sleeper is a worker of a table between two passes, under a lease.
type sleeper struct {
	tailing
	epoch int64
}

// capture writes what is inserted to the log.
func (s tailing) capture() {
	s.t.Helper()
	s.exec(`select tidemark.stage_set('live', 'a test'), tidemark.domain_set('births'), tidemark.type_set('births', 'born');
		select tidemark.inbound_route_set('births', '{"source_schema": "public", "source_table": "births", "sql_event": "insert", "domain": "births", "type": "born", "enabled": true, "dry_run": false}', 'a test');
		select tidemark.capture_attach('public.births', 'a test')`)
}

func asleep(s tailing) *sleeper {
	s.t.Helper()
	d := &sleeper{tailing: s}
	d.claim()
	d.settle()
	return d
}

func (d *sleeper) claim() {
	d.t.Helper()
	d.epoch = one[int64](d.session, `select epoch from tidemark.claim('w', 'me', '30 seconds', 'births', 0)`)
}

// settle runs passes until there is nothing more to do.
func (d *sleeper) settle() {
	d.t.Helper()
	for range 100 {
		if d.lease() == "ran false" && d.poll() == "" {
			return
		}
	}
	d.t.Fatalf("there is always more to do: %q", d.poll())
}

// lease is a pass under it: how it ended, and whether there is more.
func (d *sleeper) lease() string {
	d.t.Helper()
	return one[string](d.session, `select concat_ws(' ', r ->> 'status', r ->> 'more') from tidemark.source_pass('w', 'births', 0, $1, null, '30 seconds') r`, d.epoch)
}

func (d *sleeper) poll() string { d.t.Helper(); return d.pollAs("me", "births", &d.epoch) }

func (d *sleeper) pollAs(owner, source string, epoch *int64) string {
	d.t.Helper()
	return strings.Join(column[string](d.session, `select why from tidemark.poll($1, '30 seconds', array[case $2 when 'outbox' then 'default' else 'w' end], array[$2], '{0}', array[$3::bigint])`,
		owner, source, epoch), " ")
}

func (d *sleeper) wantPoll(want string) {
	d.t.Helper()
	if got := d.poll(); got != want {
		d.t.Fatalf("the poll says %q, want %q", got, want)
	}
}

// LI1, W7: everything that a pass would find wakes the worker, and nothing else does.
func TestPollTells(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		safety, source, worker, change, want string
	}{
		"nothing":        {"clock", ``, ``, `select`, ""},
		"a row":          {"clock", ``, ``, `insert into births default values`, "rows"},
		"a number":       {"sequence", ``, ``, `insert into births default values`, "rows"},
		"any row":        {"declared", ``, ``, `insert into births (born_at) values (now())`, "rows"},
		"not yet":        {"declared", ``, ``, `insert into births (born_at) values (now() + interval '1 hour')`, ""},
		"captured":       {"capture", ``, ``, `insert into births default values`, "rows"},
		"retry":          {"sequence", ``, ``, `insert into tidemark.pending_row (worker_id, source, shard, item_id, snapshot, last_error, next_attempt_at) select id, 'births', 0, '7', '{}', 'x', now() from tidemark.worker where worker = 'w'`, "retry"},
		"later":          {"sequence", ``, ``, `insert into tidemark.pending_row (worker_id, source, shard, item_id, snapshot, last_error, next_attempt_at) select id, 'births', 0, '7', '{}', 'x', now() + interval '1 minute' from tidemark.worker where worker = 'w'`, ""},
		"a sweep":        {"clock", `{"sweep_window": "1 hour"}`, ``, `update tidemark.worker_cursor set sweep = sweep || jsonb_build_object('done_at', now() - interval '1 hour') where worker = 'w'`, "sweep"},
		"odd rows":       {"declared", ``, ``, `insert into births (born_at) values (null); update tidemark.worker_cursor set sweep = sweep || jsonb_build_object('done_at', now() - interval '1 hour') where worker = 'w'`, "sweep"},
		"a gate":         {"clock", ``, ``, `select tidemark.gate_set('worker.w.enabled', false)`, "closed"},
		"a pause":        {"clock", ``, ``, `select tidemark.worker_pause('w', true, 'a test')`, "closed"},
		"a rewind":       {"clock", ``, ``, `select tidemark.source_rewind('w', 'births', 'a test', to_ts => '2020-01-01')`, "fenced"},
		"a claim":        {"clock", ``, ``, `update tidemark.heartbeat set lease_until = now() where executor_id = 'w/births/0'; select tidemark.claim('w', 'another', '1 minute', 'births', 0)`, "fenced"},
		"an edit":        {"clock", ``, ``, `update tidemark.worker_cursor set watermark_ts = '2020-01-01' where worker = 'w'`, "cursor_watermark_regression"},
		"the clock":      {"clock", ``, ``, `update tidemark.worker_cursor set horizon = now() + interval '1 hour' where worker = 'w'`, "source_clock_back"},
		"table gone":     {"clock", ``, ``, `drop table births cascade`, "unreadable"},
		"row security":   {"clock", ``, ``, `alter table births enable row level security; alter table births force row level security; grant select on births to tidemark_executor; set role tidemark_executor`, "unreadable"},
		"cursor removed": {"clock", ``, ``, `select tidemark.worker_source_remove('w', 'births', 'a test')`, "gone"},
		"gathering":      {"sequence", `{"group_key": ["name"]}`, `{"coalesce_window": "1 hour"}`, `insert into births default values`, ""},
		"off peak":       {"sequence", ``, `{"off_peak": "00:00-00:00 UTC", "peak_pause": "1 hour"}`, `insert into births default values`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), c.safety, c.source)
			if c.safety == "capture" {
				s.capture()
			}
			s.exec(`insert into births (born_at) select now() - interval '1 day' from generate_series(1, 3)`)
			d := asleep(s)
			s.rewrite("poll", "extract(epoch from clock_timestamp())", "0") // the poll checks no table as a whole
			d.wantPoll("")
			if c.worker != "" {
				s.worker("w", c.worker)
			}
			s.exec(c.change)
			d.wantPoll(c.want)
		})
	}
}

// A prepared transaction that wrote to another table keeps no worker asleep: a pass over this one would read.
func TestPollBesideAPreparedTransaction(t *testing.T) {
	t.Parallel()
	for _, safety := range []string{"clock", "declared"} {
		db := tidemarktest.NewDB(t)
		s, other := tail(t, db, safety, ""), open(t, db, "other")
		s.exec(`create table elsewhere (id int)`)
		d := asleep(s)
		other.begin()
		other.exec(`insert into elsewhere values (1)`)
		other.prepare("elsewhere " + safety)
		s.exec(`insert into births (born_at) values (clock_timestamp())`)
		eventually := time.Now().Add(time.Minute)
		for d.poll() != "rows" {
			if time.Now().After(eventually) {
				t.Fatalf("%s: the poll says %q", safety, d.poll())
			}
		}
		s.exec(`rollback prepared 'elsewhere ` + safety + `'`)
	}
}

// A table or a handler that changed is found out in turns.
func TestPollFindsChanges(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		`alter table births rename column born_at to at`, `drop function take(births[])`,
		`alter table births rename to old; create table births (like old including all)`,
	} {
		s := tail(t, tidemarktest.NewDB(t), "sequence", "")
		s.exec(`insert into births (born_at) select now() - interval '1 day' from generate_series(1, 3)`)
		d := asleep(s)
		s.exec(change)
		s.rewrite("poll", "extract(epoch from clock_timestamp())", "9") // the turn of the first
		if got := d.poll(); got == "" {
			t.Errorf("%s: %q", change, got)
		}
	}
}

// The beat of sleeping workers: the lease is renewed and the tick counted for its holder alone; a lease
// that was given back stays so.
func TestPollBeats(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tail(t, db, "sequence", "")
	d := asleep(s)
	const state = `select concat_ws(' ', ticks_total, lease_owner, lease_until - last_beat_at > interval '29 seconds', last_status) from tidemark.heartbeat where executor_id = 'w/births/0'`
	beats := func(want string) {
		t.Helper()
		if got := one[string](d.session, state); got != want {
			t.Errorf("the heartbeat is %q, want %q", got, want)
		}
	}
	s.exec(`update tidemark.heartbeat set ticks_total = 0, lease_until = now() + interval '1 second' where executor_id = 'w/births/0'`)
	d.wantPoll("")
	beats("1 me t ok")
	if got := d.pollAs("another", "births", &d.epoch); got != "fenced" {
		t.Errorf("another owner: %q", got)
	}
	beats("1 me t ok")

	other := open(t, db, "other")
	other.begin()
	other.exec(`select from tidemark.heartbeat where executor_id = 'w/births/0' for update`)
	d.wantPoll("locked")
	other.rollback()
	beats("1 me t ok")

	// What would be left of the lag.
	s.exec(`update tidemark.worker_cursor set last_run_at = now() - interval '10 minutes' where worker = 'w'`)
	d.wantPoll("")
	if got := one[bool](d.session, `select lag < interval '10 seconds' from tidemark.source_cursor where worker = 'w'`); !got {
		t.Error("a source without new rows falls behind")
	}

	s.exec(`select tidemark.release('w', $1, 'births', 0)`, d.epoch)
	d.wantPoll("fenced")
	// Also where it was given back while they looked.
	if got := one[int](d.session, `select tidemark.poll_beat('me', '30 seconds', '{w}', '{births}', '{0}', array[$1::bigint], '{1}', '{t}', '{null}', '{null}')`, d.epoch); got != 1 {
		t.Error("a lease that was given back is renewed")
	}
	beats("3 released")
}

// Who waits for the lease hears when it is free.
func TestPollForALease(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	d := asleep(s)
	wait := func(want string) {
		t.Helper()
		if got := d.pollAs("another", "births", nil); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	const status = `select last_status || ' ' || ticks_total from tidemark.heartbeat where executor_id = 'w/births/0'`
	s.exec(`update tidemark.heartbeat set ticks_total = 0 where executor_id = 'w/births/0'`)
	wait("")
	if got := one[string](d.session, status); got != "ok 0" {
		t.Errorf("who waits has beaten for the owner: %s", got)
	}
	s.exec(`update tidemark.heartbeat set lease_until = now() where executor_id = 'w/births/0'`)
	wait("free")
	s.exec(`select tidemark.gate_set('worker.w.enabled', false)`)
	wait("")
	if got := one[string](d.session, status); got != "closed 1" {
		t.Errorf("closed: %s", got)
	}
	s.exec(`select tidemark.gate_set('worker.w.enabled', true)`)
	wait("free")
}

// A sweep without a window that has nothing to read takes no pass.
func TestPollSweeps(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "declared", "")
	s.exec(`insert into births (born_at) select now() - interval '1 day' from generate_series(1, 3)`)
	d := asleep(s)
	s.exec(`update tidemark.worker_cursor set sweep = sweep || jsonb_build_object('done_at', now() - interval '1 hour') where worker = 'w'`)
	d.wantPoll("")
	if got := one[bool](d.session, `select (sweep ->> 'done_at')::timestamptz > now() - interval '1 minute' and not sweep ? 'next_xmin' from tidemark.worker_cursor where worker = 'w'`); !got {
		t.Error("the sweep was not made")
	}
	s.exec(`insert into births (born_at) values (null)`)
	s.exec(`update tidemark.worker_cursor set sweep = sweep || jsonb_build_object('done_at', now() - interval '1 hour') where worker = 'w'`)
	d.wantPoll("sweep")
	for range 10 {
		d.lease()
	}
	s.exact()
}

// Whose table is not looked at, nothing is said of: a sweep that is due stays due. It had better: a later one reads no
// rows of transactions from before it.
func TestPollEndsNoSweepUnseen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		how, undo string
		owner     string
		leased    bool
	}{
		"closed":    {`select tidemark.release('w', %d, 'births', 0), tidemark.gate_set('worker.w.enabled', false)`, `select tidemark.gate_set('worker.w.enabled', true)`, "me", false},
		"another's": {``, ``, "another", false},
		"throttled": {`update tidemark.worker set coalesce_window = '1 hour' where worker = 'w'`, `update tidemark.worker set coalesce_window = null where worker = 'w'`, "me", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, window := range []string{"", `{"sweep_window": "10 minutes"}`} {
				s := tail(t, tidemarktest.NewDB(t), "declared", window)
				s.exec(`insert into births (born_at) select now() - interval '1 minute' from generate_series(1, 3)`)
				d := asleep(s)
				s.exec(`update tidemark.worker_cursor set sweep = sweep || jsonb_build_object('done_at', now() - interval '1 hour'), last_run_at = now() where worker = 'w'`)
				if c.how != "" {
					s.exec(strings.ReplaceAll(c.how, "%d", fmt.Sprint(d.epoch)))
				}
				s.exec(`insert into births (born_at) select now() - interval '2 minutes' from generate_series(1, 3); insert into births (born_at) values (null)`)
				const state = `select sweep::text || (select count(*) from tidemark.source_ledger) from tidemark.worker_cursor where worker = 'w'`
				before := one[string](s.session, state)
				epoch := &d.epoch
				if !c.leased {
					epoch = nil
				}
				if got := d.pollAs(c.owner, "births", epoch); got != "" {
					t.Errorf("the poll says %q", got)
				}
				if after := one[string](s.session, state); after != before {
					t.Errorf("the sweep was %s and is %s", before, after)
				}
				if c.undo != "" {
					s.exec(c.undo)
				}
				d.claim()
				d.settle()
				if window != "" {
					s.exact()
				}
			}
		})
	}
}

// One table that cannot be read, or is locked, keeps no other worker asleep, and waits for no lock.
func TestPollOfManyTables(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tail(t, db, "sequence", "")
	for _, name := range []string{"broken", "locked"} {
		s.exec(fmt.Sprintf(`create table %s (id bigint generated always as identity primary key)`, name))
		s.source(name, fmt.Sprintf(`{"table": "public.%s", "id_column": "id", "safety": "sequence"}`, name))
		s.worker(name, `{"handler": "sql", "handler_ref": "public.any"}`)
		s.exec(fmt.Sprintf(`select tidemark.worker_source_add('%[1]s', '%[1]s', 'a test')`, name))
	}
	s.exec(`create function public.any(rows anyarray) returns void language sql as 'select'`)
	d := asleep(s)
	s.rewrite("poll", "extract(epoch from clock_timestamp())", "0") // the poll checks no table as a whole
	epochs := []int64{d.epoch}
	for _, name := range []string{"broken", "locked"} {
		e := one[int64](s.session, `select epoch from tidemark.claim($1, 'me', '30 seconds', $1, 0)`, name)
		for range 5 {
			s.exec(`select tidemark.source_pass($1, $1, 0, $2)`, name, e)
		}
		epochs = append(epochs, e)
	}
	look := func() string {
		t.Helper()
		return strings.Join(column[string](s.session, `select n || ' ' || why from tidemark.poll('me', '30 seconds', '{w,broken,locked}', '{births,broken,locked}', '{0,0,0}', $1) order by n`, epochs), ", ")
	}
	if got := look(); got != "" {
		t.Fatalf("%q", got)
	}
	s.exec(`alter table broken drop column id`)
	other := open(t, db, "other")
	other.begin()
	other.exec(`lock table locked`)
	s.exec(`insert into births default values`)
	s.exec(`set statement_timeout = '15s'`)
	if got := look(); got != "1 rows, 2 unreadable, 3 unreadable" {
		t.Errorf("%q", got)
	}
	other.rollback()
}

// The log: events, numbers that appear late or never, and what is due.
func TestPollOfTheLog(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tail(t, db, "sequence", "")
	d := &sleeper{tailing: s}
	s.exec(`select tidemark.type_set('test', 'tick'), tidemark.gate_set('worker.default.enabled', true)`)
	pass := func() {
		t.Helper()
		s.exec(`select tidemark.route_worker_run('default', 100)`)
		s.exec(`update tidemark.heartbeat set lease_owner = 'me', lease_until = now() + interval '1 minute' where executor_id = 'default/outbox/0'`)
	}
	want := func(want string) {
		t.Helper()
		epoch := one[int64](s.session, `select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'`)
		if got := d.pollAs("me", "outbox", &epoch); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		s.exec(`update tidemark.heartbeat set lease_until = null where executor_id = 'default/outbox/0'`)
	}
	pass()
	want("")
	s.emit(1)
	want("events")
	pass()
	want("")

	late := open(t, db, "late")
	late.begin()
	late.emit(2)
	s.emit(3)
	pass()
	want("") // 2 is open
	late.commit()
	want("holes")
	pass()
	pass()
	want("")
	late.begin()
	late.emit(4)
	s.emit(5)
	pass()
	want("")
	late.rollback()
	want("holes")
	pass()
	want("")

	s.exec(`select tidemark.stage_set('live', 'a test')`)
	s.exec(`select tidemark.route_set('app', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "enabled": true, "dry_run": false}')`)
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq, error_count, next_attempt_at)
		select w.id, r.id, 1, 1, now() from tidemark.worker w, tidemark.outbound_route r where w.worker = 'default' and r.route_code = 'app'`)
	want("retry")
	s.exec(`update tidemark.pending set next_attempt_at = now() + interval '1 hour'`)
	want("")
}
