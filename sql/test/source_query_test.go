package test

// The one statement that is generated for an application's table: whatever the names, types, filter, shards and page size,
// it reads each row once and in order, by one range of an index.

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// names that a table or column may have, harmful ones included.
var names = []string{
	"births", "Births", "with space", `qu"ote`, "select", "order", "ts", "id", "r", "e", "fits", "fresh", "takes", "late", "pos", "xid", "g", "t", "p",
	"l", "f", "b", "n", "at", "x", "span", "hole", "%s", "%1$s", "$1", "ünicode", `x"; drop table taken; --`, "x'; drop table taken; --", `\`, "e.id", "null",
}

// A shape of a table: how its ids and timestamps are, and how they are made from numbers.
type shape struct {
	idType, id string // id: of a number n
	collate    string
}

var shapes = []shape{
	{"smallint", "n", ""},
	{"integer", "n", ""},
	{"bigint", "n * 3000000000", ""},
	{"uuid", "md5(n::text)::uuid", ""},
	// "C" and the locale disagree about these: B < a, a_c < ab.
	{"text", "chr(65 + n % 2 * 32 + n % 20) || repeat('_', n % 3) || n", ` collate "en-US-x-icu"`},
	{"text", "md5(n::text)", ""},
	{"character varying(40)", "chr(65 + n % 2 * 32 + n % 20) || '-' || n", ` collate "en-US-x-icu"`},
	{"numeric", "n / 7.0", ""},
	{"numeric(20, 3)", "n - 20", ""},
}

// CU3, CU4, CU5: a table of any shape and size, tailed in pages of any size by any number of shards.
func TestSourcePagesCoverEachRowOnce(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tailing{open(t, db, "worker")}
	s.exec(`create table taken (at bigint generated always as identity primary key, row jsonb not null);
create function take(rows anyarray) returns void language sql as $$
    insert into taken (row) select to_jsonb(rows[i]) from generate_subscripts(rows, 1) i order by i $$;`)
	number := 0
	rapid.Check(t, func(r *rapid.T) {
		if number++; number > 15 && !t.Failed() {
			return // each takes its time
		}
		draw := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 7, 7, rapid.ID).Draw(r, "names")
		schema, table, id, ts, key, group := draw[0], draw[1], draw[2], draw[3], draw[4], draw[5]
		quoted := func(name string) string { return pgx.Identifier{name}.Sanitize() }
		rel := pgx.Identifier{"s" + schema, table}.Sanitize()
		sh := rapid.SampledFrom(shapes).Draw(r, "shape")
		safety := rapid.SampledFrom([]string{"clock", "declared", "declared"}).Draw(r, "safety")
		zone := rapid.SampledFrom([]string{"", "UTC", "Asia/Kathmandu"}).Draw(r, "zone")
		tsType := map[bool]string{true: "timestamp with time zone", false: "timestamp without time zone"}[zone == ""]
		rows := rapid.IntRange(0, 40).Draw(r, "rows")
		moments := rapid.IntRange(1, 9).Draw(r, "moments")
		shards := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(r, "shards")
		page := max(1, rows/rapid.IntRange(1, 5).Draw(r, "pages")+rapid.IntRange(-1, 1).Draw(r, "and"))
		filter := rapid.SampledFrom([]string{"", quoted(key) + " % 3 <> 1", quoted(key) + " is null or " + quoted(group) + " <> '$6 %s'", "null"}).Draw(r, "filter")
		unusable := safety == "declared" && rapid.Bool().Draw(r, "unusable timestamps")
		byKey := rapid.Bool().Draw(r, "keyed")

		s.exec("drop schema if exists " + quoted("s"+schema) + " cascade; truncate taken; create schema " + quoted("s"+schema))
		at := map[bool]string{true: "not null default clock_timestamp()", false: "not null default (clock_timestamp() at time zone '" + zone + "')"}[zone == ""]
		if safety == "declared" {
			at = ""
		}
		s.exec(fmt.Sprintf(`create table %s (%s %s%s primary key, %s %s %s, %s integer, %s text)`, rel, quoted(id), sh.idType, sh.collate, quoted(ts), tsType, at, quoted(key), quoted(group)))
		s.exec(fmt.Sprintf(`create index on %s (%s, %s%s)`, rel, quoted(ts), quoted(id), map[bool]string{true: ` collate "C"`, false: ""}[sh.collate != ""]))
		when := fmt.Sprintf("timestamp '2026-03-01 12:00' + n %% %d * interval '1 microsecond'", moments)
		if unusable {
			when = fmt.Sprintf("case n %% 11 when 3 then null when 4 then 'infinity' when 5 then '-infinity' else %s end", when)
		}
		s.exec(fmt.Sprintf(`insert into %s select %s, (%s)::%s, nullif(n %% 5, 2), 'g' || n %% 4 from generate_series(1, %d) n order by random()`, rel, sh.id, when, tsType, rows))

		definition, err := json.Marshal(map[string]any{
			"schema_name": "s" + schema, "table_name": table, "id_column": id, "timestamp_column": ts, "safety": safety, "time_zone": orNil(zone), "filter": orNil(filter),
			"key_columns": map[bool][]string{true: {key, group}, false: {}}[byKey], "group_key": []string{group}, "margin": "1 microsecond",
		})
		if err != nil {
			r.Fatal(err)
		}
		source := fmt.Sprintf("s%d", number)
		exec := func(sql string, args ...any) {
			if _, err := s.conn.Exec(context.Background(), sql, args...); err != nil {
				r.Fatalf("%s: %v", sql, err)
			}
		}
		exec(`select tidemark.source_set($1, $2, 'a test')`, source, string(definition))
		exec(`select tidemark.worker_set($1, jsonb_build_object('source', 'table', 'handler', 'sql', 'handler_ref', 'public.take', 'shards', $2::int), 'a test')`, source, shards)
		exec(`select tidemark.gate_set('routes.enabled', true), tidemark.gate_set($1, true)`, "worker."+source+".enabled")
		exec(`select tidemark.worker_source_add($1, $1, 'a test')`, source)

		for n := range shards {
			for more, passes := true, 0; more; passes++ {
				var text string
				if err := s.conn.QueryRow(context.Background(), `select tidemark.worker_run($1, $1, $2, $3)::text`, source, n, page).Scan(&text); err != nil {
					r.Fatal(err)
				}
				var got run
				if err := json.Unmarshal([]byte(text), &got); err != nil {
					r.Fatal(err)
				}
				if got.Status != "ran" || got.Failed > 0 || got.Rows > page || passes > 400 {
					r.Fatalf("after %d passes: %s", passes, text)
				}
				more = got.More
			}
		}
		if filter == "" {
			filter = "true"
		}
		var lost, doubled, others, unordered int
		err = s.conn.QueryRow(context.Background(), fmt.Sprintf(`
with wanted as (select q.%[1]s::text as id, q.%[2]s as at, row_number() over (order by q.%[2]s, q.%[1]s%[5]s) as n from %[3]s q where (%[4]s)),
     got as (select row ->> $1 as id, at as n from taken),
     ordered as (select g.n as got, w.n as wanted from got g join wanted w on w.id = g.id where isfinite(w.at))
select (select count(*) from wanted w where not exists (select from got g where g.id = w.id)),
       (select count(*) - count(distinct id) from got), (select count(*) from got g where not exists (select from wanted w where w.id = g.id)),
       (select count(*) from (select wanted < lag(wanted) over (order by got) as back from ordered) o where back)`,
			quoted(id), quoted(ts), rel, filter, map[bool]string{true: ` collate "C"`, false: ""}[sh.collate != ""]), id).Scan(&lost, &doubled, &others, &unordered)
		if err != nil {
			r.Fatal(err)
		}
		if shards > 1 {
			unordered = 0
		}
		if lost+doubled+others+unordered > 0 {
			r.Fatalf("%d lost, %d doubled, %d that the filter excludes, %d out of order", lost, doubled, others, unordered)
		}
	})
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// The same for integer ids of a sequence, in any order of the timestamps: by the number alone.
func TestSourcePagesOfASequence(t *testing.T) {
	t.Parallel()
	for _, idType := range []string{"smallint", "integer", "bigint"} {
		for _, page := range []int{1, 3, 10, 49} {
			t.Run(fmt.Sprintf("%s by %d", idType, page), func(t *testing.T) {
				t.Parallel()
				db := tidemarktest.NewDB(t)
				s := tailing{open(t, db, "worker")}
				s.exec(fmt.Sprintf(births, idType+" generated always as identity", ""))
				s.source("births", `{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "safety": "sequence", "filter": "name <> 'x'"}`)
				s.worker("w", `{"handler": "sql", "handler_ref": "public.take", "shards": 2}`)
				s.exec(`insert into births (born_at, name) select now() - n * interval '1 s', case n % 5 when 0 then 'x' else 'y' end from generate_series(1, 50) n; delete from births where id % 7 = 0`)
				s.add("w")
				s.drain("births", 0, page)
				s.exec(`insert into births (name) select case n % 5 when 0 then 'x' else 'y' end from generate_series(1, 50) n`)
				s.drain("births", 1, page)
				s.drain("births", 0, page)
				s.want(`select count(*) from births b where name = 'y' and not exists (select from taken t where t.id = b.id::text)`, "0")
				s.want(`select count(*) - count(distinct id), count(*) filter (where row ->> 'name' = 'x') from taken`, "0 0")
			})
		}
	}
}

// What is in a name stays a name.
func TestSourceNamesAreNotCode(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tailing{open(t, db, "worker")}
	s.exec(`create table taken (id text)`)
	for i, name := range []string{`births; drop table taken`, `births" where true; drop table taken; --`, `pg_catalog.pg_class`, `'`} {
		for _, column := range []string{"id_column", "timestamp_column", "table_name", "schema_name", "time_zone"} {
			definition := map[string]string{"schema_name": "public", "table_name": "taken", "id_column": "id", "timestamp_column": "id", "safety": "declared"}
			definition[column] = name
			text, _ := json.Marshal(definition)
			_, err := s.conn.Exec(context.Background(), `select tidemark.source_set($1, $2)`, fmt.Sprintf("s%d", i), string(text))
			if code(err) != "TM005" {
				t.Errorf("%s = %s: %v, want TM005", column, name, err)
			}
		}
	}
	s.want(`select count(*) from taken`, "0")
	s.exec(`create table rows (id bigint generated always as identity primary key, tidemark_row text)`)
	if _, err := s.conn.Exec(context.Background(), `select tidemark.source_set('s', '{"table": "public.rows", "id_column": "id", "safety": "sequence"}')`); code(err) != "TM005" {
		t.Errorf("%v, want TM005: the handler would be given the column for the row", err)
	}
}

