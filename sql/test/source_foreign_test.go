package test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// attack is code of a table's owner that waits to be run by a role that reads the table.
type attack struct {
	// The columns beside the id and the timestamp, the type of the id, and more of the source and the worker.
	columns, id, source, worker string
	// What the owner does before the table becomes a source, and after.
	before, after string
	// Whether the worker reads on (else it is held).
	reads bool
}

// Every statement that is planned over a table evaluates constants in its expressions; casts, operators, checks and
// policies run where a statement names or reaches them.
var attacks = map[string]attack{
	"enum with a cast to json": {
		columns: "what e.kind", reads: true,
		before: `create type e.kind as enum ('a'); create function e.to_json(e.kind) returns json language plpgsql as $$ begin perform e.run(); return '1'; end $$;
			create cast (e.kind as json) with function e.to_json(e.kind)`,
	},
	"enum in an array, cast to json": {
		columns: "what e.kind[]", reads: true,
		before: `create type e.kind as enum ('a'); create function e.to_json(e.kind) returns json language plpgsql as $$ begin perform e.run(); return '1'; end $$;
			create cast (e.kind as json) with function e.to_json(e.kind)`,
	},
	"composite with a cast to json": {
		columns: "what e.pair", reads: true,
		before: `create type e.pair as (a int, b int); create function e.to_json(e.pair) returns json language plpgsql as $$ begin perform e.run(); return '1'; end $$;
			create cast (e.pair as json) with function e.to_json(e.pair)`,
	},
	"operator that fits better": {
		columns: "what text", id: "varchar(20)", reads: true,
		before: `create function public.evil_gt(varchar, varchar) returns boolean language plpgsql as $$ begin perform e.run(); return $1::text > $2::text; end $$;
			create function public.evil_eq(varchar, varchar) returns boolean language plpgsql as $$ begin perform e.run(); return $1::text = $2::text; end $$;
			create operator public.> (leftarg = varchar, rightarg = varchar, function = public.evil_gt);
			create operator public.= (leftarg = varchar, rightarg = varchar, function = public.evil_eq);
			create function public.jsonb_build_object(text, bigint, text, text) returns jsonb language plpgsql as $$ begin perform e.run(); return '{}'; end $$`,
	},
	"key with a cast to text": {
		columns: "what text", source: `, "key_columns": ["what"]`, worker: `, "shards": 2`, reads: true,
		after: `create type e.kind as enum ('a'); create function e.to_text(e.kind) returns text language plpgsql as $$ begin perform e.run(); return 'a'; end $$;
			create cast (e.kind as text) with function e.to_text(e.kind) as implicit; alter table e.t alter column what type e.kind using 'a'`,
	},
	"filter over a column that becomes another": {
		columns: "what text", source: `, "filter": "what like 'a%'"`, reads: true,
		after: `create type e.kind as enum ('a'); create function e.to_text(e.kind) returns text language plpgsql as $$ begin perform e.run(); return 'a'; end $$;
			create cast (e.kind as text) with function e.to_text(e.kind) as implicit; alter table e.t alter column what type e.kind using 'a'`,
	},
	"domain with a check": {
		columns: "what e.positive", reads: true,
		before: `create domain e.positive as integer check (e.run() > 0)`,
	},
	"index expression":      {columns: "what text", after: `create index on e.t ((e.evil(1)))`},
	"index predicate":       {columns: "what text", after: `create index on e.t (id) where e.evil(1) > 0`},
	"inlined function":      {columns: "what text", after: `create function e.sly(text) returns text language sql immutable as $$ select $1 || e.evil(1) $$; create index on e.t (e.sly(what))`},
	"operator in index":     {columns: "what text", after: `create function e.plus(integer, integer) returns integer language plpgsql immutable as $$ begin perform e.run(); return 1; end $$; create operator e.+ (leftarg = integer, rightarg = integer, function = e.plus); create index on e.t ((1 operator(e.+) 1))`},
	"statistics":            {columns: "what text", after: `create statistics e.s on (e.evil(1)), what from e.t`},
	"check of a child":      {columns: "what text", after: `create table e.child () inherits (e.t); alter table e.child add check (length(what) > e.evil(1) - 100)`},
	"before it is a source": {columns: "what text", before: `create index on e.t ((e.evil(1)))`},
	"policy":                {columns: "what text", after: `create policy p on e.t using (e.run() > 0); alter table e.t enable row level security, force row level security`},
	"policy before":         {columns: "what text", before: `insert into e.t values (99, 'infinity', 'a'); create policy p on e.t using (e.run() > 0); alter table e.t enable row level security, force row level security`},
}

// rolesOfATable are sessions in one database: of a superuser, of the owner of the schema e, of a role that runs workers, of one
// that operates. e.run() counts (in the sequence e.runs, which keeps its number when a transaction is taken back) the
// calls by another role than the owner.
type rolesOfATable struct{ super, owner, worker, operator tailing }

