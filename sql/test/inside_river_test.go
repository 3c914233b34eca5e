package test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// These tests run against River itself: its migrations make the table, its client works the jobs.

// patience bounds waits that end at once when all is well.
const patience = 3 * time.Minute

func migrateRiver(t *testing.T, db *tidemarktest.DB, schema string) {
	t.Helper()
	migrator, err := rivermigrate.New(riverpgxv5.New(db.Pool), &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
}

// riverRoute is live, with a route that makes every event of domain test a job of kind tick.
func riverRoute(t *testing.T, db *tidemarktest.DB, options string) session {
	t.Helper()
	w := open(t, db, "worker")
	w.exec(`select tidemark.type_set('test', 'tick'), tidemark.stage_set('live', 'test');
		select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true)`)
	w.exec(`select tidemark.route_set('jobs', jsonb_build_object('domain', 'test', 'target_kind', 'river', 'target_ref', 'tick',
		'options', $1::text::jsonb, 'enabled', true, 'dry_run', false))`, options)
	return w
}

// tick are the arguments of the jobs: an event as the log has it.
type tick struct {
	EventID string `json:"event_id"`
	Seq     int64  `json:"seq"`
	Domain  string `json:"domain"`
	Type    string `json:"type"`
	Key     string `json:"key"`
	Payload struct {
		N int `json:"n"`
	} `json:"payload"`
}

func (tick) Kind() string { return "tick" }

type tickWorker struct {
	river.WorkerDefaults[tick]
	worked chan tick
}

func (w *tickWorker) Work(ctx context.Context, job *river.Job[tick]) error {
	select {
	case w.worked <- job.Args:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func riverClient(t *testing.T, db *tidemarktest.DB, schema, queue string) (*river.Client[pgx.Tx], *tickWorker) {
	t.Helper()
	worker := &tickWorker{worked: make(chan tick)}
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	client, err := river.NewClient(riverpgxv5.New(db.Pool), &river.Config{
		Schema: schema, Queues: map[string]river.QueueConfig{queue: {MaxWorkers: 1}}, Workers: workers,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: river.FetchPollIntervalMin, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return client, worker
}

// work lets a client of River work as many jobs as there are wanted, and returns them in the order of work.
func work(t *testing.T, db *tidemarktest.DB, schema, queue string, jobs int) []tick {
	t.Helper()
	client, worker := riverClient(t, db, schema, queue)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var worked []tick
	for range jobs {
		select {
		case job := <-worker.worked:
			worked = append(worked, job)
		case <-ctx.Done():
			_ = client.StopAndCancel(t.Context())
			t.Fatalf("River has worked %d of %d jobs", len(worked), jobs)
		}
	}
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return worked
}

func numbersOf(jobs []tick) []int {
	var numbers []int
	for _, job := range jobs {
		numbers = append(numbers, job.Payload.N)
	}
	return numbers
}

// jobs of the table, in the order in which they were made.
func (s session) jobs(schema string) []int {
	s.t.Helper()
	return column[int](s, `select (args -> 'payload' ->> 'n')::int from `+pgx.Identifier{schema, "river_job"}.Sanitize()+` order by id`)
}

// RW8.
func TestRiverWorksTheEvents(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	migrateRiver(t, db, "")
	w := riverRoute(t, db, `{}`)
	for n := range 5 {
		w.emitKey(n, fmt.Sprint("k", n))
	}
	equal(t, "decided", w.pass().Decided, map[string]int{"sent": 5})
	w.wantRows(`select (args = tidemark.event_json(o))::text from public.river_job j join tidemark.outbox o on o.seq = (j.args ->> 'seq')::bigint order by j.id`,
		"true", "true", "true", "true", "true")

	worked := work(t, db, "", "default", 5)
	equal(t, "worked", numbersOf(worked), []int{0, 1, 2, 3, 4})
	equal(t, "first", []string{worked[0].EventID, worked[0].Domain, worked[0].Type, worked[0].Key},
		[]string{one[string](w, `select event_id::text from tidemark.outbox where seq = 1`), "test", "tick", "k0"})
	w.wantRows(`select distinct concat_ws(' ', state, attempt, errors) from public.river_job`, "completed 1")
	w.wantSound()
}

// A job of ours is one of River's, but for what tells whose it is; and River's clients are woken alike.
func TestRiverJobIsRivers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options string
		insert  river.InsertOpts
	}{
		"defaults": {`{}`, river.InsertOpts{}},
		"options":  {`{"queue": "slow-ones", "priority": 3, "max_attempts": 7}`, river.InsertOpts{Queue: "slow-ones", Priority: 3, MaxAttempts: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			migrateRiver(t, db, "")
			w := riverRoute(t, db, c.options)
			w.exec(`select tidemark.gate_set('notify.bridge_enabled', true)`)
			listener := open(t, db, "listener")
			listener.exec(`listen "public.river_insert"`)
			heard := func() string {
				n := listener.notification()
				var payload any
				if err := json.Unmarshal([]byte(n.Payload), &payload); err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(n.Channel, " ", payload)
			}

			w.emit(1)
			w.emit(2)
			w.pass()
			ours := heard()
			client, _ := riverClient(t, db, "", "default")
			if _, err := client.Insert(t.Context(), tick{}, &c.insert); err != nil {
				t.Fatal(err)
			}
			equal(t, "notification", ours, heard())

			const row = `select (to_jsonb(j) - array['id', 'args', 'created_at', 'scheduled_at', 'metadata'])::text from public.river_job j order by id`
			rows := column[string](w, row)
			if len(rows) != 3 || rows[0] != rows[2] || rows[1] != rows[2] {
				t.Errorf("got %s", strings.Join(rows, "\n"))
			}
			w.wantRows(`select metadata ->> 'tidemark_route' from public.river_job order by id limit 2`, "jobs", "jobs")
			w.wantRows(`select (created_at = scheduled_at and created_at <= now())::text from public.river_job order by id`, "true", "true", "true")
		})
	}
}

// A pass that is rolled back leaves no job, one that commits leaves each once, and a rewind adds none.
func TestRiverJobsComeWithTheEvidence(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	migrateRiver(t, db, "")
	w := riverRoute(t, db, `{}`)
	other := open(t, db, "other")
	for n := range 20 {
		w.emit(n)
	}
	w.begin()
	w.pass()
	equal(t, "jobs of the pass", len(w.jobs("public")), 20)
	equal(t, "jobs that others see", len(other.jobs("public")), 0)
	w.rollback()
	equal(t, "jobs after the rollback", len(w.jobs("public")), 0)
	w.wantRows(all)

	for w.passLimit(7).Events > 0 {
	}
	for _, to := range []int{0, 13} {
		w.exec(`select tidemark.worker_rewind('default', $1, 'drill')`, to)
		w.pass()
	}
	w.wantRows(`select concat_ws(' ', count(*), count(distinct args ->> 'event_id'), max(args ->> 'event_id') is not null) from public.river_job`, "20 20 t")
	w.wantRows(`select concat_ws(' ', outcome, count(*)) from tidemark.route_attempt group by outcome`, "sent 20")
	w.wantSound()
}

// An event whose job cannot be stored is kept, the others are jobs; a replay makes its job.
func TestRiverPoison(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	migrateRiver(t, db, "")
	w := riverRoute(t, db, `{}`)
	w.exec(`alter table public.river_job add constraint lucky check ((args -> 'payload' ->> 'n')::int % 10 <> 3)`)
	for n := range 25 {
		w.emit(n)
	}
	got := w.pass()
	equal(t, "decided", got.Decided, map[string]int{"sent": 22, "failed": 3})
	equal(t, "fallbacks", got.Fallbacks > 3, true)
	equal(t, "jobs", len(w.jobs("public")), 22)
	w.wantRows(letters, "jobs 4 23514 1 open", "jobs 14 23514 1 open", "jobs 24 23514 1 open")
	w.wantRows(`select concat_ws(' ', outcome, reason) from tidemark.dead_letter_replay(1)`, "failed 23514")
	w.exec(`alter table public.river_job drop constraint lucky`)
	w.wantRows(`select concat_ws(' ', id, outcome, reason) from tidemark.dead_letter_replay_many() order by id`, "1 sent", "2 sent", "3 sent")
	equal(t, "jobs", w.jobs("public")[22:], []int{3, 13, 23})
	equal(t, "worked", len(work(t, db, "", "default", 25)), 25)
	w.wantSound()
}

// River in a schema of its own, and a search_path that would mislead who does not name the schema.
func TestRiverSchema(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"public", "jobs", "Jobs_2"} {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s := open(t, db, "operator")
			s.exec(`create schema if not exists ` + pgx.Identifier{schema}.Sanitize())
			migrateRiver(t, db, schema)
			s.exec(`create schema decoy; create table decoy.river_job (like ` + pgx.Identifier{schema, "river_job"}.Sanitize() + ` including all);
				create function decoy.pg_notify(text, text) returns void language sql as 'select 1/0'`)
			s.exec(`alter database ` + pgx.Identifier{db.Name}.Sanitize() + ` set search_path = decoy, pg_catalog`)
			w := riverRoute(t, db, `{"schema": "`+schema+`"}`)
			w.emit(1)
			w.emit(2)
			equal(t, "decided", w.pass().Decided, map[string]int{"sent": 2})
			equal(t, "jobs of the decoy", len(w.jobs("decoy")), 0)
			equal(t, "worked", numbersOf(work(t, db, schema, "default", 2)), []int{1, 2})
		})
	}
}

