package test

// The sweep: what appears behind the watermark, within the window it was declared with, is taken once; what appears
// beyond is seen by count.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A row that was swept while its transaction's number could still come is not swept again, by whichever page it was
// found; an old transaction anywhere keeps all numbers open.
func TestSourceSweepTakesOnce(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, weaken func(s tailing)) tailing {
		db := tidemarktest.NewDB(t)
		s, a, old := tail(t, db, "declared", `{"sweep_window": "1 hour"}`), open(t, db, "a"), open(t, db, "old")
		weaken(s)
		old.begin()
		old.exec(`select pg_current_xact_id()`)
		s.exec(insertAt("now() - interval '10 minutes'"))
		s.exec(insertAt("now() - interval '2 s'"))
		s.drain()
		for n := range 4 {
			a.begin()
			a.exec(insertAt("now() - interval '20 minutes'"))
			a.exec("savepoint x")
			a.exec(insertAt("now() - interval '30 minutes'"))
			a.exec("rollback to x")
			a.exec("savepoint x")
			a.exec(insertAt("now() - interval '15 minutes'"))
			a.exec(insertAt("null"))
			a.exec(insertAt("'infinity'"))
			a.exec("release x")
			s.sweep()
			a.commit()
			s.sweepBy(1 + n)
			s.sweep()
		}
		old.rollback()
		s.sweep()
		s.sweep()
		return s
	}
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		s := run(t, func(tailing) {})
		s.exact()
		s.want(`select count(*) from taken`, "18")
		s.want(findings)
	})
	t.Run("no ledger", func(t *testing.T) {
		t.Parallel()
		s := run(t, func(s tailing) {
			s.exec(`create function forget() returns trigger language plpgsql as 'begin return null; end'; create trigger forget before insert on tidemark.source_ledger for each row execute function forget()`)
		})
		if s.lines(`select count(*) - count(distinct id) from taken`)[0] == "0" {
			t.Error("without its ledger the sweep should have taken rows twice")
		}
	})
	t.Run("by visibility of xmin", func(t *testing.T) {
		t.Parallel()
		// A savepoint's number is its own: taken for the transaction's, rows of a transaction that began before the
		// last sweep would be lost where the next sweep begins at the snapshot's end.
		s := run(t, func(s tailing) {
			s.rewrite("source_plan", "'next_xmin', pg_snapshot_xmin(pg_current_snapshot())::text", "'next_xmin', pg_snapshot_xmax(pg_current_snapshot())::text")
		})
		if s.lines(`select count(*) from births b where not exists (select from taken t where t.id = b.id::text)`)[0] == "0" {
			t.Error("from the snapshot's end on the sweep should have lost rows")
		}
	})
}

func insertAt(at string) string { return `insert into births (born_at) values (` + at + `)` }

// sweepBy is a sweep in pages of so many rows.
func (s tailing) sweepBy(page int) {
	s.t.Helper()
	s.drain()
	s.exec(`update tidemark.worker_cursor set sweep = sweep - 'done_at' where worker = 'w' and not sweep ? 'next_xmin'`)
	s.drain(nil, nil, page)
}

// The window is behind the watermark as it was when the row appeared, not as it is when the sweep comes.
func TestSourceSweepReachesBackToTheLast(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "declared", `{"sweep_window": "1 hour"}`)
	s.exec(insertAt("now() - interval '3 hours'"))
	s.drain()
	s.sweep()
	s.exec(insertAt("now() - interval '3 hours 59 minutes'")) // 59 minutes late
	s.exec(insertAt("now() - interval '2 s'"))                // and the watermark runs on
	s.sweep()
	s.exact()
	s.want(findings)
	s.want(`select verified_through > now() - interval '3 hours', verified_through <= now() - interval '1 hour' from tidemark.worker_cursor where worker = 'w'`, "true true")
}

