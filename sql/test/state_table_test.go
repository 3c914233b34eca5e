package test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// table is the subject of a table under one safety. born is what a writer says of a row's time, drawn from these.
func table(safety string, passed func(*item, place) bool, born ...string) subject {
	numbered := safety == "sequence" || safety == "capture"
	return subject{
		name:   "table: " + safety,
		worker: "w",
		passed: passed,
		timed:  !numbered,
		setUp:  func(s session) { setUpTable(s, safety) },
		stops: []edit{
			stop("source_next", "if s.safety in ('sequence', 'capture') then"),
			stop("oldest_transaction", "perform pg_stat_clear_snapshot();"),
			stop("source_horizon", "if seen.hidden then"),
			stop("source_pass", "if not careful then"),
			stop("source_pass", "-- The last look at the gates comes after the last effect."),
			stop("source_settle", "select x.* into c from tidemark.worker_cursor x"),
			stop("source_numbers", "if isempty(c.fenced) then"),
		},
		write: func(w *writer, key string) (*item, error) {
			i, bornAt := &item{}, born[w.m.draw(len(born), "born")]
			if bornAt == "clock_timestamp()" && safety != "declared" { // else rows of a key come in the order of their times
				i.key = key
			}
			var at *time.Time
			err := w.conn.QueryRow(context.Background(), fmt.Sprintf(`
insert into births (born_at, key) values (%s, nullif($1, '')) returning id::text, id, case when isfinite(born_at) then born_at end`,
				bornAt), key).Scan(&i.id, &i.number, &at)
			if at != nil {
				i.at = *at
			}
			if err == nil && safety == "capture" {
				err = w.conn.QueryRow(context.Background(), `select currval('tidemark.outbox_seq_seq')`).Scan(&i.number)
			}
			return i, err
		},
		reset: `
delete from taken; delete from births; delete from tidemark.source_count; delete from tidemark.source_ledger;
update tidemark.heartbeat set lease_owner = null, lease_until = null where executor_id = 'w/births/0';
with s as materialized (select (case when is_called then last_value else 0 end)::text as last from ` +
			map[bool]string{true: "tidemark.outbox_seq_seq", false: "births_id_seq"}[safety == "capture"] + `)
update tidemark.worker_cursor c
set watermark_id = ` + map[bool]string{true: "s.last", false: "null"}[numbered] + `, holes = '{}', fenced = '{}', fence = '{}',
    watermark_ts = ` + map[bool]string{true: "null", false: "clock_timestamp()"}[numbered] + `
from s where worker = 'w';
update tidemark.worker_cursor set decided_through = tidemark.source_place(watermark_ts, watermark_id) where worker = 'w';
select tidemark.source_rewind('w', 'births', 'a test')`,
		workers:  tableSteps,
		operator: func(m *machine) []step { return tableOperator(m, safety) },
		message:  safety == "clock",
		drain: func(m *machine) {
			w := m.workers[0]
			m.do(endLease(m, "w"))
			for n := 0; n < 3 || n < 40 && len(m.model.due()) > 0; n++ {
				m.do(w.step(1, "drains", func() {
					w.must(`select set_config('machine.stop', '', false)`)
					w.must(`select tidemark.worker_run('w')`)
				}))
			}
			if numbered && len(m.model.was.holes) > 0 {
				m.fail("every transaction has ended, and there are holes: %v", m.model.was.holes)
			}
		},
	}
}

func setUpTable(s session, safety string) {
	s.t.Helper()
	s.exec(`
create table births (id bigint generated always as identity primary key, born_at timestamptz default clock_timestamp(), key text);
create index births_at on births (born_at, id);
create table taken (at bigint generated always as identity primary key, id text not null);
create function take(rows births[]) returns void language plpgsql as $$
begin
    insert into taken (id) select rows[i].id::text from generate_subscripts(rows, 1) i order by i;
end $$`)
	changes := ""
	switch safety {
	case "clock":
		s.exec(`alter table births alter born_at set not null`)
	case "declared":
		changes = `{"sweep_window": "1 minute", "sweep_every": "1 microsecond"}`
	case "capture":
		s.exec(`
select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true), tidemark.domain_set('births'), tidemark.type_set('births', 'made');
select tidemark.inbound_route_set('births', '{"source_schema": "public", "source_table": "births", "sql_event": "insert", "domain": "births",
    "type": "made", "enabled": true, "dry_run": false}', 'test');
select tidemark.capture_attach('public.births', 'test')`)
	}
	w := tailing{s}
	w.source("births", fmt.Sprintf(`{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "margin": "1 microsecond", "safety": %q}`, safety), changes)
	w.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
	w.add("w")
	for range 4 { // past the phases of a beginning
		w.drain()
	}
}

