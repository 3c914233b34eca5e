package test

// Clocks, rights, horizons: what a worker of tables is held by, or waits for, that is no fault of the table.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The server's clock steps back: behind the horizon nothing is written any more that would be read.
func TestSourceClockStepsBack(t *testing.T) {
	t.Parallel()
	const back = `update tidemark.worker_cursor set horizon = clock_timestamp() + interval '10 minutes' where worker = 'w'`
	const caughtUp = `update tidemark.worker_cursor set horizon = clock_timestamp() where worker = 'w'`
	t.Run("for good", func(t *testing.T) {
		t.Parallel()
		s := tail(t, tidemarktest.NewDB(t), "clock", "")
		s.exec(insertBirths)
		s.drain()
		s.exec(back)
		s.exec(insertBirths)
		s.wantHeld("source_clock_back", "source_rewind")
		s.exec(caughtUp) // what was written meanwhile is behind all the same
		s.wantHeld("source_clock_back", "source_rewind")
		s.exec(`select tidemark.source_rewind('w', 'births', 'the clock')`)
		s.wantWell()
	})
	t.Run("within the window", func(t *testing.T) {
		t.Parallel()
		s := tail(t, tidemarktest.NewDB(t), "clock", `{"sweep_window": "1 hour"}`)
		s.exec(insertBirths)
		s.drain()
		s.exec(back)
		s.exec(`insert into births (born_at) values (now() - interval '5 minutes')`)
		s.wantHeld("source_clock_back", "the sweep")
		s.exec(caughtUp)
		s.wantWell()
	})
}

// CU6: a worker does not read from a watermark that was edited by hand, until an operator says so.
func TestSourceWatermarkEdited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ safety, edit string }{
		"time forwards":   {"clock", `watermark_ts = watermark_ts + interval '1 hour'`},
		"time back":       {"clock", `watermark_ts = watermark_ts - interval '1 microsecond'`},
		"id":              {"clock", `watermark_id = '1'`},
		"null":            {"clock", `watermark_ts = null, watermark_id = null`},
		"number forwards": {"sequence", `watermark_id = (watermark_id::int + 100)::text`},
		"number back":     {"sequence", `watermark_id = '1'`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), c.safety, "")
			s.exec(insertBirths)
			s.drain()
			s.exec(`create table was as select watermark_ts, watermark_id from tidemark.worker_cursor where worker = 'w'`)
			s.exec(`update tidemark.worker_cursor set ` + c.edit + ` where worker = 'w'`)
			s.exec(insertBirths)
			s.wantHeld("cursor_watermark_regression", "source_rewind")
			s.exec(`update tidemark.worker_cursor c set watermark_ts = w.watermark_ts, watermark_id = w.watermark_id from was w where worker = 'w'`)
			s.wantWell()
			if name == "number forwards" {
				return // that far the sequence has not come: it would be held for that
			}
			s.exec(`update tidemark.worker_cursor set ` + c.edit + ` where worker = 'w'`)
			s.once()
			s.exec(`select tidemark.source_rewind('w', 'births', 'I did it')`)
			if got := s.once(); got.Status != "ran" {
				t.Errorf("%+v, want it accepted", got)
			}
			s.want(findings)
			s.want(`select count(*) from tidemark.audit where action = 'source_rewind' and reason = 'I did it'`, "1")
		})
	}
}

// Row security hides rows: passed over, they would be lost.
func TestSourceRowSecurity(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, owner := executor(t, db)
	owner.exec(insertBirths)
	s.drain()
	owner.exec(insertBirths)
	owner.exec(`alter table births enable row level security; create policy a_part on births using (id % 2 = 0)`)
	s.wantHeld("source_changed", "row security")
	owner.exec(`alter table births disable row level security`)
	s.drain()
	owner.wantWell()
}

// executor returns a worker's session of a role that has no more rights than it needs, and the owner's.
func executor(t *testing.T, db *tidemarktest.DB) (s, owner tailing) {
	t.Helper()
	owner = tail(t, db, "clock", "")
	role := "tm_runner_" + strings.TrimPrefix(db.Name, "tidemark_test_")
	owner.exec(fmt.Sprintf(`create role %[1]s login; grant tidemark_executor, tidemark_reader to %[1]s; grant select on births to %[1]s;
		grant select, insert on taken to %[1]s; revoke execute on function take from public; grant execute on function take to %[1]s`, role))
	t.Cleanup(func() { owner.exec(fmt.Sprintf(`drop owned by %[1]s; drop role %[1]s`, role)) })
	s = tailing{open(t, db, "executor")}
	s.exec("set session authorization " + role)
	return s, owner
}

