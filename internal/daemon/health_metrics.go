package daemon

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// health reads the state of the whole installation from the database at each scrape, whichever process runs what.
type health struct {
	db      *store.DB
	watched *watched

	// Only one scrape reads at a time, and concurrent ones share its answer: the page is open to anyone who can reach it, and
	// must not use up the workers' connections.
	asked *singleflight.Group
}

func newHealth(db *store.DB, w *watched) health { return health{db, w, &singleflight.Group{}} }

// mostSeries bounds the series of a metric with a label that users name without limit. The worst come first.
const mostSeries = 1000

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tidemark_"+name, help, labels, nil)
}

// The metrics of the database. A route, cursor or executor is in the label that names it.
var (
	healthOf = desc("health", "1 for each item of tidemark.queue_health, with its status (ok, warn, bad or unknown). At most 1,000 series, the worst.",
		"kind", "name", "status")
	findingOpen = desc("finding_open",
		"How often each open cause of trouble has been seen, as the watch told it; kind is the word for the cause. At most 1,000 series, the worst.",
		"kind", "subject", "severity")
	watchAge = desc("watch_age_seconds", "Time since the watch last answered this process, or since it began. It grows while the watch cannot look, and tidemark_finding_open is as old.")

	behind = desc("worker_behind", "Numbers of the log that the worker has not passed yet. A table's rows are not counted.", ofCursor...)
	lag    = desc("behind_seconds",
		"Age of the oldest committed event, or row of a table, that the worker has not read; 0 if it has read all. Missing if unknown.", ofCursor...)
	holes    = desc("worker_holes", "Numbers below the watermark that are not visible yet.", ofCursor...)
	lastRun  = desc("worker_last_run_timestamp_seconds", "When a pass was last recorded. It grows while the worker lives and is not closed.", ofCursor...)
	rowsLeft = desc("pending_rows", "Rows of a table that are still to be tried, 10,000 at most.", ofCursor...)
	deadRows = desc("dead_letter_rows_open", "Dead letters of a table's rows that are not resolved, 10,000 at most.", ofCursor...)

	pending = desc("pending", "Deliveries of the route that are still to be tried, 10,000 at most. Missing: none.", "route")
	overdue = desc("pending_overdue_seconds", "How long the next of these deliveries is overdue. Missing: none is due.", "route")
	dead    = desc("dead_letters_open", "Dead letters of the route that are not resolved, 10,000 at most. Missing: none.", "route")

	parked = desc("command_parked", "Commands that wait for another attempt, and those behind them, whichever process tries them.", "service")

	up = desc("database_up", "1 where the database answered this scrape, 0 where it did not: then its other metrics are missing.")

	beatAge = desc("heartbeat_age_seconds", "Age of the executor's last beat, or of its registration.", "executor")
	gate    = desc("gate_open", "1 where the gate is open, 0 where it is closed.", "gate")
	held    = desc("route_paused", "1 for each route that an operator has paused. Missing: it is not.", "route")
	stage   = desc("stage_live", "1 where the stage is live.")
	armed   = desc("armed", "1 where this database may deliver: its stage is live, and it is no copy.")

	unregistered = desc("emit_unregistered_total",
		"Emits that stored nothing, since the type is not registered or not enabled. A series begins with the first such emits, and "+
			"disappears once the type is enabled, or a day after the last. At most 1,000 series; those past them have the labels *.",
		"domain", "type", "role")
)

// Describe names the metrics.
func (h health) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		up, healthOf, findingOpen, watchAge, behind, lag, holes, lastRun, rowsLeft, deadRows, pending, overdue, dead, parked, beatAge, gate, held, stage, armed, unregistered,
	} {
		to <- d
	}
}

// answer is what a scrape reads from the database.
type answer struct {
	store.Scrape
	err error
}

func (h health) ask() answer {
	got, _, _ := h.asked.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		var a answer
		a.Scrape, a.err = h.db.Scrape(ctx)
		return a, nil
	})
	return got.(answer)
}

// Collect sends the metrics of the database: all, or none. A part of them would look as if the rest had recovered.
func (h health) Collect(to chan<- prometheus.Metric) {
	a := h.ask()
	to <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, is(a.err == nil))
	to <- prometheus.MustNewConstMetric(watchAge, prometheus.GaugeValue, h.watched.age().Seconds())
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
	collectItems(a.Items, gauge)
	collectCursors(a.Scrape, gauge)
	for _, c := range a.Causes[:min(len(a.Causes), mostSeries)] {
		gauge(findingOpen, float64(c.Count), c.Cause, c.Subject, c.Severity)
	}
	for name, open := range a.Gates {
		gauge(gate, is(open), name)
	}
	for _, route := range a.Paused {
		gauge(held, 1, route)
	}
	for service, n := range a.Parked {
		gauge(parked, float64(n), service)
	}
	gauge(stage, is(a.Live))
	gauge(armed, is(a.Armed))
	for _, u := range a.Unregistered {
		send(unregistered, prometheus.CounterValue, float64(u.Emits), u.Domain, u.Type, u.Role)
	}
}

func is(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// collectItems sends what tidemark.queue_health says of routes and executors, and the status of every item, worst first.
func collectItems(items []store.ScrapedItem, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	for n, i := range items {
		if n < mostSeries {
			gauge(healthOf, 1, i.Kind, i.Name, i.Status)
		}
		switch i.Kind {
		case "pending":
			gauge(pending, number(i.Count), i.Name)
			if i.AgeSeconds != nil {
				gauge(overdue, number(i.AgeSeconds), i.Name)
			}
		case "dead_letter_event":
			gauge(dead, number(i.Count), i.Name)
		case "heartbeat":
			gauge(beatAge, number(i.AgeSeconds), i.Name)
		}
	}
}

func number(n *int64) float64 {
	if n == nil {
		return 0
	}
	return float64(*n)
}

// collectCursors sends how far each cursor is, and of a table how many of its rows failed, 10,000 at most.
func collectCursors(s store.Scrape, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	failed := map[string]float64{}
	for _, i := range s.Items {
		failed[i.Kind+" "+i.Name] = number(i.Count)
	}
	for _, c := range s.Cursors {
		of := []string{c.Worker, c.Source, strconv.Itoa(c.Shard)}
		if c.Events != nil {
			gauge(behind, number(c.Events), of...)
		}
		if c.Seconds != nil {
			gauge(lag, number(c.Seconds), of...)
		}
		gauge(holes, float64(c.Holes), of...)
		if c.Source != "outbox" {
			name := strings.Join(of, "/")
			gauge(rowsLeft, failed["pending_row "+name], of...)
			gauge(deadRows, failed["dead_letter_row "+name], of...)
		}
		if c.LastRunAt != nil {
			gauge(lastRun, float64(c.LastRunAt.UnixMilli())/1000, of...)
		}
	}
}
