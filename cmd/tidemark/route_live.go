package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// goingLive is a route that goes live: what stands in the way, what it sends then, and what its target answered.
type goingLive struct {
	RouteCode string          `json:"route_code"`
	Switches  []store.Switch  `json:"switches"` // as they were before
	Outlook   []store.Outlook `json:"outlook"`  // of its worker
	Missed    []store.Missed  `json:"missed"`   // recorded while it was off or in dry run: they are not sent
	Test      *tested         `json:"test"`     // null: none was sent
	Live      bool            `json:"live"`
}

func routeGoLive() cli.Command {
	var file string
	var yes bool
	return cli.Command{
		Use: "go-live ROUTE", Short: "Open all that keeps a route from delivering, in one step", Role: "tidemark_admin",
		Reason: cli.NeedsReason, Needs: cli.Nothing,
		Long: `Show all that stands between the events of a route and its target: the stage, the master gate, the worker's gate,
the route's switch and its dry run, and a closed gate of its domain or a paused worker. Show what has waited and is sent
then, and ask. The answer yes opens all of it in one transaction, with the reason for the audit.

Before that transaction commits, one test delivery is sent to the target (tidemark route test): if the target does not
accept it, nothing is changed. A target inside the database is always tested; one outside only with the daemon's
configuration (--config), which has the secrets; a handler of a Go program never.

Events that the worker has read already, while the route was off or in dry run, are not sent: it says how many, and the
tidemark route replay that sends them.

Exit status: 0 the route is live, 1 nothing was changed, 5 the database refused it.`,
		Example: "  tidemark route go-live billing --config tidemark.yaml --reason 'release 12'",
		Flags: func(flags *pflag.FlagSet) {
			cli.ConfigFlag(flags, &file)
			flags.BoolVar(&yes, "yes", false, "do not ask")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			c, err := s.LoadConfig(file)
			if err != nil {
				return err
			}
			if err := s.OpenAt(ctx, c); err != nil {
				return err
			}
			plan, err := planLive(ctx, s, s.Arg(0))
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(plan.Switches, func(w store.Switch) bool { return !w.Open }) {
				plan.Live = true
				return s.Result(plan, "route %s is live already", plan.RouteCode)
			}
			if !yes && !agreed(s) {
				return cli.ExitWith(cli.StatusFailed, cli.Hint(errors.New("nothing was changed"), "type yes to go live, or give --yes"))
			}
			err = openAll(ctx, s, c, cli.ConfigFile(file) != "", &plan)
			if s.JSON {
				s.Object(plan)
				return err
			}
			if plan.Test != nil {
				s.Line("test delivery: %s", strings.TrimRight(plan.Test.Outcome+" "+plan.Test.ErrorCode+" "+plan.Test.Detail, " "))
			}
			if err == nil {
				s.Line("route %s is live", plan.RouteCode)
			}
			return err
		},
	}
}

// planLive shows what stands in the way, and what is sent once that is open: it opens it and takes that back.
func planLive(ctx context.Context, s *cli.Session, code string) (goingLive, error) {
	return cli.InTx(ctx, s, func(db *store.DB) (plan goingLive, err error) {
		plan.RouteCode = code
		if plan.Switches, err = db.RouteSwitches(ctx, code, s.Reason); err != nil {
			return plan, err
		}
		if !s.JSON {
			if err := showSwitches(s, plan.Switches); err != nil {
				return plan, err
			}
		}
		route, err := db.Route(ctx, code)
		if err != nil {
			return plan, err
		}
		gates, err := db.Gates(ctx)
		if err != nil {
			return plan, err
		}
		if err := db.RouteGoLive(ctx, code, s.Reason); err != nil {
			return plan, err
		}
		others := store.OthersOpen(gates, []string{route.Worker})
		if master := plan.Switches[slices.IndexFunc(plan.Switches, isMaster)]; !master.Open && len(others) > 0 {
			s.Note("the master gate lets these run too, whose own gate is open: %s", strings.Join(others, ", "))
		}
		if plan.Outlook, err = db.WorkerOutlook(ctx, route.Worker); err != nil {
			return plan, err
		}
		if plan.Missed, err = db.RouteMissed(ctx, code); err != nil {
			return plan, err
		}
		if err := cli.TellOutlook(ctx, s, db, route.Worker, ""); err != nil {
			return plan, err
		}
		cli.TellMissed(s, code, plan.Missed)
		return plan, cli.ErrRollback
	})
}

