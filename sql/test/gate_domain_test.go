package test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// gated opens a database with domains a, b and c, whose routes are live: of each event one delivery in order of keys, and
// one without. took holds what was delivered, and whether the gate of its domain was closed then.
func gated(t *testing.T) session {
	t.Helper()
	s := open(t, tidemarktest.NewDB(t), "gates")
	s.exec(`create table took (n bigserial, route text, seq bigint, domain text, key text, closed boolean);
		create table sick (route text, seq bigint, primary key (route, seq));
		create function take(route text, event jsonb) returns void language plpgsql as $$ begin
			if exists (select from public.sick s where s.route = take.route and s.seq = (event ->> 'seq')::bigint) then
				raise 'sick'; end if;
			insert into public.took (route, seq, domain, key, closed) values (route, (event ->> 'seq')::bigint, event ->> 'domain', event ->> 'key',
				not tidemark.gate_open('routes.enabled') or event ->> 'domain' = any (tidemark.closed_domains())); end $$;
		create function keyed(event jsonb) returns void language sql as $$ select public.take('keyed', event) $$;
		create function any_order(event jsonb) returns void language sql as $$ select public.take('any_order', event) $$;
		select tidemark.type_set(d, 'x') from unnest(array['a', 'b', 'c']) d;
		select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true);
		select tidemark.route_set('keyed', '{"domain": "*", "target_kind": "sql", "target_ref": "public.keyed", "ordering": "key"}'),
			tidemark.route_set('any_order', '{"domain": "*", "target_kind": "sql", "target_ref": "public.any_order"}');
		update tidemark.outbound_route set enabled = true, dry_run = false`)
	return s
}

func (s session) emitKeyed(domain, key string) {
	s.t.Helper()
	s.exec(`select tidemark.emit($1, 'x', key => nullif($2, ''))`, domain, key)
}

// RO4 for a domain: while its gate is closed its events alone wait, those of its keys in order behind them; nothing is
// lost and nothing twice.
func TestDomainGate(t *testing.T) {
	t.Parallel()
	s := gated(t)
	const took = `select concat_ws(' ', domain, key, seq) from took where route = 'keyed' order by n`
	s.exec(`select tidemark.gate_set('domain.a.enabled', false, 'because')`)
	s.emitKeyed("a", "1")
	s.emitKeyed("b", "2")
	s.emitKeyed("b", "1") // behind an event of another domain: the key is one
	s.emitKeyed("a", "")
	s.pass()
	s.pass()
	s.wantRows(took, "b 2 2")
	s.wantRows(`select concat_ws(' ', domain, seq) from took where route = 'any_order' order by n`, "b 2", "b 3")
	s.wantRows(`select concat_ws(' ', route_code, item, last_error, held) from tidemark.waiting order by route_code collate "C", item`,
		"any_order 1 domain_closed t", "any_order 4 domain_closed t", "keyed 1 domain_closed t", "keyed 3 behind_key f", "keyed 4 domain_closed t")
	s.wantRows(`select concat_ws(' ', outcome, reason, count(*)) from tidemark.route_attempt where route_code = 'keyed' group by outcome, reason order by 1`,
		"pending behind_key 1", "pending domain_closed 2", "sent 1")
	s.wantRows(`select coalesce(tidemark.closed_gate('default'), 'open')`, "open")

	s.exec(`select tidemark.gate_set('domain.a.enabled', true)`)
	s.wantRows(`select coalesce(why, 'rests') from tidemark.poll('me', '10 seconds', '{default}', '{outbox}', '{0}', '{null}')`, "free")
	s.pass()
	s.pass()
	s.wantRows(took, "b 2 2", "a 1 1", "b 1 3", "a 4")
	s.wantRows(`select count(*)::text from took where route = 'any_order'`, "4")
	s.wantRows(`select item from tidemark.waiting`)
	s.wantRows(`select count(*)::text from took where closed`, "0")
}

