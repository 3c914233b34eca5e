package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// RO7: what a worker does with batches is what tidemark.decide says of each event by itself. Random routes of
// two workers, random events, random batches, some events late; TIDEMARK_SEED=n repeats a run.
func TestBatchAgreesWithDecide(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if text := os.Getenv("TIDEMARK_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TIDEMARK_SEED: %v", err)
		}
	}
	t.Logf("TIDEMARK_SEED=%d", seed)
	for _, stage := range []string{"dry_run", "live"} {
		for round := range uint64(4) {
			t.Run(fmt.Sprintf("%s %d", stage, round), func(t *testing.T) {
				t.Parallel()
				x := newBatchTest(t, stage == "live", []float64{0.2, 0}[round%2], rand.New(rand.NewPCG(seed, round)))
				for range 5 {
					x.emit(80)
					x.run()
				}
				x.late.commit()
				x.run()
				x.compare()
			})
		}
	}
}

type batchTest struct {
	session
	random *rand.Rand
	late   session // emits in a transaction that stays open for a while
	live   bool
	rivals float64 // the chance of a route to be exclusive; 0: most batches go the short way (tidemark.decide_few)
}

func newBatchTest(t *testing.T, live bool, rivals float64, random *rand.Rand) *batchTest {
	t.Helper()
	db := tidemarktest.NewDB(t)
	x := &batchTest{open(t, db, "worker"), random, open(t, db, "late"), live, rivals}
	x.exec(`create schema app; create function app.a(event jsonb) returns void language sql as ''; create function app.b(event jsonb) returns void language sql as '';
		select tidemark.worker_set('other', '{"domains": ["shop"]}');
		select tidemark.gate_set(gate, true) from unnest(array['routes.enabled', 'worker.default.enabled', 'worker.other.enabled']) gate;
		select tidemark.type_set(domain, type) from unnest(array['shop', 'bank']) domain, unnest(array['order', 'order.paid', 'order.late']) type`)
	x.allowAnyTarget()
	if live {
		x.exec(`select tidemark.stage_set('live', 'test')`)
	}
	for i := range 6 + random.IntN(30) { // above 16 they are narrowed down before they are asked
		x.exec(`insert into tidemark.outbound_route (route_code, worker, domain, type, stream, key_filter, payload_filter, target_kind, target_ref,
				exclusive, enabled, dry_run, fail_closed, retry_policy)
			select 'r' || $1::int, r.worker, r.domain, r.type, r.stream, r.key_filter, r.payload_filter, r.target_kind, r.target_ref, r.exclusive, r.enabled, r.dry_run, r.fail_closed, r.retry_policy
			from jsonb_populate_record(null::tidemark.outbound_route, $2::text::jsonb) r`, i, x.route())
	}
	x.late.begin()
	return x
}

func (x *batchTest) chance(p float64) bool { return x.random.Float64() < p }

// pick picks one; nil with the chance of the number.
func (x *batchTest) pick(none float64, of ...any) any {
	if x.chance(none) {
		return nil
	}
	return of[x.random.IntN(len(of))]
}

func (x *batchTest) route() string {
	filter := x.pick(0.6, map[string]any{"a": 1}, map[string]any{"b": []any{1}}, map[string]any{"a": 1.0, "b": []any{}}, map[string]any{})
	policy := x.pick(0.85, []any{}, map[string]any{"max_attempts": 0}, map[string]any{"max_attempts": 3})
	return x.json(map[string]any{
		"worker": x.pick(0, "default", "default", "other"), "domain": x.pick(0, "*", "shop", "shop", "bank"),
		"type": x.pick(0, "*", "order.*", "order.*", "order.paid", "order", "invoice.*"), "stream": x.pick(0.75, "alert", "bulk"),
		"key_filter": x.pick(0.75, "*", "k1", "k1*"), "payload_filter": filter, "retry_policy": policy,
		"target_kind": x.pick(0, "sql", "sql", "sql", "webhook", "river", "pigeon"), "target_ref": x.pick(0, "app.a", "app.a", "app.b"),
		"exclusive": x.chance(x.rivals), "enabled": x.chance(0.8), "dry_run": !x.live || x.chance(0.3), "fail_closed": x.chance(0.7),
	})
}

func (x *batchTest) json(value any) string {
	x.t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		x.t.Fatal(err)
	}
	return string(text)
}

