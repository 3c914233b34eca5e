package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// tellOutlook notes what a worker of the log is about to deliver, and to pass over, once no
// gate holds it back; of one route, where it is named. It notes nothing where nothing waits.
func tellOutlook(ctx context.Context, s *session, db *store.DB, worker, route string) error {
	all, err := db.WorkerOutlook(ctx, worker)
	if err != nil || len(all) == 0 {
		return err
	}
	var sent, passed, waiting []string
	var missed store.Outlook
	for _, r := range all[1:] {
		if route != "" && *r.RouteCode != route {
			continue
		}
		switch {
		case r.Events == 0:
		case *r.Becomes == "pending":
			sent = append(sent, fmt.Sprintf("%s to %s", atLeast(r), *r.RouteCode))
		default:
			passed = append(passed, fmt.Sprintf("%s on %s", atLeast(r), *r.RouteCode))
			missed = r
		}
		if r.Waiting > 0 && *r.Becomes == "pending" {
			waiting = append(waiting, fmt.Sprintf("%d to %s", r.Waiting, *r.RouteCode))
		}
	}
	if len(waiting) > 0 {
		s.note("deliveries that wait already: %s", strings.Join(waiting, ", "))
	}
	if all[0].Events == 0 {
		return nil
	}
	line := fmt.Sprintf("worker %s has %s events to read", worker, atLeast(all[0]))
	if len(sent) > 0 {
		line += "; it sends " + strings.Join(sent, ", ")
	}
	if len(passed) > 0 {
		line += "; it records as not sent " + strings.Join(passed, ", ")
	}
	if len(sent)+len(passed) == 0 && route == "" {
		line += "; no route claims them"
	}
	if len(sent)+len(passed) == 0 && route != "" {
		line += "; route " + route + " claims none of them"
	}
	s.note("%s", line)
	if len(passed) > 0 {
		s.note("to send them later: tidemark route replay %s --from-seq %d --reason WHY", *missed.RouteCode, *missed.FirstSeq)
	}
	return nil
}

// atLeast is the number of events, which was not counted to the end.
func atLeast(r store.Outlook) string {
	if r.Complete {
		return fmt.Sprint(r.Events)
	}
	return fmt.Sprintf("at least %d", r.Events)
}

// tellOutlooks is tellOutlook for each worker of the log that the gate holds back.
func tellOutlooks(ctx context.Context, s *session, db *store.DB, gate string) error {
	workers, err := db.Workers(ctx)
	if err != nil {
		return err
	}
	for _, w := range workers {
		if w.Source != "outbox" || gate != "routes.enabled" && gate != workerGate(w.Worker) {
			continue
		}
		if err := tellOutlook(ctx, s, db, w.Worker, ""); err != nil {
			return err
		}
	}
	return nil
}
