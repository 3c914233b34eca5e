package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// RO11. What a worker is about to do is what the next pass then does.
func TestOutlook(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`
		select tidemark.type_set('other', 'tick');
		insert into tidemark.outbound_route (route_code, domain, type, target_kind, target_ref, enabled, dry_run, payload_filter)
		values ('off', 'test', '*', 'sql', 'app.receive', false, true, null),
		       ('dry', 'test', '*', 'sql', 'app.receive', true, true, '{"n": 2}')`)
	outlook := `select concat_ws(' ', coalesce(route_code, 'all'), becomes, events, waiting, first_seq, last_seq, complete)
		from tidemark.worker_outlook('default')`
	w.wantRows(outlook, "all 0 0 t")
	w.emitMany(3)
	w.exec(`select tidemark.emit_strict('other', 'tick')`)
	w.wantRows(outlook, "all 4 0 1 4 t", "app pending 3 0 1 3 t", "dry dry_run 1 0 2 2 t", "off disabled 3 0 1 3 t")
	w.wantRows(`select concat_ws(' ', route_code, events, complete) from tidemark.worker_outlook('default', 2)`, "2 f", "app 2 f", "dry 1 f", "off 2 f")
	w.exec(`update tidemark.worker set domains = '{other}' where worker = 'default'`)
	w.wantRows(outlook, "all 4 0 1 4 t")
	w.exec(`update tidemark.worker set domains = null`)

	// What a target outside the database is still to get waits whatever the cursor.
	w.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}' where route_code = 'app'`)
	w.pass()
	w.wantRows(outlook, "all 0 3 t", "app pending 0 3 t")
	w.wantRows(`select route_code || ' ' || outcome || ' ' || count(*) from tidemark.route_attempt where route_code is not null group by route_code, outcome order by 1`,
		"app pending 3", "dry dry_run 1", "off disabled 3")

	w.refused("TM004", `there is no worker "x"`, `select * from tidemark.worker_outlook('x')`)
	w.refused("TM005", "most is 0", `select * from tidemark.worker_outlook('default', 0)`)
	w.exec(`select tidemark.worker_set('tables', '{"source": "table", "handler": "emit", "handler_ref": "test/tick"}')`)
	w.wantRows(`select count(*)::text from tidemark.worker_outlook('tables')`, "0")
}

// Of shards at different places each event counts that its own shard has not read.
func TestOutlookOfShards(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.shards(4)
	for n := range 40 {
		w.emitKey(n+1, fmt.Sprint("k", n))
	}
	w.passShard(0, 5000)
	w.passShard(2, 20)
	const outlook = `select concat_ws(' ', coalesce(route_code, 'all'), events) from tidemark.worker_outlook('default')`
	before := one[int](w, `select count(*)::int from received`)
	w.wantRows(outlook, fmt.Sprint("all ", 40-before), fmt.Sprint("app ", 40-before))
	w.drainShards(4)
	w.wantRows(`select count(*)::text from received`, "40")
	w.wantRows(outlook, "all 0")
}

// An outlook ends where one shard is far behind the others, and has next to no events of its own.
func TestOutlookIsBounded(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.shards(2)
	for n := range 40 {
		w.emitKey(n+1, "k")
	}
	ahead := one[int](w, `select tidemark.shard_of('k', 1, 2)`)
	w.passShard(ahead, 5000)
	w.wantRows(`select count(*)::text from received`, "40")
	const outlook = `select concat_ws(' ', coalesce(route_code, 'all'), events, complete) from tidemark.worker_outlook`
	w.wantRows(outlook+`('default', 2)`, "all 0 f")
	w.wantRows(outlook+`('default', 20)`, "all 0 f") // 40 for each of two
	w.wantRows(outlook+`('default', 21)`, "all 0 t")
}

// What was committed below the watermark after the worker had passed is delivered by the next pass, and counts: of shards to its own.
func TestOutlookOfLateEvents(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 2} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, a, b := live(t, db), open(t, db, "a"), open(t, db, "b")
			w.shards(shards)
			for n, s := range []session{a, b} {
				s.begin()
				for m := range 3 {
					s.emitKey(10*n+m, fmt.Sprint("k", m))
				}
			}
			w.emitKey(7, "k1")
			w.drainShards(shards)
			w.wantReceived(7)
			a.commit()
			w.emitKey(8, "k1")
			const outlook = `select concat_ws(' ', coalesce(route_code, 'all'), events, first_seq, last_seq, complete) from tidemark.worker_outlook`
			w.wantRows(outlook+`('default')`, "all 4 1 8 t", "app 4 1 8 t")
			w.wantRows(outlook+`('default', 2)`, "all 2 1 2 f", "app 2 1 2 f")
			w.exec(`select tidemark.gate_set('routes.enabled', false)`)
			w.wantRows(outlook+`('default')`, "all 4 1 8 t", "app 4 1 8 t")
			w.exec(`select tidemark.gate_set('routes.enabled', true)`)
			w.drainShards(shards)
			w.wantRows(`select count(*)::text from received`, "5")
			w.wantRows(outlook+`('default')`, "all 0 t")
		})
	}
}
