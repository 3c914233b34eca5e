package sql_test

// What somebody else's table, and somebody else's function, can do to a worker. A worker that cannot go on is held
// with a finding, skips nothing, and goes on when it is put right.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const insertBirths = `insert into births (name) select 'b' || n from generate_series(1, 5) n`

// wantHeld: the worker is held, with one finding however often it is asked, which names the words.
func (s tailing) wantHeld(kind string, words ...string) {
	s.t.Helper()
	closed := s.lines(`select count(*) from tidemark.finding where closed_at is not null`)
	for range 3 {
		if got := s.once(); got.Status != "held" {
			s.t.Fatalf("%+v, want held", got)
		}
	}
	s.want(`select count(*), min(kind), min(subject), min(severity), bool_and(count >= 3) from tidemark.finding where closed_at is null`, "1 "+kind+" w/births/0 high true")
	s.want(`select count(*) from tidemark.finding where closed_at is not null`, closed...)
	for _, word := range words {
		s.want(`select strpos(detail, `+quoteLiteral(word)+`) > 0, strpos(detail, 'null') from tidemark.finding where closed_at is null`, "true 0")
	}
	s.want(`select status from tidemark.worker_health where worker = 'w'`, "held")
}

// wantWell: it goes on, the finding is closed, and every row was taken once.
func (s tailing) wantWell() {
	s.t.Helper()
	s.drain()
	s.sweep()
	s.want(findings)
	s.exact()
	s.want(`select count(*) from tidemark.dead_letter`, "0")
}

func quoteLiteral(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// CU3: the table, or a column of it, is dropped, renamed or retyped under the worker.
func TestSourceChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ safety, change, repair, word string }{
		"table renamed":       {"clock", `alter table births rename to gone`, `alter table gone rename to births`, "public.births"},
		"schema renamed":      {"clock", `create schema x; alter table births set schema x`, `alter table x.births set schema public`, "public.births"},
		"timestamp renamed":   {"clock", `alter table births rename born_at to b`, `alter table births rename b to born_at`, "born_at"},
		"id renamed":          {"sequence", `alter table births rename id to b`, `alter table births rename b to id`, "id"},
		"timestamp retyped":   {"clock", `alter table births alter born_at type timestamp using born_at at time zone 'UTC'`, `alter table births alter born_at type timestamptz using born_at at time zone 'UTC'`, "born_at"},
		"timestamp no time":   {"declared", `create table copy as select * from births; alter table births alter born_at drop default; alter table births alter born_at type date using born_at::date`, `alter table births alter born_at type timestamptz; update births b set born_at = c.born_at from copy c where b.id = c.id`, "born_at"},
		"id retyped":          {"clock", `alter table births alter id drop identity; alter table births alter id type text using id::text`, `alter table births alter id type bigint using id::bigint; alter table births alter id add generated always as identity (start with 100)`, "id"},
		"timestamp dropped":   {"clock", `create table copy as select * from births; alter table births drop born_at`, `alter table births add born_at timestamptz; update births b set born_at = c.born_at from copy c where b.id = c.id`, "born_at"},
		"a view in its place": {"clock", `alter table births rename to gone; create view births as select * from gone`, `drop view births; alter table gone rename to births`, "public.births"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), c.safety, "")
			s.exec(insertBirths)
			s.drain()
			s.exec(insertBirths)
			s.exec(c.change)
			s.wantHeld("source_changed", c.word)
			s.exec(c.repair)
			s.exec(`alter table births alter born_at set default clock_timestamp()`)
			if name == "id retyped" {
				s.exec(`drop function take; create function take(rows births[]) returns void language sql as 'insert into taken (id) select id::text from unnest(rows)'`)
			}
			s.exec(`insert into births (name) values ('after')`)
			s.wantWell()
		})
	}
}

