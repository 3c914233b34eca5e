package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// call is a checked command, as the consumer hands it to command_batch.
func (s *service) call(key, payload, changes string) string {
	s.t.Helper()
	return one[string](s.session, `select (call || jsonb_build_object('via', 'acl', 'fingerprint', encode(tidemark.command_fingerprint(call ->> 'service', call ->> 'tenant', call ->> 'command',
		(call ->> 'command_version')::int, call -> 'payload'), 'hex')) || $2::jsonb)::text from tidemark.command_envelope($1)`, s.envelope(key, payload, ""), changes)
}

const runBatch = `select "position" || ' ' || status from tidemark.command_batch($1::jsonb) order by 1`

// CM4: one key twice at once: the second waits for the first, and gets its answer; if the first is undone, the second runs.
func TestCommandTwiceAtOnce(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	other := open(t, db, "other")
	s.begin()
	first := s.wantRun("processed", "k", `{"id": 1}`)
	second := later[string](other, `select tidemark.command_run($1)::text`, s.envelope("k", `{"id": 1}`, ""))
	s.waitsFor(other)
	s.commit()
	text, err := second()
	if err != nil {
		t.Fatal(err)
	}
	if got := parseResult(t, text); got.String() != "duplicate" || got.First != first.EventID || got.At != first.At {
		t.Errorf("got %v of %s", got, got.First)
	}

	s.begin()
	s.wantRun("processed", "l", `{"id": 2}`)
	second = later[string](other, `select tidemark.command_run($1)::text`, s.envelope("l", `{"id": 2}`, ""))
	s.waitsFor(other)
	s.rollback()
	if text, err = second(); err != nil || parseResult(t, text).Status != "processed" {
		t.Errorf("%s %v", text, err)
	}

	// The first fails, while the second waits for its key: the second runs and fails by itself.
	s.begin()
	s.wantRun("processed", "m", `{"id": 3}`)
	second = later[string](other, `select tidemark.command_run($1)::text`, s.envelope("n", `{"id": 3}`, ""))
	s.waitsFor(other)
	s.commit()
	if text, err = second(); err != nil || parseResult(t, text).String() != "failed_terminal sql.constraint" {
		t.Errorf("%s %v", text, err)
	}
	s.wantInvoices("1", "2", "3")
}

// CM5: the backend is gone between the execution and the commit: nothing is there, and the command runs again.
func TestCommandBackendGone(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	other := open(t, db, "other")
	other.begin()
	envelope := s.envelope("k", `{"id": 1}`, "")
	equal(t, "run", other.run(envelope).Status, "processed")
	s.exec(`select pg_terminate_backend($1)`, other.conn.PgConn().PID())
	_, err := other.conn.Exec(t.Context(), `commit`)
	var refused *pgconn.PgError
	if err == nil || errors.As(err, &refused) && refused.Code != "57P01" {
		t.Fatalf("commit: %v", err)
	}
	equal(t, "again", s.run(envelope).Status, "processed")
	equal(t, "and again", s.run(envelope).Status, "duplicate")
	s.wantInvoices("1")
	s.wantRows(`select payload ->> 'status' from tidemark.outbox where domain = 'commands' order by seq`, "processed", "duplicate")
}

