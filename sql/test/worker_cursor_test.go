package test

// The cursor's rule (sql/code/worker/read_outbox.sql), point by point, as interleavings of named sessions. Where a
// point is there against an unsound form, the form is tried too, and loses.

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CU2: number 1 commits after number 2 was delivered.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")

	a.begin()
	a.emit(1)
	b.emit(2)
	w.pass()
	w.wantReceived(2)
	w.wantHoles("{[1,2)}")

	a.commit()
	if got := w.pass(); got.Late != 1 || got.Events != 1 {
		t.Errorf("%+v, want one late event", got)
	}
	w.wantReceived(2, 1)
	w.wantHoles("{}")
}

// Rule 1: one snapshot for holes and new numbers. Key k's events 1 and 3 are in holes and above the
// watermark; they go out in order, in one batch.
func TestLateCommitKeepsOrderOfKey(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")

	a.begin()
	a.emitKey(1, "k")
	b.emit(2)
	w.pass()
	a.commit()
	b.emitKey(3, "k")
	w.pass()
	w.wantReceived(2, 1, 3)
}

// A late transaction larger than a batch: the batches take it in order, before anything newer, and no part
// of it is dropped because its fence has closed.
func TestLateCommitLargerThanBatch(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")

	want := []int{1000}
	a.begin()
	for n := range 25 {
		a.emit(n)
		want = append(want, n)
	}
	b.emit(1000)
	w.passLimit(10)
	a.commit()
	b.emit(1001)
	for range 3 {
		w.passLimit(10)
	}
	w.wantReceived(append(want, 1001)...)
	w.wantHoles("{}")
}

// pauseAt makes the pass wait for the advisory lock 1 just before the text.
func pauseAt(w session, before string) {
	w.t.Helper()
	w.rewrite("read_outbox", before, "perform pg_advisory_xact_lock(1);\n    "+before)
}

const (
	theFenceCheck = "closed := tidemark.fence_closed(c.fence);"
	theRead       = "if isempty(below) and not c.filters and c.shards = 1 then"
	theFence      = "if isempty(b.fenced) then"
)

// Rule 2: the fence is noted after the read. The writer of number 1 begins after the pass has begun; noted
// first, the fence would not have it, and its number would be dropped.
func TestFenceIsNotedAfterTheRead(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, prepare func(w session)) []int {
		db := tidemarktest.NewDB(t)
		w, a, b, gate := live(t, db), open(t, db, "a"), open(t, db, "b"), open(t, db, "gate")
		prepare(w)

		gate.exec("select pg_advisory_lock(1)")
		passed := make(chan struct{})
		go func() { w.pass(); close(passed) }()
		gate.waitsFor(w)
		a.begin()
		a.emit(1)
		b.emit(2)
		gate.exec("select pg_advisory_unlock(1)")
		<-passed
		w.pass()
		a.commit()
		w.pass()
		return w.received()
	}

	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		got := run(t, func(w session) { pauseAt(w, theRead) })
		if len(got) != 2 {
			t.Errorf("received %v, want 2 and 1", got)
		}
	})
	t.Run("noted before the read", func(t *testing.T) {
		t.Parallel()
		got := run(t, func(w session) {
			w.rewrite("read_outbox", "else tidemark.fence_now() end;", "else b.fence end;")
			w.rewrite("read_outbox", theRead, "b.fence := tidemark.fence_now(); perform pg_advisory_xact_lock(1);\n"+theRead)
		})
		if len(got) != 1 {
			t.Errorf("received %v: the unsound form should have lost event 1", got)
		}
	})
}

// Rule 3: the holes are read again in a statement after the one that saw the fence closed. In one that came
// before, a transaction that commits in between is neither seen nor waited for.
func TestHolesAreReadAgainAfterTheFenceClosed(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, prepare func(w session)) []int {
		db := tidemarktest.NewDB(t)
		w, a, b, gate := live(t, db), open(t, db, "a"), open(t, db, "b"), open(t, db, "gate")
		a.begin()
		a.emit(1)
		b.emit(2)
		w.pass()
		prepare(w)

		gate.exec("select pg_advisory_lock(1)")
		passed := make(chan struct{})
		go func() { w.pass(); close(passed) }()
		gate.waitsFor(w)
		a.commit()
		gate.exec("select pg_advisory_unlock(1)")
		<-passed
		w.pass()
		return w.received()
	}

	t.Run("ours, commit before the check", func(t *testing.T) {
		t.Parallel()
		if got := run(t, func(w session) { pauseAt(w, theFenceCheck) }); len(got) != 2 {
			t.Errorf("received %v, want 2 and 1", got)
		}
	})
	t.Run("ours, commit between check and read", func(t *testing.T) {
		t.Parallel()
		if got := run(t, func(w session) { pauseAt(w, theRead) }); len(got) != 2 {
			t.Errorf("received %v, want 2 and 1", got)
		}
	})
	t.Run("checked after the read", func(t *testing.T) {
		t.Parallel()
		got := run(t, func(w session) {
			w.rewrite("read_outbox", theFenceCheck, "")
			w.rewrite("read_outbox", "b.fenced := case when not closed",
				"perform pg_advisory_xact_lock(1); closed := tidemark.fence_closed(c.fence);\n    b.fenced := case when not closed")
		})
		if len(got) != 1 {
			t.Errorf("received %v: the unsound form should have lost event 1", got)
		}
	})
}

