package tidemark_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m) }

// A cluster has roles of its own: those of Tidemark in it are a test's.
type cluster struct {
	t      *testing.T
	server *devpg.Server
	dba    *pgx.Conn
}

func newCluster(t *testing.T) cluster {
	t.Helper()
	c := cluster{t: t, server: testserver.New(t, devpg.Options{})}
	c.dba = c.connect("postgres", "postgres")
	return c
}

func (c cluster) connect(role, database string) *pgx.Conn {
	c.t.Helper()
	address, err := url.Parse(c.server.URL(database))
	if err != nil {
		c.t.Fatal(err)
	}
	address.User = url.User(role)
	conn, err := pgx.Connect(c.t.Context(), address.String())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (c cluster) exec(conn *pgx.Conn, sql string) {
	c.t.Helper()
	if _, err := conn.PgConn().Exec(c.t.Context(), sql).ReadAll(); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
}

// database makes one, and its installer.
func (c cluster) database(name, installer, attributes, rights string) (dba, conn *pgx.Conn) {
	c.t.Helper()
	c.exec(c.dba, "create role "+installer+" login "+attributes)
	c.exec(c.dba, "create database "+name)
	dba = c.connect("postgres", name)
	if rights != "" {
		c.exec(dba, rights)
	}
	return dba, c.connect(installer, name)
}

func (c cluster) column(conn *pgx.Conn, sql string) []string {
	c.t.Helper()
	rows, err := conn.Query(c.t.Context(), sql)
	if err != nil {
		c.t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
	return got
}

func (c cluster) up(conn *pgx.Conn, options ...migrate.Option) migrate.Report {
	c.t.Helper()
	report, err := migrate.Up(c.t.Context(), conn, options...)
	if err != nil {
		c.t.Fatal(err)
	}
	return report
}

// refused returns the statements that an installer is told to have run, and demands that nothing has changed.
func (c cluster) refused(conn *pgx.Conn, options ...migrate.Option) []string {
	c.t.Helper()
	const everything = `select format('role %s %s %s', rolname, rolcanlogin, rolsuper) as line from pg_roles
		union all select format('%s in %s by %s', member::regrole, roleid::regrole, grantor::regrole) from pg_auth_members
		union all select format('schema %s', nspname) from pg_namespace where nspname not like 'pg_temp%' and nspname not like 'pg_toast_temp%'
		union all select format('database %s %s', datname, datacl) from pg_database order by 1`
	before := c.column(conn, everything)
	report, err := migrate.Up(c.t.Context(), conn, options...)
	var refused *migrate.RolesError
	if !errors.As(err, &refused) {
		c.t.Fatalf("Up: %v, want a RolesError", err)
	}
	if after := c.column(conn, everything); !slices.Equal(before, after) || len(report.Applied) > 0 {
		c.t.Errorf("it was refused and has changed something: %v\nwas %v", after, before)
	}
	for _, statement := range refused.Statements {
		if !strings.Contains(err.Error(), statement+";") {
			c.t.Errorf("the error does not say %q: %v", statement, err)
		}
	}
	return refused.Statements
}

// wantSound: nothing that Up made is another's than the owner's, and verify has nothing against it.
func (c cluster) wantSound(conn *pgx.Conn) {
	c.t.Helper()
	if problems, err := migrate.Verify(c.t.Context(), conn); err != nil || len(problems) > 0 {
		c.t.Errorf("migrate verify: %v, %v", problems, err)
	}
	if got := c.column(conn, `select "check" || ': ' || detail from tidemark.verify() where status = 'fail'`); len(got) > 0 {
		c.t.Errorf("verify: %q", got)
	}
	if report := c.up(conn); len(report.Roles) > 0 || len(report.Applied) > 0 || report.Recreated > 0 {
		c.t.Errorf("a second Up was not a no-op: %+v", report)
	}
}

// SE5: each way an installation begins, on one cluster: the prefixes keep them apart.
func TestSetupWays(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	hasSet := c.column(c.dba, `select (current_setting('server_version_num')::int >= 160000)::text`)[0] == "true"
	run := func(dba *pgx.Conn, statements []string) {
		t.Helper()
		for range 2 { // they can be run again
			for _, statement := range statements {
				if !strings.HasPrefix(statement, "create role ") {
					c.exec(dba, statement)
				} else if len(c.column(dba, `select 'x' where to_regrole('`+strings.Fields(statement)[2]+`') is not null`)) == 0 {
					c.exec(dba, statement)
				}
			}
		}
	}

	t.Run("a superuser", func(t *testing.T) {
		c := cluster{t, c.server, c.dba}
		_, root := c.database("a", "root", "superuser", "")
		report := c.up(root, migrate.RolePrefix("a_"))
		if len(report.Warnings) > 0 {
			t.Errorf("warnings: %q", report.Warnings)
		}
		c.readme(root)
		c.wantSound(root)
	})

	t.Run("CREATEROLE and CREATE", func(t *testing.T) {
		c := cluster{t, c.server, c.dba}
		_, bea := c.database("b", "bea", "createrole", "grant create on database b to bea; grant create on schema public to bea")
		report := c.up(bea, migrate.RolePrefix("b_"))
		// On 15 she may grant what she has not; from 16 on she may not, and is told.
		if told := slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "grant pg_read_all_stats to b_tidemark_owner;") }); told != hasSet {
			t.Errorf("warnings %q", report.Warnings)
		}
		stats := c.column(bea, `select status || ' ' || hint from tidemark.verify() where "check" = 'statistics of other sessions'`)
		if want := "warn As superuser: grant pg_read_all_stats to b_tidemark_owner;"; hasSet && stats[0] != want || !hasSet && stats[0] != "ok " {
			t.Errorf("verify: %q", stats)
		}
		c.readme(bea)
		c.wantSound(bea)
	})

	t.Run("roles and grants made by a DBA", func(t *testing.T) {
		c := cluster{t, c.server, c.dba}
		dba, cleo := c.database("c", "cleo", "", "grant create on schema public to cleo")
		steps, err := migrate.Roles(t.Context(), dba, "cleo", migrate.RolePrefix("c_"))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, s := range steps {
			all = append(all, s.SQL)
		}
		run(dba, all)
		report := c.up(cleo, migrate.RolePrefix("c_"))
		if len(report.Roles) > 0 || len(report.Warnings) > 0 {
			t.Errorf("there was nothing to do about roles: %+v", report)
		}
		c.readme(cleo)
		c.wantSound(cleo)
	})

	t.Run("roles made by hand, and the owner's right alone", func(t *testing.T) {
		c := cluster{t, c.server, c.dba}
		_, dora := c.database("d", "dora", "", `create role d_tidemark_owner nologin; create role d_tidemark_admin nologin; create role d_tidemark_executor nologin;
			create role d_tidemark_emitter nologin; create role d_tidemark_reader nologin;
			grant d_tidemark_reader, d_tidemark_emitter, d_tidemark_executor to d_tidemark_admin;
			grant d_tidemark_owner to dora; grant create on database d to dora; grant create on schema public to dora`)
		report := c.up(dora, migrate.RolePrefix("d_"))
		if !slices.ContainsFunc(report.Warnings, func(w string) bool {
			return strings.HasPrefix(w, "dora can install, and not operate; ") && strings.Contains(w, "grant d_tidemark_admin to dora")
		}) {
			t.Errorf("warnings %q", report.Warnings)
		}
		// The owner's members may do what the admins may.
		c.readme(dora)
		c.wantSound(dora)
	})

	t.Run("no roles and no right to make them", func(t *testing.T) {
		c := cluster{t, c.server, c.dba}
		dba, eve := c.database("e", "eve", "", "grant create on schema public to eve")
		statements := c.refused(eve, migrate.RolePrefix("e_"))
		if len(statements) != 10 {
			t.Errorf("%d statements: %q", len(statements), statements)
		}
		run(dba, statements)
		c.up(eve, migrate.RolePrefix("e_"))
		c.readme(eve)
		c.wantSound(eve)
	})

	t.Run("a second one with CREATEROLE", func(t *testing.T) {
		c := cluster{t, c.server, c.dba}
		_, fay := c.database("f", "fay", "createrole", "grant create on database f to fay")
		c.up(fay, migrate.RolePrefix("f_"))
		dba, flo := c.database("f2", "flo", "createrole", "grant create on database f2 to flo; grant create on schema public to flo")
		if hasSet {
			statements := c.refused(flo, migrate.RolePrefix("f_"))
			want := []string{"grant f_tidemark_owner to flo with inherit true, set true", "grant f_tidemark_admin to flo with inherit true, set true", "grant pg_read_all_stats to f_tidemark_owner"}
			if !slices.Equal(statements, want) {
				t.Errorf("%q, want %q", statements, want)
			}
			run(dba, statements)
		}
		report := c.up(flo, migrate.RolePrefix("f_"))
		if !slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "tidemark_… in f too") }) {
			t.Errorf("warnings %q", report.Warnings)
		}
		c.readme(flo)
		c.wantSound(flo)
		if got := c.column(flo, `select status || ' ' || detail from tidemark.verify() where "check" = 'roles'`); len(got) != 1 || !strings.HasPrefix(got[0], "warn ") || !strings.Contains(got[0], " f") {
			t.Errorf("verify: %q", got)
		}
	})

	t.Run("no right to CREATE", func(t *testing.T) {
		c := cluster{t, c.server, c.dba}
		_, gia := c.database("g", "gia", "createrole", "")
		if statements := c.refused(gia, migrate.RolePrefix("g_")); !slices.Contains(statements, "grant create on database g to gia") {
			t.Errorf("%q", statements)
		}
	})

	t.Run("an upgrade by a stranger", func(t *testing.T) {
		c := cluster{t, c.server, c.dba}
		dba, hal := c.database("h", "hal", "createrole", "grant create on database h to hal")
		c.up(dba, migrate.RolePrefix("h_"))
		c.exec(dba, `update tidemark.code set checksum = 'old' where object = 'emit'`)
		if hasSet {
			run(dba, c.refused(hal))
		}
		if report := c.up(hal); report.Recreated == 0 {
			t.Errorf("%+v", report)
		}
	})

	t.Run("another prefix than the installed one", func(t *testing.T) {
		c := cluster{t, c.server, c.dba}
		dba, _ := c.database("i", "ida", "", "")
		c.up(dba, migrate.RolePrefix("i_"))
		for _, other := range []string{"", "j_"} {
			if _, err := migrate.Up(t.Context(), dba, migrate.RolePrefix(other)); err == nil || !strings.Contains(err.Error(), `was installed with "i_"`) {
				t.Errorf("prefix %q: %v", other, err)
			}
		}
		for _, bad := range []string{"Shop_", "1_", "a-b", "pg_x", strings.Repeat("a", 47), `x"; drop role y; --`} {
			if _, err := migrate.Up(t.Context(), dba, migrate.RolePrefix(bad)); err == nil || !strings.Contains(err.Error(), "must be lower-case letters") {
				t.Errorf("prefix %q: %v", bad, err)
			}
		}
		c.exec(dba, "create database i2")
		if report := c.up(c.connect("postgres", "i2"), migrate.RolePrefix(strings.Repeat("a", 46))); len(report.Applied) == 0 {
			t.Errorf("%+v", report)
		}
	})

	t.Run("a schema of somebody else's", func(t *testing.T) {
		c := cluster{t, c.server, c.dba}
		_, kim := c.database("k", "kim", "createrole", "alter database k owner to kim")
		c.exec(kim, "create schema tidemark")
		if _, err := migrate.Up(t.Context(), kim); err == nil || !strings.Contains(err.Error(), "the schema tidemark belongs to kim") {
			t.Errorf("%v", err)
		}
	})
}

