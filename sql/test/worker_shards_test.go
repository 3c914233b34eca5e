package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// shards changes the number of shards of worker default.
func (s session) shards(n int) {
	s.t.Helper()
	s.exec(`select tidemark.worker_set('default', jsonb_build_object('shards', $1::int), 'test')`, n)
}

// passShard makes a pass of one shard.
func (s session) passShard(shard, limit int) {
	s.t.Helper()
	s.exec(`select tidemark.route_worker_run('default', $1, $2)`, limit, shard)
}

// drainShards makes passes of all shards until none reads anything.
func (s session) drainShards(n int) {
	s.t.Helper()
	for more := true; more; {
		more = false
		for shard := range n {
			more = one[int](s, `select (tidemark.route_worker_run('default', 5000, $1) ->> 'events')::int`, shard) > 0 || more
		}
	}
}

// problems are the failed checks of tidemark.verify.
const problems = `select "check" || ': ' || detail from tidemark.verify() where status = 'fail'`

// AD6. An event belongs to exactly one shard, at any number of shards, and all events of a key to the same one.
func TestShardOf(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "shards")
	s.wantRows(`select n || ' shards, shard ' || s || ' of ' || coalesce(k, '-') from unnest('{1,2,3,7,256}'::int[]) n, generate_series(1, 500) q,
		unnest(array[null, 'k' || q % 50, 'ü' || q]) k, lateral (select tidemark.shard_of(k, q, n) as s) p
		where s is null or s not between 0 and n - 1 or k is not null and s <> tidemark.shard_of(k, q + 1, n)`)
	// Each of four shards gets its part, of events with a key and without.
	s.wantRows(`select keyed::text || ' ' || s from (
			select false as keyed, tidemark.shard_of(null, q, 4) as s from generate_series(1, 1000) q
			union all select true, tidemark.shard_of('key ' || q, q, 4) from generate_series(1, 1000) q) p
		group by 1, keyed, s having count(*) between 180 and 320 order by 1`,
		"false 0", "false 1", "false 2", "false 3", "true 0", "true 1", "true 2", "true 3")
}

// AD6. Writers in open transactions, passes of single shards, and a number of shards that changes between them, while the
// shards are at different places: each committed event reaches the target once, in the order of its key, and has evidence once.
func TestShardsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	writers := []session{open(t, db, "a"), open(t, db, "b"), open(t, db, "c")}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		shards := 1
		w.shards(shards)
		w.exec(`truncate received`)
		first := n
		want := map[string][]int{} // by key, what was committed, in the order of its numbers
		held := map[int]map[string][]int{}
		settle := func(i int, keep bool) {
			if keep {
				writers[i].commit()
				for key, ns := range held[i] {
					want[key] = append(want[key], ns...)
				}
			} else {
				writers[i].rollback()
			}
			delete(held, i)
		}
		for range rapid.IntRange(10, 40).Draw(rt, "steps") {
			i := rapid.IntRange(0, len(writers)-1).Draw(rt, "writer")
			switch rapid.SampledFrom([]string{"emit", "emit", "emit", "end", "pass", "pass", "pass", "shards"}).Draw(rt, "step") {
			case "emit":
				if held[i] == nil {
					writers[i].begin()
					held[i] = map[string][]int{}
				}
				// A key of this writer alone: nothing else gives the order of a key across transactions.
				key := rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(rt, "key")
				if key != "" {
					key += writers[i].name
				}
				n++
				writers[i].emitKey(n, key)
				held[i][key] = append(held[i][key], n)
			case "end":
				if held[i] != nil {
					settle(i, rapid.IntRange(0, 3).Draw(rt, "keep") > 0)
				}
			case "pass":
				w.passShard(rapid.IntRange(0, shards-1).Draw(rt, "shard"), rapid.SampledFrom([]int{1, 2, 5000}).Draw(rt, "limit"))
			case "shards":
				shards = rapid.IntRange(1, 5).Draw(rt, "shards")
				w.shards(shards)
			}
		}
		for i := range writers {
			if held[i] != nil {
				settle(i, true)
			}
		}
		w.drainShards(shards)
		w.drainShards(shards) // the fences have closed

		got := map[string][]int{}
		for _, row := range rows(w, `select coalesce(key, '') || ' ' || n from received order by at`) {
			key, number, _ := strings.Cut(row, " ")
			var n int
			_, _ = fmt.Sscan(number, &n)
			got[key] = append(got[key], n)
		}
		for key := range want {
			if key == "" {
				slices.Sort(want[key])
				slices.Sort(got[key])
			}
			if !slices.Equal(want[key], got[key]) {
				rt.Fatalf("key %q: got %v, want %v", key, got[key], want[key])
			}
		}
		w.wantRows(`select o.seq || ': ' || count(a.seq) from tidemark.outbox o left join tidemark.route_attempt a on a.seq = o.seq
			where (o.payload ->> 'n')::int > ` + fmt.Sprint(first) + ` group by o.seq having count(a.seq) <> 1`)
		w.wantRows(problems)
		w.wantRows(`select c.shard || ' ' || (c.holes + c.fenced)::text from tidemark.worker_cursor c where c.worker = 'default' and not isempty(c.holes + c.fenced)`)
	})
}

