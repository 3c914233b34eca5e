package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
)

const (
	watchEvery = 500 * time.Millisecond
	// Numbers are not given in the order of commits: so many numbers before the newest are read again for those that come late.
	lateNumbers = 1000
)

func commandWatch() cli.Command {
	var service string
	var since cli.Time
	return cli.Command{
		Use: "watch", Short: "Follow the results of commands as they come, until interrupted", Role: "tidemark_executor",
		Long: `Follow the results of commands as they are committed, one line each, until interrupted; with -o json the result documents. What
was run dry has no result, nor has a record that is only a dead letter.`,
		Example: "  tidemark command watch --service billing\n  tidemark command watch --since 1h -o json",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&service, "service", "", "only of this service")
			cli.TimeFlag(flags, &since, "since", "", "begin with results of this time or later")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			from, err := since.At(s.Now)
			if err != nil {
				return err
			}
			if service != "" {
				if _, err := s.Service(ctx, service); err != nil {
					return err
				}
			}
			first, err := s.CommandResultsFrom(ctx, from)
			if err != nil {
				return err
			}
			if err = watchResults(ctx, s, service, first); ctx.Err() != nil {
				return nil // interrupted
			}
			return err
		},
	}
}

func watchResults(ctx context.Context, s *cli.Session, service string, first int64) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	seen := map[int64]bool{}
	for top := first; ; {
		after := max(first, top-lateNumbers)
		for seq := range seen {
			if seq <= after {
				delete(seen, seq)
			}
		}
		all, err := s.CommandResults(ctx, service, after, 2*lateNumbers)
		if err != nil {
			return err
		}
		fresh := 0
		for _, r := range all {
			if seen[r.Seq] {
				continue
			}
			seen[r.Seq] = true
			top = max(top, r.Seq)
			fresh++
			if err := printResult(s, r.Document); err != nil {
				return err
			}
		}
		if fresh > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func printResult(s *cli.Session, document json.RawMessage) error {
	var d struct {
		Service, Command, Status string
		Version                  int       `json:"command_version"`
		Key                      string    `json:"idempotency_key"`
		Code                     string    `json:"error_code"`
		Message                  string    `json:"error_message"`
		At                       time.Time `json:"processed_at"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return fmt.Errorf("a result cannot be read: %w", err)
	}
	text := fmt.Sprintf("%s  %-16s  %s.%s/v%d  %s", cli.Cell(d.At), d.Status, d.Service, d.Command, d.Version, d.Key)
	for _, more := range []string{d.Code, d.Message} {
		if more != "" {
			text += "  " + more
		}
	}
	return s.Result(document, "%s", text)
}
