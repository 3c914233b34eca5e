package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// twoWorkers adds the worker other, which serves no route yet and begins at the end of the log.
func twoWorkers(t *testing.T) session {
	t.Helper()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.worker_set('other'), tidemark.gate_set('worker.other.enabled', true)`)
	return w
}

const (
	moves    = `select tidemark.route_set('app', '{"worker": "other"}')`
	movesNow = `update tidemark.outbound_route set worker = 'other' where route_code = 'app'`
	servedBy = `select worker from tidemark.outbound_route where route_code = 'app'`
)

// wantStays says that the route does not move: by the function, by a plain update, by a file.
func (s session) wantStays(because string) {
	s.t.Helper()
	for _, move := range []string{moves, movesNow, `select tidemark.configuration_apply('f', jsonb_build_array(jsonb_build_object('kind', 'route', 'name', 'app',
		'definition', c.definition || '{"worker": "other"}')), 'test') from tidemark.configuration() c where c.kind = 'route'`} {
		s.refused("TM005", "route app cannot move from worker default to other: "+because, move)
		s.wantRows(servedBy, "default")
	}
}

func (s session) passOther() { s.t.Helper(); s.exec(`select tidemark.route_worker_run('other')`) }

// What the old worker owes a route would stay behind: deliveries, dead letters and replays.
func TestRouteStaysWithWhatItIsOwed(t *testing.T) {
	t.Parallel()
	t.Run("pending", func(t *testing.T) {
		t.Parallel()
		w := twoWorkers(t)
		w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}')`)
		w.emit(1)
		w.pass()
		w.passOther()
		w.wantStays("deliveries of it are pending with default")
		// Where an earlier release has moved it, it moves back.
		w.exec(`alter table tidemark.outbound_route disable trigger outbound_route_move`)
		w.exec(moves)
		w.exec(`alter table tidemark.outbound_route enable trigger outbound_route_move`)
		w.exec(`select tidemark.route_set('app', '{"worker": "default"}')`)
		w.exec(`select tidemark.route_set('app', '{"target_kind": "sql", "target_ref": "public.receive", "options": {}}')`)
		w.pass()
		w.wantReceived(1)
		w.exec(moves)
		w.wantSound()
	})
	t.Run("dead letter", func(t *testing.T) {
		t.Parallel()
		w := oneLetter(t, tidemarktest.NewDB(t))
		w.exec(`select tidemark.worker_set('other')`)
		w.wantStays("it has open dead letters")
		w.exec(`select tidemark.dead_letter_discard(1, 'test')`)
		w.exec(moves)
	})
	t.Run("replay", func(t *testing.T) {
		t.Parallel()
		w := twoWorkers(t)
		w.emit(1)
		w.pass()
		w.passOther()
		w.exec(`select tidemark.route_replay('app', 'test', from_seq => 1)`)
		w.wantStays("replay 1 of it is not over")
		w.pass()
		w.pass()
		w.wantReceived(1, 1)
		w.exec(moves)
	})
}

// Between the places of the two workers an event would be delivered twice, or never.
func TestRouteMovesBetweenPlaces(t *testing.T) {
	t.Parallel()
	w := twoWorkers(t)
	w.emit(1)
	w.pass()
	w.wantStays("events of it lie between the places of the two, from 1 to 1") // twice
	w.passOther()
	w.emit(2)
	w.passOther()
	w.wantStays("events of it lie between the places of the two, from 2 to 2") // never
	w.exec(`select tidemark.worker_rewind('other', 1, 'test')`)                // what the hint says
	w.exec(moves)
	w.pass()
	w.passOther()
	w.wantReceived(1, 2)
	w.emit(3)
	w.pass()
	w.passOther()
	w.wantReceived(1, 2, 3)

	// Events of others do not count.
	w.exec(`select tidemark.domain_set('else'), tidemark.type_set('else', 'x'), tidemark.emit_strict('else', 'x')`)
	w.exec(`select tidemark.route_set('app', '{"domain": "test"}')`)
	w.pass()
	w.exec(`select tidemark.route_set('app', '{"worker": "default"}')`)
	// A rewind of the old worker takes nothing back that it has delivered.
	w.passOther()
	w.exec(`select tidemark.worker_rewind('default', 0, 'test'), tidemark.worker_rewind('other', 0, 'test')`)
	w.refused("TM005", "events of it lie between", moves)
	w.exec(`select tidemark.worker_set('rows', '{"source": "table", "handler": "sql", "handler_ref": "public.receive"}')`)
	w.refused("TM005", "worker rows does not read the log", `select tidemark.route_set('app', '{"worker": "rows"}')`)
	w.refused("TM005", "worker rows does not read the log", `select tidemark.route_set('new', '{"worker": "rows", "domain": "test", "target_kind": "notify", "target_ref": "a"}')`)
}

// An instance that runs one of the two has read pages with the routes as they were.
func TestRouteStaysWhileAWorkerRuns(t *testing.T) {
	t.Parallel()
	w := twoWorkers(t)
	for _, worker := range []string{"default", "other"} {
		epoch := one[int64](w, `select epoch from tidemark.claim($1, 'daemon', '1 minute')`, worker)
		w.wantStays("daemon runs worker " + worker)
		w.exec(`select tidemark.release($1, $2)`, worker, epoch)
	}
	// Its lease is over, and it does not know yet.
	epoch := one[int64](w, `select epoch from tidemark.claim('default', 'daemon', '1 minute')`)
	w.exec(`update tidemark.heartbeat set lease_until = clock_timestamp() where executor_id = 'default/outbox/0'`)
	w.exec(moves)
	w.refused("TM011", "", `select tidemark.lease_check('default', $1, 'outbox', 0)`, epoch)
}

