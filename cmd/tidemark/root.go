package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/cli"
)

const about = `Tidemark delivers what your PostgreSQL transactions commit: you emit events in SQL or Go, and workers
deliver them to functions, webhooks, Kafka and NATS, at least once, with a record of every attempt.

Start here:
  export DATABASE_URL=postgres://…   name the database
  tidemark migrate up                install the schema
  tidemark status                    see what there is, and what is wrong

The database is named by --database-url, else TIDEMARK_DATABASE_URL, else DATABASE_URL, else libpq's variables (PGHOST,
PGDATABASE, PGUSER, …). Keep passwords in a password file or PGPASSWORD; no command prints them.

Exit status:
  0    success
  1    the command failed, or found problems: a check fails, lines were refused
  2    wrong usage, or a problem in the configuration
  3    the database cannot be reached
  4    the schema is too old or too new for this build
  5    the database refused it: a rule of Tidemark (TM…), a privilege, a constraint
  6    another session was in the way: a lock for too long, a deadlock; try again
  130  interrupted
For status and doctor 1 means that something does not work, and 2 that a check could not be evaluated. beat exits with
the status of the command that it runs.`

// newRoot is the command with all its subcommands. A new one needs a line here.
func newRoot() *cobra.Command {
	app := &cli.App{Build: cli.ThisBuild(version)}
	return app.Root("tidemark", "Reliable event delivery from PostgreSQL", about, []cli.Group{
		{Title: "See what there is, and what is wrong", Example: "tidemark doctor", Commands: []cli.Command{
			doctorCommand(), eventCommand(), findingCommand(), historyCommand(), pendingCommand(), statusCommand(), verifyCommand(), whyCommand(),
		}},
		{
			Title: "Emit events, and say which there may be", Example: "tidemark emit --domain shop --type order.paid",
			Commands: []cli.Command{
				domainCommand(), emitCommand(), typeCommand(),
			},
		},
		{
			Title:   "Configure where events come from and go to",
			Example: "tidemark route set mail --domain shop --target-kind sql --target-ref app.send_mail", Commands: []cli.Command{
				applyCommand(), captureCommand(), commandCommand(), configCommand(), exportCommand(), packCommand(), planCommand(), routeCommand(),
				sourceCommand(), workerCommand(),
			},
		},
		{Title: "Operate: run, switch, repair", Example: "tidemark run --config tidemark.yaml", Commands: []cli.Command{
			activateCommand(), beatCommand(), consoleCommand(), deadLetterCommand(), disableCommand(), gateCommand(), healthcheckCommand(),
			heartbeatCommand(), maintainCommand(), runCommand(), settingCommand(), stageCommand(), staleCheckCommand(),
		}},
		{Title: "Install", Example: "tidemark migrate up", Commands: []cli.Command{migrateCommand(), uninstallCommand(), versionCommand()}},
	})
}

func versionCommand() cli.Command {
	return cli.Command{
		Use: "version", Short: "Print the version of this build", Needs: cli.Nothing,
		Example: "  tidemark version -o json",
		Run: func(_ context.Context, s *cli.Session) error {
			b := s.App.Build
			return s.Result(b, "tidemark %s, commit %s%s, %s", b.Version, cli.Or(b.Commit, "unknown"),
				cli.Choose(b.Modified, " with changes", ""), b.Go)
		},
	}
}
