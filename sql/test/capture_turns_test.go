package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Two of one kind at once: the second maintain returns, and a session that remakes functions of captured tables gives up in time, says
// why, and keeps neither capture nor maintain from work.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	a, b := live(t, db), open(t, db, "b")
	a.exec(`create table public.orders (id int primary key);
		select tidemark.inbound_route_set('orders', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert",
			"domain": "test", "type": "tick", "enabled": true, "dry_run": false}'); select tidemark.capture_attach('public.orders', 'test');
		alter table public.orders add column note text`)
	a.begin()
	a.exec(`select tidemark.capture_make('orders')`)
	err := b.try(`select tidemark.capture_make('orders')`)
	if err == nil || err.Code != "55P03" || err.Message != "another session is making functions of captured tables" {
		t.Errorf("capture_make: %v", err)
	}
	b.exec(`insert into public.orders values (1)`)
	b.wantRows(`select action || ' ' || object from tidemark.maintain() where action = 'postponed'`, "postponed captures")
	a.commit()
	b.wantRows(`select action || ' ' || object from tidemark.maintain() where action = 'postponed'`)

	a.begin()
	a.exec(`select * from tidemark.maintain()`)
	b.wantRows(`select action || ' ' || detail from tidemark.maintain()`, "postponed another call is under way")
	b.emit(1)
	if got := b.pass(); got.Status != "ran" {
		t.Errorf("%+v", got)
	}
	a.commit()
}