func TestRolledBackNumberIsDropped(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")

	a.begin()
	a.emit(1)
	b.emit(2)
	w.pass()
	w.wantHoles("{[1,2)}")
	a.rollback()
	w.pass()
	w.wantHoles("{}")
	w.wantReceived(2)
}

// A savepoint gives its lock back when it is rolled back, and takes a new one with the next event.
func TestSavepoints(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")

	a.begin()
	a.exec("savepoint s")
	a.emit(1)
	a.exec("rollback to savepoint s")
	b.emit(2)
	w.pass()
	w.pass()
	w.wantHoles("{}")

	a.exec("savepoint s")
	a.emit(3)
	a.exec("release savepoint s")
	b.emit(4)
	a.exec("savepoint s")
	a.emit(5)
	a.exec("rollback to savepoint s")
	b.emit(6)
	w.pass()
	w.pass()
	w.wantReceived(2, 4, 6)
	a.commit()
	w.pass()
	w.wantReceived(2, 4, 6, 3)
	w.pass()
	w.wantHoles("{}")
}

// Rule 4: a prepared transaction belongs to no session, and after a restart has another virtual id. Its
// number stays open until it ends, either way.
func TestPreparedTransaction(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{Durable: true, Settings: map[string]string{"max_prepared_transactions": "5"}})
	db := tidemarktest.NewDBAt(t, server.URL("postgres"))
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")

	a.begin()
	a.emit(1)
	b.emit(2)
	w.pass()
	a.prepare("one")
	w.pass()
	w.pass()
	w.wantHoles("{[1,2)}")
	a.begin()
	a.emit(3)
	a.prepare("three")
	b.emit(4)
	w.pass()

	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, b = open(t, db, "worker"), open(t, db, "b")
	w.pass()
	w.pass()
	w.wantReceived(2, 4)
	b.exec("rollback prepared 'three'")
	w.pass()
	b.exec("commit prepared 'one'")
	w.pass()
	w.wantReceived(2, 4, 1)
	w.pass()
	w.pass()
	w.wantHoles("{}")
}

func TestPreparedTransactionTakenForEnded(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")
	w.rewrite("fence_closed", "or l.pid is null", "and l.pid is not null")
	a.begin()
	a.emit(1)
	b.emit(2)
	a.prepare("one " + db.Name)
	w.pass()
	w.pass()
	b.exec("commit prepared 'one " + db.Name + "'")
	w.pass()
	if got := w.received(); len(got) != 1 {
		t.Errorf("received %v: the unsound form should have lost event 1", got)
	}
}

// Rule 5: xmax of a snapshot is the last completed transaction plus one. The owner of number 1 has an id at
// or above it, runs, and is in no list of the snapshot: compared with xmax it would look like the future.
func TestSnapshotXmaxIsNotTheNextID(t *testing.T) {
	t.Parallel()
	// Transaction ids belong to the cluster: in this test no other session uses one up.
	server := testserver.New(t, devpg.Options{Settings: map[string]string{"autovacuum": "off"}})
	db := tidemarktest.NewDBAt(t, server.URL("postgres"))
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")

	b.begin()
	b.exec("select pg_current_xact_id()")
	a.begin()
	a.exec("select pg_current_xact_id()")
	a.emit(1)
	b.emit(2)
	b.commit()

	var looksOver bool
	err := b.conn.QueryRow(t.Context(), `select pg_snapshot_xmin(pg_current_snapshot()) >= pg_snapshot_xmax(pg_current_snapshot())`).Scan(&looksOver)
	if err != nil {
		t.Fatal(err)
	}
	if !looksOver {
		t.Fatal("the snapshot shows a running transaction: the hazard is not set up")
	}
	w.pass()
	w.pass()
	w.wantHoles("{[1,2)}")
	a.commit()
	w.pass()
	w.wantReceived(2, 1)
}

// Rule 6.
func TestWrongIsolationLevel(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a := live(t, db), open(t, db, "a")
	a.emit(1)
	for _, level := range []string{"repeatable read", "serializable"} {
		w.exec("begin isolation level " + level)
		_, err := w.conn.Exec(t.Context(), `select tidemark.route_worker_run()`)
		wantCode(t, err, "TM006")
		w.rollback()
	}
	w.wantReceived()
	w.pass()
	w.wantReceived(1)
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != code {
		t.Errorf("error %v, want code %s", err, code)
	}
}