var scan = regexp.MustCompile(`Index(?: Only)? Scan using (\w+) .*actual rows=(\d+)`)

// CU4: a page is one range of one index, with a rare filter and with either kind of plan: it is bounded by how many
// rows it examines, not by how many match.
func TestSourcePageIsOneIndexRange(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tailing{open(t, db, "worker")}
	s.exec(fmt.Sprintf(births, "bigint generated always as identity", "not null default clock_timestamp()"))
	s.exec(`create table texts (id text collate "en-US-x-icu" primary key, born_at timestamp not null default (now() at time zone 'UTC'), name text);
create index texts_at on texts (born_at, id collate "C");
insert into births (born_at, name) select timestamptz '2026-03-01' + n / 10 * interval '1 s', 'n' || n % 10000 from generate_series(1, 50000) n;
insert into texts (id, born_at, name) select md5(n::text), timestamp '2026-03-01' + n / 10 * interval '1 s', 'n' || n % 10000 from generate_series(1, 50000) n;
analyze births, texts`)
	s.source("clock", `{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "safety": "clock", "filter": "name = 'n17'", "sweep_window": "1 hour"}`)
	s.source("text", `{"table": "public.texts", "id_column": "id", "timestamp_column": "born_at", "time_zone": "UTC", "safety": "clock", "filter": "name = 'n17'", "sweep_window": "1 hour"}`)
	s.source("sequence", `{"table": "public.births", "id_column": "id", "safety": "sequence", "filter": "name = 'n17'"}`)

	const types = "(timestamptz, text, timestamptz, integer, text[], integer, bigint, int8multirange, timestamptz, text, integer, bigint)"
	for _, c := range []struct{ source, step, from, table, index, columns string }{
		{"clock", "forward", "'40000'", "births", "births_at", "born_at id"},
		{"clock", "sweep", "'40000'", "births", "births_at", "born_at id"},
		// (A page by id alone is planned for its values only: $2 is null at its beginning.)
		{"clock", "null", "'40000'", "births", "births_at", "born_at id"},
		{"clock", "infinity", "'40000'", "births", "births_at", "born_at id"},
		{"text", "forward", "'c'", "texts", "texts_at", "born_at id"},
		{"text", "sweep", "'c'", "texts", "texts_at", "born_at id"},
		{"sequence", "forward", "'40000'", "births", "births_pkey", "id"},
	} {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			if mode == "force_generic_plan" && (c.step == "null" || c.step == "infinity") {
				continue
			}
			t.Run(c.source+" "+c.step+" "+mode, func(t *testing.T) {
				s := open(t, db, "explain")
				s.exec("set plan_cache_mode = " + mode)
				var query string
				err := s.conn.QueryRow(context.Background(), `select tidemark.source_query(s, 1, $2, 'ids') from tidemark.source s where source = $1`, c.source, c.step).Scan(&query)
				if err != nil {
					t.Fatal(err)
				}
				s.exec("prepare page " + types + " as " + query)
				rows, _ := s.conn.Query(context.Background(), fmt.Sprintf(`explain (analyze, costs off, timing off, summary off)
					execute page('2026-03-01 01:00', %[1]s, '2030-01-01', 1000, null, 0, 0, '{[10,20),[300,301)}', '2026-03-01 01:20', %[1]s, 1, 0)`, c.from))
				lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
				if err != nil {
					t.Fatal(err)
				}
				plan := strings.Join(lines, "\n")
				// A sort of the page, or of the numbers that were late, costs no more than these.
				for _, never := range []string{"Seq Scan on " + c.table, "Bitmap", "Filter: (name", "Incremental Sort"} {
					if strings.Contains(plan, never) {
						t.Errorf("%s:\n%s", never, plan)
					}
				}
				scans := 0
				for i, line := range lines {
					read := scan.FindStringSubmatch(line)
					if read == nil || read[1] != c.index {
						continue
					}
					scans++
					if n, _ := strconv.Atoi(read[2]); n > 1000 || n == 0 && c.step != "null" && c.step != "infinity" {
						t.Errorf("%d rows of a page of 1000:\n%s", n, plan)
					}
					if i+2 < len(lines) && strings.Contains(lines[i+2], "Filter:") && !strings.Contains(lines[i+2], "AT TIME ZONE") { // the hour that comes twice
						t.Errorf("more is read than the page:\n%s", plan)
					}
					for _, name := range strings.Fields(c.columns) {
						if i+1 == len(lines) || !strings.Contains(lines[i+1], "Index Cond:") || !strings.Contains(lines[i+1], name) {
							t.Errorf("the range is not on %s:\n%s", name, plan)
						}
					}
				}
				// PostgreSQL 18 does not look for nulls where there can be none.
				if scans == 0 && !(c.step == "null" && strings.Contains(plan, "One-Time Filter: false")) {
					t.Errorf("not by %s:\n%s", c.index, plan)
				}
			})
		}
	}
}

