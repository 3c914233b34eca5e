package consumer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(time.Minute); !ok(); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute: ", what)
		}
	}
}

// once checks that each command had one effect, in the order of its key, and one answer.
func (w *world) once(each int) {
	w.t.Helper()
	var want []string
	for k := range keys {
		var list []string
		for n := range each {
			list = append(list, fmt.Sprint(k*each+n))
		}
		want = append(want, fmt.Sprintf("k%02d %s", k, strings.Join(list, ",")))
	}
	w.eventually(`select key || ' ' || string_agg(id::text, ',' order by n) from app.effect group by key order by key`, want...)
	w.eventually(`select concat_ws(' ', count(*), count(distinct payload ->> 'idempotency_key')) from tidemark.outbox where type like 'result.%' and payload ->> 'status' = 'processed'`,
		fmt.Sprint(keys*each, " ", keys*each))
}

// keys is how many keys the commands of a test of order have.
const keys = 12

// sendKeyed sends each key's commands with numbers from first to before last, a key to its partition of four.
func (w *world) sendKeyed(each, first, last int) {
	w.t.Helper()
	for n := first; n < last; n++ {
		for k := range keys {
			id := k*each + n
			w.send(int32(k)%4, &kgo.Record{
				Key:   fmt.Appendf(nil, "k%02d", k),
				Value: w.envelope(fmt.Sprint("i", id), fmt.Sprintf(`{"id": %d, "key": "k%02d"}`, id, k), nil),
			})
		}
	}
}

// CM4, RW12: rebalances, and an instance whose sessions are cut in the middle: one effect for each command, in the order of its key.
func TestConsumerRebalance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	const each = 20
	stop, _ := w.run()
	w.sendKeyed(each, 0, 4)
	_, kill := w.run()
	w.sendKeyed(each, 4, 8)
	w.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query ~ 'command_pass'`)
	w.sendKeyed(each, 8, 12)
	stop()
	w.run()
	w.sendKeyed(each, 12, 16)
	kill()
	w.sendKeyed(each, 16, 20)
	w.once(each)

	// Partitions that are added are taken up.
	if _, err := kadm.NewClient(w.client).CreatePartitions(t.Context(), 2, w.topic); err != nil {
		t.Fatal(err)
	}
	until(t, "the new partition", func() bool {
		w.connect(w.seeds) // which has not asked how many there are
		r := w.make("new", 9999)
		r.Topic, r.Partition = w.topic, 5
		return w.client.ProduceSync(t.Context(), r).FirstErr() == nil
	})
	w.eventually(`select id::text from app.effect where id = 9999`, "9999")
}

// The daemon is gone between the execution and the commit, or after it: the command has one effect.
func TestConsumerCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.run()
	w.send(0, &kgo.Record{Value: w.envelope("a", `{"id": 1, "sleep": 0.5}`, nil)}, w.make("b", 2))
	until(t, "the session is cut", func() bool {
		return len(w.rows(`select pg_terminate_backend(pid)::text from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
			and wait_event = 'PgSleep'`)) > 0
	})
	w.eventually(results, "processed a", "processed b")
	w.eventually(made, "1", "2")
	w.eventually(`select attempts::text from tidemark.command_claim where idempotency_key = 'a'`, "1")
}

// CM8: a second instance that has the lease fences the first, whose pass then has no effect.
func TestConsumerFenced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.run()
	w.send(0, w.make("a", 1))
	w.eventually(made, "1")
	// As if another had taken over while this one was paused.
	w.exec(`update tidemark.heartbeat set lease_epoch = lease_epoch + 1, lease_owner = 'other', lease_until = clock_timestamp() + interval '2 seconds' where executor_id = 'commands/kafka:' || $1 || '/0'`, w.topic)
	w.send(0, w.make("b", 2))
	w.eventually(`select kind from tidemark.finding where kind = 'cursor_lease_conflict'`, "cursor_lease_conflict")
	w.eventually(made, "1", "2")
	w.eventually(results, "processed a", "processed b")
}

// A function that does not return is recorded as too slow, and holds up nothing for longer.
func TestConsumerTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.run()
	w.send(0, w.make("a", 1), &kgo.Record{Value: w.envelope("b", `{"id": 2, "sleep": 1000}`, nil)}, w.make("c", 3))
	w.eventually(results, "processed a", "failed_retryable runtime.timeout b", "processed c")
	w.eventually(made, "1", "3")
	// Tried again, it is given up; what was parked meanwhile is tried nevertheless.
	w.eventually(`select concat_ws(' ', state, error_code) from tidemark.command_claim where idempotency_key = 'b'`, "failed_terminal runtime.timeout")
	w.eventually(made, "1", "3")
}