func tableSteps(w *worker) []step {
	list := []step{
		w.step(5, "runs a pass", func() { w.may(); w.tail(false) }),
		w.step(4, "opens a pass", func() { w.must("begin"); w.inside = true; w.may(); w.tail(false) }),
	}
	if w.epoch == 0 {
		return append(list, w.step(6, "claims", w.claim))
	}
	return append(list,
		w.step(1, "claims", w.claim), w.step(1, "releases", w.release),
		w.step(12, "runs a pass under its lease", func() { w.may(); w.tail(true) }))
}

// tail is a pass, from psql or under a lease.
func (w *worker) tail(leased bool) {
	limit, epoch, inside := w.limit(), w.epoch, w.inside
	var due []*item
	if w.m.subject.name == "table: sequence" || w.m.subject.name == "table: capture" { // else what is young has to wait
		due = w.m.model.due()
	}
	then := func(got answer) {
		if leased && w.refused(epoch, got.err) {
			if inside {
				w.must("rollback")
			}
			return
		}
		if got.err != nil {
			w.m.fail("%s: %v", w.name, got.err)
		}
		var r run
		if err := json.Unmarshal([]byte(got.row[0].(string)), &r); err != nil {
			w.m.fail("%s: %v", w.name, err)
		}
		switch {
		case r.Status == "ran":
			w.alone()
			if r.Rows < limit && !inside {
				taken := w.m.look().taken
				w.shows(due, func(i *item) bool { return slices.Contains(taken, i.id) })
			}
		case r.Status != "busy" && r.Status != "waiting":
			w.m.fail("%s: %s: %s", w.name, r.Status, r.Detail)
		}
	}
	if leased {
		w.start(then, `select tidemark.source_pass('w', 'births', 0, $1, $2)::text`, epoch, limit)
	} else {
		w.start(then, `select tidemark.worker_run('w', page => $1)::text`, limit)
	}
}

func tableOperator(m *machine, safety string) []step {
	var list []step
	if !m.passing() {
		list = append(list, endLease(m, "w"))
	}
	if safety == "declared" {
		return list // what sweeps have found lies behind every place
	}
	rewind := func(ts, id any, again func(*item) bool) {
		m.operator.start(func(got answer) {
			if got.err != nil {
				if code(got.err) != "TM005" { // the cursor is further back by now
					m.fail("rewind: %v", got.err)
				}
				return
			}
			m.model.rewound = true
			// The application forgets what it is to get again.
			var ids []string
			for _, i := range m.model.items {
				if again(i) {
					ids = append(ids, i.id)
				}
			}
			m.must(`delete from taken where id = any ($1)`, ids)
		}, `select tidemark.source_rewind('w', 'births', 'a test', $1, $2)`, ts, id)
	}
	return append(list, step{"", "the operator rewinds", 1, func() {
		by := int64(m.draw(6, "by"))
		if safety == "clock" {
			to := m.model.was.at
			for _, i := range m.model.items {
				if by > 0 && i.at.Before(to) {
					to, by = i.at, by-1
				}
			}
			if by > 0 {
				return
			}
			rewind(to, nil, func(i *item) bool { return !i.at.Before(to) })
			return
		}
		to := m.model.was.number - by
		rewind(nil, fmt.Sprint(to), func(i *item) bool { return i.number > to })
	}})
}

var (
	sequenceTable = table("sequence", behind, "clock_timestamp()")
	captureTable  = table("capture", behind, "clock_timestamp()")
	clockTable    = table("clock", before, "clock_timestamp()", "now()")
	declaredTable = table("declared", never, "clock_timestamp()", "clock_timestamp()", "now()", "clock_timestamp() - interval '1 second'",
		"clock_timestamp() - interval '40 seconds'", "null", "'infinity'", "'-infinity'")
)
