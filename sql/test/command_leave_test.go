package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A table of the team whose constraint trigger writes into the table again, as often as a row says, and defers itself before.
const againTable = `
create table app.again (left_ int, by name not null default current_user);
create function app.again() returns trigger language plpgsql as $$
begin
	if new.left_ > 0 then
		%s
		insert into app.again values (new.left_ - 1);
	end if;
	return null;
end $$;
create constraint trigger again after insert on app.again deferrable initially deferred for each row execute function app.again();`

// H1: a trigger that defers itself again while constraints are checked runs with the rights of the service, never at the commit.
func TestCommandTriggerDefersItself(t *testing.T) {
	t.Parallel()
	for name, defers := range map[string]string{
		"all":       "set constraints all deferred;",
		"by name":   "set constraints app.again deferred;",
		"in a part": "begin set constraints all deferred; exception when others then null; end;",
		"not":       "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tidemarktest.NewDB(t))
			role := "tidemark_service_" + s.name
			s.exec(fmt.Sprintf(againTable, defers) + `grant insert on app.again to "` + role + `"`)
			s.wantRun("processed", "few", `{"id": 1, "sql": "insert into app.again values (4)"}`)
			s.wantRows(`select by::text || ' ' || left_ from app.again order by left_`, role+" 0", role+" 1", role+" 2", role+" 3", role+" 4")
			if defers != "" {
				got := s.wantRun("failed_retryable sql.permission", "many", `{"id": 2, "sql": "insert into app.again values (1000)"}`)
				equal(t, "message", got.Message, "a right is missing (42501)")
			}
			s.wantRows(`select distinct by::text from app.again`, role)
			s.wantInvoices("1")
			s.wantRows(`select count(*)::text from tidemark.command_mark`, "0")
		})
	}
}

// The same with a trigger that the command itself makes, which it can do alone.
func TestCommandMakesATrigger(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	role := "tidemark_service_" + s.name
	s.exec(`grant create on schema app to "` + role + `"`)
	s.exec(`create table app.seen (by name default current_user); grant insert on app.seen to public`)
	make := strings.ReplaceAll(fmt.Sprintf(againTable, "set constraints all deferred; insert into app.seen default values;"), "\n", " ")
	s.exec(`create function app.make() returns void language plpgsql as $f$ begin ` + strings.ReplaceAll(make, "\t", " ") + ` insert into app.again values (3); end $f$`)
	makes := `{"id": 1, "sql": "select app.make()"}`
	if err := s.try(`select tidemark.command_batch(jsonb_build_array($1::jsonb, $2::jsonb))`, s.call("j", `{"id": 2}`, `{}`), s.call("k", makes, `{}`)); err == nil || err.Code != "40001" {
		t.Errorf("with others: %+v", err)
	}
	s.wantRows(`select by::text from app.seen`)
	s.wantRun("processed", "k", makes)
	s.wantRows(`select distinct by::text from app.seen`, role)
	s.wantRows(`select distinct by::text from app.again`, role)
	s.wantInvoices("1")
}

// Settings of a command are neither those of the next one of the pass, nor of the session after it, also where SET LOCAL hides them.
func TestCommandPassResetsTheSession(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	p.exec(`create table app.saw (setting text, value text); grant insert on app.saw to public`)
	const sets = `do 'begin set app.mine = mine; set work_mem = ''9MB''; set local work_mem = ''5MB''; set tidemark.default_search_path = evil; listen evil; end'`
	const look = `insert into app.saw select n, current_setting(n, true) from unnest('{app.mine,work_mem,tidemark.default_search_path}'::text[]) n`
	p.wantPass(`ran 2 {"processed": 2}`, "batch",
		p.record(0, "a", fmt.Sprintf(`{"id": 1, "sql": %q}`, sets), `{}`), p.record(1, "b", fmt.Sprintf(`{"id": 2, "sql": %q}`, look), `{}`))
	p.wantRows(`select setting || ' ' || coalesce(value, '') from app.saw order by 1`, "app.mine ", "tidemark.default_search_path ", "work_mem 4MB")
	p.wantPass(`ran 3 {"processed": 1}`, "batch", p.record(2, "c", fmt.Sprintf(`{"id": 3, "sql": %q}`, sets), `{}`))
	p.wantRows(`select coalesce(current_setting(n, true), '') from unnest('{app.mine,work_mem,tidemark.default_search_path}'::text[]) n`, "", "4MB", "")

	// Also after a retry.
	p.exec(`insert into app.flag values ('healed')`)
	p.command("charge", `{"enabled": false}`)
	p.wantPass(`ran 4 {"failed_retryable": 1}`, "batch", p.record(3, "d", fmt.Sprintf(`{"id": 4, "sql": %q}`, sets), `{}`))
	p.command("charge", `{"enabled": true}`)
	p.exec(`delete from app.flag`)
	equal(t, "retry", one[string](p.session, `select tidemark.command_retry_one($1, 'd', false) ->> 'status'`, p.name), "processed")
	p.wantRows(`select coalesce(current_setting(n, true), '') from unnest('{app.mine,work_mem,tidemark.default_search_path}'::text[]) n`, "", "4MB", "")

	// What SQL targets run with is what the session began with, whatever a function has set.
	p.exec(`set tidemark.default_search_path = evil; set search_path = evil`)
	p.wantRows(`select tidemark.default_search_path()`, `"$user", public`)
	p.wantRows(`select current_setting('search_path')`, "evil")
}