// Beyond the window: verified_through stays behind, a finding says so, and a rewind mends it.
func TestSourceBeyondTheWindow(t *testing.T) {
	t.Parallel()
	for _, safety := range []string{"clock", "declared"} {
		t.Run(safety, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), safety, `{"sweep_window": "30 minutes", "bucket": "1 hour"}`)
			for n := range 6 {
				s.exec(insertAt(fmt.Sprintf("date_trunc('hour', now()) - interval '%d hours'", n)))
			}
			s.sweep()
			s.want(`select phase, verified_through >= now() - interval '3 hours', verified_through <= now() - interval '30 minutes' from tidemark.worker_cursor where worker = 'w'`, "incremental true true")
			s.want(findings)

			s.exec(insertAt("now() - interval '20 minutes'")) // in the window: found

			s.exec(insertAt("now()")) // or read
			s.sweep()
			s.exec(`update births set born_at = born_at where id = 1`) // no new row, whatever the numbers of transactions say
			s.sweep()
			s.exec(`delete from taken t using (select min(at) as at, id from taken group by id having count(*) > 1) d where t.id = d.id and t.at > d.at`)
			s.exec(`update tidemark.worker_cursor set verified_through = verified_through - interval '4 hours' where worker = 'w'`)
			s.exec(`delete from tidemark.source_count; insert into tidemark.source_count select w.id, 'births', 0, date_bin('1 hour', born_at, '2000-01-01 00:00+00'), count(*) from births, tidemark.worker w where w.worker = 'w' group by 1, 4`)

			s.exec(insertAt("date_trunc('hour', now()) - interval '3 hours' + interval '1 minute'")) // beyond
			s.sweep()
			s.sweep()
			s.want(findings, "source_count_mismatch w/births/0")
			s.want(`select verified_through = date_trunc('hour', now()) - interval '3 hours' from tidemark.worker_cursor where worker = 'w'`, "true")
			s.want(`select count(*) from births b where not exists (select from taken t where t.id = b.id::text)`, "1")
			s.want(`select count(*) from tidemark.finding where kind = 'source_count_mismatch'`, "1")

			s.exec(`truncate taken`)
			s.exec(`select tidemark.source_rewind('w', 'births', 'mend', verified_through) from tidemark.worker_cursor where worker = 'w'`)
			s.sweep()
			s.want(findings)
			s.want(`select count(*) from births b where born_at >= date_trunc('hour', now()) - interval '3 hours' and not exists (select from taken t where t.id = b.id::text)`, "0")
			s.want(`select count(*) - count(distinct id) from taken`, "0")
			s.want(`select verified_through > now() - interval '2 hours' from tidemark.worker_cursor where worker = 'w'`, "true")
		})
	}
}

// A sweep that is switched on later begins there: nothing is taken twice, and history is not held against it.
func TestSourceSweepSwitchedOn(t *testing.T) {
	t.Parallel()
	// A server of its own: a transaction that is old, of whichever database, keeps the numbers of all that follow open,
	// and their rows would be handed over once more.
	s := tail(t, tidemarktest.NewDBAt(t, testserver.New(t, devpg.Options{}).URL("postgres")), "declared", "")
	for n := range 5 {
		s.exec(insertAt(fmt.Sprintf("now() - interval '%d hours 2 s'", n)))
	}
	s.drain()
	s.exec(insertAt("now() - interval '3 hours'")) // late: nothing was promised
	s.exec(insertAt("now() - interval '1 s'"))
	s.drain()
	s.exec(`select tidemark.source_set('births', '{"sweep_window": "10 hours"}', 'on')`)
	s.sweep()
	s.sweep()
	s.want(`select count(*) - count(distinct id) from taken`, "0")
	s.want(findings)
	s.exec(insertAt("now() - interval '1 minute'"))
	s.sweep()
	s.want(`select count(*) - count(distinct id), count(*) from taken`, "0 7")
	s.sweep()
	s.want(`select count(*) from tidemark.source_ledger`, "0")
	for _, change := range []string{`{"bucket": "30 minutes"}`, `{"sweep_window": "2 hours"}`, `{"filter": "true"}`} {
		s.exec(`select tidemark.source_set('births', $1, 'change')`, change)
		s.exec(insertAt("now() - interval '1 minute'"))
		s.sweep()
		s.want(findings)
		s.want(`select count(*) - count(distinct id) from taken`, "0")
	}
	if _, err := s.conn.Exec(t.Context(), `select tidemark.source_set('births', '{"bucket": "1 month"}')`); err == nil {
		t.Error("a bucket of a month is taken, and cannot be counted by")
	}
}

