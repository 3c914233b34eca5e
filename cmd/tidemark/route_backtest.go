package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

func newRouteBacktest(a *app) *cobra.Command {
	var since, until string
	var samples int
	cmd := needs("tidemark_reader", &cobra.Command{
		Use:   "backtest CODE",
		Short: "Show what a route would have done with past events",
		Long: `Show what a route would have done with past events, had it been enabled and live, all gates open, beside
the other routes as they are. Nothing is written or delivered. Samples are what the target would get, for
members of tidemark_admin: the newest events of each type.`,
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) (err error) {
			b := backtest{samples: samples}
			if b.Since, err = when("since", since, s.now); err != nil {
				return err
			}
			if until != "" {
				var end time.Time
				if end, err = when("until", until, s.now); err != nil {
					return err
				}
				b.Until = &end
			}
			if b.Since.IsZero() {
				return usagef("--since is needed")
			}
			// One snapshot for the counts and the samples; and what writes fails.
			options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
			err = pgx.BeginTxFunc(ctx, s.conn, options, func(tx pgx.Tx) error { return b.read(ctx, store.New(tx), args[0]) })
			if err != nil {
				return err
			}
			if s.json {
				return s.object(b)
			}
			return b.show(s)
		}),
	})
	cmd.Flags().StringVar(&since, "since", "24h", "events emitted at this time or later: RFC 3339, or how long ago (90m, 24h, 7d)")
	cmd.Flags().StringVar(&until, "until", "", "events emitted before this time (default now)")
	cmd.Flags().IntVar(&samples, "samples", 3, "events of each type to show as they would be delivered: 0 to 100")
	return cmd
}

// backtest is the JSON of `route backtest`.
type backtest struct {
	Route     store.Route           `json:"route"`
	Since     time.Time             `json:"since"`
	Until     *time.Time            `json:"until"`      // null: now
	LogBegins *time.Time            `json:"log_begins"` // null: the log is empty
	Domains   []string              `json:"domains"`    // that the route's worker reads; null: all
	Examined  int64                 `json:"examined"`
	Claimed   int64                 `json:"claimed"`
	Groups    []store.BacktestGroup `json:"groups"`
	Samples   []sample              `json:"samples"` // null: payloads are not for this role

	samples int
}

