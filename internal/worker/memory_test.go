package worker_test

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/sink"
)

// peak samples what the heap holds, by each collection, until stop, which returns the most above what it was. Garbage is left out: how much of it
// there is depends on how busy the machine is.
func peak(t *testing.T) (stop func() int64) {
	t.Helper()
	heap := func() int64 {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	base, most := heap(), int64(0)
	ctx, cancel := context.WithCancel(context.Background())
	var sampling sync.WaitGroup
	sampling.Go(func() {
		every := time.NewTicker(200 * time.Microsecond)
		defer every.Stop()
		for ctx.Err() == nil {
			most = max(most, heap()-base)
			<-every.C
		}
	})
	return func() int64 { cancel(); sampling.Wait(); return most }
}

// A worker holds less than three times the budget of a page, however much waits in large events: fresh ones and retries. The test has no other beside it, since it measures the process.
func TestMemory(t *testing.T) { //nolint:paralleltest // see above
	const budget = 8 << 20
	db, ts := setup(t, `, "concurrency": 2, "retry_policy": {"base_seconds": 0.2, "max_seconds": 1, "max_attempts": 100}`)
	exec(t, db, `update tidemark.setting set value = '0' where key = 'emit.payload_limit'`)
	exec(t, db, `update tidemark.setting set value = $1::text where key = 'batch.max_bytes'`, "8388608")
	ts["app"].answers(func(_ context.Context, d sink.Delivery) sink.Result {
		if d.Attempt == 1 && d.Event.Seq%2 == 0 {
			return sink.Result{Status: sink.Retry, Code: "http_503", Detail: "not now"}
		}
		return sink.Result{Status: sink.Delivered}
	})
	ts["app"].forgets = true
	heavy(t, db, 200, 300_000, "")
	most := peak(t)
	run(t, db, ts, func(o *worker.Options) { o.Lease = time.Minute })
	ts["app"].wait(t, 200)
	eventually(t, db, settled, "true")
	got := most()
	t.Logf("%.1f MiB of 60 MB, at a budget of %d MiB", float64(got)/(1<<20), budget>>20)
	if got > 3*budget {
		t.Errorf("%d bytes, more than three times the budget of %d", got, budget)
	}
}