// A pass that is under way ends first.
func TestRouteMovesBesideAPass(t *testing.T) {
	t.Parallel()
	for _, runs := range []string{"default", "other"} {
		t.Run(runs, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, mover, gate := live(t, db), open(t, db, "mover"), open(t, db, "gate")
			w.exec(`select tidemark.worker_set('other'), tidemark.gate_set('worker.other.enabled', true)`)
			pauseAt(w, theRead)
			gate.exec(`select pg_advisory_lock(1)`)
			passed := make(chan struct{})
			go func() { w.exec(`select tidemark.route_worker_run($1)`, runs); close(passed) }()
			gate.waitsFor(w)
			gate.emit(1)
			moved := make(chan struct{})
			go func() { _ = mover.try(moves); close(moved) }()
			gate.waitsFor(mover)
			gate.exec(`select pg_advisory_unlock(1)`)
			<-passed
			<-moved
			w.wantRows(servedBy, "default") // event 1 lies between the two
			w.pass()
			w.passOther()
			w.exec(moves)
			w.pass()
			w.passOther()
			w.wantReceived(1)
		})
	}
}

// A shard of the new worker had passed an event before all shards went back to the lowest place: it is not decided for a route that
// comes then, although both workers are at the same place.
func TestRouteMovesBelowWhatShardsHavePassed(t *testing.T) {
	t.Parallel()
	w := twoWorkers(t)
	w.exec(`select tidemark.worker_set('other', '{"shards": 2}')`)
	for shard := range 2 {
		w.exec(`select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', $1::int), key => (
			select 'k' || i from generate_series(1, 100) i where tidemark.shard_of('k' || i, 0, 2) = $1::int limit 1))`, shard)
	}
	w.exec(`select tidemark.route_worker_run('other', 5000, 1)`)
	w.exec(`select tidemark.worker_set('other', '{"shards": 1}')`)
	w.wantStays("events of it lie between the places of the two, from 1 to 2")
	w.passOther() // up to where the shard had been
	w.pass()
	w.exec(moves)
	w.passOther()
	w.wantReceived(0, 1)
}

// Writers in open transactions, passes of two workers with shards, whose number changes, and a route that moves between them where it
// may: each committed event reaches the target once, in the order of its key.
func TestRouteMovesLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	w.exec(`select tidemark.worker_set('other'), tidemark.gate_set('worker.other.enabled', true)`)
	writers := []session{open(t, db, "a"), open(t, db, "b")}
	workers := []string{"default", "other"}
	n, moved, stayed := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w.exec(`truncate received`)
		want, held := map[string][]int{}, map[int][]int{}
		end := func(i int, keep bool) {
			if keep {
				writers[i].commit()
				want[writers[i].name] = append(want[writers[i].name], held[i]...)
			} else {
				writers[i].rollback()
			}
			delete(held, i)
		}
		for _, worker := range workers {
			w.exec(`select tidemark.worker_set($1, '{"shards": 1}')`, worker)
		}
		shards := []int{1, 1}
		pass := func(i, limit, shard int) {
			w.exec(`select tidemark.route_worker_run($1, $2, $3)`, workers[i], limit, shard)
		}
		all := func() {
			for i := range workers {
				for shard := range shards[i] {
					pass(i, 5000, shard)
				}
			}
		}
		for range rapid.IntRange(10, 40).Draw(rt, "steps") {
			i := rapid.IntRange(0, 1).Draw(rt, "which")
			switch rapid.SampledFrom([]string{"emit", "emit", "end", "end", "pass", "pass", "both", "move", "move", "shards"}).Draw(rt, "step") {
			case "emit":
				if held[i] == nil {
					writers[i].begin()
				}
				n++
				writers[i].emitKey(n, writers[i].name)
				held[i] = append(held[i], n)
			case "end":
				if held[i] != nil {
					end(i, rapid.IntRange(0, 3).Draw(rt, "keep") > 0)
				}
			case "pass":
				pass(i, rapid.SampledFrom([]int{1, 2, 5000}).Draw(rt, "limit"), rapid.IntRange(0, shards[i]-1).Draw(rt, "shard"))
			case "both":
				all()
			case "shards":
				to := rapid.IntRange(1, 3).Draw(rt, "shards")
				refused := w.try(`select tidemark.worker_set($1, jsonb_build_object('shards', $2::int))`, workers[i], to)
				switch {
				case refused == nil:
					shards[i] = to
				case refused.Code != "TM005":
					rt.Fatal(refused)
				}
			case "move":
				was := one[string](w, servedBy)
				refused := w.try(`select tidemark.route_set('app', jsonb_build_object('worker', $1::text))`, workers[i])
				switch {
				case refused != nil && refused.Code != "TM005":
					rt.Fatal(refused)
				case refused != nil:
					stayed++
				case was != workers[i]:
					moved++
				}
			}
		}
		for i := range writers {
			if held[i] != nil {
				end(i, true)
			}
		}
		for range 3 { // the fences close, and their numbers are read once more
			all()
		}
		got := map[string][]int{}
		for _, row := range rows(w, `select key || ' ' || n from received order by at`) {
			key, number, _ := strings.Cut(row, " ")
			var n int
			_, _ = fmt.Sscan(number, &n)
			got[key] = append(got[key], n)
		}
		for _, key := range []string{"a", "b"} {
			if !slices.Equal(want[key], got[key]) {
				rt.Fatalf("key %s: got %v, want %v", key, got[key], want[key])
			}
		}
	})
	if moved == 0 || stayed == 0 {
		t.Errorf("the route moved %d times and stayed %d times", moved, stayed)
	}
}
