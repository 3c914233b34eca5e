package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The first and the last number of a time are found without the log before and after, and also where the clock was set back.
func TestNumberOfATime(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	const write = `insert into tidemark.outbox (seq, event_id, created_at, occurred_at, domain, type, lane, severity, actor, emitted_by, payload) overriding system value
		select n, gen_random_uuid(), timestamptz '2026-01-01Z' + (n - case when n % 1000 = 0 then 5 else 0 end) * interval '1 s', now(), 'test', 'a', 'immediate', 'info', 'x', 'x', '{}'
		from generate_series($1::bigint, $2) n`
	s.exec(`alter table tidemark.outbox_p0 set (autovacuum_enabled = off); alter table tidemark.outbox_p1000000 set (autovacuum_enabled = off)`)
	s.wantRows(`select concat(tidemark.seq_of_time('-infinity'))`, "")
	s.exec(write, 1, 20000)
	s.exec(write, 1000001, 1020000)
	s.exec(write, 5000000, 5000100) // in the rest
	s.exec(`vacuum tidemark.outbox_p0, tidemark.outbox_p1000000`)
	const (
		first = `select concat_ws(' ', min(o.seq)) from tidemark.outbox o where o.created_at >= `
		last  = `select concat_ws(' ', max(o.seq)) from tidemark.outbox o where o.created_at < `
	)
	agrees := func() {
		t.Helper()
		for _, n := range []int{-1, 1, 9, 999, 1000, 1001, 12345, 19994, 19995, 20001, 1000000, 1000001, 1014999, 1015000, 1020000, 1020001, 5000000, 5000100, 5000101} {
			at := one[string](s, `select quote_literal(timestamptz '2026-01-01Z' + $1::integer * interval '1 s')`, n)
			s.wantRows(`select concat_ws(' ', tidemark.seq_of_time(`+at+`))`, one[string](s, first+at))
			s.wantRows(`select concat_ws(' ', tidemark.seq_of_time(`+at+`, true))`, one[string](s, last+at))
		}
	}
	agrees()
	for of, sql := range map[string]string{
		"since": `select tidemark.seq_of_time(timestamptz '2026-01-01Z' + 1018500 * interval '1 s')::text`,
		"until": `select (1 + tidemark.seq_of_time(timestamptz '2026-01-01Z' + 1000500 * interval '1 s', true))::text`,
	} {
		want := map[string]string{"since": "1018500", "until": "1000500"}[of]
		if n := s.readsOf("outbox", func() { s.wantRows(sql, want) }); n > 6000 {
			t.Errorf("%s: %d rows are read", of, n)
		}
	}
	s.exec(`set session_replication_role = replica; update tidemark.outbox set created_at = '2027-01-01Z' where seq in (7, 1000007); update tidemark.outbox set created_at = '2025-01-01Z' where seq = 1019999`)
	agrees()
}
