package sql_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// S4 §3.2: a listener of another program is woken by each emit and capture where the gate says so, and learns ids only.
func TestListenersAreWoken(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, body text)`)
	s.exec(`listen tidemark_wake_app`)
	next := func() (got map[string]any) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		n, err := s.conn.WaitForNotification(ctx)
		if err != nil || n.Channel != "tidemark_wake_app" {
			t.Fatal(n, err)
		}
		if err := json.Unmarshal([]byte(n.Payload), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	emit := func() {
		s.exec(`select tidemark.emit('app', 'insert', '{"schema": "s", "table": "t", "operation": "insert", "primary_key": null, "body": "never"}',
			lane => 'batch', occurred_at => '2026-01-02 03:04:05Z')`)
	}
	emit() // closed: no signal, else it would come before the next
	s.exec(`select tidemark.gate_set('notify.listeners_enabled', true)`)
	emit()
	var id string
	if err := s.conn.QueryRow(t.Context(), `select event_id::text from tidemark.outbox order by seq desc limit 1`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"layer": "event", "event_id": id, "event_domain": "app", "event_type": "insert", "lane": "batch",
		"occurred_at": "2026-01-02T03:04:05+00:00",
	}, next()); diff != "" {
		t.Error(diff)
	}
	domain := map[string]any{"layer": "event", "event_domain": "app"}
	for _, several := range []string{
		`insert into orders values (1, 'never'), (2, 'never')`,
		`select tidemark.emit_many('[{"domain": "app", "type": "insert"}, {"domain": "app", "type": "insert"}]')`,
	} {
		s.exec(several)
		if diff := cmp.Diff(domain, next()); diff != "" {
			t.Error(several, diff)
		}
	}
	s.exec(`select tidemark.gate_set('notify.listeners_enabled', false)`)
	emit()
	s.exec(`notify tidemark_wake_app, '{}'`)
	if got := next(); len(got) != 0 {
		t.Error(got)
	}
}
