package consumer_test

import (
	"fmt"
	"testing"
)

// A command whose function ends the session, each time, waits; the others of the partition take effect, and so do those parked.
func TestConsumerCommandEndsItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for n := range 6 {
		r := w.make(fmt.Sprint("k", n), n)
		if n == 2 || n == 4 {
			r.Value = w.envelope(fmt.Sprint("k", n), fmt.Sprintf(`{"id": %d, "fatal": true}`, n), nil)
		}
		w.send(0, r)
	}
	w.run()
	w.eventually(offsets, "kafka:"+w.topic+"/0 6")
	w.eventually(made, "0", "1", "3", "5")
	w.eventually(`select idempotency_key || ' ' || (error_count > 1) from tidemark.command_parked order by 1`, "k2 true", "k4 true")
	w.exec(`create or replace function app.make(payload jsonb, context jsonb) returns jsonb language plpgsql as $$
		begin insert into effect (key, id) values ('', (payload ->> 'id')::int); return null; end $$`)
	w.exec(`update tidemark.command_parked set next_attempt_at = now()`)
	w.eventually(`select id::text from app.effect order by id`, "0", "1", "2", "3", "4", "5")
}
