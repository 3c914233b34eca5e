package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newRouteReplay(a *app) *cobra.Command {
	var ask store.ReplayAsk
	var since, until, rate string
	var from, to, cancel int64
	var progress bool
	cmd := needs("tidemark_admin (to list: tidemark_reader)", &cobra.Command{
		Use:   "replay [CODE]",
		Short: "Send events on a route again, or those from before it existed; list and cancel replays",
		Long: `Send events on a route again: those that it was sent, or was off, in dry run or not there for. Each is a new attempt
on record and comes marked as a replay; events that the route claims no more, that are pending or have an open dead
letter are left out. The passes of the route's worker do it in the order of numbers, beside live events; while a gate is
closed, or the route is off or in dry run, it waits. What goes is counted first; --dry-run only counts.`,
	})
	flags := cmd.Flags()
	flags.StringVar(&since, "since", "", "events of this time and later: RFC 3339, or how long ago (90m, 24h, 7d)")
	flags.StringVar(&until, "until", "", "events before this time")
	flags.Int64Var(&from, "from-seq", 0, "events from this number on")
	flags.Int64Var(&to, "to-seq", 0, "events up to this number")
	flags.StringVar(&ask.Key, "key", "", "only events with this key")
	flags.StringSliceVar(&ask.Outcomes, "only", nil, "only what came to this so far: sent, disabled, dry_run, skipped, failed, none (not decided)")
	flags.StringVar(&rate, "rate", "", "at most so many events a second, such as 50/s")
	flags.BoolVar(&ask.DryRun, "dry-run", false, "count, and send nothing")
	flags.BoolVar(&progress, "list", false, "list replays and how far they are")
	flags.Int64Var(&cancel, "cancel", 0, "end this replay where it is")
	reasonFlag(cmd, &ask.Reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) (err error) {
		ask.Route = strings.Join(args, "")
		switch {
		case progress:
			return listReplays(ctx, s, ask.Route)
		case flags.Changed("cancel"):
			return cancelReplay(ctx, s, cancel, ask.Reason)
		case ask.Route == "":
			return usagef("give the CODE of a route, or --list, or --cancel ID")
		case (since == "") == !flags.Changed("from-seq"):
			return usagef("give one of --since and --from-seq")
		case until != "" && flags.Changed("to-seq"):
			return usagef("give one of --until and --to-seq")
		}
		if !ask.DryRun {
			if err := needReason(ask.Reason); err != nil {
				return err
			}
		}
		if flags.Changed("from-seq") {
			ask.FromSeq = &from
		}
		if flags.Changed("to-seq") {
			ask.ToSeq = &to
		}
		if ask.Since, err = when("since", since, s.now); err != nil {
			return err
		}
		if ask.Until, err = when("until", until, s.now); err != nil {
			return err
		}
		if ask.Rate, err = perSecond(rate); err != nil {
			return err
		}
		return replayRoute(ctx, s, ask)
	})
	return cmd
}

// perSecond reads a rate, such as 50 or 50/s.
func perSecond(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	rate, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	if err != nil || rate <= 0 {
		return 0, usagef("--rate %q is not a number of events a second, such as 50/s", text)
	}
	return rate, nil
}

// routeReplay is the JSON of a replay that was asked for.
type routeReplay struct {
	Route    string              `json:"route"`
	Replay   *int64              `json:"replay"` // null: a dry run, or nothing to look at
	FirstSeq int64               `json:"first_seq"`
	LastSeq  int64               `json:"last_seq"`
	Events   int64               `json:"events"`
	Complete bool                `json:"complete"`
	Counts   []store.ReplayCount `json:"counts"`
}

