package main

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func heartbeatCommand() cli.Command {
	return cli.Command{
		Use: "heartbeat", Short: "Executors whose heartbeats Tidemark watches",
		Long: `Executors whose heartbeats Tidemark watches. Workers and daemons send them by themselves. Anything else sends
them once it is registered, with tidemark beat or in plain SQL:

  select tidemark.heartbeat_write('nightly_export', 'ok', '{"rows": 7}');

An executor that is silent for longer than its threshold opens a finding and emits an event
system/queue_worker_silent.`,
		Example: "  tidemark heartbeat register nightly_export --every 24h --threshold 26h",
		Sub: []cli.Command{
			{Use: "list", Short: "List executors and their last heartbeats", Role: "tidemark_reader", Run: heartbeatList},
			heartbeatRegister(),
			{
				Use: "deregister EXECUTOR", Short: "Forget an executor that will not come back", Role: "tidemark_admin", Reason: cli.MayGiveReason,
				Run: func(ctx context.Context, s *cli.Session) error {
					if err := s.HeartbeatDeregister(ctx, s.Arg(0), s.Reason); err != nil {
						return err
					}
					return s.Result(cli.Fields{"executor_id", s.Arg(0)}, "executor %s: forgotten", s.Arg(0))
				},
			},
		},
	}
}

func heartbeatList(ctx context.Context, s *cli.Session) error {
	all, err := s.Heartbeats(ctx, store.Part{})
	if err != nil {
		return err
	}
	return cli.Table(s.Printer, "no executors", all, "EXECUTOR|KIND|STATE|LAST BEAT|SAID|EVERY|SILENT AFTER|BEATS",
		func(h store.Heartbeat) cli.Row {
			state := h.State
			if h.Excuse != nil {
				state += ": " + *h.Excuse
			}
			return cli.Row{
				h.ExecutorID, h.Kind, state, s.AgeOr(h.LastBeatAt, "never"), cli.Cut(h.LastStatus, 40),
				exact(h.CadenceSeconds), exact(h.ThresholdSeconds), h.TicksTotal,
			}
		})
}

// exact is a number of seconds as a duration.
func exact(seconds int) string { return (time.Duration(seconds) * time.Second).String() }

func heartbeatRegister() cli.Command {
	var r store.Registration
	return cli.Command{
		Use: "register EXECUTOR", Short: "Register an executor, or change what is expected of it", Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&r.Kind, "kind", "",
				"a kind of the table tidemark.heartbeat_kind; default: unchanged, and external_worker for a new one")
			flags.DurationVar(&r.Cadence, "every", time.Minute, "how often a heartbeat is expected, in whole seconds")
			flags.DurationVar(&r.Threshold, "threshold", 0, "silence that raises an alert; 0: three times --every")
			flags.StringSliceVar(&r.DomainScope, "domains", nil, "domains that it covers; none: all")
			flags.StringVar(&r.Payload, "payload", "", "small facts, as a JSON object")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			r.ExecutorID, r.Reason = s.Arg(0), s.Reason
			h, err := s.HeartbeatRegister(ctx, r)
			if err != nil {
				return err
			}
			with := "tidemark beat " + h.ExecutorID + ", or: select tidemark.heartbeat_write(" + cli.Literal(h.ExecutorID) + ");"
			if h.Worker != nil {
				with = "its passes: tidemark worker run " + *h.Worker + ", or a daemon"
			}
			return s.Show(h, "executor", h.ExecutorID, "kind", h.Kind, "domains", cli.Or(h.DomainScope, "all"),
				"every", exact(h.CadenceSeconds),
				"silent after", exact(h.ThresholdSeconds), "beats with", with)
		},
	}
}

func staleCheckCommand() cli.Command {
	return cli.Command{
		Use: "stale-check", Short: "Check for executors that have fallen silent", Role: "tidemark_executor",
		Long:    "Check for executors that have fallen silent, as every daemon does every 10 seconds.",
		Example: "  tidemark stale-check",
		Run: func(ctx context.Context, s *cli.Session) error {
			all, err := cli.InTx(ctx, s, func(db *store.DB) ([]store.Silence, error) { return db.StaleCheck(ctx) })
			if err != nil {
				return err
			}
			return cli.Table(s.Printer, "no executor is silent", all, "EXECUTOR|STATE|SEVERITY|FOR|SAID|EVENT",
				func(e store.Silence) cli.Row {
					return cli.Row{
						e.ExecutorID, e.State, e.Severity, cli.Seconds(e.AgeSeconds),
						cli.Cut(cli.Cell(e.LastStatus), 40), e.EventID,
					}
				})
		},
	}
}
