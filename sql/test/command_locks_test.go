package test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// lanes parks the first command of each of these ordering keys, due now and about to succeed.
func (s *service) lanes(keys ...string) {
	s.t.Helper()
	s.command("charge", `{"retry_policy": {"base_seconds": 0.000001, "max_seconds": 0.000001, "jitter": 0}}`)
	for _, key := range keys {
		equal(s.t, key, one[string](s.session, `select tidemark.command_run($1, key => $2) ->> 'status'`,
			s.envelope(key+"1", `{"id": 1`+key[1:]+`, "sql": "do 'begin raise sqlstate ''40001''; end'"}`, ""), key), "failed_retryable")
	}
	s.exec(`insert into app.flag values ('healed')`)
	s.exec(`update tidemark.command_parked set sqlstate = null`) // as if they had been off
}

// behind parks a command behind those of its ordering key.
func (s *service) behind(key, id string) {
	s.t.Helper()
	equal(s.t, key+id, one[string](s.session, `select tidemark.command_run($1, key => $2) ->> 'status'`,
		s.envelope(key+id, `{"id": `+id+key[1:]+`}`, ""), key), "failed_retryable")
}

// CM6: a transaction parks commands behind several keys, in whichever order; a batch that retries these keys waits for it, and does not
// wait in a circle.
func TestCommandsParkBesideRetries(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{"k1", "k2"}, {"k2", "k1"}} {
		db := tidemarktest.NewDB(t)
		s := serve(t, db)
		s.lanes("k1", "k2")
		other := open(t, db, "retries")
		s.begin()
		s.behind(keys[0], "2")
		tried := later[string](other, `select string_agg(r, ', ') from (`+retryBatch+`) r (r)`)
		s.waitsFor(other)
		s.behind(keys[1], "2")
		s.commit()
		if got, err := tried(); err != nil || got != "k11 processed, k21 processed" {
			t.Errorf("%v: %q, %v", keys, got, err)
		}
		s.exec(`select * from tidemark.command_retry()`)
		s.wantRows(`select idempotency_key from tidemark.command_parked`)
		s.wantInvoices("11", "12", "21", "22")
	}
}

// CM6: a pass does not wait for what parks the first command of the same ordering key for as long as it may take itself, which would count as a
// failure of its command; nor in a circle.
func TestCommandsParkBesideReplays(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := serve(t, db).partition()
	p.command("charge", `{"dry_run": true}`)
	const run = `select tidemark.command_run($1, key => $2) ->> 'status'`
	for i, key := range []string{"k1", "k2"} {
		equal(t, "dry", one[string](p.session, run, p.envelope(key+"dry", fmt.Sprintf(`{"id": %d}`, i+1), ""), key), "processed")
	}
	p.command("charge", `{"dry_run": false}`)
	other := open(t, db, "replays")
	other.begin()
	equal(t, "replayed", one[string](other, `select (tidemark.command_replay($1, reason => 'why')).outcomes::text`, p.name), `{"runs": 2}`)
	fails := p.record(0, "a", `{"id": 3, "sql": "do 'begin raise sqlstate ''40001''; end'"}`, `{"key": "k1"}`)
	p.exec(`set statement_timeout = '30s'`)
	_ = p.wantCode("55P03", "alone", fails)
	other.commit()
	p.wantPass(`ran 1 {"failed_retryable": 1}`, "alone", fails)
	p.wantRows(`select concat_ws(' ', error_code, attempts) from tidemark.command_claim where idempotency_key = 'a'`, "0") // it waits behind that

	// Two passes park commands that are off, of the same keys the other way round: one is taken back whole.
	p.command("charge", `{"enabled": false}`)
	other.exec(`select * from tidemark.command_partition('others', 3, 'O', 0, 100)`)
	epoch := one[int64](other, `select epoch from tidemark.claim('commands', 'you', '1 minute', 'kafka:others', 3)`)
	off := func(n int64, key string) string {
		return p.record(n, fmt.Sprint(key, "-", n), `{"id": 7}`, fmt.Sprintf(`{"key": %q}`, key))
	}
	const others = `select tidemark.command_pass('kafka:others', 3, $1, '1 minute', 'O', $2::bigint, $2::bigint + 1, jsonb_build_array($3::jsonb)) ->> 'status'`
	first, second, third, fourth := off(1, "k8"), off(2, "k9"), off(0, "k9"), off(1, "k8")
	p.begin()
	p.wantPass(`ran 2 {"failed_retryable": 1}`, "batch", first)
	other.begin()
	equal(t, "others", one[string](other, others, epoch, 0, third), "ran")
	mine := later[string](p.session, `select tidemark.command_pass('kafka:events', 3, $1, '1 minute', 'T', 2, 3, jsonb_build_array($2::jsonb)) ->> 'status'`, p.epoch, second)
	watch := open(t, db, "watch")
	watch.waitsFor(p.session)
	var status string
	theirs := other.conn.QueryRow(t.Context(), others, epoch, 1, fourth).Scan(&status)
	if theirs != nil {
		other.rollback()
	} else {
		other.commit()
	}
	_, err := mine()
	if err != nil {
		p.rollback()
	} else {
		p.commit()
	}
	var refused *pgconn.PgError
	if (err == nil) == (theirs == nil) || !errors.As(errors.Join(err, theirs), &refused) || refused.Code != "40P01" && refused.Code != "55P03" {
		t.Errorf("one of two: %v; %v", err, theirs)
	}
	watch.wantRows(`select split_part(idempotency_key, '-', 1) || ' ' || (next_attempt_at = 'infinity') from tidemark.command_parked where key in ('k8', 'k9') order by 1`, "k8 false", "k9 false")
}

