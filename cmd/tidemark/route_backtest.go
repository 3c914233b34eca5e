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
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

func routeBacktest() cli.Command {
	var window cli.Window
	var samples int
	return cli.Command{
		Use: "backtest ROUTE", Short: "Show what a route would have done with past events", Role: "tidemark_reader",
		Long: `Show what a route would have done with past events, had it been enabled and live and all gates open; the other
routes count as they are. Nothing is written or delivered. For members of tidemark_admin it shows samples, as the target
would get them: the newest events of each type. The route's transform is called with your rights, and cannot write.`,
		Example: "  tidemark route backtest mail --since 7d --samples 1",
		Flags: func(flags *pflag.FlagSet) {
			window.Add(flags, "events emitted", "24h")
			flags.IntVar(&samples, "samples", 3, "how many events of each type to show as they would be delivered: 0 to 100")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			since, until, err := window.Times(s.Now)
			if err != nil {
				return err
			}
			b := backtest{Since: since, samples: samples}
			if !until.IsZero() {
				b.Until = &until
			}
			// One snapshot for the counts and the samples, in which nothing can be written.
			options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
			err = pgx.BeginTxFunc(ctx, s.Conn, options, func(tx pgx.Tx) error { return b.read(ctx, store.New(tx), s.Arg(0)) })
			if err != nil {
				return err
			}
			if s.JSON {
				s.Object(b)
				return nil
			}
			return b.show(s)
		},
	}
}

// backtest is the JSON of `route backtest`.
type backtest struct {
	Route     store.Route           `json:"route"`
	Since     time.Time             `json:"since"`
	Until     *time.Time            `json:"until"`      // null: now
	LogBegins *time.Time            `json:"log_begins"` // null: the log is empty
	Domains   []string              `json:"domains"`    // that its worker reads; null: all
	Examined  int64                 `json:"examined"`
	Claimed   int64                 `json:"claimed"`
	Groups    []store.BacktestGroup `json:"groups"`
	Samples   []sample              `json:"samples"` // null: hidden from this role

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
		if *g.Outcome == "pending" && g.Detail == nil {
			delivered = append(delivered, g.Newest...)
		}
	}
	events, err := db.FullEvents(ctx, b.Route, delivered)
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
	s := sample{
		Seq: event.Seq, EventID: event.ID, CreatedAt: event.CreatedAt,
		Type: event.Domain + "/" + event.Type, Key: event.Key,
	}
	switch r.TargetKind {
	case "notify":
		s.Body, _ = json.Marshal(struct {
			EventID string `json:"event_id"`
			Domain  string `json:"domain"`
			Type    string `json:"type"`
			Route   string `json:"route"`
		}{event.ID, event.Domain, event.Type, r.RouteCode}) // texts alone: it cannot fail
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

func (b *backtest) show(s *cli.Session) error {
	s.Facts("route", b.Route.RouteCode+", "+cli.RouteState(b.Route)+"; here as if it were live",
		"target", b.Route.TargetKind+" "+b.Route.TargetRef,
		"events", "from "+cli.Cell(b.Since)+" to "+cli.Or(b.Until, "now"), "examined", b.Examined, "claimed", b.Claimed)
	b.remark(s)
	if b.Claimed == 0 {
		return nil
	}
	s.Line("")
	if err := b.table(s); err != nil {
		return err
	}
	if b.Samples == nil && b.samples > 0 {
		s.Note("no samples: payloads are hidden from your role, which is not a member of tidemark_admin")
	}
	for _, sample := range b.Samples {
		key := cli.Choose(sample.Key != "", ", key "+sample.Key, "")
		s.Line("")
		s.Line("event %d, %s%s, %s", sample.Seq, sample.Type, key, s.Age(sample.CreatedAt))
		if sample.ContentType != "" {
			s.Line("  content-type: %s", sample.ContentType)
		}
		for _, name := range slices.Sorted(maps.Keys(sample.Headers)) {
			s.Line("  %s: %s", name, sample.Headers[name])
		}
		s.Line("  %s", cli.Or(sample.Problem, string(sample.Body)))
	}
	return nil
}

// remark adds what the numbers alone do not show.
func (b *backtest) remark(s *cli.Session) {
	if b.LogBegins != nil && b.LogBegins.After(b.Since) {
		s.Note("the log begins %s", s.At(*b.LogBegins))
	}
	if d := b.Route.Domain; b.Domains != nil && d != "*" && !slices.Contains(b.Domains, d) {
		s.Note("worker %s does not read domain %s: the route would get nothing", b.Route.Worker, d)
	} else if b.Domains != nil && d == "*" {
		s.Note("worker %s reads only these domains: %s", b.Route.Worker, strings.Join(b.Domains, ", "))
	}
	for _, g := range b.Groups {
		switch {
		case g.Outcome == nil || g.Type != nil:
		case g.Detail != nil && *g.Outcome == "pending":
			s.Note("%s", *g.Detail)
		case g.Detail != nil:
			s.Note("%s would have failed: %s", cli.Count(g.Events, "event"), *g.Detail)
		case *g.Outcome == "pending" && b.Route.Ordering == "key" && *g.WithoutKey > 0:
			s.Note("%s no key, and so no order", cli.Count(*g.WithoutKey, "event has", "events have"))
		}
	}
}

func (b *backtest) table(s *cli.Session) error {
	type group = store.BacktestGroup
	all := map[string]int64{}
	var claimed []group
	types := map[string]int{}
	total := func(g group) string { return *g.Outcome + cli.Cell(g.Reason) }
	for _, g := range b.Groups {
		if g.Type != nil {
			all[*g.Domain+"/"+*g.Type] += g.Events
		}
		if g.Outcome != nil {
			claimed = append(claimed, g)
			types[total(g)]++
		}
	}
	// The total of a single type would repeat that type's line.
	claimed = slices.DeleteFunc(claimed, func(g group) bool { return g.Type == nil && types[total(g)] == 2 })
	return cli.Table(s.Printer, "", claimed,
		"OUTCOME|TYPE|EVENTS|OF|KEYS|NO KEY|BYTES|LARGEST|BUSIEST MINUTE|LAST|REASON", func(g group) cli.Row {
			name, of := "all", b.Examined
			if g.Type != nil {
				name = *g.Domain + "/" + *g.Type
				of = all[name]
			}
			busiest := fmt.Sprintf("%d at %s", *g.BusiestEvents, cli.Cell(g.BusiestMinute))
			return cli.Row{
				g.Outcome, name, g.Events, of, g.Keys, g.WithoutKey, g.PayloadBytes, g.LargestPayload, busiest,
				s.Age(g.LastAt), g.Reason,
			}
		})
}
