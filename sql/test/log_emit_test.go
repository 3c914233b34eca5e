package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// emitter opens a database in which shop/order may be emitted, shop/old is disabled and shop/unknown is not
// registered.
func emitter(t *testing.T) (*tidemarktest.DB, session) {
	t.Helper()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "emitter")
	s.exec(`select tidemark.type_set('shop', 'order'), tidemark.type_set('bank', 'order'), tidemark.type_set('shop', 'old', '{"enabled": false}')`)
	return db, s
}

// EV2.
func TestEmitKeepsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	id := one[string](s, `select tidemark.emit('shop', 'order', '{"n": 1}', key => 'k', stream => 'alert', lane => 'batch',
		severity => 'high', subject_table => 'public.orders', subject_ref => '7', idempotency_key => 'once',
		trace => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', actor => 'ann', occurred_at => '2026-01-02 03:04:05.678901+00')::text`)
	s.exec("set timezone = 'UTC'")
	s.wantRows(`select (to_jsonb(o) - 'created_at')::text from tidemark.outbox o`, `{"key": "k", "seq": 1, "lane": "batch", `+
		`"type": "order", "actor": "ann", "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "domain": "shop", `+
		`"stream": "alert", "payload": {"n": 1}, "event_id": "`+id+`", "severity": "high", "emitted_by": "postgres", "inbound_id": null, "occurred_at": "2026-01-02T03:04:05.678901+00:00", `+
		`"subject_ref": "7", "subject_table": "public.orders", "idempotency_key": "once"}`)
}

func TestEmitDefaults(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	const stored = `select concat_ws(' ', lane, severity, payload, occurred_at = created_at, actor = session_user,
		coalesce(stream, key, subject_table, subject_ref, idempotency_key, trace, 'nothing else'),
		created_at between transaction_timestamp() - interval '1 minute' and clock_timestamp()) from tidemark.outbox`
	s.exec(`select tidemark.emit('shop', 'order')`)
	s.exec(`select tidemark.emit('shop', 'order', lane => null, severity => null, actor => null, occurred_at => null)`)
	s.exec(`select tidemark.emit_strict('shop', 'order')`)
	s.exec(`select tidemark.emit_many('[{"domain": "shop", "type": "order"}, {"domain": "shop", "type": "order", "payload": {}, "key": null, "lane": null, "actor": null}]')`)
	s.wantRows(stored, slices.Repeat([]string{"immediate info {} t t nothing else t"}, 5)...)
}

// created_at is the clock's time, not the transaction's start.
func TestEmitTellsTheTimeOfTheEvent(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	s.begin()
	s.exec(`select tidemark.emit('shop', 'order')`)
	s.exec(`select tidemark.emit('shop', 'order')`)
	if !one[bool](s, `select bool_and(created_at > transaction_timestamp()) and count(distinct created_at) = 2 from tidemark.outbox`) {
		t.Error("created_at is not the time at which emit ran")
	}
}

// EV3: fail-closed and quiet.
func TestEmitUnregisteredOrDisabled(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	s.begin()
	s.exec(`create table kept (n int); insert into kept values (1)`)
	for _, of := range []string{`'shop', 'unknown'`, `'unknown', 'order'`, `'shop', 'old'`, `null, null`, `'shop', null`} {
		if !one[bool](s, `select tidemark.emit(`+of+`, idempotency_key => 'k') is null`) {
			t.Errorf("emit(%s) returned an id", of)
		}
	}
	s.exec(`insert into kept values (2)`)
	s.commit()
	s.wantRows(`select concat_ws(' ', (select sum(n) from kept), (select count(*) from tidemark.outbox), (select count(*) from tidemark.emit_key))`, "3 0 0")

	s.wantRows(`select concat_ws(' ', position, event_id is null) from tidemark.emit_many('[
		{"domain": "shop", "type": "unknown"}, {"domain": "shop", "type": "order"}, {"type": "order"}, {},
		{"domain": "shop", "type": "old", "idempotency_key": "k"}, {"domain": null, "type": null}]')`,
		"1 t", "2 f", "3 t", "4 t", "5 t", "6 t")
	s.wantRows(`select seq || ' ' || type from tidemark.outbox`, "1 order")

	// A type that is registered, or enabled, from now on, is emitted from now on; and the other way round.
	s.exec(`select tidemark.type_set('shop', 'old', '{"enabled": true}'), tidemark.type_set('shop', 'unknown'), tidemark.type_set('shop', 'order', '{"enabled": false}')`)
	s.wantRows(`select (tidemark.emit('shop', type) is not null)::text from unnest(array['old', 'unknown', 'order']) type`, "true", "true", "false")
}

