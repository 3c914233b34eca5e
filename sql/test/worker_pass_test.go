package test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The daemon's side of a pass: a lease that lasts, and settling in parts. What the loop makes
// of it is tested in internal/worker.

func TestLeaseIsOneOwners(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	claim := func(owner string) string {
		t.Helper()
		return one[string](w, `select status || ' ' || coalesce(epoch, 0) from tidemark.claim('default', $1, '1 minute')`, owner)
	}
	equal(t, "first", claim("a"), "claimed 1")
	equal(t, "another", claim("b"), "busy 0")
	equal(t, "from psql", w.pass().Status, "busy")
	equal(t, "the same owner: a new epoch", claim("a"), "claimed 2")
	w.refused("TM011", "epoch 1 is over", `select tidemark.beat('default', 1, '1 minute')`)
	equal(t, "release by an old epoch", one[bool](w, `select tidemark.release('default', 1)`), false)
	equal(t, "release", one[bool](w, `select tidemark.release('default', 2)`), true)
	w.refused("TM011", "epoch 2 is over", `select tidemark.beat('default', 2, '1 minute')`) // one that was late
	w.refused("TM011", "epoch 2 is over", `select tidemark.lease_hold('default', 2)`)
	equal(t, "another, then", claim("b"), "claimed 3")
	w.exec(`update tidemark.heartbeat set lease_until = clock_timestamp()`)
	equal(t, "an end that has passed", claim("a"), "claimed 4")
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.exec(`select tidemark.release('default', 4)`)
	equal(t, "a closed gate takes nothing", claim("a"), "closed 4")
	w.wantRows(`select coalesce(lease_owner, 'nobody') from tidemark.heartbeat`, "nobody")
	w.exec(`select tidemark.beat('default', 4, '1 minute')`) // late, and the claim between has hidden the release
	w.exec(`select tidemark.gate_set('routes.enabled', true)`)
	equal(t, "no lease begins with a beat", claim("b"), "claimed 5")
	w.refused("TM005", "lease is 00:00:00.1", `select tidemark.claim('default', 'a', '100 ms')`)
	w.refused("TM004", `there is no worker "x"`, `select tidemark.claim('x', 'a', '1 minute')`)
}

func TestBeat(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	epoch := one[int64](w, `select epoch from tidemark.claim('default', 'a', '1 minute')`)
	beat := `select coalesce(gate, 'open') || ' ' || live_routes::text from tidemark.beat('default', 1, '2 minutes')`
	equal(t, "epoch", epoch, int64(1))
	w.wantRows(beat, "open {1}")
	w.wantRows(`select (lease_until > clock_timestamp() + interval '110 seconds')::text from tidemark.heartbeat`, "true")
	w.exec(`update tidemark.outbound_route set enabled = false`)
	w.wantRows(beat, "open {}")
	w.exec(`select tidemark.worker_pause('default', true, 'a look')`)
	w.wantRows(beat, "paused {}")
	equal(t, "again", one[bool](w, `select tidemark.worker_pause('default', true, 'a look')`), false)
	w.exec(`select tidemark.worker_pause('default', false, 'looked')`)
	w.wantRows(beat, "open {}")
	w.wantRows(`select action || ' ' || object || ' ' || reason from tidemark.audit where action in ('pause', 'resume') order by id`,
		"pause worker default a look", "resume worker default looked")
	w.refused("TM004", `there is no worker "x"`, `select tidemark.worker_pause('x', true, 'y')`)
}

// A pass with nothing to do costs little on a server with PostgreSQL's default settings.
func TestEmptyPassIsQuick(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.wantRows(`select name from pg_settings where name in ('jit', 'jit_above_cost') and setting <> boot_val`)
	w.emit(1)
	w.pass()
	quickest := time.Hour
	for range 20 { // the least of them: a busy machine makes any of them slow
		began := time.Now()
		equal(t, "pass", w.pass().Status, "ran")
		quickest = min(quickest, time.Since(began))
	}
	if quickest >= 50*time.Millisecond {
		t.Errorf("the quickest of 20 empty passes took %v", quickest)
	}
}

// settleRead settles what pass_read read, with results.
const settleRead = `select coalesce(tidemark.pass_settle('default', 1, r.batch::tidemark.batch, r.evidence::tidemark.evidence[], $1::tidemark.result[], 1)::text, '')
	from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') r where r.batch is not null`

