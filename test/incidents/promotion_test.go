package incidents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// promotion is a primary with a standby, a daemon whose address names both, and a receiver.
type promotion struct {
	*night
	primary, standby *devpg.Server

	mu       sync.Mutex
	received []string // event ids, each when it first came
	seen     map[string]bool
}

func newPromotion(t *testing.T, synchronous bool) *promotion {
	t.Helper()
	primary := testserver.New(t, devpg.Options{Settings: map[string]string{"wal_level": "replica", "max_wal_senders": "4"}})
	p := &promotion{night: begin(t, tidemarktest.NewDBAt(t, primary.URL("postgres"))), primary: primary, seen: map[string]bool{}}
	receiver := httptest.NewServer(p)
	t.Cleanup(receiver.Close)
	p.route("orders", "webhook", receiver.URL, `, "options": {"unsigned": true}`)
	p.standby = testserver.Standby(t, primary, "second", nil)
	p.Pool.Reset() // the primary was restarted
	p.until("the standby follows", func() bool {
		return p.value(`select count(*)::text from pg_stat_replication where state = 'streaming'`) == "1"
	})
	if synchronous {
		p.exec(`alter system set synchronous_standby_names = 'second'`)
		p.exec(`select pg_reload_conf()`)
		p.until("it is synchronous", func() bool {
			return p.value(`select count(*)::text from pg_stat_replication where sync_state = 'sync'`) == "1"
		})
	}
	own := p.url
	p.url = fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable&target_session_attrs=read-write", primary.Port(), p.standby.Port(), p.Name)
	p.daemon("")
	p.url = own
	return p
}

// ServeHTTP takes events.
func (p *promotion) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var event struct{ ID string }
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.seen[event.ID] {
		p.seen[event.ID] = true
		p.received = append(p.received, event.ID)
	}
}

func (p *promotion) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.received)
}

// cutOff ends the replication.
func (p *promotion) cutOff() {
	p.t.Helper()
	standby, err := pgx.Connect(p.t.Context(), p.standby.URL(p.Name))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = standby.Close(context.Background()) }()
	for _, statement := range []string{`alter system set primary_conninfo = ''`, `select pg_reload_conf()`} {
		if _, err := standby.Exec(p.t.Context(), statement); err != nil {
			p.t.Fatal(err)
		}
	}
	p.until("the standby is cut off", func() bool { return p.value(`select count(*)::text from pg_stat_replication`) == "0" })
}

// promotes kills the primary and promotes the standby.
func (p *promotion) promotes() {
	p.t.Helper()
	if err := p.primary.Kill(); err != nil {
		p.t.Fatal(err)
	}
	pool, err := pgxpool.New(p.t.Context(), p.standby.URL(p.Name))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(pool.Close)
	p.Pool = pool
	if p.value(`select pg_promote()::text`) != "true" {
		p.t.Fatal("the standby was not promoted")
	}
}

// ids are those of the log, in its order.
func (p *promotion) ids() (ids []string) {
	p.t.Helper()
	rows, _ := p.Pool.Query(p.t.Context(), `select event_id::text from tidemark.outbox where domain = 'shop' order by seq`)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		p.t.Fatal(err)
	}
	return ids
}

// delivers waits until all events of the log came to the receiver, and all is on record.
func (p *promotion) delivers() {
	p.t.Helper()
	p.until("what the log has is delivered and on record", func() bool {
		return p.value(`select count(*)::text from tidemark.outbox e where e.domain = 'shop' and not exists (
			select from tidemark.event_evidence(e.seq) d where d.outcome = 'sent')`) == "0"
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range p.ids() {
		if !p.seen[id] {
			p.t.Errorf("%s is in the log and was not delivered", id)
		}
	}
	if got := p.value(`select concat((select count(*) from tidemark.audit where action = 'server_changed'), ' ',
		(select string_agg(kind, ' ') from tidemark.finding where kind = 'cursor_lease_conflict'))`); got != "1 " {
		p.t.Errorf("on record: %s", got)
	}
	if failed := p.value(`select coalesce(string_agg("check" || ' ' || detail, '; '), '') from tidemark.verify() where status = 'fail'`); failed != "" {
		p.t.Error(failed)
	}
}

// The primary dies under load, and its synchronous standby is promoted: what was acknowledged is in the log and is delivered, and what
// was delivered is in the log, also where an application did not wait for the standby.
func TestSynchronousStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	p := newPromotion(t, true)
	const emitters = 4
	acknowledged := make([][]string, emitters)
	var wg sync.WaitGroup
	for e := range emitters {
		wg.Go(func() {
			conn, err := pgx.Connect(context.Background(), p.primary.URL(p.Name))
			if err != nil {
				return
			}
			defer func() { _ = conn.Close(context.Background()) }()
			for {
				var id string
				if err := conn.QueryRow(context.Background(), `select tidemark.emit('shop', 'order.paid', key => $1)::text`, fmt.Sprint(e)).Scan(&id); err != nil {
					return // the primary is gone
				}
				acknowledged[e] = append(acknowledged[e], id)
			}
		})
	}
	p.until("events are delivered", func() bool { return p.count() > 200 })
	p.cutOff()
	p.exec(`begin; set local synchronous_commit = local; select tidemark.emit('shop', 'order.paid', key => 'local'); commit`)
	p.until("the daemon waits for the standby", func() bool {
		return p.value(`select (count(*) > 0)::text from pg_stat_activity where wait_event = 'SyncRep' and query not like '%tidemark.emit(%'`) == "true"
	})
	p.promotes()
	wg.Wait()
	p.emit(1, 20)
	p.delivers()
	ids := p.ids()
	all := strings.Join(ids, " ")
	kept := map[string]bool{}
	for _, id := range ids {
		kept[id] = true
	}
	n := 0
	for _, of := range acknowledged {
		for _, id := range of {
			n++
			if !kept[id] {
				t.Errorf("%s was acknowledged and is not in the log", id)
			}
		}
	}
	for _, id := range p.received {
		if !strings.Contains(all, id) {
			t.Errorf("%s was delivered and is not in the log", id)
		}
	}
	t.Logf("%d acknowledged, %d in the log, %d delivered before the failover", n, len(ids), p.count()-20)
}

// The primary dies, and a standby is promoted that has not got its last commits: events that were delivered are not in the log, and
// their numbers are used again. What the log has is delivered once more or for the first time, and all checks hold.
func TestAsynchronousStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	p := newPromotion(t, false)
	p.emit(1, 20)
	p.until("they are delivered", func() bool { return p.count() == 20 })
	p.until("the standby has them", func() bool {
		return p.value(`select (replay_lsn >= pg_current_wal_lsn())::text from pg_stat_replication`) == "true"
	})
	p.cutOff()
	p.emit(21, 100)
	p.until("the primary's last events are delivered", func() bool { return p.count() == 100 })
	last := p.value(`select max(seq)::text from tidemark.outbox where domain = 'shop'`)
	p.promotes()
	if n := len(p.ids()); n != 20 {
		t.Fatalf("%d events are left", n)
	}
	p.emit(101, 200)
	p.delivers()
	lost, kept := 0, strings.Join(p.ids(), " ")
	for _, id := range p.received {
		if !strings.Contains(kept, id) {
			lost++
		}
	}
	if used := p.value(`select count(*)::text from tidemark.outbox where domain = 'shop' and key::int > 100 and seq <= ` + last); lost != 80 || used == "0" {
		t.Errorf("%d delivered events are lost, and %s of the numbers are used again", lost, used)
	}
}
