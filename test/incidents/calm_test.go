package incidents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// calmVariable is the environment variable with the length of the calm. It has the whole batch, and a report of four minutes, from
// an hour on.
const calmVariable = "TIDEMARK_CALM"

// calmLook is how often the calm is looked at.
const calmLook = 500 * time.Millisecond

// calm is normal work, in which nothing may raise an alarm.
type calm struct {
	*night
	part  time.Duration // of its six
	looks int
	logs  []string // of the daemons
}

// look reads the causes as status does. There must be none.
func (c *calm) look() {
	c.t.Helper()
	var shown *string
	err := c.Pool.QueryRow(c.t.Context(), `select string_agg(concat_ws(' ', status, cause, subject, found, symptoms), E'\n') from tidemark.cause`).Scan(&shown)
	if err != nil {
		c.t.Fatal(err)
	}
	if shown != nil {
		c.t.Fatalf("an alarm in the calm, at look %d: %s", c.looks, *shown)
	}
	c.looks++
}

// goesOn looks twice a second for a part of the calm, and does the work of each look.
func (c *calm) goesOn(work func(look int)) {
	c.t.Helper()
	tick := time.NewTicker(calmLook)
	defer tick.Stop()
	for n, until := 0, time.Now().Add(c.part); time.Now().Before(until); n++ {
		work(n)
		c.look()
		<-tick.C
	}
}

// begins runs a daemon whose log is kept.
func (c *calm) begins(config string) *exec.Cmd {
	c.t.Helper()
	log := fmt.Sprintf("%s.%d.log", config, len(c.logs))
	c.logs = append(c.logs, log)
	d := c.start("tidemark run --config " + config + " 2>" + log)
	c.until("the daemon beats", func() bool {
		return c.value(`select count(*)::text from tidemark.heartbeat_health where executor_id = 'daemon/courier' and state = 'alive'`) == "1"
	})
	return d
}

// ends stops a daemon as its supervisor does.
func (c *calm) ends(d *exec.Cmd) {
	c.t.Helper()
	if err := d.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if err := d.Wait(); err != nil {
		c.t.Fatalf("the daemon: %v", err)
	}
}

// Normal work raises no alarm, and the log of the daemon has no warning: idle, a long report, a large batch, bursts, quiet tables,
// a restart of everything.
func TestCalm(t *testing.T) {
	t.Parallel()
	length, batch := 60*time.Second, 5000
	if text := os.Getenv(calmVariable); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", calmVariable, err)
		}
		if length >= time.Hour {
			batch = 200000
		}
	}
	server := testserver.New(t, devpg.Options{})
	c := calm{night: begin(t, tidemarktest.NewDBAt(t, server.URL("postgres"))), part: length / 6}
	c.url = c.login()
	hook := newReceiver(t)
	c.route("handled", "sql", "public.take", "")
	c.route("billing", "webhook", hook.URL, billing)
	c.exec(`create table public.births (id bigint generated always as identity primary key, name text, at timestamptz not null default now());
		create index on public.births (at, id);
		create table public.deaths (id bigint generated always as identity primary key);
		create function public.greet(shown public.births[]) returns void language sql as 'select';
		create function public.mourn(shown public.deaths[]) returns void language sql as 'select';
		grant select on public.births, public.deaths to tidemark_executor;
		insert into public.births (name) select 'n' from generate_series(1, 50); insert into public.deaths select from generate_series(1, 50)`)
	for worker, source := range map[string]string{
		"greeter": `"births", "timestamp_column": "at", "safety": "clock"`, "mourner": `"deaths", "safety": "sequence"`,
	} {
		table, handler := strings.Trim(strings.SplitN(source, ",", 2)[0], `"`), map[string]string{"greeter": "greet", "mourner": "mourn"}[worker]
		c.exec(fmt.Sprintf(`select tidemark.source_set('%[1]s', '{"schema_name": "public", "id_column": "id", "table_name": %[2]s}');
			select tidemark.worker_set('%[3]s', '{"source": "table", "handler": "sql", "handler_ref": "public.%[4]s"}');
			select tidemark.worker_source_add('%[3]s', '%[1]s');
			select tidemark.gate_set('worker.%[3]s.enabled', true)`, table, source, worker, handler))
	}
	config := filepath.Join(t.TempDir(), "tidemark.yaml")
	if err := os.WriteFile(config, []byte("name: courier\nadmin: {listen: \"\"}\nwebhook: {allow: [127.0.0.0/8]}\nsecrets: {billing: whsec_"+strings.Repeat("c2VjcmV0", 4)+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := c.begins(config)
	// A worker that has never run is worth a warning until its first pass.
	c.until("all workers have run", func() bool {
		return c.value(`select count(*)::text from tidemark.worker_cursor where last_run_at is null`) == "0"
	})
	emitted := 0
	emit := func(events int) {
		c.emit(emitted+1, emitted+events)
		emitted += events
	}

	c.goesOn(func(int) {}) // idle; both tables are quiet, now and later

	report := c.report(min(c.part, 4*time.Minute))
	c.goesOn(func(look int) {
		if look%4 == 0 {
			emit(10)
		}
	})
	if err := <-report; err != nil {
		t.Errorf("the report: %v", err)
	}

	emit(batch)
	c.goesOn(func(int) {})

	c.goesOn(func(look int) { // bursts
		if look%8 == 0 {
			emit(500)
		}
	})

	c.ends(d) // while there is work
	emit(100)
	c.look()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Pool.Reset()
	c.until("the server answers", func() bool { return c.Pool.Ping(t.Context()) == nil })
	d = c.begins(config)
	c.goesOn(func(look int) {
		if look%4 == 0 {
			emit(10)
		}
	})

	c.handled(emitted)
	c.until("the webhook has all", func() bool { return hook.events() == emitted })
	c.goesOn(func(int) {}) // idle again
	c.ends(d)
	if n := c.value(`select coalesce(string_agg(kind || ' ' || subject, ', '), '') from tidemark.finding`); n != "" {
		t.Errorf("findings in the calm: %s", n)
	}
	c.quiet()
	t.Logf("%d looks, %d events", c.looks, emitted)
}

// report is a query that takes this long, in its own transaction.
func (c *calm) report(takes time.Duration) (done chan error) {
	c.t.Helper()
	done = make(chan error, 1)
	conn, err := pgx.Connect(c.t.Context(), c.URL)
	if err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer func() { _ = conn.Close(context.Background()) }()
		_, err := conn.Exec(c.t.Context(), fmt.Sprintf(`select count(*) from tidemark.outbox cross join pg_sleep(%f)`, takes.Seconds()))
		done <- err
	}()
	return done
}

// quiet: the logs have no line above INFO.
func (c *calm) quiet() {
	c.t.Helper()
	for _, name := range c.logs {
		text, err := os.ReadFile(name)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(bytes.TrimSpace(text)) == 0 {
			c.t.Errorf("%s is empty", name)
		}
		for line := range bytes.Lines(text) {
			var l struct{ Level string }
			if err := json.Unmarshal(line, &l); err != nil || l.Level != "INFO" {
				c.t.Errorf("a line of the log in the calm: %s", line)
			}
		}
	}
}
