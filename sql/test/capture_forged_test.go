package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// EV8: an emitter may claim any subject and payload. What it writes is no event of a captured table, whatever it says.
func TestForgedEventOfACapture(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, forger := open(t, db, "operator"), open(t, db, "forger")
	s.takesOrders()
	s.exec(`select tidemark.domain_set('shop'), tidemark.type_set('shop', 'order')`)
	s.exec(`insert into orders values (1)`)
	s.takeOrders()
	forger.exec(`set role tidemark_emitter`)
	for _, way := range []string{
		`select tidemark.emit('shop', 'order', %[2]s, subject_table => 'public.orders', subject_ref => '%[1]s')`,
		`select tidemark.emit_many(jsonb_build_array(jsonb_build_object('domain', 'shop', 'type', 'order', 'payload', %[2]s, 'subject_table', 'public.orders',
			'subject_ref', '%[1]s')))`,
		`select tidemark.emit_arrays(array['shop'], array['order'], array[%[2]s], subject_tables => array['public.orders'], subject_refs => array['%[1]s'])`,
	} {
		for _, ref := range []string{"1", "x"} {
			forger.exec(fmt.Sprintf(way, ref, `jsonb '{"operation": "insert"}'`))
		}
	}
	for _, ref := range []string{"1", "x"} {
		forger.forgesOrder(ref)
	}
	forger.refused("TM002", `unknown field "inbound_id"`, `select tidemark.emit_many('[{"domain": "shop", "type": "order", "inbound_id": 1}]')`)
	s.exec(`insert into orders values (2)`)
	s.takeOrders()
	s.wantRows(`select id::text from taken order by n`, "1", "2")
	s.wantRows(`select tidemark.executor_id(c.worker, c.source, c.shard) from tidemark.worker_cursor c
		where c.watermark_id::bigint < (select max(seq) from tidemark.outbox) and c.source = 'orders'`)
	s.wantRows(gapFindings)
}

// forgesOrder emits what a capture of the row would have been.
func (s session) forgesOrder(ref string) {
	s.t.Helper()
	s.exec(`select tidemark.emit_strict('app', 'insert', jsonb_build_object('schema', 'public', 'table', 'orders', 'operation', 'insert', 'primary_key', jsonb_build_object('id', $1::text)),
		key => $1, subject_table => 'public.orders', subject_ref => $1)`, ref)
}

// Such an event hides no row that has none, neither from the rows' comparison nor from that of the counts.
func TestForgedEventHidesNoRow(t *testing.T) {
	t.Parallel()
	s, _ := recounted(t, `create table orders (id int primary key, state text); insert into orders values (1, 'old'), (2, 'old')`)
	s.exec(`select tidemark.type_set('app', 'read'), tidemark.inbound_route_set(left(md5('orders'), 6) || '-' || o, '{"payload_columns": ["state"]}')
		from unnest(array['insert', 'update']) o`)
	s.exec(reconciled)
	s.exec(begins)
	s.exec(`set session_replication_role = replica; update orders set state = 'missed' where id = 2; reset session_replication_role`)
	for _, ref := range []string{"1", "2", "3", "4"} {
		s.forgesOrder(ref)
	}
	s.wantRows(readsOn, "2 0 f")
	s.wantRows(readsOn, "0 0 t")
	s.round()
	s.round()
	s.exec(`set session_replication_role = replica; insert into orders values (3), (4); reset session_replication_role`)
	s.forgesOrder("3")
	s.forgesOrder("4")
	s.wantMissed("public.orders 2 0")
	s.wantRows(reconciled, "gap {3,4}")
	s.wantRows(emitGap, "2 t")
	// What a backfill or the gap has told is told.
	s.wantRows(`select concat_ws(' ', subject_ref, payload ->> 'operation') from tidemark.outbox where inbound_id = 0 order by seq`, "1 read", "2 read", "3 insert", "4 insert")
	s.exec(`insert into orders values (5)`)
	s.wantRows(`select concat_ws(' ', subject_ref, r.sql_event) from tidemark.outbox o join tidemark.inbound_route r on r.id = o.inbound_id`, "5 insert")
}

// Payloads that are erased take no event from the counts: no gap opens for them.
func TestCaptureRecountOfErasedEvents(t *testing.T) {
	t.Parallel()
	s, _ := recounted(t, `create table orders (id int primary key, n int)`)
	s.exec(`insert into orders values (1), (2)`)
	s.wantRows(`select concat_ws(' ', events, waiting) from tidemark.events_erase('app', 'asked', before => 'infinity')`, "2 0")
	s.wantMissed()
	for range 2 {
		s.round()
		s.wantRows(compared, "public.orders even")
	}
	s.wantRows(gapFindings)
}

