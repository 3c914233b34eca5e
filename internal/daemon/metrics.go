package daemon

import (
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

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
	latency    *prometheus.HistogramVec
	breaker    *prometheus.GaugeVec

	traces   *traces // of deliveries, which are observed here too
	paces            // of deliveries too
	commands *commandMetrics
}

// ofCursor are the labels of a cursor's metrics. A cursor of the log has source outbox and
// shard 0, where it has no others; a worker of tables has a cursor for each source and shard.
var ofCursor = []string{"worker", "source", "shard"}

func newMetrics(r prometheus.Registerer) *metrics {
	buckets := prometheus.ExponentialBuckets(0.0005, 2, 16)  // half a millisecond to 16 s
	latencies := prometheus.ExponentialBuckets(0.001, 4, 13) // a millisecond to 4.7 hours
	m := &metrics{
		holds: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidemark_worker_holds_lease", Help: "1 while this process holds the lease of the cursor.",
		}, ofCursor),
		tenures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_worker_claims_total", Help: "Times that this process claimed the cursor.",
		}, ofCursor),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_events_read_total", Help: "Events of the log, or rows of a table, that were read. Each shard reads all.",
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
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidemark_commit_to_delivery_seconds",
			Help: "Time from the emit of an event, by the database's clock, to its delivery, by this host's. Replays are not counted.", Buckets: latencies,
		}, []string{"route"}),
		breaker: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidemark_breaker_open", Help: "1 while this process leaves the target of the route alone, since five deliveries in a row failed.",
		}, []string{"route"}),
		commands: newCommandMetrics(),
	}
	r.MustRegister(m.holds, m.tenures, m.events, m.reading, m.settling, m.settled, m.deliveries, m.delivering, m.latency, m.breaker)
	return m
}

// registerPool registers the metrics of the workers' connections.
func registerPool(r prometheus.Registerer, pool *pgxpool.Pool, slots *worker.Slots) {
	for state, count := range map[string]func(*worker.Slots) int{
		"taken": (*worker.Slots).Taken, "waiting": (*worker.Slots).Waiting, "max": (*worker.Slots).Most,
	} {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "tidemark_pool_slots",
			Help:        "Passes that run handlers in the database, functions of commands or SQL targets, by state: taken, waiting for a connection, and the limit max.",
			ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return float64(count(slots)) }))
	}
	for state, count := range map[string]func(*pgxpool.Stat) int32{
		"acquired": (*pgxpool.Stat).AcquiredConns, "idle": (*pgxpool.Stat).IdleConns, "opening": (*pgxpool.Stat).ConstructingConns,
		"max": (*pgxpool.Stat).MaxConns,
	} {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tidemark_pool_connections", Help: "Connections of the workers' pool by state: acquired, idle, opening, and the limit max.",
			ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return float64(count(pool.Stat())) }))
	}
	r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "tidemark_pool_wait_seconds_total", Help: "Time that was spent waiting for a connection of the workers' pool.",
	}, func() float64 { return pool.Stat().AcquireDuration().Seconds() }))
}

// outcomes are the names of what a target made of a delivery.
var outcomes = map[sink.Status]string{
	sink.Delivered: "delivered", sink.Retry: "retry", sink.Permanent: "permanent", sink.Unknown: "unknown",
}

// Delivered records the results of a delivery. The deliverers of all workers call it.
func (m *metrics) Delivered(route string, sent []sink.Delivery, results []sink.Result, took time.Duration) {
	m.traces.delivered(route, sent, results, took)
	m.delivering.WithLabelValues(route).Observe(took.Seconds())
	m.add(route, took)
	latency, now := m.latency.WithLabelValues(route), time.Now()
	var counts [5]int
	for i, r := range results {
		counts[min(max(int(r.Status), 0), 4)]++
		if r.Status == sink.Delivered && !sent[i].Replay {
			latency.Observe(max(now.Sub(sent[i].Event.CreatedAt), 0).Seconds())
		}
	}
	for outcome, name := range outcomes {
		if n := counts[outcome]; n > 0 {
			m.deliveries.WithLabelValues(route, name).Add(float64(n))
		}
	}
}

// Paused records whether the breaker of the route is open.
func (m *metrics) Paused(route string, paused bool) {
	m.breaker.WithLabelValues(route).Set(is(paused))
}

// of is the Observer of a worker's cursor.
func (m *metrics) of(name, source string, shard int) worker.Observer {
	cursor := []string{name, source, strconv.Itoa(shard)} // the values of ofCursor
	o := worker.Observer{
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
	if m.traces != nil {
		o.Decided = func(items []store.Item, began time.Time, took time.Duration) {
			m.traces.decided(name, items, began, took)
		}
	}
	return o
}
