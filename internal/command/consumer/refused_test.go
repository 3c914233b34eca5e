package consumer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// CM1: what a bad record says of itself is kept as far as an event can have it, whatever PostgreSQL makes of it. The records behind it go on.
func TestConsumerRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	nul := strings.Repeat(`\u0000`, 400) // each becomes three bytes
	bad := func(key, trace string) *kgo.Record {
		w.n++
		return &kgo.Record{Value: fmt.Appendf(nil, `{"event_id": "00000000-0000-7000-8000-%012d", "idempotency_key": "%s", "trace_id": "%s"}`, w.n, key, trace)}
	}
	w.send(0, bad("k", "-"+nul), bad(nul, "-"), bad(strings.Repeat("x", 5000), parent), w.make("a", 1))
	w.run()
	w.eventually(offsets, "kafka:"+w.topic+"/0 4")
	w.eventually(made, "1")
	w.eventually(`select concat_ws(' ', payload ->> 'error_code', length(payload ->> 'idempotency_key'), payload ->> 'trace_id') from tidemark.outbox
		where type like 'result.%' and payload ->> 'status' = 'rejected' order by seq`, "envelope.invalid 1", "envelope.invalid 200", "envelope.invalid 200 "+parent)
}

// A refused record whose result cannot be written is a dead letter without its ids, and the records behind it go on.
func TestConsumerRefusesWhatCannotBeAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`create function app.refuse() returns trigger language plpgsql as $$ begin raise 'no result of it'; end $$`)
	w.exec(`create trigger refuse before insert on tidemark.outbox for each row when (new.payload ->> 'idempotency_key' = 'bad' or new.key = 'bad') execute function app.refuse()`)
	w.send(0, w.make("a", 1), &kgo.Record{Value: w.envelope("bad", `{"id": 2}`, map[string]any{"trace_id": nil})}, w.make("b", 3))
	w.run()
	w.eventually(offsets, "kafka:"+w.topic+"/0 3")
	w.eventually(made, "1", "3")
	w.eventually(results, "processed a", "processed b")
	w.eventually(`select concat_ws(' ', l.error_code, r."offset", r.idempotency_key, position('"bad"' in convert_from(r.value, 'UTF8')) > 0) from tidemark.dead_letter l
		join tidemark.command_record r on l.idempotency_key = 'tm:commands:' || r.id`, "envelope.invalid 1 t")
}
