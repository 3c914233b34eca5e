package test

import (
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// What was made for commands can be deleted, from the last to the first; each refusal names what is in the way. Claims stay.
func TestCommandDelete(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	const drop, service, key = `select tidemark.command_delete($1, 'charge', 1, $2)`, `select tidemark.service_delete($1, $2)`, `select tidemark.producer_key_delete('k', $1)`
	s.wantRun("processed", "a", `{"id": 1}`)
	s.wantRun("failed_retryable runtime.retries_exhausted", "b", `{"id": 2, "sql": "do 'begin raise sqlstate ''40001''; end'"}`)
	s.wantRun("failed_terminal sql.constraint", "c", `{"id": 3, "cents": 0}`)
	s.exec(`select tidemark.command_allow($1, 'crm', 'charge')`, s.name)
	s.exec(`select tidemark.producer_key_add('k', $1, 'shop', jsonb_build_object('kty', 'OKP', 'crv', 'Ed25519', 'x', repeat('A', 43)))`, s.name)
	made := one[string](s.session, `select 'tidemark.command_' || id || '(jsonb,jsonb)' from tidemark.command`)

	s.refused("TM004", "there is no command", `select tidemark.command_delete($1, 'charge', 2, 'why')`, s.name)
	s.refused("TM005", "it is on", drop, s.name, "why")
	s.command("charge", `{"enabled": false}`)
	s.refused("TM005", "b is parked", drop, s.name, "why")
	s.exec(`select tidemark.command_discard($1, 'b', 'why')`, s.name)
	s.refused("TM005", "open dead letters", drop, s.name, "why")
	s.exec(`select tidemark.dead_letter_discard(id, 'seen') from tidemark.dead_letter`)
	s.refused("TM005", "the allowlist names it, for producer crm", drop, s.name, "why")
	s.refused("TM005", "it has the command "+s.name+".charge/v1", service, s.name, "why")
	s.exec(`select tidemark.command_disallow($1, 'crm', 'charge')`, s.name)
	s.refused("TM005", "needs a reason", drop, s.name, " ")
	s.exec(drop, s.name, "over")
	equal(t, "the function that ran it", one[*string](s.session, `select to_regprocedure($1)::text`, made), nil)
	s.wantRun("rejected contract.unknown_command", "d", `{"id": 4}`)

	s.refused("TM005", "producer shop is on its allowlist", service, s.name, "why")
	s.exec(`select tidemark.command_disallow($1, 'shop')`, s.name)
	s.refused("TM005", "key k is for it", service, s.name, "why")
	s.refused("TM005", "it is valid", key, "why")
	s.exec(`select tidemark.producer_key_revoke('k', 'stolen')`)
	s.exec(key, "over")
	s.refused("TM005", "route results is for its results", service, s.name, "why")
	s.exec(`select tidemark.route_set('results', '{"enabled": false}')`)
	s.exec(`select tidemark.route_delete('results', 'over')`)
	s.refused("TM005", "needs a reason", service, s.name, nil)
	s.exec(service, s.name, "over")
	s.wantRows(`select key from tidemark.setting where key like 'commands.%.enabled'`)
	s.wantRows(`select type from tidemark.event_type where domain = 'commands'`)
	s.wantRows(`select action || ' ' || split_part(object, ' ', 1) from tidemark.audit where action = 'delete' and reason = 'over' and object !~ '^(setting|event_type|type|outbound_route|route) '
		order by 1`, "delete command", "delete producer_key", "delete service")

	// Made again, it goes on: what was asked is not done twice.
	s.exec(`select tidemark.service_set($1)`, s.name)
	s.command("charge", `{"function": "app.charge", "payload_schema": {"type": "object"}}`)
	s.exec(`select tidemark.command_allow($1, 'shop')`, s.name)
	s.exec(`select tidemark.gate_set('commands.' || $1 || '.enabled', true)`, s.name)
	s.exec(`select tidemark.route_set('results', jsonb_build_object('domain', 'commands', 'type', 'result.' || $1::text, 'target_kind', 'notify', 'target_ref', 'results', 'enabled', true, 'dry_run', false))`, s.name)
	s.command("charge", `{"enabled": true, "dry_run": false}`)
	if got := s.run(s.envelope("a", `{"id": 1}`, "")); !strings.HasPrefix(got.String(), "duplicate") {
		t.Error(got)
	}
	s.wantInvoices("1")
}

// A session that parks a command keeps it from being deleted; after a deletion it parks nothing.
func TestCommandDeleteBesideParking(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := serve(t, db).partition()
	p.command("charge", `{"enabled": false}`)
	other := open(t, db, "other")
	p.begin()
	p.wantPass(`ran 1 {"failed_retryable": 1}`, "batch", p.record(0, "a", `{"id": 1}`, `{}`))
	deleted := later[string](other, `select tidemark.command_delete($1, 'charge', 1, 'why')::text`, p.name)
	p.waitsFor(other)
	p.commit()
	if _, err := deleted(); err == nil || !strings.Contains(err.Error(), "a is parked") {
		t.Error(err)
	}
	p.exec(`select tidemark.command_discard($1, 'a', 'why')`, p.name)
	p.exec(`select tidemark.dead_letter_discard(id, 'seen') from tidemark.dead_letter`)

	// One that has looked the command up before.
	call := p.record(1, "b", `{"id": 1}`, `{}`)
	other.begin()
	other.exec(`select tidemark.command_delete($1, 'charge', 1, 'why')`, p.name)
	parked := later[string](p.session, `select tidemark.command_hold($1::jsonb)::text`, call)
	other.waitsFor(p.session)
	other.commit()
	if _, err := parked(); err == nil || !strings.Contains(err.Error(), "is not registered") {
		t.Error(err)
	}
	p.wantRows(`select idempotency_key from tidemark.command_parked`)
}