// The table of that name is not the one that was read: what it has may be behind the watermark.
func TestSourceMadeAnew(t *testing.T) {
	t.Parallel()
	anew := `drop table births cascade; ` + fmt.Sprintf(strings.SplitN(births, "create table taken", 2)[0], "bigint generated always as identity", "not null default clock_timestamp()") + `
create function take(rows births[]) returns void language sql as 'insert into taken (id) select id::text from unnest(rows)'`
	for name, c := range map[string]struct{ change, rewind string }{
		"dropped":        {anew, `to_id => '0'`},
		"truncated":      {`truncate births restart identity`, `to_id => '0'`},
		"set back":       {`delete from births; alter table births alter id restart with 2`, `to_id => '1'`},
		"other cluster":  {`update tidemark.worker_cursor set metadata = jsonb_set(metadata, '{home}', '"1/2"') where worker = 'w'`, `to_id => null`},
		"of lower range": {`truncate births; alter table births alter id set minvalue -100 restart with -100`, `to_id => '-101'`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), "sequence", "")
			s.exec(insertBirths)
			s.drain()
			if name != "other cluster" {
				s.exec(`truncate taken`)
			}
			s.exec(c.change)
			s.exec(`insert into births (name) select 'new' from generate_series(1, 3)`)
			s.wantHeld("source_changed")
			s.exec(`select tidemark.source_rewind('w', 'births', 'made anew', ` + c.rewind + `)`)
			s.wantWell()
		})
	}
}

// Numbers that begin below 1 are read: also those that come before any that is there.
func TestSourceSequenceBelowOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ idType, first string }{{"smallint", "-32768"}, {"integer", "-2147483648"}, {"bigint", "-9223372036854775807"}} {
		t.Run(c.idType, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s, a := tailing{open(t, db, "worker")}, open(t, db, "a")
			s.exec(fmt.Sprintf(births, fmt.Sprintf("%s generated always as identity (minvalue %s)", c.idType, c.first), ""))
			s.source("births", `{"table": "public.births", "id_column": "id", "safety": "sequence"}`)
			s.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
			a.begin()
			a.exec(insertBirths)
			s.exec(insertBirths)
			s.add("w")
			s.drain()
			a.commit()
			s.drain()
			s.exact()
			s.want(`select count(*) from taken`, "10")
		})
	}
}

// CU5: rows without a usable timestamp are read by their id, each once, also those that come later.
func TestSourceUnusableTimestamps(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, a := tail(t, db, "declared", ""), open(t, db, "a")
	insert := func(s session) {
		s.exec(`insert into births (born_at) select t from unnest(array[null, 'infinity', '-infinity', null, 'infinity', '-infinity', '2020-01-01']::timestamptz[]) t`)
	}
	insert(s.session)
	s.exec(`insert into births (born_at) select null from generate_series(1, 25)`)
	a.begin()
	insert(a) // committed after others that come later
	s.drain(nil, nil, 10)
	insert(s.session)
	s.drain(nil, nil, 10)
	s.sweep()
	s.want(`select count(*) from taken`, "39")
	a.exec(`savepoint x`)
	insert(a)
	a.exec(`update births set born_at = '2021-01-01' where born_at is null`) // its own and others'
	a.rollback()
	a.begin()
	insert(a)
	insert(s.session)
	s.sweep()
	a.commit()
	for range 3 {
		s.sweep()
	}
	s.want(`select count(*) filter (where born_at = '2020-01-01' and not exists (select from taken t where t.id = b.id::text)) from births b`, "1") // a's, late: nothing was promised
	s.exec(`delete from births where born_at = '2020-01-01'`)
	s.exact2(`row ->> 'born_at' is distinct from '2020-01-01T00:00:00+00:00'`)
}

// exact2 is exact for the rows that were taken and fit.
func (s tailing) exact2(fits string) {
	s.t.Helper()
	s.want(`select (select count(*) from births b where not exists (select from taken t where t.id = b.id::text)) as lost,
		(select count(*) - count(distinct id) from taken where `+fits+`) as doubled`, "0 0")
}

