package daemon_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// shop is a live service with a topic of one partition, and the configuration of a daemon that has the rights of one, and no others.
type shop struct {
	t       *testing.T
	db      *tidemarktest.DB
	name    string
	cluster *kfake.Cluster
	client  *kgo.Client
	config  config.Config
	n       int
}

func newShop(t *testing.T) *shop {
	t.Helper()
	db := tidemarktest.NewDB(t)
	s := &shop{t: t, db: db, name: "d" + strings.ReplaceAll(strings.TrimPrefix(db.Name, "tidemark_test_"), "_", "-")}
	var err error
	if s.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "db-events."+s.name)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Close)
	t.Cleanup(func() {
		execSQL(t, db, fmt.Sprintf(`drop owned by "tidemark_service_%[1]s"; drop role "tidemark_service_%[1]s"`, s.name))
	})
	execSQL(t, db, `create schema app; create table app.effect (id int); create table app.healed ();
create function app.make(payload jsonb) returns void language plpgsql security definer as $$ begin
	insert into app.effect select (payload ->> 'id')::int;
	if payload ? 'raises' and not (payload ->> 'raises' = '40001' and exists (select from app.healed)) then
		raise 'it fails' using errcode = payload ->> 'raises';
	end if; end $$;`)
	execSQL(t, db, `select tidemark.service_set($1)`, s.name)
	execSQL(t, db, `grant usage on schema app to "tidemark_service_`+s.name+`"`)
	execSQL(t, db, `select tidemark.command_set($1, 'make', 1, '{"function": "app.make", "payload_schema": {"type": "object", "required": ["id"]}}'),
		tidemark.command_allow($1, 'shop'), tidemark.stage_set('live', 'test')`, s.name)
	execSQL(t, db, `select tidemark.route_set('results', jsonb_build_object('domain', 'commands', 'type', 'result.' || $1::text, 'target_kind', 'notify', 'target_ref', 'r', 'enabled', true, 'dry_run', false))`, s.name)
	execSQL(t, db, `select tidemark.command_set($1, 'make', 1, '{"enabled": true, "dry_run": false}')`, s.name)
	role := "tm_daemon_" + strings.TrimPrefix(db.Name, "tidemark_test_")
	execSQL(t, db, `create role `+role+` login`)
	execSQL(t, db, `grant tidemark_executor, tidemark_reader to `+role)
	t.Cleanup(func() { execSQL(t, db, `drop owned by `+role+`; drop role `+role) })
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	s.config = settings(db)
	s.config.Database.URL = config.NewSecret(u.String())
	s.config.Connections = map[string]config.Connection{"main": {Kind: "kafka", Brokers: s.cluster.ListenAddrs()}}
	s.config.Commands.Connection = "main"
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.cluster.ListenAddrs()...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	return s
}

func (s *shop) open() {
	execSQL(s.t, s.db, `select tidemark.gate_set('commands.enabled', true), tidemark.gate_set('commands.' || $1 || '.enabled', true)`, s.name)
}

func (s *shop) write(value string) {
	s.t.Helper()
	if err := s.client.ProduceSync(s.t.Context(), &kgo.Record{Topic: "db-events." + s.name, Value: []byte(value)}).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// send asks for a command, with a trace that ends in the number of this asking.
func (s *shop) send(key, command, payload string) {
	s.t.Helper()
	s.n++
	s.write(fmt.Sprintf(`{"event_id": "00000000-0000-7000-8000-%012d", "service": %q, "command": %q, "command_version": 1, "schema_version": 1, "payload": %s,
		"idempotency_key": %q, "occurred_at": "2026-01-31T12:00:00Z", "trace_id": "%032d", "metadata": {"producer": "shop"}}`, s.n, s.name, command, payload, key, s.n))
}

func (s *shop) eventually(what, sql, want string) {
	s.t.Helper()
	eventually(s.t, what, func() bool {
		var got string
		return s.db.Pool.QueryRow(context.Background(), sql).Scan(&got) == nil && got == want
	})
}

// A reload that changes the connection of commands leaves the old brokers and joins the group at the new ones. It is no trouble.
func TestCommandsReload(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	old, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "db-events.other"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(old.Close)
	joined := make(chan struct{})
	once := sync.OnceFunc(func() { close(joined) })
	old.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		old.KeepControl()
		once()
		return nil, nil, false
	})
	c := s.config
	c.Connections = map[string]config.Connection{"main": {Kind: "kafka", Brokers: old.ListenAddrs()}}
	p := run(t, c)
	s.open()
	<-joined
	if restart, err := p.Reload(s.config); err != nil || len(restart) > 0 {
		t.Errorf("keys %v, %v", restart, err)
	}
	s.send("k", "make", `{"id": 7}`)
	s.eventually("the command has its effect", `select count(*)::text from app.effect where id = 7`, "1")
	s.eventually("no finding", `select count(*)::text from tidemark.finding where kind = 'worker_failing'`, "0")
	if _, body := get(t, "http://"+p.Addr()+"/readyz?verbose"); !strings.Contains(body, "brokers "+s.cluster.ListenAddrs()[0]) {
		t.Error(body)
	}
	p.stop()
	if strings.Contains(p.log.String(), "joins it again") {
		t.Error("the log tells of trouble")
	}
	if strings.Count(p.log.String(), "the connection has changed") != 1 {
		t.Error("the log does not tell of the reload once")
	}
}

