package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// another registers a second live service with the command charge, whose function does the same.
func (s *service) another() (name string) {
	s.t.Helper()
	name = s.name + "-b"
	role := "tidemark_service_" + name
	s.t.Cleanup(func() { s.exec(`drop owned by "` + role + `"; drop role "` + role + `"`) })
	s.exec(`select tidemark.service_set($1)`, name)
	s.exec(`grant usage on schema app to "` + role + `"; grant all on all tables in schema app to "` + role + `"`)
	s.exec(`select tidemark.command_set($1, 'charge', 1, '{"function": "app.charge", "payload_schema": {"type": "object"}}'), tidemark.command_allow($1, 'shop'), tidemark.gate_set('commands.' || $1 || '.enabled', true)`, name)
	s.exec(`select tidemark.route_set('results.b', jsonb_build_object('domain', 'commands', 'type', 'result.' || $1::text, 'target_kind', 'notify', 'target_ref', 'results', 'enabled', true, 'dry_run', false))`, name)
	s.exec(`select tidemark.command_set($1, 'charge', 1, '{"enabled": true, "dry_run": false}')`, name)
	return name
}

// SE1: a cursor that a command leaves open cannot be read by the code of another service, in a pass nor in a transaction of the caller;
// the cursors of the caller stay, those from which Tidemark itself reads among them.
func TestCommandCursorsEndWithTheirService(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	other := fmt.Sprintf(`{"service": %q}`, p.another())
	p.exec(`create table app.saw (id bigint generated always as identity, cursors text); grant insert on app.saw to public`)
	saw := func(id int) string {
		return fmt.Sprintf(`{"id": %d, "sql": "insert into app.saw (cursors) select string_agg(name, ' ') from pg_cursors where statement ~ 'secret'"}`, id)
	}
	offset := int64(0)
	for id, opens := range []string{
		`execute ''declare shared cursor for select ''''secret''''''`,
		`execute ''declare shared scroll cursor for select ''''secret''''; fetch shared''`,
		`declare c refcursor := ''shared''; begin open c for select ''secret''; end`,
		`declare c refcursor; begin open c for select ''secret''; end`,
	} {
		id = 10 * (id + 1)
		open := func(id int) string { return fmt.Sprintf(`{"id": %d, "sql": "do 'begin %s; end'"}`, id, opens) }
		calls := []string{p.record(offset, fmt.Sprint("a", id), open(id), `{}`), p.record(offset+1, fmt.Sprint("b", id), saw(id+1), other)}
		p.wantPass(fmt.Sprintf(`ran %d {"processed": 2}`, offset+2), "batch", calls...)
		offset += 2

		// In a transaction of the caller, with cursors of its own.
		p.begin()
		p.exec(`declare mine cursor for select 1; declare "Mine too" cursor for select 2`)
		p.wantRun("processed", fmt.Sprint("c", id), open(id+2))
		equal(t, "of the caller", one[string](p.session, `select tidemark.command_run($1) ->> 'status'`, p.envelope(fmt.Sprint("d", id), saw(id+3), other)), "processed")
		p.wantRows(`select name::text from pg_cursors where not is_holdable and name <> '' order by 1`, "Mine too", "mine")
		p.exec(`fetch mine`)
		p.commit()
	}
	p.wantRows(`select distinct coalesce(cursors, 'none') from app.saw`, "none")

	// What may not be left at all is refused before the code of the other runs, and the first command has the blame.
	p.exec(`truncate app.saw`)
	hold := fmt.Sprintf(`{"id": 100, "sql": "do 'begin %s; end'"}`, `execute ''declare shared cursor with hold for select ''''secret''''''`)
	refused := p.wantCode("42501", "batch", p.record(offset, "hold", hold, `{}`), p.record(offset+1, "last", saw(101), other))
	equal(t, "blamed", refused.ColumnName+" "+refused.ConstraintName, "1 sql.permission")

	// A cursor of the caller that is closed by a command is no longer what it was.
	p.begin()
	p.exec(`declare mine cursor for select 1`)
	p.wantRun("failed_retryable sql.permission", "closes", `{"id": 102, "sql": "close mine"}`)
	p.rollback()
}
