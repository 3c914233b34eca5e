package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

func newWorkerRewind(a *app) *cobra.Command {
	var reason, source, toTime, toID string
	var accept bool
	var to int64
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "rewind NAME",
		Short: "Move a worker's cursor back; what was decided stays decided, rows of tables are handed over again",
		Long: `Move a worker's cursor back. In the log, what was decided stays decided. Rows of a table that are read again
are handed over again: their handler must not mind. --accept leaves the cursors of a source where they are,
after a finding that held them.`,
	})
	flags := cmd.Flags()
	flags.Int64Var(&to, "to", 0, "in the log: number of the event to read on behind; 0: its beginning")
	flags.StringVar(&source, "source", "", "of a worker of tables: the source")
	flags.StringVar(&toTime, "to-time", "", "rows of this time and later are read again: RFC 3339, or how long ago (90m, 24h, 7d)")
	flags.StringVar(&toID, "to-id", "", "of the safety sequence: rows with a higher id are read again")
	flags.BoolVar(&accept, "accept", false, "read on where the cursors are")
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		places := 0
		for _, flag := range []string{"to", "to-time", "to-id", "accept"} {
			if flags.Changed(flag) {
				places++
			}
		}
		switch {
		case places != 1:
			return usagef("give one of --to (of the log), or with --source one of --to-time, --to-id and --accept")
		case flags.Changed("to") == flags.Changed("source"):
			return usagef("--to is for the log; --to-time, --to-id and --accept are for a --source")
		}
		if err := needReason(reason); err != nil {
			return err
		}
		if source == "" {
			return rewindLog(ctx, s, args[0], to, reason)
		}
		back, err := when("to-time", toTime, s.now)
		if err != nil {
			return err
		}
		return rewindSource(ctx, s, args[0], source, reason, back, toID)
	})
	return cmd
}

func rewindLog(ctx context.Context, s *session, worker string, to int64, reason string) error {
	was, err := s.WorkerRewind(ctx, worker, to, reason)
	if err != nil {
		return err
	}
	if s.json {
		return s.object(struct {
			Worker string `json:"worker"`
			Was    int64  `json:"was"`
			Is     int64  `json:"is"`
		}{worker, was, to})
	}
	return s.linef("worker %s: watermark %d, was %d", worker, to, was)
}

func rewindSource(ctx context.Context, s *session, worker, source, reason string, back time.Time, id string) error {
	cursors, err := s.SourceRewind(ctx, worker, source, reason, back, id)
	if err != nil {
		return err
	}
	if s.json {
		return s.object(struct {
			Worker  string `json:"worker"`
			Source  string `json:"source"`
			Cursors int    `json:"cursors"`
		}{worker, source, cursors})
	}
	return s.linef("worker %s, source %s: %s read on from there", worker, source, count(cursors, "cursor", "cursors"))
}