// Rule 8: at the limit the cursor waits, names the transactions to blame, and goes on when they have ended.
func TestHoleLimit(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a, b := live(t, db), open(t, db, "a"), open(t, db, "forgotten report")
	w.exec(`select tidemark.worker_set('default', '{"hole_limit": 3}')`)

	b.begin()
	b.emit(1)
	for n := range 4 {
		a.emit(10 + n)
		a.begin()
		a.emit(20 + n)
		a.rollback()
	}
	a.emit(14)
	w.pass()
	a.emit(15)
	blocked := w.pass()
	if !strings.Contains(blocked.BlockedBy, `application "forgotten report"`) {
		t.Errorf("blocked_by %q does not name the session", blocked.BlockedBy)
	}
	w.wantReceived(10, 11, 12, 13, 14)

	var open int
	finding := `select count(*) from tidemark.finding where kind = 'cursor_holes' and subject = 'default' and closed_at is null
	            and detail like '%forgotten report%'`
	if err := w.conn.QueryRow(t.Context(), finding).Scan(&open); err != nil || open != 1 {
		t.Errorf("%d open findings (%v), want 1", open, err)
	}
	b.commit()
	w.pass()
	w.wantReceived(10, 11, 12, 13, 14, 1, 15)
	w.pass()
	w.wantHoles("{}")
	if err := w.conn.QueryRow(t.Context(), finding).Scan(&open); err != nil || open != 0 {
		t.Errorf("%d open findings (%v), want none", open, err)
	}
}

// The source's sketch: rows locked with SKIP LOCKED, one high-water mark for all. The second instance steps
// over what the first has locked and moves the mark; the first dies; its rows are behind the mark.
func TestSkipLockedSketchLosesEvents(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	live(t, db)
	first, second, a := open(t, db, "first"), open(t, db, "second"), open(t, db, "a")
	a.exec(`
create table sketch_cursor (seq bigint not null);
insert into sketch_cursor values (0);
create function sketch_run(n int) returns void language plpgsql as $$
declare r record; mark bigint;
begin
    select seq into mark from sketch_cursor;
    for r in select o.* from tidemark.outbox o where o.seq > mark order by o.seq limit n for update skip locked loop
        perform receive((select tidemark.event_json(o) from tidemark.outbox o where o.seq = r.seq));
        mark := r.seq;
    end loop;
    update sketch_cursor set seq = greatest(seq, mark);
end $$`)
	for n := range 4 {
		a.emit(n)
	}
	first.begin()
	first.exec("select receive(tidemark.event_json(o)) from (select * from tidemark.outbox order by seq limit 2 for update skip locked) o")
	second.exec("select sketch_run(2)")
	first.exec("rollback") // it dies
	second.exec("select sketch_run(10)")
	second.wantReceived(2, 3)
	if got := second.received(); len(got) != 2 {
		t.Errorf("received %v: the sketch should have lost events 0 and 1", got)
	}
}

// CU6: a cursor that is set back by hand is held, also in the middle of a rewind, until an operator accepts a place. It reads again from there, and neither
// delivers nor records anything twice.
func TestWatermarkSetBackByHand(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	const findings = `select concat_ws(' ', kind, severity, subject) from tidemark.finding where closed_at is null`
	held := func(back int, left string) {
		t.Helper()
		w.exec(`update tidemark.worker_cursor set watermark_id = $1::integer::text`, back)
		got := w.passLimit(2)
		equal(t, "pass", got.Status+": "+got.Detail, fmt.Sprintf("held: the watermark is %d, and was left at %s: it was edited by hand, or restored. Accept a place with tidemark.worker_rewind", back, left))
		w.wantRows(findings, "cursor_watermark_regression high default")
		w.wantRows(`select tidemark.log_next('default', 0)`, "edited")
		w.refused("TM012", "was left at "+left, `select tidemark.read_outbox('default', 2)`)
		w.exec(`select tidemark.worker_rewind('default', $1, 'accepted')`, back)
		equal(t, "pass", w.passLimit(2).Status, "ran")
		w.wantRows(findings)
	}
	for n := range 6 {
		w.emit(n + 1)
	}
	w.pass()
	held(1, "6")
	held(0, "3")
	w.exec(`select tidemark.worker_rewind('default', 0, 'a test')`)
	w.emit(7)
	for range 4 {
		equal(t, "pass", w.passLimit(2).Status, "ran")
	}
	w.wantReceived(1, 2, 3, 4, 5, 6, 7)
	w.wantRows(`select concat_ws(' ', watermark_id, decided_through, rewound_to) from tidemark.worker_cursor`, "7 7")
	w.wantRows(`select concat_ws(' ', count(*), count(distinct (idempotency_key, attempt_no))) from tidemark.route_attempt`, "7 7")
	w.wantRows(allVerified)

	// While a page is under way.
	w.emit(8)
	epoch := one[int64](w, `select epoch from tidemark.claim('default')`)
	w.exec(`create temp table page as select b from tidemark.read_outbox('default', 10) b`)
	w.exec(`update tidemark.worker_cursor set watermark_id = '3'`)
	w.wantRows(fmt.Sprintf(`select tidemark.settle('default', %d, b, '{}', '{}') ->> 'status' from page`, epoch), "held")
	w.wantRows(findings, "cursor_watermark_regression high default")
	w.wantRows(`select watermark_id from tidemark.worker_cursor`, "3")
}
