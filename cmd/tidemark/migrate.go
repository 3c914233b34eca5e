package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
)

func migrateCommand() cli.Command {
	return cli.Command{
		Use: "migrate", Short: "Install the schema and keep it up to date", Example: "  tidemark migrate up\n  tidemark migrate print > install.sql",
		Sub: []cli.Command{
			migrateUp(),
			{Use: "status", Short: "Show which migrations have run and which are left", Needs: cli.Database, Run: migrateStatus},
			{Use: "verify", Short: "Find manual changes to the schema", Needs: cli.Database, Run: migrateVerify},
			migrateRoles(),
			migratePrint(),
		},
	}
}

// rolePrefix is the flag --role-prefix.
type rolePrefix struct{ prefix string }

func (p *rolePrefix) add(flags *pflag.FlagSet) {
	flags.StringVar(&p.prefix, "role-prefix", "",
		"prefix of the roles' names, for roles of this database alone; remembered by the database after the first run")
}

// options is empty if the flag was not given: then the database knows.
func (p *rolePrefix) options(s *cli.Session) []migrate.Option {
	if !s.Given("role-prefix") {
		return nil
	}
	return []migrate.Option{migrate.RolePrefix(p.prefix)}
}

func migrateUp() cli.Command {
	var prefix rolePrefix
	return cli.Command{
		Use: "up", Short: "Install the schema or bring it up to date", Needs: cli.Database, Flags: prefix.add,
		Long: `Install the schema or bring it up to date: run the migrations that are left, and re-create functions, triggers
and views if they changed, by hand too, all in one transaction. Waits for another migrate up in progress. The first run creates
Tidemark's roles, and needs CREATE on the database and CREATEROLE or superuser. If a DBA creates the roles, yours must
be a member of tidemark_owner: migrate roles --print writes the statements.`,
		Run: func(ctx context.Context, s *cli.Session) error {
			report, err := migrate.Up(ctx, s.Conn, prefix.options(s)...)
			for _, warning := range report.Warnings {
				s.Note("warning: %s", warning)
			}
			if refused := (*migrate.RolesError)(nil); errors.As(err, &refused) {
				return cli.Hint(err, "tidemark migrate roles --print --installer "+refused.Installer+" prints them as a script that can be run again.")
			}
			if s.JSON && err == nil {
				s.Object(cli.Fields{
					"roles", append([]string{}, report.Roles...), "applied", append([]string{}, report.Applied...),
					"recreated", report.Recreated,
				})
			}
			if s.JSON {
				return err
			}
			for _, sql := range report.Roles {
				s.Line("roles      %s", sql)
			}
			for _, name := range report.Applied {
				s.Line("applied    %s", name)
			}
			switch {
			case err != nil:
				return err
			case report.Recreated > 0:
				s.Line("re-created %d functions, triggers and views", report.Recreated)
			case len(report.Applied) == 0:
				s.Line("the schema is up to date")
			}
			return nil
		},
	}
}

func migrateRoles() cli.Command {
	var prefix rolePrefix
	var installer string
	var script bool
	return cli.Command{
		Use: "roles", Short: "Show the statements that create Tidemark's roles, for a DBA", Needs: cli.Database,
		Long: `Show the statements that create Tidemark's roles and let a role install it in this database, and which of them
are done. Changes nothing; any role may run it. --print writes all of them as SQL that can be run again, for a superuser
or a role with CREATEROLE and ADMIN.`,
		Flags: func(flags *pflag.FlagSet) {
			prefix.add(flags)
			flags.StringVar(&installer, "installer", "", "the `ROLE` that will run migrate up; default: that of the connection")
			flags.BoolVar(&script, "print", false, "as SQL")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			statements, err := migrate.Roles(ctx, s.Conn, installer, prefix.options(s)...)
			if err != nil {
				return err
			}
			if script {
				printRoles(s, statements)
				return nil
			}
			return cli.Table(s.Printer, "", statements, "STATE|STATEMENT|WITHOUT IT", func(r migrate.RoleStatement) cli.Row {
				state := cli.Choose(r.Needed == "advice", "advised", "missing")
				return cli.Row{cli.Choose(r.Done, "done", state), r.SQL + ";", cli.Or(r.Without, "migrate up is refused")}
			})
		},
	}
}

