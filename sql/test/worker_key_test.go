package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// An event of a key is looked up by its key, also where statistics of before say that all that waits is of one key, or that little does.
func TestKeysAreFoundAmongMany(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`alter table tidemark.pending set (autovacuum_enabled = off)`)
	w.outAndInside("key")
	w.exec(`select tidemark.type_set('test', 'a'); select tidemark.emit('test', 'a', key => k) from unnest(array['stuck', 'late', 'new']) k`)
	const wait = `insert into tidemark.pending (worker_id, route_id, seq, domain, key, next_attempt_at)
		select w.id, r.id, n, 'test', %s, %s from tidemark.worker w, tidemark.outbound_route r, generate_series(%d, %d) n
		where w.worker = 'default' and r.route_code in ('out', 'inside')`
	const (
		behind  = `select tidemark.behind_key(r, '{1,2,3}', '{}')::text from tidemark.outbound_route r where route_code = 'inside'`
		due     = `select string_agg((p).key, ' ') from unnest(tidemark.pending_due('default', (select id from tidemark.worker where worker = 'default'), null, null, 0)) p`
		release = `select tidemark.release_keys(w.id, array[r.id, r.id], '{late,new}')::text from tidemark.worker w, tidemark.outbound_route r where w.worker = 'default' and r.route_code = 'out'`
	)
	w.exec(fmt.Sprintf(wait, "'x'", "'infinity'", 100, 101))
	w.exec(`analyze tidemark.pending`)
	for range 6 { // plans are kept
		w.exec(behind + `; ` + due + `; ` + release)
	}
	w.exec(`delete from tidemark.pending`)
	w.exec(fmt.Sprintf(wait, "'stuck'", "'infinity'", 1001, 21000))
	w.exec(fmt.Sprintf(wait, "'late'", "case when n = 30001 then now() else 'infinity' end", 30001, 30010))
	for _, state := range []string{"planned when little waited", "planned when all was of one key"} {
		for _, c := range [][3]string{{"behind_key", behind, "{[1,3)}"}, {"pending_due", due, "late late late late late late late late late late"}, {"release_keys", release, ""}} {
			if n := w.readsOfPending(func() { w.wantRows(c[1], c[2]) }); n > 300 {
				t.Errorf("%s, %s: %d rows are read", c[0], state, n)
			}
		}
		w.exec(`delete from tidemark.pending where key = 'late'; analyze tidemark.pending; discard plans`)
		w.exec(fmt.Sprintf(wait, "'late'", "case when n = 30001 then now() else 'infinity' end", 30001, 30010))
	}
}
