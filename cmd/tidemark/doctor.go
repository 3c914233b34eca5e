package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
)

func doctorCommand() cli.Command {
	return cli.Command{
		Use: "doctor", Short: "Explain each problem, and what to do about it", Role: "tidemark_reader", Watchdog: true,
		Long: `Explain each open finding, and everything else that does not work or needs attention: what it means, what to
do, and the next command. It checks for silent executors first, if its role is a member of tidemark_executor. The exit
status is that of tidemark status.`,
		Example: "  tidemark doctor",
		Run:     doctor,
	}
}

// problem is a problem with its explanation.
type problem struct {
	Status  string `json:"status"` // bad, warn, unknown or ok
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Finding *int64 `json:"finding"` // null: it has none
	State   string `json:"state"`
	Detail  string `json:"detail"`
	Means   string `json:"means"`
	Do      string `json:"do"`
	Next    string `json:"next"`
}

func doctor(ctx context.Context, s *cli.Session) error {
	if _, err := cli.InTx(ctx, s, func(db *store.DB) ([]store.Silence, error) { return db.StaleCheck(ctx) }); err != nil {
		if !store.HasCode(err, "42501") {
			return err
		}
		s.Note("silent executors are as of the last check: this role may not make one")
	}
	findings, err := s.OpenFindings(ctx)
	if err != nil {
		return err
	}
	health, err := s.QueueHealth(ctx)
	if err != nil {
		return err
	}
	problems := diagnose(s.Printer, findings, health)
	prefix, err := migrate.InstalledPrefix(ctx, s.Conn)
	if err != nil {
		prefix = "" // the names as they are without one
	}
	for i, p := range problems {
		p.Do, p.Next = migrate.NameRoles(p.Do, prefix), migrate.NameRoles(p.Next, prefix)
		if i > 0 && !s.JSON {
			s.Line("")
		}
		title := p.Kind + " " + p.Subject
		if p.Finding != nil {
			title += fmt.Sprintf(" (finding %d)", *p.Finding)
		}
		if err := s.Show(p, p.Status, title, "  state", p.State, "  found", p.Detail, "  means", p.Means, "  do", p.Do,
			"  next", p.Next); err != nil {
			return err
		}
	}
	if len(problems) == 0 {
		s.Note("nothing is wrong")
	}
	return cli.Verdict(health)
}

// covers has the kinds of rows of which a finding on the same subject tells already.
var covers = map[string][]string{
	"cursor_silent_gap": {"cursor", "heartbeat"},
	"heartbeat_silent":  {"heartbeat"},
	"cursor_lag":        {"backlog"},
}

// diagnose explains each finding, and each row that is not ok and that no finding covers.
func diagnose(p *cli.Printer, findings []store.Finding, health []store.QueueHealth) []problem {
	var all []problem
	status := map[string]string{}
	for _, h := range health {
		status[h.Kind+" "+h.Name] = h.Status
	}
	covered := map[string]bool{}
	severities := map[string]string{"high": "bad", "critical": "bad", "warning": "warn"}
	for _, f := range findings {
		e := cli.ExplainFinding(f.Kind)
		state := fmt.Sprintf("%s, opened %s, seen %s", f.Severity, p.Age(f.OpenedAt), cli.Count(f.Count, "time"))
		if f.AckedBy != nil {
			state += ", acknowledged by " + *f.AckedBy + ": " + cli.Cell(f.AckNote)
		}
		is := cli.Or(severities[f.Severity], "ok")
		for _, kind := range covers[f.Kind] {
			row := kind + " " + f.Subject
			covered[row] = true
			if status[row] == "bad" {
				is = "bad"
			}
		}
		all = append(all, problem{is, f.Kind, f.Subject, &f.ID, state, f.Detail, e.Means, e.Do, e.Next(f.Subject)})
	}
	for _, h := range health {
		if h.Status == "ok" || h.Kind == "finding" || covered[h.Kind+" "+h.Name] {
			continue
		}
		e := cli.Health[h.Kind]
		state := h.Status
		if h.AgeSeconds != nil {
			state += ", for " + cli.Span(time.Duration(*h.AgeSeconds)*time.Second)
		}
		detail := h.Note
		if h.Count != nil && h.Kind != "heartbeat" && h.Kind != "cursor" {
			detail = strings.TrimSpace(cli.Cell(h.Count) + " " + detail)
		}
		all = append(all, problem{h.Status, h.Kind, h.Name, nil, state, detail, e.Means, e.Do, e.Next(h.Name)})
	}
	return all
}
