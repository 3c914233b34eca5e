package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// bridge runs one, and returns the option that makes a worker use it.
func bridge(t *testing.T, db *tidemarktest.DB) func(*worker.Options) {
	t.Helper()
	exec(t, db, `select tidemark.gate_set('notify.bridge_enabled', true)`)
	b := worker.NewBridge(func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, db.URL) }, testLog(t))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return func(o *worker.Options) {
		o.Wake, o.Poll = b.Waker(), nil
		o.PollMin, o.PollMax = time.Minute, time.Minute // only a signal is sooner
	}
}

// asleep: the worker holds the lock that writers look at.
const asleep = `select count(*)::text from pg_locks l join pg_database d on d.oid = l.database
	where d.datname = current_database() and l.locktype = 'advisory' and l.classid = 1953064301 and l.mode = 'ShareLock'`

// A sleeper would poll for itself in a minute.
func TestWakeUp(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"emit":      `select tidemark.emit('test', 'tick')`,
		"emit_many": `select * from tidemark.emit_many('[{"domain": "test", "type": "tick"}]')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ts := setup(t, "")
			run(t, db, ts, bridge(t, db))
			eventually(t, db, asleep, "1")
			exec(t, db, statement)
			ts["app"].wait(t, 1)
		})
	}
}

// While a worker falls asleep and wakes up again, in quick succession, no event is left to the minute either: one that
// was emitted while it was awake, and is committed when it has just polled, shows as an open number.
func TestWakeUpAgainAndAgain(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	run(t, db, ts, bridge(t, db), func(o *worker.Options) { o.PollMin = 10 * time.Millisecond })
	eventually(t, db, asleep, "1")
	for n := range 50 {
		emit(t, db, "a1")
		ts["app"].wait(t, n+1)
	}
}

// An event whose number was taken while the worker was awake, and that commits when it
// sleeps, wakes no worker: it has seen that a number is open, and polls again soon.
func TestWakeUpMissesNoLateCommit(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	late := db.Connect(t)
	if _, err := late.Exec(t.Context(), `begin; select tidemark.emit_strict('test', 'tick', '{"n": "late"}')`); err != nil {
		t.Fatal(err)
	}
	use := bridge(t, db)
	run(t, db, ts, use, func(o *worker.Options) { o.PollMin = 10 * time.Millisecond })
	eventually(t, db, asleep, "1")
	if _, err := late.Exec(t.Context(), `commit`); err != nil {
		t.Fatal(err)
	}
	ts["app"].wait(t, 1)
}

// C17: a login without grants holds the lock that says that a worker sleeps, for itself alone. Wake-up is lost for so
// long; falling asleep, the poll and stopping are not.
func TestWakeLockHeldByAStranger(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	stranger := db.Connect(t)
	if _, err := stranger.Exec(t.Context(), `select pg_advisory_lock(1953064301, 1)`); err != nil {
		t.Fatal(err)
	}
	sleeper := db.Connect(t)
	if _, err := sleeper.Exec(t.Context(), `set lock_timeout = '1ms'`); err != nil {
		t.Fatal(err)
	}
	if held, err := store.HoldWake(t.Context(), sleeper); held || err != nil {
		t.Errorf("held %t, %v: must try, and not wait", held, err)
	}
	w := run(t, db, ts, bridge(t, db), func(o *worker.Options) { o.PollMin, o.PollMax = 10*time.Millisecond, 100*time.Millisecond })
	for n := range 10 {
		emit(t, db, "a1")
		ts["app"].wait(t, n+1)
	}
	w.stop()
}

// While no worker sleeps, or the gate is closed, a commit notifies no session: its
// transaction can be prepared.
func TestNoSignalWhileAwake(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, "")
	conn := db.Connect(t)
	if _, err := conn.Exec(t.Context(), `listen tidemark_wake_test`); err != nil {
		t.Fatal(err)
	}
	exec(t, db, `select tidemark.gate_set('notify.bridge_enabled', true)`)
	emit(t, db, "a1") // awake
	sleeper := db.Connect(t)
	if _, err := sleeper.Exec(t.Context(), `select pg_advisory_lock_shared(1953064301, 1)`); err != nil {
		t.Fatal(err)
	}
	exec(t, db, `select tidemark.gate_set('notify.bridge_enabled', false)`)
	emit(t, db, "a2") // the gate is closed
	exec(t, db, `select tidemark.gate_set('notify.bridge_enabled', true)`)
	emit(t, db, "a3")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	n, err := conn.WaitForNotification(ctx)
	if err != nil || n.Channel != "tidemark_wake_test" || n.Payload != "" {
		t.Fatal(n, err)
	}
	// Only the third was signalled: nothing else is there by the time the next one comes.
	exec(t, db, `select pg_notify('tidemark_wake_test', 'end')`)
	if n, err := conn.WaitForNotification(ctx); err != nil || n.Payload != "end" {
		t.Fatal(n, err)
	}
}