func foreign(t *testing.T) rolesOfATable {
	t.Helper()
	db := tidemarktest.NewDB(t)
	suffix := strings.TrimPrefix(db.Name, "tidemark_test_")
	eve, worker, operator := "tm_eve_"+suffix, "tm_runner_"+suffix, "tm_operator_"+suffix
	as := func(name string) tailing {
		s := tailing{open(t, db, name)}
		s.exec("set session authorization " + name)
		return s
	}
	super := tailing{open(t, db, "superuser")}
	super.exec(fmt.Sprintf(`create role %[1]s login; create role %[2]s login; create role %[3]s login;
		grant tidemark_executor, tidemark_reader to %[2]s; grant tidemark_admin to %[3]s;
		create schema e authorization %[1]s; grant create on schema public to %[1]s`, eve, worker, operator))
	t.Cleanup(func() {
		super.exec(fmt.Sprintf(`drop owned by %[1]s cascade; drop owned by %[2]s; drop owned by %[3]s;
			drop role %[1]s; drop role %[2]s; drop role %[3]s`, eve, worker, operator))
	})
	r := rolesOfATable{super, as(eve), as(worker), as(operator)}
	r.owner.exec(fmt.Sprintf(`grant usage on schema e to public; create sequence e.runs; grant all on sequence e.runs to public;
		create function e.run() returns integer language plpgsql as $$ begin
			if current_user <> '%s' then perform nextval('e.runs'); end if; return 1; end $$;
		create function e.evil(integer) returns integer language plpgsql immutable as $$ begin perform e.run(); return 1; end $$`, eve))
	return r
}

// The owner of a table has no right in Tidemark. The operator makes it a source, and a worker reads it, as roles that
// may do much more: her code never runs as one of them, whatever she does to her table, before or after.
func TestForeignCodeNeverRuns(t *testing.T) {
	t.Parallel()
	for name, a := range attacks {
		for _, handler := range []string{"emit", "sql"} {
			t.Run(name+" "+handler, func(t *testing.T) {
				t.Parallel()
				r := foreign(t)
				super, owner, clerk := r.super, r.owner, r.operator
				id := a.id
				if id == "" {
					id = "bigint"
				}
				table := fmt.Sprintf(`create table e.t (id %s primary key, born_at timestamptz not null, %s); create index on e.t (born_at, id);
					grant select on e.t to public`, id, a.columns)
				types, late := a.before, ""
				if strings.Contains(a.before, "e.t ") {
					types, late = "", a.before
				}
				owner.exec(types)
				owner.exec(table)
				owner.exec(late)
				value := map[string]string{"what e.kind[]": "'{a}'", "what e.pair": "'(1,2)'", "what e.positive": "1"}[a.columns]
				if value == "" {
					value = "'a'"
				}
				insert := `insert into e.t select n, now() - interval '1 hour', ` + value + ` from generate_series(%d, %d) n`
				owner.exec(fmt.Sprintf(insert, 1, 5))

				clerk.exec(`select tidemark.stage_set('live', 'a test'); select tidemark.domain_set('town'), tidemark.type_set('town', 'birth')`)
				super.exec(`create schema app; create table app.taken (n integer); create function app.take(rows anyarray) returns void language sql as
					$$ insert into app.taken values (cardinality(rows)) $$; grant usage on schema app to public; grant all on app.taken to public`)
				look := func() {
					for _, s := range []tailing{clerk, super} {
						_ = s.session.try(`select tidemark.source_check(row(null, 'e', 't', 'id', null, null, 'born_at', null, null, null, null, null, 'declared')::tidemark.source)`)
						_ = s.session.try(`select * from tidemark.source_advise(jsonb_populate_record(null::tidemark.source, '{"schema_name": "e", "table_name": "t"}'))`)
						_ = s.session.try(`select * from tidemark.verify()`)
						_ = s.session.try(`select * from tidemark.capture_reconcile()`)
						_ = s.session.try(`select * from tidemark.queue_health`)
						_ = s.session.try(`select * from tidemark.maintain()`)
					}
				}
				look()
				definition := fmt.Sprintf(`{"table": "e.t", "id_column": "id", "timestamp_column": "born_at", "safety": "declared", "sweep_window": "1 day"%s}`, a.source)
				_, err := clerk.conn.Exec(context.Background(), `select tidemark.source_set('births', $1, 'a test')`, definition)
				defer super.want(`select is_called from e.runs`, "false")
				if late != "" {
					if code(err) != "TM005" {
						t.Errorf("source_set: %v, want TM005", err)
					}
					return
				} else if err != nil {
					t.Fatal(err)
				}
				clerk.worker("w", map[string]string{
					"emit": `{"handler": "emit", "handler_ref": "town/birth", "payload_columns": ["what"]`,
					"sql":  `{"handler": "sql", "handler_ref": "app.take"`,
				}[handler]+a.worker+"}")
				clerk.add("w")
				owner.exec(a.after)

				w := r.worker
				for shard := range 1 + strings.Count(a.worker, "shards") {
					for range 4 {
						if got, err := w.try("births", shard); err != nil || a.reads != (got.Status == "ran") {
							t.Errorf("%+v, %v, want it to read: %v", got, err, a.reads)
						}
					}
				}
				w.lines(`select n, why from tidemark.poll('me', '30 seconds', '{w}', '{births}', '{0}', array[null::bigint])`)
				look()
				if a.reads && handler == "emit" {
					super.want(`select count(*) from tidemark.outbox where payload ? 'what'`, "5")
				} else if a.reads {
					super.want(`select sum(n) from app.taken`, "5")
				}
			})
		}
	}
}

