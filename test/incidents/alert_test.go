package incidents

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// serves runs a daemon with this configuration, and returns the address of its pages.
func (n *night) serves(config string) (daemon *exec.Cmd, address string) {
	n.t.Helper()
	return n.servesAs("courier", config)
}

func (n *night) servesAs(name, config string) (daemon *exec.Cmd, address string) {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "tidemark.yaml")
	text := "name: " + name + "\nadmin: {listen: \"127.0.0.1:0\"}\nlease: 5s\nwebhook: {allow: [127.0.0.0/8]}\n" + config
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	daemon = n.start("tidemark run --config " + file + " 2>" + file + ".log")
	var log []byte
	n.t.Cleanup(func() {
		if n.t.Failed() {
			n.t.Logf("the daemon: %s", log)
		}
	})
	n.until("the daemon serves", func() bool {
		log, _ = os.ReadFile(file + ".log")
		if m := regexp.MustCompile(`"admin":"([^"]+)"`).FindSubmatch(log); m != nil {
			address = string(m[1])
		}
		return address != ""
	})
	return daemon, address
}

// naps are workers whose target takes a second for each event, and a connection all the while.
const naps = `
create function public.nap(event jsonb) returns void language sql as 'select pg_sleep(1)';
select tidemark.type_set(t, 'made') from unnest('{nap,slow}'::text[]) t;
select tidemark.worker_set(w) from unnest('{nap1,nap2,nap3,nap4}'::text[]) w;
select tidemark.gate_set('worker.' || w || '.enabled', true) from unnest('{nap1,nap2,nap3,nap4}'::text[]) w;
select tidemark.route_set(w, jsonb_build_object('worker', w, 'domain', 'nap', 'target_kind', 'sql', 'target_ref', 'public.nap', 'enabled', true, 'dry_run', false))
from unnest('{nap1,nap2,nap3,nap4}'::text[]) w`

// desk is where commands come from: a service that runs them, and one whose gate is closed.
type desk struct {
	*night
	open, shut string
	client     *kgo.Client
	config     string // of the daemon
	sent       int
}

func (n *night) desk() *desk {
	n.t.Helper()
	name := "s" + strings.TrimPrefix(n.Name, "tidemark_test_") // roles are the server's
	return n.deskOf(name+"-open", name+"-shut")
}

func (n *night) deskOf(open, shut string) *desk {
	n.t.Helper()
	d := &desk{night: n, open: open, shut: shut}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "db-events."+d.open, "db-events."+d.shut))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(cluster.Close)
	if d.client, err = kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...)); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(d.client.Close)
	d.config = fmt.Sprintf("connections: {main: {kind: kafka, brokers: [%q]}}\ncommands: {connection: main}\n", cluster.ListenAddrs()[0])
	n.exec(`create schema app; create function app.work(payload jsonb) returns void language plpgsql as $$ begin
		case payload ->> 'does'
			when 'fails' then raise 'there is no such invoice';
			when 'waits' then raise 'the invoice is locked' using errcode = '40001';
			when 'takes long' then perform pg_sleep(3);
			when 'works' then null;
		end case; end $$`)
	for _, service := range []string{d.open, d.shut} {
		n.t.Cleanup(func() {
			_, _ = n.Pool.Exec(context.Background(), fmt.Sprintf(`drop owned by "tidemark_service_%[1]s"; drop role "tidemark_service_%[1]s"`, service))
		})
		n.exec(fmt.Sprintf(`select tidemark.service_set('%[1]s');
			select tidemark.command_set('%[1]s', 'work', 1, '{"function": "app.work", "payload_schema": {"type": "object", "required": ["does"]}}');
			select tidemark.command_allow('%[1]s', 'shop');
			select tidemark.route_set('results_%[1]s', '{"domain": "commands", "type": "result.%[1]s", "target_kind": "notify", "target_ref": "r", "enabled": true, "dry_run": false}');
			select tidemark.command_set('%[1]s', 'work', 1, '{"enabled": true, "dry_run": false}')`, service))
	}
	n.exec(fmt.Sprintf(`select tidemark.gate_set('commands.enabled', true), tidemark.gate_set('commands.%s.enabled', true)`, d.open))
	return d
}