// emit emits n events by ones and twos and tens: some late, some rolled back.
func (x *batchTest) emit(n int) {
	x.t.Helper()
	for n > 0 {
		events := make([]map[string]any, 1+x.random.IntN(10))
		for i := range events {
			events[i] = map[string]any{
				"domain": x.pick(0, "shop", "bank"), "type": x.pick(0, "order", "order.paid", "order.late"),
				"stream": x.pick(0.5, "alert", "bulk", "x"), "key": x.pick(0.4, "k1", "k12", "x"),
				"payload": x.pick(0, map[string]any{}, map[string]any{"a": 1}, map[string]any{"a": 1, "b": []any{1, 2}}, map[string]any{"a": 2, "b": 1}),
			}
		}
		n -= len(events)
		by := x.session
		end := "commit"
		switch {
		case x.chance(0.15):
			by, end = x.late, ""
		case x.chance(0.1):
			end = "rollback"
		}
		if end != "" {
			by.begin()
		}
		by.exec(`select tidemark.emit_many($1::text::jsonb)`, x.json(events))
		if end != "" {
			by.exec(end)
		}
	}
	if x.chance(0.4) {
		x.late.commit()
		x.late.begin()
	}
}

// run lets each worker come to the end of the log.
func (x *batchTest) run() {
	x.t.Helper()
	for _, worker := range []string{"default", "other"} {
		for events := 1; events > 0; {
			limit := 1 + x.random.IntN(60)
			var status string
			err := x.conn.QueryRow(x.t.Context(), `with pass as materialized (select tidemark.route_worker_run($1, $2) as s)
				select s ->> 'status', (s ->> 'events')::int from pass`, worker, limit).Scan(&status, &events)
			if err != nil || status != "ran" {
				x.t.Fatalf("%s: %s, %v", worker, status, err)
			}
		}
	}
}

// Of what is to be delivered, the targets inside the database are done.
const (
	byOne = `
select w.worker || ' ' || o.seq || ' ' || coalesce(r.route_code, '-') || ' ' ||
	case when d.outcome <> 'pending' then concat_ws(' ', d.outcome, d.reason) when r.target_kind = 'sql' then 'sent' when r.target_kind = 'river' then 'failed 42P01' else 'pending' end
from tidemark.worker w
join tidemark.outbox o on w.domains is null or o.domain = any (w.domains)
cross join lateral tidemark.decide(w.worker, o, array(select r from tidemark.outbound_route r), row(true, true, tidemark.armed(), tidemark.closed_domains())::tidemark.gates) d
left join tidemark.outbound_route r on r.id = d.route_id`

	byBatch = `select concat_ws(' ', worker, seq, coalesce(route_code, '-'), outcome, reason) from tidemark.route_attempt`
)

func (x *batchTest) compare() {
	x.t.Helper()
	if n := one[int](x.session, `select count(*) from (`+byOne+`) d`); n < 400 {
		x.t.Errorf("%d decisions: too few to prove anything", n)
	}
	for what, query := range map[string]string{
		"decided for the event alone, not in its batch": byOne + ` except all ` + byBatch,
		"decided in a batch, not for the event alone":   byBatch + ` except all ` + byOne,
	} {
		for _, line := range column[string](x.session, query+` order by 1 limit 3`) {
			x.t.Errorf("%s: %s", what, line)
		}
	}
	if x.t.Failed() {
		for _, route := range column[string](x.session, `select to_jsonb(r)::text from tidemark.outbound_route r order by id`) {
			x.t.Log(route)
		}
	}
	x.wantRows(`select concat_ws(' ', idempotency_key, attempt_no) from tidemark.route_attempt group by idempotency_key, attempt_no having count(*) > 1`)
	x.wantRows(`select "check" || ': ' || detail from tidemark.verify() where status = 'fail' and "check" like 'W%'`)
}

// A filter that is set or removed while a pass has read its batch and not yet decided: the pass decides by the
// routes as they were when it read, whole; never by a mixture that existed at no moment.
func TestFilterSetInMidPass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		want          []int
	}{
		"set":     {"null", `{"n": 1}`, []int{1, 2}},
		"removed": {`{"n": 1}`, "null", []int{1}},
		"same":    {`{"n": 1}`, `{"n": 1.0}`, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, operator := live(t, db), open(t, db, "operator")
			const set = `select tidemark.route_set('app', jsonb_build_object('payload_filter', $1::text::jsonb))`
			w.exec(set, c.before)
			w.rewrite("route_worker_run", "evidence := tidemark.decide_batch(", "perform pg_advisory_xact_lock_shared(1);\n    evidence := tidemark.decide_batch(")
			w.emit(1)
			w.emit(2)
			operator.exec(`select pg_advisory_lock(1)`)
			passed := make(chan summary)
			go func() { passed <- w.pass() }()
			operator.waitsFor(w)
			operator.exec(set, c.after)
			operator.exec(`select pg_advisory_unlock(1)`)
			<-passed
			w.wantReceived(c.want...)
		})
	}
}