// What a connection's files hold counts as a change, too: a certificate is renewed under its name. Another reload leaves the group alone.
func TestCommandsReloadFiles(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(authority)
	c := s.config
	main := c.Connections["main"]
	main.TLS = config.TLS{CAFile: file} // not enabled: the brokers have none
	c.Connections = map[string]config.Connection{"main": main}
	var left atomic.Int64
	s.cluster.ControlKey(int16(kmsg.LeaveGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		s.cluster.KeepControl()
		left.Add(1)
		return nil, nil, false
	})
	p := run(t, c)
	s.open()
	made := func(key string, id int) {
		t.Helper()
		s.send(key, "make", fmt.Sprintf(`{"id": %d}`, id))
		s.eventually("the command has its effect", fmt.Sprintf(`select count(*)::text from app.effect where id = %d`, id), "1")
	}
	made("a", 1)
	reload := func() {
		t.Helper()
		if _, err := p.Reload(c); err != nil {
			t.Fatal(err)
		}
	}
	reload()
	made("b", 2)
	if n := left.Load(); n > 0 {
		t.Errorf("it has left the group %d times without a change", n)
	}
	write(append(authority, authority...))
	reload()
	eventually(t, "it leaves the group", func() bool { return left.Load() == 1 })
	made("c", 3)
	p.stop()
	if n := left.Load(); n != 2 {
		t.Errorf("it has left the group %d times, want once for the change and once at the end", n)
	}
}