// What would tear shards apart is refused: another key, or one whose text depends on the session.
func TestSourceShardsAreFixed(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.worker("x", `{"handler": "sql", "handler_ref": "public.take", "shards": 4}`)
	s.add("x")
	_, err := s.conn.Exec(t.Context(), `select tidemark.source_set('births', '{"key_columns": ["name"]}')`)
	if code(err) != "TM005" || !strings.Contains(err.Error(), "shards") {
		t.Errorf("%v, want TM005", err)
	}
	s.source("other", `{"table": "public.births", "id_column": "id", "safety": "sequence", "key_columns": ["born_at"]}`)
	if _, err = s.conn.Exec(t.Context(), `select tidemark.worker_source_add('x', 'other')`); code(err) != "TM005" {
		t.Errorf("%v, want TM005", err)
	}
	if _, err = s.conn.Exec(t.Context(), `select tidemark.worker_set('x', '{"shards": 5}')`); code(err) != "TM005" {
		t.Errorf("%v, want TM005", err)
	}
}

// Local times without a zone, in a zone without summer time: read by the zone's clock whatever the session's TimeZone.
func TestSourceLocalTimes(t *testing.T) {
	t.Parallel()
	s := tailing{open(t, tidemarktest.NewDB(t), "worker")}
	s.exec(fmt.Sprintf(strings.Replace(births, "timestamptz", "timestamp", 1), "bigint generated always as identity", "not null default (clock_timestamp() at time zone 'Asia/Kathmandu')"))
	s.source("births", `{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "time_zone": "Asia/Kathmandu", "safety": "clock", "margin": "1 microsecond", "sweep_window": "1 hour"}`)
	s.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
	s.add("w")
	for _, zone := range []string{"America/New_York", "Asia/Kathmandu", "UTC", "Pacific/Kiritimati"} {
		s.exec("set timezone = '" + zone + "'; set datestyle = 'german, dmy'; set intervalstyle = 'iso_8601'")
		s.exec(insertBirths)
		if got := s.drain(nil, nil, 2); got.Taken != 5 {
			t.Errorf("%s: %+v", zone, got)
		}
		s.sweep()
	}
	s.wantWell()
	s.want(`select count(*) from taken`, "20")
}

// A row that failed is the business of its retries and its dead letter: changed meanwhile, it is not handed over by a sweep
// beside them, nor once more after them.
func TestSourceSweepLeavesFailedRows(t *testing.T) {
	t.Parallel()
	// A server of its own: an old transaction, of whichever database, keeps rows in the ledger that remembers them.
	s := tail(t, tidemarktest.NewDBAt(t, testserver.New(t, devpg.Options{}).URL("postgres")), "declared", `{"sweep_window": "1 hour"}`)
	s.worker("w", `{"handler": "sql", "handler_ref": "public.take", "retry_policy": {"base_seconds": 600, "max_attempts": 2}}`)
	s.exec(`alter function take rename to really_take; create function take(rows births[]) returns jsonb language plpgsql as $$ begin
		if exists (select from unnest(rows) r where r.name like 'bad%') then raise 'no bad rows'; end if;
		return really_take(rows); end $$`)
	s.exec(`insert into births (born_at, name) values (now() - interval '1 s', 'bad in'), (null, 'bad without'), (now() - interval '1 s', 'bad and dropped')`)
	s.sweep()
	s.sweep()
	s.want(`select count(*) from tidemark.pending_row`, "3")
	mend := `update births set name = replace(name, 'bad', 'good') where name <> 'bad and dropped'`
	due := func() { s.exec(`update tidemark.pending_row set next_attempt_at = clock_timestamp()`) }
	took := func(want ...string) {
		t.Helper()
		s.want(`select row ->> 'name' from taken order by at`, want...)
	}

	// While they wait for their next attempt, and after it.
	s.exec(`update births set name = name || '!' where name <> 'bad and dropped'`)
	s.sweep()
	s.want(`select error_count from tidemark.pending_row`, "1", "1", "1")
	due()
	s.drain()
	s.want(`select count(*) from tidemark.dead_letter where resolved_at is null`, "3")

	// While they are dead letters.
	s.exec(mend)
	s.sweep()
	took()

	// After a replay that began with a change: the sweep is told what the retry has read.
	s.exec(`update births set name = name || '!' where name <> 'bad and dropped'; select tidemark.dead_letter_replay(id) from tidemark.dead_letter where item_id <> '3'; select tidemark.dead_letter_discard(id, 'a test') from tidemark.dead_letter where item_id = '3'`)
	s.drain()
	took("good in!!", "good without!!")
	s.sweep()
	s.sweep()
	took("good in!!", "good without!!")
	s.want(`select count(*) from tidemark.source_ledger`, "0")

	// From then on they are rows as others: an update is handed over once more.
	s.exec(`update births set name = 'again ' || id`)
	s.sweep()
	took("good in!!", "good without!!", "again 2", "again 1", "again 3")
	s.want(`select item_id, resolution from tidemark.dead_letter order by 1`, "1 sent", "2 sent", "3 discarded")
}