// CM6: what can heal is parked; later commands of its ordering key wait behind it, others go on; a resend runs nothing.
func TestCommandParked(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.command("charge", `{"retry_policy": {"max_attempts": 3, "base_seconds": 0.000001, "max_seconds": 0.000001, "jitter": 0}}`)
	run := func(key, order, payload string) commandResult {
		t.Helper()
		return parseResult(t, one[string](s.session, `select tidemark.command_run($1, key => $2)::text`, s.envelope(key, payload, ""), order))
	}
	collides := func(id int) string {
		return fmt.Sprintf(`{"id": %d, "sql": "do 'begin raise sqlstate ''40001''; end'"}`, id)
	}
	equal(t, "first", run("a", "order", collides(1)).String(), "failed_retryable runtime.retries_exhausted")
	equal(t, "behind", run("b", "order", `{"id": 2}`).String(), "failed_retryable")
	equal(t, "behind, too", run("c", "order", collides(3)).String(), "failed_retryable")
	equal(t, "another key", run("d", "else", `{"id": 4}`).String(), "processed")
	for _, key := range []string{"a", "b"} {
		again := run(key, "order", map[string]string{"a": collides(1), "b": `{"id": 2}`}[key])
		equal(t, "resend", []string{again.Status, again.Was}, []string{"duplicate", "failed_retryable"})
	}
	s.wantInvoices("4")
	s.wantRows(`select idempotency_key || ' ' || (next_attempt_at = 'infinity') from tidemark.command_parked order by position`, "a false", "b true", "c true")

	const retry = `select idempotency_key || ' ' || (document ->> 'status') from tidemark.command_retry(1)`
	s.exec(`select tidemark.gate_set('commands.enabled', false)`)
	s.wantRows(retry)
	s.exec(`select tidemark.gate_set('commands.enabled', true)`)
	s.wantRows(retry, "a failed_retryable")
	s.exec(`insert into app.flag values ('healed')`)
	s.wantRows(retry, "a processed")
	s.wantRows(retry, "b processed")
	s.exec(`delete from app.flag`)
	// The retries of c end; its dead letter tells, and the next of its key goes on.
	equal(t, "behind c", run("e", "order", `{"id": 5}`).String(), "failed_retryable")
	s.wantRows(retry, "c failed_retryable")
	s.wantRows(retry, "c failed_retryable")
	s.wantRows(retry, "c failed_terminal")
	s.wantRows(retry, "e processed")
	s.wantRows(retry)
	s.wantInvoices("1", "2", "4", "5")
	s.wantRows(`select idempotency_key || ' ' || state || ' ' || attempts from tidemark.command_claim order by 1`,
		"a processed 7", "b processed 1", "c failed_terminal 9", "d processed 1", "e processed 1")
	// Parked once, told once; done, told once.
	s.wantRows(`select (payload ->> 'idempotency_key') || ' ' || (payload ->> 'status') from tidemark.outbox where type like 'result.%' and payload ->> 'status' <> 'duplicate' order by seq`,
		"a failed_retryable", "b failed_retryable", "c failed_retryable", "d processed", "a processed", "b processed", "e failed_retryable", "c failed_terminal", "e processed")
	s.wantRows(`select error_code || ' ' || attempts from tidemark.dead_letter`, "runtime.retries_exhausted 9")
	s.refused("TM005", "belongs to a command", `select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
}

// What an operator has to mend ends no retries: the command waits, with a finding, and runs when it is mended.
func TestCommandCircuit(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.exec(`revoke insert on app.invoice from "tidemark_service_` + s.name + `"`)
	s.wantRun("failed_retryable sql.permission", "k", `{"id": 1}`)
	s.wantRows(`select kind || ' ' || severity from tidemark.finding where closed_at is null`, "command_circuit high")
	for range 12 {
		s.exec(`update tidemark.command_parked set next_attempt_at = now()`)
		s.wantRows(`select document ->> 'status' from tidemark.command_retry()`, "failed_retryable")
	}
	s.wantRows(`select error_count::text from tidemark.command_parked`, "0") // what can heal has all of its retries left
	s.exec(`update tidemark.command_parked set next_attempt_at = now() - interval '1 hour'`)
	s.exec(`select tidemark.gate_set('commands.enabled', false)`)
	s.exec(`select * from tidemark.maintain()`)
	s.wantRows(`select kind || ' ' || (detail like '1 parked commands are due%closed by commands.enabled') from tidemark.finding where closed_at is null order by 1`, "command_circuit false", "command_waiting true")
	s.wantRows(`select name || ' ' || status || ' ' || note from tidemark.queue_health where kind = 'command_parked'`, s.name+" ok closed by commands.enabled")
	s.exec(`select tidemark.gate_set('commands.enabled', true)`)
	s.wantRows(`select status from tidemark.queue_health where kind = 'command_parked'`, "bad")
	s.exec(`grant insert on app.invoice to "tidemark_service_` + s.name + `"`)
	s.wantRows(`select document ->> 'status' from tidemark.command_retry()`, "processed")
	s.exec(`select * from tidemark.maintain()`)
	s.wantRows(`select kind from tidemark.finding where closed_at is null`)
	s.wantInvoices("1")
}

// A payload that asks for what no right allows holds back the commands of its ordering key for as long as its retries last; an
// operator can give it up at once.
func TestCommandGivenUp(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.command("charge", `{"retry_policy": {"max_attempts": 2, "base_seconds": 0.000001, "max_seconds": 0.000001, "jitter": 0}}`)
	run := func(key, payload string) commandResult {
		t.Helper()
		return parseResult(t, one[string](s.session, `select tidemark.command_run($1, key => 'order')::text`, s.envelope(key, payload, "")))
	}
	forbidden := func(id int) string {
		return fmt.Sprintf(`{"id": %d, "sql": "select from tidemark.setting"}`, id)
	}
	retry := func(want ...string) {
		t.Helper()
		s.exec(`update tidemark.command_parked set next_attempt_at = now() where sqlstate is not null`)
		s.wantRows(`select idempotency_key || ' ' || (document ->> 'status') || coalesce(' ' || (document ->> 'error_code'), '') from tidemark.command_retry()`, want...)
	}
	equal(t, "first", run("a", forbidden(1)).String(), "failed_retryable sql.permission")
	equal(t, "behind", run("b", forbidden(2)).String(), "failed_retryable")
	equal(t, "behind", run("c", `{"id": 3}`).String(), "failed_retryable")
	for range 3 { // as far as one can tell, the right may come
		retry("a failed_retryable sql.permission")
	}
	s.wantRun("processed", "else", `{"id": 4}`)
	var attempts int
	for attempts = 1; attempts < 5; attempts++ {
		s.exec(`update tidemark.command_parked set next_attempt_at = now() where sqlstate is not null`)
		if one[string](s.session, `select string_agg(document ->> 'status', ' ' order by idempotency_key) from tidemark.command_retry(1)`) == "failed_terminal" {
			break
		}
	}
	equal(t, "tries", attempts <= 3, true)
	s.wantRows(`select idempotency_key || ' ' || (next_attempt_at < 'infinity') from tidemark.command_parked order by position`, "b true", "c false")

	s.refused("TM005", "without a reason", `select tidemark.command_discard($1, 'b', ' ')`, s.name)
	s.refused("TM004", "is parked under the key", `select tidemark.command_discard($1, 'else', 'why')`, s.name)
	equal(t, "given up", parseResult(t, one[string](s.session, `select tidemark.command_discard($1, 'b', 'asks for too much')::text`, s.name)).Status, "failed_terminal")
	s.wantRows(`select idempotency_key || ' ' || (document ->> 'status') from tidemark.command_retry()`, "c processed")
	s.wantInvoices("3", "4")
	s.wantRows(`select idempotency_key || ' ' || state from tidemark.command_claim order by 1`, "a failed_terminal", "b failed_terminal", "c processed", "else processed")
	s.wantRows(`select count(*)::text from tidemark.dead_letter`, "2")
	s.wantRows(`select object || ': ' || reason from tidemark.audit where action = 'command_discard'`, "command "+s.name+" b: asks for too much")
	s.wantRows(`select payload ->> 'error_message' from tidemark.outbox where type like 'result.%' and payload ->> 'idempotency_key' = 'b' order by seq desc limit 1`, "the operator has given it up")
	equal(t, "asked again", run("b", forbidden(2)).Was, "failed_terminal")
}

// A parked command does not run for a producer that is not allowed any more.
func TestCommandDisallowedWhileParked(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.wantRun("failed_retryable runtime.retries_exhausted", "k", `{"id": 1, "sql": "do 'begin raise sqlstate ''40001''; end'"}`)
	s.exec(`insert into app.flag values ('healed')`)
	s.exec(`select tidemark.command_disallow($1, 'shop', reason => 'left')`, s.name)
	s.exec(`update tidemark.command_parked set next_attempt_at = now()`)
	s.wantRows(`select (document ->> 'status') || ' ' || (document ->> 'error_code') from tidemark.command_retry()`, "failed_terminal identity.producer_not_allowed")
	s.wantInvoices()
	s.wantRows(`select idempotency_key from tidemark.command_parked`)
	s.wantRows(`select error_code from tidemark.dead_letter`, "identity.producer_not_allowed")
	// It was told that it would be tried again: so it is told how that ended.
	s.wantRows(`select concat_ws(' ', payload ->> 'status', payload ->> 'error_code') from tidemark.outbox where type like 'result.%' order by seq`,
		"failed_retryable runtime.retries_exhausted", "failed_terminal identity.producer_not_allowed")
}

// A stored result is for the producer and the tenant that asked first.
func TestCommandResultOfAnother(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.exec(`select tidemark.command_allow($1, 'rival', tenants => '{*}')`, s.name)
	s.wantRun("processed", "k", `{"id": 1}`)
	for _, metadata := range []string{`{"producer": "rival"}`, `{"producer": "shop", "tenant": "acme"}`, `{"producer": "rival", "tenant": "acme"}`} {
		got := s.run(s.envelope("k", `{"id": 1}`, `{"metadata": `+metadata+`}`))
		equal(t, metadata, []string{got.String(), string(got.Result), got.First}, []string{"failed_terminal idempotency.key_reused", "null", ""})
	}
	s.wantRun("duplicate", "k", `{"id": 1}`)
	s.wantInvoices("1")
}

// A batch is one transaction: set-based claims, the failing position, redeliveries, equal keys in one batch, order behind what
// is parked.
func TestCommandBatch(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	batch := func(calls ...string) string { return "[" + strings.Join(calls, ",") + "]" }
	at := func(offset int) string {
		return fmt.Sprintf(`{"topic": "t", "topic_id": "T", "partition": 0, "offset": %d}`, offset)
	}
	mixed := batch(s.call("a", `{"id": 1}`, at(1)), s.call("b", `{"id": 2}`, at(2)), s.call("a", `{"id": 1}`, at(3)), s.call("b", `{"id": 3}`, at(4)))
	equal(t, "batch", column[string](s.session, runBatch, mixed), []string{"1 processed", "2 processed", "3 duplicate", "4 failed_terminal"})
	events := `select count(*)::text from tidemark.outbox where domain = 'commands'`
	s.wantRows(events, "5")
	// The same records again: silent, and a dead letter is not made twice.
	equal(t, "again", column[string](s.session, runBatch, batch(s.call("a", `{"id": 1}`, at(1)), s.call("b", `{"id": 2}`, at(2)))), []string{"1 redelivered", "2 redelivered"})
	s.wantRows(events, "5")
	s.wantRows(`select count(*)::text from tidemark.dead_letter`, "1")
	s.wantInvoices("1", "2")

	// One fails: nothing of the batch is there, and the error says which, how, and what to do.
	err := s.try(runBatch, batch(s.call("c", `{"id": 3}`, at(5)), s.call("d", `{"id": 4, "cents": 0}`, at(6)), s.call("e", `{"id": 5}`, at(7))))
	if err == nil || err.Code != "23514" || err.ColumnName != "2" || err.ConstraintName != "sql.constraint" || err.DataTypeName != "terminal" {
		t.Errorf("got %+v", err)
	}
	s.wantInvoices("1", "2")
	s.wantRows(`select idempotency_key from tidemark.command_claim order by 1`, "a", "b")
	equal(t, "the caller halves", column[string](s.session, runBatch, batch(s.call("c", `{"id": 3}`, at(5)))), []string{"1 processed"})
	equal(t, "failed", one[string](s.session, `select tidemark.command_fail($1::jsonb, 'terminal', 'sql.constraint', 'words', '23514', 1) ->> 'status'`, s.call("d", `{"id": 4, "cents": 0}`, at(6))), "failed_terminal")
	equal(t, "failed, and taken meanwhile", one[bool](s.session, `select tidemark.command_fail($1::jsonb, 'terminal', 'sql.constraint', 'words', '23514', 1) is null`, s.call("c", `{"id": 3}`, at(8))), true)

	// Between others, which do not run, each has its own result.
	equal(t, "between others", column[string](s.session, runBatch, batch(s.call("a", `{"id": 1}`, at(1)), s.call("x", `{"id": 8}`, at(20)), s.call("b", `{"id": 2}`, at(21)), s.call("y", `{"id": 9}`, at(22)))),
		[]string{"1 redelivered", "2 processed", "3 duplicate", "4 processed"})
	s.wantRows(`select concat_ws(' ', m.idempotency_key, m.result ->> 'key', m.result ->> 'id', m.processed_at = (r.payload ->> 'processed_at')::timestamptz) from tidemark.command_claim m
		join tidemark.outbox r on r.domain = 'commands' and r.payload ->> 'event_id' = m.event_id::text and r.payload ->> 'status' = 'processed' where m.idempotency_key in ('x', 'y') order by 1`, "x x 8 t", "y y 9 t")

	// Constraints that are deferred are checked within each command, and deferred again for the next one.
	s.exec(`create table app.child (id int primary key, parent int); create table app.parent (id int primary key);
		alter table app.child add foreign key (parent) references app.parent deferrable initially deferred; grant all on app.child, app.parent to "tidemark_service_` + s.name + `"`)
	child := func(id, parent int) string {
		return fmt.Sprintf(`{"id": %d, "sql": "with c as (insert into app.child values (%[1]d, %[1]d)) select 1; insert into app.parent values (%[2]d)"}`, id, parent)
	}
	equal(t, "deferred", column[string](s.session, runBatch, batch(s.call("f", child(11, 11), at(9)), s.call("g", child(12, 12), at(10)))), []string{"1 processed", "2 processed"})
	if err := s.try(runBatch, batch(s.call("h", child(13, 13), at(11)), s.call("i", child(14, 99), at(12)))); err == nil || err.Code != "23503" || err.ColumnName != "2" {
		t.Errorf("got %+v", err)
	}

	many := make([]string, 51)
	for i := range many {
		many[i] = s.call(fmt.Sprint("many", i), fmt.Sprintf(`{"id": %d}`, 100+i), at(100+i))
	}
	s.refused("TM005", "51 commands", runBatch, batch(many...))
	s.refused("TM005", "no array", runBatch, `{}`)
	// Two batches over the same keys, in opposite orders, do not wait for each other in a circle.
	other := open(t, db, "other")
	back := slices.Clone(many[:50])
	slices.Reverse(back)
	s.begin()
	s.exec(runBatch, batch(many[:25]...))
	second := later[int64](other, `select count(*) from tidemark.command_batch($1::jsonb) where status = 'redelivered'`, batch(back...))
	s.waitsFor(other)
	s.exec(runBatch, batch(many[25:50]...))
	s.commit()
	if n, err := second(); err != nil || n != 50 {
		t.Errorf("%d redelivered, %v", n, err)
	}
	s.refused("TM009", "not registered", runBatch, batch(strings.Replace(many[50], `"charge"`, `"other"`, 1)))
	s.command("charge", `{"dry_run": true}`)
	s.refused("TM009", "in dry run", `select tidemark.command_gate_check($1::jsonb)`, batch(many[50]))
}

// A random sequence of commands over two sessions ends as if each key ran by itself, one after the other:
// exactly one processed or failed_terminal for each key, and one effect for each that is processed.
func TestCommandSerial(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	s.exec(`create table app.effect (key text, n int); grant all on app.effect to "tidemark_service_` + s.name + `";
		create function app.note(payload jsonb, context jsonb) returns jsonb language plpgsql as $$ begin
			insert into effect values (context ->> 'idempotency_key', (payload ->> 'n')::int);
			if payload ->> 'fails' = 'ever' then raise 'no'; end if;
			if payload ->> 'fails' = 'first' and not exists (select from flag where name = context ->> 'idempotency_key') then raise sqlstate '40001'; end if;
			return payload; end $$`)
	s.command("note", `{"function": "app.note", "payload_schema": {"type": "object"}, "enabled": true, "dry_run": false, "retry_policy": {"base_seconds": 0.000001, "max_seconds": 0.000001, "max_attempts": 100}}`)
	sessions := []session{s.session, open(t, db, "two")}
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		type asked struct {
			n     int
			fails string
		}
		first := map[string]asked{}
		finals := map[string]int{}
		for step := range rapid.IntRange(1, 12).Draw(r, "steps") {
			key := fmt.Sprintf("%d-%s", round, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "key"))
			now := asked{rapid.IntRange(1, 2).Draw(r, "n"), rapid.SampledFrom([]string{"", "", "ever", "first"}).Draw(r, "fails")}
			payload, err := json.Marshal(map[string]any{"n": now.n, "fails": now.fails})
			if err != nil {
				r.Fatal(err)
			}
			in := sessions[rapid.IntRange(0, 1).Draw(r, "session")]
			got := parseResult(t, one[string](in, `select tidemark.command_run($1)::text`, s.envelope(key, string(payload), `{"command": "note"}`)))
			before, claimed := first[key]
			want := map[string]string{"": "processed", "ever": "failed_terminal sql.business_rule", "first": "failed_retryable runtime.retries_exhausted"}[now.fails]
			switch {
			case claimed && before == now:
				want = "duplicate"
			case claimed:
				want = "failed_terminal idempotency.key_reused"
			default:
				first[key] = now
			}
			if got.Status+" "+got.Code != want+" " && got.String() != want && got.Status != want {
				r.Fatalf("step %d, %s %+v: got %v, want %s", step, key, now, got, want)
			}
			if rapid.Bool().Draw(r, "heal") {
				s.exec(`insert into app.flag values ($1) on conflict do nothing`, key)
			}
			if rapid.Bool().Draw(r, "retry") {
				sessions[rapid.IntRange(0, 1).Draw(r, "retry in")].exec(`select * from tidemark.command_retry(5)`)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(first)) {
			s.exec(`insert into app.flag values ($1) on conflict do nothing`, key)
		}
		s.exec(`select * from tidemark.command_retry(50)`)
		for key, was := range first {
			effects := column[int](s.session, `select n from app.effect where key = $1`, key)
			want := []int{was.n}
			if was.fails == "ever" {
				want = []int{}
			}
			if diff := cmp.Diff(want, effects); diff != "" {
				r.Fatalf("%s %+v: effects (-want +got)\n%s", key, was, diff)
			}
			finals[key] = one[int](s.session, `select count(*)::int from tidemark.outbox where domain = 'commands' and payload ->> 'idempotency_key' = $1
				and (payload ->> 'status' = 'processed' or payload ->> 'status' = 'failed_terminal' and payload ->> 'error_code' <> 'idempotency.key_reused')`, key)
			if finals[key] != 1 {
				r.Fatalf("%s %+v: %d final results, want 1", key, was, finals[key])
			}
		}
	})
}

// maintain removes claims past their retention in batches, never that of a parked command; raw records follow their setting.
func TestCommandRetention(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.wantRun("processed", "old", `{"id": 1}`)
	s.wantRun("processed", "new", `{"id": 2}`)
	s.wantRun("failed_terminal sql.constraint", "letter", `{"id": 3, "cents": 0}`)
	s.wantRun("failed_retryable runtime.retries_exhausted", "parked", `{"id": 4, "sql": "do 'begin raise sqlstate ''40001''; end'"}`)
	s.wantRows(`select distinct (expires_at - processed_at between interval '29 days' and interval '31 days')::text from tidemark.command_claim`, "true")
	s.exec(`select tidemark.command_run($1, dry_run => true)`, s.envelope("dry", `{"id": 9}`, ""))
	s.exec(`update tidemark.command_claim set expires_at = now() - interval '1 s' where idempotency_key <> 'new'`)
	s.exec(`update tidemark.command_record set recorded_at = now() - interval '91 days'`)
	s.wantRows(`select action || ' ' || object || ' ' || detail from tidemark.maintain() where object like 'command%'`,
		"forgot command_claim 2 claims past the retention of their commands", "forgot command_record 1 raw records past the setting command_record.retention")
	s.wantRows(`select idempotency_key from tidemark.command_claim order by 1`, "new", "parked")
	s.wantRows(`select why from tidemark.command_record`, "dead_letter")
	s.exec(`select tidemark.dead_letter_discard(id, 'seen') from tidemark.dead_letter`)
	s.exec(`select * from tidemark.maintain()`)
	s.wantRows(`select why from tidemark.command_record`)
}

// CM6: a command that parks behind one that is just released is not forgotten: it waits until that is decided.
func TestCommandParksBehindARelease(t *testing.T) {
	t.Parallel()
	type variant struct {
		released bool
		retry    string
	}
	const alone = `select document ->> 'status' from tidemark.command_retry()`
	for _, v := range []variant{{true, alone}, {false, alone}, {true, retryBatch}, {false, retryBatch}} {
		t.Run(fmt.Sprint(v.released), func(t *testing.T) {
			t.Parallel()
			released := v.released
			db := tidemarktest.NewDB(t)
			s := serve(t, db)
			s.command("charge", `{"retry_policy": {"base_seconds": 0.000001, "max_seconds": 0.000001, "jitter": 0}}`)
			const run = `select tidemark.command_run($1, key => 'order') ->> 'status'`
			equal(t, "parked", one[string](s.session, run, s.envelope("a", `{"id": 1, "sql": "do 'begin raise sqlstate ''40001''; end'"}`, "")), "failed_retryable")
			s.exec(`insert into app.flag values ('healed')`)
			other := open(t, db, "other")
			other.begin()
			if tried := one[string](other, v.retry); !strings.Contains(tried, "processed") {
				t.Fatal(tried)
			}
			behind := later[string](s.session, run, s.envelope("b", `{"id": 2}`, ""))
			other.waitsFor(s.session)
			due := "b false"
			if released {
				other.commit()
			} else {
				other.rollback()
				due = "b true"
			}
			if status, err := behind(); err != nil || status != "failed_retryable" {
				t.Fatal(status, err)
			}
			s.wantRows(`select idempotency_key || ' ' || (next_attempt_at = 'infinity') from tidemark.command_parked where idempotency_key = 'b'`, due)
			s.exec(`select * from tidemark.command_retry()`)
			s.wantRows(`select idempotency_key from tidemark.command_parked`)
			s.wantInvoices("1", "2")
		})
	}
}

// CM9: a gate that closes while a command runs, or waits for a lock, takes its effect back; also that of a retry.
func TestCommandGateClosesMeanwhile(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	s.command("charge", `{"retry_policy": {"base_seconds": 0.000001, "max_seconds": 0.000001, "jitter": 0}}`)
	s.wantRun("failed_retryable runtime.retries_exhausted", "b", `{"id": 2, "sql": "do 'begin raise sqlstate ''40001''; end'"}`)
	s.exec(`insert into app.flag values ('healed')`)
	const retry = `select string_agg(document ->> 'status', ' ') from tidemark.command_retry()`
	other, operator := open(t, db, "other"), open(t, db, "closes")
	for _, gate := range []string{"commands.enabled", "commands." + s.name + ".enabled"} {
		for _, sql := range []string{
			`select tidemark.command_run('` + s.envelope("a", `{"id": 1}`, "") + `') ->> 'status'`, retry,
			`select tidemark.command_retry_batch('{` + s.name + `}', '{b}', 50)::text`,
		} {
			s.begin()
			s.exec(`insert into app.invoice values (1, 1), (2, 1)`)
			ran := later[*string](other, sql)
			s.waitsFor(other)
			operator.exec(`select tidemark.gate_set($1, false)`, gate)
			s.rollback()
			got, err := ran()
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.Code != "TM009" || !strings.Contains(refused.Message, gate) {
				t.Errorf("%s: %v %v", gate, got, err)
			}
			s.wantInvoices()
			s.wantRows(`select idempotency_key || ' ' || state from tidemark.command_claim`, "b failed_retryable")
			operator.exec(`select tidemark.gate_set($1, true)`, gate)
		}
	}
	equal(t, "retry", one[string](s.session, retry), "processed")
	s.wantInvoices("2")
}
