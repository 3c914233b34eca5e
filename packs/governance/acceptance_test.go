package governance_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// These are the acceptance tests of the source document. Requirement PK3.

// inventory is how many rows birth_registry had when the source document was written.
const inventory = 1_037_724

// build makes the command, once.
var build = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(buildDir, "tidemark")
	out, err := exec.Command("go", "build", "-o", binary, "github.com/tidemarkhq/tidemark/cmd/tidemark").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
})

// daemon starts `tidemark run`. It ends with kill, or with the test.
func (g govern) daemon() (kill func()) {
	g.t.Helper()
	binary, err := build()
	if err != nil {
		g.t.Fatal(err)
	}
	var log strings.Builder
	cmd := exec.CommandContext(context.Background(), binary, "run")
	cmd.Env = append(cmd.Environ(), "TIDEMARK_DATABASE_URL="+g.URL, "TIDEMARK_ADMIN_LISTEN=127.0.0.1:0", "TIDEMARK_LEASE=3s")
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		if g.t.Failed() {
			g.t.Log(log.String())
		}
	})
	g.t.Cleanup(kill)
	return kill
}

// until waits for the database to say yes.
func (g govern) until(patience time.Duration, sql string, args ...any) {
	g.t.Helper()
	for deadline := time.Now().Add(patience); !value[bool](g, sql, args...); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.t.Fatalf("not after %s: %s\n%s", patience, sql, value[string](g, `select coalesce(jsonb_pretty(jsonb_agg(p)), '') from governance.progress p`))
		}
	}
}

// 1. A worker that is killed in the middle of a sweep goes on with exactly what is left.
func TestAcceptanceResumability(t *testing.T) {
	t.Parallel()
	const rows = 40_000
	g := newGovern(t)
	g.birth(rows)
	g.exec(`select tidemark.worker_set(w, '{"page_size": 500}') from unnest(array['gov_backfill_sweep', 'gov_handoff_intake', 'gov_input_gate', 'gov_candidate_scan']) w`)
	for part := range 3 {
		kill := g.daemon()
		g.until(time.Minute, `select count(*) > $1 from governance.candidate`, rows*(part+1)/4)
		kill()
		if done := value[int](g, `select count(*)::int from governance.candidate`); done >= rows {
			t.Fatal("killed too late, everything is done:", done)
		}
		g.balance()
	}
	kill := g.daemon()
	g.until(2*time.Minute, `select count(*) = $1 from governance.verdict`, rows)
	g.exec(`select governance.audit_start(page_rows => 500)`)
	g.until(time.Minute, `select rows_seen > $1 from governance.snapshot where ended_at is null`, rows/4)
	kill()
	g.want(true, `select ended_at is null from governance.snapshot where snapshot_ref = 1`)
	g.daemon()
	g.until(time.Minute, `select ended_at is not null from governance.snapshot where snapshot_ref = 1`)

	// Zero gap, zero double commit: in the tables, and in what the cursors have counted.
	g.want(rows, `select count(*) from governance.candidate`)
	g.want(rows, `select count(distinct (candidate_key, ruleset_version)) from governance.candidate`)
	g.want(0, `select count(*) from birth_registry b where not exists (
		select from governance.candidate c where c.candidate_key = b.collection_name || ':' || b.entity_code and c.item_id = b.id::text)`)
	g.want(fmt.Sprintf("%[1]d %[1]d %[1]d %[1]d", rows), `select string_agg(rows_seen::text, ' ') from governance.progress
		where source in ('birth_registry', 'governance_candidate', 'governance_gated')`)
	g.want(rows, `select rows_seen from governance.snapshot where snapshot_ref = 1`)
	g.want(0, `select count(*) from governance.mark`)
	g.want(0, `select count(*) from tidemark.dead_letter`)
	g.balance()
}

