package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// LI6: an event is emitted when the watch sees the finding, and one when it is over (TestWatch).
func TestFindingEvents(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "findings")
	events := `select concat_ws(' ', o.type, o.severity, o.subject_ref, o.payload ->> 'kind', o.payload ->> 'subject', o.payload ->> 'detail', o.payload ->> 'count')
		from tidemark.outbox o where o.domain = 'system' order by o.seq`
	seen := func(detail string) {
		s.exec(`select tidemark.finding_open('cursor_holes', 'default', 'high', $1)`, detail)
		s.exec(watched)
	}
	over := func() {
		s.exec(`select tidemark.finding_close('cursor_holes', 'default')`)
		s.exec(watched)
		s.later()
		s.exec(watched)
	}
	seen("not registered")
	over()
	s.wantRows(events)

	s.exec(tellFindings)
	seen("held by pid 7")
	seen("held by pid 8")
	over()
	s.exec(watched)
	s.wantRows(events, "finding_opened high 2 cursor_holes default held by pid 7 1", "finding_closed high 2 cursor_holes default held by pid 8 2")

	// One that nothing can be said of, since the type of the event wants more.
	s.exec(`select tidemark.type_set('system', 'finding_opened', '{"schema": {"required": ["colour"]}}')`)
	seen("again")
	s.wantRows(openFindings, "cursor_holes default high 1")
	s.wantRows(events + ` offset 2`)
}

func TestFindingAck(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "findings")
	s.exec(`select tidemark.finding_open('cursor_holes', 'default', 'high', 'x')`)
	s.wantRows(`select concat_ws(' ', kind, acked_by, ack_note, acked_at is null, closed_at is null) from tidemark.finding_ack(1, 'ada looks')`,
		"cursor_holes postgres ada looks f t")
	s.wantRows(`select concat_ws(' ', actor, object, reason, before ->> 'ack_note', after ->> 'ack_note') from tidemark.audit where action = 'finding_ack'`,
		"postgres finding 1 ada looks ada looks")
	s.refused("TM005", "a note is missing", `select tidemark.finding_ack(1, ' ')`)
	s.refused("TM005", "a note is missing", `select tidemark.finding_ack(1, null)`)
	s.refused("TM004", "there is no finding 2", `select tidemark.finding_ack(2, 'x')`)
	// Seen again it stays acknowledged; another one is another one.
	s.exec(`select tidemark.finding_open('cursor_holes', 'default', 'high', 'y')`)
	s.wantRows(`select ack_note from tidemark.finding where closed_at is null`, "ada looks")
	s.exec(`select tidemark.finding_close('cursor_holes', 'default')`)
	s.refused("TM005", "finding 1 is closed since", `select tidemark.finding_ack(1, 'x')`)
	s.exec(`select tidemark.finding_open('cursor_holes', 'default', 'high', 'z')`)
	s.wantRows(`select coalesce(ack_note, 'none') from tidemark.finding where closed_at is null`, "none")
}

func TestFindingRetention(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "findings")
	for n := range 3 {
		s.exec(`select tidemark.finding_open('cursor_holes', $1, 'high', 'x')`, fmt.Sprint(n))
	}
	s.exec(`update tidemark.finding set opened_at = opened_at - interval '1 year', last_seen_at = last_seen_at - interval '1 year'`)
	s.exec(`select tidemark.finding_close('cursor_holes', '0'), tidemark.finding_close('cursor_holes', '1')`)
	s.exec(`update tidemark.finding set closed_at = closed_at - interval '91 days' where subject = '0'`)
	s.wantMaintain("forgot finding 1 closed findings past the setting finding.retention")
	s.set("finding.retention", "1 hour")
	s.exec(`update tidemark.finding set closed_at = closed_at - interval '2 hours' where subject = '1'`)
	s.wantMaintain("forgot finding 1 closed findings past the setting finding.retention")
	s.wantRows(`select subject from tidemark.finding`, "2")
	s.set("finding.retention", "nonsense") // the default holds
	s.exec(`select tidemark.finding_close('cursor_holes', '2')`)
	s.wantMaintain()
}

