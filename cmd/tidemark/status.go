package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func statusCommand() cli.Command {
	var every time.Duration
	return cli.Command{
		Use: "status", Short: "Show the installation at a glance, and what is wrong with it", Role: "tidemark_reader", Watchdog: true,
		Long: `Show what does not work or needs attention, worst first: its cause, the facts, and the commands that fix it, to be
pasted as they are. Below it the workers and routes. tidemark doctor explains each cause.

Exit status, for watchdogs: 0 fine or warnings only; 1 something does not work (bad); 2 unknown: the database cannot be
reached, refuses, or does not let this role read a part of it.`,
		Example: "  tidemark status --watch",
		Flags: func(flags *pflag.FlagSet) {
			flags.DurationVar(&every, "watch", 0, "repeat until interrupted, this often")
			flags.Lookup("watch").NoOptDefVal = "2s"
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if !s.Given("watch") {
				return cli.Within(ctx, func(ctx context.Context) error { return status(ctx, s) })
			}
			if every < 100*time.Millisecond {
				return cli.Usagef("--watch is %s, must be 100ms or more", every)
			}
			return watchStatus(ctx, s, every)
		},
	}
}

// watchStatus redraws a terminal. Elsewhere it writes one status below the other.
func watchStatus(ctx context.Context, s *cli.Session, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	out := s.Out
	for {
		var screen bytes.Buffer
		s.Out, s.Now = &screen, time.Now()
		err := cli.Within(ctx, func(ctx context.Context) error { return status(ctx, s) })
		s.Out = out
		if ctx.Err() != nil {
			return nil // interrupted while it read
		}
		if unwell := (cli.Exit{}); err != nil && !errors.As(err, &unwell) {
			return err
		}
		if !s.JSON && s.Terminal && !cli.Dumb() {
			s.Write([]byte("\x1b[H\x1b[2J"))
		} else if !s.JSON {
			screen.WriteByte('\n')
		}
		s.Write(screen.Bytes())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// overview is the JSON of status.
type overview struct {
	store.Server
	Status string        `json:"status"` // the worst of all: ok, warn, unknown or bad
	Causes []store.Cause `json:"causes"` // worst first
	// Partial: tables are locked, and what follows is missing.
	Partial bool `json:"partial,omitempty"`

	Stage store.Stage `json:"stage"`
	store.Counts
	Gates        []store.Gate              `json:"gates"`
	Workers      []store.WorkerSummary     `json:"workers"`
	Routes       []store.RouteSummary      `json:"route_summaries"`
	Replays      []store.RouteReplayed     `json:"replays"`      // that are not over
	Unregistered []store.UnregisteredEmits `json:"unregistered"` // the latest first
}

func status(ctx context.Context, s *cli.Session) error {
	o, err := cli.InTx(ctx, s, func(db *store.DB) (overview, error) {
		if err := db.NotCompiled(ctx); err != nil {
			return overview{}, err
		}
		return readOverview(ctx, db)
	})
	if err != nil {
		return err
	}
	if s.JSON {
		s.Object(o)
	} else {
		showOverview(s, o)
	}
	return cli.Verdict(o.Causes)
}

func readOverview(ctx context.Context, db *store.DB) (overview, error) {
	o, err := db.Overview(ctx, store.Most{})
	return overview{
		Server: o.Server, Status: o.Status, Causes: o.Causes, Partial: o.Partial, Stage: o.Stage, Counts: o.Counts, Gates: o.Gates, Workers: o.Workers,
		Routes: o.Routes, Replays: o.Replays, Unregistered: o.Unregistered,
	}, err
}

// howMany is a figure of store.Counts that is counted up to a bound.
func howMany(n int64) string {
	if n < store.MostCounted {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%d or more", n)
}

func showOverview(s *cli.Session, o overview) {
	for _, c := range o.Causes {
		cli.CauseBrief(s, c)
		s.Line("")
	}
	if o.Partial {
		s.Facts("database", o.Database+" as "+o.Server.Role+"; its tables are locked, and the rest is not shown")
		return
	}
	newest := "none"
	if o.NewestEventAt != nil {
		newest = fmt.Sprintf("last number %d, newest %s", o.LastSeq, s.Age(*o.NewestEventAt))
	}
	master := "closed"
	for _, g := range o.Gates {
		if g.Gate == "routes.enabled" {
			master = cli.Open(g.Open)
		}
	}
	s.Facts(
		"database", fmt.Sprintf("%s as %s, PostgreSQL %s%s", o.Database, o.Server.Role, o.Version,
			cli.Choose(o.InStandby, ", a standby: workers cannot run here", "")),
		"stage", cli.StageText(o.Stage), "master gate", master, "events", newest, "event types", fmt.Sprintf("%d enabled", o.EventTypes),
		"unregistered", unregistered(s, o.Unregistered),
		"routes", fmt.Sprintf("%d, %d enabled, %d of them live", o.Counts.Routes, o.RoutesEnabled, o.RoutesLive),
		"pending", howMany(o.Pending), "dead letters", howMany(o.OpenDeadLetters)+" open",
		"findings", fmt.Sprintf("%d open", o.OpenFindings))

	s.Line("")
	_ = cli.Table(s.Printer, "no workers", o.Workers,
		"WORKER|STATUS|BEHIND|FOR|EVENTS/S|HOLES|PENDING|OLDEST|DEAD LETTERS|LAST RUN", func(w store.WorkerSummary) cli.Row {
			rate := ""
			if w.Rate != nil {
				rate = fmt.Sprintf("%.1f", *w.Rate)
			}
			return cli.Row{
				store.CursorName(w.Worker, w.Source, w.Shard), cli.WorkerState(w.Status, w.Gate), w.Events, cli.Seconds(w.Seconds), rate, w.Holes, w.Pending,
				cli.Seconds(w.OldestPendingSeconds), w.OpenDeadLetters, s.AgeOr(w.LastRunAt, "never"),
			}
		})
	section(s, o.Routes, "ROUTE|STATE|TARGET|SENT|RETRIED|DEAD|PENDING|OLDEST|DEAD LETTERS|BREAKER",
		func(r store.RouteSummary) cli.Row {
			return cli.Row{
				r.RouteCode, r.State, r.TargetKind, r.Sent, r.Retried, r.Dead, r.Pending, cli.Seconds(r.OldestPendingSeconds), r.OpenDeadLetters, r.Breaker,
			}
		})
	section(s, o.Replays, "REPLAY|ROUTE|STATE|SENT|FAILED|ASKED", func(r store.RouteReplayed) cli.Row {
		return cli.Row{
			r.ID, r.RouteCode, cli.ReplayState(r), cli.ReplaySent(r), r.Failed,
			s.Age(r.RequestedAt) + " by " + r.RequestedBy,
		}
	})
}

// section is a table below an empty line, or nothing.
func section[T any](s *cli.Session, all []T, header string, row func(T) cli.Row) {
	if len(all) > 0 {
		s.Line("")
		_ = cli.Table(s.Printer, "", all, header, row)
	}
}

// unregistered describes emits that stored nothing. Empty: there are none.
func unregistered(s *cli.Session, all []store.UnregisteredEmits) string {
	if len(all) == 0 {
		return ""
	}
	emits, since, newest := 0, all[0].FirstAt, all[0]
	for _, u := range all {
		emits += int(u.Emits)
		if u.FirstAt.Before(since) {
			since = u.FirstAt
		}
	}
	return fmt.Sprintf("%s stored nothing since %s: type not registered or not enabled; the newest %s/%s by %s, %s",
		cli.Count(emits, "emit"), s.Age(since), newest.Domain, newest.Type, newest.Role, s.Age(newest.LastAt))
}
