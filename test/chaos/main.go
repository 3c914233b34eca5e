// Command chaos runs Tidemark on a private PostgreSQL under faults of every kind, and has a checker that knows
// nothing of Tidemark's tables judge what came of it. See docs/reliability.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// seeds is how many runs a mutant may take to be caught.
const seeds = 5

func main() {
	sweepOld()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go followParent(ctx, stop)
	ok, err := judge(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// followParent ends the run when its parent process (`go run`, a shell) is gone.
func followParent(ctx context.Context, stop func()) {
	for parent := os.Getppid(); trial.Wait(ctx, time.Second) == nil; {
		if os.Getppid() != parent {
			stop()
		}
	}
}

func judge(ctx context.Context, args []string) (ok bool, err error) {
	o := options{out: os.Stdout}
	var bug, list, only, without string
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.DurationVar(&o.duration, "d", 3*time.Minute, "how long there are faults; setting up and coming to rest take a minute more")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of the faults; 0: a new one, which is printed")
	flags.StringVar(&bug, "bug", "", "a mutant, which must be caught in at most 5 seeds")
	flags.StringVar(&list, "mutants", "", "mutants to run one after the other: all, or names with commas")
	flags.StringVar(&only, "faults", "", "the faults to inject, with commas; default: all")
	flags.StringVar(&without, "without", "", "the faults not to inject, with commas")
	flags.Float64Var(&o.pause, "pause", 0.003, "share of the daemons' steps that pause for 1.2 to 3 s")
	flags.IntVar(&o.backlog, "backlog", 15000, "events that a receiver may be behind before the producers wait")
	flags.BoolVar(&o.verbose, "v", false, "print each fault")
	flags.BoolVar(&o.keep, "keep", false, "keep the daemons' logs and configuration")
	flags.StringVar(&o.pg, "pg", "", "directory of PostgreSQL's programs; default: PG_BIN, or what is installed")
	flags.StringVar(&o.path, "path", byDaemon, "who runs the workers, and how: "+strings.Join(paths, ", "))
	flags.StringVar(&o.tables, "tables", "", "tables that workers read: on, off; default: on in the runs whose seed is even")
	flags.StringVar(&o.commands, "commands", "", "commands from Kafka: on, off; default: on, but in mutants of something else")
	flags.StringVar(&o.shards, "shards", "", "shards of the worker of the log, whose number changes: on, off; default: on in the runs whose seed 3 divides")
	flags.StringVar(&o.broker, "broker", fakeKafka, "where commands come from: fake, or kafka, which needs KAFKA_JARS")
	flags.StringVar(&o.binary, "binary", "", "daemon to run instead of one that is built; with -tags failpoints")
	if err := flags.Parse(args); err != nil {
		return errors.Is(err, flag.ErrHelp), nil //nolint:nilerr // the flag set has said it
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000)
	}
	switches := []string{"", "on", "off"}
	if !slices.Contains(paths, o.path) || !slices.Contains(switches, o.tables) || !slices.Contains(switches, o.commands) || !slices.Contains(switches, o.shards) ||
		!slices.Contains([]string{fakeKafka, realKafka}, o.broker) {
		return false, fmt.Errorf("-path is one of %s, -tables, -commands and -shards are on or off, -broker is fake or kafka", strings.Join(paths, ", "))
	}
	if o.list, err = chosenFaults(only, without); err != nil {
		return false, err
	}
	if bug != "" {
		list = bug
	}
	if list != "" {
		return judgeMutants(ctx, o, list)
	}
	fmt.Fprintln(o.out, o.title())
	r, err := run(ctx, o)
	if err != nil {
		return false, err
	}
	r.print(o.out)
	return len(r.found) == 0, nil
}

// judgeMutants reports whether all of them are caught.
func judgeMutants(ctx context.Context, o options, list string) (ok bool, err error) {
	chosen, err := chosenMutants(list)
	if err != nil {
		return false, err
	}
	if o.binary == "" {
		dir, err := os.MkdirTemp("", fmt.Sprintf("tidemark-chaos-%d-", os.Getpid()))
		if err != nil {
			return false, err
		}
		defer os.RemoveAll(dir)
		if o.binary, err = build(ctx, dir); err != nil {
			return false, err
		}
	}
	ok = true
	table := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "mutant\tseeds\tcaught by\twhat is left out")
	for _, m := range chosen {
		tried, by, err := hunt(ctx, o, m)
		if err != nil {
			return false, errors.Join(fmt.Errorf("mutant %s: %w", m.name, err), table.Flush())
		}
		if by == "" {
			ok, by = false, "NOTHING"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.name, tried, by, m.tells)
	}
	return ok, table.Flush()
}

// hunt runs a mutant until it is caught.
func hunt(ctx context.Context, o options, m mutant) (tried, by string, err error) {
	o.mutant = m
	o.backlog = min(o.backlog, 2500) // to come to rest sooner
	for range seeds {
		fmt.Fprintf(o.out, "mutant %s, seed %d\n", m.name, o.seed)
		r, err := run(ctx, o)
		if err != nil {
			return "", "", err
		}
		r.print(o.out)
		tried = strings.TrimSpace(fmt.Sprintf("%s %d", tried, o.seed))
		if m.noticed(r.found) {
			return tried, r.rules(), nil
		}
		o.seed++
	}
	return tried, "", nil
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
