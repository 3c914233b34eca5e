package test

import (
	"context"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// refusing is a live worker whose route hook keeps the order of keys, with three events of the key k that wait: the first has failed
// once and is due in an hour, the others wait behind it. An event of another key has not been tried.
func refusing(t *testing.T, db *tidemarktest.DB) session {
	t.Helper()
	w := live(t, db)
	w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "ordering": "key"}')`)
	w.emitKey(1, "k")
	w.emitKey(2, "k")
	w.emitKey(3, "k")
	w.emitKey(4, "l")
	w.pass()
	w.exec(`update tidemark.pending set error_count = 1, last_error = 'http_503: busy', next_attempt_at = clock_timestamp() + interval '1 hour' where seq = 1`)
	w.exec(`update tidemark.pending set next_attempt_at = 'infinity' where seq in (2, 3)`)
	return w
}

// due are the events that wait: those that are due, those that are parked, and those behind another.
const waits = `select string_agg(seq || case when next_attempt_at = 'infinity' then ' behind' when next_attempt_at > clock_timestamp() then ' parked' else ' due' end, ', ' order by seq) from tidemark.pending`

func TestPendingRetry(t *testing.T) {
	t.Parallel()
	w := refusing(t, tidemarktest.NewDB(t))
	w.wantRows(waits, "1 parked, 2 behind, 3 behind, 4 due")
	w.refused("TM005", "needs a reason", `select tidemark.pending_retry(' ', 'app', 1)`)
	w.refused("TM005", "which delivery is meant is not said", `select tidemark.pending_retry('why')`)
	w.refused("TM005", "which delivery is meant is not said", `select tidemark.pending_retry('why', 'app', 1, item_id => '1')`)
	w.refused("TM005", "which delivery is meant is not said", `select tidemark.pending_retry('why', worker => 'default')`)
	w.refused("TM004", `there is no route "none"`, `select tidemark.pending_retry('why', 'none', 1)`)
	w.refused("TM004", "app 9 does not wait", `select tidemark.pending_retry('why', 'app', 9)`)
	w.refused("TM005", "app 3 waits behind an earlier event of its key", `select tidemark.pending_retry('why', 'app', 3)`)
	w.refused("TM005", "not_before must be", `select tidemark.pending_retry('why', 'app', 1, not_before => clock_timestamp() + interval '31 days')`)
	w.refused("TM005", "not_before must be", `select tidemark.pending_retry('why', 'app', 1, not_before => clock_timestamp() - interval '1 hour')`)
	w.refused("TM005", "not_before is for one", `select tidemark.pending_retry('why', 'app', not_before => clock_timestamp() + interval '1 hour')`)
	w.exec(`select tidemark.gate_set('worker.default.enabled', false)`)
	w.refused("TM009", "app 1 is not tried: closed by worker.default.enabled", `select tidemark.pending_retry('why', 'app', 1)`)
	w.exec(`select tidemark.gate_set('worker.default.enabled', true)`)
	w.wantRows(waits, "1 parked, 2 behind, 3 behind, 4 due")

	w.wantRows(`select tidemark.pending_retry('it is up', 'app', 1)::text`, "1")
	w.wantRows(waits, "1 due, 2 behind, 3 behind, 4 due")
	// Perhaps it is under way, and what it comes to would overrule this.
	w.refused("TM005", "app 1 is due already", `select tidemark.pending_retry('it is up', 'app', 1)`)
	w.wantRows(`select tidemark.pending_retry('maintenance', 'app', 4, not_before => clock_timestamp() + interval '1 hour')::text`, "1")
	w.wantRows(waits, "1 due, 2 behind, 3 behind, 4 parked")
	w.wantRows(`select tidemark.pending_retry('it is up', 'app')::text`, "1")
	w.wantRows(waits, "1 due, 2 behind, 3 behind, 4 due")
	w.wantRows(`select concat_ws(' ', object, reason, after ->> 'deliveries') from tidemark.audit where action = 'pending_retry' order by id`,
		"pending app 1 it is up 1", "pending app 4 maintenance 1", "pending app it is up 1")
	// Errors and attempts stay: a try is counted when it is made.
	w.wantRows(`select concat_ws(' ', attempt_no, error_count, last_error) from tidemark.pending where seq = 1`, "1 1 http_503: busy")
}

