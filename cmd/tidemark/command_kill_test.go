package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A killed service is live, and its daemons are killed. Its commands make effects in order; its results go to Kafka.
type killed struct {
	t      *testing.T
	db     *tidemarktest.DB
	name   string
	seeds  []string
	client *kgo.Client
}

func newKilled(t *testing.T) *killed {
	t.Helper()
	db := tidemarktest.NewDB(t)
	s := &killed{t: t, db: db, name: "k" + strings.ReplaceAll(strings.TrimPrefix(db.Name, "tidemark_test_"), "_", "-")}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "db-events."+s.name, "db-results."+s.name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	s.seeds = cluster.ListenAddrs()
	s.client, err = kgo.NewClient(kgo.SeedBrokers(s.seeds...), kgo.ConsumeTopics("db-results."+s.name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	t.Cleanup(func() {
		s.exec(`drop owned by "tidemark_service_` + s.name + `"; drop role "tidemark_service_` + s.name + `"`)
	})
	s.exec(`create schema app; create table app.effect (n bigint generated always as identity, id int); create table app.door ();
create function app.make(payload jsonb) returns jsonb language plpgsql security definer as $$ begin
	insert into app.effect (id) values ((payload ->> 'id')::int); return payload; end $$;
create function app.pass() returns trigger language plpgsql security definer as $$ begin lock table app.door in row exclusive mode; return null; end $$;`)
	s.exec(`select tidemark.service_set($1)`, s.name)
	s.exec(`grant usage on schema app to "tidemark_service_` + s.name + `"`)
	s.exec(`select tidemark.command_set($1, 'make', 1, '{"function": "app.make", "payload_schema": {"type": "object"}}'), tidemark.command_allow($1, 'shop'), tidemark.stage_set('live', 'test')`, s.name)
	s.exec(`select tidemark.route_set('results', jsonb_build_object('domain', 'commands', 'type', 'result.' || $1::text, 'target_kind', 'kafka', 'target_ref', 'db-results.' || $1::text,
		'options', '{"connection": "main", "format": "payload"}'::jsonb, 'ordering', 'key', 'enabled', true, 'dry_run', false))`, s.name)
	s.exec(`select tidemark.command_set($1, 'make', 1, '{"enabled": true, "dry_run": false}')`, s.name)
	s.exec(`select tidemark.gate_set('commands.enabled', true), tidemark.gate_set('commands.' || $1 || '.enabled', true),
		tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true)`, s.name)
	return s
}

func (s *killed) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Pool.Exec(s.t.Context(), sql, args...); err != nil && s.t.Context().Err() == nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// daemon starts a daemon that takes the commands.
func (s *killed) daemon(name string) *exec.Cmd {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), name+".yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `name: %s
lease: 3s
admin: {listen: ""}
log: {format: json}
connections: {main: {kind: kafka, brokers: [%q]}}
commands: {connection: main}
`, name, s.seeds[0]), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return startProgram(s.t, s.db.URL, name, nil, "run", "--config", file)
}

// send asks for commands of one key, with these ids.
func (s *killed) send(ids ...int) {
	s.t.Helper()
	for _, id := range ids {
		r := &kgo.Record{Topic: "db-events." + s.name, Key: []byte("k"), Value: fmt.Appendf(nil, `{"event_id": "00000000-0000-7000-8000-%012d", "service": %q,
			"command": "make", "command_version": 1, "schema_version": 1, "payload": {"id": %[1]d}, "idempotency_key": "i%[1]d", "occurred_at": "2026-01-31T12:00:00Z",
			"trace_id": "0123456789abcdef0123456789abcdef", "metadata": {"producer": "shop"}}`, id, s.name)}
		if err := s.client.ProduceSync(s.t.Context(), r).FirstErr(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// hold keeps others from what the statement locks, until open is called.
func (s *killed) hold(sql string, args ...any) (open func()) {
	s.t.Helper()
	conn := s.db.Connect(s.t)
	tx, err := conn.Begin(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := tx.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return func() {
		if err := tx.Rollback(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// waits returns when a pass waits for a lock.
func (s *killed) waits(function string) {
	s.t.Helper()
	eventually(s.t, "a statement to wait in "+function, func() bool {
		return answer(s.t, s.db, `select exists (select from pg_stat_activity where datname = current_database() and query ~ $1 and cardinality(pg_blocking_pids(pid)) > 0)::text`, function) == "true"
	})
}

// results are the names of the results in Kafka, each with what it says, when there are as many different ones.
func (s *killed) results(want int) map[string]string {
	s.t.Helper()
	all := map[string]string{}
	eventually(s.t, fmt.Sprint(want, " results in Kafka"), func() bool {
		s.client.PollFetches(s.t.Context()).EachRecord(func(r *kgo.Record) {
			for _, h := range r.Headers {
				if h.Key == "tidemark-event-id" {
					all[string(h.Value)] = string(r.Value)
				}
			}
		})
		return len(all) >= want
	})
	return all
}

// once checks that the commands had one effect each, in order, and one result each.
func (s *killed) once(ids ...int) {
	s.t.Helper()
	eventually(s.t, "the offset", func() bool {
		return answer(s.t, s.db, `select coalesce(max(watermark_id), '') from tidemark.worker_cursor where source = 'kafka:db-events.' || $1`, s.name) == fmt.Sprint(len(ids))
	})
	if got, want := answer(s.t, s.db, `select coalesce(string_agg(id::text, ' ' order by n), '') from app.effect`), strings.Trim(fmt.Sprint(ids), "[]"); got != want {
		s.t.Errorf("effects %s, want %s", got, want)
	}
	if got := answer(s.t, s.db, `select concat_ws(' ', count(*), count(distinct payload ->> 'idempotency_key'), count(*) filter (where payload ->> 'status' = 'processed')) from tidemark.outbox
		where type like 'result.%'`); got != fmt.Sprintf("%d %[1]d %[1]d", len(ids)) {
		s.t.Errorf("results, keys, processed: %s", got)
	}
	seen := map[string]bool{}
	for _, value := range s.results(len(ids)) {
		for _, id := range ids {
			if strings.Contains(value, fmt.Sprintf(`"i%d"`, id)) && strings.Contains(value, `"processed"`) {
				seen[fmt.Sprint(id)] = true
			}
		}
	}
	if len(seen) != len(ids) {
		s.t.Errorf("processed in Kafka: %v", seen)
	}
}

// CM5, CM8: a daemon is killed at each step of a pass. Whether its backend goes with it or comes to the end by itself: one effect,
// one result, in order.
func TestCommandsOutliveTheirDaemon(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a killed member stays in its group for 6 s")
	}
	for name, lock := range map[string]string{
		"before the claim":  `lock table tidemark.command_claim in share mode`,
		"after the claim":   `lock table app.effect in share mode`,
		"after the effect":  `lock table tidemark.outbox in share mode`,
		"before the offset": `select from tidemark.worker_cursor where source like 'kafka:%' for update`,
		"before the commit": `lock table app.door in share mode`,
	} {
		late := !strings.HasSuffix(name, "the claim")
		for _, dies := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, its backend dies: %v", name, dies), func(t *testing.T) {
				t.Parallel()
				s := newKilled(t)
				s.exec(`create constraint trigger at_commit after update on tidemark.worker_cursor deferrable initially deferred for each row
					when (new.source like 'kafka:%' and new.watermark_id <> old.watermark_id) execute function app.pass()`)
				first := lock
				if late {
					first = `lock table app.effect in share mode`
				}
				open := s.hold(first)
				s.send(1, 2)
				d := s.daemon("a")
				s.waits("command_pass")
				if late { // an empty pass would meet this lock, too
					then := s.hold(lock)
					open()
					open = then
					eventually(t, "the effect is made", func() bool {
						return answer(t, s.db, `select (not exists (select from pg_locks where relation = 'app.effect'::regclass and not granted))::text`) == "true"
					})
					s.waits("command_pass")
				}
				kill(t, d)
				if dies {
					s.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ~ 'command_pass' and pid <> pg_backend_pid()`)
				}
				open()
				s.daemon("b")
				s.send(3)
				s.once(1, 2, 3)
			})
		}
	}
}

// CM5: a daemon is killed when a result has left, which is not on record yet: the result leaves again, under the same name.
func TestResultsOutliveTheirDaemon(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a lease is 3 s")
	}
	s := newKilled(t)
	// What is sent cannot be recorded; what is read can.
	s.exec(`create function public.hold() returns trigger language plpgsql as $f$ begin perform pg_advisory_xact_lock(77); return new; end $f$;
		create trigger hold before insert on tidemark.decision for each row when (new.outcome = 'sent') execute function public.hold()`)
	open := s.hold(`select pg_advisory_xact_lock(77)`)
	s.send(1)
	d := s.daemon("a")
	s.results(1)
	s.waits(`tidemark\.settle`)
	kill(t, d)
	s.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ~ 'tidemark\.settle' and pid <> pg_backend_pid()`)
	open()
	s.daemon("b")
	s.send(2)
	if all := s.results(2); len(all) != 2 {
		t.Errorf("%d results, want those of two commands: %v", len(all), all)
	}
	eventually(t, "both are on record", func() bool {
		return answer(t, s.db, `select count(*)::text from tidemark.route_attempt where route_code = 'results' and outcome = 'sent'`) == "2"
	})
}
