package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func commandErase() cli.Command {
	e := store.CommandsErase{}
	var before cli.Time
	return cli.Command{
		Use: "erase SERVICE", Short: "Erase what is kept of commands, such as those of a tenant; that they ran stays", Role: "tidemark_admin", Reason: cli.NeedsReason,
		Long: `Erase what is kept of a service's commands: those of a tenant, of an idempotency key, those older than a time, or what fits all that
is given. Results and raw records become {"erased": TIME}; keys, states and times stay, so nothing runs twice. Dead letters lose payload and
error text, and open ones are discarded. Parked commands are left and counted. Results and dead letters in the log are events:
tidemark event erase commands.`,
		Example: "  tidemark command erase billing --tenant acme --reason 'request 2026-114'",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&e.Tenant, "tenant", "", "only commands of this tenant")
			flags.StringVar(&e.Key, "key", "", "only the command with this idempotency key")
			cli.TimeFlag(flags, &before, "before", "", "only commands that came to their state before")
			flags.BoolVar(&e.DryRun, "dry-run", false, "only count")
		},
		Run: func(ctx context.Context, s *cli.Session) (err error) {
			if e.Before, err = before.At(s.Now); err != nil {
				return err
			}
			e.Service, e.Reason = s.Arg(0), s.Reason
			all, err := s.CommandsErase(ctx, e)
			if err != nil {
				return err
			}
			if all.Waiting > 0 {
				s.Note("%s left, still parked: tidemark command list --state failed_retryable", cli.Count(int(all.Waiting), "command"))
			}
			return s.Result(all, "%s, %s and %s %serased", cli.Count(int(all.Claims), "result"), cli.Count(int(all.Records), "record"),
				cli.Count(int(all.DeadLetters), "dead letter"), cli.Choose(e.DryRun, "would be ", ""))
		},
	}
}