// What is given up is a dead letter with its evidence, in the finding and the counts; what waits behind it is due.
func TestPendingDiscard(t *testing.T) {
	t.Parallel()
	w := refusing(t, tidemarktest.NewDB(t))
	w.refused("TM005", "needs a reason", `select tidemark.pending_discard('', 'app', 1)`)
	w.refused("TM005", "which delivery is given up is not said", `select tidemark.pending_discard('why', 'app')`)
	w.refused("TM004", "app 9 does not wait", `select tidemark.pending_discard('why', 'app', 9)`)
	w.wantRows(`select tidemark.pending_discard('the order was cancelled', 'app', 1)::text`, "1")
	w.wantRows(waits, "2 due, 3 behind, 4 due")
	w.wantRows(`select concat_ws(' ', seq, error_code, error_detail, attempts, resolved_at is null, event_snapshot -> 'payload' ->> 'n') from tidemark.dead_letter`,
		"1 given_up its last error was http_503: busy 2 t 1")
	w.wantRows(`select concat_ws(' ', attempt_no, outcome, reason, detail) from tidemark.attempt where seq = 1`, "2 failed given_up its last error was http_503: busy")
	w.wantRows(`select concat_ws(' ', w.state, w.sentence) from tidemark.outbox o, tidemark.why(o.event_id, 'app') w where o.seq = 1`,
		"dead letter It failed for good after 2 attempts: given_up, its last error was http_503: busy.")
	w.wantRows(`select kind from tidemark.finding`, "cursor_dlq")
	w.wantRows(`select dead_lettered::text from tidemark.worker_cursor where worker = 'default'`, "1")
	w.wantRows(`select failed::text from tidemark.route_minute where failed > 0`, "1")
	w.wantRows(`select concat_ws(' ', object, reason, after) from tidemark.audit where action = 'pending_discard'`, `pending app 1 the order was cancelled {"dead_letter": 1}`)
	// One that was never tried, from the middle of its key: what is before and behind it stays in order.
	w.wantRows(`select tidemark.pending_discard('why', 'app', 3)::text`, "2")
	w.wantRows(waits, "2 due, 4 due")
	w.wantRows(`select error_detail from tidemark.dead_letter where seq = 3`, "it was not tried")
	// It can be tried again, and given up again: the letter is the same.
	w.exec(`select tidemark.dead_letter_replay(1)`)
	w.wantRows(`select tidemark.pending_discard('still cancelled', 'app', 1)::text`, "1")
	w.wantRows(`select concat_ws(' ', id, attempts, error_code, resolved_at is null) from tidemark.dead_letter order by id`, "1 4 given_up t", "2 2 given_up t")
	w.wantRows(waits, "2 due, 4 due")
	// A letter without an event would be lost in silence: the worker makes it, from what is left.
	w.exec(`update tidemark.pending set seq = 77 where seq = 4`)
	w.refused("TM004", "event 77 is no longer in the log", `select tidemark.pending_discard('why', 'app', 77)`)
}

