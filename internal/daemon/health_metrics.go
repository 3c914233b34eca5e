package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// health reads the state of the whole installation from the database at each scrape, whichever process runs what.
type health struct {
	db *store.DB

	// Only one scrape reads at a time, and concurrent ones share its answer: the page is open to anyone who can reach it, and
	// must not use up the workers' connections.
	asked *singleflight.Group
}

func newHealth(db *store.DB) health { return health{db, &singleflight.Group{}} }

// mostSeries bounds the series of a metric with a label that users name without limit. The worst come first.
const mostSeries = 1000

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tidemark_"+name, help, labels, nil)
}

// The metrics of the database. A route, cursor or executor is in the label that names it.
var (
	healthOf = desc("health", "1 for each part of tidemark.queue_health, with its status (ok, warn, bad or unknown). At most 1,000 series, the worst.",
		"kind", "name", "status")
	findingOpen = desc("finding_open", "Occurrences of each open finding. At most 1,000 series, the worst.", "kind", "subject", "severity")

	behind = desc("worker_behind", "Numbers of the log that the worker has not passed yet. A table's rows are not counted.", ofCursor...)
	lag    = desc("behind_seconds",
		"Age of the oldest committed event, or row of a table, that the worker has not read; 0 if it has read all. Missing if unknown.", ofCursor...)
	holes    = desc("worker_holes", "Numbers below the watermark that are not visible yet.", ofCursor...)
	lastRun  = desc("worker_last_run_timestamp_seconds", "When a pass was last recorded.", ofCursor...)
	rowsLeft = desc("pending_rows", "Rows of a table that are still to be tried.", ofCursor...)
	deadRows = desc("dead_letter_rows_open", "Dead letters of a table's rows that are not resolved.", ofCursor...)

	pending = desc("pending", "Deliveries of the route that are still to be tried, 10,000 at most. Missing: none.", "route")
	overdue = desc("pending_overdue_seconds", "How long the next of these deliveries is overdue. Missing: none is due.", "route")
	dead    = desc("dead_letters_open", "Dead letters of the route that are not resolved, 10,000 at most. Missing: none.", "route")

	parked = desc("command_parked", "Commands that wait for another attempt, and those behind them, whichever process tries them.", "service")

	up = desc("database_up", "1 where the database answered this scrape, 0 where it did not: then its other metrics are missing.")

	beatAge = desc("heartbeat_age_seconds", "Age of the executor's last beat, or of its registration.", "executor")
	gate    = desc("gate_open", "1 where the gate is open, 0 where it is closed.", "gate")
	stage   = desc("stage_live", "1 where the stage is live.")
	armed   = desc("armed", "1 where this database may deliver: its stage is live, and it is no copy.")

	unregistered = desc("emit_unregistered_total",
		"Emits that stored nothing, since the type is not registered or not enabled. At most 1,000 series; those past them have the labels *.",
		"domain", "type", "role")
)

// Describe names the metrics.
func (h health) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		up, healthOf, findingOpen, behind, lag, holes, lastRun, rowsLeft, deadRows, pending, overdue, dead, parked, beatAge, gate, stage, armed, unregistered,
	} {
		to <- d
	}
}

// answer is the state that a scrape reads from the database.
type answer struct {
	parts        []store.QueueHealth
	workers      []store.Health
	gates        []store.Gate
	stage        store.Stage
	unregistered []store.UnregisteredEmits
	parked       map[string]int64 // commands by service
	err          error
}

func (h health) ask() answer {
	got, _, _ := h.asked.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		var a answer
		for _, read := range []func() error{
			func() (err error) { a.parts, err = h.db.QueueHealth(ctx); return err },
			func() (err error) { a.workers, err = h.db.WorkerHealth(ctx); return err },
			func() (err error) { a.gates, err = h.db.Gates(ctx); return err },
			func() (err error) { a.stage, err = h.db.Stage(ctx); return err },
			func() (err error) { a.unregistered, err = h.db.UnregisteredEmits(ctx); return err },
			func() (err error) { a.parked, err = h.db.CommandsParked(ctx); return err },
		} {
			if a.err = read(); a.err != nil {
				break
			}
		}
		return a, nil
	})
	return got.(answer)
}

// Collect sends the metrics of the database: all, or none. A part of them would look as if the rest had recovered.
func (h health) Collect(to chan<- prometheus.Metric) {
	a := h.ask()
	to <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, is(a.err == nil))
	if a.err != nil {
		to <- prometheus.NewInvalidMetric(healthOf, a.err)
		return
	}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		for i, label := range labels {
			labels[i] = strings.ToValidUTF8(label, "\uFFFD") // emitters name some; invalid UTF-8 would panic
		}
		to <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		send(d, prometheus.GaugeValue, value, labels...)
	}
	collectParts(a.parts, gauge)
	collectWorkers(a.workers, gauge)
	for _, g := range a.gates {
		gauge(gate, is(g.Open), g.Gate)
	}
	for service, n := range a.parked {
		gauge(parked, float64(n), service)
	}
	gauge(stage, is(a.stage.Stage == "live"))
	gauge(armed, is(a.stage.Armed))
	for _, u := range a.unregistered {
		send(unregistered, prometheus.CounterValue, float64(u.Emits), u.Domain, u.Type, u.Role)
	}
}

func is(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// collectParts sends what tidemark.queue_health says of routes, executors and findings, and the status of every part.
func collectParts(parts []store.QueueHealth, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	worst := []string{"bad", "unknown", "warn", "ok"}
	slices.SortStableFunc(parts, func(a, b store.QueueHealth) int {
		return cmp.Compare(slices.Index(worst, a.Status), slices.Index(worst, b.Status))
	})
	parted, findings := 0, 0
	for _, p := range parts {
		if p.Kind == "finding" {
			if findings++; findings <= mostSeries {
				kind, subject, _ := strings.Cut(p.Name, " ")
				var of struct{ Severity string }
				_ = json.Unmarshal(p.Numbers, &of) // the view wrote it
				gauge(findingOpen, number(p.Count), kind, subject, of.Severity)
			}
			continue
		}
		if parted++; parted <= mostSeries {
			gauge(healthOf, 1, p.Kind, p.Name, p.Status)
		}
		switch p.Kind {
		case "pending":
			gauge(pending, number(p.Count), p.Name)
			if p.AgeSeconds != nil {
				gauge(overdue, number(p.AgeSeconds), p.Name)
			}
		case "dead_letter_event":
			gauge(dead, number(p.Count), p.Name)
		case "heartbeat":
			gauge(beatAge, number(p.AgeSeconds), p.Name)
		}
	}
}

func number(n *int64) float64 {
	if n == nil {
		return 0
	}
	return float64(*n)
}

func collectWorkers(workers []store.Health, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	for _, w := range workers {
		of := []string{w.Worker, w.Source, strconv.Itoa(w.Shard)}
		if w.Behind != nil {
			gauge(behind, number(w.Behind), of...)
		}
		if w.BehindSeconds != nil {
			gauge(lag, number(w.BehindSeconds), of...)
		}
		gauge(holes, float64(w.Holes), of...)
		if w.Source != "outbox" {
			gauge(rowsLeft, float64(w.Pending), of...)
			gauge(deadRows, float64(w.OpenDeadLetters), of...)
		}
		if w.LastRunAt != nil {
			gauge(lastRun, float64(w.LastRunAt.UnixMilli())/1000, of...)
		}
	}
}
