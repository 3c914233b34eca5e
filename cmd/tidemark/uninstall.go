package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/migrate"
)

func uninstallCommand() cli.Command {
	var yes string
	return cli.Command{
		Use: "uninstall", Short: "Drop Tidemark from a database, with all events; shows what goes, and asks", Needs: cli.Database,
		Long: `Drop the schema tidemark: the log, all evidence, the configuration, and what depends on it, such as the triggers of captured
tables. It shows what would go and asks for the name of the database; --yes DATABASE answers. It refuses while a daemon or
another executor, such as a Go program with handlers, runs: one that holds a lease, or has beaten within the last 30 seconds.
Functions of yours that call Tidemark stay, and fail from then on. The schemas of packs stay, and the roles, which other
databases may use.`,
		Example: "  tidemark uninstall",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&yes, "yes", "", "do not ask: the name of the `DATABASE`")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			u, err := migrate.WouldUninstall(ctx, s.Conn)
			if err != nil {
				return err
			}
			err = s.Show(u, "database", u.Database, "events", u.Events, "pending deliveries", u.Pending, "open dead letters", u.DeadLetters,
				"bytes", u.Bytes, "daemons", u.Daemons, "instances with leases", u.Instances, "executors that beat", u.Executors)
			if err != nil {
				return err
			}
			if !s.JSON {
				for _, other := range u.Others {
					s.Line("goes with it: %s", other)
				}
			}
			if yes == "" {
				yes = answerTo(s, fmt.Sprintf("This cannot be undone. To drop all of it, type the name of the database (%s): ", u.Database))
			}
			if yes != u.Database {
				return cli.Hint(cli.Usagef("nothing was dropped: %q is not the name of the database", yes), "tidemark uninstall --yes "+u.Database)
			}
			if err := migrate.Uninstall(ctx, s.Conn); err != nil {
				return err
			}
			s.Note("dropped; the roles stay: where no other database uses them, drop owned by and then drop role remove them")
			return nil
		},
	}
}

// answerTo asks the person at the terminal. Without a terminal it returns an empty answer.
func answerTo(s *cli.Session, question string) string {
	if !cli.IsTerminal(os.Stdin) {
		return ""
	}
	fmt.Fprint(s.Err, question)
	answer, _ := bufio.NewReader(s.In).ReadString('\n')
	return strings.TrimSpace(answer)
}
