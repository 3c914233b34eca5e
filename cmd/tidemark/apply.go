package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/ascode"
	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func exportCommand() cli.Command {
	var schema, all bool
	return cli.Command{
		Use: "export [NAME]", Short: "Write the configuration as a file for plan and apply",
		Long: `Write the configuration as YAML, as the file NAME (default tidemark): domains, types with their schemas, captures (inbound routes), sources,
workers, routes, heartbeats and gates that were set. It has what belongs to the file NAME; with --all, such as at the
beginning, everything. Columns that are what they are by default are left out. Services of commands are not in it: their
bundles have tidemark command apply.`,
		Example: "  tidemark export shop --all > shop.yaml", Role: "tidemark_reader", Needs: cli.Nothing,
		Flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&all, "all", false, "everything, whatever file it belongs to")
			flags.BoolVar(&schema, "schema", false, "print the JSON Schema of the file instead, for editors; needs no database")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if schema {
				s.Write(ascode.Schema())
				return nil
			}
			if err := s.Open(ctx); err != nil {
				return err
			}
			name := cmp.Or(s.Arg(0), "tidemark")
			things, err := s.Configuration(ctx)
			if err != nil {
				return err
			}
			things = slices.DeleteFunc(things, func(t store.Thing) bool { return !all && (t.File == nil || *t.File != name) })
			if len(things) == 0 {
				s.Note("nothing belongs to the file %s; --all exports everything", name)
			}
			if s.JSON {
				s.Object(cli.Fields{"file", name, "things", things})
				return nil
			}
			text, err := ascode.Write(ascode.File{Name: name, Things: things})
			s.Write(text)
			return err
		},
	}
}

// applyFlags are the flags of plan and apply.
type applyFlags struct{ prune, take bool }

func (o *applyFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&o.prune, "delete", false, "delete what the file had and no longer has")
	flags.BoolVar(&o.take, "take", false, "take over what belongs to another file")
}

func planCommand() cli.Command {
	var o applyFlags
	var check bool
	return cli.Command{
		Use: "plan FILE", Short: "Show what apply would change; changes nothing", Role: "tidemark_admin",
		Long: `Show what tidemark apply of the file would change, column by column. It does all of it in a transaction and rolls that
back, so what apply would be refused is refused here. It waits for no apply that is under way, and says so: the plan is against
what was there before. --check is for CI: status 1 if something would change. Status 6: it made no plan, because an apply had locked
what it needs, or another session did for more than 5 seconds.`,
		Example: "  tidemark plan shop.yaml --check",
		Flags: func(flags *pflag.FlagSet) {
			o.add(flags)
			flags.BoolVar(&check, "check", false, "end with status 1 if something would change")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			s.Reason = "tidemark plan"
			changes, err := applyFile(ctx, s, o, false)
			if err == nil && check && changes > 0 {
				err = cli.ExitWith(cli.StatusFailed, fmt.Errorf("%s would be made", cli.Count(changes, "change")))
			}
			return err
		},
	}
}

func applyCommand() cli.Command {
	var o applyFlags
	return cli.Command{
		Use: "apply FILE", Short: "Make the configuration that of a file, in one transaction", Role: "tidemark_admin", Reason: cli.NeedsReason,
		Long: `Make domains, types, captures, sources, workers, routes, heartbeats and gates as a file says, in one transaction, and print
what changed. What the file leaves out of a thing is as it is by default; the switches enabled and dry_run, a domain's
emitters, a capture's trigger and a worker's sources stay as they are. Applying the same file again changes nothing.

What a file names becomes its own: another file that names it is refused, unless --take. What it had and no longer has
stays, with a remark; --delete deletes it, if nothing uses it. What no file has is left alone.`,
		Example: "  tidemark export shop --all > shop.yaml\n  tidemark plan shop.yaml\n  tidemark apply shop.yaml --reason 'release 12'",
		Flags:   o.add,
		Run: func(ctx context.Context, s *cli.Session) error {
			_, err := applyFile(ctx, s, o, true)
			return err
		},
	}
}

