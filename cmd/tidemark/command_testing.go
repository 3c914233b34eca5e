package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/command/bundle"
	"github.com/tidemarkhq/tidemark/internal/command/bundletest"
	"github.com/tidemarkhq/tidemark/internal/devpg"
)

// commandTest takes how a bundle is registered in a database.
func commandTest(register func(context.Context, *pgx.Conn, *bundle.Bundle) error) cli.Command {
	var server string
	var before, brokers []string
	return cli.Command{
		Use: "test DIR", Short: "Run a service's bundle for real in scratch databases: its examples, and what breaks commands", Needs: cli.Nothing,
		Long: `Run a service's bundle for real, for the CI of the service: lint it, run the files of its folder sql, register it, turn it on and
live, run each example in a database of its own, and then set traps for each command: envelopes with a member missing, null,
of a wrong type, doubled or unknown; an unknown command and version; a foreign producer and tenant; a resend; a key used again
for another payload; two of one key at once; a failure after the effect. A result must fit its schema.

It starts a private PostgreSQL from the programs that this machine has (PG_BIN, else where packages install them, else PATH),
and stops it at the end. --server names a server to use instead: one for tests, where the user may create databases and roles.
There it makes databases named tidemark_command_test_SERVICE_…, and drops them. It never uses --database-url or TIDEMARK_DATABASE_URL.
Commands are asked for by tidemark.command_run. With --brokers, each is also sent to a daemon over Kafka, sent again, and sent as what
must become a dead letter: no JSON, another service's, and one on a shared topic without a signature. The topics for that are named
tidemark-command-test-…, and are deleted. ACLs are not tested: tidemark command acl check does so.

What the functions need beyond the folder sql, such as the service's own migrations, is given by --before. With -o json the output is
one object, the report, which also has the checksum of the bundle: tidemark command apply takes it (--tested).

Exit status: 0 all passed; 1 a check failed, or lint has problems; 3 no PostgreSQL.`,
		Example: "  tidemark command test billing\n  tidemark command test billing --before migrations/ -o json > billing.tested.json",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&server, "server", "", "a PostgreSQL server for tests: a postgres:// `URL`; default: a private one")
			flags.StringSliceVar(&brokers, "brokers", nil, "brokers of a Kafka for tests, as `HOST:PORT`, separated by commas; default: none, and commands are not sent over Kafka")
			flags.StringArrayVar(&before, "before", nil, "run this SQL before: a file, or the *.sql of a folder in the order of their names; may be repeated")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if s.App.DatabaseURL != "" {
				return cli.Usagef("--database-url is the database of Tidemark, which is not for tests: give --server, or nothing")
			}
			scripts, err := scriptsOf(before)
			if err != nil {
				return err
			}
			b, problems, err := bundle.Read(s.Arg(0))
			if err != nil {
				return cli.Hint(err, "tidemark command init SERVICE writes a bundle.")
			}
			if len(problems) > 0 {
				return printReport(s, lintReport(b, problems))
			}
			if err := pingBrokers(ctx, brokers); err != nil {
				return err
			}
			address, stop, err := testServer(ctx, server)
			if err != nil {
				return err
			}
			defer stop()
			report, err := bundletest.Run(ctx, b, bundletest.Options{
				Server: address, Before: scripts, Text: textAndHint,
				Brokers: brokers, Serve: serveForTest(address, brokers, s.App.Build.Version),
				Apply: func(ctx context.Context, conn *pgx.Conn) error { return register(ctx, conn, b) },
			})
			if err != nil {
				return err
			}
			return printReport(s, report)
		},
	}
}

// scriptsOf reads the files of --before.
func scriptsOf(names []string) (all []bundle.Script, err error) {
	for _, name := range names {
		files := []string{name}
		if info, err := os.Stat(name); err != nil {
			return nil, err
		} else if info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(name, "*.sql")); err != nil {
				return nil, err
			}
			slices.Sort(files)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			all = append(all, bundle.Script{Name: filepath.ToSlash(file), Text: string(text)})
		}
	}
	return all, nil
}

// testServer is the server of --server, or a private one, which stop ends.
func testServer(ctx context.Context, given string) (_ *pgx.ConnConfig, stop func(), err error) {
	stop = func() {}
	if given == "" {
		server, err := devpg.Start(ctx, devpg.Options{})
		if err != nil {
			return nil, nil, cli.ExitWith(cli.StatusUnreachable, cli.Hint(err, "Or name a server for tests: --server postgres://USER@HOST/postgres"))
		}
		given, stop = server.URL("postgres"), func() { _ = server.Stop() } // it ends with this process at the latest
	}
	config, err := cli.ParseAddress(given)
	return config, stop, err
}

// textAndHint is an error in a line of a report.
func textAndHint(err error) string {
	text, hint := cli.Describe(err)
	if hint != "" {
		text += "; " + hint
	}
	return text
}

// lintReport is that of a bundle that is not run.
func lintReport(b *bundle.Bundle, problems []bundle.Problem) bundletest.Report {
	check := bundletest.Check{Command: b.Service, Check: "lint", Outcome: bundletest.Failed}
	for _, p := range problems {
		check.Problems = append(check.Problems, p.String())
	}
	return bundletest.Report{Service: b.Service, Checksum: b.Checksum, Checks: []bundletest.Check{check}}
}

func printReport(s *cli.Session, r bundletest.Report) error {
	if s.JSON {
		s.Object(r)
	} else {
		printChecks(s, r)
	}
	if !r.Passed {
		return cli.ExitWith(cli.StatusFailed, fmt.Errorf("%s of the bundle %s failed", cli.Count(r.Failed(), "check"), s.Arg(0)))
	}
	return nil
}

// printChecks writes a line for each check, and for each problem beyond its first.
func printChecks(s *cli.Session, r bundletest.Report) {
	type line struct{ outcome, command, check, problem string }
	var all []line
	for _, c := range r.Checks {
		problems := c.Problems
		if len(problems) == 0 {
			problems = []string{"-"}
		}
		for _, p := range problems {
			all = append(all, line{c.Outcome, c.Command, c.Check, p})
		}
	}
	_ = cli.Table(s.Printer, "", all, "OUTCOME|WHAT|CHECK|PROBLEM", func(l line) cli.Row { return cli.Row{l.outcome, l.command, l.check, l.problem} })
	if r.Passed {
		s.Line("service %s, checksum %s: %s passed, on PostgreSQL %s by %s", r.Service, r.Checksum[:12], cli.Count(len(r.Checks), "check"), r.PostgreSQL, r.Way)
	}
}
