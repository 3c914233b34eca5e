package main

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func historyCommand() cli.Command {
	var since time.Duration
	return cli.Command{
		Use: "history [ROUTE]", Short: "Show what a route, or all of them, sent and failed over time", Role: "tidemark_reader",
		Long: `Show what a route, or all of them, did over time: a line a minute; of more than 5 hours a line for 5 minutes; of more than
25 hours a line an hour. EMITTED and WAITING are noted by tidemark maintain, which a daemon calls every minute.`,
		Example: "  tidemark history billing --since 24h",
		Flags: func(flags *pflag.FlagSet) {
			flags.DurationVar(&since, "since", time.Hour, "how far back, up to 168h")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			steps, err := s.History(ctx, s.Arg(0), since)
			if err != nil {
				return err
			}
			return cli.Table(s.Printer, "", steps, "AT|EMITTED|SENT|RETRIED|FAILED|RECORDED|WAITING", func(h store.HistoryStep) cli.Row {
				return cli.Row{h.At, h.Emitted, h.Sent, h.Retried, h.Failed, h.Recorded, h.Waiting}
			})
		},
	}
}
