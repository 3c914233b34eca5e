package daemon_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A meter is a proxy between a daemon and its server. It counts the statements.
type meter struct {
	net.Listener
	server     string
	statements atomic.Int64
	running    sync.WaitGroup
}

// metered returns the address of the database behind a meter.
func metered(t *testing.T, address string) (*meter, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{server: u.Host}
	if m.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	m.running.Go(m.serve)
	t.Cleanup(func() { _ = m.Close(); m.running.Wait() })
	u.Host = m.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return m, u.String()
}

func (m *meter) serve() {
	for {
		client, err := m.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", m.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		m.running.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
		m.running.Go(func() { m.count(server, client); _ = server.Close() })
	}
}

// count copies the messages of a client: the first one has no type; each later one has a type, a length and a body.
func (m *meter) count(to io.Writer, from io.Reader) {
	for head := make([]byte, 4); ; head = make([]byte, 5) {
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		if head[0] == 'Q' || head[0] == 'E' {
			m.statements.Add(1)
		}
		if _, err := to.Write(head); err != nil {
			return
		}
		if _, err := io.CopyN(to, from, int64(binary.BigEndian.Uint32(head[len(head)-4:]))-4); err != nil {
			return
		}
	}
}

// A hundred workers asleep cost one statement a second. Each still beats, and finds new work at once.
func TestIdleDaemon(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, `select tidemark.gate_set('notify.bridge_enabled', true)`)
	execSQL(t, db, `create table taken (name text, id text);
create function take(rows anyarray) returns jsonb language plpgsql as $$
begin
    insert into taken select pg_typeof(rows)::text, to_jsonb(r) ->> 'id' from unnest(rows) r;
    if exists (select from unnest(rows) r where to_jsonb(r) ->> 'note' = 'refuse') then raise 'not now'; end if;
    return null;
end $$`)
	const tables, outboxes, all = 15, 40, 15*4 + 40 + 1
	for i := range tables {
		execSQL(t, db, fmt.Sprintf(`create table t%[1]d (id bigint generated always as identity primary key, at timestamptz default clock_timestamp(), note text); create index on t%[1]d (at, id);
select tidemark.source_set('t%[1]d', '{"table": "public.t%[1]d", "id_column": "id", "timestamp_column": "at", "margin": "1 millisecond", "safety": "%[2]s"}');
select tidemark.worker_set('t%[1]d', '{"source": "table", "handler": "sql", "handler_ref": "public.take", "shards": 4, "retry_policy": {"base_seconds": 0.2, "max_attempts": 3}}');
select tidemark.worker_source_add('t%[1]d', 't%[1]d'), tidemark.gate_set('worker.t%[1]d.enabled', true)`, i, []string{"sequence", "clock", "declared"}[i%3]))
	}
	for i := range outboxes {
		execSQL(t, db, fmt.Sprintf(`select tidemark.worker_set('o%[1]d'), tidemark.gate_set('worker.o%[1]d.enabled', true)`, i))
	}
	m, address := metered(t, db.URL)
	c := settings(db)
	c.Database.URL = config.NewSecret(address)
	c.Lease = 30 * time.Second
	run(t, c)
	number := func(sql string) (n int64) {
		if err := db.Pool.QueryRow(context.Background(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// The lowest count of all workers.
	const ticks = `select min(ticks_total) from tidemark.heartbeat where executor_id like '%/%/%'`
	tick := func(n int64) {
		t.Helper()
		for last := number(ticks) + n; number(ticks) < last; {
			eventually(t, "another tick of all", func() bool { return number(ticks) >= last })
		}
	}
	eventually(t, "all to have a lease", func() bool {
		return number(`select count(*) from tidemark.heartbeat where executor_id like '%/%/%' and lease_owner is not null`) == all
	})
	eventually(t, "all to fall asleep", func() bool {
		before := m.statements.Load()
		tick(2)
		return m.statements.Load()-before <= 4
	})

	// On a machine so busy that a poll comes seconds late, the workers look for themselves until it comes.
	eventually(t, "ten ticks of all for a statement a second", func() bool {
		before, began := m.statements.Load(), time.Now()
		tick(5)
		tick(5)
		took, cost := time.Since(began), m.statements.Load()-before
		t.Logf("%d workers asleep: %d statements in %s", all, cost, took)
		return float64(cost) <= took.Seconds()+1
	})

	prompt := func(what string, ok func() bool) {
		t.Helper()
		before := number(ticks) // one a second, or as the machine can
		eventually(t, what, ok)
		if took := number(ticks) - before; took > 5 {
			t.Errorf("%s took %d polls", what, took)
		}
	}
	for i := range 3 {
		execSQL(t, db, fmt.Sprintf(`insert into t%d default values`, i))
		prompt("a row to be taken", func() bool {
			return number(fmt.Sprintf(`select count(*) from taken where name = 't%d[]'`, i)) == 1
		})
	}
	execSQL(t, db, `insert into t3 (note) values ('refuse')`)
	prompt("a row to be tried three times", func() bool { return number(`select count(*) from tidemark.dead_letter where source = 't3'`) == 1 })
	execSQL(t, db, `insert into t4 (at) values (null); update tidemark.worker_cursor set sweep = sweep || jsonb_build_object('done_at', now() - interval '1 hour') where source = 't4'`)
	execSQL(t, db, `insert into t5 (at) values (null); update tidemark.worker_cursor set sweep = sweep || jsonb_build_object('done_at', now() - interval '1 hour') where source = 't5'`)
	prompt("a sweep", func() bool { return number(`select count(*) from taken where name = 't5[]'`) == 1 })
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick', '{}')`)
	prompt("an event to be delivered", func() bool { return r.count() == 1 })
	execSQL(t, db, `select tidemark.gate_set('worker.t0.enabled', false)`)
	prompt("a closed gate", func() bool {
		return number(`select count(*) from tidemark.heartbeat where executor_id like 't0/%' and lease_owner is not null`) == 0
	})
	execSQL(t, db, `insert into t0 default values; select tidemark.gate_set('worker.t0.enabled', true)`)
	prompt("an open gate", func() bool { return number(`select count(*) from taken where name = 't0[]'`) == 2 })
}
