package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// However many events wait, as behind a paused route, a page of handlers looks once for each of its keys.
func TestBeforeOfMany(t *testing.T) {
	t.Parallel()
	const waiting = 20000
	for _, keys := range []int{1, 100, waiting} {
		t.Run(fmt.Sprint(keys), func(t *testing.T) {
			t.Parallel()
			test, pool, c := paged(t, func(*pgxpool.Config) {})
			exec(t, test, fmt.Sprintf(`insert into tidemark.pending (worker_id, route_id, seq, domain, key, next_attempt_at)
				select w.id, r.id, n, 'shop', (n %% %d)::text, now() from tidemark.worker w, tidemark.outbound_route r, generate_series(1, %d) n
				where w.worker = 'default' and r.route_code = 'all'`, keys, waiting))
			var route, other int32
			if err := test.Pool.QueryRow(t.Context(), `select min(id) filter (where route_code = 'all'), min(id) filter (where route_code = 'a')
				from tidemark.outbound_route`).Scan(&route, &other); err != nil {
				t.Fatal(err)
			}
			const read = `select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relid = 'tidemark.pending'::regclass`
			looks := func(state string, calm bool, behind map[store.KeyOf]bool) {
				t.Helper()
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var before, after int64
				must(t)(nil, tx.QueryRow(t.Context(), read).Scan(&before))
				got, err := c.Before(t.Context(), tx, []int32{route, route, other, route}, []string{"0", "none", "0", "0"})
				must(t)(nil, err)
				must(t)(nil, tx.QueryRow(t.Context(), read).Scan(&after))
				if diff := cmp.Diff(behind, got.Behind); diff != "" || got.Calm != calm {
					t.Errorf("%s: calm %v, behind (-want +got):\n%s", state, got.Calm, diff)
				}
				if after-before > 100 {
					t.Errorf("%s: %d rows are read", state, after-before)
				}
				must(t)(nil, tx.Rollback(t.Context()))
			}
			looks("old statistics", false, map[store.KeyOf]bool{{Route: route, Key: "0"}: true})
			exec(t, test, `vacuum analyze tidemark.pending`)
			looks("new statistics", false, map[store.KeyOf]bool{{Route: route, Key: "0"}: true})
			exec(t, test, `insert into tidemark.worker (worker, id) overriding system value values ('another', 99); update tidemark.pending set worker_id = 99`)
			looks("statistics of before", true, map[store.KeyOf]bool{})
		})
	}
}
