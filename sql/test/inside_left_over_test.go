package test

import (
	"fmt"
	"strings"
	"testing"
)

// leftOver makes the numbers of tidemark.left_over a text.
const leftOver = `select (tidemark.left_over(r, 0)).numbers::text from tidemark.outbound_route r where route_code = '%s'`

// What is due is what the rule says, row by row: in order nothing goes before what waits, is held or closed of its key.
func TestLeftOverAtRandom(t *testing.T) {
	t.Parallel()
	s := gated(t)
	s.exec(`select tidemark.emit('a', 'x') from generate_series(1, 60); select tidemark.gate_set('domain.c.enabled', false)`)
	const rule = `select coalesce(array_agg(p.seq order by p.seq), '{}')::text
		from tidemark.outbound_route r left join tidemark.pending p on p.route_id = r.id and p.shard = 0
			and not p.held and p.domain is distinct from 'c' and (p.next_attempt_at <= now() or p.next_attempt_at = 'infinity' and r.ordering = 'key')
			and not (r.ordering = 'key' and p.key is not null and not p.replay and exists (
				select from tidemark.pending e where e.route_id = r.id and e.key = p.key and e.seq < p.seq and not e.replay
				and (e.held or e.domain = 'c' or e.next_attempt_at > now() and e.next_attempt_at <> 'infinity')))
		where r.route_code = '%s' and p.seq is not null`
	const behind = `select coalesce(range_agg(int8range(p.seq, p.seq + 1)), '{}')::text from tidemark.pending p join tidemark.outbound_route r on r.id = p.route_id
		where r.route_code = '%s' and r.ordering = 'key' and p.shard = 0 and p.next_attempt_at <= now() and p.domain is distinct from 'c' and not p.replay
			and exists (select from tidemark.pending e where e.route_id = r.id and e.key = p.key and e.seq < p.seq and not e.replay
				and (e.held or e.domain = 'c' or e.next_attempt_at > now() and e.next_attempt_at <> 'infinity'))`
	for range 40 {
		s.exec(`truncate tidemark.pending;
			insert into tidemark.pending (worker_id, route_id, seq, domain, key, shard, replay, held, next_attempt_at)
			select 1, r.id, n, case when x.a < 0.05 then 'c' when x.a < 0.9 then 'a' end, case when x.b < 0.9 then (x.b * 10)::int::text end,
				(x.c < 0.1)::int, x.d < 0.1, x.e < 0.05 and x.d >= 0.1,
				case when x.e < 0.05 then 'infinity' when x.e < 0.1 then now() + interval '1 hour' when x.e < 0.4 then 'infinity' else now() - interval '1 s' end::timestamptz
			from tidemark.outbound_route r, generate_series(1, 60) n,
			lateral (select random() as a, random() as b, random() as c, random() as d, random() as e where n > 0 and r.id > 0) x
			where r.route_code in ('keyed', 'any_order')`)
		for _, route := range []string{"keyed", "any_order"} {
			s.wantRows(fmt.Sprintf(leftOver, route), one[string](s, fmt.Sprintf(rule, route)))
			s.wantRows(strings.Replace(fmt.Sprintf(leftOver, route), "numbers", "behind", 1), one[string](s, fmt.Sprintf(behind, route)))
		}
		if t.Failed() {
			t.Fatal(one[string](s, `select jsonb_agg(p)::text from tidemark.pending p`))
		}
	}
}

// However many wait, with few or many keys, each is read a few times to find those that go.
func TestLeftOverOfMany(t *testing.T) {
	t.Parallel()
	for _, keys := range []int{1, 50, 30000} {
		s := gated(t)
		s.exec(`insert into tidemark.pending (worker_id, route_id, seq, domain, key, next_attempt_at, held)
			select 1, r.id, n, 'a', (n % $1)::text, case when n > 29000 then 'infinity' else now() - interval '1 s' end, n > 29000
			from tidemark.outbound_route r, generate_series(1, 30000) n where r.route_code = 'keyed'`, keys)
		for _, statistics := range []string{"old", "new"} {
			n := s.readsOfPending(func() {
				s.wantRows(`select concat_ws(' ', cardinality(l.numbers), l.numbers[5000], l.more)
					from tidemark.outbound_route r, tidemark.left_over(r, 0) l where r.route_code = 'keyed'`, "5000 5000 t")
			})
			if n > 100000 {
				t.Errorf("%d keys, %s statistics: %d rows are read", keys, statistics, n)
			}
			s.exec(`analyze tidemark.pending; discard plans`)
		}
	}
}

// However many wait, of as many keys, a pass reads what it can deliver, and has its time for that.
func TestLeftOverOfAVeryLongPause(t *testing.T) {
	t.Parallel()
	s := gated(t)
	s.exec(`select tidemark.emit('a', 'x', key => n::text) from generate_series(1, 5000) n`)
	s.exec(`update tidemark.worker_cursor set watermark_id = '5000', decided_through = '5000' where worker = 'default'`)
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq, domain, key, next_attempt_at)
		select 1, r.id, n, 'a', n::text, now() - interval '1 s' from tidemark.outbound_route r, generate_series(1, 200000) n where r.route_code = 'keyed'`)
	const sent = `select coalesce(sum(upper(s) - lower(s)), 0) from tidemark.deliver_inside('default', '{}', '0.8 s', '{}', 0) d, unnest(d.results) r, unnest(r.seqs) s
		where r.outcome = 'sent'`
	for _, statistics := range []string{"old", "new"} {
		n := s.readsOfPending(func() {
			if n := one[int](s, sent); n <= 100 {
				t.Errorf("%s statistics: %d are delivered", statistics, n)
			}
		})
		if n > 50_000 {
			t.Errorf("%s statistics: %d rows are read", statistics, n)
		}
		s.exec(`analyze tidemark.pending; discard plans`)
	}
}

// What is due and waits behind an event that is parked does not stand before others: the first pass that meets it puts it
// behind that event, and all of it comes in order when that is due.
func TestLeftOverBehindAParkedOne(t *testing.T) {
	t.Parallel()
	s := gated(t)
	s.exec(`update tidemark.outbound_route set enabled = false where route_code = 'any_order'`)
	s.exec(`select tidemark.emit('a', 'x', key => case when n <= 5100 then 'k' else 'l' end) from generate_series(1, 5110) n`)
	s.exec(`update tidemark.worker_cursor set watermark_id = '5110', decided_through = '5110' where worker = 'default'`)
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq, domain, key, next_attempt_at)
		select 1, r.id, o.seq, 'a', o.key, now() + case o.seq when 1 then interval '1 hour' else o.seq * interval '1 us' - interval '1 s' end
		from tidemark.outbound_route r, tidemark.outbox o where r.route_code = 'keyed' and o.domain = 'a'`)
	const took = `select concat_ws(' ', key, count(*), bool_and(seq > before)) from (select key, seq, coalesce(lag(seq) over (partition by key order by n), 0) as before
		from took) t group by key order by key`
	for range 3 {
		s.pass()
	}
	s.wantRows(took, "l 10 t")
	s.wantRows(`select count(*)::text from tidemark.pending where next_attempt_at = 'infinity'`, "5099")
	s.exec(`update tidemark.pending set next_attempt_at = now() where seq = 1`)
	for range 3 {
		s.pass()
	}
	s.wantRows(took, "k 5100 t", "l 10 t")
}
