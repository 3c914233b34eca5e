package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// Exit statuses of status and doctor.
const (
	exitBad     = 1
	exitUnknown = 2
)

func newStatus(a *app) *cobra.Command {
	var watch time.Duration
	cmd := needs("tidemark_reader", &cobra.Command{
		Use:   "status",
		Short: "Show the installation at a glance, and what is wrong with it",
		Long: `Show the installation at a glance: workers, routes, and whatever does not work or should be looked at.
"tidemark doctor" explains it.

Exit status, for watchdogs: 0 fine or warnings only, 1 something does not work (bad), 2 it cannot be told:
the database cannot be reached or refuses, or a part of it cannot be read.`,
	})
	cmd.Flags().DurationVar(&watch, "watch", 0, "show it again and again, this often, until interrupted")
	cmd.Flags().Lookup("watch").NoOptDefVal = "2s"
	cmd.RunE = forWatchdogs(a.withSchema(func(ctx context.Context, s *session, _ []string) error {
		if !cmd.Flags().Changed("watch") {
			return status(ctx, s)
		}
		if watch < 100*time.Millisecond {
			return usagef("--watch is %s, must be 100ms or more", watch)
		}
		return watchStatus(ctx, s, watch)
	}))
	return cmd
}

// forWatchdogs makes every failure to tell the status unknown.
func forWatchdogs(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var own exitError
		if err == nil || errors.As(err, &own) || errors.Is(err, context.Canceled) {
			return err
		}
		return exitError{err, exitUnknown}
	}
}

