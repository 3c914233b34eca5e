package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func newSource(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "source", Short: "Tables of others that workers read"}
	cmd.AddCommand(newSourceList(a), newSourceCheck(a), newSourceAdd(a), newSourceSet(a), newSourceRemove(a))
	return cmd
}

var sourceColumns = columnsOf{
	texts: map[string]string{
		"id": "id_column", "safety": "safety", "margin": "margin", "sweep-every": "sweep_every", "bucket": "bucket", "description": "description",
	},
	optional: map[string]string{
		"timestamp": "timestamp_column", "time-zone": "time_zone", "filter": "filter", "sweep-window": "sweep_window",
	},
	lists: map[string]string{"key": "key_columns", "group": "group_key"},
}

func sourceFlags(flags *pflag.FlagSet) {
	flags.String("id", "", "column that identifies a row: not null, unique, never updated")
	flags.String("timestamp", "", "column that says when the row was made")
	flags.String("safety", "", "what makes the reading lossless: sequence, clock, capture or declared")
	flags.String("time-zone", "", "of a timestamp without time zone: the zone that its writers mean")
	flags.StringSlice("key", nil, "columns that name what the row is about: shards go by them (default the id)")
	flags.StringSlice("group", nil, "columns by which rows are coalesced")
	flags.String("filter", "", "condition over the columns; other rows are passed over")
	flags.String("margin", "1s", "how far behind the horizon the reading stays")
	flags.String("sweep-window", "", "how late a row may come and still be found, such as 2h")
	flags.String("sweep-every", "1m", "time between two sweeps")
	flags.String("bucket", "1h", "width of the time buckets in which rows are counted")
	flags.String("description", "", "for people")
}

func newSourceList(a *app) *cobra.Command {
	return needs("tidemark_reader", &cobra.Command{
		Use:   "list",
		Short: "List sources, who reads them and how far",
		RunE: a.withSchema(func(ctx context.Context, s *session, _ []string) error {
			all, err := s.Sources(ctx)
			if err != nil {
				return err
			}
			type c = store.Source
			return rows(s.printer, "no sources; make one: tidemark source add NAME SCHEMA.TABLE", all,
				column[c]{"SOURCE", func(c c) string { return c.Source }},
				column[c]{"TABLE", func(c c) string { return c.Table }},
				column[c]{"SAFETY", func(c c) string { return c.Safety }},
				column[c]{"WORKERS", func(c c) string { return firstOf(strings.Join(c.Workers, ", "), "-") }},
				column[c]{"LAG", func(c c) string { return firstOf(text(c.Lag), "-") }},
				column[c]{"VERIFIED THROUGH", func(c c) string { return utcOr(c.VerifiedThrough, "-") }},
				column[c]{"PENDING", func(c c) string { return number(c.Pending) }},
				column[c]{"DEAD LETTERS", func(c c) string { return number(c.OpenDeadLetters) }})
		}),
	})
}

func newSourceCheck(a *app) *cobra.Command {
	cmd := needs("tidemark_reader", &cobra.Command{
		Use:   "check NAME",
		Short: "Check what the safety of a source rests on, or of a table which safety suits it; changes nothing",
		Long: `Check what the safety of a source rests on. Instead of the name of a source SCHEMA.TABLE can be given, with the
flags of source add: with --safety it is checked as it would be added, without it each safety is tried. Columns
that are not named are guessed, and the guess is told. Changes nothing. The exit status is 1 when a check fails;
warnings alone are 0.`,
	})
	sourceFlags(cmd.Flags())
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		changes, err := sourceColumns.changes(cmd.Flags())
		if err != nil {
			return err
		}
		if len(changes) == 0 {
			checks, err := s.SourceChecks(ctx, args[0])
			if !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(args[0], ".") {
				return showDoctor(s, checks, err)
			}
		}
		if err := tableOf(ctx, s, args[0], changes); err != nil {
			return err
		}
		if err := noteGuess(ctx, s, changes); err != nil {
			return err
		}
		if changes["safety"] != nil {
			checks, err := s.SourceCheck(ctx, changes)
			return showDoctor(s, checks, err)
		}
		return sourceAdvise(ctx, s, changes)
	})
	return cmd
}

func showDoctor(s *session, checks []store.Check, err error) error {
	if err != nil {
		return err
	}
	if err := showChecks(s, checks, uncut); err != nil {
		return err
	}
	return failures(checks)
}

// tableOf adds the name of the table to the columns of a definition.
func tableOf(ctx context.Context, s *session, table string, changes store.Changes) error {
	name, err := s.TableName(ctx, table)
	if err != nil {
		return err
	}
	if len(name) != 2 {
		return usagef("%q is neither a source nor SCHEMA.TABLE; quote what is in capitals: '\"Shop\".\"Orders\"'", table)
	}
	changes["schema_name"], changes["table_name"] = name[0], name[1]
	return nil
}