// The events of a part of the log are counted without reading the rest, whatever the statistics say.
func TestCaptureEventsReadsItsPart(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key)`)
	s.exec(`alter table tidemark.outbox_p0 set (autovacuum_enabled = off); analyze tidemark.outbox_p0`)
	s.exec(`insert into orders select generate_series(1, 5000)`)
	const count = `select concat_ws(' ', name, inserts, deletes) from tidemark.capture_events(4990, 5000)`
	for _, state := range []string{"planned for none", "with statistics"} {
		if n := s.readsOf("outbox", func() { s.wantRows(count, "public.orders 10 0") }); n > 30 {
			t.Errorf("%s: %d rows are read", state, n)
		}
		s.exec(`analyze tidemark.outbox_p0`)
	}
	s.exec(`update tidemark.capture_mark set upto_seq = 4995`) // those up to there may be of an earlier release
	if n := s.readsOf("outbox", func() { s.wantRows(count, "public.orders 10 0") }); n > 40 {
		t.Errorf("after an upgrade: %d rows are read", n)
	}
}

// The trigger functions of earlier releases wrote no inbound_id. Their events count until each transaction has ended
// that may have been in such a function, and the unread ones up to there afterwards, even beside one that names no row.
func TestCaptureAcrossAnUpgrade(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, old := open(t, db, "operator"), open(t, db, "old")
	s.takesOrders()
	old.begin()
	old.exec(`insert into orders values (1)`)
	s.exec(`update tidemark.capture_mark set upto_seq = null`) // as the upgrade leaves it
	s.exec(`select from tidemark.maintain()`)
	old.exec(`insert into orders values (2)`)
	s.exec(`select from tidemark.maintain()`)
	s.wantRows(`select (tidemark.captured_upto() = 9223372036854775807)::text`, "true")
	old.commit()
	s.exec(`alter table tidemark.outbox disable trigger outbox_append_only; update tidemark.outbox set inbound_id = null; alter table tidemark.outbox enable trigger outbox_append_only`)
	s.forgesOrder("x")
	s.forgesOrder("99999999999999999999")
	s.exec(`create domain low as int check (value < 10)`)
	login(t, db, "reader", "tidemark_reader").wantRows(`select string_agg(tidemark.source_reads(v, t)::text, ' ')
		from (values ('1', 'integer'), ('x', 'integer'), ('99999999999', 'integer'), ('x', 'uuid'), (null, 'uuid'), ('11', 'public.low')) x (v, t)`,
		"true false false false true false")
	for !one[bool](s, `select upto_seq is not null from tidemark.capture_mark`) { // transactions of other tests are not waited for
		s.exec(`select from tidemark.maintain()`)
	}
	s.exec(`insert into orders values (3)`)
	s.forgesOrder("3")
	s.takeOrders()
	s.wantRows(`select id::text from taken order by n`, "1", "2", "3")
	s.wantRows(`select (upto_seq = (select max(seq) from tidemark.outbox where subject_ref like '9%'))::text from tidemark.capture_mark`, "true")
}

// A captured table that has another name during the upgrade gets functions of this release, too: with its name back, the old ones would write
// events that its worker does not take for those of a capture.
func TestRenamedCaptureAcrossAnUpgrade(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.takesOrders()
	function := one[string](s, `select function_name from tidemark.capture_attached where operation = 'insert'`)
	s.rewrite(function, strings.TrimPrefix(function, "capture_")+" as route", "null::integer as route") // as it wrote before
	s.exec(`alter table orders rename to orders_2; update tidemark.capture_mark set upto_seq = null`)
	s.exec(`select tidemark.capture_refresh()`) // the last step of the upgrade

	for !one[bool](s, `select upto_seq is not null from tidemark.capture_mark`) { // transactions of other tests are not waited for
		s.exec(`select from tidemark.maintain()`)
	}
	s.exec(`insert into orders_2 values (1)`)
	s.exec(`alter table orders_2 rename to orders; insert into orders values (2)`)
	s.wantRows(`select subject_ref from tidemark.outbox where inbound_id is not null`, "2")
	s.exec(`select tidemark.capture_refresh()`)
	s.wantRows(`select operation from tidemark.capture_stale`)
	s.exec(`insert into orders values (3)`)
	s.takeOrders()
	s.wantRows(`select id::text from taken order by n`, "2", "3")
}

// takesOrders has a worker that is given each new row of the captured table orders; takeOrders runs it.
func (s session) takesOrders() {
	s.t.Helper()
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true);
		create table orders (id int primary key, n int);
		create table taken (n int generated always as identity, id int);
		create function take(rows orders[]) returns void language sql as $$ insert into public.taken (id) select r.id from unnest(rows) r $$`)
	s.capture("orders")
	s.exec(`select tidemark.source_set('orders', '{"table": "public.orders", "id_column": "id", "safety": "capture"}');
		select tidemark.worker_set('w', '{"source": "table", "handler": "sql", "handler_ref": "public.take"}');
		select tidemark.worker_source_add('w', 'orders'), tidemark.gate_set('worker.w.enabled', true)`)
}

func (s session) takeOrders() {
	s.t.Helper()
	for one[bool](s, `select (tidemark.worker_run('w') ->> 'more')::boolean`) {
	}
}
