package consumer_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// CM4, CM5, CM7: each record has its effect once, its answer, or its dead letter; the offset of PostgreSQL says how far.
func TestConsumer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	stop, _ := w.run()
	w.send(0,
		w.make("a", 1), w.make("b", 1), // the second violates a constraint
		&kgo.Record{Key: []byte{0, 1}, Value: []byte("\xff{"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte{0}}}},
		w.make("c", 2),
		&kgo.Record{Value: w.envelope("d", `{"id": 3}`, map[string]any{"service": "other"})},
		&kgo.Record{Value: w.envelope("e", `{"id": 3}`, map[string]any{"trace_id": nil})},
		w.make("f", 3))
	w.eventually(offsets, "kafka:"+w.topic+"/0 7")
	w.eventually(made, "1", "2", "3")
	w.eventually(results, "processed a", "failed_terminal sql.constraint b", "processed c", "rejected envelope.invalid e", "processed f")
	w.eventually(`select concat_ws(' ', l.error_code, r."offset", encode(r.key, 'hex'), case when r.event_id is null then encode(r.value, 'hex') end, r.headers) from tidemark.dead_letter l
		join tidemark.command_record r on l.idempotency_key = 'tm:commands:' || r.id order by r.id`,
		`sql.constraint 1 []`, `envelope.invalid 2 0001 ff7b [["h", "AA=="]]`, `identity.topic_mismatch 4 []`)

	// A resend elsewhere is a duplicate, another command under the key is refused.
	w.send(1, w.make("a", 1), w.make("a", 9))
	w.eventually(offsets, "kafka:"+w.topic+"/0 7", "kafka:"+w.topic+"/1 2")
	w.eventually(results, "processed a", "failed_terminal sql.constraint b", "processed c", "rejected envelope.invalid e", "processed f", "duplicate a", "failed_terminal idempotency.key_reused a")
	stop()
	w.eventually(`select executor_id from tidemark.heartbeat where lease_owner is not null`)

	// The same records again: they are silent.
	w.exec(`select tidemark.command_seek($1, 0, 0, 'test')`, w.topic)
	w.run()
	w.eventually(offsets, "kafka:"+w.topic+"/0 7", "kafka:"+w.topic+"/1 2")
	w.eventually(made, "1", "2", "3")
	w.eventually(`select count(*)::text from tidemark.outbox where type like 'result.%' and payload ->> 'error_code' is distinct from 'envelope.invalid'`, "6")
	w.eventually(`select kind from tidemark.finding where closed_at is null and kind not in ('command_letters')`)
}

// CM4: a poison command in the middle of a page: the others take effect once, in their order.
func TestConsumerPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var all []*kgo.Record
	var want []string
	for n := range 120 {
		r := w.make(fmt.Sprint("k", n), n)
		if n%37 == 20 {
			r.Value = w.envelope(fmt.Sprint("k", n), `{"id": "no number"}`, nil)
		} else {
			want = append(want, fmt.Sprint(n))
		}
		all = append(all, r)
	}
	w.send(0, all...)
	w.run()
	w.eventually(offsets, "kafka:"+w.topic+"/0 120")
	w.eventually(made, want...)
	w.eventually(`select idempotency_key || ' ' || error_code from tidemark.command_claim where state <> 'processed' order by "offset"`, "k20 sql.data", "k57 sql.data", "k94 sql.data")
}
