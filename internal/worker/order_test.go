package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// With ordering = key what is behind a failing event of its key waits, however much it is and
// although the target would take it; other keys go on.
func TestOrderOfKey(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key", "retry_policy": {"base_seconds": 0.05, "max_attempts": 100}`) // attempts enough for hours
	release := make(chan struct{})
	ts["app"].answers(func(_ context.Context, d sink.Delivery) sink.Result {
		select {
		case <-release:
		default:
			if arrivedAs([]sink.Delivery{d}) == "a1" {
				return sink.Result{Status: sink.Retry, Code: "http_503", Detail: "not now"}
			}
		}
		return sink.Result{Status: sink.Delivered}
	})
	run(t, db, ts)
	emit(t, db, "a1", "a2", "b1")
	ts["app"].wait(t, 1)
	want := "b1 b2 a1 a2"
	for n := 3; n <= 120; n++ {
		emit(t, db, fmt.Sprintf("a%d", n))
		want += fmt.Sprintf(" a%d", n)
	}
	emit(t, db, "b2")
	if got := arrivedAs(ts["app"].wait(t, 2)); got != "b1 b2" {
		t.Errorf("got %s", got)
	}
	eventually(t, db, `select count(*) || ' behind' from tidemark.pending where next_attempt_at = 'infinity'`, "119 behind")
	close(release)
	eventually(t, db, settled, "true")
	if got := arrivedAs(ts["app"].wait(t, 122)); got != want {
		t.Errorf("got %s", got)
	}
}

// A replay that fails again is outside the order of its key: live events of the key go on, those
// that were pending too.
func TestReplayHoldsUpNoLiveEvent(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key", "retry_policy": {"max_attempts": 100}`)
	ts["app"].answers(func(_ context.Context, d sink.Delivery) sink.Result {
		switch {
		case d.Replay:
			return sink.Result{Status: sink.Retry, After: time.Hour, Code: "http_503", Detail: "not now"}
		case d.Event.Seq == 1:
			return sink.Result{Status: sink.Permanent, Code: "http_400", Detail: "never"}
		}
		return sink.Result{Status: sink.Delivered}
	})
	i := run(t, db, ts)
	emit(t, db, "a1")
	eventually(t, db, `select count(*)::text from tidemark.dead_letter`, "1")
	i.stop()

	exec(t, db, `select tidemark.dead_letter_replay(1)`)
	emit(t, db, "a2")
	exec(t, db, `insert into tidemark.pending (worker_id, route_id, seq, key) select worker_id, route_id, 2, key from tidemark.pending`)
	exec(t, db, `update tidemark.worker_cursor set watermark_id = '2', decided_through = '2'`)
	emit(t, db, "a3")
	run(t, db, ts)
	if got := arrivedAs(ts["app"].wait(t, 2)); got != "a2 a3" {
		t.Errorf("got %s", got)
	}
	eventually(t, db, `select concat_ws(' ', seq, error_count, replay) from tidemark.pending`, "1 1 t")
	ts["app"].answers(nil)
	exec(t, db, `update tidemark.pending set next_attempt_at = clock_timestamp()`)
	eventually(t, db, `select coalesce(resolution, 'open') from tidemark.dead_letter`, "sent")
}

// More keys wait than a worker holds in memory. An event without a key changes nothing; keys that
// it does not hold go by way of the database; and when few wait, it is exact again.
func TestUncountedKeys(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	exec(t, db, `insert into tidemark.pending (worker_id, route_id, seq, key, next_attempt_at)
		select w.id, r.id, -n, 'k' || n, clock_timestamp() + interval '1 hour' from tidemark.worker w, tidemark.outbound_route r, generate_series(1, $1::integer) n
		where w.worker = 'default'`, store.MaxKeys+1)
	run(t, db, ts)
	emit := func(key string) {
		t.Helper()
		exec(t, db, `select tidemark.emit_strict('test', 'tick', '{}', key => nullif($1, ''))`, key)
	}
	attempts := func(key string) string {
		t.Helper()
		return `select concat_ws(' ', a.seq, a.attempt_no, a.outcome, a.reason) from tidemark.route_attempt a join tidemark.outbox o on o.seq = a.seq
			where o.key = '` + key + `' order by a.seq, a.attempt_no`
	}
	emit("")
	ts["app"].wait(t, 1)
	emit("k50")
	emit("new")
	if got := ts["app"].wait(t, 2); got[1].Event.Key != "new" {
		t.Errorf("got %s", got[1].Event.Key)
	}
	eventually(t, db, attempts("new"), "3 1 pending behind_key", "3 2 sent")
	eventually(t, db, attempts("k50"), "2 1 pending behind_key")

	exec(t, db, `delete from tidemark.pending where seq < 0 and key <> 'k50'`)
	const sent = `select o.key from tidemark.route_attempt a join tidemark.outbox o on o.seq = a.seq where a.outcome = 'sent'`
	n := 0
	for deadline := time.Now().Add(time.Minute); ; n++ {
		key := fmt.Sprintf("exact%d", n)
		emit(key)
		ts["app"].wait(t, 3+n)
		eventually(t, db, `select key from (`+sent+`) s where key = '`+key+`'`, key)
		if len(texts(t, db, attempts(key))) == 1 {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("it still counts every key as one that waits")
		}
	}
	emit("k50")
	eventually(t, db, `select count(*)::text from tidemark.pending where key = 'k50' and next_attempt_at = 'infinity'`, "2")
	exec(t, db, `delete from tidemark.pending where seq < 0`)
	exec(t, db, `update tidemark.pending set next_attempt_at = clock_timestamp()`)
	eventually(t, db, settled, "true")
	if got := ts["app"].wait(t, 5+n); got[3+n].Event.Key != "k50" || got[4+n].Event.Key != "k50" || got[3+n].Event.Seq > got[4+n].Event.Seq {
		t.Errorf("got %v", got[3+n:])
	}
}
