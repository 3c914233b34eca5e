package test

import (
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// replay replays commands of the service, and tells how many had which outcome.
func (s *service) replay(args string) string {
	s.t.Helper()
	return one[string](s.session, `select (tidemark.command_replay($1, `+args+`)).outcomes::text`, s.name)
}

func (s *service) retry(want ...string) {
	s.t.Helper()
	s.wantRows(`select concat_ws(' ', idempotency_key, document ->> 'status', document ->> 'error_code') from tidemark.command_retry()`, want...)
}

// CM8: what was run dry runs once a replay asks for it; what was processed never runs again.
func TestCommandReplayOfDryRuns(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.command("charge", `{"dry_run": true}`)
	for _, key := range []string{"a", "b", "c"} {
		s.wantRun("processed", key, `{"id": `+map[string]string{"a": "1", "b": "2", "c": "3"}[key]+`}`)
	}
	equal(t, "in dry run", s.replay(`reason => 'why'`), `{"not_live": 3}`)
	s.command("charge", `{"dry_run": false}`)
	s.wantRun("processed", "c", `{"id": 3}`)
	s.wantInvoices("3")
	equal(t, "counts", s.replay(`dry_run => true`), `{"runs": 2, "processed": 1}`)
	s.wantRows(`select idempotency_key from tidemark.command_claim`, "c")
	equal(t, "since", s.replay(`since => clock_timestamp(), dry_run => true`), `{}`)

	equal(t, "replay", s.replay(`reason => 'why', most => 1`), `{"runs": 1}`)
	equal(t, "replay", s.replay(`reason => 'why', after => 1`), `{"runs": 1, "processed": 1}`)
	s.wantInvoices("3")
	s.retry("a processed", "b processed")
	s.wantInvoices("1", "2", "3")
	equal(t, "again", s.replay(`reason => 'why', failed => true`), `{"processed": 1}`)

	// A record that did not come from Kafka ages, too: its key was claimed since it was kept, and the claim is gone.
	s.wantRun("failed_terminal sql.data", "d", `{"id": 4, "sql": "select 1/0"}`)
	s.exec(`update tidemark.command_record set recorded_at = recorded_at - interval '40 days', replayed_at = null`)
	equal(t, "claimed", s.replay(`dry_run => true, failed => true`), `{"processed": 3, "runs_again": 1}`)
	s.exec(`update tidemark.command_claim set expires_at = clock_timestamp() - interval '9 days'`)
	s.exec(`select * from tidemark.maintain()`)
	s.wantRows(`select idempotency_key from tidemark.command_claim`)
	equal(t, "expired", s.replay(`reason => 'why', failed => true`), `{"idempotency.expired": 4}`)
	s.retry()
	s.wantInvoices("1", "2", "3")
	s.wantRows(`select reason from tidemark.audit where action = 'command_replay'`, "why", "why")

	s.refused("TM005", "without a reason", `select tidemark.command_replay($1)`, s.name)
	s.refused("TM005", "most is 0", `select tidemark.command_replay($1, reason => 'why', most => 0)`, s.name)
	s.refused("TM004", "there is no service", `select tidemark.command_replay('nope', reason => 'why')`)
}

// CM8: a command that did not come from Kafka has no time of a record, in the dead letters of its replays neither; it ages since it was first kept.
func TestCommandReplayWithoutARecordTime(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.wantRun("failed_terminal sql.data", "a", `{"id": 1, "sql": "select 1/0"}`)
	for range 2 {
		equal(t, "fails again", s.replay(`reason => 'why', failed => true`), `{"runs_again": 1}`)
		s.retry("a failed_terminal sql.data")
	}
	s.wantRows(`select concat_ws(' ', payload ->> 'replay_count', payload -> 'timestamp') from tidemark.outbox where type like 'dead_letter.%' order by seq`, "0 null", "1 null", "2 null")
	s.wantRows(`select distinct concat_ws(' ', record_at, (select recorded_at from tidemark.command_record order by id limit 1) = (call ->> 'kept_at')::timestamptz) from tidemark.command_record
		where replays > 0`, "t")
	s.exec(`update tidemark.command_record set call = call || jsonb_build_object('kept_at', clock_timestamp() - interval '31 days') where replayed_at is null`)
	s.exec(`update tidemark.command_claim set expires_at = clock_timestamp() - interval '9 days'`)
	s.exec(`select * from tidemark.maintain()`)
	equal(t, "expired", s.replay(`reason => 'why', failed => true`), `{"idempotency.expired": 1}`)
}

// CM8: a command that was failed_terminal runs again only if it is asked for, under its claim, and behind those of its ordering key.
func TestCommandReplayOfFailures(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.wantRun("failed_terminal sql.data", "k", `{"id": 1, "sql": "select 1/0"}`)
	s.wantRun("failed_terminal idempotency.key_reused", "k", `{"id": 2}`)
	letters := `select concat_ws(' ', error_code, resolution, attempts) from tidemark.dead_letter order by id`
	s.wantRows(letters, "sql.data 1", "idempotency.key_reused 1")
	equal(t, "not asked for", s.replay(`reason => 'why'`), `{"key_reused": 1, "failed_terminal": 1}`)
	equal(t, "by code", s.replay(`failed => true, code => 'sql.constraint', reason => 'why'`), `{}`)

	// It fails again: another dead letter, which says so.
	equal(t, "again", s.replay(`failed => true, code => 'sql.data', reason => 'why'`), `{"runs_again": 1}`)
	s.retry("k failed_terminal sql.data")
	s.wantRows(letters, "sql.data replayed 1", "idempotency.key_reused 1", "sql.data 2")
	s.wantRows(`select concat_ws(' ', payload ->> 'replay_count', payload ->> 'reason') from tidemark.outbox where type like 'dead_letter.%' order by seq`,
		"0 sql.data", "0 idempotency.key_reused", "1 sql.data")

	// Healed, it waits behind a parked command of its ordering key.
	parked := `{"id": 7, "sql": "do $x$ begin raise exception using errcode = '40001'; end $x$"}`
	got := parseResult(t, one[string](s.session, `select tidemark.command_run($1, 'k')::text`, s.envelope("p", parked, "")))
	equal(t, "parked", got.Status, "failed_retryable")
	equal(t, "behind", s.replay(`failed => true, code => 'sql.data', reason => 'why'`), `{"runs_again": 1}`)
	s.exec(`insert into app.flag values ('healed')`)
	s.exec(`update tidemark.command_parked set next_attempt_at = clock_timestamp() + interval '1 hour' where next_attempt_at < 'infinity'`)
	s.retry()
	equal(t, "due", s.replay(`reason => 'why'`), `{"parked": 1, "key_reused": 1}`)
	s.retry("p processed", "k processed")
	s.wantInvoices("1", "7")
	s.wantRows(`select concat_ws(' ', state, attempts) from tidemark.command_claim where idempotency_key = 'k'`, "processed 3")
	equal(t, "processed", s.replay(`failed => true, reason => 'why'`), `{"key_reused": 1}`)
}

// A command that is off waits for its own service alone: another one may use the same key.
func TestHeldCommandOfAnotherService(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	p := s.partition()
	s.exec(`insert into tidemark.command_claim (service, idempotency_key, fingerprint, state, event_id, command, version, via, processed_at, expires_at)
		values ('other', 'x', '', 'failed_retryable', gen_random_uuid(), 'c', 1, 'psql', now(), now())`)
	s.exec(`insert into tidemark.command_parked (service, idempotency_key, key, call, next_attempt_at) values ('other', 'x', 'a', '{"service": "other"}', 'infinity')`)
	s.command("charge", `{"enabled": false}`)
	p.wantPass(`ran 1 {"failed_retryable": 1}`, "batch", p.record(0, "a", `{"id": 1}`, `{}`))
	s.command("charge", `{"enabled": true}`)
	s.retry("a processed")
}

// CM8: commands are replayed from their topic, and the cursor stays.
func TestCommandReplayFromTheTopic(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	p := s.partition()
	s.exec(`select tidemark.command_disallow($1, 'shop')`, s.name)
	calls := []string{
		p.record(0, "a", `{"id": 1}`, `{}`), p.record(1, "b", `{"id": 1}`, `{}`),
		`{"refused": {"code": "envelope.invalid"}, "service": "` + s.name + `"}`, `{"refused": {"code": "envelope.invalid"}, "service": "other"}`,
	}
	p.wantPass(`ran 2 {"rejected": 2}`, "batch", calls[:2]...)
	topic := func(args string) string {
		t.Helper()
		return one[string](s.session, `select tidemark.command_replay_topic($1::jsonb, $2, `+args+`)::text`, "["+strings.Join(calls, ",")+"]", s.name)
	}
	equal(t, "not allowed", topic(`false, false, 'why'`), `{"envelope.invalid": 1, "identity.producer_not_allowed": 2}`)
	s.exec(`select tidemark.command_allow($1, 'shop')`, s.name)
	equal(t, "counts", topic(`false, true, null`), `{"runs": 2, "envelope.invalid": 1}`)
	s.wantRows(`select 1 from tidemark.command_claim`)
	equal(t, "replay", topic(`false, false, 'why'`), `{"runs": 2, "envelope.invalid": 1}`)
	s.retry("a processed", "b failed_terminal sql.constraint")
	s.wantInvoices("1")
	letters := `select concat_ws(' ', l.error_code, l.resolution, l.idempotency_key like '%/%') from tidemark.dead_letter l order by l.id`
	s.wantRows(letters, "identity.producer_not_allowed replayed f", "identity.producer_not_allowed replayed f", "sql.constraint t")
	equal(t, "again", topic(`false, false, 'why'`), `{"processed": 1, "failed_terminal": 1, "envelope.invalid": 1}`)
	equal(t, "failed too", topic(`true, false, 'why'`), `{"processed": 1, "runs_again": 1, "envelope.invalid": 1}`)
	s.exec(`delete from app.invoice`)
	s.retry("b processed")
	s.wantInvoices("1")
	s.wantRows(`select watermark_id from tidemark.worker_cursor where worker = 'commands'`, "2")
	s.refused("TM005", "without a reason", `select tidemark.command_replay_topic('[]', $1, false, false, ' ')`, s.name)
}
