package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/strict"
)

// emitWays emit an event with one member: its name, and its value as SQL.
var emitWays = map[string]string{
	"emit":             `select tidemark.emit('shop', 'order', %s => %s)`,
	"emit_strict":      `select tidemark.emit_strict('shop', 'order', %s => %s)`,
	"emit_many":        `select tidemark.emit_many(jsonb_build_array('{"domain": "shop", "type": "order"}'::jsonb, jsonb_build_object('domain', 'shop', 'type', 'order', '%s', %s)))`,
	"emit_many_strict": `select tidemark.emit_many_strict(jsonb_build_array('{"domain": "shop", "type": "order"}'::jsonb, jsonb_build_object('domain', 'shop', 'type', 'order', '%s', %s)))`,
}

// EV8: the same members are refused by every way to emit, and what is within the limits is not.
func TestEmitLimits(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	type refusal struct{ member, value, text string }
	refusals := []refusal{
		{"payload", `jsonb_build_object('a', repeat('x', 999992))`, "payload has 1000001 bytes, and must have at most 1000000"},
		// Small as it is stored, and large as text.
		{"payload", `(select jsonb_build_object('a', jsonb_agg(1e100000)) from generate_series(1, 11))`, "payload has 1100040 bytes, and must have at most 1000000"},
	}
	nested := func(levels int) string {
		return fmt.Sprintf(`('{"a": ' || repeat('[', %[1]d) || repeat(']', %[1]d) || '}')::jsonb`, levels-1)
	}
	// As deep as an emit's own stack takes, which is too deep for a pass.
	refusals = append(refusals, refusal{"payload", nested(501), "payload nests deeper than 500 levels"}, refusal{"payload", nested(6000), "payload nests deeper than 500 levels"})
	taken := []refusal{{"payload", `jsonb_build_object('a', repeat('x', 999991))`, ""}, {"payload", nested(500), ""}}
	for _, member := range []string{"key", "stream", "subject_table", "subject_ref", "idempotency_key", "trace", "actor"} {
		refusals = append(refusals, refusal{member, `repeat('ä', 513)`, member + " has 1026 bytes, and must have at most 1024"})
		taken = append(taken, refusal{member, `repeat('ä', 512)`, ""})
	}
	for _, at := range []string{"infinity", "-infinity", "0001-01-01 00:00:00+00 BC", "9999-12-31 00:00:00+00", "10000-01-01 00:00:00+00", "4713-01-01 00:00:00+00 BC"} {
		refusals = append(refusals, refusal{"occurred_at", "timestamptz '" + at + "'", ", and must be a time in the years 1 to 9999"})
	}
	for _, at := range []string{"0001-01-02 00:00:00+00", "9999-12-30 23:59:59.999999+00", "1850-01-01 00:00:00+00"} {
		taken = append(taken, refusal{"occurred_at", "timestamptz '" + at + "'", ""})
	}
	for way, statement := range emitWays {
		place := ""
		if strings.HasPrefix(way, "emit_many") {
			place = "event 2: "
		}
		for _, r := range refusals {
			text := r.text
			if r.member != "occurred_at" {
				text = place + text
			}
			s.refused("TM005", text, fmt.Sprintf(statement, r.member, r.value))
		}
		s.wantRows(`select 'stored' from tidemark.outbox where coalesce(idempotency_key, '') = ''`)
		for _, r := range taken {
			if err := s.try(fmt.Sprintf(statement, r.member, r.value)); err != nil {
				t.Errorf("%s of %s: %v", way, r.value, err)
			}
		}
		s.exec(`set session_replication_role = replica; delete from tidemark.outbox; delete from tidemark.emit_key; reset session_replication_role`)
	}
}

// EV8: the limit of payloads is a setting; 0 lifts it, and an unreadable one is the default.
func TestEmitPayloadLimit(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	for _, c := range []struct {
		value string // empty: the setting is missing
		bytes int
		limit int // 0: it is emitted
	}{
		{"2000", 2000, 0},
		{"2000", 2001, 2000},
		{"1", 1000, 0},
		{"1", 1001, 1000},
		{"0", 3_000_000, 0},
		{"", 1_000_001, 1_000_000},
		{"a lot", 1_000_001, 1_000_000},
		{"-1", 1_000_001, 1_000_000},
		{"99999999999999999999", 1_000_001, 1_000_000},
	} {
		s.exec(`delete from tidemark.setting where key = 'emit.payload_limit'`)
		if c.value != "" {
			s.exec(`insert into tidemark.setting (key, value) values ('emit.payload_limit', $1)`, c.value)
		}
		for _, statement := range emitWays {
			emit := fmt.Sprintf(statement, "payload", fmt.Sprintf(`jsonb_build_object('a', repeat('x', %d))`, c.bytes-9))
			if c.limit > 0 {
				s.refused("TM005", fmt.Sprintf("payload has %d bytes, and must have at most %d", c.bytes, c.limit), emit)
			} else if err := s.try(emit); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
		}
	}
}

