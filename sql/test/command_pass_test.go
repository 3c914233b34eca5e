package test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A partition is a partition of a service's topic, and an owner of its cursor.
type partition struct {
	*service
	epoch int64
	next  int64
}

func (s *service) partition() *partition {
	s.t.Helper()
	p := &partition{service: s}
	s.exec(`select * from tidemark.command_partition('events', 3, 'T', 0, 100)`)
	p.claim()
	return p
}

func (p *partition) claim() {
	p.t.Helper()
	p.epoch = one[int64](p.session, `select epoch from tidemark.claim('commands', 'me', '1 minute', 'kafka:events', 3)`)
}

// place moves the cursor.
func (p *partition) place(next int64) {
	p.t.Helper()
	p.exec(`update tidemark.worker_cursor set watermark_id = $1::bigint, decided_through = $1::bigint where worker = 'commands'`, next)
	p.next = next
}

// record is a call as the consumer makes it of the record at an offset.
func (p *partition) record(offset int64, key, payload, changes string) string {
	p.t.Helper()
	value := p.envelope(key, payload, "")
	return one[string](p.session, `select ($1::jsonb || jsonb_build_object('via', 'acl', 'topic', 'events', 'topic_id', 'T', 'partition', 3, 'offset', $2::bigint,
		'record_at', clock_timestamp(), 'raw', jsonb_build_object('value', $3::text, 'headers', '[["h", "AA=="]]'::jsonb)) || $4::jsonb)::text`,
		p.call(key, payload, `{}`), offset, base64.StdEncoding.EncodeToString([]byte(value)), changes)
}

// pass passes calls, and returns the summary's status, next offset and result.
func (p *partition) pass(way string, calls ...string) (string, error) {
	p.t.Helper()
	var got string
	err := p.conn.QueryRow(p.t.Context(), `select s ->> 'status' || ' ' || coalesce(s ->> 'next', s ->> 'detail') || ' ' || coalesce(s ->> 'result', '')
		from tidemark.command_pass('kafka:events', 3, $1, '1 minute', 'T', $2, $3, $4::jsonb, $5) s`,
		p.epoch, p.next, p.next+int64(len(calls)), "["+strings.Join(calls, ",")+"]", way).Scan(&got)
	if err == nil && !strings.HasPrefix(got, "closed") {
		if _, scan := fmt.Sscanf(strings.Fields(got)[1], "%d", &p.next); scan != nil {
			p.t.Fatal(got, scan)
		}
	}
	return got, err
}

func (p *partition) wantPass(want, way string, calls ...string) {
	p.t.Helper()
	got, err := p.pass(way, calls...)
	if err != nil || got != want {
		p.t.Errorf("got %q %v, want %q", got, err, want)
	}
}

func (p *partition) wantCode(want, way string, calls ...string) *pgconn.PgError {
	p.t.Helper()
	got, err := p.pass(way, calls...)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != want {
		p.t.Fatalf("got %q %v, want %s", got, err, want)
	}
	return refused
}

