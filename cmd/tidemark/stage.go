package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newStage(a *app) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin (to look: tidemark_reader)", &cobra.Command{
		Use:   "stage [dry_run|live]",
		Short: "Show or set the stage: only a live installation delivers",
		Long: `Show or set the stage. In dry_run no route can be enabled and live. live is bound to this cluster and
database: a copy that is restored elsewhere is disarmed, it can dry-run and it cannot deliver.`,
		ValidArgs: []string{"dry_run", "live"},
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			if len(args) == 1 {
				if args[0] != "dry_run" && args[0] != "live" {
					return usagef("stage %q is neither dry_run nor live", args[0])
				}
				if err := needReason(reason); err != nil {
					return err
				}
				err := s.inTx(ctx, func(db *store.DB) error {
					if err := db.StageSet(ctx, args[0], reason); err != nil || args[0] != "live" {
						return err
					}
					return tellOutlooks(ctx, s, db, "routes.enabled")
				})
				if err != nil {
					return err
				}
			}
			stage, err := s.Stage(ctx)
			if err != nil {
				return err
			}
			return showStage(s, stage)
		}),
	})
	reasonFlag(cmd, &reason)
	return cmd
}

func showStage(s *session, stage store.Stage) error {
	if s.json {
		return s.object(stage)
	}
	return s.facts(
		fact{"stage", stageText(stage)}, fact{"since", utc(stage.ChangedAt) + ", " + s.age(stage.ChangedAt)},
		fact{"by", stage.ChangedBy}, fact{"reason", stage.Reason})
}

func stageText(stage store.Stage) string {
	switch {
	case stage.Stage == "live" && !stage.Armed:
		return "live, but disarmed: it was made live as database " + text(stage.Database) + ", and this is another database or cluster"
	case stage.Stage == "live":
		return "live"
	default:
		return "dry_run: nothing is delivered"
	}
}
