package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/target"
)

func routeCommand() cli.Command {
	return cli.Command{
		Use: "route", Short: "Where committed events go",
		Example: "  tidemark route set mail --domain shop --type 'order.*' --target-kind sql --target-ref app.send_mail\n" +
			"  tidemark route backtest mail --since 7d\n  tidemark route go-live mail --reason 'release 12'",
		Sub: []cli.Command{
			routeList(),
			{
				Use: "show ROUTE", Short: "Show a route", Role: "tidemark_reader",
				Run: func(ctx context.Context, s *cli.Session) error {
					r, err := s.Route(ctx, s.Arg(0))
					if err != nil {
						return err
					}
					latency, err := s.RouteLatency(ctx, r.RouteCode)
					if err != nil {
						return err
					}
					if latency != nil {
						defer s.Note("from emit to arrival: p50 %.3f s, p99 %.3f s, of %s of the last hour", latency.P50, latency.P99, cli.Count(latency.Events, "event"))
					}
					return routeShow(s, r)
				},
			},
			routeSet(),
			routeSwitch("enable", "Turn a route on; in dry run it still delivers nothing", true),
			routeSwitch("disable", "Turn a route off; its events are recorded as disabled", false),
			routePause("pause", "Let a route deliver nothing for a while; its events wait, and none is lost", true),
			routePause("resume", "Let a paused route deliver what waits, in order, and go on", false),
			routeGoLive(), routeWhyNot(), routeBacktest(), routeReplay(), routeTest(),
			cli.Delete("ROUTE", "Delete a route that is off and owes nothing; its evidence stays",
				func(ctx context.Context, s *cli.Session) error { return s.RouteDelete(ctx, s.Arg(0), s.Reason) }),
		},
	}
}

func routeList() cli.Command {
	var worker string
	return cli.Command{
		Use: "list", Short: "List routes", Role: "tidemark_reader",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&worker, "worker", "", "only routes that this worker serves")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			routes, err := s.Routes(ctx, store.RouteFilter{Worker: worker})
			if err != nil {
				return err
			}
			return cli.Table(s.Printer, "no routes; create one: tidemark route set ROUTE", routes,
				"ROUTE|STATE|WORKER|EVENTS|STREAM|TARGET", func(r store.Route) cli.Row {
					return cli.Row{
						r.RouteCode, cli.RouteState(r), r.Worker, r.Domain + "/" + r.Type, r.Stream,
						r.TargetKind + " " + r.TargetRef,
					}
				})
		},
	}
}

func routeShow(s *cli.Session, r store.Route) error {
	return s.Show(r, "route", r.RouteCode, "state", cli.RouteState(r), "enabled", r.Enabled, "dry run", r.DryRun, "paused since", r.PausedAt,
		"fail closed", r.FailClosed,
		"worker", r.Worker, "events", r.Domain+"/"+r.Type, "stream", r.Stream, "key filter", r.KeyFilter, "payload filter", r.PayloadFilter,
		"target", r.TargetKind+" "+r.TargetRef, "takes", cli.Takes(r.TargetTakes), "options", strings.TrimSuffix(string(r.Options),
			"{}"), "transform", r.Transform, "columns", r.Columns, "exclusive", r.Exclusive,
		"ordering", r.Ordering, "retry policy", cli.Or(r.RetryPolicy,
			"default"), "timeout", r.Timeout, "concurrency", r.Concurrency,
		"description", r.Description)
}

