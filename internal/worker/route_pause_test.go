package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/sink"
)

// A pause lets what is under way end, and keeps back what comes behind it, of fresh events, of a backlog and of retries; another route
// goes on. No attempt is used up. When the route is resumed, all of it goes at once, in the order of keys.
func TestRoutePausedInMidDelivery(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key", "concurrency": 2, "timeout": "10 minutes", "retry_policy": {"base_seconds": 0.01, "jitter": 0}`)
	ts["free"] = newTarget()
	route(t, db, "free", "")
	began, end := make(chan struct{}, 1), make(chan struct{})
	ts["app"].answers(func(ctx context.Context, d sink.Delivery) sink.Result {
		switch {
		case d.Event.Key == "c":
			return sink.Result{Status: sink.Retry, Code: "http_503", Detail: "not now"}
		case d.Event.Seq == 1:
			began <- struct{}{}
			select {
			case <-end:
			case <-ctx.Done():
				t.Error("what was under way was cut off")
			}
		}
		return sink.Result{Status: sink.Delivered}
	})
	emit(t, db, "a1", "a2", "c1")
	run(t, db, ts)
	<-began
	eventually(t, db, `select (error_count > 2)::text from tidemark.pending where seq = 3`, "true")
	exec(t, db, `select tidemark.route_pause('app', 'test')`)
	noted(t, db)
	failed := texts(t, db, `select error_count::text from tidemark.pending where seq = 3`)[0]
	close(end)
	emit(t, db, "a3", "b1", "c2", "b2")
	ts["free"].wait(t, 7)
	eventually(t, db, `select concat_ws(' ', item, error_count) from tidemark.waiting where route_code = 'app' order by item`,
		"2 0", "3 "+failed, "4 0", "5 0", "6 0", "7 0")
	noted(t, db)
	if got := arrivedAs(ts["app"].wait(t, 1)); got != "a1" {
		t.Errorf("%s arrived while the route was paused", got)
	}
	eventually(t, db, `select concat_ws(' ', item, error_count) from tidemark.waiting where item = '3'`, "3 "+failed)

	ts["app"].answers(nil)
	exec(t, db, `select tidemark.route_resume('app', 'test')`)
	eventually(t, db, settled, "true")
	of := map[string]string{}
	for _, d := range ts["app"].wait(t, 7) {
		of[d.Event.Key] += arrivedAs([]sink.Delivery{d}) + " "
	}
	if got := fmt.Sprint(of); got != "map[a:a1 a2 a3  b:b1 b2  c:c1 c2 ]" {
		t.Errorf("got %s", got)
	}
}

// In the middle of a backlog too, no delivery begins later than a second after the pause.
func TestRoutePauseWithinASecond(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	var latest atomic.Int64
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result {
		latest.Store(time.Now().UnixNano())
		time.Sleep(time.Millisecond)
		return sink.Result{Status: sink.Delivered}
	})
	exec(t, db, `select count(tidemark.emit_strict('test', 'tick', jsonb_build_object('n', n::text), key => (n % 100)::text)) from generate_series(1, 5000) n`)
	run(t, db, ts)
	for try := 1; ; try++ { // a busy machine makes any of them slow, and not all
		ts["app"].wait(t, ts["app"].count()+50)
		paused := time.Now()
		exec(t, db, `select tidemark.route_pause('app', 'test')`)
		noted(t, db)
		eventually(t, db, `select (watermark_id::bigint >= 5000)::text from tidemark.worker_cursor where worker = 'default'`, "true")
		took := time.Unix(0, latest.Load()).Sub(paused)
		if waits := texts(t, db, `select count(*)::text from tidemark.pending`)[0]; waits == "0" {
			t.Fatal("the backlog is over before the pause")
		}
		if took <= time.Second {
			t.Logf("the last delivery began %s after the pause", took)
			break
		} else if try == 5 {
			t.Fatalf("none of %d took less than a second, the last one %s", try, took)
		}
		exec(t, db, `select tidemark.route_resume('app', 'test')`)
	}
	exec(t, db, `select tidemark.route_resume('app', 'test')`)
	eventually(t, db, settled, "true")
	if n := ts["app"].count(); n != 5000 {
		t.Errorf("%d arrived", n)
	}
}