// The jobs are made with the rights of who runs the worker.
func TestRiverWithoutGrant(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	migrateRiver(t, db, "")
	w := riverRoute(t, db, `{}`)
	w.emit(1)
	w.emit(2)
	w.exec(`set role tidemark_executor`)
	equal(t, "decided", w.passLimit(1).Decided, map[string]int{"failed": 1})
	w.wantRows(letters, "jobs 1 42501 1 open")
	w.exec(`reset role; grant insert on public.river_job to tidemark_executor; grant usage on sequence public.river_job_id_seq to tidemark_executor; set role tidemark_executor`)
	w.wantRows(`select outcome::text from tidemark.dead_letter_replay(1)`, "sent")
	equal(t, "decided", w.pass().Decided, map[string]int{"sent": 1})
	w.exec(`reset role`)
	equal(t, "jobs", w.jobs("public"), []int{1, 2})
}

// No table: each event is kept, and the batch fails as a whole, once.
func TestRiverWithoutTable(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := riverRoute(t, db, `{"schema": "jobs"}`)
	w.exec(`create schema jobs; create view jobs.river_job as select 1 as id`)
	migrateRiver(t, db, "")
	for n := range 5 {
		w.emit(n)
	}
	got := w.pass()
	equal(t, "decided", got.Decided, map[string]int{"failed": 5})
	equal(t, "fallbacks", got.Fallbacks, 0)
	w.wantRows(`select distinct concat_ws(' ', error_code, error_detail) from tidemark.dead_letter`, "42P01 route jobs: there is no table jobs.river_job")
	w.wantRows(`select status || ' ' || detail from tidemark.verify() where "check" = 'route targets'`, "fail jobs: no table river_job")
	equal(t, "jobs", len(w.jobs("public")), 0)

	w.exec(`drop view jobs.river_job`)
	migrateRiver(t, db, "jobs")
	w.wantRows(`select status from tidemark.verify() where "check" = 'route targets'`, "ok")
	w.wantRows(`select distinct outcome::text from tidemark.dead_letter_replay_many()`, "sent")
	equal(t, "jobs", w.jobs("jobs"), []int{0, 1, 2, 3, 4})
}

