package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/postgres"
)

func newStatus(a *app) *cobra.Command {
	return needs("tidemark_reader", &cobra.Command{
		Use:   "status",
		Short: "Show the installation at a glance",
		RunE:  a.withSchema(status),
	})
}

// overview is the JSON of `status`.
type overview struct {
	postgres.Server
	Stage postgres.Stage `json:"stage"`
	postgres.Counts
	Gates    []postgres.Gate    `json:"gates"`
	Workers  []postgres.Health  `json:"workers"`
	Findings []postgres.Finding `json:"findings"`
}

func status(ctx context.Context, s *session, _ []string) (err error) {
	var o overview
	if o.Server, err = s.Server(ctx); err != nil {
		return err
	}
	if o.Stage, err = s.Stage(ctx); err != nil {
		return err
	}
	if o.Counts, err = s.Counts(ctx); err != nil {
		return err
	}
	if o.Gates, err = s.Gates(ctx); err != nil {
		return err
	}
	if o.Workers, err = s.WorkerHealth(ctx); err != nil {
		return err
	}
	if o.Findings, err = s.OpenFindings(ctx); err != nil {
		return err
	}
	if s.json {
		return s.object(o)
	}
	return showOverview(s, o)
}

func showOverview(s *session, o overview) error {
	where := fmt.Sprintf("%s as %s, PostgreSQL %s", o.Database, o.Role, o.Version)
	if o.InStandby {
		where += ", a standby: workers cannot run here"
	}
	newest := "none"
	if o.NewestEventAt != nil {
		newest = fmt.Sprintf("last number %d, newest %s", o.LastSeq, s.age(*o.NewestEventAt))
	}
	master := "closed"
	for _, g := range o.Gates {
		if g.Gate == "routes.enabled" {
			master = openOrClosed(g.Open)
		}
	}
	err := s.facts(
		fact{"database", where}, fact{"stage", stageText(o.Stage)}, fact{"master gate", master}, fact{"events", newest},
		fact{"event types", fmt.Sprintf("%d enabled", o.EventTypes)},
		fact{"routes", fmt.Sprintf("%d, %d enabled, %d of them live", o.Routes, o.RoutesEnabled, o.RoutesLive)},
		fact{"pending", number(o.Pending)}, fact{"dead letters", fmt.Sprintf("%d open", o.OpenDeadLetters)},
		fact{"findings", fmt.Sprintf("%d open", o.OpenFindings)})
	if err != nil {
		return err
	}
	if err := s.linef(""); err != nil {
		return err
	}
	if err := workerTable(s, o.Workers); err != nil || len(o.Findings) == 0 {
		return err
	}
	if err := s.linef(""); err != nil {
		return err
	}
	type f = postgres.Finding
	return rows(s.printer, "", o.Findings,
		column[f]{"FINDING", func(f f) string { return f.Kind }},
		column[f]{"SUBJECT", func(f f) string { return f.Subject }},
		column[f]{"SEVERITY", func(f f) string { return f.Severity }},
		column[f]{"OPEN SINCE", func(f f) string { return s.age(f.OpenedAt) }},
		column[f]{"SEEN", func(f f) string { return count(int(f.Count), "time", "times") }},
		column[f]{"DETAIL", func(f f) string { return f.Detail }})
}
