package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// lines collects the output of a process.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// numbers are the payloads' n of the replayed events, in order. A kill may tear the last line.
func (l *lines) numbers(t *testing.T) (all []int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.SplitSeq(l.all.Bytes(), []byte("\n")) {
		var event struct {
			Payload struct{ N int } `json:"payload"`
		}
		if json.Unmarshal(line, &event) == nil && event.Payload.N > 0 {
			all = append(all, event.Payload.N)
		}
	}
	return all
}

// RO10: two daemons are killed in the middle of a replay, and the next one continues. Inside the database each event is
// delivered once; outside at least once, and twice only if no settle had recorded it. First deliveries are in order.
func TestReplayOutlivesItsDaemon(t *testing.T) {
	t.Parallel()
	const events = 600
	db := tidemarktest.NewDB(t)
	if _, err := db.Pool.Exec(t.Context(), `create table got (at bigint generated always as identity, n int);
create function public.take(e jsonb) returns void language sql as $$ insert into got (n) values ((e -> 'payload' ->> 'n')::int) $$`); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`select tidemark.type_set('test', 'tick')::text`,
		`select count(tidemark.emit('test', 'tick', jsonb_build_object('n', n)))::text from generate_series(1, 600) n`,
		`select tidemark.stage_set('live', 'a test')::text`,
		`select tidemark.gate_set('routes.enabled', true)::text || tidemark.gate_set('worker.default.enabled', true)::text`,
		`select tidemark.worker_run()::text`,
		`select tidemark.route_set('inside', '{"domain": "test", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false}')::text`,
		`select tidemark.route_set('outside', '{"domain": "test", "target_kind": "stdout", "target_ref": "-", "options": {"format": "json"}, "concurrency": 1, "enabled": true, "dry_run": false}')::text`,
		// At most 5 s of it are staged at a time.
		`select count(*)::text from unnest(array['inside', 'outside']) r cross join lateral tidemark.route_replay(r, 'a drill', from_seq => 1, rate => 60)`,
	} {
		answer(t, db, sql)
	}
	sent := func(route string) int {
		n, err := strconv.Atoi(answer(t, db, `select sent::text from tidemark.replay_summary where route_code = $1`, route))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const recorded = `select coalesce(max((o.payload ->> 'n')::int), 0)::text from tidemark.outbox o
join tidemark.route_attempt a on a.seq = o.seq and a.route_code = 'outside' and a.outcome = 'sent'`
	var outs []*lines
	var from []int // what was on record before each daemon
	for _, until := range []int{60, 250, events} {
		n, err := strconv.Atoi(answer(t, db, recorded))
		if err != nil {
			t.Fatal(err)
		}
		from = append(from, n)
		out := &lines{}
		outs = append(outs, out)
		d := startDaemonTo(t, db.URL, "d", out)
		eventually(t, "replays to get to "+strconv.Itoa(until), func() bool { return sent("outside") >= until && sent("inside") >= until })
		kill(t, d)
		answer(t, db, `update tidemark.heartbeat set lease_until = now() where executor_id = 'default/outbox/0' returning ''`)
	}
	if got := answer(t, db, `select string_agg(concat_ws(' ', route_code, state, events, staged, sent, failed), '; ' order by route_code) from tidemark.replay_summary`); got != "inside finished 600 600 600 0; outside finished 600 600 600 0" {
		t.Error(got)
	}
	if got := answer(t, db, `select concat_ws(' ', count(*), count(distinct n), count(*) filter (where back)) from (select n, n < lag(n) over (order by at) as back from got) g`); got != "600 600 0" {
		t.Errorf("inside: rows, different ones, out of order: %s", got)
	}
	last := 0
	for i, out := range outs {
		for _, n := range out.numbers(t) {
			switch {
			case n <= from[i]:
				t.Errorf("daemon %d sent %d again, which was on record", i, n)
			case n > last+1:
				t.Errorf("daemon %d sent %d behind %d", i, n, last)
			}
			last = max(last, n)
		}
	}
	if last != events {
		t.Errorf("sent up to %d", last)
	}
}