func rows(s session, sql string) []string {
	s.t.Helper()
	return one[[]string](s, `select coalesce(array_agg(x), '{}') from (`+sql+`) x (x)`)
}

// What one shard has decided stays as it is when others begin behind it, also for a route that is newer. A rewind by an operator
// is for such routes.
func TestShardsChangedBesideANewRoute(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.shards(2)
	for n := range 20 {
		w.emit(n + 1)
	}
	w.passShard(0, 5000)
	w.exec(`select tidemark.route_set('later', '{"domain": "test", "target_kind": "sql", "target_ref": "public.receive", "enabled": true}')`)
	w.shards(3)
	w.drainShards(3)
	const decided = `select r.route_code || ' ' || count(*) || ' ' || min(seq % 2) || max(seq % 2) from tidemark.route_attempt r group by r.route_code order by 1`
	w.wantRows(decided, "app 20 01", "later 10 11")
	w.exec(`select tidemark.worker_rewind('default', 0, 'the new route')`)
	w.passShard(1, 5000)
	w.refused("TM005", "worker default was rewound, and its shards are not at the same place: one is at 0, another at 20", `select tidemark.worker_set('default', '{"shards": 2}')`)
	w.exec(`select tidemark.worker_rewind('default', 0, 'from the beginning')`)
	w.shards(2)
	w.passShard(1, 5000)
	w.drainShards(2)
	w.shards(3)
	w.drainShards(3)
	w.wantRows(decided, "app 20 01", "later 20 01")
	w.wantRows(problems)
}

// The number of shards changes while no instance runs the worker: nothing under way can settle afterwards.
func TestShardsRefuse(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	w.shards(2)
	w.exec(`select tidemark.claim('default', 'one', '10 seconds', 'outbox', 1)`)
	w.refused("TM005", "cannot change while one runs it", `select tidemark.worker_set('default', '{"shards": 3}')`)
	w.refused("TM005", "tidemark worker pause default", `select tidemark.worker_set('default', '{"shards": 1}')`)
	epoch := one[int](w, `select lease_epoch::int from tidemark.heartbeat where executor_id = 'default/outbox/1'`)
	w.exec(`select tidemark.release('default', $1, 'outbox', 1)`, epoch)
	w.shards(1)
	w.wantRows(`select executor_id from tidemark.heartbeat where executor_id like 'default/%'`, "default/outbox/0")
	w.shards(2)
	// A statement of the shard that was there before has the epoch of nothing.
	for e := range epoch + 1 {
		w.refused("TM011", "is over", `select tidemark.beat('default', $1, '10 seconds', 1)`, e)
	}
	w.refused("TM005", "order of the whole log", `select tidemark.worker_set('default', '{"read_order": "strict"}')`)
	w.refused("TM005", "order of the whole log", `select tidemark.worker_set('strict', '{"read_order": "strict", "shards": 2}')`)
	w.exec(`select tidemark.handlers_register('program', '{test/tick}')`)
	w.refused("TM005", "belongs to a Go program", `select tidemark.worker_set('program', '{"shards": 2}')`)
	w.refused("23514", "shards_is_1_to_256", `select tidemark.worker_set('default', '{"shards": 300}')`)
	w.wantRows(`select concat_ws(' ', action, object, reason, before -> 'shards', after -> 'shards') from tidemark.audit where action = 'worker_shards' order by id`,
		"worker_shards worker default test 1 2", "worker_shards worker default test 2 1", "worker_shards worker default test 1 2")
	w.exec(`select tidemark.route_set('app', '{"enabled": false}')`)
	w.exec(`select tidemark.route_delete('app', 'test'), tidemark.worker_delete('default', 'test')`)
	w.wantRows(`select executor_id from tidemark.heartbeat where executor_id like 'default/%'`)
}

