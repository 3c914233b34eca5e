package store_test

import (
	"encoding/json"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// Times that nothing but the owner's hand or an older version could have stored, or that come from tables of others,
// break no list and no JSON.
func TestTimesThatGoCannotWrite(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	exec(t, test, `create table public.births (id bigint primary key, born_at timestamptz);
		insert into public.births values (1, 'infinity');
		select tidemark.source_set('births', '{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "safety": "declared"}'),
			tidemark.worker_set('w', '{"source": "table", "handler": "emit", "handler_ref": "shop/order.paid"}');
		select tidemark.worker_source_add('w', 'births')`)
	ctx := t.Context()
	for _, at := range []string{"infinity", "-infinity", "20000-01-01", "4000-01-01 BC"} {
		exec(t, test, `set session_replication_role = replica;
			insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, actor, payload)
			values (gen_random_uuid(), now(), '`+at+`', 'immediate', 'info', 'shop', 'order.paid', 'x', '{}');
			insert into tidemark.finding (kind, subject, severity, detail, opened_at, last_seen_at, closed_at, acked_at, acked_by, ack_note)
			values ('x', '`+at+`', 'info', '', '`+at+`', '`+at+`', '`+at+`', '`+at+`', 'ann', 'known');
			insert into tidemark.dead_letter (idempotency_key, worker_id, source, item_id, event_snapshot, item_ts, error_code, first_failed_at, last_failed_at)
			select '`+at+`', w.id, 'births', '1', '{}', '`+at+`', 'x', '`+at+`', '`+at+`' from tidemark.worker w where w.worker = 'w';
			update tidemark.worker_cursor set watermark_ts = '`+at+`', verified_through = '`+at+`', horizon = '`+at+`' where worker = 'w';
			update tidemark.stage set changed_at = '`+at+`'; reset session_replication_role`)
		for name, read := range map[string]func() (any, error){
			"events":          func() (any, error) { return db.Events(ctx, store.EventFilter{}) },
			"event":           func() (any, error) { return db.Event(ctx, 1) },
			"full events":     func() (any, error) { return db.FullEvents(ctx, store.Route{}, []int64{1}) },
			"closed findings": func() (any, error) { return db.ClosedFindings(ctx, nil, 10) },
			"finding":         func() (any, error) { return db.Finding(ctx, 1) },
			"dead letters":    func() (any, error) { return db.DeadLetters(ctx, store.LetterFilter{}) },
			"dead letter":     func() (any, error) { return db.DeadLetter(ctx, 1) },
			"sources":         func() (any, error) { return db.Sources(ctx, store.Part{}) },
			"source cursors":  func() (any, error) { return db.SourceCursors(ctx, "w") },
			"worker health":   func() (any, error) { return db.WorkerHealth(ctx) },
			"stage":           func() (any, error) { return db.Stage(ctx) },
			"summaries":       func() (any, error) { return db.WorkerSummaries(ctx, store.Part{}) },
		} {
			got, err := read()
			if err != nil {
				t.Errorf("%s, %s: %v", name, at, err)
			}
			if text, err := json.Marshal(got); err != nil || len(text) < 4 {
				t.Errorf("%s, %s: %s, %v", name, at, text, err)
			}
		}
	}
}