// CM4, CM7: effects, claims, results and the offset commit together; a failing command is told by its position, and recorded alone.
func TestCommandPass(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	bad := fmt.Sprintf(`{"topic": "events", "topic_id": "T", "partition": 3, "offset": 1, "via": "acl", "service": %q, "raw": {"value": "/w==", "key": "AAE="}, "refused": {"code": "envelope.invalid", "message": "no JSON"}}`, p.name)
	page := []string{p.record(0, "a", `{"id": 1}`, `{}`), bad, p.record(2, "b", `{"id": 1}`, `{}`), p.record(3, "c", `{"id": 2}`, `{"parked": true, "dry_run": true, "failed": 7, "login": "postgres"}`)}
	if refused := p.wantCode("23505", "batch", page...); refused.ColumnName != "3" || refused.DataTypeName != "terminal" || refused.ConstraintName != "sql.constraint" {
		t.Errorf("%+v", refused)
	}
	p.wantInvoices()
	p.wantPass(`ran 2 {"rejected": 1, "processed": 1}`, "batch", page[:2]...)
	p.wantPass(`ran 3 {"failed_terminal": 1}`, "alone", page[2])
	p.wantPass(`ran 4 {"processed": 1}`, "batch", page[3])
	p.wantInvoices("1", "2")
	p.wantRows(`select concat_ws(' ', why, idempotency_key, encode(key, 'hex'), case when idempotency_key is null then encode(value, 'hex') end, headers) from tidemark.command_record order by id`,
		`dead_letter 0001 ff`, `dead_letter b [["h", "AA=="]]`)
	p.wantRows(`select watermark_id || ' ' || events_seen from tidemark.worker_cursor where worker = 'commands'`, "4 4")

	p.wantRows(`select concat_ws(' ', login, attempts) from tidemark.command_claim where idempotency_key = 'c'`, "1")

	// The pass does not begin where the cursor is, and has no effect.
	p.next = 3
	_ = p.wantCode("TM012", "batch", p.record(3, "d", `{"id": 3}`, `{}`))
	p.next = 4
	p.place(0)
	p.wantPass(`ran 1 {"redelivered": 1}`, "batch", p.record(0, "a", `{"id": 1}`, `{}`))
	p.place(5)
	p.wantPass(`ran 7 {"duplicate": 1, "failed_terminal": 1}`, "batch", p.record(5, "a", `{"id": 1}`, `{}`), p.record(6, "a", `{"id": 9}`, `{}`))
	p.wantRows(`select payload ->> 'status' || ' ' || (payload ->> 'idempotency_key') from tidemark.outbox where type like 'result.%' order by seq`,
		"processed a", "failed_terminal b", "processed c", "duplicate a", "failed_terminal a")

	// Another owner: this one can do nothing any more.
	old := p.epoch
	p.claim()
	p.epoch, old = old, p.epoch
	_ = p.wantCode("TM011", "batch", p.record(7, "d", `{"id": 3}`, `{}`))
	p.epoch = old
	p.wantInvoices("1", "2")
}

// CM9: off, dry run, gates: what the offset does.
func TestCommandPassSwitches(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	gate := "commands." + p.name + ".enabled"
	p.exec(`select tidemark.gate_set($1, false)`, gate)
	p.wantPass(`waiting 0 `, "batch", p.record(0, "a", `{"id": 1}`, `{}`))
	p.exec(`select tidemark.gate_set('commands.enabled', false)`)
	p.wantPass(`closed commands.enabled `, "batch", p.record(0, "a", `{"id": 1}`, `{}`))
	equal(t, "gate", one[string](p.session, `select tidemark.closed_gate('commands')`), "commands.enabled")
	// The worker has no gate beside that, in which an operator could believe.
	p.refused("TM004", `there is no gate "worker.commands.enabled"`, `select tidemark.gate_set('worker.commands.enabled', false)`)
	p.exec(`insert into tidemark.setting (key, value, description) values ('worker.commands.enabled', 'false', 'of an earlier release')`)
	p.wantRows(`select name from tidemark.configuration() where name like 'worker.commands.%'`)
	p.wantRows(`select key from jsonb_object_keys(tidemark.scrape() -> 'gates') key where key like 'worker.%'`, "worker.default.enabled")
	p.exec(`select tidemark.gate_set('commands.enabled', true), tidemark.gate_set($1, true), tidemark.stage_set('dry_run', 'test')`, gate)
	p.wantPass(`closed stage `, "batch", p.record(0, "a", `{"id": 1}`, `{}`))
	p.exec(`select tidemark.stage_set('live', 'test')`)

	// In dry run a command sees what ran before it, and leaves nothing.
	p.exec(`select tidemark.command_set($1, 'dry', 1, '{"function": "app.charge", "enabled": true, "payload_schema": {"type": "object"}}')`, p.name)
	dry := func(offset int64, key, payload string) string {
		return p.record(offset, key, payload, fmt.Sprintf(`{"command": "dry", "fingerprint": "00%02d"}`, offset%10))
	}
	p.wantPass(`ran 3 {"processed": 1, "dry_run: processed": 1, "dry_run: failed_terminal": 1}`, "batch",
		p.record(0, "a", `{"id": 1}`, `{}`), dry(1, "b", `{"id": 1}`), dry(2, "c", `{"id": 2}`))
	p.wantInvoices("1")
	p.wantRows(`select "offset" || ' ' || (document ->> 'status') from tidemark.command_record where why = 'dry_run' order by id`, "1 failed_terminal", "2 processed")

	// Off: it is parked, with what comes after it of its key, and runs when it is on.
	p.command("charge", `{"enabled": false}`)
	p.wantPass(`ran 5 {"failed_retryable": 2}`, "batch", p.record(3, "d", `{"id": 3}`, `{"key": "k"}`), p.record(4, "e", `{"id": 4}`, `{"key": "k"}`))
	p.wantPass(`ran 6 {"duplicate": 1}`, "batch", p.record(5, "a", `{"id": 1}`, `{}`))
	p.wantRows(`select count(*)::text from tidemark.command_retry()`, "0")
	p.command("charge", `{"enabled": true}`)
	p.wantPass(`ran 7 {"failed_retryable": 1}`, "batch", p.record(6, "f", `{"id": 5}`, `{"key": "k"}`))
	p.wantRows(`select idempotency_key || ' ' || (document ->> 'status') from tidemark.command_retry()`, "d processed", "e processed", "f processed")
	p.wantInvoices("1", "3", "4", "5")
}

