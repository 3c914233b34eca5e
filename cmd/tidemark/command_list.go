package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

var claimStates = []string{"processed", "failed_retryable", "failed_terminal"}

func commandList() cli.Command {
	var f store.ClaimFilter
	var limit int
	return cli.Command{
		Use: "list", Short: "List the commands that were asked for, newest first, without their results", Role: "tidemark_reader",
		Example: "  tidemark command list --service billing --state failed_terminal",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.Service, "service", "", "only of this service")
			flags.StringVar(&f.State, "state", "", "only in this state: "+strings.Join(claimStates, ", "))
			cli.Limit(flags, &limit, 20)
		},
		Complete: map[string]func(*pflag.FlagSet) []cobra.Completion{
			"state": func(*pflag.FlagSet) []cobra.Completion { return claimStates },
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if f.State != "" && !slices.Contains(claimStates, f.State) {
				return cli.Usagef("--state is %q, must be one of %s", f.State, strings.Join(claimStates, ", "))
			}
			all, more, err := cli.Page(limit, func(limit int) ([]store.CommandClaim, error) {
				f.Limit = limit
				return s.CommandClaims(ctx, f)
			})
			if err != nil {
				return err
			}
			if more {
				defer s.Note("there are more: --limit 0 shows all")
			}
			return cli.Table(s.Printer, "no commands", all, "STATE|COMMAND|KEY|WHEN|PRODUCER|VIA|ATTEMPTS|ERROR", func(c store.CommandClaim) cli.Row {
				return cli.Row{c.State, claimed(c), c.IdempotencyKey, s.Age(c.ProcessedAt), c.Producer, c.Via, c.Attempts, c.ErrorCode}
			})
		},
	}
}

func claimed(c store.CommandClaim) string {
	return fmt.Sprintf("%s.%s/v%d", c.Service, c.Command, c.Version)
}

func commandShow() cli.Command {
	var service string
	return cli.Command{
		Use: "show EVENT_ID|KEY", Short: "Show a command that was asked for, by its event_id or idempotency key, and what became of it",
		Role: "tidemark_reader", Example: "  tidemark command show inv-7",
		CheckArgs: checkClaim,
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&service, "service", "", "of this service, if several have the key")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			claim, err := oneClaim(ctx, s, service)
			if err != nil {
				return err
			}
			c, err := s.ClaimDetails(ctx, claim)
			if err != nil {
				return err
			}
			result := cli.Choose(c.Hidden, "hidden from this role", string(c.Result))
			return s.Show(c, "command", claimed(c.CommandClaim), "state", c.State, "idempotency key", c.IdempotencyKey, "event id", c.EventID,
				"producer", c.Producer, "via", c.Via, "tenant", c.Tenant, "topic id", c.Topic, "partition", c.Partition, "offset", c.Offset,
				"error", c.ErrorCode, "message", c.ErrorMessage, "result", result, "envelope", string(c.Envelope), "attempts", c.Attempts, "trace", c.Trace, "next attempt", c.NextAttemptAt,
				"processed", s.At(c.ProcessedAt), "kept until", c.ExpiresAt)
		},
	}
}

func commandDiscard() cli.Command {
	var service string
	return cli.Command{
		Use: "discard EVENT_ID|KEY", Short: "Give up a parked command: it is failed_terminal, with a dead letter", Role: "tidemark_admin",
		Reason: cli.NeedsReason, CheckArgs: checkClaim,
		Long: `Give up a parked command, by its event_id or idempotency key: it is failed_terminal, with a result and a dead letter, and the
next command of its ordering key is due.`,
		Example: "  tidemark command discard inv-7 --reason 'the customer has paid otherwise'",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&service, "service", "", "of this service, if several have the key")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			c, err := oneClaim(ctx, s, service)
			if err != nil {
				return err
			}
			document, err := cli.InTx(ctx, s, func(db *store.DB) (json.RawMessage, error) {
				return db.CommandDiscard(ctx, c.Service, c.IdempotencyKey, s.Reason)
			})
			if err != nil {
				return err
			}
			return s.Result(document, "command %s of %s: given up; the next of its ordering key is due", c.IdempotencyKey, claimed(c))
		},
	}
}

func checkClaim(path string, args []string, _ int) error {
	if len(args) != 1 {
		return fmt.Errorf("%q needs one EVENT_ID or KEY", path)
	}
	return nil
}

// oneClaim is the claim that the argument names.
func oneClaim(ctx context.Context, s *cli.Session, service string) (c store.CommandClaim, err error) {
	all, err := s.CommandClaimsOf(ctx, s.Arg(0))
	if err != nil {
		return c, err
	}
	all = slices.DeleteFunc(all, func(c store.CommandClaim) bool { return service != "" && c.Service != service })
	switch {
	case len(all) == 0:
		return c, cli.Hint(fmt.Errorf("no command has the event_id or idempotency key %q", s.Arg(0)),
			"It was never asked for, was rejected, or has left by retention: tidemark command list")
	case len(all) > 1:
		return c, cli.Usagef("%d services have it, such as %s and %s: give --service", len(all), all[0].Service, all[1].Service)
	}
	return all[0], nil
}
