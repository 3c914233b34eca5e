package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// However many commands are parked behind a closed gate, while their command is off, or for a time to come, a look for those that are
// due and each turn of one read what they take up; also in a session that planned it when nothing was parked.
func TestParkedCommandsAreNotAllRead(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	s.exec(`alter table tidemark.command_parked set (autovacuum_enabled = off); alter table tidemark.command_claim set (autovacuum_enabled = off)`)
	s.exec(`select tidemark.command_set($1, 'off', 1, '{"function": "app.charge", "payload_schema": {"type": "object"}}')`, s.name)
	closed := s.another()
	other := open(t, db, "other")
	other.exec(`set enable_seqscan = off`) // of the foreign key
	park := func(service, command, key, due string, from, to int) {
		t.Helper()
		other.exec(fmt.Sprintf(`with claimed as (
			insert into tidemark.command_claim (service, idempotency_key, fingerprint, state, event_id, command, version, producer, via, processed_at, attempts, expires_at)
			select '%s', 'k' || n, '', 'failed_retryable', gen_random_uuid(), '%s', 1, 'shop', 'acl', now(), 0, now() + interval '1 day' from generate_series(%d, %d) n returning *)
			insert into tidemark.command_parked (service, idempotency_key, key, call, next_attempt_at)
			select m.service, m.idempotency_key, %s, jsonb_build_object('event_id', m.event_id, 'service', m.service, 'command', m.command, 'command_version', 1, 'schema_version', 1,
				'payload', jsonb_build_object('id', n, 'cents', case n when 6 then -1 else 1 end), 'idempotency_key', m.idempotency_key, 'key', %[5]s, 'occurred_at', '2026-01-31T12:00:00Z',
				'producer', 'shop', 'via', 'acl'), %[6]s
			from claimed m cross join lateral (select substr(m.idempotency_key, 2)::int as n) i order by n`, service, command, from, to, key, due))
	}
	few := func() {
		t.Helper()
		park(s.name, "charge", `'one'`, `case n when 1 then now() - interval '1 min' else 'infinity' end`, 1, 4)
		park(s.name, "charge", `'k' || n`, `now() - interval '1 s' * (10 - n)`, 5, 6)
	}
	const next = `select coalesce(array_to_string(idempotency_keys, ' '), 'none') from tidemark.command_retry_next(%d)`
	alone := `select concat_ws(' ', d ->> 'status', d ->> 'error_code') from tidemark.command_retry_one('` + s.name + `', '%s', false) d`
	run := func(key, order string) string {
		return fmt.Sprintf(`select tidemark.command_run('%s', key => '%s') ->> 'status'`, s.envelope(key, `{"id": 77}`, ""), order)
	}
	turns := func(state string) {
		t.Helper()
		for _, c := range [][3]string{
			{"a look for one", fmt.Sprintf(next, 1), "k1"},
			{"a look for many", fmt.Sprintf(next, 50), "k1 k5 k6"},
			{
				"many",
				fmt.Sprintf(`select string_agg(concat_ws(' ', e ->> 'idempotency_key', e ->> 'status'), ', ') from json_array_elements(tidemark.command_retry_batch('{%s,%[1]s}', '{k1,k5}', 50)) e`, s.name),
				"k1 processed, k2 processed, k3 processed, k4 processed, k5 processed",
			},
			{"one", fmt.Sprintf(alone, "k1"), "processed"},
			{"one that fails", fmt.Sprintf(alone, "k6"), "failed_terminal sql.constraint"},
			{"one given up", fmt.Sprintf(`select tidemark.command_discard('%s', 'k2', 'test') ->> 'status'`, s.name), "failed_terminal"},
			{"a new one", run("new", "new"), "processed"},
			{"a new one behind", run("new", "one"), "failed_retryable"},
			{"a key that was used", run("k1", "one"), "failed_terminal"},
		} {
			if n := s.readsOf("command_parked, command_claim", func() { s.wantRows(c[1], c[2]) }); n > 100 {
				t.Errorf("%s, %s: %d rows are read", state, c[0], n)
			}
		}
		// These count what is overdue, at most 10,000 of a service.
		if n := s.readsOf("command_parked", func() { s.wantRows(`select tidemark.command_findings()::text`, "") }); n > 12100 {
			t.Errorf("%s, findings: %d rows are read", state, n)
		}
	}
	s.exec(`vacuum analyze tidemark.command_parked, tidemark.command_claim`)
	few()
	for range 6 { // plans are kept
		turns("few")
	}
	s.exec(`delete from tidemark.command_parked; delete from tidemark.command_claim`)
	park(closed, "charge", `'k' || n`, `now() - interval '1 h'`, 10001, 20000)
	park(s.name, "off", `'k' || n`, `now() - interval '1 h'`, 20001, 22000)
	park(s.name, "charge", `'k' || n`, `now() + interval '1 h'`, 22001, 24000)
	park(s.name, "charge", `'stuck'`, `case n when 24001 then now() + interval '1 h' else 'infinity' end`, 24001, 28000)
	s.exec(`select tidemark.gate_set($1, false)`, "commands."+closed+".enabled")
	few()
	turns("planned when little was parked")
	s.exec(`delete from tidemark.command_parked where length(idempotency_key) = 2; delete from tidemark.command_claim where length(idempotency_key) = 2;
		analyze tidemark.command_parked, tidemark.command_claim; discard plans`)
	few()
	turns("planned when much was parked")

	s.exec(`update tidemark.command_parked set error_count = 3 where idempotency_key = 'k6'`)
	s.wantRows(`select tidemark.command_fail(call || '{"parked": true}', 'retryable', 'runtime.retries_exhausted', 'again', '40001', 1) ->> 'status' from tidemark.command_parked where idempotency_key = 'k6'`, "failed_retryable")
	s.wantRows(`select error_count || ' ' || sqlstate from tidemark.command_parked where idempotency_key = 'k6'`, "4 40001")
	s.exec(`update tidemark.command_parked set next_attempt_at = now() - interval '1 s', sqlstate = null where idempotency_key = 'k6'`)

	// What another session is at does not hide what is due behind it.
	other.begin()
	other.exec(`select from tidemark.command_parked where idempotency_key in ('k1', 'k5') for no key update`)
	for _, most := range []int{1, 2, 50} {
		s.wantRows(fmt.Sprintf(next, most), "k6")
	}
	other.rollback()
	s.exec(`select tidemark.command_set($1, 'off', 1, '{"enabled": true, "dry_run": false}')`, s.name)
	s.wantRows(fmt.Sprintf(next, 3), "k20001 k20002 k20003")
	s.exec(`select tidemark.gate_set($1, true)`, "commands."+closed+".enabled")
	s.wantRows(fmt.Sprintf(next, 3), "k10001 k10002 k10003")
	s.exec(`select tidemark.gate_set('commands.enabled', false)`)
	s.wantRows(fmt.Sprintf(next, 3), "none")
}

