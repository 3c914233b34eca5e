package test

import (
	"context"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// refuses runs a deletion that must be refused with that message, by a member of tidemark_admin.
func (s tailing) refuses(message, sql string) {
	s.t.Helper()
	err := s.session.try(sql)
	if err == nil || err.Code != "TM005" || err.Message != message {
		s.t.Errorf("%s: %v, want TM005 %s", sql, err, message)
	} else if err.Hint == "" {
		s.t.Errorf("%s: no hint", sql)
	}
}

const deletedRoute = `select tidemark.stage_set('live', 'a test'); select tidemark.type_set('shop', 'order');
	create table public.inbox (n bigserial, event jsonb);
	create function public.take(event jsonb) returns void language plpgsql security definer as $$
	begin
		if event -> 'payload' ? 'bad' then raise 'no'; end if;
		insert into public.inbox (event) values (event);
	end $$;
	select tidemark.worker_set('w');
	select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.w.enabled', true);
	select tidemark.route_set('r', '{"worker": "w", "domain": "shop", "type": "order", "target_kind": "sql", "target_ref": "public.take",
		"enabled": true, "dry_run": false, "retry_policy": {"max_attempts": 1}}')`

// What owes something is not deleted; what is deleted leaves its evidence behind, under its name; and what is made
// again under that name goes on with it.
func TestDelete(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	super := open(t, db, "superuser")
	super.exec(deletedRoute)
	s := login(t, db, "admin", "tidemark_admin")
	super.exec(`select tidemark.emit_strict('shop', 'order'), tidemark.emit_strict('shop', 'order', '{"bad": 1}')`)
	super.exec(`select tidemark.route_worker_run('w')`)
	const evidence = `select concat_ws(' ', worker, route_code, seq, attempt_no, outcome) from tidemark.route_attempt order by seq, attempt_no`
	super.wantRows(evidence, "w r 1 1 sent", "w r 2 1 failed")

	s.wantRefused("TM004", `select tidemark.route_delete('nope', 'why')`)
	s.wantRefused("TM005", `select tidemark.route_delete('r', ' ')`)
	s.refuses("route r cannot be deleted: it is enabled", `select tidemark.route_delete('r', 'why')`)
	s.refuses("worker w cannot be deleted: route r is served by it", `select tidemark.worker_delete('w', 'why')`)
	s.refuses("type shop/order cannot be deleted: route r is for it", `select tidemark.type_delete('shop', 'order', 'why')`)
	s.refuses("domain shop cannot be deleted: event type order is in it", `select tidemark.domain_delete('shop', 'why')`)
	s.exec(`select tidemark.route_set('r', '{"enabled": false}')`)
	s.refuses("route r cannot be deleted: it has open dead letters", `select tidemark.route_delete('r', 'why')`)
	s.exec(`select tidemark.dead_letter_discard(1, 'a test')`)
	s.exec(`select tidemark.route_delete('r', 'not needed')`)
	super.wantRows(evidence, "w r 1 1 sent", "w r 2 1 failed")
	super.wantRows(`select route_code from tidemark.event_evidence(2)`, "r")
	s.wantRows(`select concat_ws(' ', action, reason) from tidemark.audit where object = 'outbound_route r' order by id desc limit 1`, "delete not needed")

	s.exec(`select tidemark.gate_set('domain.shop.enabled', false); select tidemark.type_delete('shop', 'order', 'why')`)
	s.refuses("domain shop cannot be deleted: its gate is closed", `select tidemark.domain_delete('shop', 'why')`)
	s.exec(`select tidemark.gate_set('domain.shop.enabled', true); select tidemark.domain_delete('shop', 'why')`)
	super.wantRows(`select count(*)::text from tidemark.setting where key like 'domain.%'`, "0")
	s.refuses("domain system cannot be deleted: it is Tidemark's own", `select tidemark.domain_delete('system', 'why')`)

	super.exec(`update tidemark.heartbeat set lease_owner = 'host-7', lease_until = 'infinity' where executor_id = 'w/outbox/0'`)
	s.refuses("worker w cannot be deleted: host-7 runs it", `select tidemark.worker_delete('w', 'why')`)
	super.exec(`update tidemark.heartbeat set lease_until = '-infinity' where executor_id = 'w/outbox/0'`)
	s.exec(`select tidemark.worker_delete('w', 'why')`)
	super.wantRows(evidence, "w r 1 1 sent", "w r 2 1 failed")
	super.wantRows(`select key from tidemark.setting where key like 'worker.w.%' union all
		select executor_id from tidemark.heartbeat where executor_id like 'w/%'`)

	// Again, from the start of the log: the event that was sent is not sent a second time.
	s.exec(`select tidemark.type_set('shop', 'order'); select tidemark.worker_set('w', starts => 'start'); select tidemark.gate_set('worker.w.enabled', true);
		select tidemark.route_set('r', '{"worker": "w", "domain": "shop", "type": "order", "target_kind": "sql", "target_ref": "public.take",
			"enabled": true, "dry_run": false}');
		select tidemark.emit_strict('shop', 'order')`)
	super.exec(`select tidemark.route_worker_run('w')`)
	super.wantRows(evidence, "w r 1 1 sent", "w r 2 1 failed", "w r 3 1 sent")
	super.wantRows(`select string_agg(event ->> 'seq', ' ' order by n) from public.inbox`, "1 3")
	super.wantRows(`select count(*)::text from tidemark.former_name`, "0")
}

// A pass that is under way when its route is deleted loses nothing and stops nothing.
func TestDeleteRouteInMidPass(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, other := open(t, db, "admin"), open(t, db, "worker")
	s.exec(deletedRoute)
	s.exec(`select tidemark.route_set('r', '{"target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}');
		select tidemark.route_set('other', '{"worker": "w", "domain": "shop", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false}');
		select tidemark.emit_strict('shop', 'order')`)
	other.begin()
	other.exec(`select tidemark.route_worker_run('w')`)
	s.exec(`set lock_timeout = '100ms'`)
	if err := s.try(`select tidemark.route_delete('r', 'why')`); err == nil || err.Code != "55P03" {
		t.Errorf("deleted while a pass stages an event for it: %v", err)
	}
	other.commit()
	s.exec(`select tidemark.route_set('r', '{"enabled": false}')`)
	(tailing{s}).refuses("route r cannot be deleted: deliveries of it are pending", `select tidemark.route_delete('r', 'why')`)
	s.wantRows(`select string_agg(event ->> 'seq', ' ') from public.inbox`, "1")
}

// A route that is deleted while a page is acted on: the page is settled all the same, or what the other route has been sent
// would be sent again.
func TestDeleteRouteBeforeSettle(t *testing.T) {
	t.Parallel()
	for _, outcome := range []string{"pending", "failed"} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			s := open(t, tidemarktest.NewDB(t), "admin")
			s.exec(deletedRoute)
			s.exec(`select tidemark.route_set(r, '{"worker": "w", "domain": "shop", "target_kind": "webhook", "target_ref": "https://example.com/",
				"options": {"unsigned": true}, "enabled": true, "dry_run": false}') from unnest('{r,other}'::text[]) r;
				select tidemark.emit_strict('shop', 'order'); select tidemark.claim('w', 'me', '1 hour');
				create table page as select * from tidemark.pass_read('w', 1, 9, null, null, '{}', '{}');
				select tidemark.route_set('r', '{"enabled": false}'); select tidemark.route_delete('r', 'why')`)
			s.wantRows(`select (tidemark.pass_settle('w', 1, p.batch::tidemark.batch, p.evidence::tidemark.evidence[], array[
				row(1, true, '`+outcome+`', 'HTTP 500', 'boom', '{[1,2)}', 5), row(2, true, 'sent', null, null, '{[1,2)}', 0)]::tidemark.result[], 1))
				->> 'status' from page p where p.batch is not null`, "ran")
			s.wantRows(`select concat_ws(' ', route_code, outcome, reason) from tidemark.route_attempt order by 1`, "other sent", "r skipped route_deleted")
			s.wantRows(`select 'pending' from tidemark.pending union all select 'letter' from tidemark.dead_letter`)
		})
	}
}

