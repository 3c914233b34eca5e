package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func routeReplay() cli.Command {
	var ask store.ReplayAsk
	var window cli.Window
	var rate string
	var from, to, cancel int64
	var list bool
	return cli.Command{
		Use: "replay [ROUTE]", Short: "Send events again, or events from before the route existed; list and cancel replays",
		Role: "tidemark_admin (to list: tidemark_reader)", Reason: cli.MayGiveReason,
		Long: `Send events on a route again, whether they were sent before, or the route was off, in dry run or did not exist.
Each is a new attempt on record, and is marked as a replay. Events that the route no longer claims, that are pending, or
that have an open dead letter are left out. The route's worker replays in the order of numbers, beside live events;
while a gate is closed, or the route is off or in dry run, the replay waits. The events are counted first; --dry-run
only counts.`,
		Example: "  tidemark route replay billing --since 24h --only disabled --reason 'was off by mistake'",
		Flags: func(flags *pflag.FlagSet) {
			window.Add(flags, "events emitted", "")
			flags.Int64Var(&from, "from-seq", 0, "events from this number on")
			flags.Int64Var(&to, "to-seq", 0, "events up to this number")
			flags.StringVar(&ask.Key, "key", "", "only events with this key")
			flags.StringSliceVar(&ask.Outcomes, "only", nil,
				"only events with this outcome so far: sent, disabled, dry_run, skipped, failed, none (not decided)")
			flags.StringVar(&rate, "rate", "", "at most this many events a second, such as 50/s")
			flags.BoolVar(&ask.DryRun, "dry-run", false, "count, and send nothing")
			flags.BoolVar(&list, "list", false, "list replays and their progress")
			flags.Int64Var(&cancel, "cancel", 0, "cancel the replay with this `ID`")
		},
		Run: func(ctx context.Context, s *cli.Session) (err error) {
			ask.Route, ask.Reason = s.Arg(0), s.Reason
			switch {
			case list:
				return listReplays(ctx, s, ask.Route)
			case s.Given("cancel"):
				return cancelReplay(ctx, s, cancel)
			case ask.Route == "":
				return cli.Usagef("give a ROUTE, or --list, or --cancel ID")
			case window.Since.Given() == s.Given("from-seq"):
				return cli.Usagef("give one of --since and --from-seq")
			case window.Until.Given() && s.Given("to-seq"):
				return cli.Usagef("give one of --until and --to-seq")
			}
			if !ask.DryRun {
				if err := s.NeedReason(); err != nil {
					return err
				}
			}
			if s.Given("from-seq") {
				ask.FromSeq = &from
			}
			if s.Given("to-seq") {
				ask.ToSeq = &to
			}
			if ask.Since, ask.Until, err = window.Times(s.Now); err != nil {
				return err
			}
			if ask.Rate, err = cli.PerSecond(rate); err != nil {
				return err
			}
			return replayRoute(ctx, s, ask)
		},
	}
}

// requestedReplay is the JSON of a replay that was requested.
type requestedReplay struct {
	Route string `json:"route"`
	store.Counted
}

func replayRoute(ctx context.Context, s *cli.Session, ask store.ReplayAsk) error {
	counts, err := s.RouteReplay(ctx, ask)
	if err != nil {
		return err
	}
	all := requestedReplay{ask.Route, counts}
	if s.JSON {
		s.Object(all)
		return nil
	}
	if len(all.Counts) > 0 {
		err := cli.Table(s.Printer, "", all.Counts, "SO FAR|EVENTS|THEN", func(c store.ReplayCount) cli.Row {
			then := cli.Choose(cli.Cell(c.Former) == "sent", "is sent again", "is sent")
			if c.LeftOut != nil {
				then = "left out: " + leftOut[*c.LeftOut]
			}
			return cli.Row{c.Former, c.Events, then}
		})
		if err != nil {
			return err
		}
	}
	if !all.Complete {
		s.Note("only the first million events of the span were counted: there are more")
	}
	switch {
	case all.FirstSeq > all.LastSeq:
		s.Line("route %s: its worker has passed no events there", all.Route)
		return nil
	case ask.DryRun:
		s.Line("route %s: %d events of the numbers %d to %d would be sent", all.Route, all.Events, all.FirstSeq, all.LastSeq)
		return nil
	}
	return tellReplay(ctx, s, all)
}

// tellReplay says what was requested, and what it waits for.
func tellReplay(ctx context.Context, s *cli.Session, all requestedReplay) error {
	replays, err := s.RouteReplays(ctx, store.ReplayFilter{Route: all.Route, Open: true})
	if err != nil {
		return err
	}
	line := fmt.Sprintf("replay %d of %d events, numbers %d to %d", *all.Replay, all.Events, all.FirstSeq, all.LastSeq)
	var waits string
	for _, r := range replays {
		switch {
		case r.ID != *all.Replay:
			continue
		case r.Events == nil && all.Complete: // its end is open
			line = fmt.Sprintf("replay %d of events from number %d on, %d so far", r.ID, all.FirstSeq, all.Events)
		}
		if r.WaitsFor != nil {
			waits = cli.ReplayWaits(r)
		}
	}
	s.Line("route %s: %s", all.Route, line)
	if waits != "" {
		s.Note("it waits: %s", waits)
	}
	s.Note("to see its progress: tidemark route replay %s --list", all.Route)
	return nil
}

// leftOut says why a replay leaves events out.
var leftOut = map[string]string{
	"pending": "its delivery is pending", "dead_letter": "it has an open dead letter", "discarded": "its dead letter was discarded",
	"no_match": "the route does not claim it", "open": "its worker has yet to read it", "outcome": "not among --only",
	"gone": "dropped by retention",
}

func listReplays(ctx context.Context, s *cli.Session, route string) error {
	replays, err := s.RouteReplays(ctx, store.ReplayFilter{Route: route})
	if err != nil {
		return err
	}
	return cli.Table(s.Printer, "no replays", replays, "ID|ROUTE|STATE|AT|STAGED|SENT|FAILED|ASKED|REASON",
		func(r store.RouteReplayed) cli.Row {
			return cli.Row{
				r.ID, r.RouteCode, cli.ReplayState(r), fmt.Sprintf("%d of %d to %d", r.PassedSeq, r.FirstSeq, r.LastSeq), r.Staged,
				cli.ReplaySent(r), r.Failed, s.Age(r.RequestedAt) + " by " + r.RequestedBy, cli.Cut(r.Reason, 60),
			}
		})
}

func cancelReplay(ctx context.Context, s *cli.Session, id int64) error {
	if err := s.NeedReason(); err != nil {
		return err
	}
	staged, err := s.ReplayCancel(ctx, id, s.Reason)
	if err != nil {
		return err
	}
	if staged > 0 && !s.JSON {
		s.Note("%d events were staged already and are still sent; to stop them too: tidemark route disable", staged)
	}
	return s.Result(cli.Fields{"replay", id, "staged", staged}, "replay %d: cancelled", id)
}
