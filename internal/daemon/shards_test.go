package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A wire is a proxy between a daemon and its server, until it is cut. To the others the daemon is dead then.
type wire struct {
	net.Listener
	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

// wired returns the address of the database behind a wire.
func wired(t *testing.T, address string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{}
	if w.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	server := u.Host
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := w.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, client, to)
			if w.dead {
				_, _ = client.Close(), to.Close()
			}
			w.mu.Unlock()
			running.Go(func() { _, _ = io.Copy(client, to); _ = client.Close() })
			running.Go(func() { _, _ = io.Copy(to, client); _ = to.Close() })
		}
	})
	t.Cleanup(func() { w.cut(); running.Wait() })
	u.Host = w.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return w, u.String()
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	_ = w.Close()
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// AD6. Daemons share the shards of a worker: when one comes, goes, or is cut off, and while the number of shards changes under
// load. Each event is on record as sent once, and arrives in the order of its key.
func TestShards(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	var mu sync.Mutex
	arrived := map[string][]int{} // by key, the first time
	seen := map[int]bool{}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		var e struct {
			Data struct {
				K string
				N int
			}
		}
		if err := json.NewDecoder(q.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond) // a distant target
		mu.Lock()
		defer mu.Unlock()
		if !seen[e.Data.N] {
			seen[e.Data.N] = true
			arrived[e.Data.K] = append(arrived[e.Data.K], e.Data.N)
		}
	}))
	t.Cleanup(receiver.Close)
	live(t, db, receiver.URL)
	execSQL(t, db, `select tidemark.route_set('app', '{"ordering": "key"}'), tidemark.worker_set('default', '{"shards": 4}')`)
	start := func(name, address string) process {
		c := settings(db)
		c.Name, c.Database.URL, c.StopTimeout = name, config.NewSecret(address), 3*time.Second
		return run(t, c)
	}
	// owners are the daemons that have shards, and how many.
	owners := func() string {
		var got map[string]int
		err := db.Pool.QueryRow(context.Background(), `select coalesce(jsonb_object_agg(o, n), '{}') from (
			select split_part(lease_owner, '/', 1) as o, count(*) as n from tidemark.heartbeat
			where executor_id like 'default/outbox/%' and lease_until > clock_timestamp() group by 1) x`).Scan(&got)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, o := range slices.Sorted(maps.Keys(got)) {
			all = append(all, fmt.Sprintf("%s %d", o, got[o]))
		}
		return strings.Join(all, ", ")
	}

	stop := make(chan struct{})
	want := map[string][]int{}
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for n := w; ; n += 3 {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("%d-%d", w, n%7)
				if _, err := db.Pool.Exec(context.Background(), `select tidemark.emit_strict('test', 'tick',
					jsonb_build_object('n', $1::int, 'k', $2::text), key => $2)`, n, key); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				want[key] = append(want[key], n)
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	more := func() {
		mu.Lock()
		n := len(seen)
		mu.Unlock()
		eventually(t, "more events", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) > n+30 })
	}

	start("a", db.URL)
	eventually(t, "one has all", func() bool { return owners() == "a 4" })
	more()
	line, address := wired(t, db.URL)
	b := start("b", address)
	eventually(t, "two share", func() bool { return owners() == "a 2, b 2" })
	more()
	execSQL(t, db, `select tidemark.worker_pause('default', true, 'shards')`)
	eventually(t, "they are given back", func() bool { return owners() == "" })
	execSQL(t, db, `select tidemark.worker_set('default', '{"shards": 6}', 'test')`)
	execSQL(t, db, `select tidemark.worker_pause('default', false, 'shards')`)
	eventually(t, "they share six", func() bool { return owners() == "a 3, b 3" })
	more()
	c := start("c", db.URL)
	eventually(t, "three share", func() bool { return owners() == "a 2, b 2, c 2" })
	cut := time.Now()
	line.cut()
	eventually(t, "the others take over", func() bool { return owners() == "a 3, c 3" })
	if took := time.Since(cut); took > 30*time.Second {
		t.Errorf("that took %s, with a lease of 5 seconds", took)
	}
	more()
	c.stop()
	eventually(t, "the last one has all", func() bool { return owners() == "a 6" })
	more()
	close(stop)
	writers.Wait()

	eventually(t, "all is settled", func() bool {
		var ok bool
		err := db.Pool.QueryRow(context.Background(), `select (select count(*) from tidemark.route_attempt where outcome = 'sent')
			= (select count(*) from tidemark.outbox where domain = 'test')
			and not exists (select from tidemark.pending)`).Scan(&ok)
		return err == nil && ok
	})
	mu.Lock()
	defer mu.Unlock()
	for key := range want {
		if !slices.Equal(arrived[key], want[key]) {
			t.Errorf("key %s arrived as %v, want %v", key, arrived[key], want[key])
		}
	}
	var wrong []string
	if err := db.Pool.QueryRow(context.Background(), `select coalesce(array_agg(x), '{}') from (
			select "check" || ': ' || detail from tidemark.verify() where status = 'fail'
			union all
			select format('event %s is sent %s times', seq, count(*)) from tidemark.route_attempt where outcome = 'sent' group by seq having count(*) > 1) p (x)`).
		Scan(&wrong); err != nil || len(wrong) > 0 {
		t.Errorf("%v %v", wrong, err)
	}
	b.stop()
}