func TestEmitStrict(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	s.refused("TM001", "shop/unknown", `select tidemark.emit_strict('shop', 'unknown')`)
	s.refused("TM001", "shop/old", `select tidemark.emit_strict('shop', 'old')`)
	s.refused("TM001", "not registered", `select tidemark.emit_strict(null, null)`)
	first := one[string](s, `select tidemark.emit_strict('shop', 'order', '{"n": 1}', 'k', 'alert', 'batch', 'high', 'public.orders', '7', 'once', 'trace', 'ann', '2026-01-02+00')::text`)
	s.refused("TM005", "idempotency_key has 1025 bytes, and must have at most 1024", `select tidemark.emit('shop', 'order', idempotency_key => repeat('k', 1025))`)
	again := one[string](s, `select tidemark.emit_strict('shop', 'order', idempotency_key => 'once')::text`)
	equal(t, "id of the second", again, first)
	s.wantRows(`select concat_ws(' ', payload, key, stream, lane, severity, subject_table, subject_ref, idempotency_key, trace, actor, occurred_at at time zone 'UTC')
		from tidemark.outbox`, `{"n": 1} k alert batch high public.orders 7 once trace ann 2026-01-02 00:00:00`)
}

// EV3: a key past its retention that is deleted between the claim, which it refused, and the next statement, is no type that is
// not registered.
func TestEmitWhileItsKeyExpires(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, other := open(t, db, "s"), open(t, db, "other")
	s.exec(`select tidemark.type_set('shop', 'order')`)
	s.rewrite("emit", "            earlier :=", "perform pg_advisory_xact_lock_shared(1);\n            earlier :=")
	s.rewrite("emit_all", "    if strict and unknown is not null", "perform pg_advisory_xact_lock_shared(1);\n    if strict and unknown is not null")
	const many = `[{"domain": "shop", "type": "order"}, {"domain": "shop", "type": "order", "idempotency_key": "a"}, {"domain": "shop", "type": "order", "idempotency_key": "a"}]`
	for _, call := range []string{
		`select tidemark.emit_strict('shop', 'order', idempotency_key => 'a')::text`,
		`select min(event_id::text) filter (where position = 3) from tidemark.emit_many_strict('` + many + `')`,
		`select min(event_id::text) from tidemark.emit_arrays_strict('{shop}', '{order}', null, idempotency_keys => '{a}')`,
	} {
		s.exec(`delete from tidemark.emit_key`)
		s.exec(`select tidemark.emit('shop', 'order', idempotency_key => 'a')`)
		s.exec(`update tidemark.emit_key set created_at = created_at - interval '31 days'`)
		other.begin()
		other.exec(`select pg_advisory_xact_lock(1)`)
		result := later[*string](s, call)
		other.waitsFor(s)
		open(t, db, "upkeep").exec(`select tidemark.emit_keys_expire()`)
		other.commit()
		if id, err := result(); err != nil || id == nil {
			t.Errorf("%s: %v, %v", call, id, err)
		} else {
			s.wantRows(`select count(*)::text from tidemark.outbox o where o.event_id::text = '`+*id+`'`, "1")
		}
		s.wantRows(`select count(*)::text from tidemark.emit_unregistered`, "0")
	}
}

// EV3: the same (domain, idempotency_key) twice.
func TestEmitIsIdempotent(t *testing.T) {
	t.Parallel()
	db, s := emitter(t)
	other := open(t, db, "other")
	const emit = `select tidemark.emit($1, 'order', '{"n": 1}', idempotency_key => $2)::text`
	s.begin()
	first := one[string](s, emit, "shop", "a")
	equal(t, "in the same transaction", one[string](s, emit, "shop", "a"), first)
	s.commit()
	equal(t, "in a later one", one[string](other, emit, "shop", "a"), first)
	equal(t, "with emit_many", one[string](other, `select event_id::text from tidemark.emit_many('[{"domain": "shop", "type": "order", "idempotency_key": "a"}]')`), first)
	if one[string](s, emit, "bank", "a") == first || one[string](s, emit, "shop", "b") == first {
		t.Error("another domain, or another key, got the same event")
	}
	s.begin()
	one[string](s, emit, "shop", "c")
	s.rollback()
	one[string](s, emit, "shop", "c")
	s.wantRows(`select domain || ' ' || idempotency_key from tidemark.outbox order by seq`, "shop a", "bank a", "shop b", "shop c")
	s.wantRows(`select count(*)::text from tidemark.outbox o join tidemark.emit_key k using (domain, idempotency_key, event_id, created_at)`, "4")
}

