package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/packlist"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func activateCommand() cli.Command {
	return runbook("activate", "Check everything, then open the gates of a worker or a pack",
		`Check the installation and, if no check fails, open the worker's gate and the master gate. Each step is printed with
its SQL and what it changed. Routes and the stage stay as they are: routes in dry run deliver nothing. --pack opens the
gates of all workers of a pack, in one transaction.`, activate)
}

func disableCommand() cli.Command {
	return runbook("disable", "Close the gates of a worker or a pack, and show what is left open",
		`Close the worker's gate, which it obeys within a second, and show what it leaves open. The step is printed with its
SQL and what it changed. Other workers, the master gate and the routes stay as they are. Events are still stored, and
the worker reads them once its gate is open again. --pack closes the gates of all workers of a pack, in one
transaction.`, disable)
}

func runbook(use, short, long string, do func(context.Context, *cli.Session, []string) error) cli.Command {
	var pack string
	return cli.Command{
		Use: use + " [WORKER]", Short: short, Long: long, Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Example: "  tidemark " + use + " default --reason 'release 12'",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&pack, "pack", "", "all workers of this `PACK`, instead of one")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if (s.Arg(0) == "") == (pack == "") {
				return cli.Usagef("give one worker, or a pack with --pack")
			}
			if pack == "" {
				return do(ctx, s, s.Args)
			}
			found, err := packlist.Find(pack)
			if err != nil {
				return err
			}
			return do(ctx, s, found.Workers)
		},
	}
}

// step is a step of a runbook that was taken.
type step struct {
	Step    string `json:"step"`
	SQL     string `json:"sql"`
	Changed bool   `json:"changed"`
	Result  string `json:"result"`
}

// show writes steps so that psql can run the output.
func show(s *cli.Session, steps ...step) {
	for _, step := range steps {
		if s.JSON {
			s.Object(step)
			continue
		}
		s.Line("-- %s", step.Step)
		s.Line("%s", step.SQL)
		s.Line("--   %s", step.Result)
	}
}

func activate(ctx context.Context, s *cli.Session, workers []string) error {
	before := map[string]store.Health{}
	for _, worker := range workers {
		health, err := s.WorkerHealthOf(ctx, worker)
		if err != nil {
			return err
		}
		before[worker] = health
	}
	if err := checkBefore(ctx, s); err != nil {
		return err
	}
	for _, worker := range workers {
		if err := showRoutes(ctx, s, worker); err != nil {
			return err
		}
	}
	done, err := cli.InTx(ctx, s, func(db *store.DB) ([]step, error) {
		done, gates, err := setGates(ctx, s, db, append(gatesOf(workers), "routes.enabled"), true)
		if err != nil {
			return nil, err
		}
		for _, worker := range workers {
			if err := cli.TellOutlook(ctx, s, db, worker, ""); err != nil {
				return nil, err
			}
		}
		master := &done[len(done)-1]
		if others := store.OthersOpen(gates, workers); master.Changed && len(others) > 0 {
			master.Result += "; it lets these run too, whose own gate is open: " + strings.Join(others, ", ")
		}
		return done, nil
	})
	if err != nil {
		return err
	}
	show(s, done...)
	for _, worker := range workers {
		if err := showHeld(ctx, s, worker, before[worker]); err != nil {
			return err
		}
	}
	return nil
}

// checkBefore is the first step. If a check fails, it is the last.
func checkBefore(ctx context.Context, s *cli.Session) error {
	checks, err := s.Verify(ctx)
	if err != nil {
		return err
	}
	found := map[string][]string{}
	for _, c := range checks {
		found[c.Status] = append(found[c.Status], c.Check+": "+c.Detail)
	}
	result := fmt.Sprintf("%d checks: %d fail, %d warn", len(checks), len(found["fail"]), len(found["warn"]))
	for _, status := range []string{"fail", "warn"} {
		if len(found[status]) > 0 {
			result += "; " + status + ": " + strings.Join(found[status], "; ")
		}
	}
	show(s, step{Step: "check the installation", SQL: "select * from tidemark.verify();", Result: result})
	if err := cli.Failures(checks); err != nil {
		return cli.Hint(fmt.Errorf("nothing was changed: %w", err), "tidemark verify shows them, with what to do.")
	}
	return nil
}

