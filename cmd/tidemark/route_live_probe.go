package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// tested is the result of a test delivery.
type tested struct {
	RouteCode string  `json:"route_code"`
	Target    string  `json:"target_kind"`
	Takes     *string `json:"target_takes,omitempty"`
	store.RouteTested
}

func routeTest() cli.Command {
	var file string
	return cli.Command{
		Use: "test ROUTE", Short: "Send one test delivery to the target of a route, now", Role: "tidemark_admin", Reason: cli.MayGiveReason, Needs: cli.Nothing,
		Long: `Send one test delivery to the target of a route, now: signed and with its headers, by the daemon's
configuration (--config), which has the secrets and the connections. The route may be off or in dry run. The event is
not in the log; its type is tidemark.test, its payload {"test": true, "route": ROUTE}, and the delivery is marked: by
the header tidemark-test, and by the attribute test of a CloudEvent.

A target inside the database (sql, notify, river) is called with your privileges, and its effects are rolled back. The
event of a route to stdout is written to stderr. A closed gate, a paused worker or a stage that is not live refuses the
test. The audit (tidemark.audit) records each test.

Exit status: 0 the target accepted it, 1 it did not or its answer is unknown, 5 the database refused the test.`,
		Example: "  tidemark route test billing --config tidemark.yaml",
		Flags:   func(flags *pflag.FlagSet) { cli.ConfigFlag(flags, &file) },
		Run: func(ctx context.Context, s *cli.Session) error {
			c, err := s.LoadConfig(file)
			if err != nil {
				return err
			}
			if err := s.OpenAt(ctx, c); err != nil {
				return err
			}
			got, err := testRoute(ctx, s, c, s.Arg(0))
			if got.Outcome == "" {
				return err
			}
			// It was sent: show the result even if it could not be recorded.
			return cmp.Or(err, showTested(s, got))
		},
	}
}

func testRoute(ctx context.Context, s *cli.Session, c config.Config, code string) (tested, error) {
	began := time.Now()
	begun, err := cli.InTx(ctx, s,
		func(db *store.DB) (store.RouteTest, error) { return db.RouteTest(ctx, code, s.Reason) })
	if err != nil {
		return tested{}, err
	}
	got, err := sendTest(ctx, s, c, begun, began)
	if err != nil || begun.Outcome != nil {
		return got, err
	}
	return got, noteTest(ctx, s, got)
}

// sendTest sends a test that has begun, unless its target is inside the database, which has been called.
func sendTest(ctx context.Context, s *cli.Session, c config.Config, begun store.RouteTest, began time.Time) (tested, error) {
	var route struct {
		Code  string  `json:"route_code"`
		Kind  string  `json:"target_kind"`
		Takes *string `json:"target_takes"`
	}
	if err := json.Unmarshal(begun.Route, &route); err != nil {
		return tested{}, err
	}
	got := tested{RouteCode: route.Code, Target: route.Kind, Takes: route.Takes}
	if begun.Outcome != nil {
		got.RouteTested = begun.Done(time.Since(began))
	} else {
		got.RouteTested = daemon.Probe(ctx, c, begun, s.Err)
	}
	return got, nil
}

// noteTest records the outcome of a test, also of an interrupted one: it may have arrived.
func noteTest(ctx context.Context, s *cli.Session, got tested) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(s.RouteTestNote(last, got.RouteCode, got.RouteTested, s.Reason), ctx.Err())
}

// accepted reports whether the target took the test.
func (t tested) accepted() bool { return t.Outcome == "delivered" || t.Outcome == "accepted" }

func showTested(s *cli.Session, got tested) error {
	err := s.Show(got, "route", got.RouteCode, "target", got.Target, "takes", cli.Takes(got.Takes), "event", got.EventID, "outcome", got.Outcome,
		"time", fmt.Sprintf("%.3f s", got.Seconds), "error", got.ErrorCode, "detail", got.Detail)
	if err == nil && !got.accepted() {
		return cli.ExitWith(cli.StatusFailed, nil)
	}
	return err
}
