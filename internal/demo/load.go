package demo

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/trial"
)

//go:embed load.pgbench
var script []byte

const (
	units    = 200 // as app.sql makes them
	emitters = 4
	// One of so many transactions of an emitter rolls back.
	rollbackEvery = 20
)

// load lets the application write while two daemons deliver and things go wrong, and waits until everything
// that was committed has arrived.
func (s *show) load(ctx context.Context) error {
	s.say("\n3. Two daemons (tidemark run) deliver. The application writes for %.0f s: pgbench with 8 clients, of which\n"+
		"   some roll back, stay open for up to a second after they emitted, or roll back to a savepoint; and a Go\n"+
		"   program that emits with the library.\n", s.options.Load.Seconds())
	for _, name := range []string{"one", "two"} {
		if err := s.startDaemon(ctx, name); err != nil {
			return err
		}
	}
	s.began = time.Now()
	written := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(written)
		writers, ctx := errgroup.WithContext(ctx)
		writers.Go(func() error { return s.pgbench(ctx) })
		writers.Go(func() error { return s.emit(ctx) })
		return writers.Wait()
	})
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
		"--rate="+strconv.Itoa(s.options.Rate/2), "--time="+strconv.Itoa(int(s.options.Load.Seconds())), "--file="+file.Name(), "postgres")
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

// emit is a program that emits with the library, until the load is over.
func (s *show) emit(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, s.url)
	if err != nil {
		return err
	}
	defer pool.Close()
	pace := rate.NewLimiter(rate.Limit(s.options.Rate/2), emitters)
	until, over := context.WithCancel(ctx)
	defer over()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer over()
		return s.enough(ctx, pool)
	})
	for range emitters {
		group.Go(func() error {
			for pace.Wait(until) == nil {
				if err := s.applyVersion(ctx, pool); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// enough waits until the load's time is over, and a little longer where a slow machine has not committed as
// many events by then as there should be.
func (s *show) enough(ctx context.Context, pool *pgxpool.Pool) error {
	if err := s.until(ctx, 1); err != nil {
		return err
	}
	for time.Since(s.began) < 2*s.options.Load {
		var committed int
		if err := pool.QueryRow(ctx, `select count(*) from demo.journal`).Scan(&committed); err != nil || committed >= s.options.Events {
			return err
		}
		if err := trial.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

var errTakenBack = errors.New("the application has changed its mind")

// applyVersion is what demo.apply_version is, in Go.
func (s *show) applyVersion(ctx context.Context, pool *pgxpool.Pool) error {
	unit := "unit-" + strconv.Itoa(1+rand.IntN(units))
	var id string
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var version int
		err := tx.QueryRow(ctx, `update demo.unit set version = version + 1 where unit_id = $1 returning version`, unit).Scan(&version)
		if err != nil {
			return err
		}
		payload, err := json.Marshal(map[string]string{"unit_id": unit, "version_id": strconv.Itoa(version)})
		if err != nil {
			return err
		}
		id, err = tidemark.Emit(ctx, tx, tidemark.Event{Domain: "iu", Type: "version_applied", Key: unit, Payload: payload})
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into demo.journal (event_id, unit_id, version) values ($1, $2, $3)`, id, unit, version); err != nil {
			return err
		}
		if rand.IntN(rollbackEvery) == 0 {
			return errTakenBack
		}
		return nil
	})
	if errors.Is(err, errTakenBack) {
		return nil
	}
	if err == nil && s.calm.Load() {
		s.mu.Lock()
		s.acknowledged[id] = time.Now()
		s.mu.Unlock()
	}
	return err
}
