package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

var workerColumns = columnsOf{
	texts: map[string]string{
		"source": "source", "handler": "handler", "read-order": "read_order", "page-timeout": "page_timeout", "peak-pause": "peak_pause",
		"description": "description",
	},
	optional: map[string]string{
		"function": "handler_ref", "event": "handler_ref", "coalesce-window": "coalesce_window", "storm-fraction": "storm_fraction",
		"off-peak": "off_peak", "replication-lag-limit": "replication_lag_limit", "lock-wait-limit": "lock_wait_limit",
	},
	objects: map[string]string{"retry-policy": "retry_policy"},
	ints:    map[string]string{"hole-limit": "hole_limit", "shards": "shards", "page-size": "page_size"},
	lists:   map[string]string{"domains": "domains", "payload-columns": "payload_columns"},
}

func newWorkerSet(a *app) *cobra.Command {
	var reason, from string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "set NAME",
		Short: "Make a worker, or change one",
		Long: `Make a worker, or change one. A new worker of the log begins with the next event, or where --from says. With --source table it reads tables of
others: give it a function, or the type of the events that it makes of rows, then sources by worker attach.
What it reads and its kind of handler are fixed once it is made. An empty text is null: no limit, no policy.`,
	})
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "now", "where a new worker of the log begins: now, start, the number of an event, or a time (RFC 3339, or how long ago)")
	flags.String("source", "outbox", "what it reads: outbox (the log), or table")
	flags.String("handler", "", "what it does: route or go; of a table sql, emit or go")
	flags.String("function", "", "of a table: SCHEMA.FUNCTION that takes an array of its rows (handler sql)")
	flags.String("event", "", "of a table: DOMAIN/TYPE of the event that each row becomes (handler emit)")
	flags.StringSlice("payload-columns", nil, "handler emit: columns that the event shows beside the id and the key columns")
	flags.StringSlice("domains", nil, "decide events of these domains only; others leave no evidence")
	flags.Bool("all-domains", false, "decide events of all domains")
	flags.String("read-order", "eager", "eager: pass numbers that have not shown up and come back; strict: wait")
	flags.Int("hole-limit", 10000, "ranges of missing numbers kept at most")
	flags.Int("shards", 1, "of a table: parts by a hash of the key columns, each with a cursor and a lease")
	flags.Int("page-size", 5000, "of a table: rows that a pass reads at most")
	flags.String("page-timeout", "5s", "of a table: a pass that takes longer is taken back and tried with fewer rows")
	flags.String("retry-policy", "", "of a table: JSON object with any of max_attempts, base_seconds, max_seconds, jitter")
	flags.String("coalesce-window", "", "of a table: rows of a group that come within it are handed over as one, the latest")
	flags.String("storm-fraction", "", "of a table: share of all groups that may change at once, from 0 to 1")
	flags.String("off-peak", "", `of a table: hours at full speed, such as "22:00-06:00 Europe/Berlin"`)
	flags.String("peak-pause", "1s", "of a table: outside of these hours, the pause between two passes")
	flags.String("lock-wait-limit", "", "of a table: wait while more sessions wait for locks")
	flags.String("replication-lag-limit", "", "of a table: wait while a standby is further behind")
	flags.String("description", "", "for people")
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		changes, err := workerChanges(flags)
		if err != nil {
			return err
		}
		starts := ""
		if flags.Changed("from") {
			if starts, err = startOf(from, s.now); err != nil {
				return err
			}
		}
		_, err = s.Worker(ctx, args[0])
		made := errors.Is(err, tidemark.ErrNotFound)
		w, err := s.WorkerSet(ctx, args[0], changes, reason, starts)
		if err != nil {
			return err
		}
		if s.json {
			return s.object(w)
		}
		if (made || starts != "") && w.Source == "outbox" {
			h, err := s.WorkerHealthOf(ctx, args[0])
			if err != nil {
				return err
			}
			s.note("worker %s begins behind event %s (--from %s); it decides what commits from now on%s", w.Worker, optional(h.Watermark), from, behindText(h.Behind))
		}
		return showWorker(s, w)
	})
	return cmd
}

// startOf reads where a worker begins: what is neither now nor start nor a number is a time.
func startOf(text string, now time.Time) (string, error) {
	if _, err := strconv.ParseUint(text, 10, 63); err == nil || text == "now" || text == "start" {
		return text, nil
	}
	at, err := when("from", text, now)
	if err != nil || text == "" {
		return "", usagef("--from %q is neither now, start, the number of an event, nor a time such as 2026-01-31T12:00:00Z or 7d", text)
	}
	return at.UTC().Format(time.RFC3339Nano), nil
}

// behindText tells what is to be read first.
func behindText(behind *int64) string {
	if behind == nil || *behind == 0 {
		return ""
	}
	return ", and " + count(int(*behind), "event", "events") + " before"
}

func workerChanges(flags *pflag.FlagSet) (store.Changes, error) {
	changes, err := workerColumns.changes(flags)
	if err != nil {
		return nil, err
	}
	if flags.Changed("function") && flags.Changed("event") {
		return nil, usagef("give --function or --event, not both")
	}
	for flag, handler := range map[string]string{"function": "sql", "event": "emit"} {
		switch {
		case !flags.Changed(flag):
		case flags.Changed("handler") && changes["handler"] != handler:
			return nil, usagef("--%s is of the handler %s", flag, handler)
		default:
			changes["handler"] = handler
		}
	}
	if flags.Changed("all-domains") {
		if flags.Changed("domains") {
			return nil, usagef("give --domains or --all-domains, not both")
		}
		changes["domains"] = nil
	}
	return changes, nil
}

// showWorker tells what a worker is set to; what is for tables only of one of them.
func showWorker(s *session, w store.Worker) error {
	facts := []fact{{"worker", w.Worker}, {"handler", strings.TrimSpace(w.Handler + " " + text(w.HandlerRef))}}
	if w.Source == "outbox" {
		facts = append(facts,
			fact{"domains", firstOf(strings.Join(w.Domains, ", "), "all")}, fact{"read order", w.ReadOrder}, fact{"hole limit", number(w.HoleLimit)})
	} else {
		storm := ""
		if w.StormFraction != nil {
			storm = strconv.FormatFloat(*w.StormFraction, 'g', -1, 64)
		}
		facts = append(facts,
			fact{"reads", "tables"}, fact{"payload columns", strings.Join(w.PayloadColumns, ", ")}, fact{"shards", number(w.Shards)},
			fact{"page size", number(w.PageSize)}, fact{"page timeout", w.PageTimeout}, fact{"retry policy", firstOf(string(w.RetryPolicy), "default")},
			fact{"coalesce window", text(w.CoalesceWindow)}, fact{"storm fraction", storm}, fact{"off peak", text(w.OffPeak)},
			fact{"lock wait limit", optional(w.LockWaitLimit)}, fact{"replication lag limit", text(w.ReplicationLagLimit)})
		if w.OffPeak != nil {
			facts = append(facts, fact{"peak pause", w.PeakPause})
		}
	}
	return s.facts(append(facts, fact{"description", w.Description})...)
}
