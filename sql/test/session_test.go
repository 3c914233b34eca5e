package test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A session is a named connection in a scripted interleaving. Each call is one statement; nothing waits but
// for locks.
type session struct {
	t    *testing.T
	name string
	conn *pgx.Conn
}

func open(t *testing.T, db *tidemarktest.DB, name string) session {
	t.Helper()
	s := session{t, name, db.Connect(t)}
	s.exec(fmt.Sprintf("set application_name = '%s'", name))
	return s
}

func (s session) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.conn.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatalf("%s: %s: %v", s.name, sql, err)
	}
}

// allowAnyTarget lets routes in that the table refuses, as a restored dump or an owner can bring them.
func (s session) allowAnyTarget() {
	s.t.Helper()
	s.exec(`alter table tidemark.outbound_route disable trigger outbound_route_target`)
}

// notification is the next that comes on the channels it listens to.
func (s session) notification() *pgconn.Notification {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	n, err := s.conn.WaitForNotification(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s session) begin()             { s.t.Helper(); s.exec("begin") }
func (s session) commit()            { s.t.Helper(); s.exec("commit") }
func (s session) rollback()          { s.t.Helper(); s.exec("rollback") }
func (s session) prepare(gid string) { s.t.Helper(); s.exec("prepare transaction '" + gid + "'") }
func (s session) emit(n int)         { s.t.Helper(); s.emitKey(n, "") }
func (s session) emitKey(n int, key string) {
	s.t.Helper()
	s.exec(`select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', $1::int), key => nullif($2, ''))`, n, key)
}

// A summary is what route_worker_run returns.
type summary struct {
	Status    string
	Gate      string
	Detail    string
	Events    int
	Late      int
	Watermark int64
	Fallbacks int
	BlockedBy string `json:"blocked_by"`
	Decided   map[string]int
}

// pass runs the worker once.
func (s session) pass() summary { s.t.Helper(); return s.passLimit(5000) }

func (s session) passLimit(limit int) summary {
	s.t.Helper()
	var text string
	err := s.conn.QueryRow(context.Background(), `select tidemark.route_worker_run('default', $1)::text`, limit).Scan(&text)
	if err != nil {
		s.t.Fatalf("%s: pass: %v", s.name, err)
	}
	var result summary
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		s.t.Fatal(err)
	}
	return result
}

// received is what the application got, in the order in which it got it.
func (s session) received() []int {
	s.t.Helper()
	rows, err := s.conn.Query(context.Background(), `select n from received order by at`)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func (s session) wantReceived(want ...int) {
	s.t.Helper()
	if got := s.received(); !slices.Equal(got, want) {
		s.t.Errorf("received %v, want %v", got, want)
	}
}

// holes is every number that the cursor still looks out for.
func (s session) holes() string {
	s.t.Helper()
	var got string
	err := s.conn.QueryRow(context.Background(),
		`select (holes + fenced)::text from tidemark.worker_cursor where worker = 'default'`).Scan(&got)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func (s session) wantHoles(want string) {
	s.t.Helper()
	if got := s.holes(); got != want {
		s.t.Errorf("holes %s, want %s", got, want)
	}
}

// receiver is an application whose function takes every event of domain test.
const receiver = `
select tidemark.type_set('test', 'tick');
create table received (at bigint generated always as identity primary key, event_id uuid, n int, key text);
create function receive(event jsonb) returns void language sql as $$
    insert into received (event_id, n, key)
    values ((event ->> 'event_id')::uuid, (event -> 'payload' ->> 'n')::int, event ->> 'key') $$;
select tidemark.stage_set('live', 'test');
select tidemark.route_set('app', '{"domain": "test", "target_kind": "sql", "target_ref": "public.receive",
                                   "enabled": true, "dry_run": false}');
select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true);`

// live prepares db so that worker default delivers to the receiver, and returns the worker's session.
func live(t *testing.T, db *tidemarktest.DB) session {
	t.Helper()
	w := open(t, db, "worker")
	w.exec(receiver)
	return w
}

// rewrite replaces a function by the same with old replaced by new in its body: how it would be without a
// part of the rule, or with a pause at one.
func (s session) rewrite(function, old, new string) {
	s.t.Helper()
	var definition string
	err := s.conn.QueryRow(context.Background(),
		`select pg_get_functiondef(oid) from pg_proc where proname = $1 and pronamespace = 'tidemark'::regnamespace`,
		function).Scan(&definition)
	if err != nil {
		s.t.Fatal(err)
	}
	if strings.Count(definition, old) != 1 {
		s.t.Fatalf("%s: %q is there %d times, must be once", function, old, strings.Count(definition, old))
	}
	s.exec(strings.Replace(definition, old, new, 1))
}

// waitsFor returns when the session waits for a lock: it polls what the server says, for a while.
func (s session) waitsFor(other session) {
	s.t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * time.Minute); ; <-poll.C {
		var waiting bool
		err := s.conn.QueryRow(s.t.Context(),
			`select coalesce(bool_or(cardinality(pg_blocking_pids(pid)) > 0), false) from pg_stat_activity where pid = $1`,
			other.conn.PgConn().PID()).Scan(&waiting)
		switch {
		case err != nil:
			s.t.Fatalf("waiting for %s: %v", other.name, err)
		case waiting:
			return
		case time.Now().After(deadline):
			s.t.Fatalf("%s does not wait for a lock", other.name)
		}
	}
}