// printRoles writes SQL that any client can run again. PostgreSQL has no "create role if not exists".
func printRoles(s *cli.Session, statements []migrate.RoleStatement) {
	for _, statement := range statements {
		text := statement.SQL + ";"
		if strings.HasPrefix(text, "create role ") {
			text = "do $$ begin " + text + " exception when duplicate_object then null; end $$;"
		}
		if statement.Without != "" {
			s.Line("-- Without it %s:", statement.Without)
		}
		s.Line("%s", text)
	}
}

func migratePrint() cli.Command {
	var prefix rolePrefix
	var from, to int
	return cli.Command{
		Use: "print", Short: "Print all SQL of an installation, for psql, or of an upgrade, for other tools; needs no database", Needs: cli.Nothing,
		Long: `Print all SQL of an installation, for psql. With --from N it prints the upgrade of a database whose last migration is N
(migrate status shows it), for tools such as Flyway, Atlas and goose: statements without commands of psql, which run in one
transaction that the tool begins and commits. They fail on a database with another last migration. --from 0 is an
installation; the roles must exist: migrate roles --print.

Functions go with tables, and this build has the functions of its last migration alone: --to names that one, so that a
script notices another release.`,
		Example: "  tidemark migrate print > install.sql\n  tidemark migrate print --from 64 > V12__tidemark.sql",
		Flags: func(flags *pflag.FlagSet) {
			prefix.add(flags)
			flags.IntVar(&from, "from", 0, "the last migration of the database: prints the upgrade from there")
			flags.IntVar(&to, "to", store.Migrations, "the last migration of this build")
		},
		Run: func(_ context.Context, s *cli.Session) error {
			switch {
			case to != store.Migrations:
				return cli.Hint(cli.Usagef("this build upgrades to migration %d, not to %d", store.Migrations, to),
					"Take the release whose last migration it is: tidemark migrate print --from prints the number in its first line.")
			case s.Given("from"):
				return migrate.PrintUpgrade(s.Out, from, prefix.options(s)...)
			case s.Given("to"):
				return cli.Usagef("--to needs --from")
			}
			return migrate.Print(s.Out, prefix.options(s)...)
		},
	}
}

// migration is a line of migrate status.
type migration struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	State   string `json:"state"` // applied, to run, or newer: this build does not know it
}

func migrateStatus(ctx context.Context, s *cli.Session) error {
	status, err := migrate.State(ctx, s.Conn)
	if err != nil {
		return err
	}
	all := []migration{}
	for _, m := range status.Migrations {
		state := cli.Choose(m.Known, "applied", "newer")
		all = append(all, migration{m.Version, m.Name, cli.Choose(m.Applied, state, "to run")})
	}
	if s.JSON {
		s.Object(cli.Fields{"migrations", all, "code_current", status.CodeCurrent})
		return nil
	}
	err = cli.Table(s.Printer, "", all, "MIGRATION|STATE", func(m migration) cli.Row {
		return cli.Row{fmt.Sprintf("%04d_%s", m.Version, m.Name), m.State}
	})
	s.Line("functions, triggers and views: %s", cli.Choose(status.CodeCurrent, "of this build",
		"not of this build; run: tidemark migrate up"))
	return err
}

func migrateVerify(ctx context.Context, s *cli.Session) error {
	problems, err := migrate.Verify(ctx, s.Conn)
	if err != nil {
		return err
	}
	for _, text := range problems {
		if err := s.Result(cli.Fields{"problem", text}, "%s", text); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return cli.Hint(fmt.Errorf("the schema is not as it was installed: %s", cli.Count(len(problems), "problem")),
			"tidemark migrate up installs again what is gone or was changed; drop additions yourself.")
	}
	if !s.JSON {
		s.Line("the schema is as it was installed")
	}
	return nil
}
