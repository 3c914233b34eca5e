package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// With the gate open, each emit and capture wakes a listener of another program, which learns only ids.
func TestListenersAreWoken(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, body text)`)
	s.exec(`listen tidemark_wake_app`)
	next := func() (got map[string]any) {
		t.Helper()
		n := s.notification()
		equal(t, "channel", n.Channel, "tidemark_wake_app")
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

// LI4: the signal that wakes workers is one for a transaction, however many events it has, and says nothing; the gate for
// listeners has no part in it.
func TestBridgeSignalsOnce(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, sleeper := open(t, db, "s"), open(t, db, "sleeper")
	s.exec(`select tidemark.type_set('app', 'made'), tidemark.gate_set('notify.bridge_enabled', true)`)
	sleeper.exec(`select pg_advisory_lock_shared(1953064301, 1)`) // as a worker that sleeps
	s.exec(`listen tidemark_wake_app`)
	s.exec(`select tidemark.emit_strict('app', 'made') from generate_series(1, 1000)`)
	s.wantSignals("app", "")
}

// LI4: every login may listen, so of a domain that is restricted to roles no id and no type travels.
func TestListenersLearnNothingOfRestricted(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "s")
	s.exec(`select tidemark.type_set('app', 'secret')`)
	s.exec(`select tidemark.domain_grant('app', current_user::text), tidemark.gate_set('notify.listeners_enabled', true)`)
	s.exec(`listen tidemark_wake_app`)
	s.exec(`select tidemark.emit_strict('app', 'secret') from generate_series(1, 3)`)
	s.wantSignals("app", `{"layer": "event", "event_domain": "app"}`)
}

// Emit notifies no channel for a domain that is not registered: PostgreSQL may refuse its name as that of a channel.
func TestUnregisteredDomainsWakeNobody(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "s")
	s.exec(`select tidemark.type_set('app', 'made'), tidemark.gate_set('notify.listeners_enabled', true)`)
	s.exec(`listen tidemark_wake_app`)
	s.exec(`listen tidemark_wake_apq`)
	const events = `[{"domain": "app", "type": "made"}, {"domain": "apq", "type": "made"}, {"domain": "%s", "type": "made"}, {"type": "made"%s}]`
	for _, more := range []string{``, `, "idempotency_key": "k"`} {
		s.exec(`select * from tidemark.emit_many($1)`, fmt.Sprintf(events, strings.Repeat("é", 60), more))
	}
	s.wantSignals("app", `{"layer": "event", "event_domain": "app"}`, `{"layer": "event", "event_domain": "app"}`)
}

// wantSignals sends itself a last signal, and wants these before it.
func (s session) wantSignals(domain string, want ...string) {
	s.t.Helper()
	s.exec(`select pg_notify('tidemark_wake_' || $1, 'end')`, domain)
	var got []string
	for {
		n := s.notification()
		if n.Payload == "end" {
			break
		}
		got = append(got, n.Payload)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("%d signals, the first %.200q; want %q", len(got), got[:min(len(got), 2)], want)
	}
}