// A function that loops is ended, and recorded without being run again.
func TestCommandPassTimeout(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	loop := p.record(0, "a", `{"id": 1, "sql": "select pg_sleep(100)"}`, `{}`)
	p.exec(`set statement_timeout = '300ms'`)
	if refused := p.wantCode("57014", "batch", loop); refused.DataTypeName != "" {
		t.Errorf("%+v", refused)
	}
	_ = p.wantCode("57014", "alone", loop)
	p.exec(`reset statement_timeout`)
	p.wantPass(`ran 1 {"failed_retryable": 1}`, "overdue", loop)
	p.wantInvoices()
	p.wantRows(`select state || ' ' || error_code from tidemark.command_claim`, "failed_retryable runtime.timeout")
	equal(t, "patience", one[int64](p.session, `select tidemark.command_patience(jsonb_build_array($1::jsonb))`, loop), int64(17000))
}

// A command that did not come to an end waits behind those of its ordering key, however soon its own next attempt would be.
func TestCommandPassOverdueKeepsOrder(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	for n, key := range []string{"a", "b", "c"} {
		p.wantPass(fmt.Sprintf(`ran %d {"failed_retryable": 1}`, n+1), "overdue", p.record(int64(n), key, fmt.Sprintf(`{"id": %d}`, n+1), `{"key": "k"}`))
	}
	const now = `update tidemark.command_parked set next_attempt_at = clock_timestamp() where next_attempt_at < 'infinity'`
	p.wantRows(`select idempotency_key from tidemark.command_parked where next_attempt_at < 'infinity'`, "a")
	p.exec(now)
	p.wantRows(`select idempotency_key || ' ' || (document ->> 'status') from tidemark.command_retry()`, "a processed", "b processed", "c processed")
	p.wantInvoices("1", "2", "3")
}

// CM7: a topic that was made again, or that has lost records, is held until an operator has named an offset.
func TestCommandPartition(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := serve(t, db)
	partition := func(topic string, first, end int64) string {
		return one[string](s.session, `select coalesce(next_offset || coalesce(' ' || held, ''), '') from tidemark.command_partition('events', 0, $1, $2, $3)`, topic, first, end)
	}
	equal(t, "new", partition("T", 5, 9), "5")
	equal(t, "known", partition("T", 0, 9), "5")
	for name, got := range map[string]string{"recreated": partition("U", 0, 9), "lost": partition("T", 6, 9), "shorter": partition("T", 0, 4)} {
		if !strings.HasPrefix(got, "5 the ") {
			t.Errorf("%s: %s", name, got)
		}
	}
	s.wantRows(`select kind || ' ' || subject || ' ' || severity from tidemark.finding where closed_at is null`, "command_partition_held commands/kafka:events/0 high")
	s.refused("TM005", "without a reason", `select tidemark.command_seek('events', 0, 0, ' ')`)
	s.refused("TM004", "no partition 1", `select tidemark.command_seek('events', 1, 0, 'test')`)
	equal(t, "was", one[int64](s.session, `select tidemark.command_seek('events', 0, 0, 'the topic was made again')`), int64(5))
	equal(t, "accepted", partition("U", 0, 9), "0")
	s.wantRows(`select kind from tidemark.finding where closed_at is null`)
	s.wantRows(`select action || ' ' || reason || ' ' || (before ->> 'next_offset') from tidemark.audit where action = 'command_seek'`, "command_seek the topic was made again 5")

	// The views show it.
	s.exec(`select epoch from tidemark.claim('commands', 'me', '1 minute', 'kafka:events', 0)`)
	summary := one[json.RawMessage](s.session, `select tidemark.command_pass('kafka:events', 0, (select lease_epoch from tidemark.heartbeat where executor_id = 'commands/kafka:events/0'),
		'1 minute', 'U', 0, 4, '[]', behind => 7, since => clock_timestamp() - interval '1 hour')`)
	if !strings.Contains(string(summary), `"next": 4`) {
		t.Error(string(summary))
	}
	s.wantRows(`select concat_ws(' ', worker, source, shard, status, behind_seconds >= 3600) from tidemark.worker_health where worker = 'commands'`, "commands kafka:events 0 behind t")
	s.wantRows(`select concat_ws(' ', kind, status, count) from tidemark.queue_health where name = 'commands/kafka:events/0' and kind <> 'heartbeat' order by 1`, "backlog bad 7", "cursor ok 0")
	s.wantRows(`select source from tidemark.source_cursor`)
	s.refused("TM005", "reads Kafka", `select tidemark.worker_run('commands')`)
}

