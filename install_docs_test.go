package tidemark_test

import (
	"fmt"
	"os"
	"path/filepath"
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
	if want := []string{"ada order.created; bob order.created", "order_mail sent; order_mail sent", "hello ada; hello bob"}; !slices.Equal(got, want) {
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
	last := len(blocks) - 1 // of the uninstallation
	for _, block := range blocks[:last] {
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
	c.exec(deploy, `drop schema tidemark cascade`)
	c.exec(dba, blocks[last])
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
	for page, names := range map[string][]string{
		"docs/operations.md": c.column(ada, `select key from tidemark.setting where key not like '%enabled'`),
		"docs/daemon.md": c.column(ada, `select attname::text from pg_attribute where attrelid = 'tidemark.outbound_route'::regclass
			and attnum > 0 and not attisdropped and attname not in ('id', 'route_code')`),
	} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("%s does not name %s", page, name)
			}
		}
	}
	for _, page := range []string{"docs/daemon.md", "docs/operations.md", "docs/sources.md"} {
		for _, block := range sqlBlocks(t, page) {
			if _, err := ada.PgConn().Exec(t.Context(), block).ReadAll(); err != nil {
				t.Errorf("%s: %v\n%s", page, err, block)
			}
		}
	}
}

// AD5: the SQL of each page of docs/howto, in order, as an operator that is no superuser. The other blocks of these pages are marked by
// having no language: they are for a shell, or for extensions that are not installed.
func TestHowTo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	pages, err := filepath.Glob("docs/howto/*.md")
	if err != nil || len(pages) < 8 {
		t.Fatal(pages, err)
	}
	c.exec(c.dba, "create role ada login")
	for i, page := range pages {
		name := fmt.Sprintf("howto_%d", i)
		c.exec(c.dba, "create database "+name)
		dba := c.connect("postgres", name)
		c.up(dba)
		// What the pages' readers have: a table that is polled, and the functions of other queues.
		c.exec(dba, `grant tidemark_admin to ada; grant create on schema public to ada;
			create schema graphile_worker authorization ada; create schema pgmq authorization ada`)
		ada := c.connect("ada", name)
		c.exec(ada, `create table outbox (id bigint primary key, type text, aggregate_id text, payload jsonb, sent_at timestamptz);
			insert into outbox values (1, 'order.created', 'order-1', '{}', now());
			create function graphile_worker.add_job(identifier text, payload json, job_key text) returns void language sql as 'select null';
			create function pgmq.send(queue text, msg jsonb) returns void language sql as 'select null';
			select tidemark.domain_set('shop')`)
		if !strings.Contains(page, "from-a-poller") {
			c.exec(ada, `select tidemark.type_set('shop', 'order.created')`)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "```sql") {
			continue
		}
		for _, block := range sqlBlocks(t, page) {
			if _, err := ada.PgConn().Exec(t.Context(), block).ReadAll(); err != nil {
				t.Errorf("%s: %v\n%s", page, err, block)
			}
		}
	}
	for page, want := range map[string]string{"from-a-poller": "1", "test": "ada"} {
		i := slices.Index(pages, "docs/howto/"+page+".md")
		ada := c.connect("ada", fmt.Sprintf("howto_%d", i))
		if page == "from-a-poller" {
			// What the page has set up emits what is inserted.
			c.exec(ada, `insert into outbox values (2, 'order.created', 'order-2', '{}', null)`)
			if got := c.column(ada, `select count(*)::text from tidemark.outbox where idempotency_key = 'outbox/2' and key = 'order-2'`); got[0] != want {
				t.Errorf("%s: %v events", page, got)
			}
		} else if got := c.column(ada, `select to_whom from mail`); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: mails to %v", page, got)
		}
	}
}
