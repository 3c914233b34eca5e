package test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// A worker of the machine, by the daemon's calls (claim, read, settle, release) or by those from psql.
type worker struct {
	actor
	inside  bool // a pass is open in a transaction
	stopped bool // at a point inside a statement
	epoch   int64
	settles int64
	pages   []page // read, and not settled
	last    *page  // the one settled last
}

type page struct {
	batch, evidence string
	epoch, no       int64
}

func (w *worker) forget() {
	w.inside, w.stopped, w.epoch, w.settles, w.pages, w.last = false, false, 0, 0, nil, nil
}

func (w *worker) step(weight int, what string, do func()) step {
	return step{w.name, what, weight, do}
}

// steps are what the worker can do now. The first one brings it nearer to its end.
func (w *worker) steps() []step {
	if w.flying != nil {
		return []step{
			w.step(3, "goes on", func() {
				w.m.brake(w, false)
				w.m.await()
				w.m.brake(w, true)
			}),
			w.step(1, "dies", func() { w.die(); w.forget() }),
		}
	}
	if w.inside {
		return []step{
			w.step(6, "commits its pass", func() { w.must("commit"); w.inside = false }),
			w.step(2, "rolls its pass back", func() { w.must("rollback"); w.inside = false }),
			w.step(1, "dies", func() { w.die(); w.forget() }),
		}
	}
	return w.m.subject.workers(w)
}

// may draws where the next statement is to stop: nowhere more often than not.
func (w *worker) may() {
	n := w.m.draw(max(1, 2*len(w.m.stops)), "stop")
	point := ""
	if n < len(w.m.stops) {
		point = w.m.stops[n].point()
		w.m.trace = append(w.m.trace, "    to stop in "+point)
	}
	w.must(`select set_config('machine.stop', $1, false)`, point)
}

// shows holds a read that was not full against what was due when it began.
func (w *worker) shows(due []*item, got func(*item) bool) {
	for _, i := range due {
		if i.taken == 0 && !got(i) {
			w.m.fail("%s read less than it may, and not number %d, which was committed before", w.name, i.number)
		}
	}
}

// refused tells an epoch that is over from everything else that can go wrong.
func (w *worker) refused(epoch int64, err error) bool {
	if err == nil {
		return false
	}
	if code(err) != "TM011" {
		w.m.fail("%s: %v", w.name, err)
	}
	if epoch == w.m.look().epoch {
		w.m.fail("%s was refused, and epoch %d is not over", w.name, epoch)
	}
	w.forget()
	return true
}

const limits = 4 // events of a page at most: 1 to 4, else 100

func (w *worker) limit() int {
	n := 1 + w.m.draw(2*limits, "limit")
	if n > limits {
		return 100
	}
	return n
}

const afterTheRead = "b.seqs := int8multirange(int8range(mark + 1, b.watermark + 1));"

var theLog = subject{
	name: "log",
	setUp: func(s session) {
		s.exec(`
select tidemark.type_set('test', 'tick');
create table taken (at bigint generated always as identity primary key, id text not null);
create function receive(event jsonb) returns void language sql as $$ insert into taken (id) values (event ->> 'event_id') $$;
select tidemark.stage_set('live', 'test');
select tidemark.route_set('app', '{"domain": "test", "target_kind": "sql", "target_ref": "public.receive", "enabled": true, "dry_run": false}');
select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true);`)
	},
	stops: []edit{
		stop("read_outbox", theFenceCheck),
		stop("read_outbox", theRead),
		stop("read_outbox", afterTheRead),
		stop("read_outbox", theFence),
		stop("settle", "select w.id, c.settles, c.watermark_id::bigint as watermark,"),
		stop("settle_refusal", "select c.* into at_ from tidemark.worker_cursor c"),
		stop("settle", "-- What many came to alike is a range; what has its own story is a row."),
	},
	passed: behind,
	write: func(w *writer, key string) (*item, error) {
		i := &item{key: key}
		err := w.conn.QueryRow(context.Background(), `
with e as materialized (select tidemark.emit_strict('test', 'tick', '{}', key => nullif($1, '')) as id)
select id::text, currval('tidemark.outbox_seq_seq') from e`, key).Scan(&i.id, &i.number)
		return i, err
	},
	worker: "default",
	reset: `
delete from taken;
update tidemark.heartbeat set lease_owner = null, lease_until = null where executor_id like 'default%';
with s as materialized (select (case when is_called then last_value else 0 end)::text as last from tidemark.outbox_seq_seq)
update tidemark.worker_cursor set watermark_id = s.last, decided_through = s.last, rewound_to = null, holes = '{}', fenced = '{}', fence = '{}'
from s where worker = 'default'`,
	workers:  logSteps,
	operator: logOperator,
	drain: func(m *machine) {
		w := m.workers[0]
		m.do(endLease(m, "default"))
		for range 3 {
			m.do(w.step(1, "drains", func() {
				w.must(`select set_config('machine.stop', '', false)`)
				w.must(`select tidemark.route_worker_run('default', 5000)`)
			}))
		}
		if len(m.model.was.holes) > 0 {
			m.fail("every transaction has ended, and there are holes: %v", m.model.was.holes)
		}
	},
}