// 2. One family of cursors goes over integers and uuids, over timestamps with and without a time zone, each in its order.
func TestAcceptanceTypeGenerality(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	// By its time too, beside the number: the same table is read both ways.
	g.exec(`select tidemark.source_set('births_by_time', '{"table": "public.birth_registry", "id_column": "id", "timestamp_column": "born_at", "safety": "clock", "group_key": ["entity_code"]}');
		insert into birth_registry (collection_name, entity_code) select 'c', i::text from generate_series(1, 500) i`)
	g.drain("gov_backfill_sweep")
	g.exec(`select tidemark.worker_source_add('gov_handoff_intake', 'births_by_time'); update governance.candidate set item_id = '0'`)
	// Sessions have time zones of their own, clocks stand still, and numbers of uuids say nothing.
	g.exec(`set time zone 'Asia/Kathmandu';
		insert into registry_changelog (collection_name, entity_code) select 'c', i::text from generate_series(1, 200) i;
		insert into event_outbox (subject_table, subject_ref) select 'c', i::text from generate_series(1, 200) i;
		insert into registry_changelog (collection_name, entity_code) select 'c', i::text from generate_series(201, 400) i;
		insert into event_outbox (subject_table, subject_ref) select 'c', i::text from generate_series(201, 400) i`)
	type source struct{ name, table, rows, behind string }
	sources := []source{
		{"birth_registry", "birth_registry", "500", `t.id <= c.watermark_id::integer`},
		{"births_by_time", "birth_registry", "500", `(t.born_at, t.id) <= (c.watermark_ts, c.watermark_id::integer)`},
		{"registry_changelog", "registry_changelog", "400", `(t.timestamp at time zone 'UTC', t.id) <= (c.watermark_ts, c.watermark_id::integer)`},
		{"event_outbox", "event_outbox", "400", `(t.occurred_at, t.id) <= (c.watermark_ts, c.watermark_id::uuid)`},
	}
	deadline := time.Now().Add(3 * time.Minute)
	for done := 0; done < len(sources); {
		if time.Now().After(deadline) {
			t.Fatal("the sources do not come to their end")
		}
		g.run("gov_handoff_intake", 37)
		done = 0
		for _, s := range sources {
			// What was handed over is what lies up to the watermark, after each page.
			g.want("true", fmt.Sprintf(`select c.events_seen = (select count(*) from %s t where %s) from tidemark.worker_cursor c
				where c.worker = 'gov_handoff_intake' and c.source = '%s'`, s.table, s.behind, s.name))
			if value[string](g, `select events_seen::text from tidemark.worker_cursor where worker = 'gov_handoff_intake' and source = $1`, s.name) == s.rows {
				done++
			}
		}
	}
	// A mark a row, each row once. Both birth sources tell under the name of the first.
	for _, s := range sources[2:] {
		g.want(s.rows, `select format('%s', count(distinct item_id)) from governance.mark where source = $1`, s.name)
		g.want(s.rows, `select format('%s', count(*)) from governance.mark where source = $1`, s.name)
		g.want(0, fmt.Sprintf(`select count(*) from %s t where t.id::text not in (select m.item_id from governance.mark m where m.source = '%s')`, s.table, s.name))
	}
	g.want("integer integer timestamp without time zone uuid", `select string_agg(x, ' ' order by x) from (
		select distinct s.id_type as x from tidemark.source s join governance.watched w using (source)
		union all select 'integer' union all select s.timestamp_type from tidemark.source s where s.time_zone = 'UTC') y`)
}