// A domain is reduced to its base type. "character" and "bit" by themselves are of length 1.
func TestSourceDomainsKeepTheirLength(t *testing.T) {
	t.Parallel()
	s := tailing{open(t, tidemarktest.NewDB(t), "worker")}
	s.exec(`create domain country as char(2); create domain flags as bit(3); create domain price as numeric(10, 2);
		create table places (id bigint generated always as identity primary key, c country, f flags, p price, at timestamptz not null default clock_timestamp());
		select tidemark.type_set('town', 'place')`)
	s.source("places", `{"table": "public.places", "id_column": "id", "timestamp_column": "at", "safety": "sequence", "key_columns": ["c"], "filter": "c <> 'FR'"}`)
	s.worker("w", `{"handler": "emit", "handler_ref": "town/place", "payload_columns": ["c", "f", "p"]}`)
	s.exec(`select tidemark.worker_source_add('w', 'places'), tidemark.gate_set('worker.w.enabled', true)`)
	s.exec(`insert into places (c, f, p) values ('DE', '101', 12.34), ('DK', '011', 5), ('FR', '111', 1)`)
	s.drain()
	s.want(`select key, payload ->> 'c', payload ->> 'f', payload ->> 'p' from tidemark.outbox order by seq`, "DE DE 101 12.34", "DK DK 011 5.00")
}
