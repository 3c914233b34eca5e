package daemon

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// commandMetrics count what became of commands. Labels are what is registered, and reason codes: no text of a record.
type commandMetrics struct {
	seconds    *prometheus.HistogramVec
	total      *prometheus.CounterVec
	duplicates *prometheus.CounterVec
	letters    *prometheus.CounterVec
}

func newCommandMetrics() *commandMetrics {
	return &commandMetrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidemark_command_seconds", Help: "Time of a command from Kafka, with its claim; of one that failed with its tries.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 18), // to 13 s
		}, []string{"service", "command", "version"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_command_total", Help: "Commands by what became of them, each time that they were tried. Without a service: a record that names no registered command.",
		}, []string{"service", "command", "status", "reason"}),
		duplicates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_command_duplicates_total", Help: "Commands that were asked for before: resent by their producer, or redelivered (the same record).",
		}, []string{"kind"}),
		letters: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_command_dead_letters_total", Help: "Dead letters of commands, by the class of the reason code and the code.",
		}, []string{"class", "reason"}),
	}
}

// command is told of each command, by the consumer.
func (m *metrics) command(o consumer.Outcome) {
	c := m.commands
	status := o.Status
	if strings.HasPrefix(status, "dry_run") {
		status = "dry_run"
	}
	c.total.WithLabelValues(o.Service, o.Command, status, o.Code).Inc()
	switch o.Status {
	case "duplicate":
		c.duplicates.WithLabelValues("resent").Inc()
	case "redelivered":
		c.duplicates.WithLabelValues("redelivered").Inc()
	}
	if o.Took > 0 {
		c.seconds.WithLabelValues(o.Service, o.Command, strconv.Itoa(o.Version)).Observe(o.Took.Seconds())
	}
	if o.Letter {
		class, _, _ := strings.Cut(o.Code, ".")
		c.letters.WithLabelValues(class, o.Code).Inc()
	}
}

func (m *metrics) registerCommands(r *prometheus.Registry, c *consumer.Consumer, db *store.DB) {
	r.MustRegister(m.commands.seconds, m.commands.total, m.commands.duplicates, m.commands.letters, commandState{
		consumer: c, db: db, asked: &singleflight.Group{},
		lag: prometheus.NewDesc("tidemark_command_lag", "Records of a partition that this process reads which were not passed yet, as far as it has heard of them.",
			[]string{"topic", "partition"}, nil),
		parked: prometheus.NewDesc("tidemark_command_parked", "Commands that wait for another attempt, and those behind them, whichever process tries them.", []string{"service"}, nil),
		paused: prometheus.NewDesc("tidemark_command_paused", "1 while a gate, a pause or the stage keeps this process from taking commands.", nil, nil),
	})
}

// commandState is read at each scrape.
type commandState struct {
	consumer            *consumer.Consumer
	db                  *store.DB
	asked               *singleflight.Group // one scrape reads at a time
	lag, parked, paused *prometheus.Desc
}

func (s commandState) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.lag, s.parked, s.paused} {
		to <- d
	}
}

func (s commandState) Collect(to chan<- prometheus.Metric) {
	paused := 0.0
	if s.consumer.Gate() != "" {
		paused = 1
	}
	to <- prometheus.MustNewConstMetric(s.paused, prometheus.GaugeValue, paused)
	for _, p := range s.consumer.Partitions() {
		to <- prometheus.MustNewConstMetric(s.lag, prometheus.GaugeValue, float64(p.Behind), p.Topic, strconv.Itoa(int(p.Partition)))
	}
	got, err, _ := s.asked.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		return s.db.CommandsParked(ctx)
	})
	if err != nil {
		to <- prometheus.NewInvalidMetric(s.parked, err)
		return
	}
	for service, n := range got.(map[string]int64) {
		to <- prometheus.MustNewConstMetric(s.parked, prometheus.GaugeValue, float64(n), service)
	}
}
