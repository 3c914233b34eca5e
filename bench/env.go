package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/devpg/download"
	"github.com/tidemarkhq/tidemark/migrate"
)

const database = "tidemark_bench"

// settings of the private cluster: durable, and large enough that no checkpoint falls into a run.
var settings = map[string]string{
	"shared_buffers":     "1GB",
	"max_wal_size":       "8GB",
	"checkpoint_timeout": "30min",
}

// logicalSettings let Debezium read the WAL, and stand still for a while.
var logicalSettings = map[string]string{"wal_level": "logical", "wal_sender_timeout": "0"}

// env is what contestants share: one database of one server.
type env struct {
	options
	dsn     string
	admin   string        // another database of the server
	conn    *pgx.Conn     // for seeding, checking and contestants that need one session
	pool    *pgxpool.Pool // for contestants that need many
	meter   *meter
	pgbench string
	backlog *backlog
	version string
	load    string // of the machine, before we began
	server  *devpg.Server
	far     *env       // the same database, a round trip away
	line    *delayLine // to it
	others  []*env     // of other servers
	atEnd   []func()
}

// scaled is the size of a run: a fiftieth where results are checked alone.
func (e *env) scaled(n int) int {
	if e.check {
		return n / 50
	}
	return n
}

// pause is how long a phase of a run lasts: a tenth where results are checked alone.
func (e *env) pause(d time.Duration) time.Duration {
	if e.check {
		return d / 10
	}
	return d
}

func newEnv(ctx context.Context, o options) (_ *env, err error) {
	e := &env{options: o, load: loadAverage()}
	defer func() {
		if err != nil {
			e.close()
		}
	}()

	e.admin = o.url
	if e.admin == "" {
		// As PostgreSQL's default has it, other than that of servers for tests. Emits are quicker where no transaction can be prepared.
		all := map[string]string{"max_prepared_transactions": "0"}
		if !o.stock {
			maps.Copy(all, settings)
		}
		if o.workload == wKafka.number {
			maps.Copy(all, logicalSettings)
		}
		if o.profiles != "" {
			maps.Copy(all, profilingSettings)
		}
		e.server, err = devpg.Start(ctx, devpg.Options{Durable: true, Settings: all, Fetch: download.Postgres})
		if err != nil {
			return nil, err
		}
		e.admin = e.server.SocketURL("postgres")
		e.dsn = e.server.SocketURL(database)
		e.pgbench = filepath.Join(e.server.BinDir(), "pgbench")
	} else {
		u, err := url.Parse(e.admin)
		if err != nil {
			return nil, fmt.Errorf("-url: %w", err)
		}
		u.Path = "/" + database
		e.dsn = u.String()
		e.pgbench, _ = exec.LookPath("pgbench")
	}
	if err := recreate(ctx, e.admin); err != nil {
		return nil, err
	}
	if e.conn, err = pgx.Connect(ctx, e.dsn); err != nil {
		return nil, err
	}
	if e.pool, err = newPool(ctx, e.dsn); err != nil {
		return nil, err
	}
	if _, err := migrate.Up(ctx, e.conn); err != nil {
		return nil, err
	}
	for _, sql := range []string{schemaSQL, writersSQL, tidemarkSQL, sweepSQL} {
		if err := e.exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	if err := e.conn.QueryRow(ctx, "select current_setting('server_version')").Scan(&e.version); err != nil {
		return nil, err
	}
	if e.meter, err = newMeter(ctx, e.dsn); err != nil {
		return nil, err
	}
	e.backlog = &backlog{env: e}
	return e, e.goFar(ctx)
}

// goFar makes the environment of those whose server is in another zone. They share the backlog.
func (e *env) goFar(ctx context.Context) (err error) {
	far := *e
	if e.line, far.dsn, err = newServerLine(e.dsn, "127.0.0.1", roundTrip); err != nil {
		return err
	}
	far.line, far.server = nil, nil
	e.far = &far
	if far.conn, err = pgx.Connect(ctx, far.dsn); err != nil {
		return err
	}
	far.pool, err = newPool(ctx, far.dsn)
	return err
}

// newPool gives peers more connections than they ask for.
func newPool(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 20
	return pgxpool.NewWithConfig(ctx, config)
}

// recreate makes the database anew, so that every call starts from the same state.
func recreate(ctx context.Context, admin string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "drop database if exists "+database); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "create database "+database)
	return err
}

func (e *env) close() {
	ctx := context.Background()
	for _, end := range e.atEnd {
		end()
	}
	for _, other := range e.others {
		other.close()
	}
	if e.far != nil {
		if e.far.pool != nil && e.far.pool != e.pool {
			e.far.pool.Close()
		}
		e.line.close()
	}
	if e.meter != nil {
		e.meter.close(ctx)
	}
	if e.pool != nil {
		e.pool.Close()
	}
	if e.conn != nil {
		_ = e.conn.Close(ctx)
	}
	if e.server != nil {
		_ = e.server.Stop()
	}
}

// exec runs one or several statements without parameters.
func (e *env) exec(ctx context.Context, sql string) error {
	_, err := e.conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// vacuum leaves tables as they would be after a quiet minute: hint bits, visibility map, statistics.
func (e *env) vacuum(ctx context.Context, tables ...string) error {
	return e.exec(ctx, "vacuum analyze "+strings.Join(tables, ", "))
}

// count returns the one number that a query gives.
func (e *env) count(ctx context.Context, sql string, args ...any) (n int, err error) {
	err = e.conn.QueryRow(ctx, sql, args...).Scan(&n)
	return n, err
}

// expect fails where a query does not give the number it should.
func (e *env) expect(ctx context.Context, what string, want int, sql string, args ...any) error {
	got, err := e.count(ctx, sql, args...)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s: got %d, want %d", what, got, want)
	}
	return nil
}

// loadAverage is that of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if load, _, ok := strings.Cut(string(text), " "); err == nil && ok {
		return load
	}
	return "unknown"
}

// machine describes where the figures come from.
func (e *env) machine() string {
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				model = strings.Trim(name, " \t:\n")
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d CPUs (%s), PostgreSQL %s, %s, load %s before", runtime.GOOS, runtime.NumCPU(), model, e.version, runtime.Version(), e.load)
}
