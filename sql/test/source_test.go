package test

// What the tests of table sources have in common: an application with a table, a function that takes its rows, and
// a worker between the two.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A run is what worker_run returns.
type run struct {
	Status       string
	Detail       string
	Step         string
	Rows         int
	Taken        int
	Failed       int
	Late         int
	Coalesced    int
	Splits       int
	DeadLettered int `json:"dead_lettered"`
	Phase        string
	BlockedBy    string `json:"blocked_by"`
	WatermarkID  string `json:"watermark_id"`
	Result       json.RawMessage
	More         bool
	Runs         []run
	Worker       string
	Source       string
	Shard        int
	StartedAt    string `json:"started_at"`
	EndedAt      string `json:"ended_at"`
}

// births is the application: rows of a table, and a function that writes down what it is given. Nothing stops it from
// writing a row down twice.
const births = `
create table births (id %s primary key, born_at timestamptz %s, name text);
create index births_at on births (born_at, id);
create table taken (at bigint generated always as identity primary key, id text not null, row jsonb);
create function take(rows births[]) returns jsonb language plpgsql as $$
begin
    insert into taken (id, row) select rows[i].id::text, to_jsonb(rows[i]) from generate_subscripts(rows, 1) i order by i;
    return jsonb_build_object('taken', cardinality(rows));
end $$;`

// A tailing is a session that runs worker w.
type tailing struct{ session }

// tail prepares db: a table births, a source of the safety with the changes, a worker "w" that hands its rows to
// take, and open gates.
func tail(t *testing.T, db *tidemarktest.DB, safety, changes string) tailing {
	t.Helper()
	s := tailing{open(t, db, "worker")}
	id, at := "bigint generated always as identity", "not null default clock_timestamp()"
	if safety == "declared" {
		at = "" // anything can happen
	}
	s.exec(fmt.Sprintf(births, id, at))
	s.source("births", fmt.Sprintf(`{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "margin": "1 microsecond", "safety": %q}`, safety), changes)
	s.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
	s.add("w")
	return s
}

// source stores a source: the definition, and changes to it.
func (s tailing) source(name string, definition string, changes ...string) {
	s.t.Helper()
	for _, c := range append([]string{definition}, changes...) {
		if c != "" {
			definition = merge(s.t, definition, c)
		}
	}
	s.exec(`select tidemark.source_set($1, $2, 'a test')`, name, definition)
}

func (s tailing) worker(name string, definition string) {
	s.t.Helper()
	s.exec(`select tidemark.worker_set($1, $2, 'a test')`, name, merge(s.t, `{"source": "table", "retry_policy": {"base_seconds": 0.001, "max_attempts": 3}}`, definition))
	s.exec(`select tidemark.gate_set('routes.enabled', true), tidemark.gate_set($1, true)`, "worker."+name+".enabled")
}

func (s tailing) add(worker string) {
	s.t.Helper()
	s.exec(`select tidemark.worker_source_add($1, 'births', 'a test')`, worker)
}

func merge(t *testing.T, one, other string) string {
	t.Helper()
	all := map[string]json.RawMessage{}
	for _, text := range []string{one, other} {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// try is one pass of worker w.
func (s tailing) try(args ...any) (run, error) {
	s.t.Helper()
	for len(args) < 3 {
		args = append(args, nil)
	}
	var text string
	if err := s.conn.QueryRow(context.Background(), `select tidemark.worker_run('w', $1, $2, $3)::text`, args...).Scan(&text); err != nil {
		return run{}, err
	}
	var result run
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		s.t.Fatal(err)
	}
	return result, nil
}

// once is one pass, which must not fail.
func (s tailing) once(args ...any) run {
	s.t.Helper()
	result, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("%s: worker_run: %v", s.name, err)
	}
	return result
}

// drain runs passes while there is more to do and returns what they were, in one.
func (s tailing) drain(args ...any) run {
	s.t.Helper()
	all := s.once(args...)
	r := all
	for passes := 0; r.More; passes++ {
		if passes > 2000 {
			s.t.Fatalf("there is always more to do: %+v", r)
		}
		r = s.once(args...)
		r.Rows += all.Rows
		r.Taken += all.Taken
		r.Failed += all.Failed
		r.Late += all.Late
		r.Coalesced += all.Coalesced
		r.DeadLettered += all.DeadLettered
		all = r
	}
	return all
}

// sweep makes the next sweep due, and runs it.
func (s tailing) sweep() run {
	s.t.Helper()
	s.drain()
	s.exec(`update tidemark.worker_cursor set sweep = sweep - 'done_at' where worker = 'w' and not sweep ? 'next_xmin'`)
	return s.drain() // forward, and then its pages
}

// want compares what the query returns, a row a line, columns separated by spaces.
func (s tailing) want(sql string, want ...string) {
	s.t.Helper()
	got := s.lines(sql)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.t.Errorf("%s: %s\ngot:\n%s\nwant:\n%s", s.name, sql, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (s tailing) lines(sql string) []string {
	s.t.Helper()
	rows, err := s.conn.Query(context.Background(), `select (select string_agg(coalesce(v, '-'), ' ' order by n) from json_each_text(row_to_json(q)) with ordinality e (k, v, n)) from (`+sql+`) q`)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return got
}

// exact tells whether every row of births was taken once, and nothing else was.
func (s tailing) exact() {
	s.t.Helper()
	s.want(`select (select count(*) from births b where not exists (select from taken t where t.id = b.id::text)) as lost,
		(select count(*) - count(distinct id) from taken) as doubled`, "0 0")
}

// open findings, of cursors
const findings = `select kind, subject from tidemark.finding where closed_at is null order by kind, subject`

// code is the SQLSTATE of an error.
func code(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}
