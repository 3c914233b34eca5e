package daemon_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The daemon takes commands from the topic of its configuration, while the gates are open.
func TestDaemonCommands(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	service := "d" + strings.ReplaceAll(strings.TrimPrefix(db.Name, "tidemark_test_"), "_", "-")
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "db-events."+service))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	t.Cleanup(func() {
		execSQL(t, db, fmt.Sprintf(`drop owned by "tidemark_service_%[1]s"; drop role "tidemark_service_%[1]s"`, service))
	})
	execSQL(t, db, `create schema app; create table app.effect (id int);
create function app.make(payload jsonb) returns void language sql security definer as 'insert into app.effect select (payload ->> ''id'')::int';`)
	execSQL(t, db, `select tidemark.service_set($1)`, service)
	execSQL(t, db, `grant usage on schema app to "tidemark_service_`+service+`"`)
	execSQL(t, db, `select tidemark.command_set($1, 'make', 1, '{"function": "app.make", "payload_schema": {"type": "object"}}'), tidemark.command_allow($1, 'shop'), tidemark.stage_set('live', 'test')`, service)
	execSQL(t, db, `select tidemark.route_set('results', jsonb_build_object('domain', 'commands', 'type', 'result.' || $1::text, 'target_kind', 'notify', 'target_ref', 'r', 'enabled', true, 'dry_run', false))`, service)
	execSQL(t, db, `select tidemark.command_set($1, 'make', 1, '{"enabled": true, "dry_run": false}')`, service)
	// With the rights of a daemon, and no others.
	role := "tm_daemon_" + strings.TrimPrefix(db.Name, "tidemark_test_")
	execSQL(t, db, `create role `+role+` login`)
	execSQL(t, db, `grant tidemark_executor, tidemark_reader to `+role)
	t.Cleanup(func() { execSQL(t, db, `drop owned by `+role+`; drop role `+role) })
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	c := settings(db)
	c.Database.URL = config.NewSecret(u.String())
	c.Connections = map[string]config.Connection{"main": {Kind: "kafka", Brokers: cluster.ListenAddrs()}}
	c.Commands.Connection = "main"
	p := run(t, c)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "db-events." + service, Value: fmt.Appendf(nil, `{"event_id": "00000000-0000-7000-8000-000000000001", "service": %q,
		"command": "make", "command_version": 1, "schema_version": 1, "payload": {"id": 7}, "idempotency_key": "k", "occurred_at": "2026-01-31T12:00:00Z",
		"trace_id": "0123456789abcdef0123456789abcdef", "metadata": {"producer": "shop"}}`, service)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	execSQL(t, db, `select tidemark.gate_set('commands.enabled', true), tidemark.gate_set('commands.' || $1 || '.enabled', true)`, service)
	eventually(t, "the command has its effect", func() bool {
		var n int
		return db.Pool.QueryRow(context.Background(), `select count(*) from app.effect where id = 7`).Scan(&n) == nil && n == 1
	})
	if status, body := get(t, "http://"+p.Addr()+"/readyz"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	p.stop()
	var leases int
	if err := db.Pool.QueryRow(context.Background(), `select count(*) from tidemark.heartbeat where lease_owner is not null`).Scan(&leases); err != nil || leases != 0 {
		t.Errorf("%d leases: %v", leases, err)
	}
}
