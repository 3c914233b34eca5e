package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newCapture(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "capture",
		Short: "Changes of tables as events",
		Long: `Changes of tables as events, without code: a route says which operation on which table becomes which
event, and attach puts the triggers on the table. Nothing is written while the route is
off. Gates stop deliveries, not capture: events wait in the log. See docs/capture.md.`,
	}
	route := &cobra.Command{Use: "route", Short: "Which changes become which events"}
	route.AddCommand(newCaptureRouteSet(a))
	cmd.AddCommand(
		route, newCaptureAttach(a), newCaptureDetach(a), newCaptureReconcile(a), newCaptureGuard(a),
		needs("tidemark_reader", &cobra.Command{Use: "list", Short: "List inbound routes and triggers of capture", RunE: a.withSchema(captureList)}),
		needs("tidemark_reader", &cobra.Command{
			Use:   "check",
			Short: "Check inbound routes and their triggers; changes nothing",
			Long:  `Check inbound routes and their triggers. Changes nothing. The exit status is 1 when a check fails: changes are lost, or writers fail.`,
			RunE:  a.withSchema(captureCheck),
		}),
	)
	return cmd
}

func newCaptureRouteSet(a *app) *cobra.Command {
	var reason, table string
	var columns []string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "set CODE",
		Short: "Make an inbound route or change one",
		Long: `Make an inbound route or change one. A new one needs --schema, --table, --operation, --domain and --type;
it is off and in dry run unless told otherwise. Options that are not named stay.`,
	})
	flags := cmd.Flags()
	flags.String("kind", "table", "what makes the events: table (attach it), or a function or trigger that calls tidemark.inbound_emit")
	flags.String("schema", "", "schema of the table or function, as the catalog spells it")
	flags.StringVar(&table, "table", "", "the table or function, as the catalog spells it")
	flags.String("operation", "", "insert, update, delete or truncate; of a function call")
	flags.String("domain", "", "domain of the events")
	flags.String("type", "", "type of the events")
	flags.String("stream", "", "stream of the events; empty: none")
	flags.Bool("enabled", false, "on")
	flags.Bool("dry-run", true, "record that there would be events, write none")
	flags.Bool("fail-closed", true, "a transaction whose event cannot be written fails; false: it goes on without")
	flags.String("idempotency-policy", "change", "change, or transaction: the first change of a row in a transaction only")
	flags.StringSliceVar(&columns, "columns", nil, "columns or fields whose values the payload shows; empty: none")
	flags.String("description", "", "for people")
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		changes := store.Changes{}
		for flag, column := range map[string]string{
			"kind": "source_object_kind", "schema": "source_schema", "table": "source_table", "operation": "sql_event", "domain": "domain", "type": "type",
			"idempotency-policy": "idempotency_policy", "description": "description",
		} {
			if flags.Changed(flag) {
				changes[column], _ = flags.GetString(flag)
			}
		}
		for flag, column := range map[string]string{"enabled": "enabled", "dry-run": "dry_run", "fail-closed": "fail_closed"} {
			if flags.Changed(flag) {
				changes[column], _ = flags.GetBool(flag)
			}
		}
		if flags.Changed("stream") {
			changes["stream"] = nil
			if stream, _ := flags.GetString("stream"); stream != "" {
				changes["stream"] = stream
			}
		}
		if flags.Changed("columns") {
			changes["payload_columns"] = append([]string{}, columns...) // none is [], not null
		}
		if err := needOne(changes); err != nil {
			return err
		}
		r, err := s.InboundRouteSet(ctx, args[0], changes, reason)
		if err != nil {
			return err
		}
		if s.json {
			return s.object(r)
		}
		return s.facts(
			fact{"inbound route", r.RouteCode}, fact{"enabled", yes(r.Enabled)}, fact{"dry run", yes(r.DryRun)}, fact{"fail closed", yes(r.FailClosed)},
			fact{r.SourceObjectKind, r.SourceSchema + "." + r.SourceTable}, fact{"operation", r.SQLEvent}, fact{"events", r.Domain + "/" + r.Type},
			fact{"stream", text(r.Stream)}, fact{"idempotency", r.IdempotencyPolicy}, fact{"columns", fmt.Sprint(r.PayloadColumns)}, fact{"description", r.Description})
	})
	return cmd
}

// tableChange is what attach and detach do.
type tableChange func(db *store.DB, ctx context.Context, dryRun bool) ([]store.CaptureStatement, error)

