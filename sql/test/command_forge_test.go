package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// An executor runs commands by command_run alone: the functions within believe who asks, and how, and are granted to no role.
func TestCommandCannotBeForged(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	executor := login(t, db, "executor", "tidemark_executor")
	s.wantRun("processed", "k", `{"id": 1}`)
	call := s.call("k", `{"id": 1}`, `{"via": "jws", "login": "postgres", "parked": true}`)
	const fail = `select tidemark.command_fail($1::jsonb, 'terminal', 'sql.constraint', 'words', '23514', 1)`
	executor.refused("42501", "permission denied for function command_batch", runBatch, "["+call+"]")
	executor.refused("42501", "permission denied for function command_fail", fail, call)
	executor.refused("42501", "permission denied for function command_try", `select tidemark.command_try($1::jsonb)`, call)
	// Nor does a caller within take what is not parked for a retry, or write behind a gate.
	s.refused("TM005", "is not parked", runBatch, "["+call+"]")
	s.refused("TM005", "is not parked", fail, call)
	s.exec(`select tidemark.gate_set('commands.enabled', false)`)
	s.refused("TM009", "closed by commands.enabled", fail, s.call("new", `{"id": 2}`, "{}"))
	s.exec(`select tidemark.gate_set('commands.enabled', true)`)
	s.wantRows(`select idempotency_key || ' ' || state || ' ' || via from tidemark.command_claim`, "k processed psql")
	s.wantInvoices("1")
	equal(t, "executor", executor.run(s.envelope("l", `{"id": 2}`, "")).Status, "processed")
	s.wantRows(`select login::text from tidemark.command_claim where idempotency_key = 'l'`, executor.name)
}

// A function of a command leaves the session as it was, in a dry run and when it fails too: settings, prepared statements, cursors.
func TestCommandLeavesTheSession(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	const mine = `do $$ begin if exists (select from pg_prepared_statements where name = 'mine') then deallocate mine; end if; end $$; prepare mine as select 1`
	const path = `select current_setting('search_path')`
	was := column[string](s.session, path)
	for i, change := range []string{
		`set search_path = app, pg_catalog`, `set search_path = app; set local search_path = pg_catalog, pg_temp`, `set datestyle = german`,
		`set row_security = off`, `set statement_timeout = 1234567`, `set default_transaction_read_only = on`,
		`prepare yours as select 2`, `deallocate mine; prepare mine as select 2`, `execute ''declare hold cursor with hold for select 1''`,
		`execute ''close held''; execute ''declare held cursor with hold for select 2''`,
		`set lock_timeout = 5`, `set application_name = another`, `set exit_on_error = on`, `set synchronous_commit = off`,
		`create temp table pg_class ()`, `create function pg_temp.f() returns int language sql as ''select 1''`,
	} {
		for n, in := range []string{
			`do 'begin %s; end'`, `do 'begin %s; raise exception ''no''; end'`,
		} {
			if strings.Contains(change, "exit_on_error") && n == 1 {
				continue // the error ends the session
			}
			state := `select name || ' ' || setting from pg_settings where source = 'session' order by 1`
			before := column[string](s.session, state)
			payload := fmt.Sprintf(`{"id": %d, "sql": "%s"}`, i+1, fmt.Sprintf(in, change))
			want := []string{"failed_retryable sql.permission", "failed_terminal sql.business_rule"}[n]
			for _, dry := range []bool{true, false} {
				s.exec(`close all; declare held cursor with hold for select 1`)
				s.exec(mine)
				got := parseResult(t, one[string](s.session, `select tidemark.command_run($1, dry_run => $2)::text`, s.envelope(fmt.Sprint(i, n), payload, ""), dry))
				equal(t, change, got.String(), want)
			}
			equal(t, change, column[string](s.session, path), was)
			equal(t, change, column[string](s.session, state), before)
			s.wantRows(`select name || ' ' || statement from pg_prepared_statements where from_sql and statement not like '%select 1%'`)
			s.wantRows(`select statement from pg_cursors where is_holdable and statement not like '%select 1%'`)
		}
	}
	s.wantInvoices()
	s.exec(mine)
	s.exec(`close all`)
	s.wantRun("processed", "clean", `{"id": 77, "sql": "set local app.mine = 'x'"}`)
	s.wantRows(`select name from pg_prepared_statements where from_sql`, "mine")
}

// The fields of an error that is not a command's do not pass for those by which Tidemark says what failed.
func TestCommandCancelHasNoFields(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.refused("57014", "down", `select tidemark.command_run($1)`,
		s.envelope("k", `{"id": 1, "sql": "do 'begin raise exception using errcode = ''57014'', message = ''down'', datatype = ''terminal'', constraint = ''identity.key_revoked''; end'"}`, ""))
	s.wantRows(`select idempotency_key from tidemark.command_claim`)
	s.refused("TM005", "is one of PostgreSQL's own", `select tidemark.service_set('x', '{"role": "pg_execute_server_program"}')`)
}
