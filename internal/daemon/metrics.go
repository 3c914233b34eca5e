package daemon

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemarkhq/tidemark/internal/postgres"
	"github.com/tidemarkhq/tidemark/sink"
)

// metrics are what /metrics shows beside the runtime's.
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

func newMetrics(r *prometheus.Registry) *metrics {
	buckets := prometheus.ExponentialBuckets(0.0005, 2, 16) // half a millisecond to 16 s
	m := &metrics{
		holds: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidemark_worker_holds_lease", Help: "1 while this process holds the lease of the worker.",
		}, []string{"worker"}),
		tenures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_worker_claims_total", Help: "Times that this process claimed the worker's cursor.",
		}, []string{"worker"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_events_read_total", Help: "Events of the log that the worker has read.",
		}, []string{"worker"}),
		reading: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidemark_read_seconds", Help: "Time of a read from the log, with the flush before anything leaves.", Buckets: buckets,
		}, []string{"worker"}),
		settling: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidemark_settle_seconds", Help: "Time of a settle: evidence, what is pending, and the cursor, in one transaction.", Buckets: buckets,
		}, []string{"worker"}),
		settled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_results_settled_total", Help: "Results of deliveries that are recorded.",
		}, []string{"worker"}),
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

// Delivered is told by the deliverers of all workers.
func (m *metrics) Delivered(route string, results []sink.Result, took time.Duration) {
	m.delivering.WithLabelValues(route).Observe(took.Seconds())
	var counts [5]int
	for _, r := range results {
		counts[min(max(int(r.Outcome), 0), 4)]++
	}
	for outcome, name := range map[sink.Outcome]string{
		sink.Delivered: "delivered", sink.Retry: "retry", sink.Permanent: "permanent", sink.Unknown: "unknown",
	} {
		if n := counts[outcome]; n > 0 {
			m.deliveries.WithLabelValues(route, name).Add(float64(n))
		}
	}
}

// workerMetrics is the worker's Observer.
type workerMetrics struct {
	*metrics
	worker string
}

func (m workerMetrics) Claimed(int64) {
	m.holds.WithLabelValues(m.worker).Set(1)
	m.tenures.WithLabelValues(m.worker).Inc()
}

func (m workerMetrics) Lost(error) { m.holds.WithLabelValues(m.worker).Set(0) }

func (m workerMetrics) Read(events int, took time.Duration) {
	m.events.WithLabelValues(m.worker).Add(float64(events))
	m.reading.WithLabelValues(m.worker).Observe(took.Seconds())
}

func (m workerMetrics) Settled(results int, took time.Duration) {
	m.settled.WithLabelValues(m.worker).Add(float64(results))
	m.settling.WithLabelValues(m.worker).Observe(took.Seconds())
}

// health asks the database at each scrape how its workers are, whoever runs them.
type health struct {
	db *postgres.DB

	behind, holes, pending, dead, lastRun *prometheus.Desc
}

func newHealth(db *postgres.DB) health {
	worker := []string{"worker"}
	return health{
		db:      db,
		behind:  prometheus.NewDesc("tidemark_worker_behind", "Numbers of the log that the worker has not passed yet.", worker, nil),
		holes:   prometheus.NewDesc("tidemark_worker_holes", "Numbers below the worker's watermark that it still looks out for.", worker, nil),
		pending: prometheus.NewDesc("tidemark_pending", "Deliveries of the worker that are still to be made.", worker, nil),
		dead:    prometheus.NewDesc("tidemark_dead_letters_open", "Dead letters of the worker that nobody has resolved.", worker, nil),
		lastRun: prometheus.NewDesc("tidemark_worker_last_run_timestamp_seconds", "When the worker last recorded a pass.", worker, nil),
	}
}

func (h health) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{h.behind, h.holes, h.pending, h.dead, h.lastRun} {
		to <- d
	}
}

func (h health) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	workers, err := h.db.WorkerHealth(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(h.behind, err)
		return
	}
	for _, w := range workers {
		if w.Source != "outbox" {
			continue // a worker of tables has many cursors, and the metrics have no label for them
		}
		for desc, value := range map[*prometheus.Desc]int64{h.behind: *w.Behind, h.holes: w.Holes, h.pending: w.Pending, h.dead: w.OpenDeadLetters} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), w.Worker)
		}
		if w.LastRunAt != nil {
			to <- prometheus.MustNewConstMetric(h.lastRun, prometheus.GaugeValue, float64(w.LastRunAt.UnixMilli())/1000, w.Worker)
		}
	}
}
