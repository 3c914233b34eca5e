package test

import (
	"regexp"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const (
	blamedSession  = `^pid \d+, application "forgotten report", user postgres, in its transaction for \d\d:\d\d:\d\d$`
	blamedPrepared = `^prepared transaction "held [^"]+" of postgres, for \d\d:\d\d:\d\d$`
)

// What holds others up is named, session or prepared transaction: for the fence of the log, and for locks on a table.
func TestBlame(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, held := open(t, db, "watch"), open(t, db, "forgotten report")
	s.exec(`create table orders (id int primary key) partition by range (id);
		create table orders_1 partition of orders for values from (0) to (9); create table others (id int);
		select tidemark.type_set('test', 'tick')`)
	want := func(what, pattern string) {
		t.Helper()
		for _, sql := range []string{`tidemark.fence_blame(tidemark.fence_now())`, `tidemark.lock_blame('orders')`} {
			if got := one[string](s, `select coalesce(`+sql+`, '')`); !regexp.MustCompile(pattern).MatchString(got) {
				t.Errorf("%s: %s is %q", what, sql, got)
			}
		}
	}
	want("nobody", "^$")
	held.begin()
	held.emit(1)
	held.exec(`insert into orders_1 values (1)`) // locks the partition alone
	want("a session", blamedSession)
	gid := "held " + db.Name
	held.prepare(gid)
	want("a prepared transaction", blamedPrepared)
	held.exec("rollback prepared '" + gid + "'")
	want("nobody any more", "^$")

	// Readers hold up no writer, nor do writers of another table.
	held.begin()
	held.exec(`insert into others values (1)`)
	held.exec(`select from orders for update`)
	if got := one[string](s, `select coalesce(tidemark.lock_blame('orders'), '')`); got != "" {
		t.Errorf("a reader is blamed: %s", got)
	}
	held.rollback()
}

// A contract goes by the names of columns, also of one that is renamed beneath it.
func TestCaptureColumnRenamed(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, state text, place text)`)
	s.exec(`update tidemark.inbound_route set payload_columns = '{state}' where sql_event = 'insert'`)
	s.exec(`insert into orders values (1, 'new', 'x')`)
	s.wantEvents(`insert 1 {"state": "new"}`)
	s.exec(`alter table orders rename state to status`)
	s.refused("TM005", "public.orders has no column state, which the contract names", `insert into orders values (2, 'new', 'x')`)
	s.wantRows(`select status || ' ' || problem from tidemark.capture_check() where status = 'fail'`, "fail public.orders has no column state that can be shown")
	s.exec(`alter table orders rename place to state`)
	s.exec(`insert into orders values (3, 'new', 'x')`)
	s.wantEvents(`insert 3 {"state": "x"}`)
	s.wantRows(`select id::text from orders order by 1`, "1", "3")
}