// A pass tells what became of each record, how long it ran, and which have a dead letter.
func TestCommandPassTells(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	p.exec(`create table told (s jsonb)`)
	calls := []string{
		p.record(0, "a", `{"id": 1}`, `{}`), p.record(1, "a", `{"id": 1}`, `{}`), p.record(2, "a", `{"id": 2}`, `{}`), p.record(3, "b", `{}`, `{}`),
		p.record(4, "", `{}`, `{"refused": {"code": "envelope.invalid", "message": "no"}}`), p.record(5, "c", `{"id": 3}`, `{}`),
	}
	calls[4] = one[string](p.session, `select ($1::jsonb - 'event_id')::text`, calls[4])
	p.exec(`insert into told select tidemark.command_pass('kafka:events', 3, $1, '1 minute', 'T', 0, 6, $2::jsonb)`, p.epoch, "["+strings.Join(calls, ",")+"]")
	p.wantRows(`select regexp_replace(o, '\|[0-9.]+$', '|ms') from told, jsonb_array_elements_text(s -> 'outcomes') o`,
		"processed||ms", "duplicate||", "failed_terminal|idempotency.key_reused|", "rejected|contract.payload_invalid|", "rejected|envelope.invalid|", "processed||ms")
	p.wantRows(`select s ->> 'letters' from told`, "[2, 4]")
	p.wantRows(`select (last_run_summary ? 'outcomes')::text from tidemark.worker_cursor where source = 'kafka:events'`, "false")
}

// A believed name is a finding, for as long as it is believed.
func TestProducerUnproved(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	const open = `select severity || ' ' || subject from tidemark.finding where kind = 'producer_unproved' and closed_at is null`
	s.refused("TM005", "without a reason", `select tidemark.setting_set('commands.shared_topic', 'claimed', ' ')`)
	for _, way := range []string{"signed", "claimed", "claimed", "refuse"} {
		s.exec(`select tidemark.setting_set('commands.shared_topic', $1, case $1 when 'claimed' then 'until they sign' end)`, way)
		s.exec(`select * from tidemark.maintain()`)
		if way == "claimed" {
			s.wantRows(open, "warning commands.shared_topic")
		} else {
			s.wantRows(open)
		}
	}
}

