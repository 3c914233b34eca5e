// Command console measures each page and list of the web console on an installation that has been in use for long: how long the
// server takes for it, how many statements it sends and how many bytes it answers. It fails where one is over its limit.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/console"
	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/devpg/download"
	"github.com/tidemarkhq/tidemark/migrate"
)

// What a page may cost. A list of the API that is given whole may be longer.
const (
	maxTime       = 200 * time.Millisecond
	maxStatements = 10
	maxBytes      = 100_000
)

// asked is each page and each list. $ is the number of events.
var asked = []string{
	"/", "/?hours=24", "/?hours=168", "/routes", "/routes?q=route-99", "/routes/route-7", "/routes/route-7?hours=168", "/routes/route-7?backtest=1",
	"/events", "/events?type=type.7", "/events?key=key.7", "/events?key=unknown", "/events?domain=bench&type=type.7&before=1000000", "/events/$",
	"/events/1", "/events/1?why=route-1", "/waiting", "/waiting?route=route-7", "/dead-letters", "/dead-letters?route=route-7", "/dead-letters?code=unknown",
	"/dead-letters/7", "/workers", "/workers/w7", "/sources", "/commands", "/heartbeats", "/findings", "/audit", "/audit?who=ops", "/audit?who=unknown",
	"/audit?object=outbound_route", "/settings", "/act/route-replay?route=route-7", "/act/letters-replay?route=route-7",
	"/api/v1/status", "/api/v1/causes", "/api/v1/history", "/api/v1/history?hours=168", "/api/v1/routes", "/api/v1/route-summaries", "/api/v1/replays",
	"/api/v1/events?limit=500", "/api/v1/pending?limit=500", "/api/v1/dead-letters?limit=500", "/api/v1/dead-letter-groups",
	"/api/v1/dead-letter-jobs", "/api/v1/workers", "/api/v1/sources", "/api/v1/captures", "/api/v1/services", "/api/v1/heartbeats",
	"/api/v1/findings", "/api/v1/findings?closed=true&limit=500", "/api/v1/audit?limit=500", "/api/v1/gates", "/api/v1/stage", "/api/v1/settings",
	"/api/v1/domains", "/api/v1/types", "/api/v1/packs", "/api/v1/outlook", "/api/v1/routes/route-7/latency", "/api/v1/routes/route-7/switches", "/api/v1/route-latencies?routes=route-1,route-2,route-3",
}

//go:embed seed.sql
var seedSQL string

func main() {
	events := flag.Int("events", 10_000_000, "events in the log")
	dir := flag.String("dir", "", "keep the cluster here, filled, for the next run (default: a temporary one)")
	only := flag.String("only", "", "ask only for this path")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *events, *dir, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, events int, dir, only string) error {
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	server, err := devpg.Start(ctx, devpg.Options{Dir: dir, Fetch: download.Postgres, Durable: true, Settings: map[string]string{"shared_buffers": "1GB", "max_wal_size": "8GB"}})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	config, err := pgxpool.ParseConfig(server.SocketURL("postgres"))
	if err != nil {
		return err
	}
	counted := &counter{}
	config.ConnConfig.Tracer, config.MaxConns, config.MaxConnLifetime = counted, 4, 24*time.Hour
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		counted.backends.Store(conn.PgConn().PID(), true)
		return nil
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	version, err := fill(ctx, pool, events)
	if err != nil {
		return err
	}
	fmt.Printf("%s UTC, PostgreSQL %s, %d events, load %s before\n\n| | CPU ms | ms | statements | bytes | |\n|---|---|---|---|---|---|\n",
		time.Now().UTC().Format("2006-01-02 15:04"), version, events, load)
	over := false
	for _, path := range asked {
		path = strings.ReplaceAll(path, "$", strconv.Itoa(events))
		if only != "" && path != only {
			continue
		}
		if err := beat(ctx, pool); err != nil {
			return err
		}
		a, err := ask(ctx, pool, counted, path)
		if err != nil {
			return err
		}
		verdict := a.verdict(strings.HasPrefix(path, "/api/"))
		over = over || verdict != ""
		fmt.Printf("| `%s` | %.0f | %.0f | %d | %d | %s |\n", path, a.cpu.Seconds()*1000, a.took.Seconds()*1000, a.statements, a.bytes, verdict)
	}
	if over {
		return errors.New("over the limit")
	}
	return nil
}

