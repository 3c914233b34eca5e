package test

// Parts of the rule of tables that no other test misses when they are gone: each is taken out once, and seen.

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A fence that has closed ends the holes that were looked at. A page that was full before the last hole has not looked
// at all of them.
func TestSourceFullPageOfLateRows(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, weaken func(s tailing)) (lost string) {
		db := tidemarktest.NewDB(t)
		s, a := tail(t, db, "sequence", ""), open(t, db, "a")
		weaken(s)
		a.begin()
		a.exec(insertBirths)
		s.exec(insertBirths)
		s.drain() // 1 to 5 are holes, and a is their fence
		a.commit()
		s.drain(nil, nil, 2)
		s.drain()
		return s.lines(`select count(*) from births b where not exists (select from taken t where t.id = b.id::text)`)[0]
	}
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		if lost := run(t, func(tailing) {}); lost != "0" {
			t.Errorf("%s lost", lost)
		}
	})
	t.Run("taken out", func(t *testing.T) {
		t.Parallel()
		if run(t, func(s tailing) {
			s.rewrite("source_numbers", "plan.fence_closed and page.late < plan.rows_limit", "plan.fence_closed")
		}) == "0" {
			t.Error("rows should have been lost")
		}
	})
}

// Rows whose writer is still under way when later ones are there: their numbers stay holes until it has ended, or the
// horizon stays behind their times.
func TestSourceLateRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		safety string
		weaken func(s tailing)
		lost   string
	}{
		"sequence": {"sequence", func(tailing) {}, "0"},
		"clock":    {"clock", func(tailing) {}, "0"},
		"no fence": {"sequence", func(s tailing) { s.rewrite("fence_closed", "return not exists (", "return true or not exists (") }, "5"},
		"a plain watermark": {"sequence", func(s tailing) {
			s.rewrite("source_numbers", "c.holes := c.holes - seen + (passed - seen);", "c.holes := '{}';")
		}, "5"},
		"the horizon is the clock": {"clock", func(s tailing) { s.rewrite("source_horizon", "horizon := seen.oldest - margin;", "horizon := clock;") }, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s, a := tail(t, db, c.safety, ""), open(t, db, "a")
			c.weaken(s)
			a.begin()
			a.exec(insertBirths)
			s.exec(insertBirths)
			for range 3 {
				s.drain()
			}
			a.commit()
			for range 2 {
				s.drain()
			}
			s.want(`select count(*) from births b where not exists (select from taken t where t.id = b.id::text)`, c.lost)
		})
	}
}

// A watermark that is moved by hand while a page is handled: the page is not settled over it, and its effects are taken
// back.
func TestSourceWatermarkEditedInMidPass(t *testing.T) {
	t.Parallel()
	const compared = `tidemark.source_place(c.watermark_ts, c.watermark_id) is distinct from (plan.cursor).decided_through
        or c.decided_through is distinct from (plan.cursor).decided_through`
	for name, edit := range map[string]string{
		"the watermark": `watermark_id = '1'`,
		"both":          `watermark_id = '1', decided_through = tidemark.source_place(watermark_ts, '1')`,
		"the copy":      `decided_through = tidemark.source_place(watermark_ts, '1')`,
	} {
		run := func(t *testing.T, weaken func(s tailing)) (tailing, run) {
			db := tidemarktest.NewDB(t)
			s, op := tail(t, db, "sequence", ""), open(t, db, "operator")
			weaken(s)
			s.exec(insertBirths)
			s.drain(nil, nil, 3)
			s.exec(insertBirths)
			s.exec(`create or replace function take(rows births[]) returns jsonb language plpgsql as $$
				begin insert into taken (id) select id from unnest(rows); perform pg_advisory_xact_lock(7); return '{}'; end $$`)
			op.exec(`select pg_advisory_lock(7)`)
			done := make(chan run)
			go func() { done <- s.once() }()
			op.waitsFor(s.session)
			op.exec(`update tidemark.worker_cursor set ` + edit + ` where worker = 'w'`)
			op.exec(`select pg_advisory_unlock(7)`)
			return s, <-done
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, got := run(t, func(tailing) {})
			if got.Status != "held" {
				t.Errorf("%+v, want held", got)
			}
			s.want(`select kind from tidemark.finding where closed_at is null`, "cursor_watermark_regression")
			s.want(`select (select count(*) from taken), '1' in (watermark_id, split_part(decided_through, ' ', 2)) from tidemark.worker_cursor where worker = 'w'`, "5 true")
		})
		t.Run(name+", taken out", func(t *testing.T) {
			t.Parallel()
			if _, got := run(t, func(s tailing) { s.rewrite("source_settle", compared, "false") }); got.Status != "ran" {
				t.Errorf("%+v: something else holds it too", got)
			}
		})
	}
}

// An instance that held the lease when an operator rewound is fenced: what it does next is another's.
func TestSourceRewindFences(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, weaken func(s tailing)) error {
		s := tail(t, tidemarktest.NewDB(t), "sequence", "")
		weaken(s)
		s.exec(insertBirths)
		epoch := one[int64](s.session, `select epoch from tidemark.claim('w', 'one', '1 hour', 'births', 0)`)
		s.exec(`select tidemark.source_pass('w', 'births', 0, $1)`, epoch)
		s.exec(`select tidemark.source_rewind('w', 'births', 'again', to_id => '2')`)
		_, err := s.conn.Exec(t.Context(), `select tidemark.source_pass('w', 'births', 0, $1)`, epoch)
		if err != nil {
			s.want(`select count(*) from taken`, "5")
			s.want(`select status from tidemark.claim('w', 'two', '1 hour', 'births', 0)`, "claimed")
		}
		return err
	}
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		if err := run(t, func(tailing) {}); code(err) != "TM011" {
			t.Errorf("%v, want TM011", err)
		}
	})
	t.Run("taken out", func(t *testing.T) {
		t.Parallel()
		if err := run(t, func(s tailing) {
			s.rewrite("lease_end", "lease_epoch = lease_epoch + 1", "lease_epoch = lease_epoch")
		}); err != nil {
			t.Errorf("%v: something else fences it too", err)
		}
	})
}