// The second of two sessions with one key waits for the first: its answer depends on how that ends.
func TestEmitWaitsForTheSameKey(t *testing.T) {
	t.Parallel()
	for name, emit := range map[string]string{
		"emit":      `select tidemark.emit('shop', 'order', idempotency_key => 'a')::text`,
		"emit_many": `select event_id::text from tidemark.emit_many('[{"domain": "shop", "type": "order", "idempotency_key": "a"}]')`,
	} {
		for _, end := range []string{"commit", "rollback"} {
			t.Run(name+" "+end, func(t *testing.T) {
				t.Parallel()
				db, first := emitter(t)
				second, watch := open(t, db, "second"), open(t, db, "watch")
				first.begin()
				id := one[string](first, emit)
				result := later[string](second, emit)
				watch.waitsFor(second)
				first.exec(end)
				got, err := result()
				if err != nil {
					t.Fatal(err)
				}
				if (got == id) != (end == "commit") {
					t.Errorf("the first had %s, the second got %s", id, got)
				}
				first.wantRows(`select event_id::text from tidemark.outbox`, got)
			})
		}
	}
}

// Keys are claimed in one order by all. Claimed as given, c would be taken before the wait for b, and the two
// would wait for each other.
func TestEmitManyCannotDeadlock(t *testing.T) {
	t.Parallel()
	db, first := emitter(t)
	second, watch := open(t, db, "second"), open(t, db, "watch")
	const event = `{"domain": "shop", "type": "order", "idempotency_key": "%s"}`
	first.begin()
	first.exec(`select tidemark.emit('shop', 'order', idempotency_key => 'b')`)
	result := later[int](second, `select count(*) from tidemark.emit_many('[`+
		fmt.Sprintf(event, "c")+`,`+fmt.Sprintf(event, "a")+`,`+fmt.Sprintf(event, "b")+`]')`)
	watch.waitsFor(second)
	first.exec(`select tidemark.emit('shop', 'order', idempotency_key => 'c')`)
	first.commit()
	if _, err := result(); err != nil {
		t.Fatal(err)
	}
	first.wantRows(`select idempotency_key from tidemark.outbox order by seq`, "b", "c", "a")
}

// The type is disabled between the claim of the key and the event: the key must not stay behind, or the next
// emit with it would be taken for done.
func TestEmitGivesBackTheKeyOfNoEvent(t *testing.T) {
	t.Parallel()
	db, s := emitter(t)
	operator := open(t, db, "operator")
	s.rewrite("emit", "-- One statement", "perform pg_advisory_xact_lock_shared(1);\n    -- One statement")
	operator.exec(`select pg_advisory_lock(1)`)
	result := later[*string](s, `select tidemark.emit('shop', 'order', idempotency_key => 'a')::text`)
	operator.waitsFor(s)
	operator.exec(`select tidemark.type_set('shop', 'order', '{"enabled": false}')`)
	operator.exec(`select pg_advisory_unlock(1)`)
	if id, err := result(); id != nil || err != nil {
		t.Errorf("got %v, %v; want null", id, err)
	}
	operator.exec(`select tidemark.type_set('shop', 'order', '{"enabled": true}')`)
	id := one[string](s, `select tidemark.emit('shop', 'order', idempotency_key => 'a')::text`)
	s.wantRows(`select event_id::text from tidemark.outbox`, id)
}

