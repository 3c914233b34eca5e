package test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/sql"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// These tests hold the catalog to the rules of the house.

// ours are the functions of the schema.
const ours = `pg_proc p where p.pronamespace = 'tidemark'::regnamespace`

// unpinned are the functions that may do without a search_path of their own, which would keep them from being
// inlined into the statement that calls them, or, of login and writer, cost each emit and capture more than their body. None is a security definer: a search_path that misleads one,
// misleads only the caller who set it.
var unpinned = []string{"as_is", "attempt_key", "cursor_edited", "cursor_name", "decide_few", "decide_groups", "emit_given", "error_shown", "event_head", "event_is_small", "event_json", "event_uuid", "event_uuid_time", "executor_id", "finding_kind", "is_transient", "login", "pattern_matches", "payload_bytes", "route_delivers", "route_fault", "route_fits", "route_matches", "route_outcome", "shard_of", "shut_domains", "target_is_inside", "target_is_known", "timeline", "unfinished", "uuid_time", "worker_routes", "writer"}

// SE1. pg_temp stands last: left out, it would be searched first for tables and types.
func TestFunctionsPinTheirSearchPath(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	s.wantRows(`select p.proname::text from `+ours+` and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false) order by p.proname collate "C"`, unpinned...)
	s.wantRows(`select p.proname::text || ' ' || l.lanname from pg_language l, `+ours+` and l.oid = p.prolang and (l.lanname <> 'sql' or p.prosecdef)
		and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false) order by 1`, "login plpgsql", "writer plpgsql")
}

// A planner switch adds 1e10 to the estimated cost of what it discourages; above a cost of 100,000 PostgreSQL compiles
// the statement. On default settings an empty pass took 0.8 s instead of 2 ms.
func TestPlannerSwitchesComeWithoutJIT(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	const compiled = `select p.proname::text from ` + ours + `
		and exists (select from unnest(p.proconfig) c where c like any (array['enable\_%', '%\_cost=%', '%collapse\_limit=%']))
		and not 'jit=off' = any (p.proconfig) order by 1`
	s.wantRows(compiled)
	s.begin() // and the query would see it
	s.exec(`alter function tidemark.settle reset jit; alter function tidemark.gate_set set random_page_cost = 1`)
	s.wantRows(compiled, "gate_set", "settle")
}

// A key must read the same for the trigger that writes its event, for the function made of it, and for those that look for
// its event: the settings that shape text stand in each of them, alike. PostgreSQL has no way to write them once.
func TestKeysReadTheSame(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	s.exec(`create table public.orders (id int primary key); select tidemark.type_set('shop', 'order.changed'),
		tidemark.inbound_route_set('orders', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "shop", "type": "order.changed"}')`)
	s.exec(`select tidemark.capture_make('orders')`)
	const settings = `array['DateStyle=ISO, YMD', 'IntervalStyle=postgres', 'TimeZone=UTC', 'bytea_output=hex', 'extra_float_digits=1']`
	shaped := `select p.proname::text from ` + ours + ` and (p.proconfig && ` + settings + ` or exists (
			select from unnest(p.proconfig) c where split_part(c, '=', 1) in (select split_part(s, '=', 1) from unnest(` + settings + `) s))
		or p.prosrc ~ '(part|one)\.key_text')`
	// Those of the configuration shape intervals, and history cuts days: no keys.
	shaped += ` and p.proname not in ('capture_sql', 'column_defaults', 'configuration', 'history')`
	s.wantRows(shaped+` order by p.proname collate "C"`, "capture_1", "capture_backfill_step", "capture_gap_emit", "capture_reconcile")
	s.wantRows(shaped + ` and not p.proconfig @> ` + settings)
}

