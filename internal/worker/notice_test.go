package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/deliver"
	"github.com/tidemarkhq/tidemark/internal/store"
)

const openFindings = `select subject from tidemark.finding where kind = 'target_down' and closed_at is null order by 1`

// Another instance told of a target, and is gone. The one that comes after it tells how the target is, though it had told so
// before: else the finding would be open for ever.
func TestFindingOfAnotherInstance(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	down := `select tidemark.worker_finding('default', 'target_down', 'app', 'it was down for the other one')`
	exec(t, db, down)
	run(t, db, ts)
	emit(t, db, "a1")
	eventually(t, db, openFindings) // told

	exec(t, db, down)
	exec(t, db, `update tidemark.heartbeat set lease_epoch = lease_epoch + 1, lease_until = now() where executor_id = tidemark.executor_id('default', 'outbox', 0)`)
	emit(t, db, "a2")
	eventually(t, db, openFindings)
}

// What cannot be told is told the next time, all of it and in its order.
func TestReportThatFails(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	ts["other"] = newTarget()
	route(t, db, "other", "")
	emit(t, db, "a1")
	exec(t, db, `select tidemark.worker_finding('default', 'target_down', code, 'x') from unnest('{app,other}'::text[]) code`)

	c := store.NewCursor(db.Pool, "default", 0, "test", time.Minute)
	if claim, err := c.Claim(t.Context()); err != nil || claim.Status != "claimed" {
		t.Fatal(claim, err)
	}
	d := deliver.New(ts, always{}, silent{})
	t.Cleanup(func() { _ = d.Close() })
	d.Begin(nil)
	var routes []store.Route
	for _, code := range []string{"app", "other"} {
		routes = append(routes, store.Route{ID: int32(len(routes) + 1), RouteCode: code, TargetRef: code, Ordering: "none", Seconds: 60, Concurrency: 1})
	}
	item := store.Item{Event: tidemark.Event{Seq: 1}, Routes: []int32{1, 2}, Attempt: 1, Fresh: true}
	d.Act(t.Context(), &store.Page{Routes: routes, Items: []store.Item{item}})
	d.Quiesce()
	d.Collect()

	over, cancel := context.WithCancel(t.Context())
	cancel()
	d.Report(over, c)
	if open := texts(t, db, openFindings); len(open) != 2 {
		t.Fatalf("open: %q", open)
	}
	d.Report(t.Context(), c)
	if open := texts(t, db, openFindings); len(open) != 0 {
		t.Errorf("still open: %q", open)
	}
}

// An instance that was fenced has nothing to say of a target any more: its word would stand against that of its successor.
func TestReportOfAFencedInstance(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, "")
	old := store.NewCursor(db.Pool, "default", 0, "old", time.Minute)
	if _, err := old.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, db, `update tidemark.heartbeat set lease_epoch = lease_epoch + 1 where executor_id = tidemark.executor_id('default', 'outbox', 0)`)
	if err := old.HeldFinding(t.Context(), "target_down", "app", "late", ""); !store.Is(err, tidemark.ErrFenced) {
		t.Errorf("error: %v", err)
	}
	if open := texts(t, db, openFindings); len(open) != 0 {
		t.Errorf("open: %q", strings.Join(open, ", "))
	}
}

type always struct{}

func (always) Allows(int32) bool        { return true }
func (always) AllowsDomain(string) bool { return true }
func (always) Changed() <-chan struct{} { return nil }
func (always) Epoch() int64             { return 1 }
