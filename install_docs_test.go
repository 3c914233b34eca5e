package tidemark_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// readme runs the README's five minutes, statement by statement.
func (c cluster) readme(conn *pgx.Conn) {
	c.t.Helper()
	for _, block := range sqlBlocks(c.t, "README.md") {
		if _, err := conn.PgConn().Exec(c.t.Context(), block).ReadAll(); err != nil {
			c.t.Fatalf("%v\n%s", err, block)
		}
	}
	got := c.column(conn, `select (select string_agg(to_whom || ' ' || what, '; ') from mail)
		union all select (select string_agg(route_code || ' ' || outcome, '; ' order by seq) from tidemark.route_attempt)
		union all select string_agg(greeting, '; ' order by birth_id) from greeted`)
	if want := []string{"bob order.created", "order_mail dry_run; order_mail sent", "hello ada; hello bob"}; !slices.Equal(got, want) {
		c.t.Errorf("the README made %q, want %q", got, want)
	}
}

// sqlBlocks are those of a page.
func sqlBlocks(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(block[1]))
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no SQL", file)
	}
	return blocks
}

// SE5, README: the installer may create roles and owns the database. She is no superuser, and does all of the README.
func TestReadme(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, ada := c.database("shop", "ada", "createrole", "alter database shop owner to ada")
	report := c.up(ada)
	if len(report.Applied) == 0 || !slices.ContainsFunc(report.Roles, func(s string) bool { return strings.HasPrefix(s, "grant tidemark_admin to ada") }) {
		t.Errorf("%+v: must say what she became", report)
	}
	c.wantSound(ada)
	c.readme(ada)
	c.wantSound(ada)
	if got := c.column(ada, `select distinct pg_get_userbyid(c.relowner)::text from pg_class c where c.relnamespace = 'tidemark'::regnamespace`); !slices.Equal(got, []string{"tidemark_owner"}) {
		t.Errorf("tables belong to %v", got)
	}
}

// The statements of docs/roles.md, and what they give: each role its part and no more.
func TestGrantsPage(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	dba, deploy := c.database("app", "deploy", "", "")
	blocks := sqlBlocks(t, "docs/roles.md")
	c.exec(dba, `create role shop login; create role daemon login; create role ada login; create role grafana login`)
	for _, block := range blocks {
		c.exec(dba, block)
	}
	c.up(deploy)
	c.exec(deploy, `select tidemark.type_set('shop', 'order.created')`)
	const (
		emit = `select tidemark.emit_strict('shop', 'order.created')`
		run  = `select tidemark.route_worker_run()`
		read = `select * from tidemark.queue_health`
		gate = `select tidemark.gate_set('routes.enabled', true)`
		text = `select payload from tidemark.outbox`
	)
	for login, may := range map[string][]string{
		"shop": {emit}, "daemon": {run, read, text}, "grafana": {read}, "ada": {emit, run, read, gate, text}, "deploy": {emit, run, read, gate, text},
	} {
		conn := c.connect(login, "app")
		for _, sql := range []string{emit, run, read, gate, text} {
			_, err := conn.Exec(t.Context(), sql)
			if want := slices.Contains(may, sql); (err == nil) != want || !want && !strings.Contains(err.Error(), "42501") {
				t.Errorf("%s: %s: %v", login, sql, err)
			}
		}
	}
	c.wantSound(deploy)
}

// The SQL of the other pages, as the operator that reads them: no superuser, and owner of the application's tables.
func TestDocsSQL(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	dba, ada := c.database("app", "ada", "", "create schema shop; grant create on schema public to ada")
	c.up(dba)
	c.exec(dba, `grant tidemark_admin to ada`)
	c.exec(ada, `create table public.birth_registry (id bigint generated always as identity primary key, born_at timestamptz not null default now(),
			collection_name text, entity_code text);
		create index on public.birth_registry (born_at, id);
		create table public.candidate_state (candidate_key text primary key, dirty boolean, seen_at timestamptz);
		select tidemark.type_set('shop', 'order.created')`)
	for _, page := range []string{"docs/daemon.md", "docs/operations.md", "docs/sources.md"} {
		for _, block := range sqlBlocks(t, page) {
			if _, err := ada.PgConn().Exec(t.Context(), block).ReadAll(); err != nil {
				t.Errorf("%s: %v\n%s", page, err, block)
			}
		}
	}
}
