package test

import (
	"fmt"
	"strings"
	"testing"
)

// A gate that closes before a large backlog is no large statement: it is put aside in parts, and none of the rest is delivered
// meanwhile, inside the database. What is of other domains is. When the gate opens all of it comes, in the order of its keys.
func TestDomainGateHoldsManyInParts(t *testing.T) {
	t.Parallel()
	s := gated(t)
	const events = 12_000
	s.exec(`select tidemark.emit('a', 'x', key => (n % 500)::text) from generate_series(1, $1::integer) n`, events)
	s.emitKeyed("b", "3") // behind those of its key
	s.emitKeyed("b", "own")
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq, domain, key, next_attempt_at)
		select 1, r.id, o.seq, o.domain, o.key, case when r.route_code = 'keyed' and o.seq > 500 and o.key <> 'own' then 'infinity' else now() end
		from tidemark.outbound_route r, tidemark.outbox o where o.domain in ('a', 'b')`)
	s.exec(`update tidemark.worker_cursor set watermark_id = w, decided_through = w
		from (select max(seq)::text as w from tidemark.outbox) o where worker = 'default'`)
	s.exec(`select tidemark.gate_set('domain.a.enabled', false)`)

	s.wantRows(`select concat_ws(' ', o.domain, count(*)) from tidemark.outbound_route r cross join lateral unnest((tidemark.left_over(r, 0)).numbers) n
		join tidemark.outbox o on o.seq = n group by o.domain`, "b 1") // what is not put aside yet goes nowhere, and is passed over as far as a pass may look
	for n := 1; n <= 2; n++ {
		s.exec(`select tidemark.pending_hold('default', '{a}')`)
		equal(t, "put aside", one[int](s, `select count(*) from tidemark.pending where held`), 5_000*n)
		equal(t, "of another domain", one[int](s, `select count(*) from tidemark.pending where held and domain <> 'a'`), 0)
	}
	s.pass() // with more to put aside than it may
	if held := one[int](s, `select count(*) from tidemark.pending where held`); held == 2*events {
		t.Errorf("all %d were put aside", held)
	}
	for range 4 {
		s.pass()
	}
	s.wantRows(`select concat_ws(' ', route, domain, key) from took order by route collate "C", seq`, "any_order b 3", "any_order b own", "keyed b own")
	s.wantRows(`select concat_ws(' ', held, count(*)) from tidemark.pending group by held order by held`, "f 1", fmt.Sprint("t ", 2*events))

	s.exec(`select tidemark.gate_set('domain.a.enabled', true)`)
	for n := 0; one[int](s, `select count(*) from tidemark.pending`) > 0 && n < 40; n++ {
		s.pass()
	}
	s.wantRows(`select concat_ws(' ', route, count(*), count(distinct seq)) from took group by route order by route collate "C"`,
		fmt.Sprintf("any_order %d %[1]d", events+2), fmt.Sprintf("keyed %d %[1]d", events+2))
	s.wantRows(`select concat_ws(' ', key, seq) from (select key, seq, lag(seq) over (partition by key order by n) as before from took where route = 'keyed') o
		where before > seq`)
	s.wantRows(`select n::text from took where closed`)
}

// The same outside the database: what is not put aside yet is passed over, also behind another event of its key and among
// replays, and no further than a pass may look.
func TestDomainGatePassesOverWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	s := gated(t)
	s.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}'`)
	const due = `select concat_ws(' ', r.route_code, d.seq) from unnest(tidemark.pending_due('default', 1, null, null, 0)) d
		join tidemark.outbound_route r on r.id = d.route_id order by r.route_code collate "C", d.seq`
	pend := func(from, to int, columns string) {
		t.Helper()
		s.exec(`insert into tidemark.pending (worker_id, route_id, seq, domain, key, replay, next_attempt_at)
			select 1, r.id, n, `+columns+` from tidemark.outbound_route r, generate_series($1::integer, $2) n`, from, to)
	}
	s.exec(`select tidemark.gate_set('domain.a.enabled', false)`)
	pend(1, 4_000, `'a', 'a' || n, false, now() - interval '1 minute'`)
	pend(4_001, 8_000, `'a', 'a' || n, true, now() - interval '1 minute'`)
	pend(8_001, 8_001, `'b', 'b', false, now() - interval '1 s'`)
	pend(8_002, 8_002, `'b', 'b', false, 'infinity'`)
	pend(8_003, 8_003, `'a', 'b', false, 'infinity'`)
	pend(8_004, 8_004, `'b', 'b', false, 'infinity'`)
	pend(8_005, 8_005, `'b', 'b', true, now() - interval '1 s'`)
	pend(8_006, 8_006, `null, null, true, now() - interval '1 s'`) // gone from the log: it is of no domain
	s.wantRows(due, "any_order 8001", "any_order 8005", "any_order 8006", "keyed 8001", "keyed 8002", "keyed 8005", "keyed 8006")

	pend(10_001, 40_000, `'a', 'a' || n, false, now() - interval '1 minute'`)
	s.wantRows(due, "any_order 8005", "any_order 8006", "keyed 8005", "keyed 8006") // the others come when these are put aside
	plan := one[string](s, `explain (analyze, buffers, costs off, timing off, summary off, format json) `+due)
	_, hits, _ := strings.Cut(plan, `"Shared Hit Blocks": `)
	var pages int
	if _, err := fmt.Sscan(hits, &pages); err != nil || pages > 30_000 {
		t.Errorf("%d pages were touched (%v)", pages, err)
	}
	for n := 1; n <= 16; n++ {
		s.exec(`select tidemark.pending_hold('default', '{a}')`)
		equal(t, "put aside", one[int](s, `select count(*) from tidemark.pending where held`), min(5_000*n, 2*38_000+2))
	}
	s.wantRows(due, "any_order 8001", "any_order 8005", "any_order 8006", "keyed 8001", "keyed 8002", "keyed 8005", "keyed 8006")
}
