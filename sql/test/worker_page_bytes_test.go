package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// pageOf is what a page holds: the numbers of its events, fresh ones and then pending ones, and how
// many of the log it goes past.
const pageOf = `select concat_ws(' ', max(r.events), string_agg(r.seq::text, ',' order by r.seq) filter (where r.fresh),
	string_agg(r.seq || case when r.replay then 'r' else 'p' end, ',' order by r.seq) filter (where not r.fresh))
	from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') r`

// heavy is live with a webhook, pages of 200,000 bytes, and a function payload: of that many bytes, which
// cannot be compressed, or can very well.
func heavy(t *testing.T) session {
	t.Helper()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`update tidemark.outbound_route set target_kind = 'webhook', target_ref = 'https://example.com/hook', options = '{"unsigned": true}'`)
	w.exec(`update tidemark.setting set value = '200000' where key = 'batch.max_bytes'`)
	w.exec(`update tidemark.setting set value = '0' where key = 'emit.payload_limit'`)
	w.exec(`create function noise(bytes integer) returns jsonb language sql volatile as $$
		select jsonb_build_object('n', string_agg(md5(random()::text), '')) from generate_series(1, bytes / 32) $$`)
	w.exec(`create function plain(bytes integer) returns jsonb language sql as $$ select jsonb_build_object('n', repeat('x', bytes)) $$`)
	w.exec(`select tidemark.claim('default', 'a', '10 minutes')`)
	return w
}

// A page ends at its bytes, whether they are stored as they are or compressed, with at least one event.
func TestPageEndsAtItsBytes(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"noise", "plain"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := heavy(t)
			w.exec(`select tidemark.emit_strict('test', 'tick', ` + kind + `(60000)) from generate_series(1, 5)`)
			w.exec(`select tidemark.emit_strict('test', 'tick', ` + kind + `(900000))`)
			w.emit(7)
			for no, want := range []string{"3 1,2,3", "2 4,5", "1 6", "1 7", "0"} {
				equal(t, "page", one[string](w, pageOf), want)
				w.exec(`select tidemark.pass_settle('default', 1, r.batch::tidemark.batch, r.evidence::tidemark.evidence[], array[row(1, true, 'sent', null, null,
					int8multirange(int8range((select watermark_id::bigint + 1 from tidemark.worker_cursor), (r.batch::tidemark.batch).watermark + 1)), 0)::tidemark.result], $1)
					from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') r where r.events > 0`, no+1)
			}
			w.wantRows(`select count(*)::text from tidemark.route_attempt where outcome = 'sent'`, "7")
		})
	}
}

// A page of one event is not measured: it fits, whatever it has.
func TestPageOfOneIsNotMeasured(t *testing.T) {
	t.Parallel()
	w := heavy(t)
	w.exec(`begin`)
	w.exec(`set local track_functions = 'all'`)
	const measured = `select coalesce(sum(f.calls), 0)::bigint from pg_stat_xact_user_functions f where f.funcname = 'last_within'`
	w.exec(`select tidemark.emit_strict('test', 'tick', noise(900000))`)
	equal(t, "page", one[string](w, pageOf), "1 1")
	equal(t, "calls for one event", one[int64](w, measured), int64(0))
	w.emit(1)
	equal(t, "page", one[string](w, pageOf), "1 1")
	equal(t, "calls for two", one[int64](w, measured), int64(1))
}

// The bytes of a page are those of what the worker delivers: it goes past all that comes between, and what came late counts.
func TestPageGoesPastWhatIsOfOthers(t *testing.T) {
	t.Parallel()
	const read = `select concat_ws(' ', max(r.events), string_agg(r.seq::text, ',' order by r.seq)) from tidemark.pass_read('default', 1, 5000, null, null, '{}', '{}') r`
	others := func(w session) {
		w.exec(`select tidemark.type_set('a', 'x'), tidemark.type_set('b', 'x'), tidemark.route_set('app', '{"domain": "*", "type": "*"}')`)
		for range 6 {
			w.exec(`select tidemark.emit('b', 'x') from generate_series(1, 99)`)
			w.exec(`select tidemark.emit_strict('a', 'x', plain(60000))`)
		}
	}
	t.Run("domains", func(t *testing.T) {
		t.Parallel()
		w := heavy(t)
		w.exec(`update tidemark.worker set domains = '{a}' where worker = 'default'`)
		others(w)
		equal(t, "page", one[string](w, read), "300 100,200,300")
	})
	t.Run("late", func(t *testing.T) {
		t.Parallel()
		w := heavy(t)
		w.exec(`update tidemark.worker set domains = '{a}' where worker = 'default'`)
		others(w)
		// The cursor has passed 250 numbers of which 51 were open, and two of their events are the worker's.
		w.exec(`update tidemark.worker_cursor set watermark_id = '250', decided_through = '250', fenced = '{[100,101),[200,250)}', fence = tidemark.fence_now() where worker = 'default'`)
		equal(t, "page", one[string](w, read), "101 100,200,300")
		w.exec(`update tidemark.setting set value = '100000' where key = 'batch.max_bytes'`)
		equal(t, "cut among those that came late", one[string](w, read), "1 100")
	})
}

// What is pending shares the page with what is fresh, half and half: deliveries and replays of dead
// letters, whose snapshots weigh as much.
func TestPendingWithinItsBytes(t *testing.T) {
	t.Parallel()
	w := heavy(t)
	w.exec(`select tidemark.emit_strict('test', 'tick', plain(60000)) from generate_series(1, 6)`)
	w.exec(`update tidemark.worker_cursor set watermark_id = '4', decided_through = '4'`)
	w.exec(`insert into tidemark.pending (worker_id, route_id, seq, next_attempt_at)
		select w.id, 1, n, clock_timestamp() + n * interval '1 microsecond' from tidemark.worker w, generate_series(1, 2) n where w.worker = 'default'`)
	w.exec(`insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code)
		select 'k' || o.seq, w.id, 1, o.seq, o.event_id, tidemark.event_json(o), 'x' from tidemark.worker w, tidemark.outbox o where w.worker = 'default' and o.seq in (3, 4)`)
	equal(t, "fresh and pending", one[string](w, pageOf), "1 5 1p")
	w.exec(`select tidemark.dead_letter_replay(l.id) from tidemark.dead_letter l`)
	w.exec(`delete from tidemark.pending where not replay`)
	equal(t, "fresh and a replay", one[string](w, pageOf), "1 5 3r")
	w.exec(`update tidemark.worker_cursor set watermark_id = '6', decided_through = '6'`)
	equal(t, "replays alone", one[string](w, pageOf), "0 3r")
	w.exec(`update tidemark.setting set value = 'many' where key = 'batch.max_bytes'`)
	equal(t, "a setting that cannot be read is the default", one[string](w, pageOf), "0 3r,4r")
}
