package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Rule 9 of sql/code/worker/read_outbox.sql: an event is decided by its routes as they were when it was emitted, or
// later. The route changes after the pass has begun, and before it reads the event.
func TestRouteChangesBeforeTheEvent(t *testing.T) {
	t.Parallel()
	const off, on = `update tidemark.outbound_route set enabled = false`, `update tidemark.outbound_route set enabled = true`
	filter := func(f string) string {
		return `update tidemark.outbound_route set payload_filter = '` + f + `'`
	}
	asItWas := func(w session) {
		w.rewrite("read_outbox", "missing int8multirange := '{}';", "missing int8multirange := '{}'; was record;")
		w.rewrite("read_outbox", theRead, "select n.* into was from tidemark.worker_routes(read_outbox.worker) n;\n    "+theRead)
		w.rewrite("read_outbox", "greatest(mark, a.last), r.routes, r.filtered", "greatest(mark, a.last), was.routes, was.filtered")
	}
	for _, c := range []struct {
		name, before, change string
		prepare              func(w session)
		want                 int
	}{
		{"enabled", off, on, nil, 1},
		{"enabled, routes read first", off, on, asItWas, 0},
		{"a filter set, which the event passes not", on, filter(`{"n": 2}`), nil, 0},
		{"a filter set, routes read first", on, filter(`{"n": 2}`), asItWas, 1},
		{"a filter taken away", filter(`{"n": 2}`), `update tidemark.outbound_route set payload_filter = null`, nil, 1},
		{"a filter changed", filter(`{"n": 2}`), filter(`{"n": 1}`), nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, a, gate := live(t, db), open(t, db, "a"), open(t, db, "gate")
			a.exec(c.before)
			if c.prepare != nil {
				c.prepare(w)
			}
			pauseAt(w, theRead)

			gate.exec("select pg_advisory_lock(1)")
			passed := make(chan struct{})
			go func() { w.pass(); close(passed) }()
			gate.waitsFor(w)
			a.exec(c.change)
			a.emit(1)
			gate.exec("select pg_advisory_unlock(1)")
			<-passed
			if got := w.received(); len(got) != c.want {
				t.Errorf("received %v, want %d events", got, c.want)
			}
		})
	}
}
