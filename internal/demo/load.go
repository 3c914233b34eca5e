package demo

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/tidemarkhq/tidemark/internal/postgres"
)

//go:embed load.pgbench
var script []byte

// load lets pgbench write while two instances of the worker run, one event is poison, and the gate is
// closed and opened.
func (s *show) load(ctx context.Context) error {
	s.say("\n3. pgbench writes for %.0f s with 8 clients: some transactions roll back, some stay open for up to\n"+
		"   a second after they emitted, some roll back to a savepoint. Two instances of the worker run.", s.loadTime.Seconds())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	written := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(written)
		return s.pgbench(ctx)
	})
	var count sync.Mutex
	for range 2 {
		group.Go(func() error {
			passes, late, err := work(ctx, s.url, written)
			count.Lock()
			defer count.Unlock()
			s.passes += passes
			s.late += late
			return err
		})
	}
	group.Go(func() error { return s.disturb(ctx) })
	group.Go(func() error { return s.progress(ctx, written) })
	return group.Wait()
}

func (s *show) pgbench(ctx context.Context) error {
	program, err := s.program("pgbench")
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "tidemark-demo-*.pgbench")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if _, err := file.Write(script); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "--no-vacuum", "--client=8", "--jobs=2", "--protocol=prepared",
		"--time="+strconv.Itoa(int(s.loadTime.Seconds())), "--file="+file.Name(), "postgres")
	cmd.Env = append(os.Environ(), s.server.Env()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	return nil
}

// program finds one of PostgreSQL's own programs: beside the server, or on the path.
func (s *show) program(name string) (string, error) {
	beside := filepath.Join(s.server.BinDir(), name)
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("the demo needs %s, which comes with PostgreSQL: apt-get install postgresql, or brew install postgresql@17", name)
	}
	return path, nil
}

// work is an instance of the worker: one pass after the other, until all that was written is decided.
func work(ctx context.Context, url string, written <-chan struct{}) (passes, late int64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	db := postgres.New(conn)
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		over := isClosed(written)
		pass, err := db.RouteWorkerRun(ctx, worker, 5000)
		if err != nil {
			return passes, late, err
		}
		passes++
		late += int64(pass.Late)
		if pass.Events > 0 {
			continue
		}
		if over && pass.Status == "ran" {
			if settled, err := settled(ctx, db); settled || err != nil {
				return passes, late, err
			}
		}
		select {
		case <-ctx.Done():
			return passes, late, ctx.Err()
		case <-poll.C:
		}
	}
}

// settled: the cursor, which has come to the end of the log, looks out for nothing below it any more.
func settled(ctx context.Context, db *postgres.DB) (bool, error) {
	health, err := db.WorkerHealthOf(ctx, worker)
	return health.Behind == 0 && health.Holes == 0, err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// disturb emits the poison event and closes the gate for a while, under load.
func (s *show) disturb(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	if err := pause(ctx, s.loadTime/5); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `
insert into demo.journal (event_id, unit_id, version)
values (tidemark.emit_strict('iu', 'version_applied', '{"unit_id": "unit-poison", "version_id": "not a number"}'), 'unit-poison', 0)`); err != nil {
		return err
	}

	gate := `select tidemark.gate_set('worker.` + worker + `.enabled', $1, 'demo')`
	if _, err := conn.Exec(ctx, gate, false); err != nil {
		return err
	}
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	received := `select count(*) from demo.received`
	var before, after int64
	if err := conn.QueryRow(ctx, received).Scan(&before); err != nil {
		return err
	}
	if err := pause(ctx, s.loadTime/5); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, received).Scan(&after); err != nil {
		return err
	}
	s.whileClosed = after - before
	_, err = conn.Exec(ctx, gate, true)
	return err
}

// progress says now and then how far both sides have come.
func (s *show) progress(ctx context.Context, written <-chan struct{}) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	tick := time.NewTicker(s.loadTime / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-written:
			return nil
		case <-tick.C:
		}
		var committed, received int64
		var open bool
		if err := conn.QueryRow(ctx, `select (select count(*) from demo.journal), (select count(*) from demo.received),
			tidemark.gate_open('worker.`+worker+`.enabled')`).Scan(&committed, &received, &open); err != nil {
			return err
		}
		note := ""
		if !open {
			note = "   (the gate is closed for a moment)"
		}
		s.say("   %6d committed, %6d received%s", committed, received, note)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
