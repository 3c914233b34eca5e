package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/devpg/download"
	"github.com/tidemarkhq/tidemark/internal/trial"
	"github.com/tidemarkhq/tidemark/migrate"
)

//go:embed app.sql
var app string

// The routes.
const (
	healthy     = "healthy"     // a webhook in order, whose receiver is never ill
	flaky       = "flaky"       // a webhook in order, whose receiver is
	plain       = "plain"       // a webhook without order, which is switched off and on
	inside      = "inside"      // effects in the application's own table
	unreachable = "unreachable" // a webhook where nothing listens
)

const worker = "default"

var targets = []target{
	{Route: healthy, Ordered: true},
	{Route: flaky, Ordered: true},
	{Route: plain},
	{Route: inside, Inside: true},
	{Route: unreachable, Ordered: true, Kind: "alarm", Dead: true},
}

// usual moods of the receivers.
var usual = map[string]mood{
	healthy: {},
	flaky:   {fail: 0.01, lose: 0.002, hang: 0.0005},
	plain:   {},
}

// settings make crashes lose what may be lost: a commit that does not wait for the disk is on its own for long.
var settings = map[string]string{
	"max_connections": "150", "max_prepared_transactions": "60", "wal_writer_delay": "2s",
	"checkpoint_timeout": "30s", "max_wal_size": "512MB", "log_min_messages": "panic", "log_min_error_statement": "panic",
}

// build makes the daemon's program, with failpoints.
func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "tidemark")
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "failpoints", "-o", binary, "github.com/tidemarkhq/tidemark/cmd/tidemark")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}

// setUp starts everything that the run needs.
func (h *harness) setUp(ctx context.Context) error {
	var err error
	if h.server, err = devpg.Start(ctx, devpg.Options{Durable: true, Settings: settings, BinDir: h.pg, Fetch: download.Postgres}); err != nil {
		return err
	}
	h.cleanup = append(h.cleanup, h.server.Stop)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	for i, route := range []string{healthy, flaky, plain} {
		r, err := newReceiver(ctx, route, key, usual[route], &h.arrivals, mathrand.New(mathrand.NewPCG(h.seed, uint64(1000+i))))
		if err != nil {
			return err
		}
		link, err := newProxy(ctx, r.Address())
		if err != nil {
			return err
		}
		r.refuses = route != plain
		h.receivers[route], h.links[route] = r, link
		h.cleanup = append(h.cleanup, func() error { link.close(); return r.Close() })
	}
	if err := h.install(ctx); err != nil {
		return err
	}
	return h.startDaemons(ctx, "whsec_"+base64.StdEncoding.EncodeToString(key))
}

func (h *harness) install(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, h.url())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := migrate.Up(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, app); err != nil {
		return fmt.Errorf("app.sql: %w", err)
	}
	if _, err := conn.Exec(ctx, `insert into app.account (key) select 'k' || i from generate_series(0, $1) i
		union all select 's' || i from generate_series(0, $2) i union all select 'x' || i from generate_series(0, 499) i`,
		keys-1, slowKeys-1); err != nil {
		return err
	}
	for _, kind := range []string{"tick", "alarm"} {
		if _, err := conn.Exec(ctx, `select tidemark.type_set('chaos', $1)`, kind); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, `select tidemark.stage_set('live', 'chaos')`); err != nil {
		return err
	}
	for i := range targets {
		if err := h.installRoute(ctx, conn, &targets[i]); err != nil {
			return err
		}
	}
	if h.withShards() {
		if err := setShards(ctx, conn, firstShards); err != nil {
			return err
		}
	}
	if h.withTables() {
		if err := h.installTables(ctx, conn); err != nil {
			return err
		}
	}
	if h.withCommands() {
		if err := h.installCommands(ctx, conn); err != nil {
			return err
		}
	}
	for _, edit := range h.mutant.sql {
		if err := edit.apply(ctx, conn); err != nil {
			return err
		}
	}
	// What was made of an edited function before.
	if _, err := conn.Exec(ctx, `select tidemark.capture_refresh()`); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `select tidemark.gate_set($1, true), tidemark.gate_set($2, true)`, masterGate, "worker."+worker+".enabled")
	return err
}

func (h *harness) installRoute(ctx context.Context, conn *pgx.Conn, t *target) error {
	row := map[string]any{
		"domain": "chaos", "target_kind": "webhook", "ordering": "none", "enabled": true, "dry_run": false,
		"timeout": "2 seconds", "concurrency": 16, "options": map[string]any{"secret": "chaos"},
		"retry_policy": map[string]any{"max_attempts": 100, "base_seconds": 0.1, "max_seconds": 1},
	}
	switch {
	case t.Inside:
		row["target_kind"], row["target_ref"], row["options"] = "sql", "app.take", map[string]any{}
	case t.Dead:
		row["target_ref"] = "http://127.0.0.1:1/" // where nothing listens
	default:
		row["target_ref"] = "http://" + h.links[t.Route].addr() + "/"
	}
	if t.Ordered {
		row["ordering"] = "key"
	}
	if t.Kind != "" {
		row["type"] = t.Kind
	}
	changes, err := json.Marshal(row)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `select tidemark.route_set($1, $2)`, t.Route, string(changes))
	return err
}

func (h *harness) startDaemons(ctx context.Context, secret string) error {
	environ := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "TIDEMARK_") || strings.HasPrefix(s, "PG") || strings.HasPrefix(s, "DATABASE_URL=")
	})
	share := h.pause
	if h.mutant.pause > 0 {
		share = h.mutant.pause
	}
	environ = append(environ, "TIDEMARK_PAUSE="+strconv.FormatFloat(share, 'f', -1, 64), "TIDEMARK_BUG="+h.mutant.bug)
	port, run := h.server.Port(), ""
	switch h.path {
	case byPgBouncer:
		var err error
		if port, err = h.throughPgBouncer(ctx); err != nil {
			return err
		}
	case byPsql:
		run = worker
		h.startClients(ctx)
	}
	for i := range 2 {
		p, err := newProxy(ctx, fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return err
		}
		url := "postgres://chaos_daemon@" + p.addr() + "/postgres?sslmode=disable"
		d, err := newDaemon(fmt.Sprintf("d%d", i), h.binary, h.dir, url, run, secret, h.commandsConfiguration(), environ)
		if err != nil {
			return err
		}
		h.wires, h.daemons = append(h.wires, p), append(h.daemons, d)
		h.cleanup = append(h.cleanup, func() error { p.close(); return nil }, d.end)
	}
	return h.awaitOwner(ctx)
}

// awaitOwner returns when one of the daemons works.
func (h *harness) awaitOwner(ctx context.Context) error {
	for deadline := time.Now().Add(20 * time.Second); ; {
		i, err := h.owner(ctx)
		if err != nil || i >= 0 {
			return err
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(h.daemons[0].log.Name())
			return fmt.Errorf("no daemon has taken the lease; the first one says\n%s", text[max(0, len(text)-1000):])
		}
		if err := trial.Wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