// The same where an operator compares captured tables with their events, and emits what is missing.
func TestForeignCodeNeverRunsInReconcile(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]string{
		"index":  `create index on e.t ((e.evil(1)))`,
		"policy": `create policy p on e.t using (e.run() > 0); alter table e.t enable row level security, force row level security`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := foreign(t)
			r.owner.exec(`create table e.t (id bigint primary key, what text); grant select on e.t to public`)
			r.operator.exec(`select tidemark.stage_set('live', 'a test'), tidemark.domain_set('town'), tidemark.type_set('town', 'birth');
				select tidemark.inbound_route_set('t', '{"source_schema": "e", "source_table": "t", "sql_event": "insert",
					"domain": "town", "type": "birth", "enabled": true, "dry_run": false}', 'a test');
				select tidemark.capture_reconcile()`)
			r.owner.exec(`insert into e.t values (1, 'a'); ` + attack)
			r.super.exec(`select tidemark.capture_attach('e.t', 'a test')`)
			for _, s := range []tailing{r.operator, r.super} {
				_ = s.session.try(`select * from tidemark.capture_reconcile()`)
			}
			if err := r.operator.session.try(`select tidemark.capture_gap_emit(g.id) from tidemark.capture_gap g`); err == nil || err.Code != "TM005" {
				t.Errorf("capture_gap_emit: %v, want TM005", err)
			}
			_ = r.super.session.try(`select tidemark.capture_gap_emit(g.id) from tidemark.capture_gap g`)
			r.super.want(`select is_called from e.runs`, "false")
		})
	}
}

// A row that failed and is gone by its next attempt is made again from its snapshot, but not of a domain: to make its
// value would run its check.
func TestForeignCodeNeverRunsInRetry(t *testing.T) {
	t.Parallel()
	r := foreign(t)
	r.owner.exec(`create domain e.positive as integer check (e.run() > 0);
		create table e.t (id bigint primary key, born_at timestamptz not null default now() - interval '1 hour', what e.positive);
		create index on e.t (born_at, id); insert into e.t values (1, default, 1); grant select on e.t to public`)
	r.super.exec(`create schema app; grant usage on schema app to public; create table app.mood (bad boolean); insert into app.mood values (true);
		grant select on app.mood to public; create function app.take(rows anyarray) returns void language plpgsql as
		$$ begin if (select bad from app.mood) then raise 'in this mood'; end if; end $$`)
	r.operator.source("births", `{"table": "e.t", "id_column": "id", "safety": "declared", "timestamp_column": "born_at", "sweep_window": "1 day"}`)
	r.operator.worker("w", `{"handler": "sql", "handler_ref": "app.take", "retry_policy": {"base_seconds": 0.001, "max_attempts": 2}}`)
	r.operator.add("w")
	if got := r.worker.once(); got.Failed != 1 {
		t.Errorf("%+v, want the row to fail", got)
	}
	r.super.exec(`update app.mood set bad = false`)
	r.owner.exec(`delete from e.t`)
	r.worker.retried()
	r.super.want(`select error_code from tidemark.dead_letter`, "TM005")
	r.super.want(`select is_called from e.runs`, "false")
}

// A table of River's name, whichever role made it, is read by every caller of queue_health.
func TestForeignCodeNeverRunsInQueues(t *testing.T) {
	t.Parallel()
	r := foreign(t)
	r.owner.exec(`create type e.at as (at timestamptz); create function e.to_time(e.at) returns timestamptz language plpgsql as
			$$ begin perform e.run(); return now(); end $$;
		create cast (e.at as timestamptz) with function e.to_time(e.at) as implicit;
		create table public.river_job (id bigint, state text, scheduled_at e.at, finalized_at timestamptz);
		insert into public.river_job values (1, 'available', row(now()), now()); grant select on public.river_job to public`)
	for _, s := range []tailing{r.super, r.operator, r.worker} {
		s.want(`select name, readable, waiting from tidemark.river_health()`, "public.river_job false -")
	}
	r.owner.exec(`alter table public.river_job drop column scheduled_at, add column scheduled_at timestamptz; create index on public.river_job ((e.evil(1)))`)
	for _, s := range []tailing{r.super, r.operator, r.worker} {
		s.want(`select name, readable, waiting from tidemark.river_health()`, "public.river_job false -")
		s.want(`select count(*) > 0 from tidemark.queue_health`, "true")
	}
	r.super.want(`select is_called from e.runs`, "false")
}
