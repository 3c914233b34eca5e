package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/postgres"
)

func newDisable(a *app) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "disable WORKER",
		Short: "Runbook: close a worker's gate and see what it leaves open",
		Long: `Close the worker's gate, which it obeys within a second, and tell what it leaves open. The step is
printed with its SQL and what it changed. Other workers, the master gate and the routes stay as they are;
events go on being stored, and the worker finds them when its gate is opened again.`,
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			return disable(ctx, s, args[0], reason)
		}),
	})
	reasonFlag(cmd, &reason)
	return cmd
}

func disable(ctx context.Context, s *session, worker, reason string) error {
	gate := workerGate(worker)
	var was bool
	err := s.inTx(ctx, func(db *postgres.DB) error {
		gates, err := db.Gates(ctx)
		if err != nil {
			return err
		}
		for _, g := range gates {
			was = was || g.Gate == gate && g.Open
		}
		return db.GateSet(ctx, gate, false, reason)
	})
	if err != nil {
		return err
	}
	if err := s.steps(gateStep(gate, was, false, reason)); err != nil {
		return err
	}
	health, err := s.WorkerHealthOf(ctx, worker)
	if err != nil {
		return err
	}
	behind := ""
	if health.Behind != nil { // not of a table, where nobody counts
		behind = fmt.Sprintf("%d behind, ", *health.Behind)
	}
	return s.steps(step{
		Step:   "see what it leaves open",
		SQL:    "select * from tidemark.worker_health where worker = " + literal(worker) + ";",
		Result: fmt.Sprintf("%s; %s%d pending, %d open dead letters", workerStatus(health), behind, health.Pending, health.OpenDeadLetters),
	})
}
