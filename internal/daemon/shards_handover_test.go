package daemon_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// AD6. A daemon that comes takes shards from another in good order: what is under way there is delivered, and not sent again.
func TestShardsAreHandedOverInGoodOrder(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	const events = 600
	var mu sync.Mutex
	seen := map[int]int{}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		var e struct{ Data struct{ N int } }
		if err := json.NewDecoder(q.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		mu.Lock()
		seen[e.Data.N]++
		mu.Unlock()
		time.Sleep(100 * time.Millisecond) // a distant target
	}))
	t.Cleanup(receiver.Close)
	live(t, db, receiver.URL)
	execSQL(t, db, `select tidemark.route_set('app', '{"ordering": "key"}'), tidemark.worker_set('default', '{"shards": 4}')`)
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', n), key => 'k' || n) from generate_series(1, $1) n`, events)
	arrived := func(n int) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) >= n }
	}
	c := settings(db)
	c.Name, c.Database.URL = "a", config.NewSecret(db.URL)
	run(t, c)
	eventually(t, "some events", arrived(events/10))
	c.Name = "b"
	run(t, c)
	eventually(t, "all events", arrived(events))
	mu.Lock()
	defer mu.Unlock()
	for n, times := range seen {
		if times != 1 {
			t.Errorf("event %d was sent %d times", n, times)
		}
	}
}
