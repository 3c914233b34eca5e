package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func letterJob() cli.Command {
	var open bool
	var limit int
	return cli.Command{
		Use: "job", Short: "Replay or discard many dead letters, as a job of the daemon",
		Sub: []cli.Command{
			letterJobAdd("replay", "Have a daemon try all dead letters of a route or source again"),
			letterJobAdd("discard", "Have a daemon discard all dead letters of a route or source; they stay on record"),
			{
				Use: "list", Short: "List jobs and their progress, the latest first", Role: "tidemark_reader",
				Flags: func(flags *pflag.FlagSet) {
					flags.BoolVar(&open, "open", false, "only those that are not over")
					cli.Limit(flags, &limit, 100)
				},
				Run: func(ctx context.Context, s *cli.Session) error {
					if err := cli.CheckLimit(limit); err != nil {
						return err
					}
					jobs, err := s.LetterJobs(ctx, open, 0, limit)
					if err != nil {
						return err
					}
					return cli.Table(s.Printer, "no jobs", jobs, "ID|DOES|ROUTE|SOURCE|ERROR|RATE|STATE|WAITS FOR|DONE|CAME TO|ASKED|REASON", func(j store.LetterJob) cli.Row {
						return cli.Row{
							j.ID, j.Action, j.RouteCode, j.Source, j.ErrorCode, j.Rate, j.State, j.WaitsFor, fmt.Sprintf("%d of %d", j.Done, j.Letters), j.Outcomes,
							s.Age(j.RequestedAt) + " by " + j.RequestedBy, j.Reason,
						}
					})
				},
			},
			{
				Use: "cancel ID", Short: "Cancel a job; what it has done stays done", Role: "tidemark_admin", Reason: cli.NeedsReason,
				Run: func(ctx context.Context, s *cli.Session) error {
					id, err := cli.ID("job", s.Arg(0))
					if err != nil {
						return err
					}
					if err := s.LetterJobCancel(ctx, id, s.Reason); err != nil {
						return err
					}
					return s.Result(cli.Fields{"job", id}, "job %d: cancelled", id)
				},
			},
		},
	}
}

func letterJobAdd(action, short string) cli.Command {
	ask := store.LetterJobAsk{Action: action}
	var rate string
	return cli.Command{
		Use: action, Short: short, Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Example: "  tidemark dead-letter job " + action + " --route billing --reason 'the target is fixed'",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&ask.Route, "route", "", "only this route")
			flags.StringVar(&ask.Source, "source", "", "only rows of this source; outbox: only events")
			flags.StringVar(&ask.Code, "code", "", "only this error code")
			flags.BoolVar(&ask.DryRun, "dry-run", false, "count, and do nothing")
			if action == "replay" {
				flags.StringVar(&rate, "rate", "", "at most this many letters a second, such as 50/s")
			}
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if ask.Reason = s.Reason; !ask.DryRun {
				if err := s.NeedReason(); err != nil {
					return err
				}
			}
			var err error
			if ask.Rate, err = cli.PerSecond(rate); err != nil {
				return err
			}
			added, err := s.LetterJobAdd(ctx, ask)
			if err != nil {
				return err
			}
			letters := cli.Count(added.Letters, "dead letter")
			if added.Job == nil {
				return s.Result(added, "%s", letters)
			}
			return s.Result(added, "job %d: a daemon is to %s %s; tidemark dead-letter job list shows how far it is", *added.Job, action, letters)
		},
	}
}