func logSteps(w *worker) []step {
	list := []step{
		w.step(4, "runs a pass", func() { w.may(); w.run(w.limit()) }),
		w.step(3, "opens a pass", func() { w.must("begin"); w.inside = true; w.may(); w.run(w.limit()) }),
	}
	if w.epoch == 0 {
		return append(list, w.step(6, "claims", w.claim))
	}
	list = append(list, w.step(1, "claims", w.claim))
	if len(w.pages) < 2 {
		list = append(list, w.step(12, "reads", w.read))
	}
	if len(w.pages) == 0 && w.m.subject.dry {
		list = append(list, w.step(12, "reads and settles", w.readSettled))
	}
	if len(w.pages) > 0 {
		list = append(list, w.step(12, "settles", func() { w.settle(w.pages[0]) }))
	} else {
		list = append(list, w.step(2, "releases", w.release))
	}
	if w.last != nil {
		list = append(list, w.step(2, "settles once more what it has settled", func() { w.settle(*w.last) }))
	}
	return list
}

// claim takes the lease, if it may.
func (w *worker) claim() {
	w.start(func(got answer) {
		switch {
		case got.err != nil:
			w.m.fail("%s claims: %v", w.name, got.err)
		case got.row[0] == "claimed":
			w.alone()
			w.forget()
			w.epoch, w.settles = got.row[1].(int64), got.row[2].(int64)
			if was := w.m.model.was.epoch; w.epoch <= was {
				w.m.fail("%s claimed epoch %d after %d", w.name, w.epoch, was)
			}
		}
	}, `select status, epoch, settles from tidemark.claim($1, $2, '1 hour', (select source from tidemark.worker_cursor where worker = $1))`,
		w.m.subject.worker, w.name)
}

// alone holds what was claimed against the lease as it was before.
func (w *worker) alone() {
	if owner := w.m.model.was.owner; owner != "" && owner != w.name {
		w.m.fail("%s has the cursor, and %s its lease", w.name, owner)
	}
}

// release waits for a pass that another has opened from psql.
func (w *worker) release() {
	w.start(func(got answer) {
		if got.err != nil || got.row[0].(bool) && w.epoch < w.m.model.was.epoch {
			w.m.fail("%s released epoch %d: %v %v", w.name, w.epoch, got.row, got.err)
		}
		w.forget()
	}, `select tidemark.release($1, $2, (select source from tidemark.worker_cursor where worker = $1))`, w.m.subject.worker, w.epoch)
}

// run is a pass from psql.
func (w *worker) run(limit int) {
	due := w.m.model.due()
	inside := w.inside
	w.start(func(got answer) {
		var s summary
		if got.err != nil {
			w.m.fail("%s: %v", w.name, got.err)
		}
		if err := json.Unmarshal([]byte(got.row[0].(string)), &s); err != nil {
			w.m.fail("%s: %v", w.name, err)
		}
		if s.Status == "ran" {
			w.alone()
		}
		if s.Status == "ran" && s.Events < limit && !inside && !w.m.subject.strict {
			taken := w.m.look().taken
			w.shows(due, func(i *item) bool { return slices.Contains(taken, i.id) })
		}
	}, `select tidemark.route_worker_run('default', $1)::text`, limit)
}

// read is the daemon's, also of the page after one that is not settled yet.
func (w *worker) read() {
	limit, after := w.limit(), any(nil)
	if len(w.pages) > 0 {
		after = w.pages[len(w.pages)-1].batch
	}
	epoch := w.epoch
	due := w.m.model.due()
	w.may()
	w.start(func(got answer) {
		if w.refused(epoch, got.err) || got.row[0] != nil && got.row[0].(string) == "" {
			return
		}
		shown, _ := got.row[3].(string)
		read := spans(shown)
		if got.row[2].(int32) < int32(limit) && len(w.pages) == 0 && !w.m.subject.strict {
			w.shows(due, func(i *item) bool { return !behind(i, place{number: i.number, holes: read}) })
		}
		for _, i := range w.m.model.items {
			if i.state != committed && !behind(i, place{number: i.number, holes: read}) {
				w.m.fail("%s read number %d, which is not committed", w.name, i.number)
			}
		}
		w.settles++
		w.pages = append(w.pages, page{got.row[0].(string), got.row[1].(string), epoch, w.settles})
	}, `select batch, evidence, events, (select range_agg(e.seqs)::text from unnest(evidence::tidemark.evidence[]) e)
from tidemark.pass_read('default', $1, $2, $3::text::tidemark.batch, null, '{}', '{}') where batch is not null`, w.epoch, limit, after)
}