// A delivery that was under way when an operator gave it up is recorded in the dead letter, whatever comes of it.
func TestPendingDiscardUnderWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ result, letter, attempt, history string }{
		"sent":             {`row(r.id, false, 'sent', null, null, '{[1,2)}', null)`, "given_up 3 sent", "3 sent", "1 0 1 0"},
		"refused for good": {`row(r.id, false, 'failed', 'http_400', 'no', '{[1,2)}', null)`, "http_400 3 open", "3 failed http_400", "0 0 2 0"},
		"refused for now":  {`row(r.id, false, 'pending', 'http_503', 'busy', '{[1,2)}', 10)`, "http_503 3 open", "3 failed http_503", "0 0 2 0"},
		"not tried":        {`row(r.id, false, 'pending', 'busy', null, '{[1,2)}', 10)`, "given_up 2 open", "", "0 0 1 0"},
		// The next one of its key was under way with it, and not tried for it: nothing else would release that.
		"with the next of its key": {
			`row(r.id, false, 'pending', 'http_503', 'busy', '{[1,2)}', 10), row(r.id, false, 'pending', 'behind_key', null, '{[2,4)}', null)`,
			"http_503 3 open", "3 failed http_503", "0 0 2 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := refusing(t, tidemarktest.NewDB(t))
			w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
			w.exec(`select tidemark.pending_discard('why', 'app', 1)`)
			// The mark of a handler that has committed: it must not outlive the record that it was sent.
			w.exec(`insert into tidemark.handled select id, 1 from tidemark.outbound_route where route_code = 'app'`)
			w.exec(`select tidemark.settle('default', (select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'), null, '{}', array[` + c.result + `]::tidemark.result[])
				from tidemark.outbound_route r where r.route_code = 'app'`)
			w.wantRows(`select concat_ws(' ', error_code, attempts, coalesce(resolution, 'open')) from tidemark.dead_letter`, c.letter)
			w.wantRows(`select coalesce(max(concat_ws(' ', attempt_no, outcome, reason)), '') from tidemark.attempt where seq = 1 and attempt_no > 2`, c.attempt)
			w.wantRows(historySums+`'app')`, c.history+" 60")
			w.wantRows(waits, "2 due, 3 behind, 4 due")
			w.wantRows(`select count(*)::text from tidemark.handled`, map[bool]string{true: "0", false: "1"}[name == "sent"])
		})
	}
}

// An event that is parked while its delivery is under way is tried no sooner than the operator said, whatever the retry policy or the order
// of its key say; one that arrived, or failed for good, is not tried again.
func TestPendingParkedUnderWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ result, waits, history string }{
		"sent":             {`row(r.id, false, 'sent', null, null, '{[4,5)}', null)`, "1 parked, 2 behind, 3 behind", "1 0 0 0"},
		"refused for good": {`row(r.id, false, 'failed', 'http_400', 'no', '{[4,5)}', null)`, "1 parked, 2 behind, 3 behind", "0 0 1 0"},
		"refused for now":  {`row(r.id, false, 'pending', 'http_503', 'busy', '{[4,5)}', 10)`, "1 parked, 2 behind, 3 behind, 4 parked", "0 1 0 0"},
		"not tried":        {`row(r.id, false, 'pending', 'breaker_open', null, '{[4,5)}', 10)`, "1 parked, 2 behind, 3 behind, 4 parked", "0 0 0 0"},
		"behind its key":   {`row(r.id, false, 'pending', 'behind_key', null, '{[4,5)}', null)`, "1 parked, 2 behind, 3 behind, 4 parked", "0 0 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := refusing(t, tidemarktest.NewDB(t))
			w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
			w.exec(`select tidemark.pending_retry('maintenance', 'app', 4, not_before => clock_timestamp() + interval '1 day')`)
			w.exec(`select tidemark.settle('default', (select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'), null, '{}', array[` + c.result + `::tidemark.result])
				from tidemark.outbound_route r where r.route_code = 'app'`)
			w.wantRows(waits, c.waits)
			w.wantRows(`select distinct (next_attempt_at > clock_timestamp() + interval '23 hours')::text from tidemark.pending where seq = 4 and next_attempt_at > clock_timestamp()`,
				strings.Fields(map[bool]string{true: "true"}[strings.Contains(c.waits, "4 parked")])...)
			w.wantRows(historySums+`'app')`, c.history+" 60")
		})
	}
}

