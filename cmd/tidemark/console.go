package main

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/term"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/consoleserver"
)

func consoleCommand() cli.Command {
	var file, listen string
	var readOnly, hash bool
	return cli.Command{
		Use: "console", Short: "Serve the web console and the JSON API", Role: "tidemark_admin", Needs: cli.Nothing,
		Long: `Serve the web console, and the JSON API below /api/v1: what is wrong, why, and the acts that mend it. The daemon
serves them too, where its configuration has console.listen.

By default it listens at 127.0.0.1:9322, and everyone on this host may do everything there. People and programs sign in
once the configuration (--config) has console.users, console.tokens, console.oidc or console.proxy; without one of these
it refuses an address that other hosts can reach. The audit (tidemark.audit) names the person of each act.`,
		Example: "  tidemark console\n  tidemark console --config /etc/tidemark.yaml --listen :9322",
		Flags: func(flags *pflag.FlagSet) {
			cli.ConfigFlag(flags, &file)
			flags.StringVar(&listen, "listen", "", "where to listen, as HOST:PORT (default: console.listen, else 127.0.0.1:9322)")
			flags.BoolVar(&readOnly, "read-only", false, "refuse all acts")
			flags.BoolVar(&hash, "hash-password", false, "read a password, print its hash for console.users, and do nothing else")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if hash {
				return hashPassword(s)
			}
			c, err := s.LoadConfig(file)
			if err != nil {
				return err
			}
			c.Console.Listen = cmp.Or(listen, c.Console.Listen, "127.0.0.1:9322")
			c.Console.ReadOnly = c.Console.ReadOnly || readOnly
			if s.App.DatabaseURL != "" {
				c.Database.URL, c.Console.DatabaseURL = config.NewSecret(s.App.DatabaseURL), config.Secret{}
			}
			if problems := c.Validate(); len(problems) > 0 {
				return cli.Usagef("%s: %s", problems[0].Key, problems[0].Text)
			}
			log, _ := newLogger(s.Err, true, c.Log)
			server, err := consoleserver.New(ctx, c, log)
			if err != nil {
				return err
			}
			s.Line("the console is at %s", server.URL(c.Console))
			if c.Console.Open() {
				s.Note("nobody signs in: everyone on this host may do everything there")
			}
			return server.Run(ctx)
		},
	}
}

// hashPassword reads a password, which a terminal does not show.
func hashPassword(s *cli.Session) error {
	var text string
	if in, ok := s.In.(*os.File); ok && cli.IsTerminal(in) {
		s.Note("type the password:")
		typed, err := term.ReadPassword(int(in.Fd())) //nolint:gosec // a file descriptor fits
		if err != nil {
			return err
		}
		text = string(typed)
	} else {
		line, err := bufio.NewReader(io.LimitReader(s.In, 1024)).ReadString('\n')
		if err != nil && err != io.EOF { //nolint:errorlint // a reader returns it as it is
			return err
		}
		text = strings.TrimRight(line, "\r\n")
	}
	if len(text) < 8 || len(text) > 72 {
		return cli.Usagef("the password has %d bytes; bcrypt takes up to 72, and fewer than 8 are too few", len(text))
	}
	made, err := bcrypt.GenerateFromPassword([]byte(text), bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	return s.Result(cli.Fields{"password_hash", string(made)}, "%s", made)
}
