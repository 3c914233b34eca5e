package test

import (
	"bytes"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/migrate"
)

var fixture = flag.String("fixture", "", "make another fixture of TestUpgrade with this program of another build: scripts/upgrade-fixture.sh")

// An upgrade is of an installation whose owner is no superuser.
type upgrade struct {
	session
	server *devpg.Server
	url    string // as its installer
}

// beforeUpgrade makes a cluster with the roles, and an empty database of the installer's.
func beforeUpgrade(t *testing.T) upgrade {
	t.Helper()
	server := testserver.New(t, devpg.Options{})
	connect := func(role, database string) (session, string) {
		address, err := url.Parse(server.URL(database))
		if err != nil {
			t.Fatal(err)
		}
		address.User = url.User(role)
		conn, err := pgx.Connect(t.Context(), address.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		return session{t, role, conn}, address.String()
	}
	root, _ := connect("postgres", "postgres")
	root.exec(`create role ada login createrole`)
	root.exec(`create database shop owner ada`)
	dba, _ := connect("postgres", "shop")
	statements, err := migrate.Roles(t.Context(), dba.conn, "ada")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		dba.exec(s.SQL)
	}
	ada, address := connect("ada", "shop")
	return upgrade{ada, server, address}
}

// run runs a client of PostgreSQL, or another program.
func (u upgrade) run(program string, args ...string) []byte {
	u.t.Helper()
	if path := filepath.Join(u.server.BinDir(), program); filepath.Base(program) == program {
		if _, err := os.Stat(path); err == nil { // some packages of the server bring no clients
			program = path
		}
	}
	cmd := exec.CommandContext(u.t.Context(), program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		u.t.Fatalf("%s: %v\n%s", program, err, &stderr)
	}
	return out
}