// The evidence of a deleted route has its code: another route cannot take it, which could not be deleted then.
func TestRenamedToADeletedName(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "superuser")
	s.exec(deletedRoute)
	admin := login(t, db, "admin", "tidemark_admin")
	admin.exec(`select tidemark.route_set('r', '{"enabled": false}'); select tidemark.route_delete('r', 'why')`)
	admin.exec(`select tidemark.route_set('other', '{"worker": "w", "domain": "shop", "target_kind": "sql", "target_ref": "public.take"}')`)
	admin.refuses(`route "r" was deleted, and its evidence has that name`, `update tidemark.outbound_route set route_code = 'r' where route_code = 'other'`)
	admin.exec(`update tidemark.outbound_route set route_code = 'another' where route_code = 'other'; select tidemark.route_delete('another', 'why')`)
}

func TestDeleteInboundRoute(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tailing{open(t, db, "admin")}
	s.exec(`create table public.orders (id int primary key); select tidemark.type_set('shop', 'order');
		select tidemark.inbound_route_set('new', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "shop", "type": "order"}');
		select tidemark.capture_attach('public.orders', 'a test')`)
	s.refuses("inbound route new cannot be deleted: public.orders has its trigger", `select tidemark.inbound_route_delete('new', 'why')`)
	s.refuses("type shop/order cannot be deleted: inbound route new makes it", `select tidemark.type_delete('shop', 'order', 'why')`)
	gap := func(table string) {
		s.exec(`insert into tidemark.capture_gap (relation, name, since, snapshot, detail) values ('public.orders'::regclass, '` + table + `', now(), pg_current_snapshot(), 'a test')`)
	}
	s.exec(`select tidemark.capture_detach('public.orders', 'why')`)
	gap("public.others")
	gap("public.orders")
	s.refuses("inbound route new cannot be deleted: public.orders has an open gap", `select tidemark.inbound_route_delete('new', 'why')`)
	s.exec(`delete from tidemark.capture_gap where name = 'public.orders'`) // another table's stays
	s.exec(`select tidemark.inbound_route_delete('new', 'why');
		select tidemark.type_delete('shop', 'order', 'why'); insert into public.orders values (1)`)
	s.wantRows(`select route_code from tidemark.inbound_route`)
}

