package consoleserver

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of the console, for /metrics.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	signIns  *prometheus.CounterVec
}

func newMetrics() metrics {
	return metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_console_requests_total", Help: "Requests of people and programs that have signed in, by page or operation of the API, and status.",
		}, []string{"page", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidemark_console_seconds", Help: "Time of an answer, by page or operation of the API.", Buckets: []float64{0.01, 0.05, 0.2, 1, 5, 30},
		}, []string{"page"}),
		signIns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_console_sign_ins_total", Help: "Sign-ins that the audit has, by outcome: signed in, refused, signed out.",
		}, []string{"outcome"}),
	}
}

func (m metrics) observe(page string, status int, took time.Duration) {
	m.requests.WithLabelValues(page, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(page).Observe(took.Seconds())
}

// counting counts what note records.
func (m metrics) counting(note func(context.Context, string, string, string) error) func(context.Context, string, string, string) error {
	return func(ctx context.Context, person, outcome, detail string) error {
		m.signIns.WithLabelValues(outcome).Inc()
		return note(ctx, person, outcome, detail)
	}
}

func (m metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.seconds, m.signIns}
}