// A batch that ends behind the watermark is not recorded, and moves nothing.
func TestWatermarkRegression(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}'`)
	w.emit(1)
	w.emit(2)
	w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
	w.exec(`create temp table held as select * from tidemark.pass_read('default', 1, 1, null, null, '{}', '{}') where batch is not null`)
	w.exec(settleRead, `{"(1,t,sent,,,\"{[1,3)}\",)"}`)
	w.exec(`select tidemark.pass_settle('default', 1, batch::tidemark.batch, evidence::tidemark.evidence[], '{}', 2) from held`)
	w.wantRows(`select watermark_id from tidemark.worker_cursor`, "2")
	w.wantRows(`select kind || ' ' || severity from tidemark.finding`, "cursor_watermark_regression high")
}

// A watermark that was moved ahead by hand passes over events: the worker is held until an operator accepts a place.
func TestWatermarkEdited(t *testing.T) {
	t.Parallel()
	const findings = `select kind || ' ' || subject from tidemark.finding where closed_at is null`
	const edit = `update tidemark.worker_cursor set watermark_id = '2'`
	for name, c := range map[string]struct {
		mend string
		want []int
	}{
		"taken back": {`update tidemark.worker_cursor set watermark_id = '1'`, []int{1, 2, 3}},
		"rewound":    {`select tidemark.worker_rewind('default', 1, 'a mistake')`, []int{1, 2, 3}},
		"accepted":   {`select tidemark.worker_rewind('default', 2, 'event 2 is not wanted')`, []int{1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := live(t, tidemarktest.NewDB(t))
			w.emit(1)
			w.pass()
			w.emit(2)
			w.emit(3)
			w.exec(edit)
			for range 2 {
				got := w.pass()
				if got.Status != "held" || !strings.Contains(got.Detail, "the watermark is 2, and was left at 1") {
					t.Errorf("%+v, want it held", got)
				}
			}
			w.wantReceived(1)
			w.wantRows(findings, "cursor_watermark_regression default")
			w.wantRows(`select last_status || ' ' || coalesce(lease_owner, 'free') from tidemark.heartbeat where executor_id = 'default/outbox/0'`, "held free")
			w.exec(c.mend)
			equal(t, "pass", w.pass().Status, "ran")
			w.wantReceived(c.want...)
			w.wantRows(findings)
		})
	}
	t.Run("under a lease", func(t *testing.T) {
		t.Parallel()
		w := live(t, tidemarktest.NewDB(t))
		w.emit(1)
		w.pass()
		w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
		const look = `select why from tidemark.poll($1, '1 minute', '{default}', '{outbox}', '{0}', array[$2::bigint])`
		equal(t, "epoch", one[int64](w, `select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'`), int64(2))
		equal(t, "asleep", len(column[string](w, look, "a", 2)), 0)
		w.exec(edit)
		equal(t, "look", one[string](w, look, "a", 2), "edited")
		w.refused("TM012", "the watermark is 2", `select tidemark.pass_read('default', 2, 100, null, null, '{}', '{}')`)
		w.exec(`select tidemark.release('default', 2)`)
		equal(t, "claim", one[string](w, `select status from tidemark.claim('default', 'a', '1 minute')`), "held")
		equal(t, "waiting", len(column[string](w, look, "a", nil)), 0)
		w.exec(`select tidemark.worker_rewind('default', 1, 'a mistake')`)
		equal(t, "free", one[string](w, look, "a", nil), "free")
	})
}

// A gate that closes before what goes inside the database is delivered leaves it pending, and
// the next pass begins with it.
func TestGateClosesBeforeSettle(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.emit(1)
	w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
	w.exec(`create temp table held as select * from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') where batch is not null`)
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.exec(`select tidemark.pass_settle('default', 1, batch::tidemark.batch, evidence::tidemark.evidence[], '{}', 1) from held`)
	w.wantReceived()
	w.wantRows(`select seq || ' ' || outcome || ' ' || reason from tidemark.route_attempt`, "1 pending gate_closed")
	w.exec(`select tidemark.gate_set('routes.enabled', true), tidemark.release('default', 1)`)
	w.emit(2)
	w.pass()
	w.wantReceived(1, 2)
	w.wantRows(`select seq || ' ' || attempt_no || ' ' || outcome from tidemark.route_attempt order by seq, attempt_no`, "1 1 pending", "1 2 sent", "2 1 sent")
}