// Set-based: an emit that is strict stores all of the events, or none.
func TestEmitManyStrict(t *testing.T) {
	t.Parallel()
	db, s := emitter(t)
	for _, name := range []string{"unknown", "old"} {
		s.refused("TM001", fmt.Sprintf("event 2: event type shop/%s is not registered or not enabled", name),
			fmt.Sprintf(`select tidemark.emit_many_strict('[{"domain": "shop", "type": "order", "idempotency_key": "a"}, {"domain": "shop", "type": "%s"}, {"domain": "shop", "type": "order"}]')`, name))
	}
	s.refused("TM001", "event 1: event type / is not registered", `select tidemark.emit_many_strict('[{}]')`)
	s.wantRows(`select concat_ws(' ', (select count(*) from tidemark.outbox), (select count(*) from tidemark.emit_key))`, "0 0")
	s.wantRows(`select position || ' ' || (event_id is not null) from tidemark.emit_many_strict('[{"domain": "shop", "type": "order", "idempotency_key": "a"}, {"domain": "shop", "type": "order", "idempotency_key": "a"}, {"domain": "shop", "type": "order"}]')`,
		"1 true", "2 true", "3 true")
	s.wantRows(`select count(*)::text from tidemark.outbox`, "2")

	// Another transaction disables the type while the call waits for a key: all or nothing.
	other, watch := open(t, db, "other"), open(t, db, "watch")
	s.exec(`select tidemark.type_set('shop', 'late')`)
	before := one[int](s, `select max(seq) from tidemark.outbox`)
	other.begin()
	other.exec(`select tidemark.emit('shop', 'order', idempotency_key => 'b')`)
	result := later[int](s, `select count(event_id) from tidemark.emit_many_strict('[{"domain": "shop", "type": "order", "idempotency_key": "b"}, {"domain": "shop", "type": "late"}]')`)
	watch.waitsFor(s)
	watch.exec(`select tidemark.type_set('shop', 'late', '{"enabled": false}')`)
	other.commit()
	if n, err := result(); n != 2 || err != nil {
		t.Errorf("%d ids, %v", n, err)
	}
	s.wantRows(fmt.Sprintf(`select type from tidemark.outbox where seq > %d order by 1`, before), "late", "order")
}

// A small event pays for its limits with one look at its length.
func TestLimitsCostLittle(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	s.begin()
	s.exec(`set local track_functions = 'all'`)
	s.exec(`select tidemark.emit('shop', 'order', '{"id": 7}', key => '7', actor => 'ann', occurred_at => now()), tidemark.emit_many('[{"domain": "shop", "type": "order"}]')`)
	s.wantRows(`select funcname::text from pg_stat_xact_user_functions where funcname in ('event_check', 'event_is_small', 'payload_limit')`)
	s.exec(`select tidemark.emit('shop', 'order', jsonb_build_object('a', repeat('x', 1000)))`)
	s.wantRows(`select funcname::text from pg_stat_xact_user_functions where funcname in ('event_check', 'event_is_small', 'payload_limit') order by 1`, "event_check", "payload_limit")
}

// Go and SQL count the same levels of a payload, and refuse the same ones.
func TestDepthIsTheSameInGo(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	for levels := strict.MaxDepth - 1; levels <= strict.MaxDepth+1; levels++ {
		for _, inmost := range []string{"", "1", `"text"`, "null", "[]", "{}"} {
			payload := `{"a": ` + strings.Repeat(`[`, levels-1) + inmost + strings.Repeat(`]`, levels-1) + `, "b": "` + strings.Repeat("x", 1000) + `"}`
			inGo := strict.Check([]byte(payload))
			inSQL := s.try(`select tidemark.emit_strict('shop', 'order', payload => $1::text::jsonb)`, payload)
			if (inGo == nil) != (inSQL == nil) {
				t.Errorf("%d levels around %s: Go: %v, SQL: %v", levels, inmost, inGo, inSQL)
			}
			if deep := inmost == "[]" || inmost == "{}"; (inGo == nil) != (levels <= strict.MaxDepth && !(deep && levels == strict.MaxDepth)) {
				t.Errorf("%d levels around %s: %v", levels, inmost, inGo)
			}
		}
	}
}
