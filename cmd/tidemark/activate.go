package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/postgres"
)

func newActivate(a *app) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "activate WORKER",
		Short: "Runbook: check everything, then open the gates for a worker",
		Long: `Check the installation and, if no check fails, open the worker's gate and the master gate. Each step is
printed with its SQL and what it changed. Routes and the stage stay as they are: what is in dry run
delivers nothing.`,
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			return activate(ctx, s, args[0], reason)
		}),
	})
	reasonFlag(cmd, &reason)
	return cmd
}

func activate(ctx context.Context, s *session, worker, reason string) error {
	health, err := s.WorkerHealthOf(ctx, worker)
	if err != nil {
		return err
	}
	if err := checkBefore(ctx, s); err != nil {
		return err
	}
	if err := showRoutes(ctx, s, worker); err != nil {
		return err
	}

	var done []step
	err = s.inTx(ctx, func(db *postgres.DB) error {
		gates, err := db.Gates(ctx)
		if err != nil {
			return err
		}
		was := map[string]bool{}
		for _, g := range gates {
			was[g.Gate] = g.Open
		}
		for _, gate := range []string{workerGate(worker), "routes.enabled"} {
			if err := db.GateSet(ctx, gate, true, reason); err != nil {
				return err
			}
			done = append(done, gateStep(gate, was[gate], true, reason))
		}
		if err := tellOutlook(ctx, s, db, worker, ""); err != nil {
			return err
		}
		if others := openGates(gates, worker); !was["routes.enabled"] && len(others) > 0 {
			done[1].Result += "; it lets these run too, whose own gate is open: " + strings.Join(others, ", ")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.steps(done...); err != nil {
		return err
	}
	return showResult(ctx, s, worker, health)
}

// checkBefore is the first step; a check that fails is the end of the runbook.
func checkBefore(ctx context.Context, s *session) error {
	checks, err := s.Verify(ctx)
	if err != nil {
		return err
	}
	found := map[string][]string{}
	for _, c := range checks {
		found[c.Status] = append(found[c.Status], c.Check+": "+c.Detail)
	}
	result := fmt.Sprintf("%d checks: %d fail, %d warn", len(checks), len(found["fail"]), len(found["warn"]))
	for _, status := range []string{"fail", "warn"} {
		if len(found[status]) > 0 {
			result += "; " + status + ": " + strings.Join(found[status], "; ")
		}
	}
	if err := s.steps(step{Step: "check the installation", SQL: "select * from tidemark.verify();", Result: result}); err != nil {
		return err
	}
	if err := failures(checks); err != nil {
		return hinted{fmt.Errorf("nothing was changed: %w", err), "tidemark verify shows them, with what to do."}
	}
	return nil
}

func showRoutes(ctx context.Context, s *session, worker string) error {
	routes, err := s.Routes(ctx, worker)
	if err != nil {
		return err
	}
	states := map[string]int{}
	for _, r := range routes {
		states[routeState(r)]++
	}
	return s.steps(step{
		Step:   "look at the routes of the worker",
		SQL:    "select * from tidemark.outbound_route where worker = " + literal(worker) + ";",
		Result: fmt.Sprintf("%d live, %d in dry run, %d off", states["live"], states["dry run"], states["off"]),
	})
}

// openGates names the other workers whose own gate is open.
func openGates(gates []postgres.Gate, worker string) (others []string) {
	for _, g := range gates {
		if name, ok := strings.CutPrefix(g.Gate, "worker."); ok && g.Open && g.Gate != workerGate(worker) {
			others = append(others, strings.TrimSuffix(name, ".enabled"))
		}
	}
	return others
}

func showResult(ctx context.Context, s *session, worker string, before postgres.Health) error {
	closed, err := s.ClosedGate(ctx, worker)
	if err != nil {
		return err
	}
	result := "nothing: it may run: tidemark worker run " + worker
	if before.Behind != nil { // not of a table, where nobody counts
		result = fmt.Sprintf("nothing: it may run, and is %d behind: tidemark worker run %s", *before.Behind, worker)
	}
	if closed != nil {
		result = *closed + ": it does not run yet"
	}
	return s.steps(step{
		Step: "see what still holds the worker back", SQL: "select tidemark.closed_gate(" + literal(worker) + ");", Result: result,
	})
}
