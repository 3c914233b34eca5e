package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The record of a handler's transaction: made once, and for handlers of the worker alone.
func TestHandledAdd(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "program")
	s.exec(`select tidemark.handlers_register('ledger', '{shop/*}'), tidemark.worker_set('other', '{}')`)
	add := `select tidemark.handled_add('ledger', r.id, 7)::text from tidemark.outbound_route r where r.route_code = 'ledger.shop.all'`
	s.wantRows(add, "true")
	s.wantRows(add, "false")
	s.exec(`delete from tidemark.handled; update tidemark.outbound_route set target_kind = 'stdout', target_ref = 'log' where route_code = 'ledger.shop.all'`)
	s.refused("TM004", "no longer a handler of worker ledger", add)

	// The lease is held beside another that holds it, and keeps a claim away.
	s.exec(`select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.ledger.enabled', true)`)
	s.exec(`select tidemark.claim('ledger', 'me', '10 seconds')`)
	s.exec(`update tidemark.heartbeat set lease_until = now() - interval '1 second' where executor_id = 'ledger/outbox/0'`)
	other := open(t, db, "another handler")
	for _, holder := range []session{s, other} {
		holder.exec(`begin`)
		holder.exec(`select tidemark.lease_hold('ledger', 1)`)
	}
	third := open(t, db, "another instance")
	claim := `select (tidemark.claim('ledger', 'you', '10 seconds')).status`
	third.wantRows(claim, "busy")
	s.exec(`commit`)
	third.wantRows(claim, "busy")
	other.exec(`commit`)
	third.wantRows(claim, "claimed")
	s.refused("TM011", "another instance has taken the cursor", `select tidemark.lease_hold('ledger', 1)`)
}