// A gate that closes while the settle waits for a lock, after the effects inside the database, takes them back.
func TestGateClosesWhileASettleWaits(t *testing.T) {
	t.Parallel()
	const page = `create temp table held as select * from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') where batch is not null`
	t.Run("inside", func(t *testing.T) {
		t.Parallel()
		db := tidemarktest.NewDB(t)
		w, holder, operator := live(t, db), open(t, db, "holder"), open(t, db, "operator")
		w.exec(`select tidemark.route_set('hook', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "enabled": true, "dry_run": false}')`)
		w.emit(1)
		w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
		w.exec(page)
		holder.begin()
		holder.exec(`select from tidemark.outbound_route where route_code = 'hook' for update`)
		settled := later[string](w, `select tidemark.pass_settle('default', 1, batch::tidemark.batch, evidence::tidemark.evidence[], '{"(2,t,pending,,,\"{[1,2)}\",0)"}', 1) ->> 'status' from held`)
		operator.waitsFor(w)
		operator.exec(`select tidemark.gate_set('routes.enabled', false)`)
		holder.commit()
		got, err := settled()
		if err != nil || got != "ran" {
			t.Error(got, err)
		}
		w.wantReceived()
		w.wantRows(`select concat_ws(' ', route_code, outcome, reason) from tidemark.route_attempt order by 1`, "app pending gate_closed", "hook pending")
	})
	t.Run("of handlers", func(t *testing.T) {
		t.Parallel()
		db := tidemarktest.NewDB(t)
		w, holder, operator := live(t, db), open(t, db, "holder"), open(t, db, "operator")
		w.exec(`update tidemark.outbound_route set dry_run = true`)
		w.emit(1)
		w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
		w.exec(page)
		holder.begin()
		holder.exec(`select from tidemark.heartbeat for update`)
		settled := later[string](w, `select tidemark.settle_handled('default', 1, batch::tidemark.batch, evidence::tidemark.evidence[], '{}', 1, 0, '{}')::text from held`)
		operator.waitsFor(w)
		operator.exec(`select tidemark.gate_set('routes.enabled', false)`)
		holder.commit()
		if got, err := settled(); code(err) != "TM009" {
			t.Error(got, err)
		}
		w.wantRows(`select watermark_id from tidemark.worker_cursor`, "0")
	})
}

// The gate of its domain closes between the read and what goes inside: the same, and then it is put aside.
func TestDomainGateClosesBeforeSettle(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.emit(1)
	w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
	w.exec(`create temp table held as select * from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') where batch is not null`)
	w.exec(`select tidemark.gate_set('domain.test.enabled', false)`)
	w.wantRows(`select closed_domains::text from tidemark.beat('default', 1, '1 minute')`, "{test}")
	w.exec(`select tidemark.pass_settle('default', 1, batch::tidemark.batch, evidence::tidemark.evidence[], '{}', 1) from held`)
	w.wantReceived()
	w.wantRows(`select seq || ' ' || outcome || ' ' || reason from tidemark.route_attempt`, "1 pending gate_closed")
	w.emit(2)
	w.exec(`truncate held; insert into held select * from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') where batch is not null`)
	w.wantRows(`select closed::text from held`, "{test}")
	w.wantRows(`select concat_ws(' ', item, held) from tidemark.waiting`, "1 t")
	w.exec(`select tidemark.gate_set('domain.test.enabled', true)`) // what was decided stays: it comes with the next pass
	w.exec(`select tidemark.pass_settle('default', 1, batch::tidemark.batch, evidence::tidemark.evidence[], '{}', 2) from held`)
	w.wantRows(`select concat_ws(' ', item, held) from tidemark.waiting order by item`, "1 t", "2 t")
	w.exec(`select tidemark.release('default', 1)`)
	w.pass()
	w.wantReceived(1, 2)
}

// It closes while a target inside the database is at work: all that the pass did is taken back.
func TestDomainGateClosesInMidPass(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, other := live(t, db), open(t, db, "operator")
	w.exec(`create function slow(event jsonb) returns void language sql as $$ select pg_advisory_xact_lock_shared(4711) $$;
		select tidemark.route_set('slow', '{"domain": "test", "target_kind": "sql", "target_ref": "public.slow", "enabled": true, "dry_run": false}')`)
	w.emit(1)
	other.exec(`select pg_advisory_lock(4711)`)
	ran := later[string](w, `select concat_ws(' ', r ->> 'status', r ->> 'gate') from tidemark.route_worker_run() r`)
	other.waitsFor(w)
	other.exec(`select tidemark.gate_set('domain.test.enabled', false)`)
	other.exec(`select pg_advisory_unlock(4711)`)
	got, err := ran()
	if err != nil || got != "closed domain.test.enabled" {
		t.Error(got, err)
	}
	w.wantReceived()
	w.pass()
	w.pass()
	w.wantReceived()
	w.exec(`select tidemark.gate_set('domain.test.enabled', true)`)
	w.pass()
	w.wantReceived(1)
}

