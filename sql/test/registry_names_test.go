package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Names that operators type and gates are made of are ASCII: none looks like another.
func TestNamesHaveNoLookAlikes(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.exec(`select tidemark.type_set('shop', 'order'); create table orders (id bigint generated always as identity primary key)`)
	for what, statement := range map[string]string{
		"domain":        `select tidemark.domain_set($1)`,
		"domain, type":  `select tidemark.type_set($1, 'order')`,
		"worker":        `select tidemark.worker_set($1, '{"source": "table", "handler": "emit", "handler_ref": "shop/order"}', 'a test')`,
		"source":        `select tidemark.source_set($1, '{"table": "public.orders", "id_column": "id", "safety": "sequence"}', 'a test')`,
		"route":         `select tidemark.route_set($1, '{"domain": "shop", "target_kind": "stdout", "target_ref": "-"}', 'a test')`,
		"inbound route": `select tidemark.inbound_route_set($1, '{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "shop", "type": "order"}', 'a test')`,
	} {
		for _, name := range []string{"shоp" /* Cyrillic */, "shop\u200b", "\u202epohs", "shop\n", "ｓｈｏｐ", "sh\u0301op", "shop\u00a0"} {
			if err := s.try(statement, name); err == nil {
				t.Errorf("%s %+q is accepted", what, name)
			}
		}
		if err := s.try(statement, "plain-1.a_b"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The heartbeats of a worker named daemon would be those of daemons: of daemon/outbox/0.
func TestWorkerIsNoDaemon(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	for _, statement := range []string{
		`select tidemark.worker_set('daemon')`, `select tidemark.worker_set('daemon', '{"source": "table", "handler": "go"}')`,
		`select tidemark.rows_register('daemon')`, `select tidemark.handlers_register('daemon', '{shop/*}')`,
		`update tidemark.worker set worker = 'daemon'`,
	} {
		s.refused("TM005", `a worker cannot be named "daemon"`, statement)
	}
	s.exec(`select tidemark.worker_set('daemons')`)
	s.wantRows(`select executor_id from tidemark.heartbeat where executor_id like 'daemon/%'`)
}
