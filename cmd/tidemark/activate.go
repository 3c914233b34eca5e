package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/packs"
)

func newActivate(a *app) *cobra.Command {
	var reason, pack string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "activate [WORKER]",
		Short: "Runbook: check everything, then open the gates for a worker, or for all of a pack",
		Long: `Check the installation and, if no check fails, open the worker's gate and the master gate. Each step is
printed with its SQL and what it changed. Routes and the stage stay as they are: what is in dry run
delivers nothing. With --pack the gates of all workers that the pack brings, in one transaction.`,
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			workers, err := workersOf(args, pack)
			if err != nil {
				return err
			}
			return activate(ctx, s, workers, reason)
		}),
	})
	reasonFlag(cmd, &reason)
	packFlag(cmd, &pack)
	return cmd
}

func packFlag(cmd *cobra.Command, pack *string) {
	cmd.Flags().StringVar(pack, "pack", "", "all workers of this pack, instead of one `WORKER`")
}

// workersOf is the worker named in args, or those of the pack.
func workersOf(args []string, name string) ([]string, error) {
	switch {
	case len(args) == 1 && name == "":
		return args, nil
	case len(args) == 1 || name == "":
		return nil, usageError{errors.New("name one worker, or a pack with --pack")}
	}
	pack, found, err := packs.Find(name)
	if err == nil && !found {
		err = unknownPack(name)
	}
	return pack.Workers, err
}

func activate(ctx context.Context, s *session, workers []string, reason string) error {
	before := map[string]store.Health{}
	for _, worker := range workers {
		health, err := s.WorkerHealthOf(ctx, worker)
		if err != nil {
			return err
		}
		before[worker] = health
	}
	if err := checkBefore(ctx, s); err != nil {
		return err
	}
	for _, worker := range workers {
		if err := showRoutes(ctx, s, worker); err != nil {
			return err
		}
	}

	var done []step
	err := s.inTx(ctx, func(db *store.DB) error {
		var before []store.Gate
		var err error
		if done, before, err = setGates(ctx, db, append(workerGates(workers), "routes.enabled"), true, reason); err != nil {
			return err
		}
		for _, worker := range workers {
			if err := tellOutlook(ctx, s, db, worker, ""); err != nil {
				return err
			}
		}
		master := &done[len(done)-1]
		if others := openGates(before, workers); master.Changed && len(others) > 0 {
			master.Result += "; it lets these run too, whose own gate is open: " + strings.Join(others, ", ")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.steps(done...); err != nil {
		return err
	}
	for _, worker := range workers {
		if err := showResult(ctx, s, worker, before[worker]); err != nil {
			return err
		}
	}
	return nil
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

// openGates names the workers, other than these, whose own gate is open.
func openGates(gates []store.Gate, workers []string) (others []string) {
	for _, g := range gates {
		name, ok := strings.CutPrefix(g.Gate, "worker.")
		name = strings.TrimSuffix(name, ".enabled")
		if ok && g.Open && !slices.Contains(workers, name) {
			others = append(others, name)
		}
	}
	return others
}

func showResult(ctx context.Context, s *session, worker string, before store.Health) error {
	closed, err := s.ClosedGate(ctx, worker)
	if err != nil {
		return err
	}
	result := "nothing: it may run: tidemark worker run " + worker
	if before.Behind != nil { // not of a table, where nobody counts
		result = fmt.Sprintf("nothing: it may run, and is %d behind: tidemark worker run %s", *before.Behind, worker)
	}
	if before.Status == "no source" {
		result = "it reads no table yet: tidemark worker attach " + worker + " SOURCE"
	}
	if closed != nil {
		result = *closed + ": it does not run yet"
	}
	return s.steps(step{
		Step: "see what still holds the worker back", SQL: "select tidemark.closed_gate(" + literal(worker) + ");", Result: result,
	})
}