// CM1: a record whose payload the daemon has judged by another schema than that of now, or by none, waits until it is judged by that, if SQL
// checks it in part only. One that was run dry is not replayed from what was kept.
func TestCommandJudgedByAnotherSchema(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	judged := func(by string) string { return fmt.Sprintf(`{"judged": %q}`, by) }
	p.wantPass(`ran 1 {"processed": 1}`, "batch", p.record(0, "a", `{"id": 1}`, judged("")))
	p.command("charge", `{"payload_schema": {"type": "object", "properties": {"mail": {"type": "string", "pattern": "^a"}}}}`)
	digest := one[string](p.session, `select md5(payload_schema::text) from tidemark.command`)
	p.wantPass(`waiting 2 {"processed": 1}`, "batch", p.record(1, "b", `{"id": 2}`, judged(digest)), p.record(2, "c", `{"id": 3, "mail": "b"}`, judged("")))
	p.command("charge", `{"enabled": false}`)
	p.wantPass(`waiting 2 `, "batch", p.record(2, "c", `{"id": 3, "mail": "b"}`, judged("another")))
	p.command("charge", `{"enabled": true}`)
	p.wantRows(`select last_run_summary ->> 'detail' from tidemark.worker_cursor where source = 'kafka:events'`, "closed by the schema of "+p.name+".charge/v1, which the daemon has not read yet")
	// An earlier release of the daemon does not tell.
	p.wantPass(`ran 4 {"rejected": 1, "processed": 1}`, "batch",
		p.record(2, "c", `{"id": 3}`, fmt.Sprintf(`{"judged": %q, "misfit": {"schema": %[1]q, "message": "/mail is wrong"}}`, digest)), p.record(3, "d", `{"id": 4}`, `{}`))
	p.wantInvoices("1", "2", "4")

	p.command("charge", `{"dry_run": true}`)
	p.wantPass(`ran 5 {"dry_run: processed": 1}`, "batch", p.record(4, "e", `{"id": 5, "mail": "a"}`, judged(digest)))
	p.command("charge", `{"dry_run": false, "payload_schema": {"type": "object", "properties": {"mail": {"type": "string", "pattern": "^ab"}}}}`)
	equal(t, "replayed", p.replay(`reason => 'why'`), `{"schema_changed": 1}`)
	p.wantRows(retryBatch)
	p.wantInvoices("1", "2", "4")
}

// CM8: after an upgrade that has SQL look at the schemas anew, what the daemon has left to SQL is replayed; maintain looks.
func TestCommandSchemaLookedAtAnew(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	const judged = `{"judged": ""}`
	for n, changes := range []string{judged, `{"judged": "another"}`} {
		p.wantPass(fmt.Sprintf(`ran %d {"failed_terminal": 1}`, n+1), "alone", p.record(int64(n), fmt.Sprint("k", n), fmt.Sprintf(`{"id": %d, "sql": "select 1/0"}`, n+1), changes))
	}
	p.exec(`update tidemark.command set unchecked = null`)
	equal(t, "counted", p.replay(`dry_run => true, failed => true`), `{"runs_again": 2}`)
	equal(t, "replayed", p.replay(`reason => 'why', failed => true`), `{"runs_again": 2}`)
	p.exec(`select * from tidemark.maintain()`)
	p.wantRows(`select unchecked::text from tidemark.command`, "{}")

	p.exec(`update tidemark.command set unchecked = null, payload_schema = '{"type": "object", "properties": {"mail": {"pattern": "^a"}}}'`)
	p.exec(`select * from tidemark.maintain()`)
	p.wantRows(`select unchecked::text from tidemark.command`, "{/properties/mail/pattern}")
}

// CM3: a key that is revoked, or a name that is not believed any more, also stops what was verified before: in a page, parked, and on record.
func TestCommandVerifiedBefore(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	p.exec(`select tidemark.producer_key_add('shop-1', $1, 'shop', '{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}')`, p.name)
	p.exec(`select tidemark.setting_set('commands.shared_topic', 'claimed', 'until they sign')`)
	p.command("charge", `{"enabled": false}`)
	signed := `{"via": "jws", "kid": "shop-1"}`
	p.wantPass(`ran 3 {"failed_retryable": 3}`, "batch", p.record(0, "a", `{"id": 1}`, signed),
		p.record(1, "b", `{"id": 2}`, `{"via": "jws"}`), // parked by an earlier release
		p.record(2, "c", `{"id": 3}`, `{"via": "claimed"}`))
	p.command("charge", `{"enabled": true, "dry_run": true}`)
	p.wantPass(`ran 4 {"dry_run: processed": 1}`, "batch", p.record(3, "d", `{"id": 4}`, signed))
	p.command("charge", `{"dry_run": false}`)
	p.wantPass(`ran 5 {"processed": 1}`, "batch", p.record(4, "e", `{"id": 5}`, signed))

	p.exec(`select tidemark.producer_key_revoke('shop-1', 'stolen'), tidemark.setting_set('commands.shared_topic', 'signed', 'they sign')`)
	p.wantPass(`ran 6 {"rejected": 1}`, "batch", p.record(5, "f", `{"id": 6}`, signed))
	equal(t, "replayed", p.replay(`reason => 'why'`), `{"parked": 3, "identity.key_revoked": 2}`)
	p.wantRows(retryBatch, "a failed_terminal identity.key_revoked")
	p.wantRows(retryBatch, "b processed")
	p.wantRows(retryBatch, "c failed_terminal identity.signature_missing")
	p.wantInvoices("2", "5")
	p.exec(`select tidemark.producer_key_delete('shop-1', 'stolen')`)
	p.wantPass(`ran 7 {"rejected": 1}`, "batch", p.record(6, "g", `{"id": 7}`, signed))
	p.wantInvoices("2", "5")

	// Nor does another key of the name make good what that one has signed.
	p.refused("TM005", "there is, or was, a key", `select tidemark.producer_key_add('shop-1', $1, 'shop', '{"kty": "OKP", "crv": "Ed25519", "x": "22qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}')`, p.name)
	equal(t, "replayed", p.replay(`reason => 'why'`), `{"failed_terminal": 2, "identity.key_revoked": 3}`)
}

