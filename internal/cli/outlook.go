package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// TellOutlook notes what a worker of the log is about to deliver, and to record without delivering, once no gate holds
// it back. With a route it is about that route alone. It says nothing if nothing waits.
func TellOutlook(ctx context.Context, s *Session, db *store.DB, worker, route string) error {
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
		delivers := *r.Becomes == "pending"
		switch {
		case r.Events > 0 && delivers:
			sent = append(sent, fmt.Sprintf("%s to %s", atLeast(r), *r.RouteCode))
		case r.Events > 0:
			passed = append(passed, fmt.Sprintf("%s on %s", atLeast(r), *r.RouteCode))
			missed = r
		}
		if r.Waiting > 0 && delivers {
			waiting = append(waiting, fmt.Sprintf("%d to %s", r.Waiting, *r.RouteCode))
		}
	}
	if len(waiting) > 0 {
		s.Note("deliveries that wait already: %s", strings.Join(waiting, ", "))
	}
	switch {
	case all[0].Events == 0 && all[0].Complete:
		return nil
	case all[0].Events == 0:
		s.Note("what worker %s has to read was not counted: one of its shards is far behind the others", worker)
		return nil
	}
	line := fmt.Sprintf("worker %s has %s events to read", worker, atLeast(all[0]))
	if len(sent) > 0 {
		line += "; it sends " + strings.Join(sent, ", ")
	}
	if len(passed) > 0 {
		line += "; it records as not sent " + strings.Join(passed, ", ")
	}
	if len(sent)+len(passed) == 0 {
		line += Choose(route == "", "; no route claims them", "; route "+route+" claims none of them")
	}
	s.Note("%s", line)
	if len(passed) > 0 {
		s.Note("to send them later: tidemark route replay %s --from-seq %d --reason WHY", *missed.RouteCode, *missed.FirstSeq)
	}
	return nil
}

// TellMissed notes the events that were recorded while the route was off or in dry run, and what sends them.
func TellMissed(s *Session, route string, missed []store.Missed) {
	for _, m := range missed {
		s.Note("%s%s recorded while route %s was %s; only a replay sends %[8]s: "+
			"tidemark route replay %[3]s --from-seq %[5]d --to-seq %[6]d --only %[7]s --reason WHY", Choose(m.Complete, "", "at least "), Count(m.Events, "event was", "events were"),
			route, Choose(m.Outcome == "disabled", "off", "in dry run"), m.FirstSeq, m.LastSeq, m.Outcome, Choose(m.Events == 1, "it", "them"))
	}
}

// atLeast is the number of events, if they were counted to the end.
func atLeast(r store.Outlook) string {
	return Choose(r.Complete, "", "at least ") + fmt.Sprint(r.Events)
}

// TellOutlooks is TellOutlook for each worker of the log that the gate holds back.
func TellOutlooks(ctx context.Context, s *Session, db *store.DB, gate string) error {
	workers, err := db.Workers(ctx)
	if err != nil {
		return err
	}
	for _, w := range workers {
		if w.Source != "outbox" || gate != "routes.enabled" && gate != store.WorkerGate(w.Worker) {
			continue
		}
		if err := TellOutlook(ctx, s, db, w.Worker, ""); err != nil {
			return err
		}
	}
	return nil
}