func noteGuess(ctx context.Context, s *session, changes store.Changes) error {
	id, timestamp, err := s.SourceGuess(ctx, changes)
	if err != nil {
		return err
	}
	var guessed []string
	if changes["id_column"] == nil && id != "" {
		guessed = append(guessed, "--id "+id)
	}
	if changes["timestamp_column"] == nil && timestamp != "" {
		guessed = append(guessed, "--timestamp "+timestamp)
	}
	if len(guessed) > 0 {
		s.note("guessed: %s", strings.Join(guessed, " "))
	}
	return nil
}

func sourceAdvise(ctx context.Context, s *session, changes store.Changes) error {
	advice, err := s.SourceAdvise(ctx, changes)
	if err != nil {
		return err
	}
	type c = store.Advice
	err = rows(s.printer, "no safeties", advice,
		column[c]{"SAFETY", func(c c) string { return c.Safety }},
		column[c]{"STATUS", func(c c) string { return c.Status }},
		column[c]{"FOUND", func(c c) string { return cut(c.Detail, 100) }},
		column[c]{"HINT", func(c c) string { return c.Hint }})
	if !s.json {
		s.note("--safety NAME shows all that was found about one")
	}
	if err != nil {
		return err
	}
	for _, c := range advice {
		if c.Status != "fail" {
			return nil
		}
	}
	return errors.New("no safety suits the table as it is")
}

func newSourceAdd(a *app) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "add NAME TABLE",
		Short: "Make a table a source that workers can read",
		Long: `Make a table, given as SCHEMA.TABLE, a source that workers can read. What its safety cannot hold on is refused,
with what to do; what cannot be proved is told. The table stays as it is.`,
	})
	flags := cmd.Flags()
	sourceFlags(flags)
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		if !flags.Changed("id") || !flags.Changed("safety") {
			return usagef("--id and --safety are needed; tidemark source check %s tells which suit", args[1])
		}
		changes, err := sourceColumns.changes(flags)
		if err != nil {
			return err
		}
		if err := tableOf(ctx, s, args[1], changes); err != nil {
			return err
		}
		return s.inTx(ctx, func(db *store.DB) error {
			if _, err := db.Source(ctx, args[0]); !errors.Is(err, tidemark.ErrNotFound) {
				if err == nil {
					err = usagef("there is a source %s already; tidemark source set changes it", args[0])
				}
				return err
			}
			checks, err := db.SourceCheck(ctx, changes)
			if err != nil {
				return err
			}
			return setSource(ctx, s, db, args[0], changes, reason, checks)
		})
	})
	return cmd
}

func newSourceSet(a *app) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "set NAME",
		Short: "Change a source; its table and columns only while no worker reads it",
	})
	sourceFlags(cmd.Flags())
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		changes, err := sourceColumns.changes(cmd.Flags())
		if err != nil {
			return err
		}
		if err := needOne(changes); err != nil {
			return err
		}
		return s.inTx(ctx, func(db *store.DB) error {
			if _, err := db.Source(ctx, args[0]); err != nil {
				return err
			}
			checks, err := db.SourceChecksWith(ctx, args[0], changes)
			if err != nil {
				return err
			}
			return setSource(ctx, s, db, args[0], changes, reason, checks)
		})
	})
	return cmd
}

// setSource stores a source that the doctor has looked at, and shows what it said but for
// what is well.
func setSource(ctx context.Context, s *session, db *store.DB, name string, changes store.Changes, reason string, checks []store.Check) error {
	var ill []store.Check
	for _, c := range checks {
		if c.Status != "ok" {
			ill = append(ill, c)
		}
	}
	if err := failures(checks); err != nil {
		if err := showChecks(s, ill, uncut); err != nil {
			return err
		}
		return fmt.Errorf("source %s was not stored: %w", name, err)
	}
	if err := db.SourceSet(ctx, name, changes, reason); err != nil {
		return err
	}
	source, err := db.Source(ctx, name)
	if err != nil {
		return err
	}
	if s.json {
		return s.object(source)
	}
	if len(ill) > 0 {
		if err := showChecks(s, ill, uncut); err != nil {
			return err
		}
	}
	return s.linef("source %s: %s by %s", source.Source, source.Table, source.Safety)
}

func newSourceRemove(a *app) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a source that no worker reads; its table stays as it is",
	})
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		if err := needReason(reason); err != nil {
			return err
		}
		if err := s.SourceRemove(ctx, args[0], reason); err != nil {
			return err
		}
		if s.json {
			return s.object(struct {
				Source  string `json:"source"`
				Removed bool   `json:"removed"`
			}{args[0], true})
		}
		return s.linef("source %s: removed", args[0])
	})
	return cmd
}