// A worker that decides only for closed domains does not begin: what comes is decided when the gate opens, as with the
// master gate.
func TestDomainGateOfAWorkersOwn(t *testing.T) {
	t.Parallel()
	s := gated(t)
	s.exec(`select tidemark.worker_set('default', '{"domains": ["a", "b"]}'), tidemark.gate_set('domain.a.enabled', false)`)
	s.wantRows(`select coalesce(tidemark.closed_gate('default'), 'open')`, "open")
	s.exec(`select tidemark.gate_set('domain.b.enabled', false)`)
	for _, d := range []string{"a", "b", "c"} {
		s.emitKeyed(d, "")
	}
	s.wantRows(`select concat_ws(' ', r ->> 'status', r ->> 'gate') from tidemark.route_worker_run() r`, "closed domain.a.enabled")
	s.wantRows(`select count(*)::text from tidemark.route_attempt`, "0")
	s.exec(`select tidemark.gate_set('domain.a.enabled', true), tidemark.gate_set('domain.b.enabled', true)`)
	s.pass()
	s.wantRows(`select domain from took where route = 'keyed' order by n`, "a", "b")
}

// Every value but true closes it; who has none is not closed by it.
func TestDomainGateIsSet(t *testing.T) {
	t.Parallel()
	s := gated(t)
	s.refused("TM004", `there is no gate "domain.nowhere.enabled"`, `select tidemark.gate_set('domain.nowhere.enabled', false)`)
	s.wantRows(`select tidemark.closed_domains()::text`, "{}")
	s.exec(`select tidemark.domain_set('x.y'), tidemark.gate_set('domain.x.y.enabled', false), tidemark.gate_set('domain.a.enabled', true);
		insert into tidemark.setting (key, value) values ('domain.b.enabled', 'TRUE'), ('domain.c.enabled', '')`)
	s.wantRows(`select d from unnest(tidemark.closed_domains()) d order by 1`, "b", "c", "x.y")
}

// What was to be tried again when the gate closed waits with the rest: retries, what waits behind them, and replays.
func TestDomainGateHoldsRetriesAndReplays(t *testing.T) {
	t.Parallel()
	s := gated(t)
	for range 2 {
		s.emitKeyed("a", "1")
		s.emitKeyed("b", "1")
	}
	s.exec(`insert into sick select r, 1 from unnest(array['keyed', 'any_order']) r`)
	s.pass()
	s.wantRows(`select count(*)::text from tidemark.dead_letter where resolved_at is null`, "2")
	s.exec(`delete from sick; truncate took; select tidemark.gate_set('domain.a.enabled', false)`)
	s.refused("TM009", "closed by domain.a.enabled", `select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
	s.wantRows(`select distinct (tidemark.dead_letter_replay(id, true)).outcome::text from tidemark.dead_letter`, "pending")
	s.refused("TM009", "closed by domain.a.enabled", `select tidemark.route_test('of-a') from tidemark.route_set('of-a', '{"domain": "a", "target_kind": "sql", "target_ref": "public.keyed"}')`)

	// A replay of the log: of a closed domain it is staged, and waits.
	s.exec(`select tidemark.route_replay('any_order', 'again', from_seq => 2, to_seq => 4)`)
	s.pass()
	s.pass()
	s.wantRows(`select concat_ws(' ', domain, seq) from took order by n`, "b 2", "b 4")
	s.wantRows(`select concat_ws(' ', item, held) from tidemark.waiting`, "3 t")

	// A letter is tried again once the gate is open.
	s.exec(`truncate took; select tidemark.gate_set('domain.a.enabled', true)`)
	s.pass()
	s.wantRows(`select concat_ws(' ', domain, seq) from took order by n`, "a 3")
	s.exec(`select tidemark.dead_letter_replay(id) from tidemark.dead_letter order by id`)
	s.wantRows(`select concat_ws(' ', route, domain, seq) from took where seq = 1 order by route`, "any_order a 1", "keyed a 1")

	// A retry that waits for a lock, and an event of another domain behind it.
	s.exec(`truncate took`)
	s.emitKeyed("a", "9")
	s.emitKeyed("b", "9")
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq, domain, key, next_attempt_at, error_count)
		select 1, r.id, v.seq, v.domain, '9', v.due, 1 from tidemark.outbound_route r, (values (5, 'a', now() - interval '1 s'), (6, 'b', 'infinity')) v (seq, domain, due)
		where r.route_code = 'keyed'; update tidemark.worker_cursor set watermark_id = '6', decided_through = '6' where worker = 'default';
		select tidemark.gate_set('domain.a.enabled', false)`)
	s.pass()
	s.wantRows(`select concat_ws(' ', item, held) from tidemark.waiting order by item`, "5 t", "6 f")
	// The other way round: what waits behind an open one is held too.
	s.exec(`select tidemark.gate_set('domain.a.enabled', true), tidemark.gate_set('domain.b.enabled', false)`)
	s.pass()
	s.wantRows(`select concat_ws(' ', item, held) from tidemark.waiting order by item`, "6 t")
	s.exec(`select tidemark.gate_set('domain.b.enabled', true)`)
	s.pass()
	s.wantRows(`select concat_ws(' ', route, domain, seq) from took order by n`, "keyed a 5", "keyed b 6")
}

