package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newWorkerShow(a *app) *cobra.Command {
	return needs("tidemark_reader", &cobra.Command{
		Use:   "show NAME",
		Short: "Show what a worker is set to, and how far each of its cursors has come",
		RunE:  a.withSchema(workerShow),
	})
}

// workerDetails is the JSON of `worker show`.
type workerDetails struct {
	store.Worker
	Log     *store.Health        `json:"log"`     // null for a worker of tables
	Cursors []store.SourceCursor `json:"cursors"` // of a worker of tables
}

func workerShow(ctx context.Context, s *session, args []string) (err error) {
	var d workerDetails
	if d.Worker, err = s.Worker(ctx, args[0]); err != nil {
		return err
	}
	if d.Source == "outbox" {
		health, err := s.WorkerHealthOf(ctx, args[0])
		if err != nil {
			return err
		}
		d.Log = &health
	} else if d.Cursors, err = s.SourceCursors(ctx, args[0]); err != nil {
		return err
	}
	if s.json {
		return s.object(d)
	}
	if err := showWorker(s, d.Worker); err != nil {
		return err
	}
	if err := s.linef(""); err != nil {
		return err
	}
	if d.Log != nil {
		return workerTable(s, []store.Health{*d.Log})
	}
	return showCursors(s, d.Cursors)
}

func showCursors(s *session, all []store.SourceCursor) error {
	type c = store.SourceCursor
	return rows(s.printer, "it has no source yet: tidemark worker attach NAME SOURCE", all,
		column[c]{"SOURCE", func(c c) string { return c.Source }},
		column[c]{"SHARD", func(c c) string { return number(c.Shard) }},
		column[c]{"PHASE", func(c c) string { return c.Phase }},
		column[c]{"WATERMARK", func(c c) string { return firstOf(watermark(c.WatermarkTS, c.WatermarkID), "the beginning") }},
		column[c]{"LAG", func(c c) string { return firstOf(text(c.Lag), "-") }},
		column[c]{"ROWS SEEN", func(c c) string { return number(c.EventsSeen) }},
		column[c]{"PENDING", func(c c) string { return number(c.Pending) }},
		column[c]{"DEAD LETTERS", func(c c) string { return number(c.OpenDeadLetters) }},
		column[c]{"VERIFIED THROUGH", func(c c) string { return utcOr(c.VerifiedThrough, "-") }},
		column[c]{"LAST RUN", func(c c) string { return s.ageOr(c.LastRunAt, "never") }},
		column[c]{"RESULT", cursorResult})
}

// watermark is how far a cursor of a table has come.
func watermark(ts *time.Time, id *string) string {
	switch {
	case ts == nil:
		return text(id)
	case id == nil:
		return "before " + ts.UTC().Format(time.RFC3339Nano)
	default:
		return ts.UTC().Format(time.RFC3339Nano) + " " + *id
	}
}

// cursorResult is what the last pass came to.
func cursorResult(c store.SourceCursor) string {
	last, err := c.Last()
	switch {
	case err != nil:
		return err.Error()
	case c.PausedAt != nil:
		return "paused"
	case last.Status == "", last.Status == "ran" && len(last.Result) == 0:
		return last.Status
	case last.Status == "ran":
		return string(last.Result)
	default:
		return fmt.Sprintf("%s: %s", last.Status, last.Detail)
	}
}

func newWorkerAttach(a *app) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "attach NAME SOURCE",
		Short: "Give a worker of tables a source to read, from the beginning of the table",
	})
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		made, err := s.WorkerSourceAdd(ctx, args[0], args[1], reason)
		if err != nil {
			return err
		}
		if s.json {
			return s.object(struct {
				Worker  string `json:"worker"`
				Source  string `json:"source"`
				Cursors int    `json:"cursors"` // made; 0: it had them already
			}{args[0], args[1], made})
		}
		if made == 0 {
			return s.linef("worker %s: reads %s already", args[0], args[1])
		}
		return s.linef("worker %s: reads %s, %s", args[0], args[1], count(made, "cursor", "cursors"))
	})
	return cmd
}

func newWorkerDetach(a *app) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "detach NAME SOURCE",
		Short: "Take a source from a worker of tables: its cursors are gone, the audit keeps what they were",
	})
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		gone, err := s.WorkerSourceRemove(ctx, args[0], args[1], reason)
		if err != nil {
			return err
		}
		if s.json {
			return s.object(struct {
				Worker  string `json:"worker"`
				Source  string `json:"source"`
				Cursors int    `json:"cursors"`
			}{args[0], args[1], gone})
		}
		return s.linef("worker %s: does not read %s any more, %s gone", args[0], args[1], count(gone, "cursor is", "cursors are"))
	})
	return cmd
}
