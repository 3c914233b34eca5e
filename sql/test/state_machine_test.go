package test

// The rule of the cursor and of the lease as a state machine: three writers and two workers on real sessions take random
// steps, one at a time, and a model (state_model_test.go) says after each what a worker may and must have shown. A
// worker's statement can stop at points inside the functions that it calls (stops), while the others go on.

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

var steps = flag.Int64("steps", 3500, "steps of each state machine; -rapid.seed repeats a run whose seed was printed")

// A subject is what the workers of a machine read.
type subject struct {
	name   string
	setUp  func(s session)
	stops  []edit // where a worker's statement can stop
	passed func(*item, place) bool
	// write stores one item, by a session that may be in a transaction.
	write   func(w *writer, key string) (*item, error)
	worker  string
	strict  bool // the cursor passes no open number
	dry     bool // a page leaves nothing to deliver
	timed   bool // the cursor goes by time, and by number where that is the same
	message bool // a message of several transactions is among the steps
	// reset puts the cursor behind everything that there is.
	reset   string
	workers func(w *worker) []step
	// operator's steps beside the end of leases
	operator func(m *machine) []step
	drain    func(m *machine)
}

// An edit replaces a part of a function, which must be there once.
type edit struct{ function, old, new string }

// stop is an edit: a pass can stop before the text.
func stop(function, before string) edit {
	return edit{function, before, fmt.Sprintf("perform public.machine_stop(%s); %s", literal(function+": "+before), before)}
}

func (e edit) point() string { return e.function + ": " + e.old }

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// A step is taken as often as its weight says.
type step struct {
	who    string // "": it belongs to no session
	what   string
	weight int
	do     func()
}

// A machine is the sessions over one database, used for one case after the other.
type machine struct {
	t        *testing.T
	db       *tidemarktest.DB
	subject  subject
	stops    []edit
	eye      *pgx.Conn // looks, and is never in a transaction
	messages messenger
	operator *actor
	writers  [3]*writer
	workers  [2]*worker
	model    model
	prepared []prepared
	draw     func(n int, label string) int
	trace    []string
	gids     int
	started  int
	taken    atomic.Int64   // steps
	mood     map[string]int // of a case: how much more often a step is taken than its weight says, by what it is
}

// machineStop makes the session wait where it was told to stop.
const machineStop = `
create function public.machine_stop(point text) returns void language plpgsql as $$
begin
    if current_setting('machine.stop', true) = point then
        perform set_config('machine.stop', '', false);
        perform pg_advisory_lock_shared(current_setting('machine.actor')::bigint);
        perform pg_advisory_unlock_shared(current_setting('machine.actor')::bigint);
    end if;
end $$;
create table key_row (key text primary key, n int not null default 0);
insert into key_row select 'k' || i from generate_series(0, 9) i;`

func newMachine(t *testing.T, server *devpg.Server, subject subject, edits ...edit) *machine {
	t.Helper()
	db := tidemarktest.NewDBAt(t, server.URL("postgres"))
	s := open(t, db, "setup")
	s.exec(machineStop)
	subject.setUp(s)
	for _, e := range append(edits, subject.stops...) {
		s.rewrite(e.function, e.old, e.new)
	}
	m := &machine{t: t, db: db, subject: subject, stops: subject.stops, eye: db.Connect(t)}
	m.operator = &actor{m: m, name: "operator"}
	for n := range m.writers {
		m.writers[n] = &writer{actor: actor{m: m, name: fmt.Sprintf("writer %d", n)}}
	}
	for n := range m.workers {
		m.workers[n] = &worker{actor: actor{m: m, name: fmt.Sprintf("worker %d", n), number: n + 1}}
	}
	ctx, cancel := context.WithCancel(context.Background())
	for _, a := range m.actors() {
		a.ctx = ctx
		a.connect()
		t.Cleanup(a.end)
	}
	t.Cleanup(cancel) // before the sessions end: cleanups run last to first
	for _, w := range m.workers {
		m.brake(w, true)
	}
	return m
}

func (m *machine) actors() []*actor {
	list := []*actor{m.operator}
	for _, w := range m.writers {
		list = append(list, &w.actor)
	}
	for _, w := range m.workers {
		list = append(list, &w.actor)
	}
	return list
}

// A broken is what the model found.
type broken string

// even draws 0 to 1023. rapid's own integers are small as a rule.
var even = rapid.Custom(func(t *rapid.T) int {
	n := 0
	for range 10 {
		n *= 2
		if rapid.Bool().Draw(t, "bit") {
			n++
		}
	}
	return n
})

func (m *machine) fail(format string, args ...any) { panic(broken(fmt.Sprintf(format, args...))) }

// play is one case. It returns what was found to be wrong, or "".
func (m *machine) play(rt *rapid.T) (found string) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case broken:
			found = string(r)
		default:
			panic(r)
		}
	}()
	m.reset()
	m.draw = func(n int, label string) int { return even.Draw(rt, label) * n / 1024 }
	m.mood = map[string]int{}
	for range 2 { // rapid makes cases of about 30 steps
		rt.Repeat(map[string]func(*rapid.T){"step": func(*rapid.T) { m.step() }})
	}
	m.drain()
	return ""
}

