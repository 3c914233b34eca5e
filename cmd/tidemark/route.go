package main

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/target"
)

func newRoute(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "route", Short: "Where committed events go"}
	cmd.AddCommand(
		newRouteList(a), newRouteShow(a), newRouteSet(a), newRouteBacktest(a), newRouteReplay(a), newRouteTest(a),
		newRouteSwitch(a, "enable", "Turn a route on; in dry run it still delivers nothing", true),
		newRouteSwitch(a, "disable", "Turn a route off; its events are recorded as disabled", false),
	)
	return cmd
}

func newRouteList(a *app) *cobra.Command {
	var worker string
	cmd := needs("tidemark_reader", &cobra.Command{
		Use:   "list",
		Short: "List routes",
		RunE: a.withSchema(func(ctx context.Context, s *session, _ []string) error {
			routes, err := s.Routes(ctx, worker)
			if err != nil {
				return err
			}
			type r = store.Route
			return rows(s.printer, "no routes; make one: tidemark route set CODE", routes,
				column[r]{"ROUTE", func(r r) string { return r.RouteCode }},
				column[r]{"STATE", routeState},
				column[r]{"WORKER", func(r r) string { return r.Worker }},
				column[r]{"EVENTS", func(r r) string { return r.Domain + "/" + r.Type }},
				column[r]{"STREAM", func(r r) string { return text(r.Stream) }},
				column[r]{"TARGET", func(r r) string { return r.TargetKind + " " + r.TargetRef }})
		}),
	})
	cmd.Flags().StringVar(&worker, "worker", "", "only routes that this worker serves")
	return cmd
}

// routeState is what the switches of a route come to.
func routeState(r store.Route) string {
	switch {
	case !r.Enabled:
		return "off"
	case r.DryRun:
		return "dry run"
	default:
		return "live"
	}
}

func newRouteShow(a *app) *cobra.Command {
	return needs("tidemark_reader", &cobra.Command{
		Use:   "show CODE",
		Short: "Show a route",
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			r, err := s.Route(ctx, args[0])
			if err != nil {
				return err
			}
			return showRoute(s, r)
		}),
	})
}

func newRouteSet(a *app) *cobra.Command {
	var reason, from string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "set CODE",
		Short: "Make a route or change one",
		Long: `Make a route or change one. A new route needs --domain, --target-kind and --target-ref; it is off and
in dry run unless told otherwise. It gets what its worker reads from now on; --from makes a replay of what was before
(tidemark route replay), which waits until the route is live. An empty text takes a filter or the retry policy away. Options that are
not named stay.

` + target.Help() + `
Names of secrets and connections are those of the daemon's configuration; a secret itself is refused.`,
	})
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "now", "of a new route: now, start, the number of an event, or a time (RFC 3339, or how long ago)")
	flags.String("worker", "default", "worker that serves the route")
	flags.String("domain", "", "domain of the events, or * for all")
	flags.String("type", "*", "type of the events: exact, a prefix (order.*) or *")
	flags.String("stream", "", "only events of this stream")
	flags.String("key-filter", "", "only events with this key, or with this beginning of it (eu-*)")
	flags.String("payload-filter", "", "only events whose payload contains this JSON object")
	flags.String("target-kind", "", strings.Join(targetKinds(), ", "))
	flags.String("target-ref", "", "what the kind names (above)")
	flags.Bool("exclusive", false, "no other route may claim the same target for the same event")
	flags.Bool("enabled", false, "on")
	flags.Bool("dry-run", true, "decide and record, deliver nothing")
	flags.Bool("fail-closed", true, "keep what the route cannot decide as a dead letter; false: skip it")
	flags.String("ordering", "none", "none, or key: an event waits behind earlier ones of its key")
	flags.String("retry-policy", "", `JSON object with any of max_attempts, base_seconds, max_seconds, jitter`)
	flags.String("timeout", "10s", "longest time for one delivery")
	flags.Int("concurrency", 4, "deliveries under way at once")
	flags.StringArray("option", nil, "KEY=VALUE for the kind of target (above); VALUE is JSON, else a text; empty takes it away; may be given again")
	flags.String("description", "", "for people")
	reasonFlag(cmd, &reason)
	completeTargets(cmd)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		changes, err := routeColumns.changes(flags)
		if err != nil {
			return err
		}
		given, _ := flags.GetStringArray("option")
		options, err := parseOptions(given)
		if err != nil {
			return err
		}
		if len(options) == 0 {
			if err := needOne(changes); err != nil {
				return err
			}
		}
		past, err := backfill(args[0], from, reason, s.now)
		if err != nil {
			return err
		}
		var r store.Route
		var counts []store.ReplayCount
		err = s.inTx(ctx, func(db *store.DB) (err error) {
			if len(options) > 0 {
				all, err := db.RouteOptions(ctx, args[0])
				if err != nil {
					return err
				}
				for key, value := range options {
					all[key] = value
				}
				maps.DeleteFunc(all, func(_ string, value json.RawMessage) bool { return value == nil })
				changes["options"] = all
			}
			if past != nil {
				if _, err := db.Route(ctx, args[0]); err == nil {
					return usagef("route %s is there already: tidemark route replay %s sends it what was before", args[0], args[0])
				}
			}
			if r, err = db.RouteSet(ctx, args[0], changes, reason, true); err == nil && past != nil {
				counts, err = db.RouteReplay(ctx, *past)
			}
			if err != nil || !r.Enabled {
				return err
			}
			return tellOutlook(ctx, s, db, r.Worker, r.RouteCode)
		})
		if err != nil {
			return err
		}
		if n := len(counts); n > 0 {
			s.note("route %s begins at event %d: %d of those before are replayed once it is live; how far it is: tidemark route replay %s --list",
				r.RouteCode, counts[n-1].FirstSeq, counts[n-1].Events, r.RouteCode)
		}
		return showRoute(s, r)
	})
	return cmd
}

