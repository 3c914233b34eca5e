package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// late makes the worker late, which takes every event of the test, and opens its gate.
func (s session) late(starts string) {
	s.t.Helper()
	s.exec(`select tidemark.worker_set('late', starts => ` + starts + `), tidemark.gate_set('worker.late.enabled', true),
		tidemark.route_set('late', '{"worker": "late", "domain": "test", "target_kind": "sql", "target_ref": "public.receive", "enabled": true, "dry_run": false}')`)
}

func (s session) passLate() { s.t.Helper(); s.exec(`select tidemark.route_worker_run('late')`) }

// RO11: a worker that begins now gets what commits from then on, also where its number was taken before.
func TestWorkerStartsNow(t *testing.T) {
	t.Parallel()
	for name, defaultRan := range map[string]bool{"beside a worker that has read the log": true, "beside one that has not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, a, b, c := live(t, db), open(t, db, "a"), open(t, db, "b"), open(t, db, "c")
			w.exec(`select tidemark.route_set('app', '{"enabled": false}')`)
			w.emit(1)
			a.begin()
			a.emit(2)
			b.begin()
			b.emit(3)
			w.emit(4)
			if defaultRan {
				w.pass()
			}
			c.begin()
			c.emit(5)
			w.emit(6)
			w.late("null")
			w.emit(7)
			w.passLate()
			w.wantReceived(7)
			c.commit()
			w.passLate()
			w.wantReceived(7, 5)
			a.commit()
			b.rollback()
			w.passLate()
			w.passLate()
			w.wantReceived(7, 5, 2)
			w.wantRows(`select concat_ws(' ', holes, fenced, begins_after) from tidemark.worker_cursor where worker = 'late'`, "{} {} 6")
			w.wantSound()
		})
	}
}

// A worker that is made while its writers commit loses none of theirs, whatever the moment.
func TestWorkerStartsBetweenReadAndFence(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, maker, watch := live(t, db), open(t, db, "a"), open(t, db, "maker"), open(t, db, "watch")
	w.exec(`select tidemark.route_set('app', '{"enabled": false}')`)
	w.emit(1)
	a.begin()
	a.emit(2)
	// The maker stands between the look at what is visible and the note of the fence, while the writer commits.
	w.rewrite("worker_start", "c.fence := tidemark.fence_now();", "perform pg_advisory_xact_lock(77); c.fence := tidemark.fence_now();")
	watch.exec(`select pg_advisory_lock(77)`)
	result := later[string](maker, `select worker from tidemark.worker_set('late')`)
	watch.waitsFor(maker)
	a.commit()
	watch.exec(`select pg_advisory_unlock(77)`)
	if _, err := result(); err != nil {
		t.Fatal(err)
	}
	w.exec(`select tidemark.gate_set('worker.late.enabled', true),
		tidemark.route_set('late', '{"worker": "late", "domain": "test", "target_kind": "sql", "target_ref": "public.receive", "enabled": true, "dry_run": false}')`)
	w.passLate()
	w.wantReceived(2)
	w.wantSound()
}

func TestWorkerStarts(t *testing.T) {
	t.Parallel()
	for starts, want := range map[string][]int{
		"'start'": {1, 2, 3, 4}, "'0'": {1, 2, 3, 4}, "'1'": {1, 2, 3, 4}, "'3'": {3, 4}, "'4'": {4}, "'now'": {4}, "null": {4},
		"(select created_at::text from tidemark.outbox where seq = 2)": {2, 3, 4}, "'infinity'": {4}, "'2001-01-01'": {1, 2, 3, 4},
	} {
		t.Run(starts, func(t *testing.T) {
			t.Parallel()
			w := live(t, tidemarktest.NewDB(t))
			w.exec(`select tidemark.route_set('app', '{"enabled": false}')`)
			for n := range 3 {
				w.emit(n + 1)
			}
			w.late(starts)
			w.emit(4)
			w.passLate()
			w.wantReceived(want...)
			w.wantSound()
			// What was left behind is read after a rewind.
			w.exec(`truncate received; select tidemark.worker_rewind('late', 0, 'drill')`)
			w.passLate()
			equal(t, "received in all", len(w.received())+len(want), 4)
			w.wantSound()
		})
	}
}

func TestWorkerStartArguments(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.emit(1)
	for starts, want := range map[string]string{
		"3": "the log ends at number 1: a worker cannot begin at 3", "-1": "cannot begin at", "soon": `cannot begin at "soon"`, "2026-13-01": "cannot begin at",
	} {
		w.refused("TM005", want, fmt.Sprintf(`select tidemark.worker_set('late', starts => '%s')`, starts))
	}
	w.pass()
	w.refused("TM005", "worker default has begun", `select tidemark.worker_set('default', starts => 'now')`)
	w.refused("TM005", "reads tables", `select tidemark.worker_set('t', '{"source": "table", "handler": "go"}', starts => 'now')`)
	w.exec(`select tidemark.worker_set('late', starts => '2')`) // the next one
	w.exec(`select tidemark.worker_set('late', '{"hole_limit": 7}')`)
	w.wantRows(`select watermark_id from tidemark.worker_cursor where worker = 'late'`, "1")
}

// A worker that was made, by a pack say, and has made no pass yet can still be told where to begin; the pass that it has
// just begun is over.
func TestWorkerStartsAgain(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	for n := range 4 {
		w.emit(n + 1)
	}
	w.late("null")
	w.exec(`select tidemark.worker_set('late', starts => '2')`)
	epoch := one[int](w, `select epoch::int from tidemark.claim('late', 'a daemon', '1 minute')`)
	w.exec(`select tidemark.worker_set('late', starts => '3')`)
	w.refused("TM011", "epoch", fmt.Sprintf(`select tidemark.lease_check('late', %d)`, epoch))
	w.emit(5)
	w.passLate()
	w.wantReceived(3, 4, 5)
	w.refused("TM005", "worker late has begun", `select tidemark.worker_set('late', starts => 'start')`)
	w.wantSound()
}

// A Go program's worker begins as it is told, once.
func TestHandlersStart(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.emit(1)
	w.exec(`select tidemark.handlers_register('now', '{test/*}'), tidemark.handlers_register('start', '{test/*}', 'start')`)
	w.emit(2)
	w.exec(`select tidemark.handlers_register('now', '{test/*}', 'start'), tidemark.handlers_register('start', '{test/*}', 'now')`)
	w.wantRows(`select worker || ' ' || watermark_id from tidemark.worker_cursor where worker in ('now', 'start') order by worker`, "now 1", "start 0")
}
