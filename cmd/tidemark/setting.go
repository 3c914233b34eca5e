package main

import (
	"context"
	"slices"
	"strings"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func settingCommand() cli.Command {
	return cli.Command{
		Use: "setting", Short: "Settings of the installation: retention, limits, thresholds",
		Example: "  tidemark setting set outbox.retention '14 days' --reason 'the disk'",
		Sub: []cli.Command{
			{
				Use: "list", Short: "List settings and what they mean; gates are in gate list", Role: "tidemark_reader",
				Run: func(ctx context.Context, s *cli.Session) error {
					all, err := settings(ctx, s)
					if err != nil {
						return err
					}
					return cli.Table(s.Printer, "no settings", all, "SETTING|VALUE|DESCRIPTION", func(c store.Setting) cli.Row {
						return cli.Row{c.Key, c.Value, c.Description}
					})
				},
			},
			{
				Use: "get SETTING", Short: "Print the value of a setting", Role: "tidemark_reader",
				Run: func(ctx context.Context, s *cli.Session) error {
					all, err := settings(ctx, s)
					if err != nil {
						return err
					}
					i := slices.IndexFunc(all, func(c store.Setting) bool { return c.Key == s.Arg(0) })
					if i < 0 {
						return &tidemark.Error{Code: "TM004", Message: `there is no setting "` + s.Arg(0) + `"`, Hint: "Settings: tidemark setting list"}
					}
					return s.Result(all[i], "%s", all[i].Value)
				},
			},
			{
				Use: "set SETTING VALUE", Short: "Change a setting", Role: "tidemark_admin", Reason: cli.MayGiveReason,
				Run: func(ctx context.Context, s *cli.Session) error {
					is, err := s.SettingSet(ctx, s.Arg(0), s.Arg(1), s.Reason)
					if err != nil {
						return err
					}
					return s.Result(is, "%s: %s", is.Key, is.Value)
				},
			},
		},
	}
}

// settings are all but the gates.
func settings(ctx context.Context, s *cli.Session) ([]store.Setting, error) {
	all, err := s.Settings(ctx)
	return slices.DeleteFunc(all, func(c store.Setting) bool { return strings.HasSuffix(c.Key, "enabled") }), err
}
