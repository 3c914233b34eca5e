package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
)

func newHeartbeat(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "heartbeat",
		Short: "Executors that are to give signs of life",
		Long: `Executors that are to give signs of life: workers and daemons by themselves, anything else once it is
registered, by "tidemark beat", or with plain SQL:

  select tidemark.heartbeat_write('nightly_export', 'ok', '{"rows": 7}');

Whoever is silent for longer than its threshold is told by an event system/queue_worker_silent and a finding.`,
	}
	cmd.AddCommand(
		needs("tidemark_reader", &cobra.Command{Use: "list", Short: "List executors and when they last beat", RunE: a.withSchema(heartbeatList)}),
		newHeartbeatRegister(a), newHeartbeatDeregister(a),
	)
	return cmd
}

func heartbeatList(ctx context.Context, s *session, _ []string) error {
	all, err := s.Heartbeats(ctx)
	if err != nil {
		return err
	}
	type h = store.Heartbeat
	return rows(s.printer, "no executors", all,
		column[h]{"EXECUTOR", func(h h) string { return h.ExecutorID }},
		column[h]{"KIND", func(h h) string { return h.Kind }},
		column[h]{"STATE", heartbeatState},
		column[h]{"LAST BEAT", func(h h) string {
			if h.LastBeatAt == nil {
				return "never"
			}
			return span(max(s.now.Sub(*h.LastBeatAt), 0)) + " ago"
		}},
		column[h]{"SAID", func(h h) string { return cut(h.LastStatus, 40) }},
		column[h]{"EVERY", func(h h) string { return whole(h.CadenceSeconds) }},
		column[h]{"SILENT AFTER", func(h h) string { return whole(h.ThresholdSeconds) }},
		column[h]{"BEATS", func(h h) string { return number(h.TicksTotal) }})
}

func heartbeatState(h store.Heartbeat) string {
	if h.Excuse != nil {
		return h.State + ": " + *h.Excuse
	}
	return h.State
}

func whole(seconds int) string { return (time.Duration(seconds) * time.Second).String() }

func newHeartbeatRegister(a *app) *cobra.Command {
	var r store.Registration
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "register EXECUTOR",
		Short: "Register an executor, or change what is expected of it",
	})
	flags := cmd.Flags()
	flags.StringVar(&r.Kind, "kind", "", "kind, one of the table tidemark.heartbeat_kind; none: as it is, and external_worker for a new one")
	flags.DurationVar(&r.Cadence, "every", time.Minute, "a beat is expected this often, in whole seconds")
	flags.DurationVar(&r.Threshold, "threshold", 0, "silent when none came for longer; 0: three times --every")
	flags.StringSliceVar(&r.DomainScope, "domains", nil, "domains that it covers; none: all")
	flags.StringVar(&r.Payload, "payload", "", "small facts, as a JSON object")
	reasonFlag(cmd, &r.Reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		r.ExecutorID = args[0]
		h, err := s.HeartbeatRegister(ctx, r)
		if err != nil {
			return err
		}
		if s.json {
			return s.object(h)
		}
		with := fmt.Sprintf("tidemark beat %s, or: select tidemark.heartbeat_write(%s);", h.ExecutorID, literal(h.ExecutorID))
		if h.Worker != nil {
			with = "its passes: tidemark worker run " + *h.Worker + ", or a daemon"
		}
		return s.facts(
			fact{"executor", h.ExecutorID}, fact{"kind", h.Kind}, fact{"domains", firstOf(strings.Join(h.DomainScope, ", "), "all")},
			fact{"every", whole(h.CadenceSeconds)}, fact{"silent after", whole(h.ThresholdSeconds)},
			fact{"beats with", with})
	})
	return cmd
}

func newHeartbeatDeregister(a *app) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "deregister EXECUTOR",
		Short: "Forget an executor that will not come back",
	})
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		if err := s.HeartbeatDeregister(ctx, args[0], reason); err != nil {
			return err
		}
		if s.json {
			return s.object(struct {
				ExecutorID string `json:"executor_id"`
			}{args[0]})
		}
		return s.linef("executor %s: forgotten", args[0])
	})
	return cmd
}

func newStaleCheck(a *app) *cobra.Command {
	return needs("tidemark_executor", &cobra.Command{
		Use:   "stale-check",
		Short: "Look for executors that have fallen silent; every daemon does so every 10 seconds",
		RunE: a.withSchema(func(ctx context.Context, s *session, _ []string) error {
			all, err := staleCheck(ctx, s)
			if err != nil {
				return err
			}
			type e = store.Silence
			return rows(s.printer, "nobody is silent", all,
				column[e]{"EXECUTOR", func(e e) string { return e.ExecutorID }},
				column[e]{"STATE", func(e e) string { return e.State }},
				column[e]{"SEVERITY", func(e e) string { return e.Severity }},
				column[e]{"FOR", func(e e) string { return seconds(e.AgeSeconds) }},
				column[e]{"SAID", func(e e) string { return cut(text(e.LastStatus), 40) }},
				column[e]{"EVENT", func(e e) string { return text(e.EventID) }})
		}),
	})
}

func staleCheck(ctx context.Context, s *session) (all []store.Silence, err error) {
	return all, s.inTx(ctx, func(db *store.DB) error {
		all, err = db.StaleCheck(ctx)
		return err
	})
}
