package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// EV8: keys that Tidemark makes of rows can be guessed. An emitter who claims every key that a row could get keeps no
// row from becoming an event.
func TestForgedKeyOfASource(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, forger := tailing{open(t, db, "worker")}, open(t, db, "forger")
	s.exec(fmt.Sprintf(births, "bigint generated always as identity", ""))
	s.exec(`select tidemark.type_set('town', 'birth')`)
	s.source("births", `{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "safety": "declared", "sweep_window": "1 hour"}`)
	s.worker("w", `{"handler": "emit", "handler_ref": "town/birth"}`)
	s.add("w")
	forger.exec(`set role tidemark_emitter`)
	forger.exec(`select tidemark.emit('town', 'birth', actor => 'forger', idempotency_key => 'w/births/1')`)
	for _, statement := range emitWays {
		emit := fmt.Sprintf(statement, "idempotency_key", `'tidemark:source/w/births/1'`)
		forger.refused("TM005", `idempotency_key begins with "tidemark:"`, emit)
	}
	s.exec(`insert into births (name, born_at) values ('Ada', now() - interval '1 minute'), ('Bob', now() - interval '1 minute')`)
	s.drain()
	s.want(`select subject_ref, idempotency_key from tidemark.outbox where actor <> 'forger' order by 1`,
		"1 tidemark:source/w/births/1", "2 tidemark:source/w/births/2")

	// One that is there nevertheless, by whatever hand, is not taken for the row's event.
	s.exec(`insert into tidemark.emit_key (domain, idempotency_key, event_id, created_at) values ('town', 'tidemark:source/w/births/3', gen_random_uuid(), now())`)
	s.exec(`insert into births (name, born_at) values ('Eve', now() - interval '1 minute')`)
	s.drain()
	s.want(`select item_id, last_error like '%tidemark:source/w/births/3%not Tidemark''s own' from tidemark.pending_row`, "3 true")
}

func TestForgedKeyOfACapture(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, forger := open(t, db, "app"), open(t, db, "forger")
	s.exec(`select tidemark.stage_set('live', 'test'); create table orders (id int primary key, n int)`)
	s.capture("orders")
	s.exec(`select tidemark.inbound_route_set(r.route_code, '{"idempotency_policy": "transaction"}') from tidemark.inbound_route r`)
	forger.exec(`set role tidemark_emitter`)
	// Every key of the form that was, for the transactions to come.
	forger.exec(`select tidemark.emit_many((select jsonb_agg(jsonb_build_object('domain', 'app', 'type', 'insert', 'actor', 'forger',
			'idempotency_key', format('capture/%s/%s/%s', r, pg_snapshot_xmax(pg_current_snapshot())::text::bigint + x, encode(sha256('1'), 'hex'))))
		from generate_series(1, 4) r, generate_series(0, 99) x))`)
	s.exec(`insert into orders values (1)`)
	s.wantRows(`select (idempotency_key ~ '^tidemark:capture/[0-9]+/[0-9]+\.[0-9]+/[0-9a-f]{64}$' and key = '1')::text from tidemark.outbox where actor <> 'forger'`, "true")
	s.exec(`select set_config('test.seen', last_value::text, false) from tidemark.outbox_seq_seq`)

	s.begin()
	s.exec(`insert into tidemark.emit_key (domain, idempotency_key, event_id, created_at)
		select 'app', format('tidemark:capture/%s/%s.%s/%s', r.id, pg_current_xact_id(), (extract(epoch from transaction_timestamp()) * 1000000)::bigint,
			encode(sha256('{"id": 2}'), 'hex')), gen_random_uuid(), now() from tidemark.inbound_route r where r.sql_event = 'insert'`)
	s.refused("TM005", "is not Tidemark's own", `insert into orders values (2)`)
	s.rollback()

	// Two keys that read the same are two rows.
	s.exec(`create table pairs (a text, b text, n int, primary key (a, b))`)
	s.capture("pairs")
	s.exec(`select tidemark.inbound_route_set(r.route_code, '{"idempotency_policy": "transaction"}') from tidemark.inbound_route r`)
	s.exec(`insert into pairs values ('a,b', 'c'), ('a', 'b,c')`)
	s.begin()
	s.exec(`update pairs set n = 1; update pairs set n = 2`)
	s.commit()
	s.wantEvents("insert a,b,c", "insert a,b,c", `update a,b,c ["n"]`, `update a,b,c ["n"]`)
}
