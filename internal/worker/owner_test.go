package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// An owner that was paused past its lease records nothing, and says so.
func TestFencedOwner(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	began, next := make(chan struct{}), make(chan struct{})
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result {
		began <- struct{}{}
		<-next
		return sink.Result{Status: sink.Delivered}
	})
	run(t, db, ts)
	emit(t, db, "a1")
	<-began
	exec(t, db, `update tidemark.heartbeat set lease_epoch = lease_epoch + 1, lease_owner = 'another', lease_until = now() + interval '1 second'`)
	close(next)
	eventually(t, db, `select kind || ' ' || (detail ~ 'reported by pid \d+, application "[^"]*", user \w+; the lease is of another, epoch \d+, until 2')
		from tidemark.finding where closed_at is null`, "cursor_lease_conflict true")
	ts["app"].answers(nil)
	eventually(t, db, settled, "true") // once the other one's lease is over
	if got := arrivedAs(ts["app"].wait(t, 2)); got != "a1 a1" {
		t.Errorf("got %s", got)
	}
	eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
}

// Two instances take turns: the second waits, and takes over when the first stops.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	first := run(t, db, ts)
	emit(t, db, "a1")
	ts["app"].wait(t, 1)
	second := run(t, db, ts)
	emit(t, db, "a2")
	ts["app"].wait(t, 2)
	first.stop()
	emit(t, db, "a3")
	if got := arrivedAs(ts["app"].wait(t, 3)); got != "a1 a2 a3" {
		t.Errorf("got %s", got)
	}
	second.stop()
	eventually(t, db, evidence, "app 1 1 sent", "app 2 1 sent", "app 3 1 sent")
}

// The cursor is moved by hand while a page is out. The worker gives the lease back and stays held: what it skipped would
// never be decided.
func TestHeldWorkerReleases(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	let := make(chan struct{})
	ts["app"].answers(func(context.Context, sink.Delivery) sink.Result { <-let; return sink.Result{Status: sink.Delivered} })
	run(t, db, ts)
	emit(t, db, "a1")
	eventually(t, db, `select (lease_owner is not null)::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`, "true")
	exec(t, db, `update tidemark.worker_cursor set watermark_id = '1000'`)
	close(let)

	const held = `select concat_ws(' ', last_status, coalesce(lease_owner, 'free'), lease_epoch) from tidemark.heartbeat where executor_id = 'default/outbox/0'`
	eventually(t, db, held, "held free 1")
	emit(t, db, "a2")
	ticks := texts(t, db, `select ticks_total::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`)[0]
	eventually(t, db, `select (ticks_total >= `+ticks+` + 20)::text from tidemark.heartbeat where executor_id = 'default/outbox/0'`, "true")
	// Each claim counts the finding. The poll sends the heartbeats of the worker, and does not wake it.
	eventually(t, db, `select (count <= 10)::text from tidemark.finding where kind = 'cursor_watermark_regression'`, "true")
	eventually(t, db, held, "held free 1")
	eventually(t, db, evidence)
	eventually(t, db, `select watermark_id || ' ' || decided_through from tidemark.worker_cursor`, "1000 0")
	const open = `select kind || ' ' || severity from tidemark.finding where closed_at is null`
	eventually(t, db, open, "cursor_watermark_regression high")

	exec(t, db, `select tidemark.worker_rewind('default', 0, 'the edit was a mistake')`)
	eventually(t, db, evidence, "app 1 1 sent", "app 2 1 sent")
	eventually(t, db, open)
}

// lateClaims is a pool whose answers to claims come when the test lets them.
type lateClaims struct {
	*pgxpool.Pool
	let chan struct{}
}

func (l lateClaims) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	row := l.Pool.QueryRow(ctx, sql, args...)
	if strings.Contains(sql, "tidemark.claim(") {
		return lateRow{row, ctx, l.let}
	}
	return row
}

type lateRow struct {
	pgx.Row
	ctx context.Context //nolint:containedctx // of the question
	let chan struct{}
}

func (r lateRow) Scan(into ...any) error {
	if err := r.Row.Scan(into...); err != nil {
		return err
	}
	select {
	case <-r.ctx.Done():
	case <-r.let:
	}
	return r.ctx.Err()
}

// A worker that is told to stop while the answer to its claim is under way gives back the lease that it was given.
func TestStopDuringClaim(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T, db *tidemarktest.DB, pool lateClaims) (cancel, stop func()){
		"log": func(t *testing.T, db *tidemarktest.DB, pool lateClaims) (cancel, stop func()) {
			t.Helper()
			i := runOn(t, db, pool, targets{"app": newTarget()})
			return i.cancel, i.stop
		},
		"table": func(t *testing.T, db *tidemarktest.DB, pool lateClaims) (cancel, stop func()) {
			t.Helper()
			exec(t, db, births)
			return runTableOn(t, db, pool, time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, _ := setup(t, "")
			pool := lateClaims{db.Pool, make(chan struct{})}
			cancel, stop := start(t, db, pool)
			const leased = `select executor_id from tidemark.heartbeat where lease_owner is not null`
			const claimed = `select (count(*) > 0)::text from (` + leased + `) l`
			eventually(t, db, claimed, "true")
			cancel()
			close(pool.let)
			stop()
			if got := texts(t, db, leased); len(got) > 0 {
				t.Errorf("still leased: %s", got)
			}
		})
	}
}