// A hundred thousand rows of one moment, in pages of 5,000: the id goes on where the time does not.
func TestSourceManyRowsOfOneMoment(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(`create or replace function take(rows births[]) returns jsonb language sql as $$
		insert into taken (id) select id from unnest(rows); select jsonb_build_object('taken', cardinality(rows)) $$;
		insert into births (born_at) select '2026-01-01' from generate_series(1, 100000); analyze births`)
	if got := s.drain(); got.Rows != 100000 || got.Phase != "incremental" {
		t.Errorf("%+v", got)
	}
	s.want(`select count(*), count(distinct id) from taken`, "100000 100000")
	s.want(`select events_seen, watermark_id from tidemark.worker_cursor where worker = 'w'`, "100000 100000")
}

// Rows of the future wait for their time, and hold nobody up.
func TestSourceFutureTimestamps(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "declared", "")
	s.exec(`insert into births (id, born_at) overriding system value values (1, now() + interval '1 day'), (2, now() - interval '1 day'), (3, '294276-12-31'), (4, '4713-01-01 BC')`)
	s.drain()
	s.want(`select id from taken order by at`, "4", "2")
	s.exec(`alter table births disable trigger all; update births set born_at = now() - interval '1 s' where id = 1`) // its time has come
	s.drain()
	s.want(`select id from taken order by at`, "4", "2", "1")
	s.want(findings)
}

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

// CU6: a watermark that somebody edited is not read from, until an operator says so.
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

// A right or a handler that is missing is nobody's row's fault: the worker is held, and not one row is dead-lettered.
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

// clock rests on seeing when others began: where that is hidden, it must not be taken for nobody.
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

// Rows are read once, as they are then. One that is gone is not read; one that is changed is not read again.
func TestSourceRowsChange(t *testing.T) {
	t.Parallel()
	for _, safety := range []string{"sequence", "clock"} {
		s := tail(t, tidemarktest.NewDB(t), safety, "")
		s.exec(insertBirths)
		s.exec(`delete from births where name = 'b1'; update births set name = 'new' where name = 'b2'`)
		s.drain()
		s.exec(`delete from births where name = 'b3'; update births set name = 'newer' where name in ('new', 'b4')`)
		s.sweep()
		s.want(`select row ->> 'name' from taken order by at`, "new", "b3", "b4", "b5")
		s.want(findings)
	}
}

// CU1: what a run says, the cursor keeps, and the heartbeat beats.
func TestSourceRunIsRecorded(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", `{"filter": "name <> 'b1'"}`)
	s.exec(insertBirths)
	got := s.once()
	if got.Status != "ran" || got.Rows != 5 || got.Taken != 4 || got.Step != "forward" || got.Phase != "reconciling" || string(got.Result) != `{"taken": 4}` || !got.More {
		t.Errorf("%+v", got)
	}
	s.want(`select last_run_summary ->> 'rows', last_run_summary -> 'result' ->> 'taken', last_run_at > now() - interval '1 minute', events_seen, attempts_written, watermark_id
		from tidemark.worker_cursor where worker = 'w'`, "5 4 true 4 4 5")
	s.want(`select last_status, ticks_total > 0, last_beat_at > now() - interval '1 minute', lease_owner from tidemark.heartbeat where executor_id = 'w/births/0'`, "ok true true -")
	s.drain()
	before := s.lines(`select ticks_total from tidemark.heartbeat where executor_id = 'w/births/0'`)
	s.once()
	if after := s.lines(`select ticks_total from tidemark.heartbeat where executor_id = 'w/births/0'`); after[0] == before[0] {
		t.Errorf("no beat without work")
	}
	s.want(`select phase, status from tidemark.worker_cursor c join tidemark.worker_health h using (worker, source, shard) where c.worker = 'w'`, "incremental idle")
}

