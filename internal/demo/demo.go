// Package demo is `tidemark demo`: the main job end to end, on a private PostgreSQL, under a load that would
// make a simpler consumer lose events, with the result checked from outside.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/postgres"
	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/packs"
)

//go:embed app.sql
var app string

//go:embed app_mended.sql
var mended string

//go:embed check.sql
var check string

// worker and route are what the demo sets to work: the worker of pack iu-core, with a route of our own.
const (
	worker = "iu_outbound_default"
	route  = "demo_units"
)

// Options of a demo.
type Options struct {
	Load time.Duration // how long the application writes; start and end take a few seconds more
	Keep bool          // wait at the end until the context is cancelled, before everything is taken away again
}

// Run shows the demo on out and returns an error unless the result is perfect.
func Run(ctx context.Context, out io.Writer, o Options) (err error) {
	began := time.Now()
	server, err := devpg.Start(ctx, devpg.Options{Durable: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()

	s := &show{out: out, loadTime: o.Load, server: server, url: server.URL("postgres")}
	if s.conn, err = pgx.Connect(ctx, s.url); err != nil {
		return err
	}
	defer func() { _ = s.conn.Close(context.WithoutCancel(ctx)) }()
	s.db = postgres.New(s.conn)

	for _, part := range []func(context.Context) error{s.install, s.goLive, s.load, s.mend, s.report} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	s.say("Done in %.0f s.", time.Since(began).Seconds())
	if o.Keep {
		s.say("\nKept until you press Ctrl-C:\n  psql '%s'\n  export TIDEMARK_DATABASE_URL='%s'", s.url, s.url)
		<-ctx.Done()
	}
	return nil
}

// show is the demo under way.
type show struct {
	out      io.Writer
	loadTime time.Duration
	server   *devpg.Server
	url      string
	conn     *pgx.Conn
	db       *postgres.DB

	whileClosed int64 // delivered more than a second after the gate closed
	late        int64 // delivered after a later number
	passes      int64
}

func (s *show) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// do runs a statement as a user of psql would, and shows it.
func (s *show) do(ctx context.Context, sql string) error {
	s.say("   %s", strings.ReplaceAll(sql, "\n", "\n   "))
	_, err := s.conn.Exec(ctx, sql)
	return err
}

func (s *show) install(ctx context.Context) error {
	var version string
	if err := s.conn.QueryRow(ctx, "show server_version").Scan(&version); err != nil {
		return err
	}
	s.say("Tidemark on a private PostgreSQL %s, gone when this ends.\n", version)

	report, err := migrate.Up(ctx, s.conn)
	if err != nil {
		return err
	}
	pack, found, err := packs.Find("iu-core")
	if err != nil || !found {
		return errors.Join(err, errors.New("pack iu-core is not in this build"))
	}
	if err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		_, err := postgres.New(tx).InstallPack(ctx, pack.Name, pack.Version, pack.Checksum, pack.SQL)
		return err
	}); err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, app); err != nil {
		return err
	}
	s.say("1. Schema installed: %d migrations, %d functions and views. Pack %s: its types, routes and worker,\n"+
		"   all switched off. An application with 200 units and a function that takes events.",
		len(report.Applied), report.Recreated, pack.Name)
	return nil
}

func (s *show) goLive(ctx context.Context) error {
	s.say("\n2. Everything is off until somebody says so, and what was said is on record:")
	for _, sql := range []string{
		`select tidemark.stage_set('live', 'demo');`,
		`select tidemark.route_set('` + route + `', '{"worker": "` + worker + `", "domain": "iu", "type": "version_applied",
                                         "target_kind": "sql", "target_ref": "demo.receive"}');`,
		`update tidemark.outbound_route set enabled = true, dry_run = false where route_code = '` + route + `';`,
		`update tidemark.outbound_route set enabled = true where route_code = 'iu_version_applied';  -- in dry run`,
		`select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.` + worker + `.enabled', true);`,
	} {
		if err := s.do(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// mend replays what the poison event became, once the application can take it.
func (s *show) mend(ctx context.Context) error {
	letters, err := s.db.DeadLetters(ctx, postgres.LetterFilter{})
	if err != nil {
		return err
	}
	if len(letters) != 1 {
		return fmt.Errorf("%d dead letters, there should be the one poison event", len(letters))
	}
	s.say("\n4. One event was poison. It is a dead letter, and nothing waited for it:\n   %s  %s",
		letters[0].ErrorCode, *letters[0].ErrorDetail)
	s.say("   The application learns to take it, and it is replayed:")
	if _, err := s.conn.Exec(ctx, mended); err != nil {
		return err
	}
	replay, err := s.db.DeadLetterReplay(ctx, letters[0].ID, false)
	if err != nil {
		return err
	}
	s.say("   tidemark dead-letter replay %d  ->  attempt %d: %s", replay.ID, replay.AttemptNo, replay.Outcome)
	return nil
}