func TestEmitManyKeepsOrder(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	s.exec(`select tidemark.emit('shop', 'order', idempotency_key => 'early')`)
	// Keys that sort the other way round: the order of claims must not be the order of numbers.
	s.exec(`create table answer as select * from tidemark.emit_many((
		select jsonb_agg(jsonb_build_object('domain', 'shop', 'type', case n % 7 when 0 then 'unknown' else 'order' end,
			'payload', jsonb_build_object('n', n),
			'idempotency_key', case n % 5 when 0 then null when 1 then 'early' when 2 then 'same' else to_char(1000 - n, '0000') end) order by n)
		from generate_series(1, 500) n))`)
	equal(t, "positions", one[bool](s, `select array_agg(position) = array(select generate_series(1, 500)) from answer`), true)
	equal(t, "numbers rise with positions", one[bool](s, `select array_agg(n order by seq) = array_agg(n order by n)
		from (select seq, (payload ->> 'n')::int as n from tidemark.outbox where seq > 1) o`), true)
	s.wantRows(`select concat_ws(' ', count(*), count(event_id), count(distinct event_id)) from answer`,
		fmt.Sprintf("500 %d %d", 500-71, one[int](s, `select count(*) from tidemark.outbox`)))
	// Every position has the id of the event that it became, or that was there before it.
	s.wantRows(`select a.position::text from answer a
		left join tidemark.outbox o on o.event_id = a.event_id
		where a.position % 7 <> 0 and (case a.position % 5
			when 1 then o.idempotency_key = 'early' and o.seq = 1
			when 2 then o.idempotency_key = 'same' and (o.payload ->> 'n')::int = 2
			else (o.payload ->> 'n')::int = a.position end) is not true`)
}

// What one cannot read is refused whole, with the place.
func TestEmitManyBadInput(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	s.exec(`select tidemark.type_set('shop', 'strict', '{"schema": {"required": ["n"]}}')`)
	const good = `{"domain": "shop", "type": "order"}`
	for _, c := range []struct{ events, code, text string }{
		{`null`, "TM002", "events is null, not an array"},
		{`{}`, "TM002", "events is object, not an array"},
		{`"x"`, "TM002", "events is string, not an array"},
		{`[` + good + `, 3]`, "TM002", "event 2 is not an object"},
		{`[` + good + `, [], 3]`, "TM002", "event 2 is not an object"},
		{`[` + good + `, null]`, "TM002", "event 2 is not an object"},
		{`[` + good + `, ` + good + `, {"domain": "shop", "kind": "order"}]`, "TM002", `event 3 has the unknown field "kind"`},
		{`[{"domain": "unknown", "type": "x", "Key": 1}]`, "TM002", `event 1 has the unknown field "Key"`},
		{`[` + good + `, {"domain": "shop", "type": "order", "payload": [1]}]`, "TM002", "event 2: shop/order: payload is array, not an object"},
		{`[` + good + `, {"domain": "shop", "type": "order", "payload": null}]`, "TM002", "event 2: shop/order: payload is null, not an object"},
		{`[` + good + `, {"domain": "shop", "type": "order", "lane": "express"}]`, "TM002", `event 2: there is no lane "express"`},
		{`[` + good + `, {"domain": "shop", "type": "order", "severity": 3}]`, "TM002", `event 2: there is no severity 3`},
		{`[` + good + `, {"domain": "shop", "type": "order", "idempotency_key": "` + strings.Repeat("k", 1025) + `"}]`, "TM005", "event 2: idempotency_key has 1025 bytes"},
		{`[` + good + `, ` + good + `, {"domain": "shop", "type": "strict", "payload": {}}]`, "TM002", `event 3: shop/strict: payload has no key "n"`},
	} {
		s.refused(c.code, c.text, `select tidemark.emit_many($1::text::jsonb)`, c.events)
	}
	s.refused("TM002", "events is null", `select tidemark.emit_many(null)`)
	s.refused("TM002", "Fields: domain, type", `select tidemark.emit_many('[{"x": 1}]')`)
	s.wantRows(`select 'stored' from tidemark.outbox`)
	s.wantRows(`select 'answer' from tidemark.emit_many('[]')`)
}

