package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/command/bundle"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func commandCommand() cli.Command {
	return cli.Command{
		Use: "command", Short: "Commands that services take: contracts, registry, keys",
		Example: "  tidemark command init billing\n  tidemark command lint billing\n  tidemark command diff billing --against main.json",
		Sub: []cli.Command{
			commandInit(), commandLint(), commandDiff(), commandTest(registerForTest), commandApply(),
			commandEnable(), commandDisable(),
			cli.Delete("COMMAND", "Delete a version of a command that is off; claims stay", func(ctx context.Context, s *cli.Session) error {
				c, err := s.Command(ctx, s.Arg(0))
				if err != nil {
					return err
				}
				return s.CommandDelete(ctx, c, s.Reason)
			}),
			commandService(),
			commandSend(), commandList(), commandShow(), commandWatch(), commandDiscard(), commandReplay(), commandSeek(), commandErase(), commandKey(), commandACL(),
		},
	}
}

func commandService() cli.Command {
	return cli.Command{
		Use: "service", Short: "Services that offer commands", Example: "  tidemark command service list",
		Sub: []cli.Command{
			{
				Use: "list", Short: "List the services", Role: "tidemark_reader",
				Run: func(ctx context.Context, s *cli.Session) error {
					all, err := s.Services(ctx)
					if err != nil {
						return err
					}
					return cli.Table(s.Printer, "no services; register one: tidemark command apply DIR", all, "SERVICE|ROLE|DESCRIPTION",
						func(v store.Service) cli.Row { return cli.Row{v.Service, v.Role, v.Description} })
				},
			},
			cli.Delete("SERVICE", "Delete a service without commands, producers, keys and routes; claims and its role stay",
				func(ctx context.Context, s *cli.Session) error {
					service, err := s.Service(ctx, s.Arg(0))
					if err != nil {
						return err
					}
					if err := s.ServiceDelete(ctx, service.Service, s.Reason); err != nil {
						return err
					}
					s.Note("its role %s stays: drop what it owns in each database (drop owned by), then the role", service.Role)
					return nil
				}),
		},
	}
}

func commandInit() cli.Command {
	var dir string
	return cli.Command{
		Use: "init SERVICE", Short: "Write a small bundle for a new service, which passes lint", Needs: cli.Nothing,
		Long: `Write a small bundle for a new service: service.yaml, and the folders schemas, sql and examples. It passes lint, and
you change it into your own. The folder must be new or empty.`,
		Example: "  tidemark command init billing --dir contracts/billing",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&dir, "dir", "", "`FOLDER` to write to; default: one with the service's name")
		},
		Run: func(_ context.Context, s *cli.Session) error {
			service := s.Arg(0)
			if dir == "" {
				dir = service
			}
			files, err := bundle.Create(dir, service)
			if err != nil {
				return err
			}
			return s.Result(cli.Fields{"service", service, "dir", dir, "files", files},
				"%s: %s; next: tidemark command lint %s, then run %s/sql/ in the database, then tidemark command apply %[1]s",
				dir, cli.Count(len(files), "file"), dir, dir)
		},
	}
}

func commandLint() cli.Command {
	return cli.Command{
		Use: "lint DIR", Short: "Check a service's bundle without a database: names, schemas, their versions, examples", Needs: cli.Nothing,
		Long: `Check a service's bundle without a database, for the CI of the service and of its producers: service.yaml, the schemas
(closed, JSON Schema 2020-12), each schema version against all before it, and the examples against the schemas. Each problem is
a line FILE:LINE:COLUMN: PROBLEM; the exit status is 1 if there is one. A line that begins with note: is about a keyword that checks nothing.

With -o json the output is one object, which also holds the whole contract: keep it as a file, and compare a later bundle with
it (tidemark command diff --against FILE).`,
		Example: "  tidemark command lint billing\n  tidemark command lint billing -o json > billing.json",
		Run: func(_ context.Context, s *cli.Session) error {
			b, problems, err := bundle.Read(s.Arg(0))
			if err != nil {
				return cli.Hint(err, "tidemark command init SERVICE writes a bundle.")
			}
			notes := append([]bundle.Problem{}, b.Notes...)
			if len(problems) > 0 {
				b = nil
			}
			if s.JSON {
				s.Object(linted{len(problems) == 0, append([]bundle.Problem{}, problems...), notes, b})
			} else {
				for _, problem := range problems {
					s.Line("%s", path.Join(filepath.ToSlash(s.Arg(0)), problem.String()))
				}
				for _, note := range notes {
					s.Line("note: %s", path.Join(filepath.ToSlash(s.Arg(0)), note.String()))
				}
			}
			if b == nil {
				return cli.ExitWith(cli.StatusFailed, fmt.Errorf("the bundle %s has %s", s.Arg(0), cli.Count(len(problems), "problem")))
			}
			if !s.JSON {
				s.Line("service %s: %s, checksum %s: no problems", b.Service, cli.Count(len(b.Commands), "command"), b.Checksum[:12])
			}
			return nil
		},
	}
}

// linted is the output of lint, and what diff takes as a file.
type linted struct {
	Valid    bool             `json:"valid"`
	Problems []bundle.Problem `json:"problems"`
	Notes    []bundle.Problem `json:"notes"`
	Bundle   *bundle.Bundle   `json:"bundle"`
}