// send asks a service for as many commands.
func (d *desk) send(commands int, service, producer, does string) {
	d.t.Helper()
	var records []*kgo.Record
	for range commands {
		d.sent++
		records = append(records, &kgo.Record{Topic: "db-events." + service, Value: fmt.Appendf(nil,
			`{"event_id": "00000000-0000-7000-8000-%012[1]d", "service": %[2]q, "command": "work", "command_version": 1, "schema_version": 1, "payload": {"does": %[4]q},
			"idempotency_key": "k%[1]d", "occurred_at": "2026-01-31T12:00:00Z", "trace_id": "%032[1]d", "metadata": {"producer": %[3]q}}`, d.sent, service, producer, does)})
	}
	if err := d.client.ProduceSync(d.t.Context(), records...).FirstErr(); err != nil {
		d.t.Fatal(err)
	}
}

// Incidents fire their alerts, each rule, in a real Prometheus that scrapes a real daemon. With all of them on, no panel of the
// dashboards is empty. The alerts end when the incidents are mended.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	hook := newReceiver(t)
	n.route("hook", "webhook", hook.URL, `, "options": {"unsigned": true}`)
	n.exec(naps)
	n.source("sequence")
	d := n.desk()
	n.url = n.login()
	// The consumer does not see that commands are left behind before it has caught up: these wait from the beginning.
	d.send(1001, d.shut, "shop", "fails")
	courier, address := n.serves("workers: [default, greeter, nap1, nap2, nap3, nap4]\ndatabase: {max_connections: 4}\n" + d.config)
	n.until("the commands behind the gate are seen", func() bool { return strings.Contains(page(t, address), `topic="db-events.`+d.shut+`"} 1001`) })
	w := newTower(t, address)

	// All else is well, also after some work.
	n.emit(1, 20)
	n.until("a scrape that has the work", func() bool { return w.ask(`tidemark_deliveries_total{outcome="delivered",route="hook"} == 20`) == 1 })
	behind := "TidemarkCommandsBehind db-events." + d.shut
	w.fires(behind)
	if alerts := w.firing(); len(alerts) > 1 {
		t.Errorf("all else is well, and %v", alerts)
	}

	idle := n.forgotten(emitted) // 20 seconds until it is a cause
	n.exec(`select tidemark.emit('shop', 'ordr')`)
	w.fires("TidemarkUnregisteredEmits")
	w.ofWorkers(n)
	w.ofCommands(d)
	w.fires("TidemarkFindingWarning emit_unregistered emit")

	hook.answers(http.StatusServiceUnavailable)
	n.emit(21, 30)
	w.fires("TidemarkTargetDown hook", "TidemarkFinding target_down hook")
	hook.answers(http.StatusBadRequest) // for good
	w.fires("TidemarkDeadLetters hook")
	w.ends("TidemarkTargetDown hook", "TidemarkFinding target_down hook")
	hook.answers(http.StatusServiceUnavailable)
	n.emit(31, 40)
	w.fires("TidemarkTargetDown hook") // and ten deliveries wait
	w.dashboards()
	transaction := fmt.Sprintf("TidemarkFindingWarning open_transaction pid %d", idle.PgConn().PID())
	w.fires(transaction)
	n.psql(fmt.Sprintf("select pg_terminate_backend(%d)", idle.PgConn().PID()))
	w.ends(transaction)

	n.exec(`select tidemark.gate_set('commands.enabled', false), tidemark.gate_set('routes.enabled', false)`)
	n.emit(41, 50)
	w.fires("TidemarkCommandsPaused", "TidemarkClosedWithWork default")
	w.ofTheDatabase(n, courier, address)
	w.all()
}