// LI6: the function, or the role of the service, is dropped while commands come: what runs comes to its end, the next ones wait with a finding,
// and run when it is there again.
func TestCommandLosesFunctionAndRole(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := serve(t, db).partition()
	other := open(t, db, "other")
	other.begin()
	other.exec(`insert into app.invoice (id) values (1)`)
	passed := later[string](p.session, `select s ->> 'result' from tidemark.command_pass('kafka:events', 3, $1, '1 minute', 'T', 0, 1, $2::jsonb) s`,
		p.epoch, "["+p.record(0, "a", `{"id": 1, "cents": 2}`, `{}`)+"]")
	other.waitsFor(p.session)
	other.exec(`drop function app.charge`)
	other.exec(`delete from app.invoice`)
	other.commit()
	if got, err := passed(); err != nil || got != `{"processed": 1}` {
		t.Errorf("what was running: %q %v", got, err)
	}
	p.next = 1
	const open = `select kind || ' ' || subject from tidemark.finding where closed_at is null order by 1`
	lost := func(offset int64, key, what string) {
		t.Helper()
		call := p.record(offset, key, fmt.Sprintf(`{"id": %d}`, offset+1), `{}`)
		equal(t, what, p.wantCode("42883", "batch", call).ConstraintName, "sql.undefined")
		p.wantPass(fmt.Sprintf(`ran %d {"failed_retryable": 1}`, offset+1), "alone", call)
		p.wantRows(open, "command_circuit "+p.name+".charge/v1")
	}
	lost(1, "b", "function")
	p.exec(commandFunction[strings.Index(commandFunction, "create function"):])
	p.exec(`update tidemark.command_parked set next_attempt_at = now()`)
	p.command("charge", `{"function": "app.charge"}`)
	p.wantRows(`select document ->> 'status' from tidemark.command_retry()`, "processed")
	p.wantRows(open)

	role := "tidemark_service_" + p.name
	p.exec(`drop owned by "` + role + `"; drop role "` + role + `"`)
	lost(2, "c", "role")
	p.exec(`select tidemark.service_set($1)`, p.name)
	p.exec(`grant usage on schema app to "` + role + `"; grant all on all tables in schema app to "` + role + `"`)
	p.command("charge", `{"function": "app.charge"}`)
	p.exec(`update tidemark.command_parked set next_attempt_at = now()`)
	p.wantRows(`select document ->> 'status' from tidemark.command_retry()`, "processed")
	p.wantRows(open)
	p.wantInvoices("1", "2", "3")
}

