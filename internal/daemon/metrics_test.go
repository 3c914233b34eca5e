package daemon_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Each cursor of a table has series of its own, both those that this process counts and those that come from the database.
func TestMetricsOfTables(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	execSQL(t, db, `
create table births (id bigint generated always as identity primary key);
create function take(rows births[]) returns void language plpgsql as $$ begin
	if exists (select from unnest(rows) where id = 1) then raise exception 'not that one'; end if; end $$;
select tidemark.source_set('births', '{"table": "public.births", "id_column": "id", "safety": "sequence"}');
select tidemark.worker_set('w', '{"source": "table", "handler": "sql", "handler_ref": "public.take", "shards": 2, "retry_policy": {"max_attempts": 1}}');
select tidemark.worker_source_add('w', 'births');
insert into births select from generate_series(1, 40);
select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.w.enabled', true)`)
	p := run(t, settings(db))
	url := "http://" + p.Addr() + "/metrics"

	// of returns the values of a series for each shard. -1: the series is missing.
	of := func(name string) (values [2]float64) {
		_, metrics := get(t, url)
		for shard := range values {
			values[shard] = -1
			series := regexp.MustCompile(fmt.Sprintf(`(?m)^%s\{shard="%d",source="births",worker="w"\} (\S+)$`, name, shard))
			if m := series.FindStringSubmatch(metrics); m != nil {
				values[shard], _ = strconv.ParseFloat(m[1], 64)
			}
		}
		return values
	}
	sum := func(name string) float64 { v := of(name); return v[0] + v[1] }
	eventually(t, "each shard has read all rows", func() bool { return of("tidemark_events_read_total") == [2]float64{40, 40} })
	eventually(t, "all but one are taken", func() bool { return sum("tidemark_results_settled_total") == 39 })
	if dead := of("tidemark_dead_letter_rows_open"); dead[0]+dead[1] != 1 || dead[0] < 0 || dead[1] < 0 {
		t.Errorf("dead letters of the shards: %v", dead)
	}
	missing := [2]float64{-1, -1}
	for name, want := range map[string][2]float64{
		"tidemark_worker_holds_lease": {1, 1}, "tidemark_worker_claims_total": {1, 1}, "tidemark_pending_rows": {0, 0}, "tidemark_worker_holes": {0, 0},
		"tidemark_worker_behind": missing, "tidemark_behind_seconds": {0, 0},
	} {
		if got := of(name); got != want {
			t.Errorf("%s %s", name, cmp.Diff(want, got))
		}
	}
	for _, name := range []string{"tidemark_results_settled_total", "tidemark_worker_last_run_timestamp_seconds", "tidemark_read_seconds_count", "tidemark_settle_seconds_count"} {
		if got := of(name); got[0] <= 0 || got[1] <= 0 {
			t.Errorf("%s %v", name, got)
		}
	}
}

// Emits that stored nothing appear in the metric at once, and maintain, which sums them up, does not change it.
func TestMetricOfUnregistered(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := run(t, settings(db))
	url := "http://" + p.Addr() + "/metrics"
	const want = `tidemark_emit_unregistered_total{domain="shop",role="postgres",type="ordr"} %d`
	for n := 1; n <= 2; n++ {
		execSQL(t, db, `select tidemark.emit('shop', 'ordr')`)
		line := fmt.Sprintf(want, n)
		for range 2 {
			if _, metrics := get(t, url); !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(line) + `$`).MatchString(metrics) {
				t.Errorf("/metrics lacks %s", line)
			}
			execSQL(t, db, `select tidemark.maintain()`)
		}
	}
	execSQL(t, db, `select tidemark.type_set('shop', 'ordr')`)
	if _, metrics := get(t, url); regexp.MustCompile(`tidemark_emit_unregistered_total\{`).MatchString(metrics) {
		t.Error("the metric stays, though the type is registered")
	}
}