// page is /metrics of a daemon.
func page(t *testing.T, address string) string {
	t.Helper()
	r, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ofWorkers: what goes wrong with workers, and with their connections.
func (w *tower) ofWorkers(n *night) {
	w.t.Helper()
	n.exec(`update tidemark.setting set value = '1 second' where key = 'lag.warn'; update tidemark.setting set value = '3 seconds' where key = 'lag.bad'`)
	n.exec(`create or replace function public.greet(shown public.births[]) returns jsonb language plpgsql as 'begin raise ''there is no such parish''; end';
		select tidemark.worker_set('greeter', '{"retry_policy": {"max_attempts": 1}}');
		insert into public.births (name) values ('n')`)
	slow := newReceiver(w.t)
	slow.takesFor(3 * time.Second)
	n.exec(fmt.Sprintf(`select tidemark.route_set('slow', '{"domain": "slow", "target_kind": "webhook", "target_ref": "%s", "options": {"unsigned": true}, "concurrency": 1,
		"enabled": true, "dry_run": false}')`, slow.URL))
	// The gate of archive was never opened. The program that runs nightly does so once, and never again.
	n.exec(`select tidemark.worker_set(w) from unnest('{nightly,archive}'::text[]) w;
		select tidemark.gate_set('worker.nightly.enabled', true);
		select tidemark.heartbeat_register('nightly/outbox/0', cadence => '1 second', threshold => '2 seconds')`)
	n.exec(`select tidemark.route_worker_run('nightly')`)
	n.exec(`select tidemark.emit('slow', 'made') from generate_series(1, 60)`)
	n.exec(`select tidemark.emit('nap', 'made') from generate_series(1, 8)`)
	w.fires("TidemarkPoolExhausted")
	if w.ask(`tidemark_watch_age_seconds < 30`) != 1 {
		w.t.Error("the watch has no connection either")
	}
	w.fires("TidemarkSilent nightly/outbox/0", "TidemarkStopped nightly/outbox/0", "TidemarkBehind nightly/outbox/0", "TidemarkClosedWithWork archive",
		"TidemarkDeadLetterRows greeter births", "TidemarkOverdue slow", "TidemarkSlowDeliveries slow")
}

// ofCommands: what goes wrong with commands. Prometheus has to see the first of a kind before it sees a rate.
func (w *tower) ofCommands(d *desk) {
	w.t.Helper()
	d.send(1, d.open, "stranger", "fails")
	d.send(1, d.open, "shop", "waits")
	for try := range 2 {
		d.send(1, d.open, "shop", "fails")
		d.send(1, d.open, "shop", "takes long")
		until(w.t, time.Minute, "a scrape that has the commands", func() bool {
			return w.ask(fmt.Sprintf(`sum(tidemark_command_total{service="%s",status=~"processed|failed_terminal"}) == %d`, d.open, 2*try+2)) == 1
		})
	}
	w.fires("TidemarkCommandForger identity.producer_not_allowed", "TidemarkCommandsParked "+d.open, "TidemarkCommandsFail "+d.open, "TidemarkCommandsSlow "+d.open)
}

// ofTheDatabase: it refuses the daemon, a copy of it is run, and the daemon is killed.
func (w *tower) ofTheDatabase(n *night, daemon *exec.Cmd, address string) {
	w.t.Helper()
	admin := tidemarktest.NewEmptyDB(w.t).Connect(w.t)
	allow := func(connections bool) {
		if _, err := admin.Exec(context.Background(), fmt.Sprintf("alter database %s allow_connections %t", n.Name, connections)); err != nil {
			w.t.Error(err)
		}
	}
	allow(false)
	clone := n.clone() // which ends all sessions
	w.t.Cleanup(func() { allow(true) })
	w.fires("TidemarkDatabaseDown")
	_, other := clone.serves("")
	w.scrapes(address, other)
	w.fires("TidemarkDisarmed", "TidemarkUnwatched")
	if err := daemon.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	w.fires("TidemarkDown")
}