func replayRoute(ctx context.Context, s *session, ask store.ReplayAsk) error {
	counts, err := s.RouteReplay(ctx, ask)
	if err != nil {
		return err
	}
	sum := counts[len(counts)-1]
	all := routeReplay{ask.Route, sum.ID, sum.FirstSeq, sum.LastSeq, sum.Events, sum.Complete, counts[:len(counts)-1]}
	if s.json {
		return s.object(all)
	}
	if len(all.Counts) > 0 {
		type c = store.ReplayCount
		err := rows(s.printer, "", all.Counts,
			column[c]{"SO FAR", func(c c) string { return text(c.Former) }},
			column[c]{"EVENTS", func(c c) string { return number(c.Events) }},
			column[c]{"THEN", afterReplay})
		if err != nil {
			return err
		}
	}
	if !all.Complete {
		s.note("only the first million events of the span were counted: there are more")
	}
	switch {
	case all.FirstSeq > all.LastSeq:
		return s.linef("route %s: its worker has no events there behind it", all.Route)
	case ask.DryRun:
		return s.linef("route %s: %d events of the numbers %d to %d would be sent", all.Route, all.Events, all.FirstSeq, all.LastSeq)
	}
	if err := s.linef("route %s: replay %d of %d events, numbers %d to %d", all.Route, *all.Replay, all.Events, all.FirstSeq, all.LastSeq); err != nil {
		return err
	}
	jobs, err := s.RouteReplays(ctx, ask.Route, true)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if j.ID == *all.Replay && j.WaitsFor != nil {
			s.note("it waits: %s", replayWaits(j))
		}
	}
	s.note("how far it is: tidemark route replay %s --list", all.Route)
	return nil
}

func afterReplay(c store.ReplayCount) string {
	switch {
	case c.LeftOut != nil:
		return "left out: " + leftOut[*c.LeftOut]
	case *c.Former == "sent":
		return "is sent again"
	default:
		return "is sent"
	}
}

// leftOut says why a replay leaves events out.
var leftOut = map[string]string{
	"pending": "its delivery is pending", "dead_letter": "it has an open dead letter", "discarded": "its dead letter was discarded",
	"no_match": "the route does not claim it", "open": "its worker has still to read it", "outcome": "not among --only",
	"gone": "dropped by retention",
}

func replayWaits(j store.RouteReplayed) string {
	waits := text(j.WaitsFor)
	if strings.Contains(waits, " ") {
		return waits
	}
	return "closed by " + waits // a gate
}

func replayState(j store.RouteReplayed) string {
	if j.WaitsFor != nil {
		return j.State + ": " + replayWaits(j)
	}
	return j.State
}

// replaySent is how many of the events that go were delivered.
func replaySent(j store.RouteReplayed) string {
	if j.Events == nil {
		return number(j.Sent)
	}
	return fmt.Sprintf("%d of %d", j.Sent, *j.Events)
}

func listReplays(ctx context.Context, s *session, route string) error {
	jobs, err := s.RouteReplays(ctx, route, false)
	if err != nil {
		return err
	}
	type j = store.RouteReplayed
	return rows(s.printer, "no replays", jobs,
		column[j]{"ID", func(j j) string { return number(j.ID) }},
		column[j]{"ROUTE", func(j j) string { return j.RouteCode }},
		column[j]{"STATE", replayState},
		column[j]{"AT", func(j j) string { return fmt.Sprintf("%d of %d to %d", j.PassedSeq, j.FirstSeq, j.LastSeq) }},
		column[j]{"STAGED", func(j j) string { return number(j.Staged) }},
		column[j]{"SENT", replaySent},
		column[j]{"FAILED", func(j j) string { return number(j.Failed) }},
		column[j]{"ASKED", func(j j) string { return s.age(j.RequestedAt) + " by " + j.RequestedBy }},
		column[j]{"REASON", func(j j) string { return cut(j.Reason, 60) }})
}

func cancelReplay(ctx context.Context, s *session, id int64, reason string) error {
	if err := needReason(reason); err != nil {
		return err
	}
	staged, err := s.ReplayCancel(ctx, id, reason)
	if err != nil {
		return err
	}
	if s.json {
		return s.object(struct {
			Replay int64 `json:"replay"`
			Staged int64 `json:"staged"`
		}{id, staged})
	}
	if staged > 0 {
		s.note("%d events were staged already and still go; to stop them too: tidemark route disable", staged)
	}
	return s.linef("replay %d: cancelled", id)
}