// What River would not take is an error, not a job that no client ever works.
func TestRiverBadOptions(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	migrateRiver(t, db, "")
	w := riverRoute(t, db, `{}`)
	for i, c := range []struct{ ref, options, problem string }{
		{"tick", `{"colour": "red"}`, `there is no option "colour" for river`},
		{"tick", `{"queue": "default", "Queue": "x"}`, `there is no option "Queue"`},
		{"tick", `{"priority": 0}`, `option "priority" is 0, must be a whole number from 1 to 4`},
		{"tick", `{"priority": 5}`, `option "priority" is 5`},
		{"tick", `{"priority": 1.5}`, `option "priority" is 1.5`},
		{"tick", `{"priority": "1"}`, `option "priority" is "1"`},
		{"tick", `{"priority": null}`, `option "priority" is null`},
		{"tick", `{"priority": [1]}`, `option "priority" is [1]`},
		{"tick", `{"priority": true}`, `option "priority" is true`},
		{"tick", `{"max_attempts": 0}`, `option "max_attempts" is 0, must be a whole number from 1 to 32767`},
		{"tick", `{"max_attempts": 32768}`, `option "max_attempts" is 32768`},
		{"tick", `{"max_attempts": {}}`, `option "max_attempts" is {}`},
		{"tick", `{"queue": ""}`, `option "queue" is ""`},
		{"tick", `{"queue": 1}`, `option "queue" is 1`},
		{"tick", `{"queue": ["a"]}`, `option "queue" is ["a"]`},
		{"tick", `{"queue": "Upper"}`, `option "queue" is "Upper"`},
		{"tick", `{"queue": "a b"}`, `option "queue" is "a b"`},
		{"tick", `{"queue": "a\nb"}`, `option "queue" is "a\nb"`},
		{"tick", `{"queue": "a\n"}`, `option "queue" is "a\n"`},
		{"tick", `{"queue": "` + strings.Repeat("q", 65) + `"}`, `option "queue" is`},
		{"tick", `{"schema": ""}`, `option "schema" is ""`},
		{"tick", `{"schema": 7}`, `option "schema" is 7`},
		{"tick", `{"schema": "` + strings.Repeat("s", 47) + `"}`, `option "schema" is`},
		{"", `{}`, `must be a kind of job, 1 to 127 characters`},
		{strings.Repeat("k", 128), `{}`, `must be a kind of job, 1 to 127 characters`},
	} {
		set := `select tidemark.route_set('jobs', jsonb_build_object('target_ref', $1::text, 'options', $2::text::jsonb))`
		w.exec(`alter table tidemark.outbound_route enable trigger outbound_route_target`)
		w.refused("TM005", "route jobs: ", set, c.ref, c.options)
		w.allowAnyTarget()
		w.exec(set, c.ref, c.options)
		w.emit(2 * i)
		w.emit(2*i + 1)
		got := w.pass()
		if got.Decided["failed"] != 2 || got.Fallbacks != 0 {
			t.Errorf("%s: decided %v, %d fallbacks", c.options, got.Decided, got.Fallbacks)
		}
		detail := one[string](w, `select error_code || ' ' || error_detail from tidemark.dead_letter order by id desc limit 1`)
		if !strings.HasPrefix(detail, "22023 route jobs: ") || !strings.Contains(detail, c.problem) {
			t.Errorf("%s: %s", c.options, detail)
		}
		w.wantRows(`select status || ' ' || split_part(detail, ':', 1) from tidemark.verify() where "check" = 'route targets'`, "fail jobs")
		equal(t, c.options, one[string](w, `select concat_ws(' ', outcome, reason) from tidemark.dead_letter_replay((select max(id) from tidemark.dead_letter))`), "failed 22023")
	}
	equal(t, "jobs", len(w.jobs("public")), 0)

	for _, options := range []string{
		`{"priority": 4.0, "max_attempts": 32767, "queue": "a|b-c_d9", "schema": "public"}`, `{"queue": "` + strings.Repeat("q", 64) + `"}`,
	} {
		w.exec(`select tidemark.route_set('jobs', jsonb_build_object('target_ref', 'tick', 'options', $1::text::jsonb))`, options)
		w.emit(1)
		equal(t, options, w.pass().Decided, map[string]int{"sent": 1})
		w.wantRows(`select status from tidemark.verify() where "check" = 'route targets'`, "ok")
	}
	w.wantRows(`select concat_ws(' ', priority, max_attempts, left(queue, 10)) from public.river_job order by id`, "4 32767 a|b-c_d9", "1 25 qqqqqqqqqq")
}

// A kind that the statement does not know raises: never a silent drop.
func TestNoStatementForTargetsOutside(t *testing.T) {
	t.Parallel()
	w := riverRoute(t, tidemarktest.NewDB(t), `{}`)
	for _, kind := range []string{"webhook", "pigeon"} {
		w.refused("0A000", "is not built into this function",
			`select tidemark.delivery_statement(jsonb_populate_record(r, jsonb_build_object('target_kind', $1::text)), false) from tidemark.outbound_route r`, kind)
	}
}
