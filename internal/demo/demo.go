// Package demo implements the command tidemark-demo. It runs the main job end to end: the real daemon on a private PostgreSQL,
// with targets in this process, under a load that makes a simpler consumer lose events. Then it checks the result from
// outside.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/consoleserver"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/devpg/download"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/packs"
)

//go:embed app.sql
var app string

//go:embed app_mended.sql
var mended string

// Options of a demo.
type Options struct {
	Load   time.Duration // how long the application writes; start and end take a few seconds more
	Rate   int           // events a second, roughly, at most
	Events int           // the application writes on, for up to twice the load time, until so many are committed
	Keep   bool          // at the end, open the console and wait until the context is cancelled, then clean up
}

// Run shows the demo on out and returns an error unless the result is perfect.
func Run(ctx context.Context, out io.Writer, o Options) (err error) {
	s := &show{out: out, options: o, acknowledged: map[string]time.Time{}}
	began := time.Now()
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	for _, part := range []func(context.Context) error{s.start, s.install, s.goLive, s.load, s.mend, s.report} {
		if err := part(ctx); err != nil {
			return s.explain(err)
		}
	}
	s.say("Done in %.0f s.", time.Since(began).Seconds())
	if o.Keep {
		return s.lookAround(ctx)
	}
	return nil
}

// show is the demo under way.
type show struct {
	options Options
	server  *devpg.Server
	url     string
	conn    *pgx.Conn
	db      *store.DB
	log     tail // of the daemons

	receiver *receiver
	nats     *natsBroker
	kafka    *kafkaBroker
	daemons  []instance

	began        time.Time
	calm         atomic.Bool   // no fault is injected
	afterClosing time.Duration // of the last arrival
	function     *journal      // what the SQL function got

	mu           sync.Mutex
	out          io.Writer
	acknowledged map[string]time.Time // when commits were acknowledged while no fault was injected
}

func (s *show) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// start starts PostgreSQL, the receiver and the brokers.
func (s *show) start(ctx context.Context) (err error) {
	s.server, err = devpg.Start(ctx, devpg.Options{
		Durable: true, Fetch: download.Postgres,
		Settings: map[string]string{"track_commit_timestamp": "on"}, // to know when the function's work was
	})
	if err != nil {
		return err
	}
	s.url = s.server.URL("postgres")
	if s.conn, err = pgx.Connect(ctx, s.url); err != nil {
		return err
	}
	s.db = store.New(s.conn)
	if s.receiver, err = newReceiver(ctx); err != nil {
		return err
	}
	if s.nats, err = newNATS(ctx); err != nil {
		return err
	}
	s.kafka, err = newKafka(ctx)
	return err
}

// close stops what start and load have started.
func (s *show) close(ctx context.Context) error {
	errs := []error{s.stopDaemons()}
	if s.kafka != nil {
		s.kafka.close()
	}
	if s.nats != nil {
		errs = append(errs, s.nats.close())
	}
	if s.receiver != nil {
		errs = append(errs, s.receiver.Close())
	}
	if s.conn != nil {
		_ = s.conn.Close(ctx)
	}
	if s.server != nil {
		errs = append(errs, s.server.Stop())
	}
	return errors.Join(errs...)
}

// explain adds the daemons' log to an error.
func (s *show) explain(err error) error {
	if log := s.log.String(); log != "" && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w\nThe daemons' log:\n%s", err, log)
	}
	return err
}

func (s *show) install(ctx context.Context) error {
	var version string
	if err := s.conn.QueryRow(ctx, "show server_version").Scan(&version); err != nil {
		return err
	}
	s.say("Tidemark on a private PostgreSQL %s, which is removed at the end.\n", version)

	report, err := migrate.Up(ctx, s.conn)
	if err != nil {
		return err
	}
	pack, found, err := packs.Find("iu-core")
	if err != nil || !found {
		return errors.Join(err, errors.New("pack iu-core is not in this build"))
	}
	if err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		_, err := store.New(tx).InstallPack(ctx, pack.Name, pack.Version, pack.Checksum, pack.SQL)
		return err
	}); err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, app); err != nil {
		return err
	}
	s.say("1. Schema installed: %d migrations, %d functions and views. Pack %s: its types, routes and worker,\n"+
		"   all switched off. An application with %d units. Targets in this process: a receiver of webhooks,\n"+
		"   a NATS server with JetStream, a broker that speaks Kafka's protocol; and a function in the database.",
		len(report.Applied), report.Recreated, pack.Name, units)
	return nil
}

// mend changes the application so that it takes the poison event, and replays its dead letter.
func (s *show) mend(ctx context.Context) error {
	letters, err := s.db.DeadLetters(ctx, store.LetterFilter{})
	if err != nil {
		return err
	}
	if len(letters) != 1 {
		return fmt.Errorf("%d dead letters, expected one, of the poison event", len(letters))
	}
	s.say("\n4. The function refused one poison event. It is a dead letter, and no other event waited for it:\n   %s  %s",
		letters[0].ErrorCode, *letters[0].ErrorDetail)
	s.say("   The application is mended, and the dead letter is replayed:")
	if _, err := s.conn.Exec(ctx, mended); err != nil {
		return err
	}
	replay, err := s.db.DeadLetterReplay(ctx, letters[0].ID, false, "")
	if err != nil {
		return err
	}
	s.say("   tidemark dead-letter replay %d  ->  attempt %d: %s", replay.ID, replay.AttemptNo, replay.Outcome)
	return nil
}

// lookAround keeps all of it, with a console, until ctx is done.
func (s *show) lookAround(ctx context.Context) error {
	c := s.configuration("console")
	c.Console.Listen = "127.0.0.1:0"
	probe := func(ctx context.Context, begun store.RouteTest) store.RouteTested {
		return daemon.Probe(ctx, c, begun, &s.log)
	}
	pages, err := consoleserver.New(ctx, c, probe, slog.New(slog.NewTextHandler(&s.log, nil)))
	if err != nil {
		return err
	}
	s.say("\nThe console: %s (no sign-in: every user of this host can do everything there)", pages.URL(c.Console))
	s.say("\nKept until you press Ctrl-C. In another terminal:\n   export TIDEMARK_DATABASE_URL='%s'", s.url)
	s.say(`   tidemark status
   tidemark emit --domain iu --type version_applied --payload '{"unit_id": "unit-1", "version_id": "1000"}' --key unit-1
   tidemark event show EVENT                    with the evidence; EVENT as emit printed it
   tidemark route disable %s             the next event will not go there
   psql "$TIDEMARK_DATABASE_URL"`, routeKafka)
	for _, d := range s.daemons {
		s.say("   curl %s/metrics         daemon %s; /readyz?verbose, /livez", d.admin, d.name)
	}
	s.say("   nats --server %s stream view units", s.nats.url)
	s.say("   kcat -b %s -t %s -C -e", s.kafka.addresses[0], topic)
	return pages.Run(ctx)
}