// fill makes the installation, unless it is there.
func fill(ctx context.Context, pool *pgxpool.Pool, events int) (version string, err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Release()
	if _, err := migrate.Up(ctx, conn.Conn()); err != nil {
		return "", err
	}
	var filled bool
	if err := conn.QueryRow(ctx, "select current_setting('server_version'), exists (select from tidemark.outbound_route)").Scan(&version, &filled); err != nil || !filled {
		if err != nil {
			return "", err
		}
		for _, statements := range strings.Split(strings.ReplaceAll(seedSQL, "$events", strconv.Itoa(events)), ";\n\n") {
			for _, part := range parts(statements, events) {
				if _, err := conn.Conn().PgConn().Exec(ctx, part).ReadAll(); err != nil {
					return "", fmt.Errorf("%.60s…: %w", part, err)
				}
			}
		}
	}
	for _, sql := range []string{
		`select tidemark.maintain()`, `update tidemark.pending set next_attempt_at = now() + interval '1 hour'`,
		`vacuum analyze tidemark.pending`, `vacuum analyze tidemark.worker_cursor`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	return version, nil
}

// beat keeps the workers and the daemon alive: they have read what Tidemark emitted meanwhile.
func beat(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `with beaten as (update tidemark.heartbeat set last_beat_at = clock_timestamp(), last_status = 'idle')
		update tidemark.worker_cursor set last_run_at = clock_timestamp(), horizon = clock_timestamp(),
			watermark_id = (select max(o.seq) from tidemark.outbox o)::text, decided_through = (select max(o.seq) from tidemark.outbox o)`)
	return err
}

// parts repeats statements that name $from and $to, for some events at a time: partitions are made in between, as the log grows.
func parts(statements string, events int) (all []string) {
	if !strings.Contains(statements, "$from") {
		return []string{statements}
	}
	const some = 500_000
	for first := 1; first <= events; first += some {
		all = append(all, strings.NewReplacer("$from", strconv.Itoa(first), "$to", strconv.Itoa(min(first+some-1, events))).Replace(statements))
	}
	return all
}

// answer is what a path cost.
type answer struct {
	took       time.Duration
	cpu        time.Duration // of the backends and of this process, which is the console
	statements int64
	bytes      int
	status     int
}

// rounds are asked for each path. The first ones do not count: they fill the server's buffers, and each of the two connections that the
// overview takes in turn plans its statements once. What the console has read just now it does not read again: this is the time after
// which it does.
const (
	rounds    = 7
	uncounted = 3
	forgotten = 2100 * time.Millisecond
)

// ask asks a console for a path as one who reads its pages does. The time is the median of the rounds.
func ask(ctx context.Context, pool *pgxpool.Pool, counted *counter, path string) (a answer, err error) {
	var times []time.Duration
	h, err := console.New(pool, console.Options{Identify: func(*http.Request) (console.Person, bool) {
		return console.Person{Name: "bench", Role: console.Admin}, true
	}})
	if err != nil {
		return a, err
	}
	var busy []time.Duration
	for round := range rounds {
		got, before, used, began := httptest.NewRecorder(), counted.n.Load(), counted.cpu(), time.Now()
		h.ServeHTTP(got, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		times, busy = append(times, time.Since(began)), append(busy, counted.cpu()-used)
		if round == 0 { // with the health in the head of the page, which is renewed meanwhile later on
			a.statements = counted.n.Load() - before
		}
		a.bytes, a.status = got.Body.Len(), got.Code
		if !strings.HasPrefix(path, "/api/") || path == "/api/v1/status" || path == "/api/v1/causes" { // programs share what is wrong
			time.Sleep(forgotten)
		}
	}
	a.took, a.cpu = median(times[uncounted:]), median(busy[uncounted:])
	return a, nil
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// verdict says which limits it is over.
func (a answer) verdict(api bool) string {
	var over []string
	if a.status != http.StatusOK {
		over = append(over, fmt.Sprint("status ", a.status))
	}
	if a.took > maxTime {
		over = append(over, "slow")
	}
	if a.statements > maxStatements {
		over = append(over, "many statements")
	}
	if a.bytes > maxBytes && !api {
		over = append(over, "long")
	}
	return strings.Join(over, ", ")
}

// counter counts statements, but for those that begin and end transactions.
type counter struct {
	n        atomic.Int64
	backends sync.Map // process ids of the server's, as uint32
}

// cpu is the time that this process and the server's backends have computed for. Where the system does not tell that of another process,
// it is of this one alone.
func (c *counter) cpu() (used time.Duration) {
	var self syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &self) == nil {
		used = time.Duration(self.Utime.Nano() + self.Stime.Nano())
	}
	c.backends.Range(func(pid, _ any) bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		first, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(first, 10, 64)
		used += time.Duration(ns)
		return true
	})
	return used
}

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if word, _, _ := strings.Cut(strings.ToLower(data.SQL), " "); word != "begin" && word != "commit" && word != "rollback" {
		c.n.Add(1)
	}
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
