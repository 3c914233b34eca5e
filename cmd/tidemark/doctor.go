package main

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
)

func doctorCommand() cli.Command {
	return cli.Command{
		Use: "doctor", Short: "Explain what is wrong by its cause, and how to fix it", Role: "tidemark_reader", Watchdog: true,
		Long: `Explain everything that does not work or needs attention, by its cause, worst first: what was found, what it means, what
to do, the commands and the SQL that fix it (either does, pasted as it is), the symptoms that it explains, and its page
in docs/runbooks. It checks for silent executors first, if its role is a member of tidemark_executor. The exit status is
that of tidemark status.`,
		Example: "  tidemark doctor",
		Run: func(ctx context.Context, s *cli.Session) error {
			return cli.Within(ctx, func(ctx context.Context) error { return doctor(ctx, s) })
		},
	}
}

func doctor(ctx context.Context, s *cli.Session) error {
	if _, err := cli.InTx(ctx, s, func(db *store.DB) ([]store.Silence, error) { return db.StaleCheck(ctx) }); err != nil {
		if !store.HasCode(err, "42501") {
			return err
		}
		s.Note("silent executors are as of the last check: this role may not make one")
	}
	causes, err := s.Causes(ctx)
	if err != nil {
		return err
	}
	prefix, err := migrate.InstalledPrefix(ctx, s.Conn)
	if err != nil {
		prefix = "" // the names as they are without one
	}
	for i, c := range causes {
		c.Todo = migrate.NameRoles(c.Todo, prefix)
		for _, commands := range [][]string{c.SQL, c.CLI} {
			for n := range commands {
				commands[n] = migrate.NameRoles(commands[n], prefix)
			}
		}
		if s.JSON {
			s.Object(diagnosis{c, cli.CausePage(c.Cause)})
			continue
		}
		if i > 0 {
			s.Line("")
		}
		cli.CauseWhole(s, c)
	}
	if len(causes) == 0 {
		s.Note("nothing is wrong")
	}
	return cli.Verdict(causes)
}

// diagnosis is the JSON of doctor, an object for each cause.
type diagnosis struct {
	store.Cause
	Page string `json:"page"`
}