// LI6: a cursor that falls behind.
func TestLagFinding(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.emit(1)
	old := func(minutes int) {
		w.exec(`set session_replication_role = replica`) // the log is append-only
		w.exec(`update tidemark.outbox set created_at = clock_timestamp() - make_interval(mins => $1)`, minutes)
		w.exec(`set session_replication_role = origin`)
	}
	old(16)
	w.wantMaintain()
	w.wantRows(openFindings) // a worker that has never run is not behind
	w.pass()
	w.emit(1)
	w.wantMaintain()
	w.wantRows(openFindings)
	old(2)
	w.wantMaintain()
	w.wantRows(openFindings, "cursor_lag default/outbox/0 warning 1")
	old(16)
	w.wantMaintain()
	w.wantRows(openFindings, "cursor_lag default/outbox/0 high 2")
	w.wantRows(`select concat_ws(' ', status, count, age_seconds / 60) from tidemark.queue_health where kind = 'backlog'`, "bad 1 16")
	w.emit(1) // the lag is the age of the oldest event
	w.wantMaintain()
	w.wantRows(openFindings, "cursor_lag default/outbox/0 high 3")
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.wantMaintain("closed finding 1 cursor_lag default/outbox/0")
	w.wantRows(openFindings)
	w.wantRows(`select concat_ws(' ', status, note) from tidemark.queue_health where kind = 'backlog'`, "ok closed by routes.enabled")
	w.exec(`select tidemark.gate_set('routes.enabled', true)`)
	w.wantMaintain()
	w.wantRows(openFindings, "cursor_lag default/outbox/0 high 1")
	w.pass()
	w.wantMaintain("closed finding 4 cursor_lag default/outbox/0")
	w.wantRows(openFindings)
}

// A message that quotes a payload goes with the fault that it told of: the finding that opens again without one has none.
func TestFindingForgetsItsMessage(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "owner")
	const messages = `select concat_ws(' ', f.kind, f.count, m.message) from tidemark.finding f left join tidemark.finding_message m on m.finding = f.id`
	s.exec(`select tidemark.finding_open('worker_failing', 'default', 'high', 'read: 22P02', 'invalid input: 4111-1111')`)
	s.wantRows(messages, "worker_failing 1 invalid input: 4111-1111")
	s.exec(`select tidemark.finding_open('worker_failing', 'default', 'high', 'settle: 40001')`)
	s.wantRows(messages, "worker_failing 2")
}

// A cursor that goes takes its findings with it: only its passes would have closed them. Those of its dead letters, and of what else
// has its name, stay.
func TestFindingsOfACursorThatIsGone(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(insertBirths)
	s.drain()
	s.exec(`alter table births rename born_at to b`)
	s.wantHeld("source_changed", "born_at")
	s.exec(`insert into tidemark.dead_letter (idempotency_key, worker_id, source, item_id, event_snapshot, error_code)
		select 'k', id, 'births', '1', '{}', 'x' from tidemark.worker where worker = 'w'`)
	s.exec(`select tidemark.finding_open('cursor_dlq', 'w/births/0', 'warning', 'x')`)
	s.exec(`select tidemark.worker_source_remove('w', 'births', 'a test')`)
	s.exec(`select tidemark.maintain()`)
	s.wantRows(`select cause || ' ' || subject from tidemark.cause`, "cursor_dlq w/births/0")
	s.wantRows(`select executor_id from tidemark.silence where executor_id like 'w/%'`)
	s.exec(`select tidemark.dead_letter_discard(id, 'a test') from tidemark.dead_letter`)
	s.exec(`select tidemark.maintain()`)
	s.wantRows(`select cause || ' ' || subject from tidemark.cause`)

	s.exec(`select tidemark.worker_set('v'), tidemark.worker_set('v', '{"shards": 2}')`)
	for _, subject := range []string{"v", "v/outbox/0", "v/outbox/1", "vv"} {
		for _, kind := range []string{"worker_failing", "cursor_holes", "cursor_watermark_regression"} {
			s.exec(`select tidemark.finding_open($1, $2, 'high', 'x')`, kind, subject)
		}
	}
	s.exec(`select tidemark.finding_open('command_waiting', 'v', 'high', 'of a service')`)
	s.exec(`select tidemark.worker_delete('v', 'a test')`)
	s.exec(`select tidemark.maintain()`)
	s.want(findings, "command_waiting v", "cursor_holes vv", "cursor_watermark_regression vv", "worker_failing vv")
}