func showRoutes(ctx context.Context, s *cli.Session, worker string) error {
	routes, err := s.Routes(ctx, store.RouteFilter{Worker: worker})
	if err != nil {
		return err
	}
	states := map[string]int{}
	for _, r := range routes {
		for _, state := range strings.Split(cli.RouteState(r), ", ") {
			states[state]++
		}
	}
	result := fmt.Sprintf("%d live, %d in dry run, %d off", states["live"], states["dry run"], states["off"])
	if states["paused"] > 0 {
		result += fmt.Sprintf(", %d paused", states["paused"])
	}
	show(s, step{
		Step:   "look at the routes of the worker",
		SQL:    "select * from tidemark.outbound_route where worker = " + cli.Literal(worker) + ";",
		Result: result,
	})
	return nil
}

func gatesOf(workers []string) (gates []string) {
	for _, worker := range workers {
		gates = append(gates, store.WorkerGate(worker))
	}
	return gates
}

// setGates sets gates. It returns a step for each, and all gates as they were before.
func setGates(ctx context.Context, s *cli.Session, db *store.DB, gates []string, open bool) (done []step, before []store.Gate, err error) {
	if before, err = db.Gates(ctx); err != nil {
		return nil, nil, err
	}
	was := map[string]bool{}
	for _, g := range before {
		was[g.Gate] = g.Open
	}
	why := "null"
	if s.Reason != "" {
		why = cli.Literal(s.Reason)
	}
	for _, gate := range gates {
		if err := db.GateSet(ctx, gate, open, s.Reason); err != nil {
			return nil, nil, err
		}
		result := cli.Open(was[gate]) + " before, " + cli.Open(open) + " now"
		done = append(done, step{
			Step: "set the gate " + gate, SQL: fmt.Sprintf("select tidemark.gate_set(%s, %t, %s);",
				cli.Literal(gate), open, why),
			Changed: was[gate] != open, Result: cli.Choose(was[gate] == open, "was "+cli.Open(open)+" already", result),
		})
	}
	return done, before, nil
}

// showHeld is the step that says what still holds a worker back.
func showHeld(ctx context.Context, s *cli.Session, worker string, before store.Health) error {
	closed, err := s.ClosedGate(ctx, worker)
	if err != nil {
		return err
	}
	result := "nothing: it may run: tidemark worker run " + worker
	switch {
	case closed != nil:
		result = *closed + ": it does not run yet"
	case before.Status == "no source":
		result = "it reads no table yet: tidemark worker attach " + worker + " SOURCE"
	case before.Behind != nil: // of a table it is not counted
		result = fmt.Sprintf("nothing: it may run, and is %d behind: tidemark worker run %s", *before.Behind, worker)
	}
	show(s, step{
		Step: "see what still holds the worker back",
		SQL:  "select tidemark.closed_gate(" + cli.Literal(worker) + ");", Result: result,
	})
	return nil
}

func disable(ctx context.Context, s *cli.Session, workers []string) error {
	done, err := cli.InTx(ctx, s, func(db *store.DB) ([]step, error) {
		done, _, err := setGates(ctx, s, db, gatesOf(workers), false)
		return done, err
	})
	if err != nil {
		return err
	}
	show(s, done...)
	for _, worker := range workers {
		health, err := s.WorkerHealthOf(ctx, worker)
		if err != nil {
			return err
		}
		behind := ""
		if health.Behind != nil { // of a table it is not counted
			behind = fmt.Sprintf("%d behind, ", *health.Behind)
		}
		show(s, step{
			Step: "see what it leaves open", SQL: "select * from tidemark.worker_health where worker = " + cli.Literal(worker) + ";",
			Result: fmt.Sprintf("%s; %s%d pending, %d open dead letters", cli.WorkerState(health.Status, health.Gate), behind,
				health.Pending, health.OpenDeadLetters),
		})
	}
	return nil
}
