package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// outsider is a login without any grant of Tidemark's.
func outsider(t *testing.T, db *tidemarktest.DB) session {
	t.Helper()
	s := open(t, db, "outsider")
	s.exec(`do $$ begin create role tidemark_test_outsider login; exception when duplicate_object or unique_violation then null; end $$`)
	s.exec(`set session authorization tidemark_test_outsider`)
	return s
}

// C17: any login may hold an advisory lock whose key it knows, and those of an open source program are known. It holds
// all of those that operators' functions took, and everything goes on.
func TestAdvisoryLocksStallNobody(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	out, s := outsider(t, db), live(t, db)
	for _, key := range []string{
		"7233185930371", "7233185930372", "1953064301, 1", "1953064301, 2", "1953064301, 100", "1953064302, hashtext('x')",
		"hashtextextended('tidemark pack p', 0)",
	} {
		out.exec(`select pg_advisory_lock(` + key + `)`)
	}
	s.exec(`set statement_timeout = '30s'; create table public.orders (id int primary key)`)
	s.wantRows(`select action || ' ' || object from tidemark.maintain() where action = 'postponed'`)
	s.register("x")
	s.silentFor("x", 40)
	s.check("x silent warning told")
	s.exec(`select tidemark.inbound_route_set('orders', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert",
		"domain": "test", "type": "tick", "enabled": true, "dry_run": false}')`)
	s.exec(`select tidemark.capture_attach('public.orders', 'test')`)
	s.exec(`alter table public.orders add column note text; select tidemark.capture_refresh()`)
	s.exec(`update tidemark.code set checksum = 'old' where object = 'emit'`)
	if report, err := migrate.Up(t.Context(), s.conn); err != nil || report.Recreated == 0 {
		t.Errorf("Up: %+v, %v", report, err)
	}
	s.emit(1)
	s.exec(`insert into public.orders values (1)`)
	equal(t, "decided", s.pass().Decided["sent"], 2)
}

// The one advisory lock that is left is a hint, which emit tries and never waits for.
func TestAdvisoryLocksAreHints(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	s.wantRows(`select p.proname::text from `+ours+` and p.prosrc ~ 'pg_(try_)?advisory_(xact_)?lock' order by 1`, "capture_template", "emit", "emit_all")
	s.wantRows(`select p.proname::text from ` + ours + ` and p.prosrc ~ 'pg_advisory_(xact_)?lock'`)
}

// C17: an outsider holds the lock that says that a worker sleeps, shared as a worker or alone. No emitter waits or
// fails, and with the bridge's gate closed no commit notifies: a transaction that had could not be prepared.
func TestWakeLockHeldByAnOutsider(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"pg_advisory_lock", "pg_advisory_lock_shared"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			out, w := outsider(t, db), live(t, db)
			out.exec(`select ` + how + `(1953064301, 1)`)
			w.exec(`set statement_timeout = '30s'; create table public.orders (id int primary key)`)
			w.exec(`select tidemark.inbound_route_set('orders', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert",
				"domain": "test", "type": "tick", "enabled": true, "dry_run": false}'); select tidemark.capture_attach('public.orders', 'test')`)
			w.begin()
			w.emit(1)
			w.exec(`select * from tidemark.emit_many('[{"domain": "test", "type": "tick", "payload": {"n": 2}}]'); insert into public.orders values (3)`)
			gid := fmt.Sprintf("%s %s", db.Name, how)
			w.prepare(gid)
			w.exec(`commit prepared '` + gid + `'`)
			equal(t, "decided", w.pass().Decided["sent"], 3)
		})
	}
}

// A session that reads what a check found, in an open transaction, holds up the telling of that executor only: not
// another's, no worker, and no second check, whatever the executor's history.
func TestStaleCheckReadAtLeisure(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	a, b := open(t, db, "a"), open(t, db, "b")
	b.exec(`set lock_timeout = '1ms'`)
	a.register("x")
	a.silentFor("x", 40)
	a.begin()
	a.check("x silent warning told")
	b.register("y")
	b.silentFor("y", 40)
	b.check("y silent warning told")
	b.exec(`select tidemark.heartbeat_write('x', 'ok')`)
	a.commit()
	b.wantRows(`select executor_id from tidemark.heartbeat h where not exists (select from tidemark.silence s where s.executor_id = h.executor_id)`)
}
