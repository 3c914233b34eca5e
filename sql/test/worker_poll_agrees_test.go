package test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CU2 and CU8 as the poll sees them, over states that chance makes: writers in open and prepared transactions, sweeps that
// are due, gates that close, rows that are gathered. Where the poll says that there is nothing, a pass takes nothing; and it
// does not wake a worker for ever.
func TestPollAgreesWithPasses(t *testing.T) {
	t.Parallel()
	for _, safety := range []string{"sequence", "clock", "capture", "declared"} {
		t.Run(safety, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s := tail(t, db, safety, "")
			if safety == "capture" {
				s.capture()
			}
			d := asleep(s)
			seed := rand.Uint64()
			random := rand.New(rand.NewPCG(seed, 7))
			writers := []session{open(t, db, "a"), open(t, db, "b"), open(t, db, "c")}
			inside, prepared := make([]bool, len(writers)), ""
			// agrees compares the poll with a pass, and says what the poll said.
			agrees := func(step int) string {
				t.Helper()
				why := d.poll()
				before := one[int](d.session, `select count(*)::int from taken`)
				did := d.lease()
				took := one[int](d.session, `select count(*)::int from taken`) - before
				if took > 0 && (why == "" || why == "closed") || why == "closed" && !strings.HasPrefix(did, "closed") {
					t.Fatalf("seed %d, step %d: the poll says %q, and a pass takes %d rows: %s", seed, step, why, took, did)
				}
				return why
			}
			for step := range 120 {
				i := random.IntN(len(writers))
				switch w := writers[i]; {
				case !inside[i] && random.IntN(2) == 0:
					w.begin()
					inside[i] = true
				case inside[i] && random.IntN(3) == 0:
					switch random.IntN(4) {
					case 0:
						w.rollback()
					case 1:
						if prepared == "" {
							prepared = fmt.Sprintf("%s poll %d", db.Name, step)
							w.prepare(prepared)
							break
						}
						fallthrough
					default:
						w.commit()
					}
					inside[i] = false
				default:
					w.exec(`insert into births (born_at) select clock_timestamp() from generate_series(1, $1)`, 1+random.IntN(3))
				}
				if prepared != "" && random.IntN(8) == 0 {
					s.exec([]string{"commit", "rollback"}[random.IntN(2)] + ` prepared '` + prepared + `'`)
					prepared = ""
				}
				switch random.IntN(12) {
				case 0, 1, 2, 3:
					continue // so that something gathers
				case 4:
					s.exec(`update tidemark.worker_cursor set sweep = sweep || jsonb_build_object('done_at', now() - interval '1 hour') where worker = 'w'`)
				case 5:
					s.exec(`select tidemark.gate_set('worker.w.enabled', false)`)
					if why := agrees(step); why != "closed" {
						t.Fatalf("seed %d, step %d: the gate is closed, and the poll says %q", seed, step, why)
					}
					s.exec(`select tidemark.gate_set('worker.w.enabled', true)`)
				case 6:
					s.exec(`update tidemark.worker set coalesce_window = '1 hour' where worker = 'w'`)
					agrees(step)
					s.exec(`update tidemark.worker set coalesce_window = null where worker = 'w'`)
				}
				agrees(step)
				for n := 0; d.poll() != ""; n++ {
					if n > 20 {
						t.Fatalf("seed %d, step %d: there is always something: %s", seed, step, d.poll())
					}
					d.lease()
				}
			}
			for i, w := range writers {
				if inside[i] {
					w.commit()
				}
			}
			if prepared != "" {
				s.exec(`commit prepared '` + prepared + `'`)
			}
			d.settle()
			if safety != "declared" {
				s.exact()
			}
		})
	}
}

// The same of the log, whose passes ask for themselves (tidemark.log_next).
func TestPollAgreesWithPassesOfTheLog(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tail(t, db, "sequence", "")
	d := &sleeper{tailing: s}
	s.exec(`select tidemark.type_set('test', 'tick'), tidemark.gate_set('worker.default.enabled', true)`)
	pass := func() (seen int) {
		t.Helper()
		const events = `select events_seen::int from tidemark.worker_cursor where worker = 'default'`
		before := one[int](s.session, events)
		s.exec(`update tidemark.heartbeat set lease_until = null where executor_id = 'default/outbox/0'`)
		s.exec(`select tidemark.route_worker_run('default', 100)`)
		s.exec(`update tidemark.heartbeat set lease_owner = 'me', lease_until = now() + interval '1 minute' where executor_id = 'default/outbox/0'`)
		return one[int](s.session, events) - before
	}
	poll := func() string {
		t.Helper()
		epoch := one[int64](s.session, `select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'`)
		return d.pollAs("me", "outbox", &epoch)
	}
	pass()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 7))
	writers := []session{open(t, db, "a"), open(t, db, "b"), open(t, db, "c")}
	inside := make([]bool, len(writers))
	for step := range 120 {
		i := random.IntN(len(writers))
		switch w := writers[i]; {
		case !inside[i] && random.IntN(2) == 0:
			w.begin()
			inside[i] = true
		case inside[i] && random.IntN(3) == 0:
			if random.IntN(3) == 0 {
				w.rollback()
			} else {
				w.commit()
			}
			inside[i] = false
		default:
			w.emit(step)
		}
		if random.IntN(3) == 0 {
			continue // so that something gathers
		}
		if why, seen := poll(), pass(); why == "" && seen > 0 {
			t.Fatalf("seed %d, step %d: the poll says that there is nothing, and a pass reads %d events", seed, step, seen)
		}
		for n := 0; poll() != ""; n++ {
			if n > 20 {
				t.Fatalf("seed %d, step %d: there is always something: %s", seed, step, poll())
			}
			pass()
		}
	}
}
