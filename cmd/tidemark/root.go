package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const about = `Tidemark makes a PostgreSQL database a dependable event and command backbone.

The database is named by --database-url, else TIDEMARK_DATABASE_URL, else DATABASE_URL,
else by the variables of libpq (PGHOST, PGDATABASE, PGUSER, …). Passwords belong in a
password file or in PGPASSWORD, and are never printed.

Exit status:
  0    fine
  1    it failed, or it found problems: a check fails, lines were refused
  2    wrong usage, bad configuration
  3    the database cannot be reached
  4    the schema is too old or too new for this build
  5    the database refused it: a rule of Tidemark (TM…), a privilege, a constraint
  130  interrupted
status and doctor are for watchdogs: 1 something does not work, 2 it cannot be told.
beat passes on the status of the command that it runs.`

// newRoot is the command with all its subcommands. A new one needs a line here.
func newRoot() *cobra.Command {
	a := &app{}
	root := &cobra.Command{
		Use:           "tidemark",
		Short:         "A dependable event and command backbone in PostgreSQL",
		Long:          about,
		Version:       thisBuild().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringVar(&a.databaseURL, "database-url", "", "postgres:// URL or key=value string of the database")
	root.PersistentFlags().StringVarP(&a.output, "output", "o", "table", "form of the output: table or json (an object a line)")
	root.AddCommand(
		newActivate(a),
		newBeat(a),
		newCapture(a),
		newConfig(a),
		newDeadLetter(a),
		newDisable(a),
		newDoctor(a),
		newDomain(a),
		newEmit(a),
		newEvent(a),
		newFinding(a),
		newGate(a),
		newHealthcheck(a),
		newHeartbeat(a),
		newMaintain(a),
		newMigrate(a),
		newPack(a),
		newPending(a),
		newRoute(a),
		newRun(a),
		newSource(a),
		newStage(a),
		newStaleCheck(a),
		newStatus(a),
		newType(a),
		newVerify(a),
		newVersion(a),
		newWorker(a),
	)
	strictUsage(root)
	return root
}

// strictUsage makes wrong flags, arguments and subcommands errors of usage, everywhere:
// cobra alone answers an unknown subcommand of a subcommand with its help and success.
func strictUsage(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, ", "))
			}
			return usageError{err}
		}
		cmd.Args = cobra.ArbitraryArgs
		cmd.SuggestionsMinimumDistance = 2
	}
	check := cmd.Args
	if check == nil {
		check = asUsed
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
	for _, sub := range cmd.Commands() {
		strictUsage(sub)
	}
}

// asUsed wants the arguments that the line of usage shows: NAME is needed, [NAME] is not.
func asUsed(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	if len(args) > len(names) {
		return fmt.Errorf("unexpected argument %q for %q", args[len(names)], cmd.CommandPath())
	}
	for _, name := range names[len(args):] {
		if !strings.HasPrefix(name, "[") {
			return fmt.Errorf("%q needs %s", cmd.CommandPath(), name)
		}
	}
	return nil
}

// needs names the role that a command's work is granted to, for the hint that somebody
// without it gets.
func needs(role string, cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{roleAnnotation: role}
	return cmd
}

const roleAnnotation = "role"
