// Package clients_test runs the programs of docs/clients as they stand there, each with the libraries of its language.
package clients_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/runtimes"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m, func() error { return goleak.Find() }) }

// A language has commands for the programs of its page. Those that emit take a customer and a total.
type language struct {
	emit             map[string][]string // by the name of the library
	receive, consume []string
}

// languages prepare a directory that holds the programs of a page.
var languages = map[string]func(t *testing.T, dir string, db *url.URL) language{
	"python": func(t *testing.T, dir string, db *url.URL) language {
		python := filepath.Join(runtimes.Installed(t, "clients-python"), "bin", "python")
		write(t, dir, "run_emit.py", fmt.Sprintf(`
import sys, psycopg
from emit import create_order
with psycopg.connect(%q) as conn:
    create_order(conn, sys.argv[1], int(sys.argv[2]))
`, db))
		write(t, dir, "run_orders.py", fmt.Sprintf(`
import sys, django
from django.conf import settings
from django.db import models
settings.configure(INSTALLED_APPS=[], DATABASES={"default": {"ENGINE": "django.db.backends.postgresql",
    "HOST": %q, "PORT": %q, "NAME": %q, "USER": %q}})
django.setup()
class Order(models.Model):
    customer = models.TextField()
    total = models.IntegerField()
    class Meta:
        app_label, db_table = "shop", "orders"
from orders import create_order, emit
try:
    emit("shop", "nope", {}, "order-1")
except django.db.DatabaseError as error:
    assert error.__cause__.sqlstate == "TM001", error
else:
    raise SystemExit("a type that is not registered is emitted")
create_order(Order, sys.argv[1], int(sys.argv[2]))
`, db.Hostname(), db.Port(), strings.TrimPrefix(db.Path, "/"), db.User.Username()))
		return language{
			map[string][]string{"psycopg": {python, "run_emit.py"}, "Django": {python, "run_orders.py"}},
			[]string{python, "receive.py"},
			[]string{python, "consume.py"},
		}
	},
	"node": func(t *testing.T, dir string, db *url.URL) language {
		runtimes.Need(t, "node")
		if err := os.Symlink(filepath.Join(runtimes.Installed(t, "clients-node"), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		write(t, dir, "run_emit.mjs", fmt.Sprintf(`
import pg from "pg";
import { createOrder } from "./emit.mjs";
const pool = new pg.Pool({ connectionString: %q });
try {
  await createOrder(pool, process.argv[2], Number(process.argv[3]));
} finally {
  await pool.end();
}
`, db))
		return language{
			map[string][]string{"node-postgres": {"node", "run_emit.mjs"}},
			[]string{"node", "receive.mjs"},
			[]string{"node", "consume.mjs"},
		}
	},
	"java": func(t *testing.T, dir string, db *url.URL) language {
		runtimes.Need(t, "javac")
		jars := filepath.Join(runtimes.Installed(t, "clients-java"), "*")
		jdbc := fmt.Sprintf("jdbc:postgresql://%s%s?user=%s", db.Host, db.Path, db.User.Username())
		write(t, dir, "RunEmit.java", fmt.Sprintf(`
class RunEmit {
    public static void main(String[] args) throws Exception {
        try (var conn = java.sql.DriverManager.getConnection(%q)) {
            Emit.createOrder(conn, args[0], Integer.parseInt(args[1]));
        }
    }
}
`, jdbc))
		write(t, dir, "RunOrders.java", fmt.Sprintf(`
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.*;
import org.springframework.transaction.support.TransactionTemplate;
class RunOrders {
    public static void main(String[] args) {
        var source = new DriverManagerDataSource(%q);
        var transaction = new TransactionTemplate(new DataSourceTransactionManager(source));
        new Orders(new JdbcTemplate(source), transaction).create(args[0], Integer.parseInt(args[1]));
    }
}
`, jdbc))
		files, err := filepath.Glob(filepath.Join(dir, "*.java"))
		if err != nil {
			t.Fatal(err)
		}
		runtimes.Run(t, dir, append([]string{"javac", "-Xlint:all,-path,-processing", "-Werror", "-d", ".", "-cp", jars}, files...)...)
		java := func(class string) []string {
			return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", "." + string(os.PathListSeparator) + jars, class}
		}
		return language{map[string][]string{"JDBC": java("RunEmit"), "Spring": java("RunOrders")}, java("Receive"), java("Consume")}
	},
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// programs writes the blocks of a page whose first line names a file.
func programs(t *testing.T, dir, page string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/clients", page))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```\\w+\n((?://|#) (\\S+\\.\\w+)\n.*?)```").FindAllSubmatch(text, -1)
	if len(found) < 2 {
		t.Fatalf("%s has %d programs", page, len(found))
	}
	for _, block := range found {
		write(t, dir, string(block[2]), string(block[1]))
	}
}

// printed are the lines that a program prints, while the test runs.
func printed(t *testing.T, dir string, command []string, environment ...string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), environment...), t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, done := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(done)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = cmd.Wait() // it was killed
	})
	return lines
}

func next(t *testing.T, what string, lines <-chan string) string {
	t.Helper()
	select {
	case line := <-lines:
		return line
	case <-time.After(2 * time.Minute):
		t.Fatalf("no line of %s", what)
		return ""
	}
}

