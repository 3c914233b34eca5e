package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

var sourceColumns = cli.Columns{
	{Flag: "id", Name: "id_column", Usage: "column that identifies a row: not null, unique, never updated"},
	{
		Flag: "timestamp", Name: "timestamp_column", Kind: cli.Optional,
		Usage: "column with the time at which the row was created",
	},
	{Flag: "safety", Usage: "what makes reading lossless: sequence, clock, capture or declared"},
	{Flag: "time-zone", Kind: cli.Optional, Usage: "of a timestamp without time zone: the zone that its writers mean"},
	{
		Flag: "key", Name: "key_columns", Kind: cli.List,
		Usage: "columns that name what the row is about; shards go by them (default: the id)",
	},
	{Flag: "group", Name: "group_key", Kind: cli.List, Usage: "columns by which rows are coalesced"},
	{Flag: "filter", Kind: cli.Optional, Usage: "condition over the columns; other rows are skipped"},
	{Flag: "margin", Default: "1s", Usage: "how far behind the horizon reading stays"},
	{Flag: "sweep-window", Kind: cli.Optional, Usage: "how late a row may come and still be found, such as 2h"},
	{Flag: "sweep-every", Default: "1m", Usage: "time between two sweeps"},
	{Flag: "bucket", Default: "1h", Usage: "width of the time buckets in which rows are counted"},
	{Flag: "description", Usage: "free text that says what it is for"},
}

func sourceCommand() cli.Command {
	return cli.Command{
		Use: "source", Short: "Tables that workers read",
		Example: "  tidemark source check shop.orders\n  tidemark source add orders shop.orders --id id --safety sequence",
		Sub: []cli.Command{
			{
				Use: "list", Short: "List sources, the workers that read them, and how far they are",
				Role: "tidemark_reader", Run: sourceList,
			},
			{
				Use: "check SOURCE", Short: "Check what a source's safety relies on, or which safety suits a table; changes nothing",
				Long: `Check what the safety of a source relies on. Instead of a source you can give SCHEMA.TABLE, with the flags of
source add: with --safety it is checked as it would be added, without it each safety is tried. Columns that you do not
name are guessed, and the guess is printed. Changes nothing. The exit status is 1 if a check fails; warnings alone give
0.`,
				Role: "tidemark_reader", Columns: sourceColumns, Run: sourceCheck,
			},
			{
				Use: "add NAME TABLE", Short: "Make a table a source that workers can read",
				Long: `Make a table, given as SCHEMA.TABLE, a source that workers can read. A safety that the table cannot hold is
refused, with what to do; what cannot be proved is printed. The table stays as it is.`,
				Role: "tidemark_admin", Reason: cli.MayGiveReason, Columns: sourceColumns, Run: sourceAdd,
			},
			{
				Use: "set SOURCE", Short: "Change a source; its table and columns only while no worker reads it",
				Role: "tidemark_admin", Reason: cli.MayGiveReason, Columns: sourceColumns, Run: sourceSet,
			},
			cli.Delete("SOURCE", "Delete a source that no worker reads; its table stays as it is",
				func(ctx context.Context, s *cli.Session) error { return s.SourceDelete(ctx, s.Arg(0), s.Reason) }),
		},
	}
}

func sourceList(ctx context.Context, s *cli.Session) error {
	all, err := s.Sources(ctx, store.Part{})
	if err != nil {
		return err
	}
	return cli.Table(s.Printer, "no sources; add one: tidemark source add NAME SCHEMA.TABLE", all,
		"SOURCE|TABLE|SAFETY|WORKERS|LAG|VERIFIED THROUGH|PENDING|DEAD LETTERS", func(c store.Source) cli.Row {
			return cli.Row{
				c.Source, c.Table, c.Safety, cli.Or(c.Workers, "-"), cli.Or(c.Lag, "-"),
				cli.Or(c.VerifiedThrough, "-"), c.Pending, c.OpenDeadLetters,
			}
		})
}

