package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newDisable(a *app) *cobra.Command {
	var reason, pack string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "disable [WORKER]",
		Short: "Runbook: close a worker's gate, or those of a pack, and see what is left open",
		Long: `Close the worker's gate, which it obeys within a second, and tell what it leaves open. The step is
printed with its SQL and what it changed. Other workers, the master gate and the routes stay as they are;
events go on being stored, and the worker finds them when its gate is opened again. With --pack the gates
of all workers that the pack brings, in one transaction.`,
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			workers, err := workersOf(args, pack)
			if err != nil {
				return err
			}
			return disable(ctx, s, workers, reason)
		}),
	})
	reasonFlag(cmd, &reason)
	packFlag(cmd, &pack)
	return cmd
}

func disable(ctx context.Context, s *session, workers []string, reason string) error {
	var done []step
	err := s.inTx(ctx, func(db *store.DB) error {
		var err error
		done, _, err = setGates(ctx, db, workerGates(workers), false, reason)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.steps(done...); err != nil {
		return err
	}
	for _, worker := range workers {
		if err := showLeft(ctx, s, worker); err != nil {
			return err
		}
	}
	return nil
}

// showLeft is the step that tells what a closed worker leaves open.
func showLeft(ctx context.Context, s *session, worker string) error {
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