// Installers of different databases make the same roles at once.
func TestSetupAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	errs := make(chan error)
	const n = 4
	for i := range n {
		name := fmt.Sprintf("x%d", i/2) // two for each database
		if i%2 == 0 {
			c.exec(c.dba, "create database "+name)
		}
		conn := c.connect("postgres", name)
		go func() {
			_, err := migrate.Up(t.Context(), conn)
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for i := range n / 2 {
		c.wantSound(c.connect("postgres", fmt.Sprintf("x%d", i)))
	}
}

// SE5: with a prefix, a right in one database is none in another of the cluster.
func TestPrefixBindsRightsToOneDatabase(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	inA, _ := c.database("a", "ann", "", "")
	inB, _ := c.database("b", "bob", "", "")
	if report := c.up(inA, migrate.RolePrefix("a_")); len(report.Warnings) > 0 {
		t.Errorf("%q", report.Warnings)
	}
	if report := c.up(inB, migrate.RolePrefix("b_")); len(report.Warnings) > 0 {
		t.Errorf("the roles are not shared: %q", report.Warnings)
	}
	for prefix, dba := range map[string]*pgx.Conn{"a_": inA, "b_": inB} {
		if got, err := migrate.InstalledPrefix(t.Context(), dba); err != nil || got != prefix {
			t.Errorf("prefix %q, %v", got, err)
		}
		if got := c.column(dba, `select detail from tidemark.verify() where "check" = 'roles'`); !slices.Equal(got, []string{""}) {
			t.Errorf("%q", got)
		}
		c.exec(dba, `select tidemark.gate_set('routes.enabled', true)`)
	}
	c.exec(inA, `grant a_tidemark_admin, a_tidemark_owner to ann`)

	ann := c.connect("ann", "b")
	for _, sql := range []string{
		`select tidemark.gate_set('routes.enabled', false)`, `update tidemark.setting set value = 'false'`, `select * from tidemark.setting`,
		`select tidemark.emit('system', 'finding_opened')`, `select tidemark.route_worker_run()`, `select tidemark.maintain()`, `select payload from tidemark.outbox`,
		`set role b_tidemark_reader`, `set role b_tidemark_owner`, `create table tidemark.mine (n int)`, `do $$ begin lock table tidemark.setting in access share mode; end $$`,
	} {
		if _, err := ann.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	ann = c.connect("ann", "a")
	c.exec(ann, `select tidemark.gate_set('routes.enabled', false)`)
	const gate = `select value from tidemark.setting where key = 'routes.enabled'`
	if a, b := c.column(inA, gate)[0], c.column(inB, gate)[0]; a != "false" || b != "true" {
		t.Errorf("the gate of a is %s, of b %s", a, b)
	}

	// No name of a role is left out, in no body and no grant.
	const definitions = `select replace(pg_get_functiondef(p.oid) || coalesce(array_to_string(p.proacl, ' '), ''), $1, '')
		from pg_proc p where p.pronamespace = 'tidemark'::regnamespace order by p.proname`
	bare := func(conn *pgx.Conn, prefix string) []string {
		return c.column(conn, strings.ReplaceAll(definitions, "$1", "'"+prefix+"'"))
	}
	a, b := bare(inA, "a_tidemark"), bare(inB, "b_tidemark")
	if !slices.Equal(a, b) {
		t.Error("functions differ by more than the prefix")
	}
	for _, definition := range a {
		if named := regexp.MustCompile(`tidemark_(owner|admin|executor|emitter|reader)`).FindString(definition); named != "" {
			t.Errorf("%s is named in %s", named, definition)
		}
	}
}

// What the default means, and that it is said: roles belong to the cluster.
func TestSharedRightsAreTold(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	inA, _ := c.database("a", "ann", "", "")
	inB, _ := c.database("b", "bob", "", "")
	if report := c.up(inA); len(report.Warnings) > 0 {
		t.Errorf("the first one shares with nobody: %q", report.Warnings)
	}
	if report := c.up(inB); len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "in a too") || !strings.Contains(report.Warnings[0], "--role-prefix") {
		t.Errorf("%q", report.Warnings)
	}
	for other, dba := range map[string]*pgx.Conn{"b": inA, "a": inB} {
		if got := c.column(dba, `select status || ' ' || detail from tidemark.verify() where "check" = 'roles'`); !slices.Equal(got, []string{"warn a right here is one in " + other}) {
			t.Errorf("%q", got)
		}
	}
	c.exec(inB, `select tidemark.gate_set('routes.enabled', true); revoke connect on database b from public`)
	c.exec(inA, `grant tidemark_admin to ann; grant tidemark_admin to bob; grant connect on database b to bob`)
	// docs/roles.md: with shared roles, CONNECT is what binds a login to a database.
	address := strings.Replace(c.server.URL("b"), "postgres@", "ann@", 1)
	if conn, err := pgx.Connect(t.Context(), address); err == nil {
		_ = conn.Close(t.Context())
		t.Error("ann may connect to b")
	}
	c.exec(c.connect("bob", "b"), `select tidemark.gate_set('routes.enabled', false)`)
	if got := c.column(inB, `select value from tidemark.setting where key = 'routes.enabled'`); !slices.Equal(got, []string{"false"}) {
		t.Errorf("%q", got)
	}
}