// EV4: what SQL checks of a JSON Schema.
func TestEmitChecksThePayload(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	const schema = `{"type": "object", "required": ["id", "n"], "properties": {
		"n": {"type": "integer"}, "x": {"type": "number"}, "s": {"type": ["string", "null"]}, "b": {"type": "boolean"},
		"o": {"type": "object"}, "a": {"type": "array"}, "any": {"minimum": 3}, "i": {"type": ["integer", "string"]}, "z": true}}`
	s.exec(`select tidemark.type_set('shop', 'order', jsonb_build_object('schema', $1::jsonb))`, schema)
	for payload, problem := range map[string]string{
		`{"id": null, "n": 1}`:                           "",
		`{"id": 1, "n": 1.0}`:                            "",
		`{"id": 1, "n": 1e2}`:                            "",
		`{"id": 1, "n": -0}`:                             "",
		`{"id": 1, "n": 123456789012345678901234567890}`: "",
		`{"id": 1, "n": 1, "x": 1.5, "s": null, "b": false, "o": {}, "a": [], "i": 3}`: "",
		`{"id": 1, "n": 1, "x": 3, "s": "", "i": "", "any": "x", "z": [], "more": 1}`:  "",
		`{"n": 1}`:                            `payload has no key "id", which its schema requires`,
		`{"id": 1}`:                           `payload has no key "n"`,
		`{}`:                                  `payload has no key "id"`,
		`{"id": 1, "n": 1.5}`:                 `payload key "n" is number, and its schema wants "integer"`,
		`{"id": 1, "n": "1"}`:                 `payload key "n" is string`,
		`{"id": 1, "n": null}`:                `payload key "n" is null`,
		`{"id": 1, "n": 1, "x": "3"}`:         `payload key "x" is string, and its schema wants "number"`,
		`{"id": 1, "n": 1, "s": 3}`:           `payload key "s" is number, and its schema wants ["string", "null"]`,
		`{"id": 1, "n": 1, "s": 3.5}`:         `payload key "s" is number`,
		`{"id": 1, "n": 1, "b": 0}`:           `payload key "b" is number`,
		`{"id": 1, "n": 1, "b": "true"}`:      `payload key "b" is string`,
		`{"id": 1, "n": 1, "o": []}`:          `payload key "o" is array`,
		`{"id": 1, "n": 1, "a": {}}`:          `payload key "a" is object`,
		`{"id": 1, "n": 1, "i": 1.5}`:         `payload key "i" is number`,
		`[]`:                                  `payload is array, not an object`,
		`"x"`:                                 `payload is string, not an object`,
		`null`:                                `payload is null, not an object`,
		`[{"id": 1, "n": 1}]`:                 `payload is array, not an object`,
		`{"id": 1, "n": {"n": 1}, "o": "[]"}`: `payload key "n" is object`,
	} {
		emit, many := `select tidemark.emit('shop', 'order', $1::text::jsonb)`,
			`select tidemark.emit_many(jsonb_build_array(jsonb_build_object('domain', 'shop', 'type', 'order', 'payload', $1::text::jsonb)))`
		if problem == "" {
			s.exec(emit, payload)
			s.exec(many, payload)
			continue
		}
		s.refused("TM002", "shop/order: "+problem, emit, payload)
		s.refused("TM002", "event 1: shop/order: "+problem, many, payload)
	}
	s.refused("TM002", "payload is null, not an object", `select tidemark.emit('shop', 'order', null)`)
	s.refused("TM002", "See the schema", `select tidemark.emit('shop', 'order', '{}')`)
	s.wantRows(`select count(*)::text from tidemark.outbox`, "14")

	// Without a schema, an object it must be all the same.
	s.refused("TM002", "bank/order: payload is array, not an object", `select tidemark.emit('bank', 'order', '[]')`)
	s.refused("TM002", "payload is null", `select tidemark.emit('bank', 'order', null)`)
	s.refused("TM002", "payload is null", `select tidemark.emit('bank', 'order', 'null')`)
	// Of a type that is not enabled it may be anything: nothing is stored.
	s.wantRows(`select coalesce(tidemark.emit('shop', 'old', '[]')::text, 'null')`, "null")
}

