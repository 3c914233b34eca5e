package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newDoctor(a *app) *cobra.Command {
	cmd := needs("tidemark_reader", &cobra.Command{
		Use:   "doctor",
		Short: "Explain everything that is wrong, and what to do about it",
		Long: `Explain each open finding, and everything else that does not work or should be looked at: what it means,
what to do, and the next command. It looks for silent executors first, if its role is in tidemark_executor.
The exit status is that of "tidemark status".`,
	})
	cmd.RunE = forWatchdogs(a.withSchema(func(ctx context.Context, s *session, _ []string) error {
		return doctor(ctx, s)
	}))
	return cmd
}

// problem is something wrong, explained.
type problem struct {
	Status  string `json:"status"` // bad, warn, unknown or ok
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Finding *int64 `json:"finding"` // null: there is none for it
	State   string `json:"state"`
	Detail  string `json:"detail"`
	Means   string `json:"means"`
	Do      string `json:"do"`
	Next    string `json:"next"`
}

func doctor(ctx context.Context, s *session) error {
	if _, err := staleCheck(ctx, s); err != nil {
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "42501" {
			return err
		}
		s.note("who is silent is as of the last check: this role may not make one")
	}
	findings, err := s.OpenFindings(ctx)
	if err != nil {
		return err
	}
	health, err := s.QueueHealth(ctx)
	if err != nil {
		return err
	}
	problems := diagnose(s.printer, findings, health)
	for i, p := range problems {
		p.Do, p.Next = s.roles(ctx, p.Do), s.roles(ctx, p.Next)
		if err := showProblem(s, p, i > 0); err != nil {
			return err
		}
	}
	if len(problems) == 0 {
		s.note("nothing is wrong")
	}
	return verdict(health)
}

// tellsOf names the kinds of rows that a finding on the same subject tells of already.
var tellsOf = map[string][]string{
	"cursor_silent_gap": {"cursor", "heartbeat"},
	"heartbeat_silent":  {"heartbeat"},
	"cursor_lag":        {"backlog"},
}

// diagnose explains each finding, and each row that is not ok and that no finding tells of.
func diagnose(p *printer, findings []store.Finding, health []store.QueueHealth) []problem {
	var all []problem
	status := map[string]string{}
	for _, h := range health {
		status[h.Kind+" "+h.Name] = h.Status
	}
	told := map[string]bool{}
	for _, f := range findings {
		e := explain(f.Kind)
		state := fmt.Sprintf("%s, opened %s, seen %s", f.Severity, p.age(f.OpenedAt), count(int(f.Count), "time", "times"))
		if f.AckedBy != nil {
			state += ", acknowledged by " + *f.AckedBy + ": " + text(f.AckNote)
		}
		is := findingStatus(f.Severity)
		for _, kind := range tellsOf[f.Kind] {
			row := kind + " " + f.Subject
			told[row] = true
			if status[row] == "bad" {
				is = "bad"
			}
		}
		all = append(all, problem{is, f.Kind, f.Subject, &f.ID, state, f.Detail, e.means, e.do, e.command(f.Subject)})
	}
	for _, h := range health {
		if h.Status == "ok" || h.Kind == "finding" || told[h.Kind+" "+h.Name] {
			continue
		}
		e := healthKinds[h.Kind]
		state := h.Status
		if h.AgeSeconds != nil {
			state += ", for " + span(time.Duration(*h.AgeSeconds)*time.Second)
		}
		detail := h.Note
		if h.Count != nil && h.Kind != "heartbeat" && h.Kind != "cursor" {
			detail = strings.TrimSpace(number(*h.Count) + " " + detail)
		}
		all = append(all, problem{h.Status, h.Kind, h.Name, nil, state, detail, e.means, e.do, e.command(h.Name)})
	}
	return all
}

func findingStatus(severity string) string {
	switch severity {
	case "high", "critical":
		return "bad"
	case "warning":
		return "warn"
	default:
		return "ok"
	}
}

func showProblem(s *session, p problem, apart bool) error {
	if s.json {
		return s.object(p)
	}
	if apart {
		if err := s.linef(""); err != nil {
			return err
		}
	}
	title := p.Kind + " " + p.Subject
	if p.Finding != nil {
		title += fmt.Sprintf(" (finding %d)", *p.Finding)
	}
	return s.facts(fact{p.Status, title}, fact{"  state", p.State}, fact{"  found", p.Detail},
		fact{"  means", p.Means}, fact{"  do", p.Do}, fact{"  next", p.Next})
}