var routeColumns = cli.Columns{
	{Flag: "worker", Default: "default", Usage: "worker that serves the route"},
	{Flag: "domain", Usage: "domain of the events, or * for all"},
	{Flag: "type", Default: "*", Usage: "type of the events: exact, a prefix (order.*) or *"},
	{Flag: "stream", Kind: cli.Optional, Usage: "only events of this stream"},
	{Flag: "key-filter", Kind: cli.Optional, Usage: "only events with this key, or whose key begins with it (eu-*)"},
	{Flag: "payload-filter", Kind: cli.Object, Usage: "only events whose payload contains this JSON object"},
	{Flag: "target-kind", Usage: strings.Join(targetKinds(), ", ")},
	{Flag: "target-ref", Usage: "function, channel, URL, topic, …: see the kinds above"},
	{Flag: "exclusive", Kind: cli.Bool, Usage: "no other route may claim the same target for the same event"},
	{Flag: "enabled", Kind: cli.Bool, Usage: "on"},
	{Flag: "dry-run", Kind: cli.Bool, Default: "true", Usage: "decide and record, deliver nothing"},
	{
		Flag: "fail-closed", Kind: cli.Bool, Default: "true",
		Usage: "keep events that the route cannot decide as dead letters; =false: skip them",
	},
	{Flag: "ordering", Default: "none", Usage: "none, or key: an event waits behind earlier ones of its key"},
	{
		Flag: "retry-policy", Kind: cli.Object,
		Usage: "JSON object with any of max_attempts, base_seconds, max_seconds, jitter",
	},
	{Flag: "timeout", Default: "10s", Usage: "longest time for one delivery"},
	{Flag: "concurrency", Kind: cli.Int, Default: "4", Usage: "deliveries in flight at once"},
	{Flag: "transform", Kind: cli.Optional, Usage: "schema.function that makes the payload to deliver; null from it drops the event"},
	{Flag: "columns", Kind: cli.Selection, Usage: "top-level keys of the payload to deliver, of what the transform made; empty: all"},
	{Flag: "description", Usage: "free text that says what it is for"},
}

func routeSet() cli.Command {
	var from string
	var given []string
	return cli.Command{
		Use: "set ROUTE", Short: "Create or change a route", Role: "tidemark_admin", Reason: cli.MayGiveReason, Columns: routeColumns,
		Long: `Create or change a route. A new route needs --domain, --target-kind and --target-ref; it is off and in dry run
unless you say otherwise. It gets the events that its worker reads from now on; --from adds a replay of earlier ones
(tidemark route replay), which waits until the route is live, of those that it has no evidence of. Live events do not wait for a replay:
with --ordering key, --from is refused; give the route a worker of its own that begins there. An empty text removes a filter or the retry policy.
Columns and options that you do not name keep their values.

` + target.Help() + `
Names of secrets and connections are those of the daemon's configuration. A secret itself is refused.`,
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&from, "from", "now", "where a new route begins: "+cli.FromUsage)
			flags.StringArrayVar(&given, "option", nil,
				"`KEY=VALUE` for the kind of target (above); VALUE is JSON, else a text; empty removes it; may be repeated")
		},
		Complete: map[string]func(*pflag.FlagSet) []cobra.Completion{"target-kind": completeKinds, "option": completeOptions},
		Run: func(ctx context.Context, s *cli.Session) error {
			changes, err := routeColumns.Changes(s.Flags)
			if err != nil {
				return err
			}
			options, err := parseOptions(given)
			if err != nil {
				return err
			}
			if len(changes)+len(options) == 0 {
				return cli.NothingToChange()
			}
			past, err := backfill(s, from)
			if err != nil {
				return err
			}
			return storeRoute(ctx, s, changes, options, past)
		},
	}
}

func storeRoute(ctx context.Context, s *cli.Session, changes store.Changes, options map[string]json.RawMessage, past *store.ReplayAsk) error {
	code := s.Arg(0)
	var counts *store.Counted // of the replay that the route begins with; nil: none
	r, err := cli.InTx(ctx, s, func(db *store.DB) (r store.Route, err error) {
		if len(options) > 0 {
			all, err := db.RouteOptions(ctx, code)
			if err != nil {
				return r, err
			}
			maps.Copy(all, options)
			maps.DeleteFunc(all, func(_ string, value json.RawMessage) bool { return value == nil })
			changes["options"] = all
		}
		if past != nil {
			if _, err := db.Route(ctx, code); err == nil {
				return r, cli.Usagef("route %s already exists: tidemark route replay %s sends it earlier events", code, code)
			}
		}
		r, err = db.RouteSet(ctx, code, changes, s.Reason, true)
		switch {
		case err != nil || past == nil:
		case r.Ordering == "key":
			return r, unordered(code, s.Flags.Lookup("from").Value.String())
		default:
			var all store.Counted
			all, err = db.RouteReplay(ctx, *past)
			counts = &all
		}
		if err != nil || !r.Enabled {
			return r, err
		}
		return r, cli.TellOutlook(ctx, s, db, r.Worker, code)
	})
	if err != nil {
		return err
	}
	if counts != nil {
		s.Note("route %s begins at event %d: %d earlier events are replayed once it is live; tidemark route replay %s --list shows the progress",
			code, counts.FirstSeq, counts.Events, code)
	}
	return routeShow(s, r)
}

