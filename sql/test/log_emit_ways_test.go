package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// fieldsOfEvents has the values from which each field of an event is drawn. null: it is left out.
var fieldsOfEvents = []struct {
	name   string
	values []string
}{
	{"domain", []string{"shop", "shop", "shop", "meta"}},
	{"type", []string{"order", "order", "strict"}},
	{"payload", []string{"null", `{}`, `{"n": 1}`, `{"n": 2, "deep": [{"m": "ä"}]}`}},
	{"key", []string{"null", "null", "k"}},
	{"stream", []string{"null", "null", "s"}},
	{"lane", []string{"null", "null", "batch", "immediate"}},
	{"severity", []string{"null", "null", "high"}},
	{"subject_table", []string{"null", "null", "public.orders"}},
	{"subject_ref", []string{"null", "null", "7"}},
	{"idempotency_key", []string{"null", "null", "null", "a", "b"}},
	{"trace", []string{"null", "null", "null", "t"}},
	{"actor", []string{"null", "null", "ann"}},
	{"occurred_at", []string{"null", "null", "2026-01-02T03:04:05Z"}},
}

// defectsOfEvents are fields for which an event is refused, or not stored. One set of events has one at most: which of two is
// told first differs between the ways.
var defectsOfEvents = []map[string]any{
	{"type": "unknown"},
	{"type": "old"},
	{"domain": "nowhere"},
	{"domain": nil},
	{"type": "unknown", "idempotency_key": "c"},
	{"domain": "mine", "type": "order"},
	{"type": "strict", "domain": "shop", "payload": json.RawMessage(`{"n": "x"}`)},
	{"domain": "meta", "type": "order", "payload": json.RawMessage(`{"a": [{"Token": 2}]}`)},
	{"domain": "shop", "type": "order", "payload": json.RawMessage(`[1]`)},
	{"domain": "shop", "type": "order", "payload": json.RawMessage(`3`)},
	{"type": "unknown", "payload": json.RawMessage(`3`)},
	{"type": "strict", "domain": "shop", "idempotency_key": "a", "payload": json.RawMessage(`{"n": "x"}`)},
	{"key": strings.Repeat("ä", 513)},
	{"trace": strings.Repeat("t", 1025)},
	{"actor": strings.Repeat("t", 1025)},
	{"idempotency_key": "tidemark:x"},
	{"idempotency_key": strings.Repeat("t", 1025)},
	{"payload": map[string]string{"pad": strings.Repeat("x", 2000)}},
	{"payload": json.RawMessage(`{"n": 1e3000}`)},
	{"occurred_at": "infinity"},
	{"occurred_at": "0001-01-01T00:00:00Z"},
	{"occurred_at": "9999-12-30T23:59:59Z"},
	{"subject_ref": strings.Repeat("t", 1024), "stream": strings.Repeat("t", 1024)},
}

// EV2, EV3, EV8: one by one, as JSON and as arrays the same events are stored as the same rows, or refused with the same code.
func TestWaysToEmitAreTheSame(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "emitter")
	s.exec(`select tidemark.type_set('shop', 'order'), tidemark.type_set('shop', 'strict', '{"schema": {"properties": {"n": {"type": "integer"}}}}'),
		tidemark.type_set('shop', 'old', '{"enabled": false}'), tidemark.domain_set('meta', '{"metadata_only": true}'), tidemark.type_set('meta', 'order'),
		tidemark.domain_set('mine', '{"restricted": true}'), tidemark.type_set('mine', 'order')`)
	s.exec(`insert into tidemark.setting (key, value) values ('emit.payload_limit', '1500') on conflict (key) do update set value = excluded.value`)
	s.exec(`create role tidemark_test_ways login in role tidemark_emitter`)
	t.Cleanup(func() { s.exec(`reset session authorization; drop role tidemark_test_ways`) })
	stored, refused := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		var events []map[string]any
		for range rapid.IntRange(1, 4).Draw(r, "events") {
			event := map[string]any{}
			for _, f := range fieldsOfEvents {
				switch v := rapid.SampledFrom(f.values).Draw(r, f.name); {
				case v == "null":
				case f.name == "payload":
					event[f.name] = json.RawMessage(v)
				default:
					event[f.name] = v
				}
			}
			if event["domain"] == "meta" {
				event["type"] = "order"
			}
			events = append(events, event)
		}
		if rapid.Bool().Draw(r, "with a defect") {
			maps.Copy(events[rapid.IntRange(0, len(events)-1).Draw(r, "defective")], rapid.SampledFrom(defectsOfEvents).Draw(r, "defect"))
		}
		text, err := json.Marshal(events)
		if err != nil {
			r.Fatal(err)
		}
		strict := rapid.SampledFrom([]string{"", "_strict"}).Draw(r, "strict")
		var want []string
		for i, way := range []string{oneByOne(strict), `select array_agg(m.event_id order by m.position) from tidemark.emit_many` + strict + `($1::text::jsonb) m`, asArrays(strict)} {
			got := s.emitsBy(way, string(text))
			if i == 0 {
				want = got
			} else if diff := cmp.Diff(want, got); diff != "" {
				r.Fatalf("%s\nof %s (-one by one +as above)\n%s", way, text, diff)
			}
			if got[0] == "" {
				stored++
			} else {
				refused++
			}
		}
	})
	if stored == 0 || refused == 0 {
		t.Errorf("%d sets of events were stored, %d refused: proves too little", stored, refused)
	}
}

