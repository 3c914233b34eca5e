package daemon

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/command/consumer"
)

// commandMetrics count what became of commands. Labels are what is registered, and reason codes: no text of a record.
type commandMetrics struct {
	seconds    *prometheus.HistogramVec
	total      *prometheus.CounterVec
	duplicates *prometheus.CounterVec
	letters    *prometheus.CounterVec
}

func newCommandMetrics() *commandMetrics {
	m := &commandMetrics{
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
	for _, reason := range command.Reasons() {
		// From 0, or Prometheus would see no increase by the first forger.
		if class := reason.Class(); class == "identity" {
			m.letters.WithLabelValues(class, string(reason))
		}
	}
	return m
}

// command counts a command; the consumer calls it for each.
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
		c.letters.WithLabelValues(command.Reason(o.Code).Class(), o.Code).Inc()
	}
}

func (m *metrics) registerCommands(r prometheus.Registerer, c *consumer.Consumer) {
	r.MustRegister(m.commands.seconds, m.commands.total, m.commands.duplicates, m.commands.letters, commandState{c})
}

var (
	commandLag = desc("command_lag", "Records of a partition that this process reads which were not passed yet, as far as it has heard of them.",
		"topic", "partition")
	commandPaused = desc("command_paused", "1 while a gate, a pause or the stage keeps this process from taking commands.")
)

// commandState is what the consumer knows at each scrape.
type commandState struct{ *consumer.Consumer }

func (commandState) Describe(to chan<- *prometheus.Desc) {
	to <- commandLag
	to <- commandPaused
}

func (s commandState) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(commandPaused, prometheus.GaugeValue, is(s.Gate() != ""))
	for _, p := range s.Partitions() {
		to <- prometheus.MustNewConstMetric(commandLag, prometheus.GaugeValue, float64(p.Behind), p.Topic, strconv.Itoa(int(p.Partition)))
	}
}
