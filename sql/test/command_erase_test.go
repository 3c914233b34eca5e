package test

import (
	"context"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// What is kept of commands is erased by key, tenant or age; what tells that they ran stays. Parked commands keep their payload.
func TestCommandsErase(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	// %secret% is in every row that has something of a payload.
	const secrets = `select t || ' ' || k from (
		select 'claim' as t, idempotency_key as k, result::text || coalesce(error_message, '') as v from tidemark.command_claim
		union all select 'record', idempotency_key, concat(convert_from(value, 'UTF8'), encode(key, 'escape'), headers, call, document) from tidemark.command_record
		union all select 'letter', event_snapshot ->> 'idempotency_key', concat(event_snapshot, error_detail) from tidemark.dead_letter
		union all select 'parked', idempotency_key, call::text from tidemark.command_parked) x where v like '%4711081547%' order by 1`
	const tenant = `{"metadata": {"producer": "shop", "tenant": "acme", "context": {"customer": 4711081547}}}`
	run := func(want, key, payload, changes string) {
		t.Helper()
		equal(t, key, s.run(s.envelope(key, payload, changes)).String(), want)
	}
	run("processed", "a", `{"id": 4711081547}`, tenant)
	run("failed_terminal sql.constraint", "b", `{"id": 14711081547, "cents": 0}`, tenant)
	run("failed_retryable runtime.retries_exhausted", "c", `{"id": 24711081547, "sql": "do 'begin raise sqlstate ''40001''; end'"}`, tenant)
	run("processed", "d", `{"id": 34711081547}`, "")
	s.exec(`select tidemark.command_run($1, dry_run => true)`, s.envelope("e", `{"id": 44711081547}`, tenant))
	all := []string{"claim a", "claim d", "letter b", "parked c", "record b", "record e"}
	s.wantRows(secrets, all...)

	const erase = `select concat_ws(' ', claims, records, dead_letters, waiting, complete) from tidemark.commands_erase($1, $2, `
	s.refused("TM005", "needs a reason", erase+`tenant => 'acme')`, s.name, " ")
	s.refused("TM005", "is not said", erase+`null)`, s.name, "why")
	s.refused("TM004", "there is no service", erase+`tenant => 'acme')`, "else", "why")
	equal(t, "counted", one[string](s.session, erase+`tenant => 'acme', dry_run => true)`, s.name, "why"), "2 2 1 1 t")
	s.wantRows(secrets, all...)
	equal(t, "a part", one[string](s.session, erase+`tenant => 'acme', most => 1)`, s.name, "why"), "1 1 1 1 f")
	equal(t, "the rest", one[string](s.session, erase+`tenant => 'acme')`, s.name, "why"), "1 1 0 1 t")
	equal(t, "no more", one[string](s.session, erase+`tenant => 'acme')`, s.name, "why"), "0 0 0 1 t")
	s.wantRows(secrets, "claim d", "parked c")
	equal(t, "of a key", one[string](s.session, erase+`key => 'd')`, s.name, "why"), "1 0 0 0 t")
	s.wantRows(secrets, "parked c")
	s.wantRows(`select resolution from tidemark.dead_letter`, "discarded")
	s.wantRows(`select reason || ' ' || (after ->> 'tenant') from tidemark.audit where action = 'commands_erase' and after ? 'tenant'`, "why acme", "why acme")

	// It is known that they ran: nothing runs again, and the answer is the erased one.
	run("duplicate", "a", `{"id": 4711081547}`, tenant)
	run("failed_terminal idempotency.key_reused", "a", `{"id": 5}`, tenant)
	s.wantRows(`select (payload -> 'result' ? 'erased')::text from tidemark.outbox where payload ->> 'status' = 'duplicate'`, "true")
	s.wantRows(`select outcomes::text from tidemark.command_replay('`+s.name+`', failed => true, reason => 'why')`, `{"parked": 1, "key_reused": 1}`)
	s.exec(`insert into app.flag values ('healed')`)
	s.exec(`select * from tidemark.command_retry()`)
	equal(t, "once it has run", one[string](s.session, erase+`before => now() + interval '1 day')`, s.name, "why"), "1 1 1 0 t")
	s.wantRows(secrets)
}

// A dead letter outlives its raw record, which is deleted after its retention. It is erased all the same.
func TestCommandsEraseLetterWithoutRecord(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	const acme = `{"metadata": {"producer": "shop", "tenant": "acme", "context": {"customer": 4711}}}`
	for key, changes := range map[string]string{"a": acme, "b": acme, "c": ""} {
		equal(t, key, s.run(s.envelope(key, `{"id": 1, "cents": 0}`, changes)).String(), "failed_terminal sql.constraint")
	}
	s.exec(`select tidemark.dead_letter_discard(id, 'why') from tidemark.dead_letter;
		delete from tidemark.command_claim;
		update tidemark.command_record set recorded_at = recorded_at - interval '91 days'`)
	s.wantRows(`select action from tidemark.maintain() where object = 'command_record'`, "forgot")
	s.wantRows(`select id::text from tidemark.command_record`)
	const left = `select event_snapshot ->> 'idempotency_key' from tidemark.dead_letter where source = 'commands' and event_snapshot ->> 'service' = $1
		and (event_snapshot ? 'context' or not event_snapshot -> 'payload' ? 'erased' or error_detail <> 'erased') order by 1`
	equal(t, "before", column[string](s.session, left, s.name), []string{"a", "b", "c"})

	// Letters of events are not read, whatever the server believes of them.
	s.exec(`select tidemark.route_set('r', '{"domain": "commands", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}')`)
	s.exec(`alter table tidemark.dead_letter set (autovacuum_enabled = off); analyze tidemark.dead_letter`)
	s.exec(`insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code)
		select 'many ' || n, w.id, r.id, n, gen_random_uuid(), '{}', 'x'
		from tidemark.worker w, tidemark.outbound_route r, generate_series(1, 2000) n where w.worker = 'default' and r.route_code = 'r'`)
	const erase = `select concat_ws(' ', claims, records, dead_letters, complete) from tidemark.commands_erase($1, 'why', `
	for _, statistics := range []string{"old", "new"} {
		if n := s.readsOf("dead_letter", func() {
			equal(t, "counted", one[string](s.session, erase+`tenant => 'acme', dry_run => true)`, s.name), "0 0 2 t")
		}); n > 20 {
			t.Errorf("statistics are %s: %d letters are read", statistics, n)
		}
		s.exec(`analyze tidemark.dead_letter; discard plans`)
	}

	equal(t, "other tenant", one[string](s.session, erase+`tenant => 'else')`, s.name), "0 0 0 t")
	equal(t, "before they failed", one[string](s.session, erase+`before => now() - interval '1 hour')`, s.name), "0 0 0 t")
	equal(t, "a part", one[string](s.session, erase+`tenant => 'acme', most => 1)`, s.name), "0 0 1 f")
	equal(t, "the rest", one[string](s.session, erase+`tenant => 'acme', most => 1)`, s.name), "0 0 1 f")
	equal(t, "no more", one[string](s.session, erase+`tenant => 'acme', most => 1)`, s.name), "0 0 0 t")
	equal(t, "after", column[string](s.session, left, s.name), []string{"c"})
	equal(t, "of a key", one[string](s.session, erase+`key => 'c')`, s.name), "0 0 1 t")
	equal(t, "in the end", column[string](s.session, left, s.name), []string{})
	s.wantRows(`select (sum((after ->> 'dead_letters')::integer))::text from tidemark.audit where action = 'commands_erase'`, "3")
}

// A replay and an erasure take turns: neither waits for the other in a circle, and a replay parks no payload that was erased.
func TestCommandsEraseBesideReplay(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	s.command("charge", `{"dry_run": true}`)
	for _, key := range []string{"a", "b", "c"} {
		s.wantRun("processed", key, `{"id": `+map[string]string{"a": "1", "b": "2", "c": "3"}[key]+`}`)
	}
	s.command("charge", `{"dry_run": false}`)
	const erase = `select tidemark.commands_erase($1, 'why', before => now() + interval '1 day')`
	const replay = `select tidemark.command_replay($1, reason => 'why', most => 1)`
	other, eye := open(t, db, "other"), open(t, db, "eye")
	beside := func(sql string) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := other.conn.Exec(context.Background(), sql, s.name)
			ended <- err
		}()
		eye.waitsFor(other)
		return ended
	}

	s.begin()
	s.exec(replay, s.name)
	erased := beside(erase)
	s.exec(`select tidemark.command_replay($1, reason => 'why', most => 1, after => 1)`, s.name)
	s.commit()
	if err := <-erased; err != nil {
		t.Error(err)
	}
	s.wantRows(`select idempotency_key from tidemark.command_record where erased_at is not null order by id`, "c")
	s.retry("a processed", "b processed")
	s.wantInvoices("1", "2")

	s.command("charge", `{"dry_run": true}`)
	s.wantRun("processed", "d", `{"id": 4}`)
	s.command("charge", `{"dry_run": false}`)
	s.begin()
	s.exec(erase, s.name)
	replayed := beside(replay)
	s.commit()
	if err := <-replayed; err != nil {
		t.Error(err)
	}
	s.retry()
	s.wantInvoices("1", "2")
}