// Nor is a view estimated so high that reading it compiles: with two functions in it that return sets, a look at the
// evidence of no event took half a second.
func TestViewsAreNotCompiled(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	views := column[string](s, `select c.oid::regclass::text from pg_class c where c.relnamespace = 'tidemark'::regnamespace and c.relkind = 'v'`)
	if len(views) == 0 {
		t.Fatal("there is no view: the query is wrong")
	}
	for _, view := range views {
		var plan []struct {
			Plan struct {
				Cost float64 `json:"Total Cost"`
			}
		}
		if err := json.Unmarshal([]byte(one[string](s, `explain (format json) select * from `+view)), &plan); err != nil {
			t.Fatal(err)
		}
		if limit := one[float64](s, `select current_setting('jit_above_cost')::float8`); plan[0].Plan.Cost >= limit {
			t.Errorf("%s: estimated cost %.0f, and above %.0f it is compiled", view, plan[0].Plan.Cost, limit)
		}
	}
}

// keywords look like functions and are none: the grammar resolves them to pg_catalog, unnest where it has several arrays. e is the alias of a row.
var keywords = []string{"and", "any", "array", "as", "bit", "case", "coalesce", "e", "else", "exists", "extract", "filter", "from", "greatest", "in", "least", "materialized", "not", "nullif", "operator", "or", "overlay", "row", "select", "substring", "then", "unnest", "values", "when", "where"}

var (
	quoted = regexp.MustCompile(`(?s)'(?:[^']|'')*'|--[^\n]*`)
	called = regexp.MustCompile(`(?i)([a-z_][a-z0-9_.]*)\s*\(`)
)

func TestUnpinnedFunctionsQualifyWhatTheyCall(t *testing.T) {
	t.Parallel()
	for _, name := range unpinned {
		_, body, _ := strings.Cut(codeFile(t, name), "as $$")
		body, _, _ = strings.Cut(body, "$$;")
		for _, call := range called.FindAllStringSubmatch(quoted.ReplaceAllString(body, "''"), -1) {
			if !strings.HasPrefix(call[1], "pg_catalog.") && !strings.HasPrefix(call[1], "tidemark.") && !slices.Contains(keywords, strings.ToLower(call[1])) {
				t.Errorf("%s calls %s without its schema", name, call[1])
			}
		}
	}
}

