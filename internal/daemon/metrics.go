package daemon

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/sink"
)

// metrics are Tidemark's metrics on /metrics, next to those of the Go runtime.
type metrics struct {
	holds      *prometheus.GaugeVec
	tenures    *prometheus.CounterVec
	events     *prometheus.CounterVec
	reading    *prometheus.HistogramVec
	settling   *prometheus.HistogramVec
	settled    *prometheus.CounterVec
	deliveries *prometheus.CounterVec
	delivering *prometheus.HistogramVec
}

// ofCursor are the labels of a cursor's metrics. A cursor of the log has source outbox and
// shard 0; a worker of tables has a cursor for each source and shard.
var ofCursor = []string{"worker", "source", "shard"}

func newMetrics(r *prometheus.Registry) *metrics {
	buckets := prometheus.ExponentialBuckets(0.0005, 2, 16) // half a millisecond to 16 s
	m := &metrics{
		holds: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidemark_worker_holds_lease", Help: "1 while this process holds the lease of the cursor.",
		}, ofCursor),
		tenures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_worker_claims_total", Help: "Times that this process claimed the cursor.",
		}, ofCursor),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_events_read_total", Help: "Events of the log, or rows of a table, that were read; of a table each shard reads all.",
		}, ofCursor),
		reading: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidemark_read_seconds", Help: "Time of a read from the log, with the flush before anything leaves; of a table the whole pass.", Buckets: buckets,
		}, ofCursor),
		settling: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidemark_settle_seconds", Help: "Time of a settle: evidence, what is pending, and the cursor, in one transaction; of a table the whole pass.", Buckets: buckets,
		}, ofCursor),
		settled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_results_settled_total", Help: "Results of deliveries that are recorded; rows of a table that were taken.",
		}, ofCursor),
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_deliveries_total", Help: "Deliveries by what the target made of them: delivered, retry, permanent, unknown.",
		}, []string{"route", "outcome"}),
		delivering: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidemark_delivery_seconds", Help: "Time of a call of a sink, which may take many events.", Buckets: buckets,
		}, []string{"route"}),
	}
	r.MustRegister(m.holds, m.tenures, m.events, m.reading, m.settling, m.settled, m.deliveries, m.delivering)
	return m
}

// Delivered records the results of a delivery. The deliverers of all workers call it.
func (m *metrics) Delivered(route string, results []sink.Result, took time.Duration) {
	m.delivering.WithLabelValues(route).Observe(took.Seconds())
	var counts [5]int
	for _, r := range results {
		counts[min(max(int(r.Status), 0), 4)]++
	}
	for outcome, name := range map[sink.Status]string{
		sink.Delivered: "delivered", sink.Retry: "retry", sink.Permanent: "permanent", sink.Unknown: "unknown",
	} {
		if n := counts[outcome]; n > 0 {
			m.deliveries.WithLabelValues(route, name).Add(float64(n))
		}
	}
}

// of is the Observer of a worker's cursor.
func (m *metrics) of(name, source string, shard int) worker.Observer {
	cursor := []string{name, source, strconv.Itoa(shard)} // the values of ofCursor
	return worker.Observer{
		Claimed: func(int64) {
			m.holds.WithLabelValues(cursor...).Set(1)
			m.tenures.WithLabelValues(cursor...).Inc()
		},
		Lost: func(error) { m.holds.WithLabelValues(cursor...).Set(0) },
		Read: func(events int, took time.Duration) {
			m.events.WithLabelValues(cursor...).Add(float64(events))
			m.reading.WithLabelValues(cursor...).Observe(took.Seconds())
		},
		Settled: func(results int, took time.Duration) {
			m.settled.WithLabelValues(cursor...).Add(float64(results))
			m.settling.WithLabelValues(cursor...).Observe(took.Seconds())
		},
	}
}

