package test

import (
	"context"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// RW4: the second instance backs off while the first is in a pass, and a first that dies leaves nothing
// behind.
func TestSecondInstanceBacksOff(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, second, a := live(t, db), open(t, db, "second"), open(t, db, "a")
	a.emit(1)
	a.emit(2)

	w.begin()
	w.pass()
	a.emit(3)
	if got := second.pass(); got.Status != "busy" || got.Events != 0 {
		t.Errorf("second instance: %+v, want busy", got)
	}
	second.exec("select pg_terminate_backend($1)", w.conn.PgConn().PID())
	for second.pass().Status == "busy" { // until the server has taken the dead one down
	}
	second.wantReceived(1, 2, 3)
}

// CU7: an owner that was paused while another took over can settle nothing.
func TestStaleOwnerIsFenced(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a := live(t, db), open(t, db, "a")
	a.emit(1)

	var epoch int64
	if err := w.conn.QueryRow(t.Context(), `select epoch from tidemark.claim('default')`).Scan(&epoch); err != nil {
		t.Fatal(err)
	}
	settle := `select tidemark.settle('default', $1, b, '{}', '{}') from tidemark.read_outbox('default', 10) b`
	a.pass()
	_, err := w.conn.Exec(context.Background(), settle, epoch)
	wantCode(t, err, "TM011")
	a.wantReceived(1)
}

// The fence holds from the check to the commit: no instance takes the lease over in between, however long
// it is out; and a check waits for a takeover under way.
func TestNoTakeoverBetweenCheckAndCommit(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, old, other := live(t, db), open(t, db, "old"), open(t, db, "other")
	w.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}'`)
	w.emit(1)
	claim := func(s session, owner string) string {
		t.Helper()
		return one[string](s, `select status || ' ' || coalesce(epoch, 0) from tidemark.claim('default', $1, '1 minute')`, owner)
	}
	const settle = `select tidemark.settle('default', 1, b, '{}', '{}') from tidemark.read_outbox('default', 10) b`
	equal(t, "old", claim(old, "old"), "claimed 1")
	w.exec(`update tidemark.heartbeat set lease_until = clock_timestamp()`)

	old.begin()
	old.exec(settle)
	equal(t, "while the old one settles", claim(other, "other"), "busy 0")
	old.commit()
	w.wantRows(`select watermark_id from tidemark.worker_cursor`, "1")

	w.emit(2)
	other.begin()
	equal(t, "other", claim(other, "other"), "claimed 2")
	settled := make(chan error)
	go func() {
		_, err := old.conn.Exec(context.Background(), settle)
		settled <- err
	}()
	w.waitsFor(old)
	other.commit()
	wantCode(t, <-settled, "TM011")
	w.wantRows(`select watermark_id from tidemark.worker_cursor`, "1")
}