// A session advisory lock that a function takes, and what it listens to, do not stay in the daemon's session, also where it fails. In
// that of a caller they stay, as do the caller's own.
func TestCommandLeavesNoLock(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := serve(t, db).partition()
	other := open(t, db, "other")
	locks := func(id int, then string) string {
		return fmt.Sprintf(`{"id": %d, "sql": %q}`, id, fmt.Sprintf(`do 'begin perform pg_advisory_lock(4711); listen evil; %s end'`, then))
	}
	free := func(what string, want bool) {
		t.Helper()
		equal(t, what, one[bool](other, `select case when pg_try_advisory_lock(4711) then pg_advisory_unlock(4711) else false end`), want)
		equal(t, what, one[bool](p.session, `select not exists (select from pg_listening_channels())`), want)
	}
	p.wantPass(`ran 1 {"processed": 1}`, "batch", p.record(0, "a", locks(1, ""), `{}`))
	free("a pass", true)
	fails := p.record(1, "b", locks(2, "raise sqlstate ''40001'';"), `{}`)
	_ = p.wantCode("40001", "batch", fails)
	free("a pass that fails", true)
	p.wantPass(`ran 2 {"failed_retryable": 1}`, "alone", fails)
	free("one alone that fails", true)
	for what, retry := range map[string]string{
		"a retry": `select tidemark.command_retry_one($1, 'b', false)`, "retries": `select tidemark.command_retry_batch(array[$1], '{b}', 50)`,
	} {
		p.exec(`update tidemark.command_parked set next_attempt_at = now(), error_count = 0`)
		p.exec(retry, p.name)
		free(what, true)
	}
	p.exec(`set statement_timeout = '1s'`)
	_ = p.wantCode("57014", "batch", p.record(2, "c", locks(3, "perform pg_sleep(100);"), `{}`))
	free("one that does not end", true)
	p.exec(`reset statement_timeout`)
	p.exec(`select tidemark.command_ingress($1, null)`, p.envelope("d", locks(4, ""), ""))
	free("over HTTP", true)

	p.exec(`select pg_advisory_lock(4711); listen mine`)
	p.wantRun("processed", "e", `{"id": 5}`)
	p.wantRun("failed_terminal sql.constraint", "f", `{"id": 5}`)
	free("the caller's own", false)
}