// A settle is on its way, held back by the network. The owner repeats it on another connection and goes on; then
// the first one arrives, under the same epoch. It does nothing, and above all it delivers nothing.
func TestLateSettle(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.emit(1)
	w.exec(`select tidemark.claim('default', 'a', '1 minute')`)
	settle := func(page string, no int) string {
		t.Helper()
		return one[string](w, `select tidemark.pass_settle('default', 1, batch::tidemark.batch, evidence::tidemark.evidence[], '{}', $1) ->> 'status' from `+page, no)
	}
	w.exec(`create temp table first as select * from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') where batch is not null`)
	equal(t, "the repeated one", settle("first", 1), "ran")
	equal(t, "the first one, at once", settle("first", 1), "settled already")
	w.emit(2)
	w.exec(`create temp table second as select * from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') where batch is not null`)
	equal(t, "the next page", settle("second", 2), "ran")
	equal(t, "the first one, late", settle("first", 1), "settled already")
	w.wantReceived(1, 2)
	w.exec(`select tidemark.release('default', 1)`)
	equal(t, "the next owner knows the number", one[int64](w, `select settles from tidemark.claim('default', 'b', '1 minute')`), int64(2))
}

func TestDeadLetterFindings(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`update tidemark.setting set value = '2' where key = 'dead_letter.overflow'`)
	w.exec(`update tidemark.outbound_route set target_ref = 'public.gone'`)
	w.emit(1)
	w.pass()
	w.wantRows(`select kind from tidemark.finding where closed_at is null`, "cursor_dlq")
	w.emit(2)
	w.emit(3)
	w.pass()
	w.wantRows(`select kind || ' ' || detail from tidemark.finding where closed_at is null order by kind`,
		"cursor_dlq 2 more dead-lettered; see tidemark.dead_letter", "dlq_overflow more than 2 dead letters are open")
	w.exec(`select tidemark.dead_letter_discard(id, 'test') from tidemark.dead_letter`)
	// They are over at once, and closed when the database is next watched or maintained.
	w.wantRows(`select kind from tidemark.finding where closed_at is null order by kind`, "cursor_dlq", "dlq_overflow")
	w.wantRows(`select name from tidemark.queue_health where kind = 'finding'`)
	w.wantRows(`select cause from tidemark.cause`)
	w.exec(`select tidemark.maintain()`)
	w.wantRows(`select kind from tidemark.finding where closed_at is null`)
}

func TestHandlersRegister(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	register := `select concat_ws(' ', route_code, pattern, enabled, dry_run) from tidemark.handlers_register('billing', $1)`
	w.exec(register, []string{"shop/order.*"})
	w.exec(`update tidemark.outbound_route set enabled = true where route_code = 'billing.shop.order.all'`)
	w.wantRows(`select concat_ws(' ', route_code, pattern, enabled, dry_run) from tidemark.handlers_register('billing', '{shop/order.*,*/*}')`,
		"billing.shop.order.all shop/order.* t t", "billing.all.all */* f t")
	w.refused("TM005", `"shop" is no pattern`, register, []string{"shop"})
	w.refused("TM005", `"a/b*" is no pattern`, register, []string{"a/b*"})
	w.refused("TM005", "worker default delivers by routes", `select tidemark.handlers_register('default', '{a/b}')`)
	w.refused("TM005", "worker billing belongs to a Go program", `select tidemark.route_worker_run('billing')`)
	w.refused("TM005", "a worker cannot report", `select tidemark.worker_finding('default', 'made_up', 'x', 'y')`)
}

