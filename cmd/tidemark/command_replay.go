package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// recordsAtOnce is how many records a transaction replays.
const recordsAtOnce = 50

type commandReplayFlags struct {
	file, topic, rate string
	since             cli.Time
	from              int64
	ask               store.CommandReplayAsk
}

func commandReplay() cli.Command {
	var f commandReplayFlags
	return cli.Command{
		Use: "replay", Short: "Run commands again: dry runs, failures, and what a topic still has", Role: "tidemark_admin", Needs: cli.Nothing,
		Reason: cli.MayGiveReason,
		Long: `Run commands of a service again. What was processed never runs again. A command that was run dry or rejected runs, as its
contract and allowlist are now. One that is failed_terminal runs only with --failed, as a new attempt under the same claim. One
that is parked is due.

It takes the records of open dead letters and dry runs that the database keeps; with --from-offset or --topic those that the
topic still has, by the daemon's configuration, up to where the daemon is. It reads beside the consumer group, and moves no
cursor. What runs is parked behind the others of its ordering key, and runs like every parked command: in order, with the gates
open. --dry-run counts, and changes nothing.

OUTCOME: runs, runs_again (--failed), parked (it was, and is due now), processed or failed_terminal (left as it is), key_reused
(another command has its key), not_live (the command is off or in dry run), schema_changed (since its record was kept: replay it
from the topic), or the reason code for which it is refused.`,
		Example: "  tidemark command replay --service billing --failed --code sql.constraint --dry-run\n" +
			"  tidemark command replay --service billing --from-offset 1200 --reason 'table was missing'",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.ask.Service, "service", "", "whose commands (required)")
			cli.TimeFlag(flags, &f.since, "since", "", "only records that failed or were run dry, or of the topic, at this time or later")
			flags.StringVar(&f.ask.Code, "code", "", "only commands that failed with this reason code, such as sql.constraint")
			flags.BoolVar(&f.ask.Failed, "failed", false, "those that are failed_terminal, too")
			flags.Int64Var(&f.from, "from-offset", 0, "read the topic, each partition from this offset on")
			flags.StringVar(&f.topic, "topic", "", "read this topic; default with --from-offset: that of the service")
			flags.StringVar(&f.rate, "rate", "100/s", "at most this many records a second")
			flags.BoolVar(&f.ask.DryRun, "dry-run", false, "count, and change nothing")
			cli.ConfigFlag(flags, &f.file)
		},
		Run: func(ctx context.Context, s *cli.Session) (err error) {
			topic := s.Given("from-offset", "topic")
			switch {
			case f.ask.Service == "":
				return cli.Usagef("--service is required")
			case topic && f.ask.Code != "":
				return cli.Usagef("--code chooses among the records that the database keeps, not those of a topic")
			case f.from < 0:
				return cli.Usagef("--from-offset must not be negative")
			}
			if f.ask.Reason = s.Reason; !f.ask.DryRun {
				if err := s.NeedReason(); err != nil {
					return err
				}
			}
			if f.ask.Since, err = f.since.At(s.Now); err != nil {
				return err
			}
			pace, err := paceOf(f.rate, f.ask.DryRun)
			if err != nil {
				return err
			}
			var c config.Config
			if topic {
				if c, err = s.LoadConfig(f.file); err != nil {
					return err
				}
			}
			if err := s.OpenAt(ctx, c); err != nil {
				return err
			}
			outcomes := map[string]int64{}
			if topic {
				err = replayTopic(ctx, s, c, f, pace, outcomes)
			} else {
				err = replayRecords(ctx, s, f, pace, outcomes)
			}
			if len(outcomes) > 0 || err == nil {
				err = cmp.Or(err, printOutcomes(s, f, outcomes))
			}
			return err
		},
	}
}

// paceOf waits after records, so that there are so many a second.
func paceOf(rate string, dry bool) (func(ctx context.Context, records int64), error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(rate, "/s"), 64)
	if err != nil || n <= 0 {
		return nil, cli.Usagef("--rate %q is not a number of records a second, such as 50/s", rate)
	}
	return func(ctx context.Context, records int64) {
		if dry {
			return
		}
		select {
		case <-time.After(time.Duration(float64(records) / n * float64(time.Second))):
		case <-ctx.Done():
		}
	}, nil
}

func add(outcomes, more map[string]int64) (n int64) {
	for outcome, count := range more {
		outcomes[outcome] += count
		n += count
	}
	return n
}

func replayRecords(ctx context.Context, s *cli.Session, f commandReplayFlags, pace func(context.Context, int64), outcomes map[string]int64) error {
	for after := int64(0); ; {
		last, more, err := s.CommandReplay(ctx, f.ask, recordsAtOnce, after)
		if err != nil {
			return err
		}
		n := add(outcomes, more)
		if last == nil {
			return nil
		}
		after = *last
		pace(ctx, n)
	}
}

func replayTopic(ctx context.Context, s *cli.Session, c config.Config, f commandReplayFlags, pace func(context.Context, int64), outcomes map[string]int64) error {
	if err := cli.NeedBrokers(c); err != nil {
		return err
	}
	registry, err := daemon.Registry(c)
	if err != nil {
		return err
	}
	err = consumer.Replay{
		Client: func(more ...kgo.Opt) (*kgo.Client, error) {
			return daemon.KafkaClient(c, c.Commands.Connection, more...)
		},
		Topics: c.Commands.Topics, Cluster: c.Commands.ClusterName(), Registry: registry,
		Topic: cmp.Or(f.topic, c.Commands.OwnTopic(f.ask.Service), c.Commands.SharedTopic()), From: f.from, Since: f.ask.Since, Batch: recordsAtOnce,
		Handle: func(ctx context.Context, calls []json.RawMessage) error {
			more, err := s.CommandReplayTopic(ctx, f.ask, calls)
			if err == nil {
				add(outcomes, more)
				pace(ctx, int64(len(calls)))
			}
			return err
		},
	}.Run(ctx, s.DB)
	if broker := (consumer.BrokerError{}); errors.As(err, &broker) {
		return cli.Hint(err, "Check connections."+c.Commands.Connection+" of the configuration.")
	}
	return err
}

// counted is the JSON of an outcome.
type counted struct {
	Outcome  string `json:"outcome"`
	Commands int64  `json:"commands"`
}

func printOutcomes(s *cli.Session, f commandReplayFlags, outcomes map[string]int64) error {
	var all []counted
	for _, outcome := range slices.Sorted(maps.Keys(outcomes)) {
		all = append(all, counted{outcome, outcomes[outcome]})
	}
	if n := outcomes["runs"] + outcomes["runs_again"] + outcomes["parked"]; n > 0 && !f.ask.DryRun {
		defer s.Note("%s due: they run one after the other, and tidemark command watch --service %s shows it", cli.Count(n, "command is", "commands are"), f.ask.Service)
	}
	if n := outcomes["failed_terminal"]; n > 0 && !f.ask.Failed && !s.JSON {
		defer s.Hint("%s failed_terminal: --failed runs them again.", cli.Count(int(n), "command is", "commands are"))
	}
	return cli.Table(s.Printer, "no commands to replay", all, "OUTCOME|COMMANDS", func(c counted) cli.Row { return cli.Row{c.Outcome, c.Commands} })
}