// A page of commands reads neither the records that were kept before it, nor marks that others have left.
func TestOldRecordsOfCommandsAreNotRead(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	p.exec(`create function app.seen() returns trigger language plpgsql as 'begin return null; end';
		create constraint trigger seen after insert on app.invoice deferrable initially deferred for each row execute function app.seen();
		alter table tidemark.command_record set (autovacuum_enabled = off); alter table tidemark.command_mark set (autovacuum_enabled = off)`)
	p.exec(`vacuum analyze tidemark.command_record, tidemark.command_mark`)
	for i := range int64(8) {
		if i == 7 {
			p.exec(`insert into tidemark.command_record (why, topic, topic_id, partition, "offset") select 'dead_letter', 'events', 'T', 3, n from generate_series(101, 3000) n`)
			p.exec(`insert into tidemark.command_mark select from generate_series(1, 3000)`)
		}
		calls := "[" + strings.Join([]string{
			p.record(2*i, fmt.Sprint("k", i), fmt.Sprintf(`{"id": %d}`, i+1), `{}`),
			p.record(2*i+1, "x", `{}`, `{"producer": "stranger"}`),
		}, ",") + "]"
		n := p.readsOf("command_record, command_mark", func() {
			p.wantRows(fmt.Sprintf(`select concat_ws(' ', s ->> 'status', s -> 'letters') from tidemark.command_pass('kafka:events', 3, %d, '1 minute', 'T', 0, 20, '%s') s`,
				p.epoch, calls), fmt.Sprintf("ran [%d]", 2*i+1))
		})
		if n > 50 {
			t.Errorf("page %d: %d rows are read", i, n)
		}
	}
}