// make makes a fixture with another build: what states.sql comes to there.
func (u upgrade) make(build string) {
	u.t.Helper()
	if version := one[int](u.session, `select current_setting('server_version_num')::int / 10000`); version != 15 {
		u.t.Fatalf("a dump by PostgreSQL %d is not for older servers: make it on 15", version)
	}
	u.run(build, "migrate", "up", "--database-url", u.url)
	u.run("psql", "-X", "-q", "-d", u.url, "-f", "testdata/upgrade/states.sql")
	dump := u.run("pg_dump", "--inserts", "--rows-per-insert=1000", "--no-toast-compression", "-d", u.url)
	version := one[int](u.session, `select max(version) from tidemark.migration`)
	kept := bytes.NewBufferString(fmt.Sprintf("-- An installation of the build with %d migrations, in use. Made by scripts/upgrade-fixture.sh.\n", version))
	for line := range strings.Lines(string(dump)) {
		if !strings.HasPrefix(line, `\`) && !strings.HasPrefix(line, "--") && line != "\n" { // psql's commands, remarks
			// From 17 on partitions have the parent's identity columns.
			kept.WriteString(plainInsert.ReplaceAllString(line, "$1 OVERRIDING SYSTEM VALUE VALUES"))
		}
	}
	if err := os.WriteFile(fmt.Sprintf("testdata/upgrade/%04d.sql", version), kept.Bytes(), 0o644); err != nil {
		u.t.Fatal(err)
	}
}

// CU2, RW3: installations of earlier builds, in use, upgraded by this one: the schema is that of a fresh one, what waited
// is delivered, what was decided is not decided again, cursors go on.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	if *fixture != "" {
		beforeUpgrade(t).make(*fixture)
	}
	files, err := filepath.Glob("testdata/upgrade/[0-9]*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no installation of an earlier build", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			u := beforeUpgrade(t)
			u.load(file)
			// As a rewind leaves it: the worker is not held.
			u.exec(`update tidemark.worker_cursor set watermark_id = (watermark_id::bigint - 1)::text where worker = 'default' and source = 'outbox'`)
			u.upgrade()
			u.schemaIsGolden()
			u.log()
			u.tables()
			u.captured()
			u.rest()
			u.wantNoFailure()
		})
	}
}

// The indexes of large tables can be made before the upgrade, which takes them as they are: nothing that emits waits for them.
func TestUpgradeTakesIndexesMadeBefore(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/UPGRADING.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```sql\nset role tidemark_owner;\n(select format\\('create index concurrently.*?)\n\\\\gexec").FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no such statement")
	}
	u := beforeUpgrade(t)
	u.load("testdata/upgrade/0021.sql")
	u.exec(`set role tidemark_owner`)
	for _, statement := range column[string](u.session, string(found[1])) {
		u.exec(statement)
	}
	u.exec(`reset role; create table public.before as select indexrelid from pg_index where indisvalid`)
	u.upgrade()
	u.schemaIsGolden()
	u.wantRows(`select format('%s: %s', i.inhparent::regclass, count(*) filter (where b.indexrelid is null)) from pg_inherits i left join public.before b on b.indexrelid = i.inhrelid
		where i.inhparent = any (array['tidemark.decision_untried', 'tidemark.decision_wide', 'tidemark.attempt_detail']::regclass[]) group by i.inhparent order by 1`,
		"tidemark.attempt_detail: 0", "tidemark.decision_untried: 0", "tidemark.decision_wide: 0")
}

// AD3: the upgrade as a script for another tool, which runs it in its own transaction and goes on in it as itself.
func TestUpgradeByAnotherTool(t *testing.T) {
	t.Parallel()
	u := beforeUpgrade(t)
	u.load("testdata/upgrade/0021.sql")
	script := func(from int) string {
		var out bytes.Buffer
		if err := migrate.PrintUpgrade(&out, from); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	u.exec(`create table public.versions (login text default current_user)`)
	u.refused("P0001", "the last migration of this database is 21, and this script is for 20", script(20))
	u.begin()
	u.exec(script(21))
	u.exec(`insert into public.versions default values`)
	u.commit()
	u.wantRows(`select login || ' ' || current_setting('lock_timeout') from public.versions`, "ada 0")
	if report, err := migrate.Up(t.Context(), u.conn); err != nil || len(report.Applied) > 0 || report.Recreated > 0 {
		t.Errorf("%+v %v", report, err)
	}
	if problems, err := migrate.Verify(t.Context(), u.conn); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	u.schemaIsGolden()
	u.refused("P0001", fmt.Sprintf("the last migration of this database is %d, and this script is for 21", store.Migrations), script(21))
}

// AD3: and an installation.
func TestInstallByAnotherTool(t *testing.T) {
	t.Parallel()
	u := beforeUpgrade(t)
	var script bytes.Buffer
	if err := migrate.PrintUpgrade(&script, 0); err != nil {
		t.Fatal(err)
	}
	u.exec(script.String())
	if report, err := migrate.Up(t.Context(), u.conn); err != nil || len(report.Applied) > 0 || report.Recreated > 0 {
		t.Errorf("%+v %v", report, err)
	}
	u.schemaIsGolden()
}

// AD3: likewise with roles of the database's own; the script of the other roles is refused.
func TestUpgradeByAnotherToolWithAPrefix(t *testing.T) {
	t.Parallel()
	u := beforeUpgrade(t)
	prefix := migrate.RolePrefix("acme_")
	statements, err := migrate.Roles(t.Context(), u.conn, "", prefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if !s.Done && s.Needed != "advice" {
			u.exec(s.SQL)
		}
	}
	script := func(from int, opts ...migrate.Option) string {
		var out bytes.Buffer
		if err := migrate.PrintUpgrade(&out, from, opts...); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	u.exec(script(0, prefix))
	u.exec(script(store.Migrations, prefix))
	if err := u.try(script(store.Migrations)); err == nil {
		t.Error("the script without the prefix is not refused")
	}
	if problems, err := migrate.Verify(t.Context(), u.conn); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

// load loads the installation.
func (u upgrade) load(file string) {
	u.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		u.t.Fatal(err)
	}
	conn, err := pgx.Connect(u.t.Context(), u.url) // the dump changes settings of its session
	if err != nil {
		u.t.Fatal(err)
	}
	// What a copy is told by, and an installation that is upgraded in its place is not: transactions before those of the
	// dump, and other tables than the cursors know.
	const aged = `do $$ begin while pg_current_xact_id()::text::bigint < 100000 loop commit; end loop; end $$`
	const athome = `update tidemark.worker_cursor c set metadata = c.metadata || jsonb_build_object('home', tidemark.source_home(t.relation),
			'numbering', tidemark.source_numbering(s, t.relation))
		from tidemark.source s, to_regclass(format('%I.%I', s.schema_name, s.table_name)) t (relation) where s.source = c.source`
	// It was in use a moment ago, whenever the dump was made.
	const notdue = `update tidemark.pending set next_attempt_at = clock_timestamp() + interval '1 hour' where last_error = 'http_503: not now'`
	for _, statement := range []string{aged, string(text), athome, notdue} {
		if _, err := conn.PgConn().Exec(u.t.Context(), statement).ReadAll(); err != nil {
			u.t.Fatalf("%s: %v", file, err)
		}
	}
	if err := conn.Close(u.t.Context()); err != nil {
		u.t.Fatal(err)
	}
}

// upgrade upgrades it.
func (u upgrade) upgrade() {
	u.t.Helper()
	report, err := migrate.Up(u.t.Context(), u.conn)
	if err != nil {
		u.t.Fatal(err)
	}
	if len(report.Roles) > 0 || report.Recreated == 0 {
		u.t.Errorf("%+v", report)
	}
	if problems, err := migrate.Verify(u.t.Context(), u.conn); err != nil || len(problems) > 0 {
		u.t.Errorf("migrate verify: %v, %v", problems, err)
	}
	// This is a copy: it delivers nothing until an operator says so.
	u.wantRows(`select status || ' ' || detail from tidemark.claim('default', 'daemon', '10 minutes')`, "closed stage")
	u.exec(`select tidemark.stage_set('live', 'upgraded')`)
	u.wantNoFailure()
}

var plainInsert = regexp.MustCompile(`^(INSERT INTO \S+) VALUES`)

// made are functions for tables of an application.
var made = regexp.MustCompile(`\bcapture_\d`)

// schemaIsGolden compares it with a fresh one, but for what is data. A constraint that was dumped has other parentheses.
func (u upgrade) schemaIsGolden() {
	u.t.Helper()
	text, err := os.ReadFile(golden)
	if err != nil {
		u.t.Fatal(err)
	}
	comparable := func(all []string) (lines []string) {
		for _, line := range all {
			switch {
			case strings.HasPrefix(line, "row ") && !strings.HasPrefix(line, "row migration "), strings.HasPrefix(line, "partition "), made.MatchString(line), line == "":
			case strings.HasPrefix(line, "constraint "):
				lines = append(lines, strings.NewReplacer("(", "", ")", "").Replace(line))
			default:
				lines = append(lines, line)
			}
		}
		return lines
	}
	if diff := cmp.Diff(comparable(strings.Split(string(text), "\n")), comparable(schema(u.session))); diff != "" {
		u.t.Errorf("the schema is not that of a fresh installation (-want +got)\n%s", diff)
	}
}

// wantNoFailure: verify has nothing against it.
func (u upgrade) wantNoFailure() {
	u.t.Helper()
	u.wantRows(`select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
	u.wantSound()
}

const (
	// handed is what a daemon is given: number, kind, the number of the attempt, the attempts that failed.
	handed = `select concat_ws(' ', r.seq, case when r.replay then 'replay' when not r.fresh then 'pending' end, r.attempt_no, r.error_count)
		from tidemark.pass_read('default', $1, 100, null, null, '{}', '{}') r where r.seq is not null order by r.fresh, r.replay, r.seq`
	// takes settles all of it as sent.
	takes = `with p as materialized (select * from tidemark.pass_read('default', $1, 100, null, null, '{}', '{}'))
		select tidemark.pass_settle('default', $1, h.batch::tidemark.batch, h.evidence::tidemark.evidence[], array(
			select row(route, i.fresh, 'sent', null, null, int8multirange(int8range(i.seq, i.seq + 1)), null)::tidemark.result
			from p i, unnest(i.route_ids) route), $2)
		from p h where h.seq is null`
	arrived = `select n::text from received order by at`
)

// log goes on, by a daemon.
func (u upgrade) log() {
	u.t.Helper()
	before := []string{"1", "2", "3", "4", "5", "7", "8", "10"}
	u.wantRows(arrived, before...)
	epoch, settles := 0, 0
	if err := u.conn.QueryRow(u.t.Context(), `select epoch, settles from tidemark.claim('default', 'daemon', '10 minutes')`).Scan(&epoch, &settles); err != nil || epoch != 2 {
		u.t.Fatal(epoch, err)
	}
	rows := func(want ...string) {
		u.t.Helper()
		if got := column[string](u.session, handed, epoch); !slices.Equal(got, want) {
			u.t.Errorf("a daemon is given %q, want %q", got, want)
		}
	}
	rows("5 pending 2 0", "2 replay 3 0", "6 replay 3 0", "7 replay 5 0", "11 1 0", "12 1 0", "13 1 0", "14 1 0")
	u.exec(takes, epoch, settles+1)
	u.wantRows(arrived, append(before, "11", "12", "13", "14")...)
	rows()
	u.exec(`update tidemark.pending set next_attempt_at = clock_timestamp() where seq = 3`) // it is due
	rows("3 pending 2 1", "4 pending 2 0", "10 pending 2 0")
	u.exec(takes, epoch, settles+2)
	rows()
	u.exec(`select tidemark.release('default', $1)`, epoch)

	u.wantRows(`select count(*)::text from tidemark.pending`, "0")
	u.wantRows(`select (holes + fenced)::text from tidemark.worker_cursor where worker = 'default'`, "{}")
	u.wantRows(`select concat_ws(' ', r.route_code, l.seq, l.resolution) from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id order by l.id`,
		"hook 2 sent", "hook 7 sent", "hook 8 discarded", "app 6")
	u.wantRows(`select concat_ws(' ', state, staged, sent, failed) from tidemark.replay_summary`, "finished 2 2 0")
	u.exec(`select tidemark.worker_rewind('default', 0, 'a drill')`) // and nothing that was decided is decided again
	u.pass()
	u.wantRows(arrived, append(before, "11", "12", "13", "14")...)
	// An idempotency key is known.
	u.wantRows(`select (tidemark.emit_strict('test', 'tick', '{"n": 1}', idempotency_key => 'once') = o.event_id)::text from tidemark.outbox o where o.seq = 1`, "true")
}

// tables go on, each by its safety: every row once.
func (u upgrade) tables() {
	u.t.Helper()
	u.exec(`update tidemark.pending_row set next_attempt_at = clock_timestamp() where item_id = '6'`)
	for _, source := range []string{"counted", "timed", "loose", "parcels"} {
		for n := 0; one[bool](u.session, `select (tidemark.worker_run('w_' || $1) ->> 'more')::boolean`, source); n++ {
			if n > 100 {
				u.t.Fatal(source, "does not come to an end")
			}
		}
	}
	u.wantRows(`select source || ' ' || string_agg(n::text, ' ' order by n) from handled group by source order by source`,
		"counted 1 2 3 4 5 6", "loose 1 2 3 4 5 6 7", "parcels 1 2 3 4 5 6", "timed 1 2 3 4 5 6")
}

// captured: the trigger goes on, with a function of this build, and the gap that was open is closed.
func (u upgrade) captured() {
	u.t.Helper()
	u.wantRows(`select route_code from tidemark.capture_stale`)
	u.exec(`insert into orders values (4, 4)`)
	u.wantRows(`select e.emitted::text from tidemark.capture_gap g cross join lateral tidemark.capture_gap_emit(g.id) e where g.resolved_at is null`, "1")
	u.wantRows(`select key || ' ' || type from tidemark.outbox where domain = 'orders' order by seq`, "1 insert", "3 insert", "4 insert", "2 insert")
	u.wantRows(`select kind from tidemark.finding where kind = 'capture_gap' and closed_at is null`)
}

// rest is what operators have set and written, and what Tidemark has told them.
func (u upgrade) rest() {
	u.t.Helper()
	u.wantRows(`select key || ' ' || value from tidemark.setting where key in ('batch.max_bytes', 'notify.bridge_enabled', 'worker.idle.enabled') or key like 'worker.w_t%' order by key`,
		"batch.max_bytes 12345678", "notify.bridge_enabled false", "worker.w_timed.enabled true")
	u.wantRows(`select concat_ws(' ', kind, subject, ack_note, closed_at is null) from tidemark.finding where kind in ('target_down', 'cursor_lease_conflict') order by id`,
		"target_down hook f", "cursor_lease_conflict default known t")
	u.wantRows(`select concat_ws(' ', executor_id, kind, ticks_total) from tidemark.heartbeat where kind <> 'PG_worker'`, "backup external_worker 1")
	u.wantRows(`select concat_ws(' ', domain, type, emits) from tidemark.emit_unregistered`, "test unheard 1")
	u.wantRows(`select concat_ws(' ', worker, domains) from tidemark.worker where worker in ('default', 'idle')`, "default", "idle {parcels}")
	u.wantRows(`select concat_ws(' ', item_id, error_detail, attempts) from tidemark.dead_letter where source = 'counted' order by id`, "1 no such row 2", "6 no such row 2")
	u.wantRows(`select count(distinct reason)::text from tidemark.audit where reason in ('in use', 'they lost them', 'obsolete', 'for later', 'upgraded')`, "5")
	if made := one[int](u.session, `select max(version) from tidemark.migration`); made != store.Migrations {
		u.t.Errorf("%d migrations have run, want %d", made, store.Migrations)
	}
}
