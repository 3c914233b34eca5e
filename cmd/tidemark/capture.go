package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

var captureColumns = cli.Columns{
	{
		Flag: "kind", Name: "source_object_kind", Default: "table",
		Usage: "what makes the events: table (attach it), or a function or trigger that calls tidemark.inbound_emit",
	},
	{Flag: "schema", Name: "source_schema", Usage: "schema of the table or function, as the catalog spells it"},
	{Flag: "table", Name: "source_table", Usage: "the table or function, as the catalog spells it"},
	{Flag: "operation", Name: "sql_event", Usage: "insert, update, delete or truncate; of a function call"},
	{Flag: "domain", Usage: "domain of the events"},
	{Flag: "type", Usage: "type of the events"},
	{Flag: "stream", Kind: cli.Optional, Usage: "stream of the events; empty: none"},
	{Flag: "enabled", Kind: cli.Bool, Usage: "on"},
	{Flag: "dry-run", Kind: cli.Bool, Default: "true", Usage: "record that there would be events, and write none"},
	{
		Flag: "fail-closed", Kind: cli.Bool, Default: "true",
		Usage: "fail a transaction whose event cannot be written; =false: go on without the event",
	},
	{
		Flag: "idempotency-policy", Default: "change",
		Usage: "change, or transaction: only the first change of a row in a transaction",
	},
	{
		Flag: "payload-columns", Kind: cli.List,
		Usage: "columns or fields whose values the payload shows; empty: none",
	},
	{Flag: "description", Usage: "free text that says what it is for"},
}

func captureCommand() cli.Command {
	return cli.Command{
		Use: "capture", Short: "Turn changes of tables into events, by triggers",
		Long: `Turn changes of tables into events, without code: an inbound route says which operation on which table becomes
which event, and attach puts the triggers on the table. While the route is off, no events are written. Gates stop
deliveries, not capture: events wait in the log. See docs/capture.md.`,
		Example: "  tidemark capture route set new_order --schema shop --table orders --operation insert --domain shop --type order.created\n" +
			"  tidemark capture attach shop.orders --reason 'release 12'",
		Sub: []cli.Command{
			{Use: "route", Short: "Say which changes become which events", Sub: []cli.Command{{
				Use: "set CODE", Short: "Create or change an inbound route", Role: "tidemark_admin", Reason: cli.MayGiveReason, Columns: captureColumns,
				Long: `Create or change an inbound route. A new one needs --schema, --table, --operation, --domain and --type; it is
off and in dry run unless you say otherwise. Columns whose flags you leave out keep their values.`,
				Run: captureRouteSet,
			}, cli.Delete("CODE", "Delete an inbound route without a trigger; its events stay",
				func(ctx context.Context, s *cli.Session) error { return s.InboundRouteDelete(ctx, s.Arg(0), s.Reason) })}},
			{Use: "list", Short: "List inbound routes and the triggers of capture", Role: "tidemark_reader", Run: captureList},
			{
				Use: "check", Short: "Check inbound routes and their triggers; changes nothing", Role: "tidemark_reader",
				Long: "Check inbound routes and their triggers. Changes nothing. The exit status is 1 if a check fails: changes are lost, or writers fail.",
				Run:  captureCheck,
			},
			captureAttach(), captureDetach(), captureBackfill(), captureReconcile(),
			{
				Use: "guard on|off", Short: "Refuse triggers that call Tidemark on tables without an inbound route", Reason: cli.NeedsReason,
				Long: "Create or drop an event trigger that refuses triggers which call functions of Tidemark on tables without an inbound route. Needs a superuser.",
				Run: func(ctx context.Context, s *cli.Session) error {
					if err := s.CaptureGuard(ctx, s.Arg(0) == "on", s.Reason); err != nil {
						return err
					}
					return s.Result(cli.Fields{"guard", s.Arg(0)}, "guard: %s", s.Arg(0))
				},
			},
		},
	}
}