// A route with a rate does not spend it on events that it may not deliver: they wait at once, and the page with them does not.
func TestRoutePauseWithARate(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "options": {"rate_per_second": 0.001}`)
	exec(t, db, `select tidemark.route_pause('app', 'test')`)
	run(t, db, ts)
	for n := range 20 {
		emit(t, db, fmt.Sprintf("a%d", n))
	}
	eventually(t, db, `select concat_ws(' ', last_error, count(*)) from tidemark.pending group by last_error`, "gate_closed 20")
	exec(t, db, `select tidemark.route_set('app', '{"options": {}}'), tidemark.route_resume('app', 'test')`)
	ts["app"].wait(t, 20)
	eventually(t, db, settled, "true")
}

// A pause is in the database: it outlasts the instance, and another one obeys it from its first page on.
func TestRoutePauseOutlastsTheWorker(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	first := run(t, db, ts)
	emit(t, db, "a1")
	ts["app"].wait(t, 1)
	exec(t, db, `select tidemark.route_pause('app', 'test')`)
	noted(t, db)
	emit(t, db, "a2", "b1")
	eventually(t, db, `select count(*)::text from tidemark.pending`, "2")
	first.stop()
	emit(t, db, "a3", "b2")
	run(t, db, ts)
	eventually(t, db, `select count(*)::text from tidemark.pending`, "4")
	noted(t, db)
	if n := ts["app"].count(); n != 1 {
		t.Errorf("%d arrived", n)
	}
	exec(t, db, `select tidemark.route_resume('app', 'test')`)
	ts["app"].wait(t, 5)
	eventually(t, db, settled, "true")
}

// Pauses and resumes of routes under workers that stop, lose their lease and begin again: nothing begins while a route is paused, the
// other one goes on, and in the end everything has arrived, each key in order; once, where no lease was lost.
func TestRoutePausesAtRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	db, ts := setup(t, `, "ordering": "key", "retry_policy": {"base_seconds": 0.01, "max_seconds": 0.05, "max_attempts": 100}`)
	ts["free"] = newTarget()
	route(t, db, "free", "")
	for name := range ts {
		ts[name].answers(func(_ context.Context, d sink.Delivery) sink.Result {
			if (d.Event.Seq+int64(d.Attempt))%5 == 0 {
				return sink.Result{Status: sink.Retry, Code: "http_503", Detail: "not now"}
			}
			return sink.Result{Status: sink.Delivered}
		})
	}
	fenced := false
	i := run(t, db, ts)
	some := func() {
		for range 1 + r.IntN(30) {
			emit(t, db, []string{"a", "b", "c"}[r.IntN(3)]+"0")
		}
		switch r.IntN(5) {
		case 0:
			i.stop()
			i = run(t, db, ts)
		case 1:
			fenced = true
			exec(t, db, `update tidemark.heartbeat set lease_epoch = lease_epoch + 1 where executor_id = 'default/outbox/0'`)
		}
	}
	const caughtUp = `select (watermark_id::bigint >= (select max(seq) from tidemark.outbox))::text from tidemark.worker_cursor where worker = 'default'`
	for range 8 {
		some()
		paused, other := "app", "free"
		if r.IntN(2) == 0 {
			paused, other = other, paused
		}
		exec(t, db, `select tidemark.route_pause($1, 'test')`, paused)
		some()
		noted(t, db)
		before := ts[paused].count()
		some()
		eventually(t, db, caughtUp, "true")
		eventually(t, db, fmt.Sprintf(`select count(*)::text from tidemark.pending p join tidemark.outbound_route r on r.id = p.route_id where r.route_code = '%s'`, other), "0")
		if after := ts[paused].count(); after != before {
			t.Fatalf("%d deliveries of %s while it was paused", after-before, paused)
		}
		exec(t, db, `select tidemark.route_resume($1, 'test')`, paused)
	}
	eventually(t, db, settled, "true")
	want := texts(t, db, `select seq::text from tidemark.outbox where domain = 'test' order by seq`)
	for name := range ts {
		seen, last := map[int64]int{}, map[string]int64{}
		for _, d := range ts[name].wait(t, 0) {
			if seen[d.Event.Seq]++; seen[d.Event.Seq] > 1 {
				continue
			}
			if name == "app" && d.Event.Seq < last[d.Event.Key] {
				t.Errorf("%s: %d came after %d", d.Event.Key, d.Event.Seq, last[d.Event.Key])
			}
			last[d.Event.Key] = d.Event.Seq
		}
		if len(seen) != len(want) {
			t.Errorf("%s: %d arrived of %d", name, len(seen), len(want))
		}
		twice := 0
		for _, n := range seen {
			twice += n - 1
		}
		if !fenced && twice > 0 {
			t.Errorf("%s: %d arrived twice, although no lease was lost", name, twice)
		}
	}
}