// applyFile applies the file, and unless keep is set undoes it. It prints the changes and returns how many there are.
func applyFile(ctx context.Context, s *cli.Session, o applyFlags, keep bool) (int, error) {
	name := s.Arg(0)
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	f, problems, err := ascode.Read(text)
	if err != nil {
		return 0, err
	}
	for _, p := range problems {
		fmt.Fprintln(s.Err, cli.Cut(fmt.Sprintf("%s:%d: %s", name, p.Line, p.Text), 500))
	}
	if len(problems) > 0 {
		return 0, cli.Hint(cli.Usagef("%s has %s", name, cli.Count(len(problems), "problem")), "tidemark export --schema lists every key with what it takes.")
	}
	var all []store.Applied
	if keep {
		all, err = cli.InTx(ctx, s, func(db *store.DB) ([]store.Applied, error) {
			all, err := db.ConfigurationApply(ctx, f.Name, f.Things, s.Reason, o.prune, o.take)
			if err == nil && !slices.ContainsFunc(all, isChange) {
				return all, cli.ErrRollback
			}
			return all, err
		})
	} else {
		all, err = planFile(ctx, s, f, o)
	}
	switch {
	case store.HasCode(err, "23514"):
		return 0, cli.Hint(err, "The constraint's name says what is taken; tidemark export --schema lists every key.")
	case err != nil:
		return 0, err
	}
	changes, left := noteChanges(s, all)
	if left > 0 {
		s.Note("%s of the file %s and no longer in it: --delete deletes what nothing uses", cli.Count(left, "thing"), f.Name)
	}
	return len(changes), cli.Table(s.Printer, "nothing changes", changes, "CHANGE|WHAT|FIELD|WAS|BECOMES", func(c store.Applied) cli.Row {
		return cli.Row{c.Change, c.Kind + " " + c.Name, cli.Or(c.Field, "file"), value(c.Was), value(c.Becomes)}
	})
}

// isChange reports whether applying the file changes something there.
func isChange(c store.Applied) bool { return c.Change != "left" && c.Change != "ignored" }

// noteChanges returns the changes, and how many things of the file it no longer has. It says what of it is ignored.
func noteChanges(s *cli.Session, all []store.Applied) (changes []store.Applied, left int) {
	for _, c := range all {
		switch {
		case isChange(c):
			changes = append(changes, c)
		case c.Change == "left":
			left++
		default:
			s.Note("%s %s is ignored: an earlier release had it, and it had no effect; take it out of the file", c.Kind, c.Name)
		}
	}
	return changes, left
}

// planFile says what an apply would change. It does not wait for an apply that is under way, and some seconds for other locks.
func planFile(ctx context.Context, s *cli.Session, f ascode.File, o applyFlags) (all []store.Applied, err error) {
	applying := ""
	for _, wait := range []time.Duration{500 * time.Millisecond, 5 * time.Second} {
		all, err = cli.InTx(ctx, s, func(db *store.DB) ([]store.Applied, error) {
			all, err := db.ConfigurationPlan(ctx, wait, f.Name, f.Things, s.Reason, o.prune, o.take)
			return all, cmp.Or(err, cli.ErrRollback)
		})
		locked := store.HasCode(err, "55P03")
		if err != nil && !locked {
			return nil, err
		}
		var failed error
		if applying, failed = s.Applying(ctx); failed != nil {
			return nil, cmp.Or(err, failed)
		}
		if !locked || applying != "" {
			break
		}
	}
	switch {
	case err == nil && applying != "":
		s.Note("an apply is under way (%s): the plan is against what was there before it", applying)
	case err != nil && applying != "":
		err = cli.Hint(fmt.Errorf("an apply is under way (%s), and a plan does not wait for it: %w", applying, err), "Plan again when it has ended.")
	case err != nil:
		err = cli.Hint(fmt.Errorf("another session has locked it for more than 5 seconds: %w", err), "Plan again.")
	}
	return all, err
}

// value is a JSON value in a cell.
func value(document json.RawMessage) string {
	var text string
	if json.Unmarshal(document, &text) != nil {
		text = string(document)
	}
	return cli.Cut(cmp.Or(strings.TrimSpace(text), "-"), 60)
}