func captureRouteSet(ctx context.Context, s *cli.Session) error {
	changes, err := captureColumns.SomeChanges(s.Flags)
	if err != nil {
		return err
	}
	r, err := s.InboundRouteSet(ctx, s.Arg(0), changes, s.Reason)
	if err != nil {
		return err
	}
	return s.Show(r, "inbound route", r.RouteCode, "enabled", r.Enabled, "dry run", r.DryRun, "fail closed", r.FailClosed,
		r.SourceObjectKind, r.SourceSchema+"."+r.SourceTable, "operation", r.SQLEvent, "events", r.Domain+"/"+r.Type, "stream", r.Stream,
		"idempotency", r.IdempotencyPolicy, "columns", fmt.Sprint(r.PayloadColumns), "description", r.Description)
}

// tableChange attaches or detaches. With dryRun it only returns the statements.
type tableChange func(ctx context.Context, s *cli.Session, dryRun bool) ([]store.CaptureStatement, error)

func captureAttach() cli.Command {
	var dryRun, always bool
	return cli.Command{
		Use: "attach TABLE", Short: "Put capture triggers on a table, for the operations that have inbound routes", Role: "tidemark_admin",
		Reason: cli.MayGiveReason,
		Long: `Put capture triggers on a table, for the operations that have inbound routes, and enable those that do not fire. Run it
as the table's owner. It shows the SQL before it runs it. It waits 3 seconds for a busy table, and tries 5 times.`,
		Flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&dryRun, "dry-run", false, "only show the SQL")
			flags.BoolVar(&always, "always", false, "also fire where session_replication_role is replica (ENABLE ALWAYS)")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			return changeTable(ctx, s, "attached", dryRun,
				func(ctx context.Context, s *cli.Session, dryRun bool) ([]store.CaptureStatement, error) {
					return s.CaptureAttach(ctx, s.Arg(0), s.Reason, dryRun, always)
				})
		},
	}
}

func captureDetach() cli.Command {
	var dryRun bool
	return cli.Command{
		Use: "detach TABLE", Short: "Drop the capture triggers of a table", Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Long: `Drop the capture triggers of a table. Run it as the table's owner. To stop for a while, turn the route off
instead: that waits for no lock. Routes stay: one that is on is a finding, capture_disabled, until it is switched off or
attached again; the command names these.`,
		Flags: func(flags *pflag.FlagSet) { flags.BoolVar(&dryRun, "dry-run", false, "only show the SQL") },
		Run: func(ctx context.Context, s *cli.Session) error {
			err := changeTable(ctx, s, "detached", dryRun,
				func(ctx context.Context, s *cli.Session, dryRun bool) ([]store.CaptureStatement, error) {
					return s.CaptureDetach(ctx, s.Arg(0), s.Reason, dryRun)
				})
			if err != nil || dryRun {
				return err
			}
			routes, err := s.InboundRoutesOn(ctx, s.Arg(0))
			for _, code := range routes {
				s.Note("route %[1]s is still on; switch it off: tidemark capture route set %[1]s --enabled=false --reason WHY", code)
			}
			return err
		},
	}
}

func changeTable(ctx context.Context, s *cli.Session, done string, dryRun bool, change tableChange) error {
	if !dryRun {
		if err := s.NeedReason(); err != nil {
			return err
		}
	}
	statements, err := change(ctx, s, true)
	if err != nil {
		return err
	}
	if !s.JSON {
		for _, c := range statements {
			s.Line("%s;", c.Statement)
		}
	}
	if !dryRun {
		err := s.RetryWhileBusy(ctx, s.Arg(0), func() error {
			_, err := change(ctx, s, false)
			return err
		})
		if err != nil {
			return err
		}
	}
	if dryRun && !s.JSON {
		return nil
	}
	return s.Result(cli.Fields{"table", s.Arg(0), "dry_run", dryRun, "statements", statements}, "%s: %s", s.Arg(0), done)
}

func captureList(ctx context.Context, s *cli.Session) error {
	all, err := s.CaptureList(ctx)
	if err != nil {
		return err
	}
	return cli.Table(s.Printer, "nothing is captured; create a route: tidemark capture route set CODE", all,
		"TABLE|OPERATION|ROUTE|STATE|TRIGGER|EVENTS",
		func(c store.Captured) cli.Row {
			events := ""
			if c.Domain != nil {
				events = *c.Domain + "/" + cli.Cell(c.Type)
			}
			return cli.Row{c.SchemaName + "." + c.TableName, c.Operation, c.RouteCode, c.State, c.Trigger, events}
		})
}

