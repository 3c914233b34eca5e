package test

import (
	"fmt"
	"testing"
)

const unregistered = `select concat_ws(' ', domain, type, role, emits) from tidemark.unregistered_type order by 1`

// EV9: an emit of an unregistered type stores nothing and is no error, but leaves a trace and a finding.
func TestEmitUnregisteredLeavesATrace(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	const findings = `select concat_ws(' ', kind, subject, severity, count, detail) from tidemark.finding where closed_at is null`
	s.exec(`select tidemark.emit('shop', 'ordr'), tidemark.emit('shop', 'ordr', idempotency_key => 'k'), tidemark.emit('shop', 'old'), tidemark.emit(null, null)`)
	s.exec(`select tidemark.emit_many('[{"domain": "shop", "type": "ordr"}, {"domain": "shop", "type": "order", "idempotency_key": "k"}, {"domain": "shop", "type": "ordr"}]')`)
	s.exec(`select tidemark.emit('shop', 'order', idempotency_key => 'k'), tidemark.emit_many('[{"domain": "shop", "type": "order", "idempotency_key": "k"}]')`)
	s.refused("TM001", "shop/strict", `select tidemark.emit_strict('shop', 'strict')`)
	s.refused("TM001", "shop/strict", `select tidemark.emit_many_strict('[{"domain": "shop", "type": "strict"}]')`)
	s.wantRows(findings)
	// What maintain has not summed up yet is told already, to readers too, and the same afterwards.
	const told = `select concat_ws(' ', domain, type, role, emits, last_at >= first_at) from tidemark.unregistered_emits order by 1`
	s.exec(`set role tidemark_reader`)
	s.wantRows(told, "  postgres 1 t", "shop old postgres 1 t", "shop ordr postgres 4 t")
	s.exec(`reset role`)
	for range 2 {
		s.exec(`select tidemark.maintain()`)
		s.wantRows(unregistered, "  postgres 1", "shop old postgres 1", "shop ordr postgres 4")
		s.wantRows(findings, "emit_unregistered emit warning 1 6 emits stored nothing, since the type is not registered or not enabled: "+
			"shop/ordr by postgres (4), / by postgres (1), shop/old by postgres (1)")
	}
	s.wantRows(told, "  postgres 1 t", "shop old postgres 1 t", "shop ordr postgres 4 t")
	s.exec(`select tidemark.emit('shop', 'old')`)
	s.wantRows(told, "  postgres 1 t", "shop old postgres 2 t", "shop ordr postgres 4 t")
	s.exec(`select tidemark.maintain()`)
	s.wantRows(`select count::text from tidemark.finding where closed_at is null`, "2")

	// It is over for a type that is registered, and for one that is not emitted any more.
	s.exec(`select tidemark.type_set('shop', 'ordr'), tidemark.type_set('shop', 'old', '{"enabled": true}')`)
	s.wantRows(told, "  postgres 1 t")
	s.exec(`select tidemark.maintain()`)
	s.wantRows(unregistered, "  postgres 1")
	s.exec(`update tidemark.unregistered_type set last_at = last_at - interval '25 hours'; select tidemark.maintain()`)
	s.wantRows(unregistered)
	s.wantRows(findings)
}

// Random names fill neither table, whether maintain is called or not.
func TestUnregisteredIsBounded(t *testing.T) {
	t.Parallel()
	_, s := emitter(t)
	const long = `select tidemark.emit_many((select jsonb_agg(jsonb_build_object('domain', repeat('d', 1000) || n, 'type', n || repeat('t', 1000))) from generate_series(1, 5000) n))`
	s.exec(long)
	s.wantRows(`select concat_ws(' ', max(length(domain)), max(length(type))) from tidemark.emit_unregistered`, "63 128")
	for range 12 {
		s.exec(long)
	}
	s.wantRows(`select (pg_relation_size('tidemark.emit_unregistered') between 8000000 and 8388608 + 8192)::text`, "true")
	s.wantRows(`select concat_ws(' ', count(*), sum(emits) > 30000) from tidemark.unregistered_emits`, "1000 t")
	s.exec(`select tidemark.maintain()`)
	s.wantRows(`select (count(*) = 0)::text from tidemark.emit_unregistered`, "true")
	s.wantRows(`select concat_ws(' ', count(*), bool_or(domain = '*' and type = '*' and role = '*'), sum(emits) > 30000) from tidemark.unregistered_type`, "1000 t t")
	s.wantRows(`select (length(detail) < 2000 and detail like '%, and 995 more')::text from tidemark.finding where kind = 'emit_unregistered'`, "true")
}

// Neither another emitter nor maintain waits for a transaction that has left a trace.
func TestUnregisteredWaitsForNobody(t *testing.T) {
	t.Parallel()
	db, s := emitter(t)
	other := open(t, db, "other")
	other.exec(`set lock_timeout = '5s'`)
	s.begin()
	for i, emit := range []string{`select tidemark.emit('shop', 'ordr')`, `select tidemark.emit_many('[{"domain": "shop", "type": "ordr"}]')`} {
		s.exec(emit)
		other.exec(emit)
		other.exec(`select tidemark.maintain()`)
		other.wantRows(unregistered, fmt.Sprintf("shop ordr postgres %d", i+1))
	}
	s.commit()
	s.exec(`select tidemark.maintain()`)
	s.wantRows(unregistered, "shop ordr postgres 4")
}