// CU7: two instances, one owner. Who was replaced writes nothing.
func TestSourceLease(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, other := tail(t, db, "clock", ""), tailing{open(t, db, "other")}
	s.exec(insertBirths)
	s.begin()
	s.once()
	if got := other.once(); got.Status != "busy" {
		t.Errorf("%+v, want busy", got)
	}
	s.rollback()
	s.want(`select count(*) from taken`, "0")

	s.want(`select status, epoch > 0 from tidemark.claim('w', 'one', '1 hour', 'births', 0)`, "claimed true")
	if got := other.once(); got.Status != "busy" || !strings.Contains(got.Detail, "one") {
		t.Errorf("%+v, want busy", got)
	}
	epoch := s.lines(`select lease_epoch from tidemark.heartbeat where executor_id = 'w/births/0'`)[0]
	s.exec(`update tidemark.heartbeat set lease_until = now() - interval '1 s'`)
	if got := other.drain(); got.Taken != 5 {
		t.Errorf("%+v, want the rows", got)
	}
	if _, err := s.conn.Exec(t.Context(), `select tidemark.source_pass('w', 'births', 0, $1::bigint)`, epoch); code(err) != "TM011" {
		t.Errorf("%v, want TM011", err)
	}
	s.wantWell()
}

// CU8: pause, and gates, also one that is closed in the middle of a page: what the page did is taken back.
func TestSourceGates(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, op := tail(t, db, "clock", ""), open(t, db, "operator")
	s.exec(insertBirths)
	for _, c := range []struct{ shut, open, detail string }{
		{`select tidemark.worker_pause('w', true, 'x')`, `select tidemark.worker_pause('w', false, 'x')`, "paused"},
		{`select tidemark.gate_set('worker.w.enabled', false)`, `select tidemark.gate_set('worker.w.enabled', true)`, "worker.w.enabled"},
		{`select tidemark.gate_set('routes.enabled', false)`, `select tidemark.gate_set('routes.enabled', true)`, "routes.enabled"},
	} {
		op.exec(c.shut)
		if got := s.once(); got.Status != "closed" || got.Detail != c.detail {
			t.Errorf("%+v, want closed by %s", got, c.detail)
		}
		op.exec(c.open)

		s.exec(`create or replace function take(rows births[]) returns jsonb language plpgsql as $$
			begin insert into taken (id) select id from unnest(rows); perform pg_advisory_xact_lock(7); return '{}'; end $$`)
		op.exec(`select pg_advisory_lock(7)`)
		done := make(chan run)
		go func() { done <- s.once() }()
		op.waitsFor(s.session)
		op.exec(c.shut)
		op.exec(`select pg_advisory_unlock(7)`)
		if got := <-done; got.Status != "closed" || got.Detail != c.detail {
			t.Errorf("%+v, want closed by %s", got, c.detail)
		}
		s.want(`select count(*) from taken`, "0")
		op.exec(c.open)
	}
	s.wantWell()
}

// A rewind hands over again what it says, and nothing else.
func TestSourceRewind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ safety, changes, to string }{
		{"sequence", "", `to_id => '2'`},
		{"clock", "", `to_ts => '2026-01-01 00:00:03+00'`},
		{"declared", `{"sweep_window": "1 hour", "bucket": "1 second"}`, `to_ts => '2026-01-01 00:00:03.5+00'`},
	} {
		t.Run(c.safety, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), c.safety, c.changes)
			s.exec(`insert into births (born_at) select timestamptz '2026-01-01 00:00:00+00' + n * interval '1 s' from generate_series(1, 5) n`)
			s.drain()
			s.exec(`select tidemark.source_rewind('w', 'births', 'again', ` + c.to + `)`)
			s.drain()
			s.sweep()
			s.want(`select string_agg(id, ' ' order by at) from taken`, "1 2 3 4 5 3 4 5")
			s.want(findings)
			for _, bad := range []string{`'', to_id => '1'`, `'x', to_id => '99'`, `'x', to_ts => '2030-01-01'`, `null`} {
				if _, err := s.conn.Exec(t.Context(), `select tidemark.source_rewind('w', 'births', `+bad+`)`); code(err) != "TM005" {
					t.Errorf("%s: %v, want TM005", bad, err)
				}
			}
		})
	}
}