// An instance has at most its share, and gives up what is more when another one waits.
func TestSharesOfInstances(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.shards(5)
	claim := func(owner string) (got []string) {
		t.Helper()
		for shard := range 5 {
			if one[string](w, `select status from tidemark.claim('default', $1, '10 seconds', 'outbox', $2)`, owner, shard) == "claimed" {
				got = append(got, fmt.Sprint(shard))
			}
		}
		return got
	}
	gates := func() []string {
		return rows(w, `select h.executor_id || ' ' || g from tidemark.heartbeat h, lateral tidemark.log_gate('default', right(h.executor_id, 1)::int) g
			where h.executor_id like 'default/%' and g is not null order by 1`)
	}
	release := func(shard int) {
		t.Helper()
		w.exec(`select tidemark.release('default', lease_epoch, 'outbox', $1) from tidemark.heartbeat where executor_id = 'default/outbox/' || $1`, shard)
	}
	if got := claim("one"); len(got) != 5 {
		t.Fatalf("alone it has %v", got)
	}
	if got := gates(); len(got) > 0 {
		t.Errorf("alone it gives up %v", got)
	}
	if got := claim("two"); len(got) != 0 {
		t.Errorf("two took %v from one", got)
	}
	if got, want := gates(), []string{"default/outbox/3 its share of the shards", "default/outbox/4 its share of the shards"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// A worker that delivers hears it with its next read, one that sleeps with the poll. A beat would end what is under way.
	w.wantRows(`select coalesce(gate, '-') from tidemark.heartbeat h, tidemark.beat('default', h.lease_epoch, '10 seconds', 3) where h.executor_id = 'default/outbox/3'`, "-")
	w.wantRows(`select gate from tidemark.heartbeat h, tidemark.pass_read('default', h.lease_epoch, 1, null, null, '{}', '{}', shard => 3)
		where h.executor_id = 'default/outbox/3'`, "its share of the shards")
	w.wantRows(`select p.n || ' ' || p.why from tidemark.heartbeat h, tidemark.poll('one', '10 seconds', '{default}', '{outbox}', '{4}', array[h.lease_epoch]) p
		where h.executor_id = 'default/outbox/4'`, "1 closed")
	release(3)
	release(4)
	const waits = `select coalesce(string_agg(p.n || ' ' || p.why, ', '), '-') from tidemark.poll('%s', '10 seconds', '{default,default}', '{outbox,outbox}', '{3,4}', '{null,null}') p`
	w.wantRows(fmt.Sprintf(waits, "one"), "-")
	w.wantRows(fmt.Sprintf(waits, "two"), "1 free, 2 free")
	if got := claim("one"); !slices.Equal(got, []string{"0", "1", "2"}) { // its own, again
		t.Errorf("one has %v", got)
	}
	if got := claim("two"); !slices.Equal(got, []string{"3", "4"}) {
		t.Errorf("two has %v", got)
	}
	// A third waits by its poll alone.
	w.wantRows(fmt.Sprintf(waits, "three"), "-")
	if got := gates(); !slices.Equal(got, []string{"default/outbox/2 its share of the shards"}) {
		t.Errorf("with three, given up: %v", got)
	}
	// When an instance is gone, its leases and what it waits for end, and the others take all.
	w.exec(`update tidemark.heartbeat set lease_until = clock_timestamp() where lease_owner = 'two'`)
	w.exec(`update tidemark.worker_instance set seen_until = clock_timestamp() - case owner when 'two' then interval '2 hours' else '0' end where owner <> 'one'`)
	if got := claim("one"); len(got) != 5 {
		t.Errorf("left alone it has %v", got)
	}
	w.wantRows(`select owner from tidemark.worker_instance order by 1`, "one", "three")
}

// A replay sends events of all shards, up to where all have come; retention keeps what the last of them has not read.
func TestShardsReplayAndRetention(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.shards(3)
	for n := range 12 {
		w.emitKey(n+1, fmt.Sprint("k", n%4))
	}
	w.passShard(0, 5000)
	w.passShard(1, 5000)
	w.passShard(2, 5)
	w.wantRows(`select seq || ' ' || kind || ' ' || subject from tidemark.log_needed()`, "6 cursor default")
	w.wantRows(`select last_seq::text from tidemark.route_replay('app', 'again', from_seq => 1) limit 1`, "5")
	w.drainShards(3)
	w.exec(`select tidemark.route_replay('app', 'again', from_seq => 1)`)
	w.drainShards(3)
	w.drainShards(3)
	w.wantRows(`select count(*) || ' times: ' || c from (select count(*) as c from received group by n) x group by c order by 1`, "5 times: 3", "7 times: 2")
	w.wantRows(`select state || ' ' || sent from tidemark.replay_summary order by id`, "finished 5", "finished 12")
	w.wantRows(problems)
	w.wantRows(`select distinct w.behind || ' ' || w.pending from tidemark.worker_health w`, "0 0")
	w.wantRows(`select tidemark.worker_run('default') #>> '{runs,2,shard}'`, "2")
}

// A number that showed up late: the shard that it belongs to has read it, and the other one still looks out for it.
func TestShardsLateEvent(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, late := live(t, db), open(t, db, "late")
	w.shards(2)
	late.begin()
	late.emit(1)
	late.emit(2)
	w.emit(3)
	w.emit(4)
	w.passShard(0, 5000)
	w.passShard(1, 5000)
	late.commit()
	w.passShard(1, 5000)
	const open = `select shard || ' ' || watermark_id || ' ' || (holes + fenced)::text from tidemark.worker_cursor where worker = 'default' order by 1`
	// What another shard decides is no hole.
	w.wantRows(open, "0 4 {[1,3)}", "1 4 {}")
	w.shards(1)
	w.wantRows(open, "0 4 {[2,3)}")
	w.drainShards(1)
	w.wantRows(open, "0 4 {}")
	w.wantRows(`select n || ' ' || count(*) from received group by n order by 1`, "1 1", "2 1", "3 1", "4 1")
}

// AD6. A gate that closes while a later shard delivers takes back what an earlier one has delivered in the same call.
func TestShardsObeyGatesTogether(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, runs := live(t, db), open(t, db, "runs")
	w.shards(2)
	w.exec(`create table got (n int); create function public.waits(e jsonb) returns void language plpgsql as $$ begin
		insert into got values ((e #>> '{payload,n}')::int);
		if e #>> '{payload,n}' = '2' then perform pg_advisory_xact_lock(7); end if; end $$;
		select tidemark.route_set('app', '{"target_kind": "sql", "target_ref": "public.waits"}')`)
	w.exec(`select tidemark.emit('test', 'tick', jsonb_build_object('n', s + 1), key => k) from generate_series(0, 1) s,
		lateral (select 'k' || n as k from generate_series(1, 99) n where tidemark.shard_of('k' || n, 1, 2) = s limit 1) x`)
	const run = `select concat_ws(' ', r ->> 'status', r ->> 'gate') from tidemark.worker_run('default') r`
	w.exec(`select pg_advisory_lock(7)`)
	ended := make(chan string, 1)
	go func() {
		var got string
		if err := runs.conn.QueryRow(context.Background(), run).Scan(&got); err != nil {
			got = err.Error()
		}
		ended <- got
	}()
	w.waitsFor(runs)
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.exec(`select pg_advisory_unlock(7)`)
	equal(t, "pass", <-ended, "closed routes.enabled")
	w.wantRows(`select n::text from got`)
	w.wantRows(`select outcome::text from tidemark.route_attempt`)
	w.exec(`select tidemark.gate_set('routes.enabled', true)`)
	w.wantRows(run, "ran")
	w.wantRows(`select n::text from got order by 1`, "1", "2")
	w.wantRows(problems)
}

// AD6. A shard that is gone has no findings left.
func TestShardsThatAreGoneHaveNoFindings(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.shards(3)
	w.exec(`select tidemark.finding_open('worker_failing', tidemark.executor_id('default', 'outbox', n), 'warning', 'x') from generate_series(0, 2) n`)
	w.shards(1)
	w.wantRows(`select subject from tidemark.finding where closed_at is null`, "default/outbox/0")
}