func codeFiles(t *testing.T) []sql.File {
	t.Helper()
	files, err := sql.Code(sql.Files)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// codeFile is the text of the file that makes a function or view.
func codeFile(t *testing.T, name string) string {
	t.Helper()
	for _, file := range codeFiles(t) {
		if file.Name() == name {
			return file.Text
		}
	}
	t.Fatalf("no file of code/ makes %s", name)
	return ""
}

// A statement is read whole: no line of the code or of a pack leaves the window. Migrations stay as they were released.
func TestLinesAreShort(t *testing.T) {
	t.Parallel()
	const most = 120
	for _, root := range []string{"../code", "../../packs"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".sql" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			n := 0
			for line := range strings.Lines(string(text)) {
				n++
				if got := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); got > most {
					t.Errorf("%s:%d has %d columns, and may have %d", path, n, got, most)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoOverloads(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	s.wantRows(`select p.proname::text from ` + ours + ` group by p.proname having count(*) > 1`)
}

// SE1. Types are left out: what PUBLIC may do with one is to name it in a table of its own.
func TestNothingIsGrantedToPublic(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	const granted = `
select p.oid::regprocedure::text from ` + ours + ` and has_function_privilege('public', p.oid, 'execute')
union all select c.oid::regclass::text from pg_class c where c.relnamespace = 'tidemark'::regnamespace
	and exists (select from aclexplode(c.relacl) a where a.grantee = 0)
union all select a.attrelid::regclass || '.' || a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
	where c.relnamespace = 'tidemark'::regnamespace and exists (select from aclexplode(a.attacl) x where x.grantee = 0)
union all select 'schema' where has_schema_privilege('public', 'tidemark', 'usage') or has_schema_privilege('public', 'tidemark', 'create')
union all select 'default privileges' from pg_default_acl where defaclnamespace = 'tidemark'::regnamespace
order by 1`
	s.wantRows(granted)
	s.begin() // and the query would see it
	s.exec(`grant usage on schema tidemark to public; grant execute on function tidemark.armed() to public; grant update (value) on tidemark.setting to public;
		grant select on tidemark.worker_health to public; grant select on sequence tidemark.outbox_seq_seq to public;
		create function tidemark.forgotten() returns int language sql as 'select 1'; alter default privileges in schema tidemark grant select on tables to public`)
	s.wantRows(granted, "default privileges", "schema", "tidemark.armed()", "tidemark.forgotten()", "tidemark.outbox_seq_seq", "tidemark.setting.value", "tidemark.worker_health")
}

// A role without login owns everything, and is no superuser.
func TestOwner(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	s.wantRows(`
select 'function ' || p.proname from ` + ours + ` and pg_get_userbyid(p.proowner) <> 'tidemark_owner'
union all select 'relation ' || c.relname from pg_class c where c.relnamespace = 'tidemark'::regnamespace and pg_get_userbyid(c.relowner) <> 'tidemark_owner'
union all select 'type ' || t.typname from pg_type t where t.typnamespace = 'tidemark'::regnamespace and pg_get_userbyid(t.typowner) <> 'tidemark_owner'
union all select 'schema' from pg_namespace n where n.nspname = 'tidemark' and pg_get_userbyid(n.nspowner) <> 'tidemark_owner'`)
	s.wantRows(`select rolname::text from pg_roles where rolname in ('tidemark_owner', 'tidemark_admin', 'tidemark_executor', 'tidemark_emitter', 'tidemark_reader')
		and (rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls)`)
}

func TestForeignKeysAreIndexed(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	const bare = `
select c.conrelid::regclass || ' ' || c.conname from pg_constraint c
where c.contype = 'f' and c.connamespace = 'tidemark'::regnamespace
  and not exists (select from pg_index i
	where i.indrelid = c.conrelid and i.indisvalid and (i.indkey::int2[])[0 : cardinality(c.conkey) - 1] @> c.conkey
	  -- A partial index serves where it leaves out nulls only.
	  and (i.indpred is null or pg_get_expr(i.indpred, i.indrelid) = (
		select format('(%I IS NOT NULL)', a.attname) from pg_attribute a where a.attrelid = c.conrelid and a.attnum = c.conkey[1])))`
	s.wantRows(bare)
	if one[int](s, `select count(*) from pg_constraint where contype = 'f' and connamespace = 'tidemark'::regnamespace`) == 0 {
		t.Error("there is no foreign key: the query is wrong")
	}
	s.begin()
	s.exec(`drop index tidemark.pending_due`)
	s.wantRows(bare, "tidemark.pending pending_route_id_fkey")
}

// Partitions are left out, and what belongs to a table that has a comment.
func TestEverythingHasAComment(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	const silent = `
select 'schema' where obj_description('tidemark'::regnamespace, 'pg_namespace') is null
union all select 'function ' || p.oid::regprocedure from ` + ours + ` and obj_description(p.oid, 'pg_proc') is null
union all select 'relation ' || c.oid::regclass from pg_class c
	where c.relnamespace = 'tidemark'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition and obj_description(c.oid, 'pg_class') is null
union all select 'column ' || c.oid::regclass || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
	where c.relnamespace = 'tidemark'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and col_description(c.oid, a.attnum) is null
union all select 'type ' || t.oid::regtype from pg_type t left join pg_class c on c.oid = t.typrelid
	where t.typnamespace = 'tidemark'::regnamespace and t.typelem = 0 and coalesce(c.relkind, 'c') = 'c' and obj_description(t.oid, 'pg_type') is null
union all select 'trigger ' || t.tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid
	where c.relnamespace = 'tidemark'::regnamespace and not t.tgisinternal and t.tgparentid = 0 and obj_description(t.oid, 'pg_trigger') is null
order by 1`
	s.wantRows(silent)
	s.begin()
	s.exec(`create table tidemark.a (n int); create type tidemark.b as enum ('x'); create function tidemark.c() returns int language sql as 'select 1';
		create view tidemark.d as select 1 as n; create trigger e before insert on tidemark.a for each row execute function tidemark.log_is_append_only()`)
	s.wantRows(silent, "column tidemark.a.n", "function tidemark.c()", "relation tidemark.a", "relation tidemark.d", "trigger e", "type tidemark.b")
}

// One file of code/ for each function, with its triggers, and each view, and the other way round.
func TestFilesAndObjectsCorrespond(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	var want []string
	for _, file := range codeFiles(t) {
		for i, made := range regexp.MustCompile(`(?m)^create or replace (function|view|trigger) (?:tidemark\.)?(\w+)`).FindAllStringSubmatch(file.Text, -1) {
			if i == 0 && made[2] != file.Name() || i > 0 && made[1] != "trigger" {
				t.Errorf("%s makes %s %s", file.Path, made[1], made[2])
			}
			want = append(want, made[1]+" "+made[2])
		}
	}
	slices.Sort(want)
	s.wantRows(`
select 'function ' || p.proname from `+ours+`
union all select 'view ' || c.relname from pg_class c where c.relnamespace = 'tidemark'::regnamespace and c.relkind in ('v', 'm')
union all select 'trigger ' || t.tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid
	where c.relnamespace = 'tidemark'::regnamespace and not t.tgisinternal and t.tgparentid = 0
order by 1`, want...)
}

// A migration that called a function would call whatever that has become by the time it runs.
func TestMigrationsCallNoCode(t *testing.T) {
	t.Parallel()
	functions := column[string](open(t, tidemarktest.NewDB(t), "catalog"), `select p.proname::text from `+ours)
	files, err := fs.Glob(sql.Files, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(sql.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range regexp.MustCompile(`tidemark\.(\w+)\s*\(`).FindAllStringSubmatch(quoted.ReplaceAllString(string(text), "''"), -1) {
			if slices.Contains(functions, call[1]) {
				t.Errorf("%s calls %s", file, call[0])
			}
		}
	}
}

// The files run again, on what is there, and with the bodies checked this time; nothing is different then.
func TestCodeAppliesAgain(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "catalog")
	before := schema(s)
	s.exec(`begin; set local role tidemark_owner; set local check_function_bodies = on`)
	for _, file := range codeFiles(t) {
		s.exec(file.Text)
	}
	s.commit()
	equal(t, "schema", schema(s), before)
	if problems, err := migrate.Verify(t.Context(), s.conn); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// The rule of the cursor rests on this: a session that kept numbers in reserve would use them out of order.
func TestLogTakesNumbersOneByOne(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	s.wantRows(`select concat_ws(' ', seqcache, seqincrement, seqstart, seqmin, seqcycle, seqtypid::regtype) from pg_sequence where seqrelid = 'tidemark.outbox_seq_seq'::regclass`, "1 1 1 1 f bigint")
	s.wantRows(`select attname || ' ' || attidentity::text from pg_attribute where attrelid = 'tidemark.outbox'::regclass and attidentity <> ''`, "seq a")
}

// EV1: what every emit pays for.
// A view is replaced by an upgrade, which may change no collation of its columns. A name among the arguments of a function
// makes its text one of collation "C". Columns that are names of objects have been of that one from the start.
func TestTextsOfViewsHaveTheDefaultCollation(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	s.wantRows(`select c.relname || '.' || a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid
		where c.relnamespace = 'tidemark'::regnamespace and c.relkind = 'v' and a.atttypid = 'text'::regtype and a.attcollation <> '"default"'::regcollation and a.attname not like '%\_name'
		order by 1`)
}

func TestLogHasTwoIndexes(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	for _, table := range []string{"outbox", "outbox_p0", "outbox_rest"} {
		s.wantRows(`select am.amname || ' ' || pg_get_indexdef(i.indexrelid, 1, false) from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am am on am.oid = c.relam
			where i.indrelid = 'tidemark.`+table+`'::regclass order by 1`, "brin created_at", "btree seq")
	}
}

// A page of the log is a range of its primary key, whatever the planner knows or believes to know: at first,
// with statistics of when it was empty, and with fresh ones.
func TestPageIsAnIndexRange(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select set_config(split_part(c.setting, '=', 1), split_part(c.setting, '=', 2), false) from pg_proc p cross join lateral unnest(p.proconfig) c (setting)
		where p.oid = 'tidemark.read_outbox(text, integer, tidemark.batch, integer)'::regprocedure and c.setting not like 'search_path=%'`)
	w.exec(`prepare page(integer, int8multirange, text, bigint, integer, integer, integer) as ` +
		pageStatement(t, `(?s)with now_ as materialized \(.*?\n\s+cross join now_ n;`, "batch_limit", "below", `read_outbox\.worker`, "mark", "ahead", `c\.shards`, `read_outbox\.shard`))
	w.exec(`prepare plain_page(bigint, integer, text) as ` +
		pageStatement(t, `(?s)select a\.groups, a\.events, 0, .*?cross join tidemark\.worker_routes\(read_outbox\.worker\) r;`, "mark", "ahead", `read_outbox\.worker`))
	fill := func() {
		for _, first := range []int{1, 1_000_000, 2_000_000, 3_000_000} {
			w.next(first)
			w.exec(`select tidemark.emit('test', 'tick', '{"n": 1}', key => n::text) from generate_series(1, 3000) n`)
		}
	}
	for _, state := range []struct {
		name    string
		arrange func()
		rows    int
	}{
		{"fresh", func() {}, 0},
		{"statistics of an empty log", func() { w.exec(`analyze tidemark.outbox`); fill() }, 100},
		{"good statistics", func() { w.exec(`analyze tidemark.outbox`) }, 100},
	} {
		state.arrange()
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			const page = `page(110, '{[10,13),[1000000,1000001),[900000,900001)}', 'default', 2000, 100, 1, 0)`
			for _, c := range []struct {
				execute, filter string
				late            int
			}{
				{page, "null", 4}, {page, `'{"n": 1}'`, 4}, {`plain_page(2000, 100, 'default')`, "null", 0},
			} {
				execute, late := c.execute, c.late
				w.exec(`update tidemark.outbound_route set payload_filter = ` + c.filter)
				w.exec(`set plan_cache_mode = ` + mode)
				text := one[string](w, `explain (analyze, timing off, format json) execute `+execute)
				var plans []struct{ Plan planNode }
				if err := json.Unmarshal([]byte(text), &plans); err != nil {
					t.Fatal(err)
				}
				rows := 0
				plans[0].Plan.check(func(problem string) { t.Errorf("%s, %s: %s\n%s", state.name, mode, problem, text) }, false, false, &rows)
				const ahead = 4 * 4 // a merge of four partitions looks at the first row of each, for each of four ranges
				want := min(state.rows, 1) * (state.rows + late)
				if rows > want+ahead || rows < want {
					t.Errorf("%s, %s, %s: %d rows of the log are read, want %d", state.name, mode, execute, rows, want)
				}
			}
		}
	}
}

type planNode struct {
	Type      string  `json:"Node Type"`
	Relation  string  `json:"Relation Name"`
	Condition string  `json:"Index Cond"`
	Rows      float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Plans     []planNode
}

// check wants each scan of the log to be a range of an index, and a limit between it and any sort.
func (p planNode) check(complain func(string), sorted, limited bool, rows *int) {
	switch p.Type {
	case "Limit":
		sorted, limited = false, true
	case "Sort", "Incremental Sort", "Aggregate", "Hash":
		sorted = true
	}
	if strings.HasPrefix(p.Relation, "outbox") {
		*rows += int(p.Rows * p.Loops)
		if !slices.Contains([]string{"Index Scan", "Index Only Scan"}, p.Type) || !strings.Contains(p.Condition, "seq >") {
			complain(fmt.Sprintf("%s on %s by %q", p.Type, p.Relation, p.Condition))
		}
		if sorted || !limited {
			complain(fmt.Sprintf("%s is read without a limit, or sorted before it", p.Relation))
		}
	}
	for _, inner := range p.Plans {
		inner.check(complain, sorted, limited, rows)
	}
}

// pageStatement is a statement of read_outbox that reads a page, its variables made parameters.
func pageStatement(t *testing.T, pattern string, parameters ...string) string {
	t.Helper()
	statement := regexp.MustCompile(pattern).FindString(codeFile(t, "read_outbox"))
	statement = regexp.MustCompile(`(?m)^\s*--.*$|\n\s*into b\..*`).ReplaceAllString(statement, "")
	for i, name := range parameters {
		word := regexp.MustCompile(`\b` + name + `\b`)
		if !word.MatchString(statement) {
			t.Fatalf("read_outbox has changed: the page does not use %s\n%s", name, statement)
		}
		statement = word.ReplaceAllLiteralString(statement, fmt.Sprint("$", i+1))
	}
	return statement
}

// EV4: a type whose stored schema is none, of before there was a check, can be disabled and enabled; a new schema is checked.
func TestTypeWithBadSchemaIsDisabled(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "s")
	s.exec(`alter table tidemark.event_type disable trigger event_type_schema`)
	s.exec(`select tidemark.type_set('app', 'old', '{"schema": {"required": "id"}}')`)
	s.exec(`alter table tidemark.event_type enable trigger event_type_schema`)
	s.exec(`select tidemark.type_set('app', 'old', '{"enabled": false}')`)
	s.wantRows(`select enabled::text from tidemark.event_type where domain = 'app' and type = 'old'`, "false")
	for _, schema := range []string{`{"required": "name"}`, `{"required": 1}`} {
		if err := s.try(`select tidemark.type_set('app', 'old', jsonb_build_object('schema', $1::jsonb))`, schema); err == nil || err.Code != "TM005" {
			t.Errorf("%s: %v, want TM005", schema, err)
		}
	}
}

// EV4: a pattern that Go's checker cannot compile would make each Go program refuse each event of the type. SQL refuses it, too.
func TestPatternsThatGoCannotCheck(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "s")
	for pattern, well := range map[string]bool{
		`^[A-Z]{2}-\d+$`: true, `(?i)abc`: true, `(?:ab)+`: true, `\(?=`: true, `\\d`: true, `(?P<name>a)`: true,
		`^(?=.*\d).+$`: false, `^(?!system).*$`: false, `(?<=a)b`: false, `(?<!a)b`: false, `(a)\1`: false, `(?>a+)b`: false, `\\(?=a)`: false,
	} {
		for _, schema := range []map[string]any{
			{"properties": map[string]any{"code": map[string]any{"pattern": pattern}}},
			{"properties": map[string]any{"list": map[string]any{"items": map[string]any{"pattern": pattern}}}},
			{"patternProperties": map[string]any{pattern: map[string]any{"type": "string"}}},
		} {
			text, err := json.Marshal(schema)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := payload.Compile(text); (err == nil) != well {
				t.Fatalf("Go: %s: %v", text, err)
			}
			refused := s.try(`select tidemark.type_set('app', 'code', jsonb_build_object('schema', $1::jsonb))`, string(text))
			if well != (refused == nil) || refused != nil && refused.Code != "TM005" {
				t.Errorf("%s: %v, want it to be taken: %v", text, refused, well)
			}
		}
	}
	s.exec(`select tidemark.type_set('app', 'code', '{"schema": {"properties": {"pattern": {"type": "string"}}}}')`)
}