func isMaster(w store.Switch) bool { return w.Switch == "gate routes.enabled" }

func showSwitches(s *cli.Session, switches []store.Switch) error {
	return cli.Table(s.Printer, "", switches, "SWITCH|STATE|WHAT OPENS IT", func(w store.Switch) cli.Row {
		return cli.Row{w.Switch, w.State, cli.Choose(w.Open, "", w.CLI)}
	})
}

// agreed asks the person at the terminal, or who has written the answer into stdin.
func agreed(s *cli.Session) bool {
	s.Note("go live? yes or no:")
	line, err := bufio.NewReader(io.LimitReader(s.In, 100)).ReadString('\n')
	return (err == nil || errors.Is(err, io.EOF)) && strings.TrimSpace(line) == "yes"
}

// openAll opens everything in one transaction, which commits if the target accepts a test delivery. configured: there is a
// configuration for targets outside the database.
func openAll(ctx context.Context, s *cli.Session, c config.Config, configured bool, plan *goingLive) error {
	inside := false
	_, err := cli.InTx(ctx, s, func(db *store.DB) (none struct{}, err error) {
		if err := db.RouteGoLive(ctx, plan.RouteCode, s.Reason); err != nil {
			return none, err
		}
		route, err := db.Route(ctx, plan.RouteCode)
		if err != nil {
			return none, err
		}
		if inside, err = db.TargetIsInside(ctx, route.TargetKind); err != nil {
			return none, err
		}
		if route.TargetKind == "go" || !inside && !configured {
			return none, nil
		}
		began := time.Now()
		begun, err := db.RouteTest(ctx, plan.RouteCode, s.Reason)
		if err != nil {
			return none, err
		}
		test, err := sendTest(ctx, s, c, begun, began)
		if err != nil {
			return none, err
		}
		plan.Test = &test
		if !test.accepted() {
			return none, cli.ExitWith(cli.StatusFailed, cli.Hint(
				fmt.Errorf("nothing was changed: the target of route %s did not accept the test delivery", plan.RouteCode),
				"tidemark route test "+plan.RouteCode+" sends another one, once its gates are open."))
		}
		return none, nil
	})
	plan.Live = err == nil
	if plan.Test != nil && (!inside || err != nil) { // the record of a target inside committed with the switches
		return errors.Join(err, noteTest(ctx, s, *plan.Test))
	}
	if err == nil && plan.Test == nil {
		s.Note("no test delivery was sent: %s", cli.Choose(configured, "only the program of the route can call its handler",
			"give the daemon's configuration with --config for one, or it is a handler of a Go program"))
	}
	return err
}

func routeWhyNot() cli.Command {
	return cli.Command{
		Use: "why-not ROUTE", Short: "Say why a route delivers nothing", Role: "tidemark_reader",
		Long: `Say why a route delivers nothing: what is closed, what is wrong with it, its worker or its daemon, and what became of
the latest event that it claims. tidemark why EVENT ROUTE is about another event.`,
		Run: func(ctx context.Context, s *cli.Session) error {
			all, err := s.RouteWhyNot(ctx, s.Arg(0))
			if err != nil {
				return err
			}
			return cli.Table(s.Printer, "", all, "REASON|WHY|NEXT", func(w store.WhyNot) cli.Row {
				return cli.Row{w.Reason, w.Sentence, w.Command}
			})
		},
	}
}