// watchStatus draws over what was drawn before on a terminal, and else writes one below the
// other.
func watchStatus(ctx context.Context, s *session, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	out := s.out
	for {
		var screen bytes.Buffer
		s.out, s.now = &screen, time.Now()
		err := status(ctx, s)
		s.out = out
		if ctx.Err() != nil {
			return nil // told to stop, in the middle of a look
		}
		var own exitError
		if err != nil && !errors.As(err, &own) {
			return err
		}
		if !s.json && s.terminal {
			_, _ = fmt.Fprint(out, "\x1b[H\x1b[2J")
		} else if !s.json {
			screen.WriteByte('\n')
		}
		if _, err := out.Write(screen.Bytes()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// overview is the JSON of `status`.
type overview struct {
	store.Server
	Status string      `json:"status"` // the worst of all: ok, warn, unknown or bad
	Stage  store.Stage `json:"stage"`
	store.Counts
	Gates   []store.Gate          `json:"gates"`
	Workers []store.WorkerSummary `json:"workers"`
	Routes  []store.RouteSummary  `json:"route_summaries"`
	Replays []store.RouteReplayed `json:"replays"` // that are not over
	Health  []store.QueueHealth   `json:"health"`
	// The latest first.
	Unregistered []store.UnregisteredEmits `json:"unregistered"`
	Findings     []store.Finding           `json:"findings"`
}

func status(ctx context.Context, s *session) error {
	o, err := lookAround(ctx, s)
	if err != nil {
		return err
	}
	if s.json {
		err = s.object(o)
	} else {
		err = showOverview(s, o)
	}
	if err != nil {
		return err
	}
	return verdict(o.Health)
}

func lookAround(ctx context.Context, s *session) (o overview, err error) {
	if o.Server, err = s.Server(ctx); err != nil {
		return o, err
	}
	if o.Stage, err = s.Stage(ctx); err != nil {
		return o, err
	}
	if o.Counts, err = s.Counts(ctx); err != nil {
		return o, err
	}
	if o.Gates, err = s.Gates(ctx); err != nil {
		return o, err
	}
	if o.Workers, err = s.WorkerSummaries(ctx); err != nil {
		return o, err
	}
	if o.Routes, err = s.RouteSummaries(ctx); err != nil {
		return o, err
	}
	if o.Replays, err = s.RouteReplays(ctx, "", true); err != nil {
		return o, err
	}
	if o.Health, err = s.QueueHealth(ctx); err != nil {
		return o, err
	}
	o.Status = worst(o.Health)
	if o.Unregistered, err = s.UnregisteredEmits(ctx); err != nil {
		return o, err
	}
	o.Findings, err = s.OpenFindings(ctx)
	return o, err
}

func worst(all []store.QueueHealth) string {
	place := map[string]int{"ok": 0, "warn": 1, "unknown": 2, "bad": 3}
	found := "ok"
	for _, h := range all {
		if place[h.Status] > place[found] {
			found = h.Status
		}
	}
	return found
}

// verdict is the exit status for how everything is.
func verdict(all []store.QueueHealth) error {
	number := map[string]int{}
	for _, h := range all {
		number[h.Status]++
	}
	switch {
	case number["bad"] > 0:
		err := fmt.Errorf("%s", count(number["bad"], "thing does not work", "things do not work"))
		return exitError{hinted{err, "tidemark doctor explains each."}, exitBad}
	case number["unknown"] > 0:
		err := fmt.Errorf("of %s it cannot be told how it is", count(number["unknown"], "thing", "things"))
		return exitError{hinted{err, "tidemark doctor explains each."}, exitUnknown}
	default:
		return nil
	}
}

func showOverview(s *session, o overview) error {
	where := fmt.Sprintf("%s as %s, PostgreSQL %s", o.Database, o.Role, o.Version)
	if o.InStandby {
		where += ", a standby: workers cannot run here"
	}
	newest := "none"
	if o.NewestEventAt != nil {
		newest = fmt.Sprintf("last number %d, newest %s", o.LastSeq, s.age(*o.NewestEventAt))
	}
	master := "closed"
	for _, g := range o.Gates {
		if g.Gate == "routes.enabled" {
			master = openOrClosed(g.Open)
		}
	}
	err := s.facts(
		fact{"database", where}, fact{"stage", stageText(o.Stage)}, fact{"master gate", master}, fact{"events", newest},
		fact{"event types", fmt.Sprintf("%d enabled", o.EventTypes)},
		fact{"unregistered", unregisteredText(s, o.Unregistered)},
		fact{"routes", fmt.Sprintf("%d, %d enabled, %d of them live", o.Counts.Routes, o.RoutesEnabled, o.RoutesLive)},
		fact{"pending", number(o.Pending)}, fact{"dead letters", fmt.Sprintf("%d open", o.OpenDeadLetters)},
		fact{"findings", fmt.Sprintf("%d open", o.OpenFindings)})
	if err != nil {
		return err
	}
	for _, table := range []func(*session, overview) error{showWorkers, showRouteSummaries, showRouteReplays, showUnhealthy, showFindings} {
		if err := table(s, o); err != nil {
			return err
		}
	}
	return nil
}

// unregisteredText tells of emits that stored nothing. Empty: there are none.
func unregisteredText(s *session, all []store.UnregisteredEmits) string {
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
		count(emits, "emit", "emits"), s.age(since), newest.Domain, newest.Type, newest.Role, s.age(newest.LastAt))
}

func showWorkers(s *session, o overview) error {
	if err := s.linef(""); err != nil {
		return err
	}
	type w = store.WorkerSummary
	return rows(s.printer, "no workers", o.Workers,
		column[w]{"WORKER", func(w w) string {
			if w.Source == "outbox" && w.Shard == 0 {
				return w.Worker
			}
			return fmt.Sprintf("%s/%s/%d", w.Worker, w.Source, w.Shard)
		}},
		column[w]{"STATUS", func(w w) string {
			if w.Gate != nil {
				return w.Status + " by " + *w.Gate
			}
			return w.Status
		}},
		column[w]{"BEHIND", func(w w) string { return optional(w.Events) }},
		column[w]{"FOR", func(w w) string { return seconds(w.Seconds) }},
		column[w]{"EVENTS/S", func(w w) string {
			if w.Rate == nil {
				return ""
			}
			return fmt.Sprintf("%.1f", *w.Rate)
		}},
		column[w]{"HOLES", func(w w) string { return number(w.Holes) }},
		column[w]{"PENDING", func(w w) string { return number(w.Pending) }},
		column[w]{"OLDEST", func(w w) string { return seconds(w.OldestPendingSeconds) }},
		column[w]{"DEAD LETTERS", func(w w) string { return number(w.OpenDeadLetters) }},
		column[w]{"LAST RUN", func(w w) string { return s.ageOr(w.LastRunAt, "never") }})
}

func showRouteSummaries(s *session, o overview) error {
	if len(o.Routes) == 0 {
		return nil
	}
	if err := s.linef(""); err != nil {
		return err
	}
	type r = store.RouteSummary
	return rows(s.printer, "", o.Routes,
		column[r]{"ROUTE", func(r r) string { return r.RouteCode }},
		column[r]{"STATE", func(r r) string { return r.State }},
		column[r]{"TARGET", func(r r) string { return r.TargetKind }},
		column[r]{"SENT", func(r r) string { return number(r.Sent) }},
		column[r]{"RETRIED", func(r r) string { return number(r.Retried) }},
		column[r]{"DEAD", func(r r) string { return number(r.Dead) }},
		column[r]{"PENDING", func(r r) string { return number(r.Pending) }},
		column[r]{"OLDEST", func(r r) string { return seconds(r.OldestPendingSeconds) }},
		column[r]{"DEAD LETTERS", func(r r) string { return number(r.OpenDeadLetters) }},
		column[r]{"BREAKER", func(r r) string { return text(r.Breaker) }})
}

func showRouteReplays(s *session, o overview) error {
	if len(o.Replays) == 0 {
		return nil
	}
	if err := s.linef(""); err != nil {
		return err
	}
	type j = store.RouteReplayed
	return rows(s.printer, "", o.Replays,
		column[j]{"REPLAY", func(j j) string { return number(j.ID) }},
		column[j]{"ROUTE", func(j j) string { return j.RouteCode }},
		column[j]{"STATE", replayState},
		column[j]{"SENT", replaySent},
		column[j]{"FAILED", func(j j) string { return number(j.Failed) }},
		column[j]{"ASKED", func(j j) string { return s.age(j.RequestedAt) + " by " + j.RequestedBy }})
}

// showUnhealthy is for what is not ok, but findings, which have a table of their own.
func showUnhealthy(s *session, o overview) error {
	var wrong []store.QueueHealth
	for _, h := range o.Health {
		if h.Status != "ok" && h.Kind != "finding" {
			wrong = append(wrong, h)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	if err := s.linef(""); err != nil {
		return err
	}
	type h = store.QueueHealth
	return rows(s.printer, "", wrong,
		column[h]{"STATUS", func(h h) string { return h.Status }},
		column[h]{"WHAT", func(h h) string { return h.Kind }},
		column[h]{"NAME", func(h h) string { return h.Name }},
		column[h]{"AGE", func(h h) string { return seconds(h.AgeSeconds) }},
		column[h]{"COUNT", func(h h) string { return optional(h.Count) }},
		column[h]{"NOTE", func(h h) string { return h.Note }})
}

func showFindings(s *session, o overview) error {
	if len(o.Findings) == 0 {
		return nil
	}
	if err := s.linef(""); err != nil {
		return err
	}
	return findingTable(s, o.Findings)
}
