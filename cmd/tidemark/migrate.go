package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/migrate"
)

func newMigrate(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Install the schema and keep it up to date"}
	cmd.AddCommand(
		newMigrateUp(a),
		&cobra.Command{
			Use:   "status",
			Short: "Show what has run and what is left",
			RunE:  a.withDatabase(migrateStatus),
		},
		&cobra.Command{
			Use:   "verify",
			Short: "Look for what was changed in the schema by hand",
			RunE:  a.withDatabase(migrateVerify),
		},
		newMigrateRoles(a),
		newMigratePrint(),
	)
	return cmd
}

// rolePrefix is the flag --role-prefix.
type rolePrefix struct {
	flags  *pflag.FlagSet
	prefix string
}

func newRolePrefix(cmd *cobra.Command) *rolePrefix {
	p := &rolePrefix{flags: cmd.Flags()}
	p.flags.StringVar(&p.prefix, "role-prefix", "", "names of the roles begin with it, so that rights are of this database alone; found in the database after the first time")
	return p
}

// options is empty where the flag was not given: the database tells then.
func (p *rolePrefix) options() []migrate.Option {
	if !p.flags.Changed("role-prefix") {
		return nil
	}
	return []migrate.Option{migrate.RolePrefix(p.prefix)}
}

func newMigrateUp(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the schema up to date; waits for another one that is under way",
		Long: `Bring the schema up to date: run the migrations that are left, and re-create functions, triggers
and views if they changed, all in one transaction. Waits for another "migrate up" that is under way. The
first time it makes Tidemark's roles and needs CREATE on the database and CREATEROLE or superuser. Where a
DBA makes the roles, its role must be a member of tidemark_owner: "migrate roles --print" has the statements.`,
	}
	prefix := newRolePrefix(cmd)
	cmd.RunE = a.withDatabase(func(ctx context.Context, s *session, _ []string) error {
		return migrateUp(ctx, s, prefix.options())
	})
	return cmd
}

func migrateUp(ctx context.Context, s *session, options []migrate.Option) error {
	report, err := migrate.Up(ctx, s.conn, options...)
	for _, warning := range report.Warnings {
		s.note("warning: %s", warning)
	}
	if refused := (*migrate.RolesError)(nil); errors.As(err, &refused) {
		return hinted{err, "tidemark migrate roles --print --installer " + refused.Installer + " prints them as a script that can be run again."}
	}
	if s.json {
		if err != nil {
			return err
		}
		return s.object(struct {
			Roles     []string `json:"roles"`
			Applied   []string `json:"applied"`
			Recreated int      `json:"recreated"`
		}{append([]string{}, report.Roles...), append([]string{}, report.Applied...), report.Recreated})
	}
	for _, sql := range report.Roles {
		if err := s.linef("roles      %s", sql); err != nil {
			return err
		}
	}
	for _, name := range report.Applied {
		if err := s.linef("applied    %s", name); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		return err
	case report.Recreated > 0:
		return s.linef("re-created %d functions, triggers and views", report.Recreated)
	case len(report.Applied) == 0:
		return s.linef("the schema is up to date")
	}
	return nil
}

func newMigrateRoles(a *app) *cobra.Command {
	var installer string
	var script bool
	cmd := &cobra.Command{
		Use:   "roles",
		Short: "Show the statements that make Tidemark's roles, for a DBA",
		Long: `Show the statements that make Tidemark's roles and let a role install it in this database, and
which of them are done. Changes nothing; any role may ask. --print writes all of them as SQL that can be
run again, for a superuser or a role with CREATEROLE and ADMIN.`,
	}
	prefix := newRolePrefix(cmd)
	cmd.Flags().StringVar(&installer, "installer", "", "who is to run migrate up (default: the role of this connection)")
	cmd.Flags().BoolVar(&script, "print", false, "as SQL")
	cmd.RunE = a.withDatabase(func(ctx context.Context, s *session, _ []string) error {
		statements, err := migrate.Roles(ctx, s.conn, installer, prefix.options()...)
		if err != nil {
			return err
		}
		if script {
			return printRoles(s, statements)
		}
		type r = migrate.RoleStatement
		return rows(s.printer, "", statements,
			column[r]{"STATE", func(r r) string {
				switch {
				case r.Done:
					return "done"
				case r.Needed == "advice":
					return "advised"
				}
				return "missing"
			}},
			column[r]{"STATEMENT", func(r r) string { return r.SQL + ";" }},
			column[r]{"WITHOUT IT", func(r r) string { return firstOf(r.Without, "migrate up is refused") }})
	})
	return cmd
}

// printRoles writes SQL that any client can run again: there is no create role if not exists.
func printRoles(s *session, statements []migrate.RoleStatement) error {
	for _, statement := range statements {
		text := statement.SQL + ";"
		if strings.HasPrefix(text, "create role ") {
			text = "do $$ begin " + text + " exception when duplicate_object then null; end $$;"
		}
		if statement.Without != "" {
			if err := s.linef("-- Without it %s:", statement.Without); err != nil {
				return err
			}
		}
		if err := s.linef("%s", text); err != nil {
			return err
		}
	}
	return nil
}

func newMigratePrint() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print all SQL of an installation, for psql; needs no database",
	}
	prefix := newRolePrefix(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return migrate.Print(cmd.OutOrStdout(), prefix.options()...)
	}
	return cmd
}

// migration is a line of `migrate status`.
type migration struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	State   string `json:"state"` // applied, to run, or newer: this build does not know it
}

func migrateStatus(ctx context.Context, s *session, _ []string) error {
	status, err := migrate.State(ctx, s.conn)
	if err != nil {
		return err
	}
	all := []migration{}
	for _, m := range status.Migrations {
		state := "applied"
		switch {
		case !m.Applied:
			state = "to run"
		case !m.Known:
			state = "newer"
		}
		all = append(all, migration{m.Version, m.Name, state})
	}
	if s.json {
		return s.object(struct {
			Migrations  []migration `json:"migrations"`
			CodeCurrent bool        `json:"code_current"`
		}{all, status.CodeCurrent})
	}
	err = rows(s.printer, "", all,
		column[migration]{"MIGRATION", func(m migration) string { return fmt.Sprintf("%04d_%s", m.Version, m.Name) }},
		column[migration]{"STATE", func(m migration) string { return m.State }})
	if err != nil {
		return err
	}
	if status.CodeCurrent {
		return s.linef("functions, triggers and views: of this build")
	}
	return s.linef("functions, triggers and views: not of this build; run: tidemark migrate up")
}

func migrateVerify(ctx context.Context, s *session, _ []string) error {
	problems, err := migrate.Verify(ctx, s.conn)
	if err != nil {
		return err
	}
	type problem struct {
		Problem string `json:"problem"`
	}
	for _, text := range problems {
		if s.json {
			err = s.object(problem{text})
		} else {
			err = s.linef("%s", text)
		}
		if err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return hinted{
			fmt.Errorf("the schema is not as it was installed: %s", count(len(problems), "problem", "problems")),
			"tidemark migrate up installs what is missing or of another build; what was added by hand is yours to drop.",
		}
	}
	if s.json {
		return nil
	}
	return s.linef("the schema is as it was installed")
}