// readSettled is the daemon's read of a page that leaves nothing to deliver.
func (w *worker) readSettled() {
	limit, epoch, due := w.limit(), w.epoch, w.m.model.due()
	w.may()
	w.start(func(got answer) {
		if w.refused(epoch, got.err) {
			return
		}
		events, _ := got.row[0].(int32)
		switch settled, _ := got.row[1].(bool); {
		case settled && epoch < w.m.model.was.epoch: // as it was before this step
			w.m.fail("%s settled under epoch %d, and %d is the lease's", w.name, epoch, w.m.model.was.epoch)
		case settled:
			w.settles++
		case events > 0:
			w.m.fail("%s read %d events and settled nothing", w.name, events)
		}
		if events < int32(limit) {
			taken := w.m.look().taken
			w.shows(due, func(i *item) bool { return slices.Contains(taken, i.id) })
		}
	}, `select events, settled from tidemark.pass_read('default', $1, $2, null, null, '{}', '{}', settle_no => $3) where batch is not null`,
		w.epoch, limit, w.settles+1)
}

func (w *worker) settle(p page) {
	epoch := p.epoch
	w.may()
	w.start(func(got answer) {
		if w.refused(epoch, got.err) {
			return
		}
		if epoch < w.m.model.was.epoch { // as it was before this step
			w.m.fail("%s settled under epoch %d, and %d is the lease's", w.name, epoch, w.m.model.was.epoch)
		}
		switch again := w.last != nil && p.no == w.last.no; {
		case again && got.row[0] != "settled already", !again && got.row[0] != "ran":
			w.m.fail("%s settled page %d: %v", w.name, p.no, got.row[0])
		case !again:
			w.last, w.pages = &p, w.pages[1:]
		}
	}, `select tidemark.pass_settle('default', $1, $2::text::tidemark.batch, $3::text::tidemark.evidence[], '{}', $4) ->> 'status'`,
		p.epoch, p.batch, p.evidence, p.no)
}

// endLease is the lease's end, which comes when nothing is in the middle of a pass: its row is locked otherwise.
func endLease(m *machine, worker string) step {
	return step{"", "the lease ends", 2, func() {
		m.operator.must(`update tidemark.heartbeat set lease_until = clock_timestamp() where split_part(executor_id, '/', 1) = $1 and lease_until is not null`, worker)
	}}
}

func (m *machine) passing() bool {
	for _, w := range m.workers {
		if w.inside || w.flying != nil {
			return true
		}
	}
	return false
}

func logOperator(m *machine) []step {
	var list []step
	if !m.passing() {
		list = append(list, endLease(m, "default"))
	}
	// It waits for a pass that is under way.
	return append(list, step{"", "the operator rewinds", 1, func() {
		to := max(0, m.model.was.number-int64(m.draw(6, "by")))
		m.operator.start(func(got answer) {
			if got.err != nil && code(got.err) != "TM005" {
				m.fail("rewind: %v", got.err)
			}
			m.trace = append(m.trace, fmt.Sprintf("    rewound to %d", to))
			m.model.rewound = m.model.rewound || got.err == nil
		}, `select tidemark.worker_rewind('default', $1, 'a test')`, to)
	}})
}

// theDryLog is the log with a route in dry run: what was handled is what was decided.
var theDryLog = func() subject {
	s := theLog
	s.name, s.dry = "log in dry run", true
	s.setUp = func(s session) {
		theLog.setUp(s)
		s.exec(`
update tidemark.outbound_route set dry_run = true;
create function decided() returns trigger language plpgsql security definer as $$
begin
    insert into public.taken (id) select o.event_id from tidemark.outbox o where new.seqs @> o.seq order by o.seq;
    return null;
end $$;
create trigger decided after insert on tidemark.decision for each row execute function decided()`)
	}
	return s
}()

// theStrictLog is the log in the order of its numbers.
var theStrictLog = func() subject {
	s := theLog
	s.name, s.strict = "log in strict order", true
	s.setUp = func(s session) {
		theLog.setUp(s)
		s.exec(`select tidemark.worker_set('default', '{"read_order": "strict"}')`)
	}
	return s
}()