// A payload that is left out is {}, for emit_many as for emit.
func TestEmitManyWithoutPayload(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	s.exec(`select tidemark.domain_set('bank', '{"metadata_only": true}'), tidemark.type_set('shop', 'loose', '{"schema": {"properties": {"n": {"type": "integer"}}}}'),
		tidemark.type_set('shop', 'strict', '{"schema": {"required": ["n"]}}')`)
	for _, of := range []string{"shop order", "bank order", "shop loose"} {
		domain, eventType, _ := strings.Cut(of, " ")
		s.exec(`select tidemark.emit($1, $2)`, domain, eventType)
		s.exec(`select tidemark.emit_many(jsonb_build_array(jsonb_build_object('domain', $1::text, 'type', $2::text)))`, domain, eventType)
	}
	s.wantRows(`select payload::text from tidemark.outbox`, slices.Repeat([]string{"{}"}, 6)...)
	s.refused("TM002", `payload has no key "n"`, `select tidemark.emit('shop', 'strict')`)
	s.refused("TM002", `event 1: shop/strict: payload has no key "n"`, `select tidemark.emit_many('[{"domain": "shop", "type": "strict"}]')`)
}

// EV5.
func TestForbiddenKeys(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	s.exec(`select tidemark.domain_set('shop', '{"metadata_only": true}')`)
	for payload, key := range map[string]string{
		`{"body": 1}`:                       "body",
		`{"content": ""}`:                   "content",
		`{"raw": null}`:                     "raw",
		`{"vector": [1]}`:                   "vector",
		`{"embedding": []}`:                 "embedding",
		`{"secret": {}}`:                    "secret",
		`{"token": false}`:                  "token",
		`{"password": "x"}`:                 "password",
		`{"ssn": "1"}`:                      "ssn",
		`{"personal_data": {}}`:             "personal_data",
		`{"a": {"b": {"body": 1}}}`:         "body",
		`{"a": [1, [{"b": {"token": 1}}]]}`: "token",
		`{"BODY": 1}`:                       "body",
		`{"Password": 1}`:                   "password",
		`{"personal-data": 1}`:              "personal_data",
		`{"personal data": 1}`:              "personal_data",
		`{"personalData": 1}`:               "personal_data",
		`{"PERSONAL.DATA": 1}`:              "personal_data",
		`{"_pass_word_": 1}`:                "password",
		`{" body ": 1}`:                     "body",
		`{"s-s-n": 1}`:                      "ssn",
		`{"\u0062ody": 1}`:                  "body",
		`{"json": "{\"password\": 1}"}`:     "password",
		`{"json": "[{\"a\": {\"Personal-Data\" : 1}}]"}`:  "personal_data",
		`{"json": "{\"inner\": \"{\\\"token\\\": 1}\"}"}`: "token",
		`{"ok": 1, "and": {"then": ["x", {"raw": 1}]}}`:   "raw",
	} {
		text := fmt.Sprintf(`shop/order: payload holds the forbidden key "%s"`, key)
		s.refused("TM003", text, `select tidemark.emit('shop', 'order', $1::text::jsonb)`, payload)
		s.refused("TM003", "event 2: "+text, `select tidemark.emit_many(jsonb_build_array('{"domain": "bank", "type": "order"}'::jsonb,
			jsonb_build_object('domain', 'shop', 'type', 'order', 'payload', $1::text::jsonb)))`, payload)
		s.exec(`select tidemark.emit('bank', 'order', $1::text::jsonb)`, payload) // not metadata-only
	}
	for _, payload := range []string{
		`{"a": "body", "b": "password"}`, `{"a": ["token", "secret"]}`, `{"note": "the body: content, raw"}`, `{"a": "say \"token\" twice"}`,
		`{"body_id": 1, "bodyguard": 2, "tokens": 3, "rawhide": 4, "no_password_here": 5, "ssn4": 6, "x.body": 7}`,
		`{"personal": {"data": 1}}`, `{"pass": 1, "word": 2}`, `{"": "body"}`, `{"a": "body", "\": ": 1}`,
	} {
		s.exec(`select tidemark.emit('shop', 'order', $1::text::jsonb)`, payload)
	}
	s.refused("TM003", "metadata-only", `select tidemark.emit('shop', 'order', '{"token": 1}')`)

	// The list is data.
	s.exec(`insert into tidemark.forbidden_key (key) values ('credit_card'); delete from tidemark.forbidden_key where key = 'raw'`)
	s.refused("TM003", "credit_card", `select tidemark.emit('shop', 'order', '{"a": [{"creditCard": 1}]}')`)
	s.exec(`select tidemark.emit('shop', 'order', '{"raw": 1}')`)
	s.refused("23514", "", `insert into tidemark.forbidden_key (key) values ('Credit Card')`)
}