// A command is given up while a batch retries it: one comes after the other.
func TestCommandDiscardBesideRetries(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	s.lanes("k1")
	s.behind("k1", "2")
	reads, retries, discards := open(t, db, "reads"), open(t, db, "retries"), open(t, db, "discards")
	reads.begin()
	reads.exec(`select from tidemark.command_claim where idempotency_key = 'k12' for update`)
	tried := later[string](retries, `select string_agg(r, ', ') from (`+retryBatch+`) r (r)`)
	s.waitsFor(retries)
	discarded := later[string](discards, `select tidemark.command_discard($1, 'k12', 'asks for too much')::text`, s.name)
	s.waitsFor(discards)
	reads.commit()
	if got, err := tried(); err != nil || got != "k11 processed, k12 processed" {
		t.Errorf("%q, %v", got, err)
	}
	var refused *pgconn.PgError
	if _, err := discarded(); !errors.As(err, &refused) || refused.Code != "TM004" {
		t.Error(err)
	}
	s.wantInvoices("11", "21")
}

// The command behind the first one is given up while the first is due: what is behind both is due when that is released.
func TestCommandDiscardForgetsNone(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	s.lanes("k1")
	s.behind("k1", "2")
	s.behind("k1", "3")
	discards := open(t, db, "discards")
	discards.begin()
	discards.exec(`select tidemark.command_discard($1, 'k12', 'asks for too much')`, s.name)
	s.exec(`set statement_timeout = '30s'`)
	equal(t, "tried while the key is another's", one[int](s.session, `select count(*)::int from tidemark.command_retry(1)`), 0)
	discards.commit()
	s.wantRows(`select idempotency_key from tidemark.command_parked where next_attempt_at < 'infinity'`, "k11")
	s.exec(`select * from tidemark.command_retry()`)
	s.wantInvoices("11", "31")
}

