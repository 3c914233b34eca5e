package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A transaction whose snapshot is older than a change of the route, of its type or of the forbidden keys captures nothing by the
// rules of before: it fails, and its second try goes by the new ones.
func TestOldSnapshotsCaptureByNoOldRule(t *testing.T) {
	t.Parallel()
	const set = `select tidemark.inbound_route_set('new', '`
	for name, c := range map[string]struct {
		before, change, write string
		after                 string // what the second try leaves: its events, or its error
		same                  bool   // the change is none of this route
	}{
		"route off":     {``, set + `{"enabled": false}')`, ``, "", false},
		"route on":      {set + `{"enabled": false}')`, set + `{"enabled": true}')`, ``, `{"state": "a"}`, false},
		"dry run":       {``, set + `{"dry_run": true}')`, ``, "", false},
		"fewer columns": {``, set + `{"payload_columns": []}')`, ``, `none`, false},
		"type off":      {``, `select tidemark.type_set('app', 'insert', '{"enabled": false}')`, ``, "", false},
		"schema":        {``, `select tidemark.type_set('app', 'insert', '{"schema": {"required": ["shop"]}}')`, ``, "TM002", false},
		"metadata only": {set + `{"payload_columns": ["token"]}')`, `select tidemark.domain_set('app', '{"metadata_only": true}')`, ``, "TM003", false},
		"key forbidden": {`select tidemark.domain_set('app', '{"metadata_only": true}')`, `insert into tidemark.forbidden_key (key) values ('state')`, ``, "TM003", false},
		"key allowed": {
			`select tidemark.domain_set('app', '{"metadata_only": true}'); ` + set + `{"payload_columns": ["token"]}')`,
			`delete from tidemark.forbidden_key where key = 'token'`, ``, `{"token": "b"}`, false,
		},
		"route made": {
			`create table later (id int primary key, state text)`, `select tidemark.type_set('app', 'later');
			select tidemark.inbound_route_set('later', '{"source_schema": "public", "source_table": "later", "sql_event": "insert",
				"domain": "app", "type": "later", "enabled": true, "dry_run": false}'); select tidemark.capture_attach('later', 'test')`,
			`insert into later values (1, 'a')`, `none`, false,
		},
		"function off":            {``, `select tidemark.inbound_route_set('called', '{"enabled": false}')`, `select tidemark.inbound_emit('called', '{"state": "a"}')`, "", false},
		"key forbidden elsewhere": {``, `insert into tidemark.forbidden_key (key) values ('state')`, ``, `{"state": "a"}`, true},
		"another route":           {``, `select tidemark.inbound_route_set('called', '{"enabled": false}')`, ``, `{"state": "a"}`, true},
		"taken back":              {``, `begin; ` + set + `{"enabled": false}'); rollback`, ``, `{"state": "a"}`, true},
	} {
		for _, isolation := range []string{"repeatable read", "serializable"} {
			t.Run(name+" "+isolation, func(t *testing.T) {
				t.Parallel()
				db := tidemarktest.NewDB(t)
				admin, app := open(t, db, "admin"), open(t, db, "app")
				admin.exec(`select tidemark.stage_set('live', 'test'), tidemark.type_set('app', 'insert');
					create table orders (id int primary key, state text, token text);
					select tidemark.inbound_route_set('new', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert",
						"domain": "app", "type": "insert", "enabled": true, "dry_run": false, "payload_columns": ["state"]}');
					select tidemark.inbound_route_set('called', '{"source_object_kind": "function", "source_schema": "app", "source_table": "f",
						"sql_event": "call", "domain": "app", "type": "insert", "enabled": true, "dry_run": false, "payload_columns": ["state"]}');
					select tidemark.capture_attach('orders', 'test');` + c.before)
				write := c.write
				if write == "" {
					write = `insert into orders values (1, 'a', 'b')`
				}
				app.exec(`begin isolation level ` + isolation)
				app.exec(`select count(*) from orders`) // takes the snapshot
				admin.exec(c.change)
				if err := app.try(write); (err == nil) != c.same || err != nil && err.Code != "40001" {
					t.Errorf("before the change: %v", err)
				}
				app.exec(`rollback; begin isolation level ` + isolation)
				if err := app.try(write); err != nil {
					if err.Code != c.after {
						t.Errorf("after it: %v, want %q", err, c.after)
					}
					return
				}
				app.exec(`commit`)
				var want []string
				if c.after != "" {
					want = append(want, c.after)
				}
				admin.wantRows(`select coalesce(o.payload ->> 'columns', 'none') from tidemark.outbox o where o.domain = 'app'`, want...)
			})
		}
	}
}
