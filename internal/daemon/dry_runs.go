package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

const (
	dryRunPage = 500
	dryRunMost = 5000
	// dryRunTime is how long a call for several events may take.
	dryRunTime = time.Second
	// dryRunAlone is how long a call for a single event may take, if the route's timeout is not less. While its transaction lasts,
	// sources of safety clock wait, and maintain drops no partition of tidemark.decision.
	dryRunAlone = 5 * time.Second
	// dryRunPause is how long a route is left after its transform took too long, or could not be called.
	dryRunPause = 30 * time.Second
)

// dryRuns puts into the evidence of dry runs what the routes' transforms make of the events. It works beside the workers, after
// they have settled the events, on one connection: a transform that hangs holds up no worker of the log. What waits for old
// transactions waits for it, dryRunAlone at most.
type dryRuns struct {
	db    *store.DB
	log   *slog.Logger
	told  chan []store.Untried
	route map[string]*dryRun
}

// A dryRun is how the transform of a route does.
type dryRun struct {
	most  int // events of the next call
	rests time.Time
}

func newDryRuns(db *store.DB, log *slog.Logger) *dryRuns {
	return &dryRuns{db, log, make(chan []store.Untried, 1), map[string]*dryRun{}}
}

// tell names the routes that have something to do. It does not wait: while they are at work, a later call tells of the rest.
func (d *dryRuns) tell(routes []store.Untried) {
	if len(routes) == 0 {
		return
	}
	select {
	case d.told <- routes:
	default:
	}
}

func (d *dryRuns) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case routes := <-d.told:
			for _, r := range routes {
				d.work(ctx, r)
			}
		}
	}
}

// work goes on until nothing is left of the route, or the other routes had to wait long enough.
func (d *dryRuns) work(ctx context.Context, r store.Untried) {
	s := d.route[r.Route]
	if s == nil {
		s = &dryRun{most: dryRunPage}
		d.route[r.Route] = s
	}
	for until := time.Now().Add(2 * dryRunTime); ctx.Err() == nil && time.Now().Before(until) && !time.Now().Before(s.rests); {
		if !d.step(ctx, r, s) {
			return
		}
	}
}

// step is one call. more: another may follow at once.
func (d *dryRuns) step(ctx context.Context, r store.Untried, s *dryRun) (more bool) {
	limit := min(time.Duration(r.Timeout*float64(time.Second)), dryRunAlone)
	if s.most > 1 {
		limit = min(limit, dryRunTime)
	}
	began := time.Now()
	events, late, err := d.db.DryRunTransform(ctx, r.Route, s.most, limit)
	took := time.Since(began)
	switch {
	case err != nil && store.TimedOut(err) && s.most > 1:
		s.most = 1 // which of them it is shows one by one
		return true
	case err != nil:
		if ctx.Err() == nil {
			d.log.WarnContext(ctx, "cannot try the transform of a route in dry run", "route", r.Route, "error", err)
		}
		s.rests = time.Now().Add(dryRunPause)
	case late:
		s.rests = time.Now().Add(dryRunPause)
	case took < dryRunTime/8:
		s.most = min(4*s.most, dryRunMost)
	}
	return err == nil && events > 0
}
