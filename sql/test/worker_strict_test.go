package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Rule 7: with read_order strict nothing passes an open number.
func TestStrictOrder(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")
	w.exec(`select tidemark.worker_set('default', '{"read_order": "strict"}')`)

	b.emit(1)
	a.begin()
	a.emit(2)
	b.emit(3)
	w.pass()
	w.wantReceived(1)
	w.pass()
	w.wantReceived(1)
	a.commit()
	b.emit(4)
	w.pass()
	w.wantReceived(1, 2, 3, 4)

	a.begin()
	a.emit(5)
	b.emit(6)
	w.pass()
	w.wantReceived(1, 2, 3, 4)
	a.rollback()
	w.pass()
	w.wantReceived(1, 2, 3, 4, 6)
	w.wantHoles("{}")
}

// What is open when the order becomes strict is lost no more than what is open then and comes later: it comes first, in order.
func TestOrderBecomesStrict(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b, c := live(t, db), open(t, db, "a"), open(t, db, "b"), open(t, db, "c")
	a.begin()
	a.emit(1)
	b.emit(2)
	c.begin()
	c.emit(3)
	b.emit(4)
	w.pass()
	w.wantReceived(2, 4)
	w.exec(`select tidemark.worker_set('default', '{"read_order": "strict"}')`)
	b.emit(5)
	w.pass()
	c.commit()
	w.pass()
	w.pass()
	w.wantReceived(2, 4)
	w.wantHoles("{[1,2),[3,4)}")
	a.commit()
	for range 3 {
		w.pass()
	}
	w.wantReceived(2, 4, 1, 3, 5)
	w.wantHoles("{}")

	// Back again: what strict order waits for is above the watermark, and counts once.
	a.begin()
	a.emit(6)
	b.emit(7)
	w.pass()
	w.exec(`select tidemark.worker_set('default', '{"read_order": "eager"}')`)
	a.commit()
	if p := w.pass(); p.Events != 2 {
		t.Errorf("%d events, want 2", p.Events)
	}
	w.wantReceived(2, 4, 1, 3, 5, 6, 7)

	// One that was rolled back keeps nothing.
	a.begin()
	a.emit(8)
	b.emit(9)
	w.pass()
	w.exec(`select tidemark.worker_set('default', '{"read_order": "strict"}')`)
	a.rollback()
	b.emit(10)
	for range 3 {
		w.pass()
	}
	w.wantReceived(2, 4, 1, 3, 5, 6, 7, 9, 10)
	w.wantHoles("{}")
}

// A worker in strict order that begins now gets what is open, and nothing that was committed before.
func TestStrictOrderBeginsNow(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a := live(t, db), open(t, db, "a")
	a.begin()
	a.emit(1)
	w.emit(2)
	w.exec(`select tidemark.worker_set('late', '{"read_order": "strict"}'), tidemark.gate_set('worker.late.enabled', true)`)
	w.emit(3)
	decided := `select d.seqs::text from tidemark.decision d join tidemark.worker r on r.id = d.worker_id where r.worker = 'late' order by d.last_seq`
	w.exec(`select tidemark.route_worker_run('late')`)
	w.wantRows(decided)
	a.commit()
	for range 3 {
		w.exec(`select tidemark.route_worker_run('late')`)
	}
	w.wantRows(decided, "{[1,2)}", "{[3,4)}")
}

// A full page of late events has looked at the numbers below its last one. One that was rolled back does not keep the page, and with it the worker, for good.
func TestStrictOrderPassesDeadNumberBelowFullPage(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")
	w.emit(1)
	a.begin()
	a.emit(2)
	a.rollback()
	a.begin()
	for n := 3; n <= 12; n++ {
		a.emit(n)
	}
	w.exec(`select tidemark.worker_set('late', '{"read_order": "strict"}'), tidemark.gate_set('worker.late.enabled', true)`)
	w.wantRows(`select (holes + fenced)::text from tidemark.worker_cursor where worker = 'late'`, "{[2,13)}")
	// A second generation, above a number that stays open longer.
	b.begin()
	b.emit(13)
	w.emit(14)
	a.commit()
	pass := func() { t.Helper(); w.exec(`select tidemark.route_worker_run('late', 5)`) }
	decided := `select d.seqs::text from tidemark.decision d join tidemark.worker r on r.id = d.worker_id where r.worker = 'late' order by d.last_seq`
	pass()
	w.wantRows(decided, "{[3,8)}")
	pass()
	w.wantRows(decided, "{[3,8)}", "{[8,13)}")
	pass()
	pass()
	w.wantRows(decided, "{[3,8)}", "{[8,13)}")
	b.commit()
	for range 3 {
		pass()
	}
	w.wantRows(decided, "{[3,8)}", "{[8,13)}", "{[13,15)}")
	w.wantRows(`select (holes + fenced)::text from tidemark.worker_cursor where worker = 'late'`, "{}")
}
