// Command grafana writes the dashboards of this folder: go run ./deploy/grafana. They are Grafana's dashboard JSON model
// (https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/), of a schema version that
// Grafana 9 and later read.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	folder := "deploy/grafana"
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	for name, d := range dashboards() {
		text, err := render(d)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o644) //nolint:gosec // to be read by all
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "grafana:", err)
			os.Exit(1)
		}
	}
}

func render(d dashboard) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(d)
	return text.Bytes(), err
}

// dashboards returns the dashboards by the names of their files.
func dashboards() map[string]dashboard {
	return map[string]dashboard{"tidemark-state.json": state(), "tidemark-flow.json": flow()}
}

// state is what an operator looks at when an alert comes: what is wrong, since when, and what waits.
func state() dashboard {
	l := layout{}
	no, yes := func(text string) word { return word{Text: text, Color: "red"} }, func(text string) word { return word{Text: text, Color: "green"} }
	l.row(4,
		l.stat("Causes that stop work", "Open causes of severity high or critical. tidemark doctor explains each.",
			`count(max by (kind, subject) (tidemark_finding_open{severity=~"high|critical"})) or vector(0)`, "short", step{"green", nil}, step{"red", at(1)}),
		l.stat("Warnings", "Open causes of severity warning.",
			`count(max by (kind, subject) (tidemark_finding_open{severity="warning"})) or vector(0)`, "short", step{"green", nil}, step{"orange", at(1)}),
		l.stat("Deliveries that wait", "Deliveries that are still to be tried, 10,000 at most for a route.",
			`sum(max by (route) (tidemark_pending)) or vector(0)`, "short", step{"blue", nil}),
		l.stat("Open dead letters", "Events and rows that were given up, 10,000 at most for a route or a source.",
			`(sum(max by (route) (tidemark_dead_letters_open)) or vector(0)) + (sum(max by (worker, source, shard) (tidemark_dead_letter_rows_open)) or vector(0))`,
			"short", step{"green", nil}, step{"orange", at(1)}),
		l.stat("Silent daemons", "Daemons that do not answer Prometheus.", `sum(1 - up{job="tidemark"})`, "short", step{"green", nil}, step{"red", at(1)}).without("no daemon"),
		l.stat("Database", "Whether every daemon reaches its database.", `min(tidemark_database_up)`, "short", step{"green", nil}).says(no("down"), yes("up")),
		l.stat("May deliver", "Whether the stage is live, and this database is no copy.", `max(tidemark_armed)`, "short", step{"green", nil}).
			says(word{Text: "no", Color: "orange"}, yes("yes")),
		l.stat("Age of the watch", "Time since the newest look at the causes. The causes are as old.", `min(tidemark_watch_age_seconds)`, "s",
			step{"green", nil}, step{"red", at(60)}),
	)
	l.row(8,
		l.table("Open causes", "What is wrong now, and how often it was seen. Each word links to its page in docs/runbooks.",
			`max by (severity, kind, subject) (tidemark_finding_open)`,
			column{"severity", "severity"}, column{"kind", "cause"}, column{"subject", "subject"}, column{"Value", "seen"}).
			colored("severity", word{Text: "critical", Color: "red"}, word{Text: "high", Color: "red"}, word{Text: "warning", Color: "orange"}).
			runbooks("cause").without("nothing is wrong"),
		l.table("What is not well", "Items of tidemark.queue_health, symptoms included.",
			`max by (status, kind, name) (tidemark_health{status=~"bad|unknown|warn"}) == 1`,
			column{"status", "status"}, column{"kind", "kind"}, column{"name", "name"}).
			colored("status", word{Text: "bad", Color: "red"}, word{Text: "unknown", Color: "orange"}, word{Text: "warn", Color: "orange"}).
			without("all is well"),
	)
	l.row(8,
		l.series("Causes over time", "How many are open.", "short", query{`sum by (kind) (max by (kind, subject) (tidemark_finding_open) > bool 0)`, "{{kind}}"}).stacked(),
		l.series("Behind", "Age of the oldest event or row that is not read. The line is the default of lag.warn.", "s",
			query{`max by (worker, source, shard) (tidemark_behind_seconds)`, "{{worker}}/{{source}}/{{shard}}"}).from(60),
	)
	l.row(8,
		l.series("Deliveries that wait, by route", "Deliveries that are still to be tried, 10,000 at most for a route.", "short", query{`max by (route) (tidemark_pending)`, "{{route}}"}),
		l.series("Overdue", "How long the next delivery of a route has been due. The line is the default of lag.warn.", "s",
			query{`max by (route) (tidemark_pending_overdue_seconds)`, "{{route}}"}).from(60),
		l.series("Open dead letters", "", "short",
			query{`max by (route) (tidemark_dead_letters_open)`, "{{route}}"},
			query{`max by (worker, source, shard) (tidemark_dead_letter_rows_open) > 0`, "rows of {{source}}"}),
	)
	l.row(8,
		l.series("Open breakers", "The target is left alone, since five deliveries in a row failed.", "short", query{`max by (route) (tidemark_breaker_open) > 0`, "{{route}}"}).stacked(),
		l.series("Heartbeats", "Age of the last beat. A daemon is silent after 30 s.", "s", query{`max by (executor) (tidemark_heartbeat_age_seconds)`, "{{executor}}"}).from(30),
		// Those of wake-up are often left closed.
		l.table("Closed gates", "An operator closed it, or never opened it. Those of wake-up are left out.",
			`max by (gate) (tidemark_gate_open{gate!~"notify[.].*"}) == 0`, column{"gate", "gate"}).
			without("none is closed"),
	)
	l.row(8,
		l.series("Emits that stored nothing", "Counted until a day after the latest one. Their type is not registered or not enabled.", "short",
			query{`max by (domain, type, role) (tidemark_emit_unregistered_total)`, "{{domain}}/{{type}} by {{role}}"}),
		l.series("Open numbers", "Numbers of the log below the watermark that a transaction holds.", "short", query{`max by (worker) (tidemark_worker_holes) > 0`, "{{worker}}"}),
	)
	return l.board("tidemark-state", "Tidemark: state")
}