// H7: an outage that a function raises keeps neither the others from their turn, nor becomes a failure.
func TestCommandOutageOfItsOwn(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	s.command("charge", `{"retry_policy": {"max_attempts": 2, "base_seconds": 0.000001, "max_seconds": 0.000001, "jitter": 0}}`)
	raises := func(id int, state string) string {
		return fmt.Sprintf(`{"id": %d, "sql": "do 'begin raise sqlstate ''%s''; end'"}`, id, state)
	}
	s.wantRun("failed_retryable runtime.retries_exhausted", "a", raises(1, "08006"))
	s.exec(`select tidemark.command_run($1)`, s.envelope("b", raises(2, "40001"), ""))
	s.exec(`update tidemark.command_parked set next_attempt_at = now() - interval '1 s' * (3 - position)`)
	s.wantRows(`select idempotency_key || ' ' || (document ->> 'status') from tidemark.command_retry(2)`, "a failed_retryable", "b failed_terminal")
	for range 3 {
		s.wantRows(`select idempotency_key || ' ' || (document ->> 'status') from tidemark.command_retry(1)`, "a failed_retryable")
	}
	s.wantRows(`select idempotency_key || ' ' || error_count || ' ' || sqlstate from tidemark.command_parked`, "a 5 08006")
	s.wantRows(`select kind from tidemark.finding where closed_at is null and kind like 'command%'`, "command_circuit")
	s.exec(`insert into app.flag values ('healed')`)
	s.wantRows(`select idempotency_key || ' ' || (document ->> 'status') from tidemark.command_retry(1)`, "a processed")
	s.wantRows(`select kind from tidemark.finding where closed_at is null and kind like 'command%'`)
	s.exec(`delete from app.flag`)

	// Canceled before its time: it waits on, and the next call comes to the others.
	s.exec(`select tidemark.command_run($1)`, s.envelope("c", raises(3, "08006"), ""))
	s.exec(`update tidemark.command_parked set call = replace(call::text, '08006', '57014')::jsonb`)
	s.wantRows(`select idempotency_key || ' ' || (document ->> 'error_code') from tidemark.command_retry()`, "c runtime.timeout")
	s.wantRows(`select state from tidemark.command_claim where idempotency_key = 'c'`, "failed_retryable")

	// An executor that says of a command that it was late makes it wait, and no failure of it.
	executor := login(t, db, "executor", "tidemark_executor")
	for range 4 {
		s.exec(`update tidemark.command_parked set next_attempt_at = now()`)
		equal(t, "late", one[string](executor.session, `select tidemark.command_retry_one($1, 'c', true) ->> 'status'`, s.name), "failed_retryable")
	}
	s.exec(`insert into app.flag values ('healed')`)
	s.wantRows(`select idempotency_key || ' ' || (document ->> 'status') from tidemark.command_retry(1)`, "c processed")
	s.wantInvoices("1", "3")
}

// The server ends a command that has had its time, and the database records that by itself.
func TestCommandTimeoutIsTheDatabases(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	p.command("charge", `{"timeout": "100 ms"}`)
	loop := p.record(0, "a", `{"id": 1, "sql": "select pg_sleep(100)"}`, `{}`)
	p.exec(`set statement_timeout = '3s'`)
	refused := p.wantCode("57014", "batch", loop)
	equal(t, "blamed", refused.DataTypeName+" "+refused.ColumnName, "retryable 1")
	p.wantPass(`ran 1 {"failed_retryable": 1}`, "alone", loop)
	p.wantRows(`select state || ' ' || error_code || ' ' || error_message from tidemark.command_claim`, "failed_retryable runtime.timeout the command did not end within 100 ms")
}

// The lease says where a record stands, and the database what a name in it counts.
func TestCommandPassBelievesNoPlace(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	_ = p.wantCode("TM005", "batch", p.record(1, "a", `{"id": 1}`, `{}`))
	_ = p.wantCode("TM005", "batch", p.record(1, "a", `{"id": 1}`, `{}`), p.record(0, "b", `{"id": 2}`, `{}`))
	_ = p.wantCode("TM005", "batch", p.record(0, "a", `{"id": 1}`, `{"offset": null}`))
	for _, via := range []string{`"psql"`, `"ingress"`, `null`} {
		_ = p.wantCode("TM005", "batch", p.record(0, "a", `{"id": 1}`, `{"via": `+via+`}`))
	}
	p.wantPass(`ran 1 {"rejected": 1}`, "batch", p.record(0, "a", `{"id": 1}`, `{"via": "claimed"}`))
	p.wantRows(`select error_code from tidemark.dead_letter`, "identity.signature_missing")
	p.wantPass(`ran 2 {"processed": 1}`, "batch", p.record(1, "a", `{"id": 1}`, `{"topic": "x", "topic_id": "X", "partition": 9}`))
	p.wantRows(`select topic_id || ' ' || partition || ' ' || "offset" from tidemark.command_claim`, "T 3 1")
	p.exec(`update tidemark.setting set value = 'claimed' where key = 'commands.shared_topic'`)
	p.wantPass(`ran 3 {"processed": 1}`, "batch", p.record(2, "b", `{"id": 2}`, `{"via": "claimed"}`))
}