// backfill is the replay that a new route begins with. Nil: none.
func backfill(route, from, reason string, now time.Time) (*store.ReplayAsk, error) {
	starts, err := startOf(from, now)
	if err != nil || starts == "now" {
		return nil, err
	}
	ask := &store.ReplayAsk{Route: route, Reason: cmp.Or(reason, "where the route begins"), FromSeq: new(int64)}
	if seq, err := strconv.ParseInt(starts, 10, 64); err == nil {
		ask.FromSeq = &seq
	} else if starts != "start" {
		ask.FromSeq = nil
		ask.Since, err = time.Parse(time.RFC3339Nano, starts)
		if err != nil {
			return nil, err
		}
	}
	return ask, nil
}

// parseOptions reads KEY=VALUE. A null value takes the option away.
func parseOptions(given []string) (map[string]json.RawMessage, error) {
	options := map[string]json.RawMessage{}
	for _, option := range given {
		key, text, found := strings.Cut(option, "=")
		switch {
		case !found || key == "":
			return nil, usagef("--option %q must be KEY=VALUE", option)
		case text == "":
			options[key] = nil
		case json.Valid([]byte(text)):
			options[key] = json.RawMessage(text)
		default:
			quoted, err := json.Marshal(text)
			if err != nil {
				return nil, err
			}
			options[key] = quoted
		}
	}
	return options, nil
}

var routeColumns = columnsOf{
	texts: map[string]string{
		"worker": "worker", "domain": "domain", "type": "type", "target-kind": "target_kind", "target-ref": "target_ref",
		"ordering": "ordering", "timeout": "timeout", "description": "description",
	},
	optional: map[string]string{"stream": "stream", "key-filter": "key_filter"},
	objects:  map[string]string{"payload-filter": "payload_filter", "retry-policy": "retry_policy"},
	bools:    map[string]string{"exclusive": "exclusive", "enabled": "enabled", "dry-run": "dry_run", "fail-closed": "fail_closed"},
	ints:     map[string]string{"concurrency": "concurrency"},
}

func newRouteSwitch(a *app, name, short string, enabled bool) *cobra.Command {
	var reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   name + " CODE",
		Short: short,
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			var r store.Route
			err := s.inTx(ctx, func(db *store.DB) (err error) {
				if r, err = db.RouteSet(ctx, args[0], store.Changes{"enabled": enabled}, reason, false); err != nil || !enabled {
					return err
				}
				return tellOutlook(ctx, s, db, r.Worker, r.RouteCode)
			})
			if err != nil {
				return err
			}
			if s.json {
				return s.object(r)
			}
			return s.linef("route %s: %s", r.RouteCode, routeState(r))
		}),
	})
	reasonFlag(cmd, &reason)
	return cmd
}

func showRoute(s *session, r store.Route) error {
	if s.json {
		return s.object(r)
	}
	options := string(r.Options)
	if options == "{}" {
		options = ""
	}
	return s.facts(
		fact{"route", r.RouteCode}, fact{"state", routeState(r)},
		fact{"enabled", yes(r.Enabled)}, fact{"dry run", yes(r.DryRun)}, fact{"fail closed", yes(r.FailClosed)},
		fact{"worker", r.Worker}, fact{"events", r.Domain + "/" + r.Type}, fact{"stream", text(r.Stream)},
		fact{"key filter", text(r.KeyFilter)}, fact{"payload filter", string(r.PayloadFilter)},
		fact{"target", r.TargetKind + " " + r.TargetRef}, fact{"options", options}, fact{"exclusive", yes(r.Exclusive)},
		fact{"ordering", r.Ordering}, fact{"retry policy", firstOf(string(r.RetryPolicy), "default")},
		fact{"timeout", r.Timeout}, fact{"concurrency", number(r.Concurrency)}, fact{"description", r.Description})
}