// The daemon takes commands from the topic of its configuration, while the gates are open.
func TestDaemonCommands(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := run(t, s.config)
	s.send("k", "make", `{"id": 7}`)
	s.open()
	s.eventually("the command has its effect", `select count(*)::text from app.effect where id = 7`, "1")
	if status, body := get(t, "http://"+p.Addr()+"/readyz"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	p.stop()
	var leases int
	if err := s.db.Pool.QueryRow(context.Background(), `select count(*) from tidemark.heartbeat where lease_owner is not null`).Scan(&leases); err != nil || leases != 0 {
		t.Errorf("%d leases: %v", leases, err)
	}
}

// What became of commands is counted, by what is registered and by reason codes alone, and each log line of a command names it.
func TestCommandsSeen(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p := run(t, s.config)
	page := func(name string) (lines []string) {
		_, body := get(t, "http://"+p.Addr()+"/metrics")
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, name) {
				lines = append(lines, strings.TrimSpace(strings.ReplaceAll(line, s.name, "S")))
			}
		}
		return lines
	}
	want := func(name string, want ...string) {
		t.Helper()
		if got := page(name); !slices.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
	}
	eventually(t, "it is paused", func() bool {
		return slices.Equal(page("tidemark_command_paused"), []string{"tidemark_command_paused 1"})
	})
	s.send("a", "make", `{"id": 1}`)
	s.send("a", "make", `{"id": 1}`)
	s.send("b", "make", `{"id": 2, "raises": "P0001"}`)
	s.send("c", "make", `{"id": 3, "raises": "40001"}`)
	s.send("d", "forged", `{"secret": "4711"}`)
	s.send("e", "make", `{"secret": "4711"}`)
	s.write("no JSON")
	s.open()
	s.eventually("all are passed", `select watermark_id from tidemark.worker_cursor where source like 'kafka:%'`, "7")
	eventually(t, "the metrics", func() bool { return len(page("tidemark_command_total")) >= 6 })
	want("tidemark_command_parked", `tidemark_command_parked{service="S"} 1`)
	execSQL(t, s.db, `insert into app.healed default values; update tidemark.command_parked set next_attempt_at = now()`)
	s.eventually("the parked one has its effect", `select count(*)::text from app.effect where id = 3`, "1")
	eventually(t, "its metric", func() bool {
		return slices.Contains(page("tidemark_command_total"), `tidemark_command_total{command="make",reason="",service="S",status="processed"} 2`)
	})
	total := slices.DeleteFunc(page("tidemark_command_total"), func(line string) bool { return strings.Contains(line, `status="failed_retryable"`) }) // as often as it was tried
	if diff := cmp.Diff([]string{
		`tidemark_command_total{command="",reason="contract.unknown_command",service="",status="rejected"} 1`,
		`tidemark_command_total{command="",reason="envelope.invalid",service="",status="rejected"} 1`,
		`tidemark_command_total{command="make",reason="",service="S",status="duplicate"} 1`,
		`tidemark_command_total{command="make",reason="",service="S",status="processed"} 2`,
		`tidemark_command_total{command="make",reason="contract.payload_invalid",service="S",status="rejected"} 1`,
		`tidemark_command_total{command="make",reason="sql.business_rule",service="S",status="failed_terminal"} 1`,
	}, total); diff != "" {
		t.Error(diff)
	}
	want("tidemark_command_duplicates_total", `tidemark_command_duplicates_total{kind="resent"} 1`)
	want("tidemark_command_dead_letters_total",
		`tidemark_command_dead_letters_total{class="envelope",reason="envelope.invalid"} 1`,
		`tidemark_command_dead_letters_total{class="identity",reason="identity.key_revoked"} 0`, // seen by Prometheus before the first one
		`tidemark_command_dead_letters_total{class="identity",reason="identity.key_unknown"} 0`,
		`tidemark_command_dead_letters_total{class="identity",reason="identity.producer_not_allowed"} 0`,
		`tidemark_command_dead_letters_total{class="identity",reason="identity.signature_invalid"} 0`,
		`tidemark_command_dead_letters_total{class="identity",reason="identity.signature_missing"} 0`,
		`tidemark_command_dead_letters_total{class="identity",reason="identity.tenant_not_allowed"} 0`,
		`tidemark_command_dead_letters_total{class="identity",reason="identity.topic_mismatch"} 0`,
		`tidemark_command_dead_letters_total{class="sql",reason="sql.business_rule"} 1`)
	want("tidemark_command_seconds_count", `tidemark_command_seconds_count{command="make",service="S",version="1"} 3`)
	want("tidemark_command_lag", `tidemark_command_lag{partition="0",topic="db-events.S"} 0`)
	want("tidemark_command_parked", `tidemark_command_parked{service="S"} 0`)
	want("tidemark_command_paused", "tidemark_command_paused 0")

	address := s.config.Connections["main"].Brokers[0]
	ready := fmt.Sprintf("[+]commands ok: brokers %s, db-events.%s/0 0 behind\n", address, s.name)
	if status, body := get(t, "http://"+p.Addr()+"/readyz?verbose"); status != 200 || !strings.Contains(body, ready) {
		t.Errorf("%d %s", status, body)
	}
	s.cluster.Close()
	eventually(t, "the brokers are missed", func() bool {
		status, body := get(t, "http://"+p.Addr()+"/readyz?verbose")
		return status == 503 && strings.Contains(body, "[-]commands: brokers "+address)
	})
	if status, body := get(t, "http://"+p.Addr()+"/livez"); status != 200 {
		t.Errorf("/livez: %d %s", status, body)
	}
	p.stop()
	seen := map[string]bool{}
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "4711") {
			t.Errorf("the log has a payload: %s", line)
		}
		if !strings.Contains(line, "msg=command ") {
			continue
		}
		for n := 1; n <= s.n; n++ {
			if strings.Contains(line, fmt.Sprintf("event_id=00000000-0000-7000-8000-%012d service=%s command=", n, s.name)) && strings.Contains(line, fmt.Sprintf(" trace_id=%032d ", n)) {
				seen[fmt.Sprint(n)] = true
			}
		}
		for _, name := range []string{"event_id=", "service=", "command=", "trace_id=", "status="} {
			if !strings.Contains(line, name) {
				t.Errorf("the line has no %s: %s", name, line)
			}
		}
	}
	if len(seen) != s.n {
		t.Errorf("of %d commands the log names %v", s.n, seen)
	}
}