// health reads the state of all workers from the database at each scrape, whichever process runs them.
type health struct {
	db *store.DB

	// Only one scrape reads at a time, and concurrent ones share its answer: the page is open to anyone who can reach it, and
	// must not use up the workers' connections.
	asked *singleflight.Group

	behind, lag, holes, pending, dead, lastRun, unregistered *prometheus.Desc
}

func newHealth(db *store.DB) health {
	return health{
		db:     db,
		asked:  &singleflight.Group{},
		behind: prometheus.NewDesc("tidemark_worker_behind", "Numbers of the log that the worker has not passed yet. A table's rows are not counted.", ofCursor, nil),
		lag: prometheus.NewDesc("tidemark_worker_behind_seconds",
			"Age of the oldest committed event, or row of a table, that the worker has not read; 0 if it has read all. Missing if unknown.", ofCursor, nil),
		holes:   prometheus.NewDesc("tidemark_worker_holes", "Numbers below the watermark that are not visible yet.", ofCursor, nil),
		pending: prometheus.NewDesc("tidemark_pending", "Deliveries, or rows of a table, that are still to be tried.", ofCursor, nil),
		dead:    prometheus.NewDesc("tidemark_dead_letters_open", "Dead letters that are not resolved.", ofCursor, nil),
		lastRun: prometheus.NewDesc("tidemark_worker_last_run_timestamp_seconds", "When a pass was last recorded.", ofCursor, nil),
		unregistered: prometheus.NewDesc("tidemark_emit_unregistered_total",
			"Emits that stored nothing, since the type is not registered or not enabled. At most 1,000 series; those past them have the labels *.",
			[]string{"domain", "type", "role"}, nil),
	}
}

func (h health) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{h.behind, h.lag, h.holes, h.pending, h.dead, h.lastRun, h.unregistered} {
		to <- d
	}
}

// answer is the state that a scrape reads from the database.
type answer struct {
	workers                     []store.Health
	unregistered                []store.UnregisteredEmits
	workersErr, unregisteredErr error
}

func (h health) ask() answer {
	got, _, _ := h.asked.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		var a answer
		a.workers, a.workersErr = h.db.WorkerHealth(ctx)
		a.unregistered, a.unregisteredErr = h.db.UnregisteredEmits(ctx)
		return a, nil
	})
	return got.(answer)
}

func (h health) Collect(to chan<- prometheus.Metric) {
	a := h.ask()
	h.collectWorkers(a.workers, a.workersErr, to)
	h.collectUnregistered(a.unregistered, a.unregisteredErr, to)
}

func (h health) collectWorkers(workers []store.Health, err error, to chan<- prometheus.Metric) {
	if err != nil {
		to <- prometheus.NewInvalidMetric(h.behind, err)
		return
	}
	for _, w := range workers {
		of := []string{w.Worker, w.Source, strconv.Itoa(w.Shard)}
		values := map[*prometheus.Desc]int64{h.holes: w.Holes, h.pending: w.Pending, h.dead: w.OpenDeadLetters}
		if w.Behind != nil {
			values[h.behind] = *w.Behind
		}
		if w.BehindSeconds != nil {
			values[h.lag] = *w.BehindSeconds
		}
		for desc, value := range values {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), of...)
		}
		if w.LastRunAt != nil {
			to <- prometheus.MustNewConstMetric(h.lastRun, prometheus.GaugeValue, float64(w.LastRunAt.UnixMilli())/1000, of...)
		}
	}
}

func (h health) collectUnregistered(all []store.UnregisteredEmits, err error, to chan<- prometheus.Metric) {
	if err != nil {
		to <- prometheus.NewInvalidMetric(h.unregistered, err)
		return
	}
	for _, u := range all {
		// The names come from emitters; a label with invalid UTF-8 would panic.
		labels := []string{u.Domain, u.Type, u.Role}
		for i, label := range labels {
			labels[i] = strings.ToValidUTF8(label, "\uFFFD")
		}
		to <- prometheus.MustNewConstMetric(h.unregistered, prometheus.CounterValue, float64(u.Emits), labels...)
	}
}