// Concurrent scrapes share one query, so that a client which requests the page again and again does not use up the workers'
// connections.
func TestScrapesShareAConnection(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := run(t, settings(db))
	conn := db.Connect(t)
	exec := func(sql string) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`begin; lock table tidemark.dead_letter in access exclusive mode`) // so that each scrape takes long
	var scrapes sync.WaitGroup
	for range 15 {
		scrapes.Go(func() {
			if r, err := http.Get("http://" + p.Addr() + "/metrics"); err == nil {
				_ = r.Body.Close()
			}
		})
	}
	ended := make(chan struct{})
	go func() { scrapes.Wait(); close(ended) }()
	most := 0
	eventually(t, "the scrapes have ended", func() bool {
		var waiting int
		err := db.Pool.QueryRow(t.Context(), `select count(distinct l.pid) from pg_locks l join pg_class c on c.oid = l.relation
			where not l.granted and c.relname = 'dead_letter'`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, waiting)
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	exec(`rollback`)
	if most == 0 || most > 3 { // upkeep asks for the table too
		t.Errorf("%d connections waited at a time, want that of one scrape", most)
	}
}

// A scrape is one statement, and the watch travels with the poll.
func TestScrapeIsOneStatement(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	m, url := metered(t, db.URL)
	c := settings(db)
	c.Database.URL = config.NewSecret(url)
	p := run(t, c)
	page := "http://" + p.Addr() + "/metrics"
	eventually(t, "the first watch", func() (watches bool) {
		err := db.Pool.QueryRow(t.Context(), `select until is not null from tidemark.watcher`).Scan(&watches)
		return err == nil && watches
	})
	const scrapes = 200
	began, before := time.Now(), m.statements.Load()
	for range scrapes {
		get(t, page)
	}
	// Beside them there are the poll, once a second, the worker that waits for its gate, and upkeep.
	if n, most := m.statements.Load()-before, int64(scrapes+5*time.Since(began).Seconds()+20); n > most || n < scrapes {
		t.Errorf("%d statements for %d scrapes, want at most %d", n, scrapes, most)
	}
}

// The state of the installation is on /metrics: routes, breakers, findings, executors, gates and the stage. All names
// follow Prometheus' conventions.
func TestMetricsOfTheInstallation(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	var status atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	t.Cleanup(target.Close)
	live(t, db, target.URL)
	p := run(t, settings(db))
	url := "http://" + p.Addr() + "/metrics"
	has := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			series := regexp.MustCompile(`(?m)^` + line + `$`)
			eventually(t, "the metric "+line, func() bool {
				_, metrics := get(t, url)
				return series.MatchString(metrics)
			})
		}
	}
	status.Store(http.StatusOK)
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick')`)
	has(
		`tidemark_commit_to_delivery_seconds_count\{route="app"\} 1`, `tidemark_breaker_open\{route="app"\} 0`, `tidemark_database_up 1`,
		`tidemark_gate_open\{gate="routes.enabled"\} 1`, `tidemark_stage_live 1`, `tidemark_armed 1`, `tidemark_pool_connections\{state="max"\} \d+`,
		`tidemark_heartbeat_age_seconds\{executor="default/outbox/0"\} \d`, `tidemark_health\{kind="cursor",name="default/outbox/0",status="ok"\} 1`,
	)
	status.Store(http.StatusBadRequest) // for good
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick')`)
	has(`tidemark_dead_letters_open\{route="app"\} 1`, `tidemark_health\{kind="dead_letter_event",name="app",status="warn"\} 1`)
	status.Store(http.StatusServiceUnavailable)
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick') from generate_series(1, 5)`)
	has(
		`tidemark_breaker_open\{route="app"\} 1`, `tidemark_pending\{route="app"\} 5`,
		`tidemark_finding_open\{kind="target_down",severity="\w+",subject="app"\} \d`,
		`tidemark_commit_to_delivery_seconds_count\{route="app"\} 1`, // nothing more was delivered
	)
	execSQL(t, db, `select tidemark.route_pause('app', 'test')`)
	has(`tidemark_route_paused\{route="app"\} 1`)
	execSQL(t, db, `select tidemark.gate_set('routes.enabled', false)`)
	has(`tidemark_gate_open\{gate="routes.enabled"\} 0`, `tidemark_breaker_open\{route="app"\} 0`) // no lease, no breaker

	_, metrics := get(t, url)
	ours := regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?tidemark_.*\n`)
	problems, err := promlint.New(strings.NewReader(strings.Join(ours.FindAllString(metrics, -1), ""))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("the metrics break conventions: %v %v", problems, err)
	}
}

// A database that does not answer is told by a metric; the metrics of the process stay.
func TestMetricsWithoutDatabase(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := run(t, settings(db))
	execSQL(t, db, `alter table tidemark.service rename to elsewhere`)
	_, metrics := get(t, "http://"+p.Addr()+"/metrics")
	execSQL(t, db, `alter table tidemark.elsewhere rename to service`)
	for line, want := range map[string]bool{
		"tidemark_database_up 0\n": true, "tidemark_pool_connections{": true, "tidemark_watch_age_seconds ": true, "tidemark_gate_open{": false, "tidemark_health{": false,
	} {
		if strings.Contains(metrics, "\n"+line) != want {
			t.Errorf("/metrics has %q: %t, want %t", line, !want, want)
		}
	}
}