// A missing right or handler is no row's fault: the worker is held, and not one row is dead-lettered.
func TestSourceMisconfigured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, repair string }{
		"no right to read":       {`revoke select on births from %s`, `grant select on births to %s`},
		"no right to run":        {`revoke execute on function take from %s`, `grant execute on function take to %s`},
		"handler may not":        {`revoke insert on taken from %s`, `grant insert on taken to %s`},
		"handler gone":           {`alter function take rename to other`, `alter function other rename to take`},
		"handler of other type":  {`alter function take rename to other; create function take(text[]) returns void language sql as ''`, `drop function take(text[]); alter function other rename to take`},
		"handler returns a set":  {`alter function take rename to other; create function take(births[]) returns setof jsonb language sql as 'select ''{}''::jsonb'`, `drop function take; alter function other rename to take`},
		"table of the handler's": {`alter table taken rename to other`, `alter table other rename to taken`},
		"column of the filter":   {`update tidemark.source set filter = 'nme = ''x'''`, `update tidemark.source set filter = null`},
		"broken filter":          {`update tidemark.source set filter = 'true) or ('`, `update tidemark.source set filter = null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s, owner := executor(t, db)
			role := "tm_runner_" + strings.TrimPrefix(db.Name, "tidemark_test_")
			run := func(sql string) {
				if strings.Contains(sql, "%s") {
					sql = fmt.Sprintf(sql, role)
				}
				owner.exec(sql)
			}
			owner.exec(insertBirths)
			s.drain()
			owner.exec(insertBirths)
			run(c.change)
			for range 3 {
				if got := s.once(); got.Status != "held" {
					t.Fatalf("%+v, want held", got)
				}
			}
			owner.want(`select count(*), min(kind), max(count) from tidemark.finding`, "1 source_misconfigured 3")
			owner.want(`select count(*) from tidemark.pending_row`, "0")
			run(c.repair)
			s.drain()
			owner.wantWell()
		})
	}
}

// clock rests on seeing when others began: where that is hidden, it must not count as no transaction.
func TestSourceHorizonIsBlind(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, a := tail(t, db, "clock", ""), open(t, db, "a")
	s.exec(insertBirths)
	s.drain()
	a.exec(`set track_activities = off`)
	a.begin()
	a.exec(insertBirths)
	s.exec(`insert into births (born_at, name) values (clock_timestamp(), 'later')`)
	s.wantHeld("source_unreadable", "pg_read_all_stats")
	a.commit()
	a.exec(`set track_activities = on; select 1`)
	s.wantWell()
}

// clock waits for a transaction that was prepared: it is not among the sessions any more.
func TestSourceHorizonWaitsForPrepared(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, a := tail(t, db, "clock", ""), open(t, db, "a")
	a.begin()
	a.exec(insertBirths)
	a.prepare("prepared " + db.Name)
	s.exec(insertBirths)
	if got := s.once(); got.Status != "waiting" || !strings.Contains(got.Detail, "prepared "+db.Name) {
		t.Errorf("%+v, want waiting for it", got)
	}
	a.exec("commit prepared 'prepared " + db.Name + "'")
	s.wantWell()
	s.want(`select count(*) from taken`, "10")
}

// A cursor that waited for open numbers, and was held for another reason meanwhile, waits no more: the finding is closed.
func TestSourceHeldWhileItWaits(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, late := tail(t, db, "sequence", ""), open(t, db, "late")
	s.exec(`select tidemark.worker_set('w', '{"hole_limit": 1}')`)
	late.begin()
	late.exec(`insert into births (name) values ('late')`)
	waits := `select count(*) from tidemark.finding where kind = 'cursor_holes' and subject = 'w/births/0' and closed_at is null`
	until(t, func() bool {
		s.exec(`insert into births (name) values ('early')`)
		s.once()
		return s.lines(waits)[0] == "1"
	}, func() string { return "the cursor does not wait" })

	s.exec(`create table was as select watermark_id from tidemark.worker_cursor where worker = 'w'`)
	s.exec(`update tidemark.worker_cursor set watermark_id = '1000' where worker = 'w'`)
	if got := s.once(); got.Status != "held" {
		t.Errorf("%+v, want held", got)
	}
	s.exec(`update tidemark.worker_cursor set watermark_id = (select watermark_id from was) where worker = 'w'`)
	late.commit()
	s.drain()
	s.exact()
	s.want(`select kind from tidemark.finding where closed_at is null`)
}
