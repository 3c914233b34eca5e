// Command bench measures Tidemark and its peers side by side, on one server, interleaved.
//
// Method, contestants and results are described in README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"
)

type options struct {
	workload string
	events   int
	rows     int
	rounds   int
	only     string
	url      string
	duration time.Duration
	pgque    string
	results  string
	profiles string
	check    bool // few items, one round, no figures
	stock    bool // a private server with PostgreSQL's defaults alone
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == moverCommand {
		runMover(os.Args[2:])
		return
	}
	var o options
	flag.StringVar(&o.workload, "w", "1", "workload: 1 to 7, all (of these), or kafka")
	flag.IntVar(&o.events, "events", 1_000_000, "events in the backlog of workload 1, and in the largest one of workload 7")
	flag.IntVar(&o.rows, "rows", 1_037_724, "rows of the table of workload 3")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; each runs every contestant once")
	flag.StringVar(&o.only, "only", "", "names of contestants, separated by semicolons; * matches any text (default all)")
	flag.StringVar(&o.url, "url", "", "server to use; its database tidemark_bench is dropped (default: a private cluster)")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "length of one run of workloads 2 and 4")
	flag.StringVar(&o.pgque, "pgque", "", "PgQue's installation script (default: the pgq extension, where it is installed)")
	flag.StringVar(&o.results, "results", "results", "folder for the report; empty, or with -only, none is written")
	flag.StringVar(&o.profiles, "profiles", "", "folder for a CPU profile of each run; they slow it down (default: none)")
	flag.BoolVar(&o.check, "check", false, "run each contestant once with few items and check its result; no figures")
	report := flag.String("chart", "", "a report in results: print its speeds as a picture (SVG) and measure nothing")
	flag.Parse()
	if *report != "" {
		if err := chart(os.Stdout, *report); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if o.check {
		o.small()
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// small makes runs as short as their checks allow. The sizes that are no options are scaled by env.
func (o *options) small() {
	o.events, o.rows, o.rounds, o.duration = 20_000, 5_000, 1, 300*time.Millisecond
}

// errWrong says that a contestant's result was not what it should be.
var errWrong = errors.New("at least one contestant gave a wrong result")

func run(ctx context.Context, o options) error {
	chosen, err := choose(o.workload)
	if err != nil {
		return err
	}
	if o.check {
		return checkAll(ctx, o, chosen)
	}
	var failures []error
	for _, w := range chosen {
		failures = append(failures, runWorkload(ctx, o, w))
	}
	return errors.Join(failures...)
}

// checkAll says of each contestant whether its result is right. All share a database: most of the time of short runs would go into
// making one for each workload.
func checkAll(ctx context.Context, o options, chosen []workload) error {
	e, err := newEnv(ctx, o)
	if err != nil {
		return err
	}
	defer e.close()
	var failures []error
	for _, w := range chosen {
		r, err := measured(ctx, e, w)
		if err != nil {
			return err
		}
		r.verdicts()
		if r.wrong() {
			failures = append(failures, fmt.Errorf("W%s: %w", w.number, errWrong))
		}
	}
	return errors.Join(failures...)
}

// measured runs the chosen contestants of a workload.
func measured(ctx context.Context, e *env, w workload) (report, error) {
	contestants, err := pick(w.contestants(e), e.only)
	if err != nil {
		return report{}, err
	}
	results, err := measureAll(ctx, e, contestants, e.rounds)
	return report{env: e, workload: w, results: results}, err
}

// runWorkload measures one workload in a database of its own.
func runWorkload(ctx context.Context, o options, w workload) error {
	e, err := newEnv(ctx, o)
	if err != nil {
		return err
	}
	defer e.close()

	r, err := measured(ctx, e, w)
	if err != nil {
		return err
	}
	if err := r.publish(o.results); err != nil {
		return err
	}
	if r.wrong() {
		return errWrong
	}
	return nil
}

// pick keeps the contestants that match one of the patterns.
func pick(all []contestant, patterns string) ([]contestant, error) {
	if patterns == "" {
		return all, nil
	}
	var picked []contestant
	for _, c := range all {
		for pattern := range strings.SplitSeq(patterns, ";") {
			// A slash is nothing special in a name.
			ok, err := path.Match(strings.ReplaceAll(pattern, "/", "|"), strings.ReplaceAll(c.Name(), "/", "|"))
			if err != nil {
				return nil, fmt.Errorf("-only %q: %w", pattern, err)
			}
			if ok {
				picked = append(picked, c)
				break
			}
		}
	}
	return picked, nil
}