// A type is as its domain is, whichever came first, and not otherwise by hand.
func TestTypesFollowTheirDomain(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	const forbidden = `select tidemark.emit('shop', $1, '{"token": 1}')`
	s.exec(forbidden, "order")
	s.exec(`select tidemark.domain_set('shop', '{"metadata_only": true}')`)
	s.refused("TM003", "", forbidden, "order")
	s.exec(`select tidemark.type_set('shop', 'new')`)
	s.refused("TM003", "", forbidden, "new")
	s.exec(`update tidemark.event_type set metadata_only = false`)
	s.refused("TM003", "", forbidden, "order")
	s.exec(`select tidemark.emit('bank', 'order', '{"token": 1}')`)
	s.exec(`update tidemark.event_type set domain = 'bank', type = 'moved' where type = 'new'`)
	s.exec(`select tidemark.emit('bank', 'moved', '{"token": 1}')`)
	s.exec(`select tidemark.domain_set('shop', '{"metadata_only": false}')`)
	s.exec(forbidden, "order")
}

func TestEventIDs(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	// Every microsecond of two milliseconds, and around the hour that a zone has twice.
	s.exec(`create table id as select at, tidemark.event_uuid(at) as id from (
		select timestamptz '2026-03-04 05:06:07.89+00' + n * interval '1 microsecond' from generate_series(0, 1999) n
		union all select timestamptz '2026-10-25 00:30:00+00' + n * interval '59.999501 seconds' from generate_series(0, 120) n
		union all values (timestamptz '2199-12-31 23:59:59.999999+00'), ('1970-01-01 00:00:00+00')) t (at)`)
	s.wantRows(`select id::text from id where id::text !~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'`)
	s.wantRows(`select concat_ws(' ', at, id, tidemark.uuid_time(id)) from id
		where tidemark.uuid_time(id) > at or at >= tidemark.uuid_time(id) + interval '1 millisecond' order by at limit 3`)
	equal(t, "ids that differ", one[int](s, `select count(distinct id) from id`), 2000+121+2)
	equal(t, "random bits that were ever set", one[string](s, `select bit_or(('x' || right(replace(id::text, '-', ''), 15))::bit(60))::text from id`), strings.Repeat("1", 60))
	equal(t, "variant bits that differ", one[int](s, `select count(distinct substr(id::text, 20, 1)) from id`), 4)
}

func TestEventIsFoundByItsID(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	s.exec(`set timezone = 'America/New_York'; select tidemark.emit('shop', 'order') from generate_series(1, 1000)`)
	s.exec(`insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, actor, payload)
		select tidemark.event_uuid(at), at, at, 'immediate', 'info', 'shop', 'order', 'test', '{}'
		from generate_series(timestamptz '2026-10-25 00:00:00+00', '2026-10-25 03:00:00+00', interval '59.9995 seconds') at`)
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia"} {
		s.exec("set timezone = '" + zone + "'")
		equal(t, "events not found in "+zone, one[int](s, `select count(*) from tidemark.outbox o where tidemark.event_seq(o.event_id) is distinct from o.seq`), 0)
	}
	s.wantRows(`select coalesce(tidemark.event_seq(id)::text, 'null') from unnest(array[gen_random_uuid(), tidemark.event_uuid(clock_timestamp()), null]) id`,
		"null", "null", "null")
	if got := one[time.Time](s, `select tidemark.uuid_time('018f0c8e-9a1b-7cde-8f01-23456789abcd')`); got.UnixMilli() != 0x018f0c8e9a1b {
		t.Errorf("uuid_time: %v", got)
	}
}

// EV1.
func TestLogIsAppendOnly(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	s.exec(`select tidemark.emit('shop', 'order')`)
	for _, change := range []string{
		`update tidemark.outbox set actor = 'x'`, `update tidemark.outbox_p0 set payload = '{}'`, `update tidemark.outbox set payload = '{"erased": 1, "a": 2}'`,
		`update tidemark.outbox set payload = '{"erased": 1}', actor = 'x'`, `delete from tidemark.outbox`,
		`delete from tidemark.outbox_p0`, `truncate tidemark.outbox`, `truncate tidemark.outbox cascade`,
	} {
		s.refused("TM010", "append-only", change)
	}
	s.wantRows(`select seq::text from tidemark.outbox`, "1")
}