// The chaos of it: any domain's gate and the master's open and close between passes, with poison, dead letters, replays and
// keys that domains share. What is delivered says itself whether its gate was closed.
func TestDomainGatesAtRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s := gated(t)
	domains := []string{"a", "b", "c"}
	for range 150 {
		switch r.IntN(6) {
		case 0, 1:
			s.exec(`select tidemark.emit(($1::text[])[1 + i % 3], 'x', key => case when i % 4 > 0 then (i * 7 % 5)::text end) from generate_series($2::int, $3::int) i`,
				domains, r.IntN(9), 9+r.IntN(9))
		case 2:
			s.exec(`select tidemark.gate_set($1, $2)`, "domain."+domains[r.IntN(3)]+".enabled", r.IntN(2) == 0)
		case 3:
			if r.IntN(4) == 0 {
				s.exec(`select tidemark.gate_set('routes.enabled', $1)`, r.IntN(2) == 0)
			}
			s.exec(`insert into sick select ($1::text[])[1 + $2 % 2], last_value + $2 from tidemark.outbox_seq_seq on conflict do nothing`, []string{"keyed", "any_order"}, r.IntN(8))
		default:
			s.exec(fmt.Sprintf(`select tidemark.route_worker_run(batch_limit => %d)`, 1+r.IntN(12)))
		}
		s.wantRows(`select concat_ws(' ', route, domain, seq) from took where closed`)
		if t.Failed() {
			t.FailNow()
		}
	}
	s.exec(`update tidemark.setting set value = 'true' where key like 'domain.%.enabled' or key = 'routes.enabled'`)
	s.wantEachOnce()
}

// wantEachOnce lets what waits be delivered: each event of the domains a, b and c has arrived once on each route, or is a dead letter,
// and those of the keyed route in the order of their keys.
func (s session) wantEachOnce() {
	s.t.Helper()
	for range 40 {
		s.exec(`select tidemark.route_worker_run(batch_limit => 1000)`)
	}
	s.wantRows(`select item from tidemark.waiting`)
	s.wantRows(`select concat_ws(' ', r.route_code, o.seq, 'taken', count(t.seq), 'letters', count(l.id))
		from tidemark.outbox o cross join tidemark.outbound_route r
		left join took t on t.seq = o.seq and t.route = r.route_code
		left join tidemark.dead_letter l on l.seq = o.seq and l.route_id = r.id
		where o.domain in ('a', 'b', 'c') group by r.route_code, o.seq having count(t.seq) + count(l.id) <> 1`)
	s.wantRows(`select concat_ws(' ', key, seq, 'behind', before) from (
		select key, seq, max(seq) over (partition by key order by n rows between unbounded preceding and 1 preceding) as before
		from took where route = 'keyed' and key is not null) o where before > seq`)
}