func sourceCheck(ctx context.Context, s *cli.Session) error {
	changes, err := sourceColumns.Changes(s.Flags)
	if err != nil {
		return err
	}
	name := s.Arg(0)
	if len(changes) == 0 {
		checks, err := s.SourceChecks(ctx, name)
		if err == nil {
			return cli.ShowChecks(s, checks)
		}
		if !errors.Is(err, tidemark.ErrNotFound) || !strings.Contains(name, ".") {
			return err
		}
	}
	if err := addTable(ctx, s, name, changes); err != nil {
		return err
	}
	if err := noteGuess(ctx, s, changes); err != nil {
		return err
	}
	if changes["safety"] != nil {
		checks, err := s.SourceCheck(ctx, changes)
		if err != nil {
			return err
		}
		return cli.ShowChecks(s, checks)
	}
	advice, err := s.SourceAdvise(ctx, changes)
	if err != nil {
		return err
	}
	err = cli.Table(s.Printer, "no safeties", advice, "SAFETY|STATUS|FOUND|HINT", func(c store.Advice) cli.Row {
		return cli.Row{c.Safety, c.Status, c.Detail, c.Hint}
	})
	if !s.JSON {
		s.Note("--safety NAME shows all that was found about one")
	}
	if err == nil && !slices.ContainsFunc(advice, func(c store.Advice) bool { return c.Status != "fail" }) {
		err = errors.New("no safety suits the table as it is")
	}
	return err
}

// addTable adds the name of the table to the columns of a definition.
func addTable(ctx context.Context, s *cli.Session, table string, changes store.Changes) error {
	name, err := s.TableName(ctx, table)
	if err != nil {
		return err
	}
	if len(name) != 2 {
		return cli.Usagef("%q is neither a source nor SCHEMA.TABLE; quote capitals: '\"Shop\".\"Orders\"'", table)
	}
	changes["schema_name"], changes["table_name"] = name[0], name[1]
	return nil
}

func noteGuess(ctx context.Context, s *cli.Session, changes store.Changes) error {
	id, timestamp, err := s.SourceGuess(ctx, changes)
	if err != nil {
		return err
	}
	guessed := ""
	if changes["id_column"] == nil && id != "" {
		guessed += " --id " + id
	}
	if changes["timestamp_column"] == nil && timestamp != "" {
		guessed += " --timestamp " + timestamp
	}
	if guessed != "" {
		s.Note("guessed:%s", guessed)
	}
	return nil
}

func sourceAdd(ctx context.Context, s *cli.Session) error {
	if s.NumGiven("id", "safety") < 2 {
		return cli.Usagef("--id and --safety are required; tidemark source check %s says which suit", s.Arg(1))
	}
	changes, err := sourceColumns.Changes(s.Flags)
	if err != nil {
		return err
	}
	if err := addTable(ctx, s, s.Arg(1), changes); err != nil {
		return err
	}
	return storeSource(ctx, s, changes, func(db *store.DB) ([]store.Check, error) {
		if _, err := db.Source(ctx, s.Arg(0)); !errors.Is(err, tidemark.ErrNotFound) {
			if err == nil {
				err = cli.Usagef("source %s already exists; tidemark source set changes it", s.Arg(0))
			}
			return nil, err
		}
		return db.SourceCheck(ctx, changes)
	})
}

func sourceSet(ctx context.Context, s *cli.Session) error {
	changes, err := sourceColumns.SomeChanges(s.Flags)
	if err != nil {
		return err
	}
	return storeSource(ctx, s, changes, func(db *store.DB) ([]store.Check, error) {
		if _, err := db.Source(ctx, s.Arg(0)); err != nil {
			return nil, err
		}
		return db.SourceChecksWith(ctx, s.Arg(0), changes)
	})
}

// storeSource checks a source and, if no check fails, stores it. It shows the checks that are not ok.
func storeSource(ctx context.Context, s *cli.Session, changes store.Changes, check func(*store.DB) ([]store.Check, error)) error {
	var notOK []store.Check
	source, err := cli.InTx(ctx, s, func(db *store.DB) (source store.Source, err error) {
		checks, err := check(db)
		if err != nil {
			return source, err
		}
		notOK = slices.DeleteFunc(slices.Clone(checks), func(c store.Check) bool { return c.Status == "ok" })
		if err := cli.Failures(checks); err != nil {
			_ = cli.CheckTable(s, notOK)
			return source, fmt.Errorf("source %s was not stored: %w", s.Arg(0), err)
		}
		if err := db.SourceSet(ctx, s.Arg(0), changes, s.Reason); err != nil {
			return source, err
		}
		return db.Source(ctx, s.Arg(0))
	})
	if err != nil {
		return err
	}
	if !s.JSON && len(notOK) > 0 {
		_ = cli.CheckTable(s, notOK)
	}
	return s.Result(source, "source %s: %s by %s", source.Source, source.Table, source.Safety)
}