// An event that was delivered right behind the one before it of its key, and refused for now, waits by the retry policy.
func TestPendingBehindIsNotParked(t *testing.T) {
	t.Parallel()
	w := refusing(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
	w.exec(`select tidemark.settle('default', (select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'), null, '{}', array[
		row(r.id, false, 'sent', null, null, '{[1,2)}', null), row(r.id, false, 'pending', 'http_503', 'busy', '{[2,3)}', 60)]::tidemark.result[])
		from tidemark.outbound_route r where r.route_code = 'app'`)
	w.wantRows(waits, "2 parked, 3 behind, 4 due")
}

// What was tried is in the history as the attempts tell it: not an event that another settle has ended meanwhile.
func TestHistoryOfWhatNoLongerWaits(t *testing.T) {
	t.Parallel()
	w := refusing(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
	settle := func(result string) {
		w.exec(`select tidemark.settle('default', (select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'), null, '{}', array[` + result + `::tidemark.result])
			from tidemark.outbound_route r where r.route_code = 'app'`)
	}
	settle(`row(r.id, false, 'sent', null, null, '{[4,5)}', null)`)
	settle(`row(r.id, false, 'pending', 'http_503', 'busy', '{[4,5)}', 10)`)
	settle(`row(r.id, false, 'sent', null, null, '{[1,2), [4,5)}', null)`)
	w.wantRows(historySums+`'app')`, "2 0 0 0 60")
	w.wantRows(`select concat_ws(' ', seq, attempt_no, outcome) from tidemark.attempt order by seq`, "1 2 sent", "4 2 sent")
}

// A letter that was discarded before its delivery ended says that it was sent.
func TestPendingDiscardedThenSent(t *testing.T) {
	t.Parallel()
	w := refusing(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
	w.exec(`select tidemark.pending_discard('why', 'app', 1), tidemark.dead_letter_discard(1, 'not needed')`)
	w.exec(`select tidemark.settle('default', (select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'), null, '{}',
		array[row(r.id, false, 'sent', null, null, '{[1,2)}', null)::tidemark.result]) from tidemark.outbound_route r where r.route_code = 'app'`)
	w.wantRows(`select resolution from tidemark.dead_letter`, "sent")
	w.wantRows(`select concat_ws(' ', attempt_no, outcome) from tidemark.attempt where seq = 1 and attempt_no > 2`, "3 sent")
}

// What an event comes to that waits again, since its route is replayed, is not of the letter of long ago, also where another one with the
// same outcome was given up under way.
func TestPendingDiscardedBesideAReplay(t *testing.T) {
	t.Parallel()
	w := refusing(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
	settle := func(seqs string) {
		w.exec(`select tidemark.settle('default', (select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'), null, '{}',
			array[row(r.id, false, 'sent', null, null, '` + seqs + `', null)::tidemark.result]) from tidemark.outbound_route r where r.route_code = 'app'`)
	}
	w.exec(`select tidemark.pending_discard('why', 'app', 4), tidemark.dead_letter_replay(1)`)
	settle(`{[4,5)}`)
	const letter = `select concat_ws(' ', seq, error_code, attempts, resolution, resolved_at) from tidemark.dead_letter where id = 1`
	before := one[string](w, letter)
	w.exec(`select tidemark.route_replay('app', 'again', from_seq => 4, outcomes => '{sent}')`)
	w.exec(`select tidemark.replay_stage('default')`)
	w.wantRows(`select concat_ws(' ', seq, replay) from tidemark.pending where seq = 4`, "4 t")
	w.exec(`select tidemark.pending_discard('why', 'app', 1)`)
	settle(`{[1,2),[4,5)}`)
	w.wantRows(letter, before)
	w.wantRows(`select concat_ws(' ', seq, resolution) from tidemark.dead_letter where id <> 1`, "1 sent")
	w.wantRows(`select concat_ws(' ', attempt_no, outcome) from tidemark.attempt where seq = 4 order by attempt_no desc limit 1`,
		one[string](w, `select concat_ws(' ', max(attempt_no), 'sent') from tidemark.attempt where seq = 4`))
	w.wantRows(`select seq::text from tidemark.pending where seq in (1, 4)`)
}

// A replay is not over while events that another pass has just staged are pending.
func TestReplayEndsWithItsLastEvent(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := refusing(t, db)
	w.exec(`select tidemark.emit('test', 'tick', '{"n": 1}') from generate_series(1, 1100); select tidemark.route_worker_run('default', 5000);
		update tidemark.pending set next_attempt_at = 'infinity'`)
	w.exec(`select tidemark.route_replay('app', 'again', from_seq => 5, outcomes => '{sent, failed, pending, none, disabled, dry_run}')`)
	w.exec(`delete from tidemark.pending where seq > 4`) // as if all had been sent
	w.exec(`select tidemark.replay_stage('default')`)
	w.wantRows(`select count(*)::text from tidemark.pending where replay_id is not null`, "1000")
	w.exec(`delete from tidemark.pending where replay_id is not null and seq > 5`)
	other, eye := open(t, db, "other"), open(t, db, "eye")
	w.begin()
	w.exec(`select tidemark.replay_stage('default')`)
	ended := make(chan error, 1)
	go func() {
		_, err := other.conn.Exec(context.Background(), `select tidemark.pending_discard('why', 'app', 5)`)
		ended <- err
	}()
	eye.waitsFor(other)
	w.commit()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	eye.wantRows(`select (finished_at is null)::text || ' ' || (select count(*) > 0 from tidemark.pending p where p.replay_id = j.id) from tidemark.replay_job j`, "true true")
}

// A settle that is under way ends first: it finds its rows where they were.
func TestPendingActsWaitForTheSettle(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := refusing(t, db)
	for _, act := range []string{`select tidemark.pending_retry('why', 'app', 1)`, `select tidemark.pending_discard('why', 'app', 1)`} {
		w.begin()
		w.exec(`select from tidemark.heartbeat where executor_id = 'default/outbox/0' for update`)
		operator := open(t, db, "operator")
		operator.exec(`set lock_timeout = '100ms'`)
		operator.refused("55P03", "lock timeout", act)
		w.rollback()
	}
}

// A row of a table: its worker tries it in its next pass, or it is a dead letter, with the row as it was.
func TestPendingRows(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`create function public.refuse(rows anyarray) returns void language plpgsql as $$ begin raise 'never'; end $$;
		insert into births select; insert into births select`)
	s.worker("w", `{"handler": "sql", "handler_ref": "public.refuse", "retry_policy": {"base_seconds": 3600, "max_attempts": 5}}`)
	s.once()
	const due = `select string_agg(item_id || case when next_attempt_at > clock_timestamp() then ' parked' else ' due' end, ', ' order by item_id) from tidemark.pending_row`
	s.want(due, "1 parked, 2 parked")
	s.want(`select tidemark.pending_retry('why', worker => 'w', source => 'births', item_id => '2')`, "1")
	s.want(due, "1 parked, 2 due")
	s.once()
	s.want(`select string_agg(item_id || ' ' || error_count, ', ' order by item_id) from tidemark.pending_row`, "1 1, 2 2")
	s.want(`select tidemark.pending_retry('why', worker => 'w', source => 'births')`, "2")
	s.want(due, "1 due, 2 due")
	s.want(`select tidemark.pending_retry('why', worker => 'w', source => 'births', item_id => '2')`, "1")
	s.want(`select tidemark.pending_discard('why', worker => 'w', source => 'births', item_id => '1')`, "1")
	s.want(due, "2 due")
	s.want(`select concat_ws(' ', source, item_id, error_code, error_detail, attempts, event_snapshot ->> 'id', resolved_at is null) from tidemark.dead_letter`,
		"births 1 given_up its last error was P0001: never 1 1 t")
	s.want(`select kind || ' ' || subject from tidemark.finding where kind = 'cursor_dlq'`, "cursor_dlq w/births/0")
	s.want(`select dead_lettered from tidemark.worker_cursor where worker = 'w'`, "1")
}
