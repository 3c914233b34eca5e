package incidents

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// fence is a webhook that compares epochs, as docs/runbooks/two_copies.md says, but for the minute: here no request is late.
type fence struct {
	mu      sync.Mutex
	highest int
	copies  bool
}

func (f *fence) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		epoch, err := strconv.Atoi(q.Header.Get("Tidemark-Epoch"))
		f.mu.Lock()
		f.copies = f.copies || err != nil || epoch < f.highest
		f.highest = max(f.highest, epoch)
		refuses, text := f.copies, "epoch "+strconv.Itoa(f.highest)
		f.mu.Unlock()
		if refuses {
			w.Header().Set("Tidemark-Copy", text)
			w.WriteHeader(http.StatusConflict)
			return
		}
		next.ServeHTTP(w, q)
	})
}

func (f *fence) forgets() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.highest, f.copies = 0, false
}

// Incident 14: two copies are live, from one physical base backup. Both say so.
func TestTwoPhysicalCopies(t *testing.T) {
	t.Parallel()
	home := t.TempDir() // the server's OS user must be able to enter it
	for _, dir := range []string{filepath.Dir(home), home} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(home, "original")
	server := testserver.New(t, devpg.Options{Dir: dir})
	n, target, fence := begin(t, tidemarktest.NewDBAt(t, server.URL("postgres"))), newReceiver(t), &fence{}
	target.Config.Handler = fence.before(target.Config.Handler)
	n.route("billing", "webhook", target.URL, billing)
	config := billingSecret + n.brokers()
	n.daemon(config)
	n.emit(1, 10)
	n.until("10 events arrive", func() bool { return target.events() == 10 })

	// A backup of the data directory, as a snapshot of the volume makes it.
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(home, "backup")
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", dir, backup).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Remove(filepath.Join(backup, "data", "postmaster.pid")); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Pool.Reset()
	n.emit(11, 20)
	n.until("20 events arrive", func() bool { return target.events() == 20 })

	other := n.restored(testserver.New(t, devpg.Options{Dir: backup}))
	if causes, text, _ := n.screen(); len(causes) > 0 {
		t.Errorf("one copy alone:\n%s", text)
	}
	// However often the original has claimed since, as after a slow restart: the target can tell the two by their epochs.
	other.exec(`update tidemark.heartbeat set lease_epoch = lease_epoch + 10 where executor_id = tidemark.executor_id('default', 'outbox', 0)`)
	other.daemon(config)
	n.happens()
	other.began = n.began
	other.exec(`select tidemark.emit('shop', 'order.paid', key => 'copy' || i) from generate_series(1, 10) i`)
	n.until("the copy delivers, or is refused", func() bool { return fence.seen() })
	n.emit(21, 60)
	const found = `its target gets events of another copy of this database too, and refuses ours: .*another copy of this database delivers here: epoch \d+`
	n.sees("bad", "two_copies billing", found, `, \d+ wait`)
	other.exec(`select tidemark.emit('shop', 'order.paid', key => 'copy' || i) from generate_series(11, 20) i`)
	c := other.sees("bad", "two_copies billing", found, `, \d+ wait`)

	// Brokers compare nothing: the copies leave marks there for each other.
	n.happens()
	other.began = n.began
	for _, broker := range []string{"two_copies kafka main", "two_copies nats bus"} {
		for _, screen := range []*night{n, other} {
			screen.sees("bad", broker, `another copy of this database is live there too: since 20\d\d-.* marks come that no daemon of this one left`)
		}
	}

	other.mend(c)
	other.gone("two_copies")
	fence.forgets()
	n.gone("two_copies")
	n.until("all events of the original arrive", func() bool {
		return n.value(`select (count(*) = 0)::text from tidemark.pending`) == "true"
	})
	if dead := n.value(`select count(*)::text from tidemark.dead_letter`); dead != "0" {
		t.Errorf("%s events died", dead)
	}
}

// brokers starts a Kafka and a NATS, with a route to each. It returns the configuration of their connections.
func (n *night) brokers() string {
	n.t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "shop"))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(cluster.Close)
	bus, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: n.t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		n.t.Fatal(err)
	}
	bus.Start()
	n.t.Cleanup(func() { bus.Shutdown(); bus.WaitForShutdown() })
	conn, err := nats.Connect(bus.ClientURL(), nats.RetryOnFailedConnect(true))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := js.CreateStream(n.t.Context(), jetstream.StreamConfig{Name: "SHOP", Subjects: []string{"shop"}, Storage: jetstream.MemoryStorage}); err != nil {
		n.t.Fatal(err)
	}
	n.route("to_kafka", "kafka", "shop", "")
	n.route("to_nats", "nats", "shop", "")
	return fmt.Sprintf("connections: {main: {kind: kafka, brokers: [%q]}, bus: {kind: nats, url: %q}}\n", cluster.ListenAddrs()[0], bus.ClientURL())
}

func (f *fence) seen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.highest > 1
}

// restored is the same database on another server.
func (n *night) restored(server *devpg.Server) *night {
	n.t.Helper()
	copied := &tidemarktest.DB{URL: server.URL(n.Name), Name: n.Name}
	var err error
	if copied.Pool, err = pgxpool.New(n.t.Context(), copied.URL); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(copied.Pool.Close)
	return &night{DB: copied, t: n.t, url: copied.URL}
}