// flow is how much goes through, how quickly, and by what it is held up.
func flow() dashboard {
	l := layout{}
	quantile := func(q, metric, by string) string {
		return fmt.Sprintf(`histogram_quantile(%s, sum by (%s, le) (rate(%s_bucket[$__rate_interval])))`, q, by, metric)
	}
	l.row(8,
		l.series("Deliveries", "By what the target made of them.", "ops",
			query{`sum by (outcome) (rate(tidemark_deliveries_total[$__rate_interval]))`, "{{outcome}}"}).outcomes(),
		l.series("Deliveries by route", "", "ops",
			query{`sum by (route) (rate(tidemark_deliveries_total{outcome="delivered"}[$__rate_interval]))`, "{{route}}"}),
		l.series("Failures by route", "", "ops",
			query{`sum by (route, outcome) (rate(tidemark_deliveries_total{outcome!="delivered"}[$__rate_interval]))`, "{{route}} {{outcome}}"}),
	)
	l.row(8,
		l.series("From emit to delivery", "Half, and 99 of 100, of all deliveries; without replays.", "s",
			query{quantile("0.5", "tidemark_commit_to_delivery_seconds", "route"), "{{route}} p50"},
			query{quantile("0.99", "tidemark_commit_to_delivery_seconds", "route"), "{{route}} p99"}),
		l.series("Time of a call", "99 of 100 calls of a target take less.", "s", query{quantile("0.99", "tidemark_delivery_seconds", "route"), "{{route}} p99"}),
	)
	l.row(8,
		l.series("Read", "Events of the log, or rows of a table.", "ops", query{`sum by (worker, source) (rate(tidemark_events_read_total[$__rate_interval]))`, "{{worker}}/{{source}}"}),
		l.series("Settled", "Results that are recorded.", "ops", query{`sum by (worker, source) (rate(tidemark_results_settled_total[$__rate_interval]))`, "{{worker}}/{{source}}"}),
		l.series("Time in the database", "99 of 100 reads and settles take less.", "s",
			query{quantile("0.99", "tidemark_read_seconds", "worker"), "read {{worker}}"},
			query{quantile("0.99", "tidemark_settle_seconds", "worker"), "settle {{worker}}"}),
	)
	l.row(8,
		l.series("Connections", "Of the workers' pools.", "short", query{`sum by (state) (tidemark_pool_connections)`, "{{state}}"}),
		l.series("Waiting for a connection", "Time of all waits in a second.", "s", query{`sum by (instance) (rate(tidemark_pool_wait_seconds_total[$__rate_interval]))`, "{{instance}}"}),
		l.series("Leases", "Cursors that each daemon runs.", "short", query{`sum by (instance) (tidemark_worker_holds_lease)`, "{{instance}}"}),
	)
	l.row(8,
		l.series("Commands", "By what became of them.", "ops", query{`sum by (service, status) (rate(tidemark_command_total[$__rate_interval]))`, "{{service}} {{status}}"}),
		l.series("Commands behind", "Records that are still to be passed.", "short", query{`sum by (topic) (tidemark_command_lag)`, "{{topic}}"}),
		l.series("Parked commands", "They wait for another attempt.", "short", query{`max by (service) (tidemark_command_parked)`, "{{service}}"}),
	)
	return l.board("tidemark-flow", "Tidemark: flow")
}