// unordered refuses a replay that would break the order of the route: live events of a key do not wait for it.
func unordered(code, from string) error {
	return cli.Hint(
		cli.Usagef("route %s has the order of keys, and a replay beside live events has not: earlier events would come in between", code),
		fmt.Sprintf("Give it a worker of its own, which begins there: tidemark worker set NEW --from %s, then this command with --worker NEW and without --from. "+
			"Or make the route without --from, and tidemark route replay %s, where the receiver looks at the order.", from, code))
}

// backfill is the replay that a new route begins with. Nil: none.
func backfill(s *cli.Session, from string) (*store.ReplayAsk, error) {
	start, err := cli.StartOf(from, s.Now)
	if err != nil || start == "now" {
		return nil, err
	}
	ask := &store.ReplayAsk{Route: s.Arg(0), Reason: cmp.Or(s.Reason, "where the route begins"), FromSeq: new(int64), Outcomes: []string{"none"}}
	if seq, err := strconv.ParseInt(start, 10, 64); err == nil {
		ask.FromSeq = &seq
	} else if start != "start" {
		ask.FromSeq = nil
		ask.Since, err = time.Parse(time.RFC3339Nano, start)
		return ask, err
	}
	return ask, nil
}

// parseOptions reads KEY=VALUE. A null value removes the option.
func parseOptions(given []string) (map[string]json.RawMessage, error) {
	options := map[string]json.RawMessage{}
	for _, option := range given {
		key, text, found := strings.Cut(option, "=")
		switch {
		case !found || key == "":
			return nil, cli.Usagef("--option %q must be KEY=VALUE", option)
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

func targetKinds() (all []string) {
	for _, k := range target.Kinds() {
		all = append(all, k.Kind)
	}
	return all
}

func completeKinds(*pflag.FlagSet) (all []cobra.Completion) {
	for _, k := range target.Kinds() {
		all = append(all, cobra.CompletionWithDesc(k.Kind, k.Ref))
	}
	return all
}

// completeOptions has the options of the kind that is given, or else of all kinds.
func completeOptions(flags *pflag.FlagSet) (all []cobra.Completion) {
	kinds := targetKinds()
	if kind, _ := flags.GetString("target-kind"); kind != "" {
		kinds = []string{kind}
	}
	for _, kind := range kinds {
		for _, o := range target.Options(kind) {
			if !slices.ContainsFunc(all, func(c cobra.Completion) bool { return strings.HasPrefix(c, o.Option+"=") }) {
				all = append(all, cobra.CompletionWithDesc(o.Option+"=", o.Meaning))
			}
		}
	}
	return all
}

func routeSwitch(name, short string, enabled bool) cli.Command {
	return cli.Command{
		Use: name + " ROUTE", Short: short, Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Run: func(ctx context.Context, s *cli.Session) error {
			r, err := cli.InTx(ctx, s, func(db *store.DB) (store.Route, error) {
				r, err := db.RouteSet(ctx, s.Arg(0), store.Changes{"enabled": enabled}, s.Reason, false)
				if err != nil || !enabled {
					return r, err
				}
				if err := cli.TellOutlook(ctx, s, db, r.Worker, r.RouteCode); err != nil {
					return r, err
				}
				missed, err := db.RouteMissed(ctx, r.RouteCode)
				cli.TellMissed(s, r.RouteCode, missed)
				return r, err
			})
			if err != nil {
				return err
			}
			if !enabled {
				s.Note("events that its worker %s reads now are recorded as disabled, and not sent later by themselves; "+
					"those of a paused route wait: tidemark route pause %s", r.Worker, r.RouteCode)
			}
			return s.Result(r, "route %s: %s", r.RouteCode, cli.RouteState(r))
		},
	}
}

func routePause(name, short string, pause bool) cli.Command {
	return cli.Pause(name, "route", short, pause, func(ctx context.Context, s *cli.Session) (bool, error) {
		return s.RoutePause(ctx, s.Arg(0), pause, s.Reason)
	})
}