func newCaptureAttach(a *app) *cobra.Command {
	var reason string
	var dryRun, always bool
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "attach TABLE",
		Short: "Put the triggers of capture on a table, for the operations that have inbound routes",
		Long: `Put the triggers of capture on a table, for the operations that have inbound routes. Run it as the table's
owner. The SQL is shown before it runs. It waits 3 seconds for a busy table, and tries 5 times.`,
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			return changeTable(ctx, s, "attached", args[0], reason, dryRun, func(db *store.DB, ctx context.Context, dry bool) ([]store.CaptureStatement, error) {
				return db.CaptureAttach(ctx, args[0], reason, dry, always)
			})
		}),
	})
	reasonFlag(cmd, &reason)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the SQL only")
	cmd.Flags().BoolVar(&always, "always", false, "capture what replication writes too (ENABLE ALWAYS)")
	return cmd
}

func newCaptureDetach(a *app) *cobra.Command {
	var reason string
	var dryRun bool
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "detach TABLE",
		Short: "Drop the triggers of capture from a table",
		Long: `Drop the triggers of capture from a table. Run it as the table's owner. To stop for a while turn the route
off instead: that waits for nobody.`,
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			return changeTable(ctx, s, "detached", args[0], reason, dryRun, func(db *store.DB, ctx context.Context, dry bool) ([]store.CaptureStatement, error) {
				return db.CaptureDetach(ctx, args[0], reason, dry)
			})
		}),
	})
	reasonFlag(cmd, &reason)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the SQL only")
	return cmd
}

func changeTable(ctx context.Context, s *session, done, table, reason string, dryRun bool, change tableChange) error {
	if !dryRun {
		if err := needReason(reason); err != nil {
			return err
		}
	}
	statements, err := change(s.DB, ctx, true)
	if err != nil {
		return err
	}
	if !s.json {
		for _, c := range statements {
			if err := s.linef("%s;", c.Statement); err != nil {
				return err
			}
		}
	}
	if !dryRun {
		if err := patiently(ctx, s, table, func() error {
			_, err := change(s.DB, ctx, false)
			return err
		}); err != nil {
			return err
		}
	}
	switch {
	case s.json:
		return s.object(struct {
			Table      string                   `json:"table"`
			DryRun     bool                     `json:"dry_run"`
			Statements []store.CaptureStatement `json:"statements"`
		}{table, dryRun, statements})
	case dryRun:
		return nil
	default:
		return s.linef("%s: %s", table, done)
	}
}

