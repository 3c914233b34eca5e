package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// domains gives the routes of setup every domain, and makes a and b.
func domains(t *testing.T, db *tidemarktest.DB) {
	t.Helper()
	exec(t, db, `select tidemark.type_set(d, 'tick') from unnest(array['a', 'b']) d`)
	exec(t, db, `update tidemark.outbound_route set domain = '*'`)
}

func emitTo(t *testing.T, db *tidemarktest.DB, domain, key string) {
	t.Helper()
	exec(t, db, `select tidemark.emit_strict($1, 'tick', key => nullif($2, ''))`, domain, key)
}

// ofDomain are the numbers of the events that arrived.
func (s *target) ofDomain(domain string) (seqs []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.arrived {
		if d.Event.Domain == domain {
			seqs = append(seqs, d.Event.Seq)
		}
	}
	return seqs
}

// noted waits until the worker has asked for the gates, twice since.
func noted(t *testing.T, db *tidemarktest.DB) {
	t.Helper()
	ticks := texts(t, db, `select ticks_total::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`)[0]
	eventually(t, db, fmt.Sprintf(`select (ticks_total >= %s + 2)::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`, ticks), "true")
}

// A closed gate of a domain cuts off what is under way of it, and nothing else's.
func TestDomainGateClosesInMidDelivery(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "concurrency": 2, "timeout": "10 minutes"`)
	domains(t, db)
	began, slow := make(chan string, 10), make(chan struct{})
	ts["app"].answers(func(ctx context.Context, d sink.Delivery) sink.Result {
		began <- d.Event.Domain
		select {
		case <-ctx.Done():
			return sink.Result{Status: sink.Unknown, Code: "timeout", Detail: "cut off"}
		case <-slow:
			return sink.Result{Status: sink.Delivered}
		}
	})
	emitTo(t, db, "a", "")
	emitTo(t, db, "b", "")
	run(t, db, ts)
	both := []string{<-began, <-began}
	if slices.Sort(both); !slices.Equal(both, []string{"a", "b"}) {
		t.Fatal(both)
	}
	exec(t, db, `select tidemark.gate_set('domain.a.enabled', false)`)
	eventually(t, db, `select concat_ws(' ', item, held, error_count) from tidemark.waiting where held`, "1 t 1")
	close(slow)
	eventually(t, db, evidence, "app 1 1 pending timeout", "app 2 1 pending busy", "app 2 2 sent")
	ts["app"].answers(nil)
	emitTo(t, db, "a", "")
	emitTo(t, db, "b", "")
	eventually(t, db, `select seq::text from tidemark.route_attempt where outcome = 'sent' order by seq`, "2", "4")
	noted(t, db)
	eventually(t, db, `select item from tidemark.waiting where held order by item`, "1", "3")

	exec(t, db, `select tidemark.gate_set('domain.a.enabled', true)`)
	eventually(t, db, settled, "true")
	eventually(t, db, `select seq::text from tidemark.route_attempt where outcome = 'sent' order by seq`, "1", "2", "3", "4")
}

// Gates of domains open and close under a worker at work: while one is closed nothing of its domain arrives, the others go
// on, and in the end everything has arrived once, each key in order.
func TestDomainGatesAtRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	db, ts := setup(t, `, "ordering": "key"`)
	ts["free"] = newTarget()
	route(t, db, "free", "")
	domains(t, db)
	run(t, db, ts)
	some := func() {
		for range 20 {
			domain := []string{"a", "b"}[r.IntN(2)]
			emitTo(t, db, domain, []string{"", domain + "1", domain + "2"}[r.IntN(3)])
		}
	}
	for range 6 {
		some()
		closed, open := "a", "b"
		if r.IntN(2) == 0 {
			closed, open = open, closed
		}
		exec(t, db, `select tidemark.gate_set($1, false)`, "domain."+closed+".enabled")
		some()
		noted(t, db)
		before := [][]int64{ts["app"].ofDomain(closed), ts["free"].ofDomain(closed)}
		some()
		emitTo(t, db, closed, "")
		eventually(t, db, fmt.Sprintf(`select count(*)::text from tidemark.outbox o cross join tidemark.outbound_route r
			where o.domain = '%s' and not exists (select from tidemark.attempt a where a.seq = o.seq and a.route_id = r.id and a.outcome = 'sent')
			and not exists (select from tidemark.decision d where d.seqs @> o.seq and d.route_id = r.id and d.outcome = 'sent')`, open), "0")
		eventually(t, db, `select (watermark_id::bigint >= (select max(seq) from tidemark.outbox))::text from tidemark.worker_cursor where worker = 'default'`, "true")
		for i, name := range []string{"app", "free"} {
			if after := ts[name].ofDomain(closed); !slices.Equal(after, before[i]) {
				t.Fatalf("%s: %v arrived of %s while its gate was closed", name, after[len(before[i]):], closed)
			}
		}
		exec(t, db, `select tidemark.gate_set($1, true)`, "domain."+closed+".enabled")
	}
	eventually(t, db, settled, "true")
	for _, name := range []string{"app", "free"} {
		all := append(ts[name].ofDomain("a"), ts[name].ofDomain("b")...)
		slices.Sort(all)
		want := texts(t, db, `select seq::text from tidemark.outbox where domain in ('a', 'b') order by seq`)
		if len(all) != len(want) || len(slices.Compact(all)) != len(want) {
			t.Errorf("%s: %d arrived of %d", name, len(all), len(want))
		}
	}
	last := map[string]int64{}
	for _, d := range ts["app"].wait(t, 0) {
		if key := d.Event.Key; key != "" {
			if d.Event.Seq < last[key] {
				t.Errorf("%s: %d came after %d", key, d.Event.Seq, last[key])
			}
			last[key] = d.Event.Seq
		}
	}
}
