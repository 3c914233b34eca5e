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
	w.exec(`select tidemark.claim('default')`)
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

// A rewind locks leases, then cursors; a read that stages a replay, and holds its events since the gate of their domain is closed, does too.
func TestRewindBesideAReplay(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator, holder, eye := past(t, db), open(t, db, "operator"), open(t, db, "holder"), open(t, db, "eye")
	w.exec(`select tidemark.route_replay('app', 'why', from_seq => 1); select tidemark.claim('default', 'me', '1 hour')`)
	w.exec(`select tidemark.gate_set('domain.test.enabled', false)`)
	epoch := one[int64](w, `select `+theEpoch)
	holder.begin()
	holder.exec(`select from tidemark.worker_cursor where worker = 'default' for key share`)
	rewound := later[int](operator, `select was from tidemark.worker_rewind('default', 0, 'why') where decided is null`)
	eye.waitsFor(operator)
	read := later[int](w, `select events from tidemark.pass_read('default', $1, 100, null, null, '{}', '{}') limit 1`, epoch)
	eye.waitsFor(w)
	holder.commit()
	_, err := read()
	wantCode(t, err, "TM011")
	if was, err := rewound(); err != nil || was != 8 {
		t.Errorf("rewound from %d, %v", was, err)
	}
}

// An event of a replay is given up beside a read that stages more of it: each locks the lease first, then the replay.
func TestDiscardBesideAReplay(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator, eye := hooked(t, db), open(t, db, "operator"), open(t, db, "eye")
	w.pass()
	w.exec(`delete from tidemark.pending; select tidemark.route_replay('app', 'why', from_seq => 1, to_seq => 1)`)
	w.exec(`select tidemark.replay_stage('default'); update tidemark.replay_job set last_seq = 2, finished_at = null`)
	w.exec(`select tidemark.claim('default', 'me', '1 hour')`)
	w.begin()
	w.exec(`select tidemark.pass_read('default', ` + theEpoch + `, 100, null, null, '{}', '{}')`)
	given := later[int](operator, `select tidemark.pending_discard('why', 'app', 1)`)
	eye.waitsFor(operator)
	// As where events are held, or the page is settled at once.
	w.exec(`select tidemark.lease_check('default', ` + theEpoch + `)`)
	w.commit()
	if _, err := given(); err != nil {
		t.Error(err)
	}
	w.wantRows(`select concat_ws(' ', seq, replay) from tidemark.pending`, "2 t")
}

// The end of all leases of a worker locks them in the order of the others that lock several, wherever their rows are.
func TestLeasesEndInOrder(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator, holder := live(t, db), open(t, db, "operator"), open(t, db, "holder")
	w.exec(`select tidemark.worker_set('default', '{"shards": 3}')`)
	// The first one's row is the last in its table, which is read in the order of its rows.
	w.exec(`update tidemark.heartbeat set executor_id = executor_id where executor_id = 'default/outbox/0'`)
	operator.exec(`set enable_indexscan = off; set enable_bitmapscan = off`)
	holder.begin()
	holder.exec(`select from tidemark.heartbeat where executor_id = 'default/outbox/0' for update`)
	rewound := later[int](operator, `select was from tidemark.worker_rewind('default', 0, 'why') where decided is null`)
	w.waitsFor(operator)
	w.wantRows(`select executor_id from tidemark.heartbeat where executor_id like 'default/%' order by 1 for update skip locked`, "default/outbox/1", "default/outbox/2")
	holder.rollback()
	if _, err := rewound(); err != nil {
		t.Error(err)
	}
}

// A route whose target is gone is switched off while it is given to another worker: both lock the route, then the lease.
func TestRouteGoneBesideAMove(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator, holder, eye := live(t, db), open(t, db, "operator"), open(t, db, "holder"), open(t, db, "eye")
	w.exec(`select tidemark.worker_set('other')`)
	epoch := one[int64](w, `select epoch from tidemark.claim('default')`)
	holder.begin()
	holder.exec(`select from tidemark.heartbeat where executor_id = 'default/outbox/0' for update`)
	gone := later[string](w, `select tidemark.route_gone('default', $1, id, 'HTTP 410')::text from tidemark.outbound_route where route_code = 'app'`, epoch)
	eye.waitsFor(w)
	moved := later[string](operator, `select worker from tidemark.route_set('app', '{"worker": "other"}')`)
	eye.waitsFor(operator)
	holder.rollback()
	if _, err := gone(); err != nil {
		t.Error(err)
	}
	if worker, err := moved(); err != nil || worker != "other" {
		t.Errorf("%q, %v", worker, err)
	}
	eye.wantRows(`select concat_ws(' ', worker, enabled) from tidemark.outbound_route`, "other f")
}
