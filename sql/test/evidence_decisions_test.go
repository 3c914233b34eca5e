package test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The evidence of an event or of a page is found without all that is later, also by a session that looked while there was none: that of a rewind,
// of a replay, of one event, and of a worker that is made again.
func TestEvidenceIsFoundAmongMany(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`alter table tidemark.decision_p0 set (autovacuum_enabled = off); alter table tidemark.attempt_p0 set (autovacuum_enabled = off)`)
	w.outAndInside("none")
	w.exec(`select tidemark.type_set('test', 'a')`)
	w.next(2000)
	w.exec(`select tidemark.emit('test', 'a') from generate_series(1, 101) n; update tidemark.worker_cursor set watermark_id = '200000'`)
	const (
		decided = `select tidemark.decided(w.id, r.id, 2001, 2100)::text from tidemark.worker w, tidemark.outbound_route r where w.worker = 'default' and route_code = 'out'`
		any     = `select tidemark.decided(w.id, 0, 2001, 2100)::text from tidemark.worker w where w.worker = 'default'`
		page    = `select string_agg(concat_ws(' ', former, attempt_no, n), ', ' order by former, attempt_no) from (
			select former, attempt_no, count(*) as n from tidemark.outbound_route r, tidemark.replay_page(r, 2000, 2101, null, null) p where r.route_code = 'out' group by 1, 2) p`
		event = `select string_agg(concat_ws(' ', route_code, attempt_no, outcome), ', ' order by route_code, attempt_no) from tidemark.event_evidence(2033)`
		wide  = `select string_agg(concat_ws(' ', route_code, outcome), ', ' order by route_code) from tidemark.event_evidence(2100)`
		last  = `select tidemark.decided_last('default')::text`
	)
	for range 6 { // plans are kept
		w.exec(decided + `; ` + any + `; ` + page + `; ` + event + `; ` + last)
	}
	// Each batch of 40 numbers has decided 20. Those of an event that came late reach from it to where the log was then.
	w.exec(`insert into tidemark.decision (worker_id, route_id, last_seq, first_seq, events, outcome, seqs)
		select w.id, r.id, 40 * n, 40 * n - 19, 20, 'sent', int8multirange(int8range(40 * n - 19, 40 * n + 1))
		from tidemark.worker w, tidemark.outbound_route r, generate_series(1, 5000) n where w.worker = 'default' and r.route_code in ('out', 'inside') order by n`)
	w.exec(`update tidemark.decision set first_seq = 2100, events = 21, seqs = seqs + '{[2100,2101)}', outcome = 'dry_run' where last_seq = 180000`)
	w.exec(`insert into tidemark.attempt (worker_id, route_id, seq, attempt_no, outcome)
		select w.id, r.id, 40 * n - 7, 1, 'sent' from tidemark.worker w, tidemark.outbound_route r, generate_series(51, 5000) n
		where w.worker = 'default' and r.route_code = 'out'`)
	for _, statistics := range []string{"old", "new"} {
		for _, c := range []struct{ of, sql, want string }{
			{"decided", decided, `{[2021,2041),[2061,2081),[2100,2101),[179981,180001)}`},
			{"decided for any", any, `{[2021,2041),[2061,2081),[2100,2101),[179981,180001)}`},
			{"replay_page", page, `dry_run 2 1, none 1 59, sent 2 40`},
			{"event_evidence", event, `inside 1 sent, out 1 sent, out 1 sent`},
			{"event_evidence of a late event", wide, `inside dry_run, out dry_run`},
			{"decided_last", last, `200000`},
		} {
			for table, most := range map[string]int{"decision": 1200, "attempt": 20} {
				if n := w.readsOf(table, func() { w.wantRows(c.sql, c.want) }); n > most {
					t.Errorf("%s, %s statistics: %d rows of %s are read", c.of, statistics, n, table)
				}
			}
		}
		w.exec(`analyze tidemark.decision; analyze tidemark.attempt; discard plans`)
	}
}

// tidemark.decisions finds all that meets the span, however wide it is and wherever partitions end, and nothing else.
func TestDecisionsOfASpan(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	widths := []int64{0, 1, 500, 9998, 9999, 10000, 10001, 300000, 2500000}
	for range 1500 {
		last := random.Int64N(4000000)
		first := max(last-widths[random.IntN(len(widths))], 0)
		w.exec(`insert into tidemark.decision (worker_id, route_id, last_seq, first_seq, events, outcome, seqs)
			values ($1, $2, $3::bigint, $4::bigint, 1, 'sent', int8multirange(int8range($4, $4 + 1), int8range($3, $3 + 1))) on conflict do nothing`,
			1+random.IntN(3), random.IntN(4), last, first)
	}
	// What is not so is told by the rows that one has and the other has not.
	const differ = `with got as (select d.* from tidemark.decisions($1, $2, $3, $4) d), want as (
			select d.* from tidemark.decision d where d.worker_id = coalesce($1, d.worker_id) and d.route_id = coalesce($2, d.route_id)
			  and d.last_seq >= $3 and d.first_seq <= $4)
		select ((select count(*) from (table got except all table want) g) + (select count(*) from (table want except all table got) m))::integer`
	ends := column[int64](w, `select first_seq from tidemark.decision union all select last_seq from tidemark.decision`)
	for i := range 150 {
		low := ends[random.IntN(len(ends))] + random.Int64N(3) - 1
		high := low + []int64{0, 0, 5000, 200000, 1 << 62}[i%5]
		var worker, route *int
		if i%3 > 0 {
			worker = new(1 + random.IntN(3))
		}
		if i%3 > 1 {
			route = new(random.IntN(4))
		}
		if n := one[int](w, differ, worker, route, low, high); n > 0 {
			t.Errorf("seed %d, span %d to %d, %v, %v: %d rows differ", seed, low, high, fmt.Sprint(worker == nil), fmt.Sprint(route == nil), n)
		}
	}
	w.wantRows(`select count(*)::text from tidemark.decisions(null, null, 5, 4)`, "0")
	w.wantRows(`select count(*)::text from tidemark.event_evidence(9223372036854775807)`, "0")
}