func captureCheck(ctx context.Context, s *cli.Session) error {
	checks, err := s.CaptureCheck(ctx)
	if err != nil {
		return err
	}
	if len(checks) == 0 {
		s.Note("nothing is wrong")
		return nil
	}
	return cli.ShowChecks(s, checks)
}

func captureReconcile() cli.Command {
	var sample int
	var emit, accept bool
	var table string
	return cli.Command{
		Use: "reconcile", Short: "Compare the changes of tables since the last call with their events", Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Long: `Compare the changes that the server counted on each attached table since the last call with the table's events,
and a sample of rows with the events of their keys. The exit status is 1 if there is a gap: changes without events. A
gap stays open until --emit has emitted events for its rows, from the table as it is (their payload has "reconciled":
true), or --accept says that there will be none. Changes that no row shows any more, such as deletes, can only be
accepted. A row that jsonb cannot hold (json with \u0000, say) stays in the gap until it is changed or accepted.`,
		Flags: func(flags *pflag.FlagSet) {
			flags.IntVar(&sample, "sample", 1000, "how many rows of each table to look up by their keys, at most")
			flags.BoolVar(&emit, "emit", false, "emit events for the rows of gaps, as they are now")
			flags.BoolVar(&accept, "accept", false, "close gaps without events; needs --reason")
			flags.StringVar(&table, "table", "", "only the gap of this table, SCHEMA.TABLE; default: all gaps")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			switch {
			case emit && accept:
				return cli.Usagef("give --emit or --accept, not both")
			case emit || accept:
				return endGaps(ctx, s, table, accept)
			case table != "" || s.Reason != "":
				return cli.Usagef("--table and --reason are for --emit and --accept")
			}
			all, err := s.CaptureReconcile(ctx, sample)
			if err != nil {
				return err
			}
			err = cli.Table(s.Printer, "no table is attached and enabled", all, "TABLE|STATUS|FOUND",
				func(r store.Reconciled) cli.Row {
					return cli.Row{r.Relation, r.Status, r.Detail}
				})
			for _, r := range all {
				if r.Status == "gap" {
					return errors.New("changes without events: see the finding capture_gap")
				}
			}
			return err
		},
	}
}

// endGaps emits events for the rows of open gaps, or accepts the gaps.
func endGaps(ctx context.Context, s *cli.Session, table string, accept bool) error {
	if accept {
		if err := s.NeedReason(); err != nil {
			return err
		}
	}
	gaps, err := s.OpenGaps(ctx, table)
	if err != nil {
		return err
	}
	type ended struct {
		store.Gap
		Open bool `json:"open"`
	}
	all := make([]ended, len(gaps))
	left := 0
	for i, g := range gaps {
		all[i].Gap = g
		if accept {
			err = s.CaptureGapAccept(ctx, g.ID, s.Reason)
		} else {
			all[i].Emitted, err = s.CaptureGapEmit(ctx, g.ID, cmp.Or(s.Reason, "emitted from the table as it is"))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	open, err := s.OpenGaps(ctx, table)
	if err != nil {
		return err
	}
	for i := range all {
		for _, g := range open {
			if g.ID == all[i].ID {
				all[i].Open, all[i].Others, all[i].Unreadable = true, g.Others, g.Unreadable
				left++
			}
		}
	}
	err = cli.Table(s.Printer, "no gap is open", all, "TABLE|EMITTED|GAP", func(e ended) cli.Row {
		state := cli.Choose(accept, "accepted", "emitted")
		if e.Open {
			state = "open: " + whyOpen(e.Gap)
		}
		return cli.Row{e.Name, e.Emitted, state}
	})
	if left > 0 {
		return cli.Hint(errors.New("changes are left without events"),
			"Accept them: tidemark capture reconcile --accept --reason …")
	}
	return err
}

// whyOpen says what keeps a gap open whose rows were emitted.
func whyOpen(g store.Gap) string {
	var why []string
	if g.Others > 0 {
		why = append(why, cli.Count(g.Others, "change")+" that no row shows")
	}
	if len(g.Unreadable) > 0 {
		why = append(why, "rows that jsonb cannot hold: "+strings.Join(g.Unreadable, ", "))
	}
	return strings.Join(why, "; ")
}
