package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// tested is what a test of a route came to.
type tested struct {
	RouteCode string  `json:"route_code"`
	Target    string  `json:"target_kind"`
	EventID   string  `json:"event_id"`
	Outcome   string  `json:"outcome"`
	ErrorCode string  `json:"error_code"`
	Detail    string  `json:"detail"`
	Seconds   float64 `json:"seconds"`
}

func newRouteTest(a *app) *cobra.Command {
	var file, reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "test CODE",
		Short: "Send one test delivery to the target of a route, now",
		Long: `Send one test delivery to the target of a route, now: signed and with its headers, by the daemon's configuration
(--config), which has the secrets and the connections. The route may be off or in dry run. The event is not in the
log; its type is tidemark.test, its payload {"test": true, "route": CODE}, and the delivery is marked: the header
tidemark-test, and the attribute test of a CloudEvent.

A target inside the database (sql, notify, river) is called with your rights, and what it did is taken back. The event
of a route to stdout is written to stderr.

A closed gate, a paused worker or a stage that is not live refuses the test. Each test is on record in tidemark.audit.

Exit status: 0 the target took it, 1 it did not, or its answer is not known, 5 the database refused the test.`,
	})
	configFlag(cmd, &file)
	reasonFlag(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := a.printer(cmd)
		if err != nil {
			return err
		}
		c, err := a.loadConfig(p, file)
		if err != nil {
			return err
		}
		if a.databaseURL == "" {
			a.databaseURL = c.Database.URL.Reveal()
		}
		return a.withSchema(func(ctx context.Context, s *session, args []string) error {
			got, err := testRoute(ctx, s, c, args[0], reason)
			if got.Outcome == "" {
				return err
			}
			// It was sent: what came of it is told, also where it cannot be put on record.
			return cmp.Or(err, showTested(s, got))
		})(cmd, args)
	}
	return cmd
}

func testRoute(ctx context.Context, s *session, c config.Config, code, reason string) (tested, error) {
	var begun store.RouteTest
	began := time.Now()
	err := s.inTx(ctx, func(db *store.DB) (err error) {
		begun, err = db.RouteTest(ctx, code, reason)
		return err
	})
	if err != nil {
		return tested{}, err
	}
	var route struct {
		Kind string `json:"target_kind"`
	}
	if err := json.Unmarshal(begun.Route, &route); err != nil {
		return tested{}, err
	}
	got := tested{RouteCode: code, Target: route.Kind, EventID: begun.EventID}
	if begun.Outcome != nil {
		got.Outcome, got.ErrorCode, got.Detail, got.Seconds = *begun.Outcome, text(begun.ErrorCode), text(begun.Detail), time.Since(began).Seconds()
		return got, nil
	}

	result, took, err := daemon.Probe{Route: begun.Route, Event: begun.Event, Out: s.err}.Send(ctx, c)
	if err != nil {
		result = sink.Result{Outcome: sink.Permanent, Code: "misconfigured", Detail: err.Error()}
	}
	got.ErrorCode, got.Detail, got.Seconds = result.Code, result.Detail, took.Seconds()
	switch result.Outcome {
	case sink.Delivered:
		got.Outcome = "delivered"
	case sink.Unknown:
		got.Outcome = "unknown"
	default:
		got.Outcome = "failed"
	}
	// Also of a test that was interrupted: it may have arrived.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = s.RouteTestNote(last, code, got.EventID, got.Outcome, got.ErrorCode, got.Detail, got.Seconds, reason)
	return got, errors.Join(err, ctx.Err())
}

func showTested(s *session, got tested) error {
	bad := got.Outcome != "delivered" && got.Outcome != "accepted"
	var err error
	if s.json {
		err = s.object(got)
	} else {
		err = s.facts(
			fact{"route", got.RouteCode}, fact{"target", got.Target}, fact{"event", got.EventID}, fact{"outcome", got.Outcome},
			fact{"time", fmt.Sprintf("%.3f s", got.Seconds)}, fact{"error", got.ErrorCode}, fact{"detail", got.Detail})
	}
	if err == nil && bad {
		return exitError{nil, exitFailed}
	}
	return err
}