// A partition that no daemon reads is shown as such, and whether to start a daemon or to forget the topic is for an operator to say:
// the beat of a daemon does not tell its topics. Forgetting is refused where a daemon may have the topic.
func TestCommandPartitionIsForgotten(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	p.wantPass(`ran 1 {"processed": 1}`, "batch", p.record(0, "a", `{"id": 1}`, `{}`))
	state := `select concat_ws(' ', h.status, s.status) from tidemark.worker_health h join tidemark.worker_summary s using (worker, source, shard) where worker = 'commands'`
	p.wantRows(state, "unknown unknown") // the pass was not told how many records there are
	const forget = `select tidemark.worker_source_remove('commands', 'kafka:events', 'why')::text`
	p.refused("TM005", "me reads kafka:events", forget)
	p.exec(`select tidemark.release('commands', $1, 'kafka:events', 3)`, p.epoch)
	p.wantRows(state, "not read not read")
	p.refused("TM005", "commands/kafka:events/3 was in use at ", forget)

	ago := func(age string) {
		p.exec(`update tidemark.heartbeat set last_beat_at = clock_timestamp() - $1::interval where executor_id like 'commands/%'`, age)
		p.exec(`update tidemark.worker_cursor set updated_at = clock_timestamp() - $1::interval where worker = 'commands'`, age)
	}
	ago("4 minutes")
	p.refused("TM005", "commands/kafka:events/3 was in use at ", forget)
	ago("20 minutes")
	p.exec(`select tidemark.gate_set('commands.enabled', false)`)
	p.refused("TM005", "whether a daemon has kafka:events cannot be seen: closed by commands.enabled", forget)
	p.exec(`select tidemark.gate_set('commands.enabled', true)`)
	p.exec(`select tidemark.worker_pause('commands', true, 'why')`)
	p.refused("TM005", "closed by paused", forget)
	p.exec(`select tidemark.worker_pause('commands', false, 'why')`)

	// A daemon of other topics, and the topic was made again.
	ago("20 minutes")
	p.exec(`select tidemark.heartbeat_daemon('other', 'running', '{"commands": true}')`)
	p.exec(`select * from tidemark.command_partition('events', 3, 'another', 0, 9)`)
	p.exec(`select tidemark.stale_check()`)
	p.wantRows(`select cause || ': ' || cli[1] from tidemark.cause where subject = 'commands/kafka:events/3' order by 1`,
		"command_partition_held: tidemark finding list", "cursor_silent_gap: tidemark run")
	p.refused("TM005", "commands/kafka:events/3 is held, and would be read from its first record", forget)
	p.exec(`select tidemark.command_seek('events', 3, 0, 'no daemon is to read it')`)
	p.refused("TM005", "commands/kafka:events/3 was in use at ", forget) // by the daemon that held it
	ago("20 minutes")
	p.wantRows(forget, "1")
	p.exec(`select tidemark.stale_check()`)
	p.wantRows(`select kind || ' ' || subject from tidemark.finding where closed_at is null`)
	p.wantRows(state)
	p.wantRows(`select before ->> 'watermark_id' from tidemark.audit where action = 'worker_source_remove'`, "0")
}

// SE1: each command of a pass is run by what command_set has made for it, also behind one that is, and after one that has dropped or
// altered it: as a function of its caller it would run with the rights of the daemon.
func TestCommandPassRunsWhatWasMade(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	p.exec(`select tidemark.command_set($1, 'other', 1, '{"function": "app.charge", "payload_schema": {"type": "object"}, "enabled": true, "dry_run": false}')`, p.name)
	p.exec(`do $$ begin execute format('alter function tidemark.command_%s(jsonb, jsonb) security invoker',
		(select id from tidemark.command where command = 'other')); end $$`)
	p.exec(`do $$ begin execute format('grant tidemark_emitter to %I', (select role from tidemark.service where service = '` + p.name + `')); end $$`)
	for what, calls := range map[string][]string{
		"was changed": {p.record(0, "a", `{"id": 1}`, `{}`), p.record(1, "b", `{"id": 2}`, `{"command": "other"}`)},
		"is altered": {p.record(0, "a", fmt.Sprintf(`{"id": 1, "sql": "alter function tidemark.command_%d(jsonb, jsonb) security invoker"}`,
			one[int](p.session, `select id from tidemark.command where command = 'charge'`)), `{}`), p.record(1, "b", `{"id": 2}`, `{}`)},
		"is dropped": {p.record(0, "a", `{"id": 1, "sql": "drop owned by current_user"}`, `{}`), p.record(1, "b", `{"id": 2}`, `{}`)},
	} {
		refused := p.wantCode("42883", "batch", calls...)
		equal(t, what, refused.DataTypeName+" "+refused.ColumnName, "operator 2")
	}
	p.wantInvoices()
}