// sample is an event as the target would get it.
type sample struct {
	Seq         int64             `json:"seq"`
	EventID     string            `json:"event_id"`
	CreatedAt   time.Time         `json:"created_at"`
	Type        string            `json:"type"`
	Key         string            `json:"key"`
	ContentType string            `json:"content_type,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        json.RawMessage   `json:"body"`
	Problem     string            `json:"problem,omitempty"` // why there is no body
}

func (b *backtest) read(ctx context.Context, db *store.DB, code string) (err error) {
	if b.Route, err = db.Route(ctx, code); err != nil {
		return err
	}
	reach, err := db.LogReach(ctx, b.Route.Worker)
	if err != nil {
		return err
	}
	b.LogBegins, b.Domains = reach.Begins, reach.Domains
	var until time.Time
	if b.Until != nil {
		until = *b.Until
	}
	if b.Groups, err = db.RouteBacktest(ctx, code, b.Since, until, b.samples); err != nil {
		return err
	}
	var delivered []int64
	for _, g := range b.Groups {
		if g.Type != nil {
			b.Examined += g.Events
		}
		if g.Outcome == nil {
			continue
		}
		if g.Type != nil {
			b.Claimed += g.Events
		}
		if *g.Outcome == "pending" {
			delivered = append(delivered, g.Newest...)
		}
	}
	events, err := db.FullEvents(ctx, delivered)
	if err != nil || events == nil {
		return err
	}
	b.Samples = []sample{}
	for _, event := range events {
		b.Samples = append(b.Samples, asDelivered(b.Route, event))
	}
	return nil
}

// asDelivered is an event as the target of the route would get it.
func asDelivered(r store.Route, event store.FullEvent) sample {
	s := sample{Seq: event.Seq, EventID: event.ID, CreatedAt: event.CreatedAt, Type: event.Domain + "/" + event.Type, Key: event.Key}
	switch r.TargetKind {
	case "notify":
		s.Body, _ = json.Marshal(struct {
			EventID string `json:"event_id"`
			Domain  string `json:"domain"`
			Type    string `json:"type"`
			Route   string `json:"route"`
		}{event.ID, event.Domain, event.Type, r.RouteCode}) // of texts: cannot fail
	case "webhook", "kafka", "nats", "stdout":
		encoded, err := encode(r, event)
		if err != nil {
			s.Problem = err.Error()
			break
		}
		s.ContentType, s.Body = encoded.ContentType, encoded.Body
		if len(encoded.Headers) > 0 {
			s.Headers = map[string]string{}
			for _, h := range encoded.Headers {
				s.Headers[h.Name] = h.Value
			}
		}
	default:
		s.Body = event.Document
	}
	return s
}

func encode(r store.Route, event store.FullEvent) (sink.Encoded, error) {
	var options struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(r.Options, &options); err != nil {
		return sink.Encoded{}, fmt.Errorf("option %q must be a text", "format")
	}
	format, err := sink.ParseFormat(options.Format)
	if err != nil {
		return sink.Encoded{}, err
	}
	return sink.Encode(format, sink.Delivery{Event: event.Event, Route: r.RouteCode, Attempt: 1})
}

func (b *backtest) show(s *session) error {
	until := "now"
	if b.Until != nil {
		until = utc(*b.Until)
	}
	err := s.facts(
		fact{"route", b.Route.RouteCode + ", " + routeState(b.Route) + "; here as if it were live"},
		fact{"target", b.Route.TargetKind + " " + b.Route.TargetRef},
		fact{"events", "from " + utc(b.Since) + " to " + until},
		fact{"examined", number(b.Examined)},
		fact{"claimed", number(b.Claimed)})
	if err != nil {
		return err
	}
	b.remark(s)
	if b.Claimed == 0 {
		return nil
	}
	if err := s.linef(""); err != nil {
		return err
	}
	if err := b.table(s); err != nil {
		return err
	}
	return b.showSamples(s)
}

// remark tells what the numbers alone do not.
func (b *backtest) remark(s *session) {
	if b.LogBegins != nil && b.LogBegins.After(b.Since) {
		s.note("the log begins %s, %s: there is nothing before", utc(*b.LogBegins), s.age(*b.LogBegins))
	}
	if d := b.Route.Domain; b.Domains != nil && d != "*" && !slices.Contains(b.Domains, d) {
		s.note("worker %s does not read domain %s: the route would get nothing", b.Route.Worker, d)
	} else if b.Domains != nil && d == "*" {
		s.note("worker %s reads these domains only: %s", b.Route.Worker, strings.Join(b.Domains, ", "))
	}
	for _, g := range b.Groups {
		switch {
		case g.Outcome == nil || g.Type != nil:
		case g.Detail != nil:
			s.note("%s would have failed: %s", count(int(g.Events), "event", "events"), *g.Detail)
		case *g.Outcome == "pending" && b.Route.Ordering == "key" && *g.WithoutKey > 0:
			s.note("%s no key: there is no order to keep for them", count(int(*g.WithoutKey), "event has", "events have"))
		}
	}
}

func (b *backtest) table(s *session) error {
	type g = store.BacktestGroup
	ofType := map[string]int64{}
	var claimed []g
	types := map[string]int{}
	for _, group := range b.Groups {
		if group.Type != nil {
			ofType[*group.Domain+"/"+*group.Type] += group.Events
		}
		if group.Outcome != nil {
			claimed = append(claimed, group)
			types[*group.Outcome+text(group.Reason)]++
		}
	}
	// A total of one type is that type.
	claimed = slices.DeleteFunc(claimed, func(group g) bool { return group.Type == nil && types[*group.Outcome+text(group.Reason)] == 2 })
	return rows(s.printer, "", claimed,
		column[g]{"OUTCOME", func(g g) string { return *g.Outcome }},
		column[g]{"TYPE", func(g g) string {
			if g.Type == nil {
				return "all"
			}
			return *g.Domain + "/" + *g.Type
		}},
		column[g]{"EVENTS", func(g g) string { return number(g.Events) }},
		column[g]{"OF", func(g g) string {
			if g.Type == nil {
				return number(b.Examined)
			}
			return number(ofType[*g.Domain+"/"+*g.Type])
		}},
		column[g]{"KEYS", func(g g) string { return number(*g.Keys) }},
		column[g]{"NO KEY", func(g g) string { return number(*g.WithoutKey) }},
		column[g]{"BYTES", func(g g) string { return number(*g.PayloadBytes) }},
		column[g]{"LARGEST", func(g g) string { return number(*g.LargestPayload) }},
		column[g]{"BUSIEST MINUTE", func(g g) string { return fmt.Sprintf("%d at %s", *g.BusiestEvents, utc(*g.BusiestMinute)) }},
		column[g]{"LAST", func(g g) string { return s.age(g.LastAt) }},
		column[g]{"REASON", func(g g) string { return text(g.Reason) }})
}

func (b *backtest) showSamples(s *session) error {
	if b.Samples == nil && b.samples > 0 {
		s.note("no samples: payloads are not for your role, which is not in tidemark_admin")
	}
	for _, sample := range b.Samples {
		key := ""
		if sample.Key != "" {
			key = ", key " + sample.Key
		}
		lines := []string{"", fmt.Sprintf("event %d, %s%s, %s", sample.Seq, sample.Type, key, s.age(sample.CreatedAt))}
		if sample.ContentType != "" {
			lines = append(lines, "  content-type: "+sample.ContentType)
		}
		for _, name := range slices.Sorted(maps.Keys(sample.Headers)) {
			lines = append(lines, "  "+name+": "+sample.Headers[name])
		}
		lines = append(lines, "  "+firstOf(sample.Problem, string(sample.Body)))
		for _, line := range lines {
			if err := s.linef("%s", line); err != nil {
				return err
			}
		}
	}
	return nil
}