func commandDiff() cli.Command {
	var against string
	return cli.Command{
		Use: "diff DIR", Short: "Tell which changes of a bundle break which producers", Needs: cli.Nothing,
		Long: `Compare a bundle with an earlier state of it, and name the changes that break its users. The earlier state is
a bundle, or a file with the output of tidemark command lint -o json. The exit status is 1 if something breaks.

A payload's schema must accept all that each earlier schema version accepts. A reader of an earlier result's schema must
understand the new results; readers ignore members that they do not know. What the comparison does not understand, such as a
changed anyOf, counts as a break. A change that must break something is a new version of the command.`,
		Example: "  tidemark command diff billing --against main.json",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&against, "against", "", "the earlier `STATE`: a file of command lint -o json, or a bundle's folder (required)")
		},
		Run: func(_ context.Context, s *cli.Session) error {
			if against == "" {
				return cli.Usagef("--against is required: a file of command lint -o json, or a bundle's folder")
			}
			newer, err := soundBundle(s.Arg(0))
			if err != nil {
				return err
			}
			older, err := earlier(against)
			if err != nil {
				return err
			}
			if older.Service != newer.Service {
				return cli.Usagef("%s is of the service %s, and %s of %s", s.Arg(0), newer.Service, against, older.Service)
			}
			return printChanges(s, bundle.Diff(older, newer), newer.Service)
		},
	}
}

func printChanges(s *cli.Session, changes []bundle.Change, service string) error {
	breaks := 0
	for _, c := range changes {
		if c.Breaks {
			breaks++
		}
	}
	err := cli.Table(s.Printer, "nothing changes for those who use "+service, changes, "EFFECT|COMMAND|CHANGE|BREAKS",
		func(c bundle.Change) cli.Row {
			return cli.Row{cli.Choose(c.Breaks, "breaks", "ok"), c.Command, c.Change, cli.Or(c.Whom, cli.Choose(c.Breaks, "no listed producer", "-"))}
		})
	if err == nil && breaks > 0 {
		err = cli.ExitWith(cli.StatusFailed, cli.Hint(fmt.Errorf("%s", cli.Count(breaks, "change breaks those who use "+service, "changes break those who use "+service)),
			"Keep the version as it is, and add a new version of the command."))
	}
	return err
}

func commandEnable() cli.Command {
	var live bool
	var file string
	return cli.Command{
		Use: "enable COMMAND", Short: "Turn a command on; in dry run it still changes nothing", Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Long: `Turn a command on. While it is in dry run, it is executed and rolled back. --live ends the dry run: that needs the stage
live, a live route for the results of the service (tidemark command apply makes it), and a test of the command as it is
registered (tidemark command apply --tested), or --reason. It names what still holds live commands: closed gates, routes that are not
live, topics of the daemon's configuration that are not there.

` + aboutCommandName,
		Example: "  tidemark command enable billing.charge.capture/v1\n  tidemark command enable billing.charge.capture/v1 --live --reason 'tested'",
		Flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&live, "live", false, "end the dry run: commands take effect")
			cli.ConfigFlag(flags, &file)
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			config, err := s.LoadConfig(file)
			if err != nil {
				return err
			}
			is, err := switchCommand(ctx, s, func(db *store.DB, c store.Command) (store.Command, error) {
				if (live || !c.DryRun) && (c.DryRun || !c.Enabled) {
					return goLive(ctx, db, c, s.Reason)
				}
				return db.CommandSet(ctx, c.Service, c.Command, c.Version, store.Changes{"enabled": true}, s.Reason)
			})
			if err != nil || is.DryRun {
				return err
			}
			return sayWhatIsMissing(ctx, s, config, is.Service)
		},
	}
}

func commandDisable() cli.Command {
	return cli.Command{
		Use: "disable COMMAND", Short: "Turn a command off; its records wait, or are rejected if when_disabled says so",
		Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Long:    "Turn a command off. Its records wait, or are rejected if when_disabled says so.\n\n" + aboutCommandName,
		Example: "  tidemark command disable billing.charge.capture/v1",
		Run: func(ctx context.Context, s *cli.Session) error {
			_, err := switchCommand(ctx, s, func(db *store.DB, c store.Command) (store.Command, error) {
				return db.CommandSet(ctx, c.Service, c.Command, c.Version, store.Changes{"enabled": false}, s.Reason)
			})
			return err
		},
	}
}

func switchCommand(ctx context.Context, s *cli.Session, set func(*store.DB, store.Command) (store.Command, error)) (store.Command, error) {
	c, err := cli.InTx(ctx, s, func(db *store.DB) (store.Command, error) {
		c, err := db.Command(ctx, s.Arg(0))
		if err != nil {
			return c, err
		}
		return set(db, c)
	})
	if err != nil {
		return c, err
	}
	return c, s.Result(c, "command %s: %s", c.Name, cli.Choose(!c.Enabled, "off", cli.Choose(c.DryRun, "dry run", "live")))
}

// earlier reads the state that --against names.
func earlier(name string) (*bundle.Bundle, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return soundBundle(name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var file linted
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil || file.Bundle == nil || decoder.More() {
		return nil, cli.Hint(errors.New(name+" is not the output of tidemark command lint -o json for a bundle without problems"),
			"tidemark command lint DIR -o json > FILE")
	}
	return file.Bundle, nil
}
