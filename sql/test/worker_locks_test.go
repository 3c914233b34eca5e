package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// hooked is a live worker whose route app leaves the database, with two events that its next pass adds to what is pending.
func hooked(t *testing.T, db *tidemarktest.DB) session {
	t.Helper()
	w := live(t, db)
	w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}')`)
	w.emit(1)
	w.emit(2)
	return w
}

const theEpoch = `(select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0')`

// A pass has its lease, and adds events to what is pending, whose worker it locks then. A change of the worker locks both in this order.
func TestWorkerSetBesideAPass(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator, eye := hooked(t, db), open(t, db, "operator"), open(t, db, "eye")
	w.begin()
	w.exec(`select tidemark.lease_check('default', ` + theEpoch + `)`)
	set := later[int](operator, `select page_size from tidemark.worker_set('default', '{"page_size": 100}')`)
	eye.waitsFor(operator)
	equal(t, "pass", w.pass().Decided, map[string]int{"pending": 2})
	w.commit()
	if got, err := set(); err != nil || got != 100 {
		t.Errorf("%d, %v", got, err)
	}
}
