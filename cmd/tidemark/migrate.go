package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/migrate"
)

func newMigrate(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Install the schema and keep it up to date"}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "up",
			Short: "Bring the schema up to date; waits for another one that is under way",
			Long: `Bring the schema up to date: run the migrations that are left, and re-create functions, triggers
and views if they changed. Needs CREATE on the database and, the first time in a cluster,
CREATEROLE or superuser. Waits for another "migrate up" that is under way.`,
			RunE: a.withDatabase(migrateUp),
		},
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
		&cobra.Command{
			Use:   "print",
			Short: "Print all SQL of an installation, for psql; needs no database",
			RunE:  func(cmd *cobra.Command, _ []string) error { return migrate.Print(cmd.OutOrStdout()) },
		},
	)
	return cmd
}

func migrateUp(ctx context.Context, s *session, _ []string) error {
	report, err := migrate.Up(ctx, s.conn)
	if s.json {
		if err != nil {
			return err
		}
		return s.object(struct {
			Applied   []string `json:"applied"`
			Recreated int      `json:"recreated"`
		}{append([]string{}, report.Applied...), report.Recreated})
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