// Which keys wait, for an owner that keeps their order: few are named, a crowd is one row, replays
// do not count.
func TestPendingKeys(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_set('second', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}')`)
	keys := func(most int) string {
		t.Helper()
		return one[string](w, `select coalesce(string_agg(concat_ws(' ', k.route_id, coalesce(k.key, 'crowd'), k.events), ', ' order by k.route_id, k.key), '')
			from tidemark.pending_keys('default', $1) k`, most)
	}
	pend := func(route, from, to int, key string) {
		t.Helper()
		w.exec(`insert into tidemark.pending (worker_id, route_id, seq, key)
			select w.id, $1, n, `+key+` from tidemark.worker w, generate_series($2::integer, $3) n where w.worker = 'default'`, route, from, to)
	}
	equal(t, "none", keys(2), "")
	pend(1, 1, 4, `(array['b', 'a'])[n % 2 + 1]`)
	pend(1, 5, 6, `null`)
	equal(t, "two", keys(2), "1 a 2, 1 b 2")
	equal(t, "more than one", keys(1), "1 crowd 4")
	pend(2, 1, 3, `'k' || n`)
	equal(t, "of another route, both", keys(5), "1 a 2, 1 b 2, 2 k1 1, 2 k2 1, 2 k3 1")
	equal(t, "of another route, the smaller one", keys(4), "1 a 2, 1 b 2, 2 crowd 3")
	pend(1, 10, 50, `'a'`)
	equal(t, "events without end of few keys", keys(4), "1 crowd 41, 2 k1 1, 2 k2 1, 2 k3 1")
	w.exec(`update tidemark.pending set replay = true where seq > 1`)
	equal(t, "replays", keys(4), "1 a 1, 2 k1 1")
	w.exec(`update tidemark.pending set key = null`)
	equal(t, "keyless", keys(4), "")
}

// Replays are outside the order of keys: live events go first, neither waits for the other, and a
// crowd of either leaves room for the other.
func TestReplaysBesideLiveEvents(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}', ordering = 'key'`)
	due := func(room int) string {
		t.Helper()
		return one[string](w, `select coalesce(string_agg(concat_ws(' ', d.seq, case when d.replay then 'replay' end), ', '), '')
			from unnest(tidemark.pending_due('default', (select id from tidemark.worker where worker = 'default'), '{1}', array[$1::integer], 0)) d`, room)
	}
	pend := func(from, to int, columns string) {
		t.Helper()
		w.exec(`insert into tidemark.pending (worker_id, route_id, seq, key, replay, next_attempt_at)
			select w.id, 1, n, `+columns+` from tidemark.worker w, generate_series($1::integer, $2) n where w.worker = 'default'`, from, to)
	}
	pend(1, 1, `'k', true, '-infinity'`)
	pend(2, 2, `'k', false, clock_timestamp()`)
	pend(3, 3, `'k', false, 'infinity'`)
	pend(4, 4, `'k', true, '-infinity'`)
	equal(t, "live first", due(100), "2, 3, 1 replay, 4 replay")
	equal(t, "little room", due(2), "2, 3")
	w.exec(`update tidemark.pending set next_attempt_at = 'infinity' where seq = 2`)
	equal(t, "a live event that waits", due(100), "1 replay, 4 replay")
	w.exec(`update tidemark.pending set next_attempt_at = 'infinity' where seq = 1`)
	w.exec(`select tidemark.release_keys((select id from tidemark.worker where worker = 'default'), '{1}', '{k}')`)
	equal(t, "the first live one is released", due(100), "2, 3, 4 replay")
	w.exec(`delete from tidemark.pending`)
	pend(1, 50, `null, true, '-infinity'`)
	pend(51, 100, `null, false, clock_timestamp()`)
	equal(t, "room for live events", strings.Count(due(20), ",")+1, 22)
	equal(t, "room for replays", strings.Count(due(20), "replay"), 2)
}

// What is due is looked for in ranges of one index, live deliveries and replays apart, in the order in which they are due.
func TestPendingDueIsAnIndexRange(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, replay) select w.id, 1, n, n % 2 = 0 from tidemark.worker w, generate_series(1, 10000) n where w.worker = 'default'`)
	w.exec(`analyze tidemark.pending; set enable_seqscan = off; set enable_bitmapscan = off`)
	for _, c := range []string{
		`not p.replay and p.next_attempt_at <= now() order by p.next_attempt_at`,
		`p.replay and p.next_attempt_at <= now() order by p.next_attempt_at`,
		`p.replay in (false, true) and p.next_attempt_at <= now()`,
		`p.replay in (false, true) and p.next_attempt_at <= now() and p.shard = 0`,
		`true order by p.replay, p.next_attempt_at`,
	} {
		plan := strings.Join(column[string](w, `explain (costs off) select p from tidemark.pending p where p.route_id = 1 and `+c+` limit 100`), "\n")
		cond := strings.Count(plan, "route_id = 1")
		if strings.Contains(c, "now()") {
			cond = strings.Count(plan, "(next_attempt_at <= now())")
		}
		if !strings.Contains(plan, "using pending_due") || strings.Contains(plan, "Sort") || strings.Contains(plan, "Filter") != strings.Contains(c, "shard") || cond != 1 {
			t.Errorf("%s\n%s", c, plan)
		}
	}
}