// patiently tries again what could not get its lock. Waiting longer at a time would hold up everybody who comes
// after.
func patiently(ctx context.Context, s *session, table string, do func() error) error {
	const attempts, pause = 5, time.Second
	for n := 1; ; n++ {
		err := do()
		var refused *pgconn.PgError
		if err == nil || !errors.As(err, &refused) || refused.Code != "55P03" {
			return err
		}
		busy := "the table is busy"
		if who, err := s.LockBlame(ctx, table); err == nil && who != "" {
			busy += ", kept so by " + who
		}
		if n == attempts {
			return hinted{fmt.Errorf("%s: %w", busy, err), "Try again when fewer transactions write it."}
		}
		s.note("%s; trying again", busy)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func captureList(ctx context.Context, s *session, _ []string) error {
	all, err := s.CaptureList(ctx)
	if err != nil {
		return err
	}
	type c = store.Captured
	return rows(s.printer, "nothing is captured; make a route: tidemark capture route set CODE", all,
		column[c]{"TABLE", func(c c) string { return c.SchemaName + "." + c.TableName }},
		column[c]{"OPERATION", func(c c) string { return c.Operation }},
		column[c]{"ROUTE", func(c c) string { return text(c.RouteCode) }},
		column[c]{"STATE", func(c c) string { return c.State }},
		column[c]{"TRIGGER", func(c c) string { return c.Trigger }},
		column[c]{"EVENTS", func(c c) string {
			if c.Domain == nil {
				return ""
			}
			return *c.Domain + "/" + text(c.Type)
		}})
}

func captureCheck(ctx context.Context, s *session, _ []string) error {
	checks, err := s.CaptureCheck(ctx)
	if err != nil {
		return err
	}
	if len(checks) == 0 {
		s.note("nothing is wrong")
		return nil
	}
	if err := showChecks(s, checks, uncut); err != nil {
		return err
	}
	return failures(checks)
}

func newCaptureReconcile(a *app) *cobra.Command {
	var sample int
	var emit, accept bool
	var table, reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "reconcile",
		Short: "Compare what tables went through since the last call with their events",
		Long: `Compare what the server counted on each attached table since the last call with its events, and a sample of
rows with the events of their keys. The exit status is 1 where there is a gap: changes without events. A gap
stays until --emit has made events of its rows, from the table as it is (their payload has "reconciled": true),
or --accept says that there will be none. What has no row any more, deleted rows say, can only be accepted. A
row that jsonb cannot hold (json with \u0000, say) stays in the gap until it is changed or accepted.`,
		RunE: a.withSchema(func(ctx context.Context, s *session, _ []string) error {
			if emit && accept {
				return usagef("give --emit or --accept, not both")
			}
			if emit || accept {
				return endGaps(ctx, s, table, reason, accept)
			}
			if table != "" || reason != "" {
				return usagef("--table and --reason are for --emit and --accept")
			}
			all, err := s.CaptureReconcile(ctx, sample)
			if err != nil {
				return err
			}
			type r = store.Reconciled
			if err := rows(s.printer, "nothing is attached and enabled", all,
				column[r]{"TABLE", func(r r) string { return r.Relation }},
				column[r]{"STATUS", func(r r) string { return r.Status }},
				column[r]{"FOUND", func(r r) string { return r.Detail }}); err != nil {
				return err
			}
			for _, r := range all {
				if r.Status == "gap" {
					return errors.New("changes without events: tidemark.finding has the finding capture_gap")
				}
			}
			return nil
		}),
	})
	flags := cmd.Flags()
	flags.IntVar(&sample, "sample", 1000, "rows of each table whose keys are looked up, at most")
	flags.BoolVar(&emit, "emit", false, "make events of the rows of gaps, as they are now")
	flags.BoolVar(&accept, "accept", false, "the changes of gaps will have no events; needs --reason")
	flags.StringVar(&table, "table", "", "only the gap of this table, SCHEMA.TABLE; default: all gaps")
	reasonFlag(cmd, &reason)
	return cmd
}

// endGaps emits the rows of open gaps, or accepts the gaps.
func endGaps(ctx context.Context, s *session, table, reason string, accept bool) error {
	if accept {
		if err := needReason(reason); err != nil {
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
			err = s.CaptureGapAccept(ctx, g.ID, reason)
		} else {
			all[i].Emitted, err = s.CaptureGapEmit(ctx, g.ID, cmp.Or(reason, "emitted from the table as it is"))
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
				all[i].Open, all[i].Unreadable = true, g.Unreadable
				left++
			}
		}
	}
	if err := rows(s.printer, "there is no open gap", all,
		column[ended]{"TABLE", func(e ended) string { return e.Name }},
		column[ended]{"EMITTED", func(e ended) string { return number(e.Emitted) }},
		column[ended]{"GAP", func(e ended) string {
			switch {
			case accept:
				return "accepted"
			case e.Open:
				return "open: " + whyOpen(e.Gap)
			}
			return "emitted"
		}}); err != nil {
		return err
	}
	if left > 0 {
		return hinted{errors.New("changes are left without events"), "Accept them: tidemark capture reconcile --accept --reason …"}
	}
	return nil
}

// whyOpen says what keeps a gap open whose rows were emitted.
func whyOpen(g store.Gap) string {
	var why []string
	if g.Others > 0 {
		why = append(why, count(int(g.Others), "change", "changes")+" that no row shows")
	}
	if len(g.Unreadable) > 0 {
		why = append(why, "rows that jsonb cannot hold: "+strings.Join(g.Unreadable, ", "))
	}
	return strings.Join(why, "; ")
}

func newCaptureGuard(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "guard on|off",
		Short: "Refuse triggers that call Tidemark on tables without an inbound route",
		Long:  `Put up or take down an event trigger that refuses triggers which call functions of Tidemark on tables without an inbound route. Needs a superuser.`,
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			if args[0] != "on" && args[0] != "off" {
				return usagef("guard %q is neither on nor off", args[0])
			}
			if err := needReason(reason); err != nil {
				return err
			}
			if err := s.CaptureGuard(ctx, args[0] == "on", reason); err != nil {
				return err
			}
			if s.json {
				return s.object(struct {
					Guard string `json:"guard"`
				}{args[0]})
			}
			return s.linef("guard: %s", args[0])
		}),
	}
	reasonFlag(cmd, &reason)
	return cmd
}