// emitsBy emits in a transaction that is rolled back, and returns the code of the error, or what came of it.
func (s session) emitsBy(way, events string) []string {
	s.t.Helper()
	s.begin()
	defer s.rollback()
	s.exec(`set local session authorization tidemark_test_ways; create temp table answer (id uuid[]) on commit drop`)
	if err := s.try(`insert into answer `+way, events); err != nil {
		return []string{err.Code}
	}
	s.exec(`set local session authorization default`)
	return append([]string{""}, column[string](s, `
		select to_jsonb(o) - array['seq', 'event_id', 'created_at', case when o.occurred_at = o.created_at then 'occurred_at' else 'seq' end] || jsonb_build_object('n', row_number() over (order by o.seq), 'own time', o.occurred_at = o.created_at,
			'at', array_positions(a.id, o.event_id))
		from tidemark.outbox o, answer a
		union all select jsonb_build_object('nulls', array_positions(a.id, null)) from answer a
		union all select jsonb_build_object('unknown', u.domain || '/' || u.type, 'emits', sum(u.emits)) from tidemark.emit_unregistered u group by u.domain, u.type
		order by 1`)...)
}

func oneByOne(strict string) string {
	return `select array_agg(tidemark.emit` + strict + `(e ->> 'domain', e ->> 'type', coalesce(e -> 'payload', '{}'), e ->> 'key', e ->> 'stream', (e ->> 'lane')::tidemark.lane,
		(e ->> 'severity')::tidemark.severity, e ->> 'subject_table', e ->> 'subject_ref', e ->> 'idempotency_key', e ->> 'trace', e ->> 'actor', (e ->> 'occurred_at')::timestamptz) order by o)
		from jsonb_array_elements($1::text::jsonb) with ordinality x (e, o)`
}

// asArrays leaves out an array that has nothing.
func asArrays(strict string) string {
	arguments := ""
	for i, f := range fieldsOfEvents {
		element := fmt.Sprintf(`e ->> '%s'`, f.name)
		switch f.name {
		case "payload":
			element = `e -> 'payload'`
		case "occurred_at":
			element = `(e ->> 'occurred_at')::timestamptz`
		}
		if i > 0 {
			arguments += ", "
		}
		if f.name == "domain" || f.name == "type" {
			arguments += fmt.Sprintf(`array_agg(%s order by o)`, element)
		} else {
			arguments += fmt.Sprintf(`case when count(%[1]s) > 0 then array_agg(%[1]s order by o) end`, element)
		}
	}
	return `select array(select m.event_id from tidemark.emit_arrays` + strict + `(` + arguments + `) m order by m.position) from jsonb_array_elements($1::text::jsonb) with ordinality x (e, o)`
}

func TestEmitArraysBadInput(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	s.refused("TM002", "the arrays of events differ in length", `select tidemark.emit_arrays(array['shop', 'shop'], array['order', 'order'], array['{}']::jsonb[])`)
	s.refused("TM002", `event 2: there is no lane "express"`, `select tidemark.emit_arrays(array['shop', 'shop'], array['order', 'order'], lanes => array[null, 'express'])`)
	s.refused("TM002", "event 1: there is no severity \"3\"", `select tidemark.emit_arrays(array['shop'], array['order'], severities => array['3'])`)
	s.refused("TM002", "event 1: shop/order: payload is null, not an object", `select tidemark.emit_arrays(array['shop'], array['order'], array['null']::jsonb[])`)
	s.refused("TM001", "event 2: event type shop/old is not registered", `select tidemark.emit_arrays_strict(array['shop', 'shop'], array['order', 'old'])`)
	s.wantRows(`select 'answer' from tidemark.emit_arrays('{}', '{}')`)
	s.wantRows(`select 'answer' from tidemark.emit_arrays(null, null)`)
	s.wantRows(`select 'stored' from tidemark.outbox`)
	s.wantRows(`select concat_ws(' ', position, event_id is null) from tidemark.emit_arrays(array['shop', 'shop'], array['order', 'old'])`, "1 f", "2 t")
	s.wantRows(`select concat_ws(' ', position, event_id is null) from tidemark.emit_arrays(null, array['order', 'order'])`, "1 t", "2 t")
	s.refused("TM005", "event 2: key has 1025 bytes", `select tidemark.emit_arrays(array['shop', 'nowhere'], array['order', 'order'], keys => array[null, repeat('k', 1025)])`)
	s.wantRows(`select u.domain || ' ' || u.type || ' ' || u.emits from tidemark.unregistered_emits u order by 1`, " order 2", "shop old 1")
}