// 3. Of two instances of one worker one works, the other backs off, and nothing is done twice.
func TestAcceptanceLeaseSafety(t *testing.T) {
	t.Parallel()
	const rows = 20_000
	g := newGovern(t)
	g.birth(rows)

	first := g.Connect(t)
	if _, err := first.Exec(t.Context(), `begin`); err != nil {
		t.Fatal(err)
	}
	if r, err := runOn(t.Context(), first, "gov_backfill_sweep", 1000); err != nil || r.Status != "ran" || r.Rows != 1000 {
		t.Fatal(r, err)
	}
	if r := g.run("gov_backfill_sweep", 1000); r.Status != "busy" || r.Rows != 0 {
		t.Error("the second instance does not back off:", r)
	}
	if _, err := first.Exec(t.Context(), `commit`); err != nil {
		t.Fatal(err)
	}

	// As it comes: four instances at once, and two daemons beside them.
	g.daemon()
	g.daemon()
	var mu sync.Mutex
	seen := map[string]int{}
	group, ctx := errgroup.WithContext(t.Context())
	for range 4 {
		conn := g.Connect(t)
		group.Go(func() error {
			for {
				r, err := runOn(ctx, conn, "gov_backfill_sweep", 100)
				if err != nil {
					return err
				}
				mu.Lock()
				seen[r.Status]++
				mu.Unlock()
				if r.Status == "ran" && !r.More {
					return nil
				}
				var done bool
				if err := conn.QueryRow(ctx, `select count(*) = $1 from governance.candidate`, rows).Scan(&done); err != nil || done {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if seen["busy"] == 0 {
		t.Error("no two ever met:", seen)
	}
	g.until(time.Minute, `select count(*) = $1 from governance.verdict`, rows)
	g.want(rows, `select count(*) from governance.candidate`)
	g.want(rows, `select rows_seen from governance.progress where worker = 'gov_backfill_sweep'`)
	g.balance()
}

// 4. A poison row is tried again, dead-lettered and told of; the sweep goes on, and the row is not lost.
func TestAcceptanceDLQNotDrop(t *testing.T) {
	t.Parallel()
	const rows, attempts = 10_000, 3
	g := newGovern(t)
	g.exec(`alter table birth_registry alter entity_code drop not null`)
	g.birth(rows / 2)
	g.exec(`insert into birth_registry (collection_name, entity_code) values ('collection-poison', null)`)
	poison := value[string](g, `select max(id)::text from birth_registry`)
	g.exec(`insert into birth_registry (collection_name, entity_code) select 'later', i::text from generate_series(1, $1::integer) i`, rows/2)
	g.exec(`select tidemark.worker_set('gov_backfill_sweep', '{"retry_policy": {"max_attempts": 3, "base_seconds": 0.05, "max_seconds": 0.1}}')`)

	deadline := time.Now().Add(3 * time.Minute)
	for value[int](g, `select count(*)::int from tidemark.dead_letter`) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("it is never given up")
		}
		g.run("gov_backfill_sweep", 2000)
	}
	g.drainAll()
	g.want(rows, `select count(*) from governance.verdict`)
	g.want(fmt.Sprintf("birth_registry %s %d collection-poison 23502", poison, attempts), `select concat_ws(' ', source, item_id, attempts,
		event_snapshot ->> 'collection_name', substr(error_code, 1, 5)) from tidemark.dead_letter`)
	g.want(1, `select count(*) from tidemark.finding where kind = 'cursor_dlq' and closed_at is null and subject like 'gov_backfill_sweep%'`)
	g.want(1, `select dlq from governance.progress where worker = 'gov_backfill_sweep'`)
	g.want(0, `select count(*) from tidemark.pending_row`)

	// Once its owner has mended it, it comes through.
	g.exec(`update birth_registry set entity_code = 'mended' where entity_code is null`)
	g.exec(`select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
	g.drainAll()
	g.want("collection-poison:mended", `select candidate_key from governance.candidate where collection_name = 'collection-poison'`)
	g.want(0, `select count(*) from tidemark.dead_letter where resolved_at is null`)
}

// 5. A worker that stops is noticed by the database within its threshold; when it is back, that is over.
func TestAcceptanceHeartbeat(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	const cursor = "gov_backfill_sweep/birth_registry/0"
	const silent = `select exists (select from tidemark.stale_check() c where c.executor_id = $1 and c.state = 'silent')
		and exists (select from tidemark.finding f where f.kind = 'cursor_silent_gap' and f.subject = $1 and f.closed_at is null)`
	g.exec(`update tidemark.heartbeat set expected_cadence_seconds = 1, stale_threshold_seconds = 4 where executor_id like 'gov%'`)
	g.birth(100)
	kill := g.daemon()
	g.until(time.Minute, `select count(*) = 100 from governance.verdict`)
	if value[bool](g, silent, cursor) {
		t.Error("it is at work, and said to be silent")
	}

	kill()
	g.until(30*time.Second, silent, cursor)
	// Within the threshold, and not before.
	g.want(true, `select f.opened_at - h.last_beat_at between interval '4 seconds' and interval '12 seconds' from tidemark.finding f
		join tidemark.heartbeat h on h.executor_id = f.subject where f.kind = 'cursor_silent_gap' and f.subject = $1`, cursor)

	g.daemon()
	g.until(30*time.Second, `with c as (select * from tidemark.stale_check()) select count(*) >= 0 and not exists (
		select from tidemark.finding f where f.kind = 'cursor_silent_gap' and f.closed_at is null) from c`)
}

// 6. The whole inventory, in pages of 5,000, and again without a change. Requirement CU13.
func TestAcceptanceScale(t *testing.T) {
	if testing.Short() {
		t.Skip("a million rows")
	}
	t.Parallel()
	// A server of its own: its WAL is what is measured.
	g := newGovernOn(t, tidemarktest.NewDBAt(t, testserver.New(t, devpg.Options{Settings: map[string]string{"autovacuum": "off"}}).URL("postgres")))
	g.exec(`insert into birth_registry (collection_name, entity_code, born_at)
		select 'collection-' || i % 40, 'entity-' || i, timestamptz '2026-01-01' + i * interval '1 second' from generate_series(1, $1::integer) i`, inventory)
	g.exec(`vacuum analyze birth_registry`)

	sweep := func() (took []time.Duration) {
		var mark int
		for {
			began := time.Now()
			r := g.run("gov_backfill_sweep", 5000)
			if r.Rows == 0 && !r.More {
				return took
			}
			if r.Status != "ran" || r.Rows > 5000 {
				t.Fatal(r)
			}
			if r.Rows == 5000 {
				took = append(took, time.Since(began))
			}
			reached := value[int](g, `select watermark_id::int from tidemark.worker_cursor where worker = 'gov_backfill_sweep'`)
			if reached < mark {
				t.Fatalf("the cursor went back from %d to %d", mark, reached)
			}
			mark = reached
		}
	}
	pages := sweep()
	g.want(inventory, `select count(*) from governance.candidate`)
	g.want(inventory, `select rows_seen from governance.progress where worker = 'gov_backfill_sweep'`)
	g.balance()
	if len(pages) != inventory/5000 {
		t.Error("full pages:", len(pages))
	}
	if slowest := slices.Max(pages); slowest > 5*time.Second {
		t.Error("a page took", slowest)
	}
	tenth := len(pages) / 10
	first, last := median(pages[:tenth]), median(pages[len(pages)-tenth:])
	t.Logf("%d pages; the slowest took %s; of the first tenth %s, of the last %s", len(pages), slices.Max(pages).Round(time.Millisecond), first, last)
	// A cost that grows with what lies behind would be a hundred times that by then. The machine may be busy.
	if last > 3*first {
		t.Errorf("the last pages take %s, the first took %s", last, first)
	}

	// Nothing has changed: nothing is written but the cursor.
	g.exec(`select tidemark.source_rewind('gov_backfill_sweep', 'birth_registry', 'again', to_id => '0')`)
	g.exec(`checkpoint`)
	from := value[string](g, `select pg_current_wal_insert_lsn()::text`)
	sweep()
	wal := value[float64](g, `select (pg_current_wal_insert_lsn() - $1::pg_lsn)::float8`, from)
	t.Logf("%.2f bytes of WAL a row, seen again", wal/inventory)
	g.balance()
	if wal/inventory > 2 {
		t.Errorf("%.2f bytes of WAL a row, seen again without a change", wal/inventory)
	}

	// No page is made by OFFSET.
	for _, sql := range []string{
		`select string_agg(tidemark.source_query(s, 1, step, 'rows'), ' ') from tidemark.source s, unnest(array['forward', 'sweep', 'null', 'retry', 'ids']) step
			where step in ('forward', 'retry', 'ids') or s.timestamp_column is not null`,
		`select string_agg(prosrc, ' ') from pg_proc where pronamespace = 'governance'::regnamespace`,
	} {
		if text := value[string](g, sql); text == "" || regexp.MustCompile(`(?i)\boffset\b`).MatchString(text) {
			t.Error("a page is made by OFFSET")
		}
	}
}

func median(d []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(d))[len(d)/2].Round(100 * time.Microsecond)
}

// 7. People look at summaries. What the sweeps read and write is not theirs to scan.
func TestAcceptanceNoUIScan(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(1000)
	g.drainAll()
	g.audit()
	const open = "metrics old_outbox progress ruleset snapshot summary watched"
	g.want(open, `select string_agg(relname, ' ' order by relname) from pg_class
		where relnamespace = 'governance'::regnamespace and relkind in ('r', 'v') and has_table_privilege('tidemark_reader', oid, 'select')`)
	g.exec(`set role tidemark_reader`)
	g.want("1000 0 {\"accepted\": 1000} {\"propose\": 1000} 0 1", `select concat_ws(' ', candidates, pending, states, verdicts, dirty, snapshot_ref) from governance.summary`)
	g.want(9, `select count(*) from governance.progress`)
	g.want("propose", `select candidate_verdict from governance.find('collection-1:entity-1')`)
	for _, table := range []string{"candidate", "gated", "verdict", "mark", "audit_step", "tally"} {
		if _, err := g.conn.Exec(t.Context(), `select from governance.`+table); err == nil {
			t.Error("a reader may scan ", table)
		}
	}
	g.exec(`reset role`)
	for relation := range strings.FieldsSeq(open) {
		plan := value[string](g, "explain (format json) select * from governance."+relation)
		if !strings.Contains(plan, "Relation Name") {
			t.Error(relation, "has a plan without a table:", plan)
		}
		for _, table := range []string{"candidate", "gated", "verdict", "mark", "birth_registry", "registry_changelog", "event_outbox"} {
			if strings.Contains(plan, fmt.Sprintf(`"Relation Name": "%s"`, table)) {
				t.Errorf("%s reads %s", relation, table)
			}
		}
	}
}
