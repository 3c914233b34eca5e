package main

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func stageCommand() cli.Command {
	return cli.Command{
		Use: "stage [dry_run|live]", Short: "Show or set the stage: only a live installation delivers",
		Role: "tidemark_admin (to look: tidemark_reader)", Reason: cli.MayGiveReason,
		Long: `Show or set the stage. In dry_run no route can be both enabled and live. live is bound to this cluster and
database: a copy that is restored elsewhere is disarmed, so it can dry-run and cannot deliver.`,
		Example: "  tidemark stage live --reason 'go-live'",
		Run: func(ctx context.Context, s *cli.Session) error {
			if stage := s.Arg(0); stage != "" {
				if err := s.NeedReason(); err != nil {
					return err
				}
				_, err := cli.InTx(ctx, s, func(db *store.DB) (any, error) {
					if err := db.StageSet(ctx, stage, s.Reason); err != nil || stage != "live" {
						return nil, err
					}
					return nil, cli.TellOutlooks(ctx, s, db, "routes.enabled")
				})
				if err != nil {
					return err
				}
			}
			stage, err := s.Stage(ctx)
			if err != nil {
				return err
			}
			return s.Show(stage, "stage", cli.StageText(stage), "since", s.At(stage.ChangedAt), "by", stage.ChangedBy,
				"reason", stage.Reason)
		},
	}
}
