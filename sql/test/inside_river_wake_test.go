package test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// heard are the notifications since the last call. They come in the order of commits, so none is left out that was
// committed before the call.
func (s session) heard(channel string, by session) []string {
	s.t.Helper()
	by.exec(`select pg_notify($1, 'end')`, channel)
	var all []string
	for {
		n := s.notification()
		if n.Payload == "end" {
			return all
		}
		all = append(all, n.Payload)
	}
}

// LI4: a pass that made jobs wakes River's clients, once for each queue and at its commit; no other one does.
func TestRiverIsWoken(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	migrateRiver(t, db, "")
	w := riverRoute(t, db, `{}`)
	for code, queue := range map[string]string{"second": "default", "other": "slow-ones"} {
		w.exec(`select tidemark.route_set($1, jsonb_build_object('domain', 'test', 'target_kind', 'river', 'target_ref', 'tick',
			'options', jsonb_build_object('queue', $2::text), 'enabled', true, 'dry_run', false))`, code, queue)
	}
	const channel = "public.river_insert"
	listener := open(t, db, "listener")
	listener.exec(`listen "` + channel + `"`)
	both := []string{`{"queue": "default"}`, `{"queue": "slow-ones"}`}
	gate := func(open bool) {
		t.Helper()
		w.exec(`select tidemark.gate_set('notify.bridge_enabled', $1)`, open)
	}
	want := func(what string, signals ...string) {
		t.Helper()
		equal(t, what, listener.heard(channel, w), signals)
	}

	w.emit(1)
	w.pass()
	want("the gate has never been opened")

	gate(true)
	w.pass()
	want("nothing to do")
	// Three waves for each of three routes, and two of its halves where one fails.
	w.exec(`alter table public.river_job add constraint lucky check ((args -> 'payload' ->> 'n')::int % 1000 <> 13)`)
	w.exec(`select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', n)) from generate_series(1, 2500) n`)
	equal(t, "decided", w.pass().Decided, map[string]int{"sent": 3 * 2497, "failed": 9})
	want("a pass", both...)
	w.wantRows(`select distinct concat_ws(' ', state, scheduled_at <= now()) from public.river_job`, "available t")

	w.emit(13)
	w.pass()
	want("no job could be made")
	w.emit(1)
	w.begin()
	w.pass()
	w.rollback()
	want("a pass that was rolled back")
	w.pass()
	want("the same once more", both...)

	letter := one[int](w, `select l.id from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id where r.route_code = 'other' limit 1`)
	w.exec(`select tidemark.dead_letter_replay($1)`, letter)
	want("a replay that failed")
	w.exec(`alter table public.river_job drop constraint lucky; select tidemark.dead_letter_replay(` + fmt.Sprint(letter) + `)`)
	want("a replay", `{"queue": "slow-ones"}`)

	w.emit(1)
	gate(false)
	w.pass()
	want("the gate is closed")
	w.wantSound()
}

// A gate that closes while targets are at work takes the pass back, and the signal with it.
func TestClosedPassWakesNobody(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	migrateRiver(t, db, "")
	w := riverRoute(t, db, `{}`)
	w.exec(`create function public.close_gate() returns trigger language plpgsql as
		$$ begin perform tidemark.gate_set('routes.enabled', false, 'drill'); return new; end $$;
		create trigger close_gate after insert on public.river_job for each row execute function public.close_gate();
		select tidemark.gate_set('notify.bridge_enabled', true)`)
	listener := open(t, db, "listener")
	listener.exec(`listen "public.river_insert"`)
	w.emit(1)
	equal(t, "status", w.pass().Status, "closed")
	equal(t, "heard", listener.heard("public.river_insert", w), nil)
}

// River's own client works the jobs of a pass although its next look at the table is an hour away.
func TestRiverClientIsWoken(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"public", "Jobs_2"} {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s := open(t, db, "operator")
			s.exec(`create schema if not exists ` + pgx.Identifier{schema}.Sanitize())
			migrateRiver(t, db, schema)
			w := riverRoute(t, db, `{"schema": "`+schema+`", "queue": "slow-ones"}`)
			w.exec(`select tidemark.gate_set('notify.bridge_enabled', true)`)

			worker := &tickWorker{worked: make(chan tick)}
			workers := river.NewWorkers()
			river.AddWorker(workers, worker)
			client, err := river.NewClient(riverpgxv5.New(db.Pool), &river.Config{
				Schema: schema, Queues: map[string]river.QueueConfig{"slow-ones": {MaxWorkers: 10}}, Workers: workers,
				FetchCooldown: river.FetchCooldownMin, FetchPollInterval: time.Hour, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			w.emit(0)
			w.pass()
			if err := client.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.StopAndCancel(context.Background()) })
			// The first job is found as the client starts, the others by the signal alone.
			for n := range 4 {
				if n > 0 {
					w.emit(n)
					w.pass()
				}
				select {
				case job := <-worker.worked:
					equal(t, "worked", job.Payload.N, n)
				case <-time.After(patience):
					t.Fatalf("job %d was not worked", n)
				}
			}
		})
	}
}