// A gate that is being set keeps what it is of from being deleted: a gate without a worker would be that of the next one of its name.
func TestGateOutlivesNothing(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	a, b, eye := open(t, db, "a"), open(t, db, "b"), open(t, db, "eye")
	a.exec(`select tidemark.worker_set('w'), tidemark.domain_set('d', '{}')`)
	deletes := func(gate, statement string) error {
		a.exec(`begin`)
		a.exec(gate)
		ended := make(chan error, 1)
		go func() {
			_, err := b.conn.Exec(context.Background(), statement)
			ended <- err
		}()
		eye.waitsFor(b)
		a.exec(`commit`)
		return <-ended
	}
	if err := deletes(`select tidemark.gate_set('worker.w.enabled', true)`, `select tidemark.worker_delete('w', 'why')`); err != nil {
		t.Error(err)
	}
	eye.wantRows(`select key from tidemark.setting where key = 'worker.w.enabled'`)
	if err := deletes(`select tidemark.gate_set('domain.d.enabled', false)`, `select tidemark.domain_delete('d', 'why')`); err == nil || !strings.Contains(err.Error(), "its gate is closed") {
		t.Error(err)
	}
	eye.wantRows(`select domain from tidemark.domain where domain = 'd'`, "d")
	// To close a gate waits for none who holds the worker.
	a.exec(`begin; select from tidemark.worker where worker = 'default' for update`)
	b.exec(`set lock_timeout = '100ms'; select tidemark.gate_set('worker.default.enabled', false); reset lock_timeout`)
	a.exec(`commit`)
	a.exec(`begin; select tidemark.worker_set('v'); commit; begin; select tidemark.worker_delete('v', 'why')`)
	ended := make(chan error, 1)
	go func() {
		_, err := b.conn.Exec(context.Background(), `select tidemark.gate_set('worker.v.enabled', true)`)
		ended <- err
	}()
	eye.waitsFor(b)
	a.exec(`commit`)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "TM004") {
		t.Error(err)
	}
}