const secret = "whsec_dGhpcyBpcyBhIGtleSBvZiAzMiBieXRlcywgaW5kZWVk"

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// AD5: what a page's programs emit commits with the order or not at all, arrives at the page's receiver, which refuses what is not
// signed and survives a request that is aborted, and at the page's consumer.
func TestClients(t *testing.T) {
	if testing.Short() {
		t.Skip("a compiler and a runtime for each language")
	}
	t.Parallel()
	for name, prepare := range languages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, dir := tidemarktest.NewDB(t), t.TempDir()
			programs(t, dir, name+".md")
			address, err := url.Parse(db.URL)
			if err != nil {
				t.Fatal(err)
			}
			l := prepare(t, dir, address)
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cluster.Close)
			port := testserver.FreePort(t)
			hooks := fmt.Sprintf("http://127.0.0.1:%d/hooks", port)
			received := printed(t, dir, l.receive, "WEBHOOK_SECRET="+secret, "PORT="+strconv.Itoa(port))
			consumed := printed(t, dir, l.consume, "KAFKA="+cluster.ListenAddrs()[0])
			deliver(t, db, hooks, cluster.ListenAddrs()[0])

			for library, command := range l.emit {
				emit(t, db, dir, library, command)
				var id string
				if err := db.Pool.QueryRow(t.Context(), `select event_id from tidemark.outbox o join orders on o.key = 'order-' || id where customer = $1`, "ada é "+library).
					Scan(&id); err != nil {
					t.Fatalf("%s: %v", library, err)
				}
				want := id + " order.created ada é " + library
				if got := next(t, "the receiver", received); got != want {
					t.Errorf("%s: received %q, want %q", library, got, want)
				}
				if got := next(t, "the consumer", consumed); got != want {
					t.Errorf("%s: consumed %q, want %q", library, got, want)
				}
			}
			refuses(t, hooks)
		})
	}
}

// emit runs a program, once so that it commits, and once so that the commit fails.
func emit(t *testing.T, db *tidemarktest.DB, dir, library string, command []string) {
	t.Helper()
	run := func(total string) error {
		cmd := exec.CommandContext(t.Context(), command[0], append(command[1:len(command):len(command)], "ada é "+library, total)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	}
	if err := run("12"); err != nil {
		t.Fatalf("%s: %v", library, err)
	}
	if err := run("-1"); err == nil || !strings.Contains(err.Error(), "orders cost something") {
		t.Errorf("%s: a commit that fails: %v", library, err)
	}
	var orders, events int
	if err := db.Pool.QueryRow(t.Context(), `select (select count(*) from orders where customer = $1), (select count(*) from tidemark.outbox where payload ->> 'customer' = $1)`,
		"ada é "+library).Scan(&orders, &events); err != nil || orders != 1 || events != 1 {
		t.Errorf("%s: %d orders and %d events, %v", library, orders, events, err)
	}
}

// refuses demands 401 for a request with a forged signature, also after a request that was aborted.
func refuses(t *testing.T, hooks string) {
	t.Helper()
	aborts(t, strings.TrimSuffix(strings.TrimPrefix(hooks, "http://"), "/hooks"))
	body, err := json.Marshal(map[string]any{"id": "forged"})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hooks, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("webhook-id", "forged")
	request.Header.Set("webhook-timestamp", strconv.FormatInt(time.Now().Unix(), 10))
	request.Header.Set("webhook-signature", "v1,Zm9yZ2VkIGZvcmdlZCBmb3JnZWQgZm9yZ2VkIGZvcmc=")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a forged request is answered %s", response.Status)
	}
}

// aborts sends half a request, and waits until the receiver has seen its end.
func aborts(t *testing.T, address string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "POST /hooks HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{", address); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Error("the receiver does not end an aborted request:", err)
	}
}

// deliver runs a daemon with a route to the receiver and one to Kafka.
func deliver(t *testing.T, db *tidemarktest.DB, hooks, broker string) {
	t.Helper()
	for _, sql := range []string{
		`create table orders (id bigint generated always as identity primary key, customer text not null, total int not null)`,
		`create function cost() returns trigger language plpgsql as $$ begin if new.total < 0 then raise 'orders cost something'; end if; return null; end $$`,
		`create constraint trigger cost after insert on orders deferrable initially deferred for each row execute function cost()`,
		`select tidemark.type_set('shop', 'order.created')`,
		`select tidemark.stage_set('live', 'test')`,
		fmt.Sprintf(`select tidemark.route_set('hooks', '{"domain": "shop", "target_kind": "webhook", "target_ref": %q, "options": {"secret": "billing"},
			"enabled": true, "dry_run": false}')`, hooks),
		`select tidemark.route_set('kafka', '{"domain": "shop", "target_kind": "kafka", "target_ref": "orders", "enabled": true, "dry_run": false}')`,
		`select tidemark.gate_set(gate, true) from unnest(array['routes.enabled', 'worker.default.enabled']) gate`,
	} {
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	runtimes.Daemon(t, db.URL, broker, func(c *config.Config) {
		c.Secrets = map[string][]config.Secret{"billing": {config.NewSecret(secret)}}
		c.Webhook.Allow = loopback
	})
}