// Another table, or another cluster: what only a sweep finds is read, whatever the numbers of its transactions, and the record of the rows
// that were read before hides none.
func TestSourceSweepsAnotherTable(t *testing.T) {
	t.Parallel()
	before := func(t *testing.T) tailing {
		s := tail(t, tidemarktest.NewDB(t), "declared", `{"sweep_window": "1 hour"}`)
		s.exec(`insert into births (born_at) values (now() - interval '3 hours'), (null), ('infinity'), (now() - interval '2 s')`)
		s.sweep()
		s.want(`select count(*) from taken`, "4")
		return s
	}
	t.Run("made anew", func(t *testing.T) {
		t.Parallel()
		s := before(t)
		s.exec(`drop table births cascade; truncate taken`)
		s.exec(strings.SplitN(fmt.Sprintf(births, "bigint generated always as identity", ""), "create table taken", 2)[0])
		s.exec(`create function take(rows births[]) returns void language sql as 'insert into taken (id) select id::text from unnest(rows)';
			insert into births (born_at) values (now() - interval '3 hours'), (null), ('infinity'), ('-infinity'), (now() - interval '2 s');
			insert into tidemark.source_ledger select id, 'births', 0, '2', '999999999999' from tidemark.worker where worker = 'w'`)
		s.wantHeld("source_changed")
		s.exec(`select tidemark.source_rewind('w', 'births', 'made anew', now() - interval '1 day')`)
		s.wantWell()
	})
	t.Run("another cluster", func(t *testing.T) {
		t.Parallel()
		s := before(t)
		s.exec(`insert into births (born_at) values (now() - interval '30 minutes'), (null), (now() - interval '1 s');
			create table was as select watermark_ts from tidemark.worker_cursor where worker = 'w';
			update tidemark.worker_cursor set metadata = jsonb_set(metadata, '{home}', '"1/2"') where worker = 'w'`)
		s.wantHeld("source_changed")
		told := s.lines(`select rows from tidemark.source_rewind_outlook('w', 'births')`)
		s.want(`select count(*) from births, was where isfinite(born_at) and born_at > now() - interval '2 hours' and born_at <= watermark_ts`, told...)
		s.exec(`select tidemark.source_rewind('w', 'births', 'upgraded')`)
		s.sweep()
		s.want(findings)
		s.want(`select count(*) from births b where not exists (select from taken t where t.id = b.id::text)`, "0")
		s.want(`select count(*) from taken where id = '1'`, "1") // which is behind the window
		s.want(`select max(k.items - b.n) from tidemark.source_count k join (select date_bin('1 hour', born_at, '2000-01-01 00:00+00') as bucket, count(*) as n from births group by 1) b on k.bucket = b.bucket`, "0")
	})
}

// What the count notices is a row beyond the window whose bucket is not verified yet. A later one is neither read nor noticed, as the
// documentation says.
func TestSourceBeyondTheBucket(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "declared", `{"sweep_window": "30 minutes", "bucket": "1 hour"}`)
	s.exec(`insert into births (born_at) select timestamptz '2026-03-01 12:40+00' - n * interval '20 minutes' from generate_series(0, 60) n`)
	s.sweep()
	s.want(`select verified_through = '2026-03-01 12:00+00' from tidemark.worker_cursor where worker = 'w'`, "true")
	s.exec(insertAt("'2026-03-01 03:00+00'")) // its bucket is verified
	s.exec(insertAt("'2026-03-01 14:00+00'"))
	s.sweep()
	s.want(findings)
	s.want(`select verified_through = '2026-03-01 13:00+00' from tidemark.worker_cursor where worker = 'w'`, "true")
	s.exec(insertAt("'2026-03-01 13:05+00'")) // its bucket is not
	s.exec(insertAt("'2026-03-01 15:00+00'"))
	s.sweep()
	s.want(findings, "source_count_mismatch w/births/0")
	s.want(`select born_at at time zone 'UTC' from births b where not exists (select from taken t where t.id = b.id::text) order by 1`,
		"2026-03-01T03:00:00", "2026-03-01T13:05:00")
}