// A session that has parked a command behind another and stays open keeps a retry from its end for two seconds, not for ever: the
// retry is given up with the name of that session, and others park meanwhile.
func TestCommandReleaseIsGivenUp(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	s.lanes("k1", "k2")
	other := open(t, db, "retries")
	s.begin()
	s.behind("k1", "2")
	other.refused("55P03", fmt.Sprintf("is still open (pid %d)", one[int](s.session, `select pg_backend_pid()`)), retryBatch)
	equal(t, "the setting stays", one[string](other, `show lock_timeout`), "0")
	s.behind("k2", "2")
	s.commit()
	other.wantRows(`select string_agg(r, ', ') from (`+retryBatch+`) r (r)`, "k11 processed, k12 processed, k21 processed, k22 processed")
	s.wantInvoices("11", "12", "21", "22")
}

// After twenty seconds that session is a cause, with the statement that ends it.
func TestCommandReleaseIsHeldUp(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	s.lanes("k1")
	operator := open(t, db, "operator")
	s.begin()
	s.behind("k1", "2")
	pid := one[int](s.session, `select pg_backend_pid()`)
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); ; <-poll.C {
		got := one[string](operator, `select coalesce(string_agg(concat_ws(' ', c.subject, c.sql[1], c.found), ''), '') from tidemark.cause c where c.cause = 'open_transaction'`)
		if strings.Contains(got, "it has parked commands") {
			if !strings.HasPrefix(got, fmt.Sprintf("pid %d select pg_terminate_backend(%d);", pid, pid)) {
				t.Error(got)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(got)
		}
	}
	s.commit()
}

// A pass that parks a command ends before it runs another, which may take long: until it commits, no session of any service could release
// parked commands.
func TestCommandsParkedAreCommitted(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := serve(t, db).partition()
	other := open(t, db, "retries")
	p.another()
	p.exec(`select tidemark.command_set($1, 'slow', 1, '{"function": "app.charge", "payload_schema": {"type": "object"}, "enabled": true, "dry_run": false}')`, p.name)
	p.exec(`select tidemark.command_run($1)`, p.envelope("first", `{"id": 1, "sql": "do 'begin raise sqlstate ''40001''; end'"}`, fmt.Sprintf(`{"service": %q}`, p.name+"-b")))
	p.exec(`insert into app.flag values ('healed'); update tidemark.command_parked set next_attempt_at = now()`)
	p.command("charge", `{"enabled": false}`)
	slow := `{"command": "slow"}`
	calls := []string{p.record(0, "a", `{"id": 2}`, slow), p.record(1, "b", `{"id": 3}`, `{}`), p.record(2, "c", `{"id": 4}`, `{}`), p.record(3, "d", `{"id": 5}`, slow)}
	p.begin()
	p.wantPass(`ran 3 {"processed": 1, "failed_retryable": 2}`, "batch", calls...)
	p.commit()
	p.begin()
	p.wantPass(`ran 4 {"processed": 1}`, "batch", calls[3])
	// While that is not committed, a command of another service is done.
	other.wantRows(`select idempotency_key || ' ' || (document ->> 'status') from tidemark.command_retry()`, "first processed")
	p.commit()
	p.command("charge", `{"enabled": true}`)
	p.wantRows(`select count(*)::text from tidemark.command_retry()`, "2")
	p.wantInvoices("1", "2", "3", "4", "5")

	// The same behind a parked command of the key, and amid what is refused.
	p.command("charge", `{"enabled": false}`)
	p.wantPass(`ran 5 {"failed_retryable": 1}`, "batch", p.record(4, "e", `{"id": 6}`, `{"key": "k"}`))
	calls = []string{p.record(5, "f", `{"id": 7}`, `{"key": "k", "command": "slow"}`), p.record(6, "g", `{}`, `{"command": "none"}`), p.record(7, "h", `{"id": 8}`, slow)}
	p.wantPass(`ran 7 {"rejected": 1, "failed_retryable": 1}`, "batch", calls...)
	p.wantPass(`ran 8 {"processed": 1}`, "batch", calls[2])
	p.command("charge", `{"enabled": true}`)
	p.wantRows(`select idempotency_key || ' ' || (document ->> 'status') from tidemark.command_retry()`, "e processed", "f processed")
}