func (m *machine) step() {
	var list []step
	for _, w := range m.writers {
		list = append(list, w.steps()...)
	}
	for _, w := range m.workers {
		list = append(list, w.steps()...)
	}
	list = append(list, m.resolutions()...)
	if m.subject.message {
		list = append(list, m.messages.step(m))
	}
	if m.operator.flying == nil {
		list = append(list, m.subject.operator(m)...)
	}
	total := 0
	for n := range list {
		list[n].weight *= m.fancy(list[n].what)
		total += list[n].weight
	}
	n := m.draw(total, "step")
	for _, s := range list {
		if n -= s.weight; n < 0 {
			m.do(s)
			return
		}
	}
}

// fancy is drawn once a case for each kind of step: a case in which no transaction wants to end, or no worker wants to
// read, gets to where even chances hardly come.
func (m *machine) fancy(what string) int {
	if m.mood[what] == 0 {
		m.mood[what] = []int{1, 3, 9}[m.draw(3, "mood")]
	}
	return m.mood[what]
}

// do takes a step and has the model judge what came of it.
func (m *machine) do(s step) {
	m.taken.Add(1)
	m.trace = append(m.trace, strings.TrimSpace(s.who+" "+s.what))
	s.do()
	m.await()
	if found := m.model.judge(m.look()); found != "" {
		m.fail("%s", found)
	}
}

func (m *machine) look() (p place) {
	var number, holes string
	var at *time.Time
	if err := m.eye.QueryRow(context.Background(), `
select coalesce(c.watermark_id, ''), c.watermark_ts, (c.holes + c.fenced)::text, h.lease_epoch,
       coalesce((case when h.lease_until > clock_timestamp() then h.lease_owner end), ''), array(select id from taken order by at)
from tidemark.worker_cursor c
join tidemark.heartbeat h on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
where c.worker = $1`, m.subject.worker).Scan(&number, &at, &holes, &p.epoch, &p.owner, &p.taken); err != nil {
		m.t.Fatal(err)
	}
	p.number, _ = strconv.ParseInt(number, 10, 64)
	p.holes = spans(holes)
	if at != nil && m.subject.timed {
		p.at = *at
	}
	return p
}

// brake holds up the worker at the next point where it is told to stop, or lets it go.
func (m *machine) brake(w *worker, hold bool) {
	if hold {
		m.must(`select pg_advisory_lock($1)`, w.number)
	} else {
		m.must(`select pg_advisory_unlock($1)`, w.number)
	}
}

// must is a statement of the eye, which waits for nothing.
func (m *machine) must(sql string, args ...any) {
	if _, err := m.eye.Exec(context.Background(), sql, args...); err != nil {
		m.t.Fatalf("%s: %v", sql, err)
	}
}

// reset ends all that is under way, and begins a case with a cursor that is at the end.
func (m *machine) reset() {
	for _, a := range m.actors() {
		if a.flying != nil || a.conn.IsClosed() {
			a.die()
		}
		a.must("rollback")
	}
	for _, p := range m.prepared {
		m.must("rollback prepared '" + p.gid + "'")
	}
	m.prepared, m.trace = nil, nil
	m.messages.end(m)
	for _, w := range m.writers {
		w.forget()
	}
	for _, w := range m.workers {
		w.forget()
	}
	m.must(m.subject.reset)
	m.model = model{items: map[string]*item{}, passed: m.subject.passed, strict: m.subject.strict, was: m.look()}
}

// drain ends every transaction and every pass; then all that is committed has been handled.
func (m *machine) drain() {
	if m.messages.answer != nil {
		m.do(m.messages.step(m))
	}
	for len(m.prepared) > 0 {
		m.do(m.resolutions()[0])
	}
	for n := 0; n < len(m.writers); n++ {
		if w := m.writers[n]; w.inside && w.flying == nil { // its end may let another go on
			m.do(w.step(1, "rolls back", w.end(undone, func() { w.must("rollback") })))
			n = -1
		}
	}
	for m.passing() {
		for _, w := range m.workers {
			if w.inside || w.flying != nil {
				m.do(w.steps()[0])
			}
		}
	}
	m.subject.drain(m)
	if due := m.model.due(); len(due) > 0 {
		m.fail("number %d is committed, everybody has ended, and it was not handled", due[0].number)
	}
}

func TestStateMachine(t *testing.T) {
	t.Parallel()
	server, want := machineServer(t), *steps
	if testing.Short() {
		want /= 10
	}
	for _, s := range []subject{theLog, theStrictLog, theDryLog, sequenceTable, captureTable, clockTable, declaredTable} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, server, s)
			for m.taken.Load() < want && !t.Failed() {
				rapid.Check(t, func(rt *rapid.T) {
					if m.taken.Load() >= want {
						return
					}
					if found := m.play(rt); found != "" {
						for n, what := range m.trace {
							rt.Logf("%3d %s", n, what)
						}
						rt.Fatal(found)
					}
				})
			}
			t.Logf("%d steps", m.taken.Load())
		})
	}
}

// machineServer is one for machines alone: the numbers of transactions are theirs, and there are enough slots to prepare.
func machineServer(t *testing.T) *devpg.Server {
	t.Helper()
	return testserver.New(t, devpg.Options{Settings: map[string]string{"max_prepared_transactions": "50", "autovacuum": "off"}})
}
