package test

import (
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A worker gets a source for all its shards, whatever changes beside it: no row belongs to a shard without a cursor.
func TestSourceIsAddedForEachShard(t *testing.T) {
	t.Parallel()
	const (
		adds   = `select tidemark.worker_source_add('v', 'births')`
		sets   = `select (tidemark.worker_set('v', '{"shards": 4}')).shards`
		shards = `select (select count(*) from tidemark.worker_cursor c where c.worker = 'v'), w.shards from tidemark.worker w where w.worker = 'v'`
	)
	run := func(name, changes string, script func(t *testing.T, s tailing, adder, operator session)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s := tail(t, db, "clock", changes)
			s.worker("v", `{"handler": "sql", "handler_ref": "public.take"}`)
			script(t, s, open(t, db, "adder"), open(t, db, "operator"))
		})
	}
	// late lets the add look at all, and sets the shards before it makes the cursors.
	late := func(s tailing, adder, operator session) (int, error) {
		s.begin()
		s.exec(`select from tidemark.source where source = 'births' for update`)
		added := later[int](adder, adds)
		s.waitsFor(adder)
		operator.exec(sets)
		s.rollback()
		return added()
	}
	run("set after the look", "", func(t *testing.T, s tailing, adder, operator session) {
		if n, err := late(s, adder, operator); n != 4 || err != nil {
			t.Errorf("%d, %v, want 4 cursors", n, err)
		}
		s.want(shards, "4 4")
	})
	run("set after the look, and the key has no text of its own", `{"key_columns": ["born_at"]}`, func(t *testing.T, s tailing, adder, operator session) {
		_, err := late(s, adder, operator)
		wantCode(t, err, "TM005")
		s.want(shards, "0 4")
	})
	run("set first", "", func(t *testing.T, s tailing, adder, operator session) {
		operator.begin()
		operator.exec(sets)
		added := later[int](adder, adds)
		operator.waitsFor(adder)
		operator.commit()
		if n, err := added(); n != 4 || err != nil {
			t.Errorf("%d, %v, want 4 cursors", n, err)
		}
		s.want(shards, "4 4")
	})
	run("added first", "", func(t *testing.T, s tailing, adder, operator session) {
		adder.begin()
		adder.exec(adds)
		set := later[int](operator, sets)
		adder.waitsFor(operator)
		adder.commit()
		_, err := set()
		wantCode(t, err, "TM005")
		s.want(shards, "1 1")
	})
	// As a file is applied: first the source, then its worker. The add has looked for the beginning of what the source was.
	run("beside a change of both", "", func(t *testing.T, s tailing, adder, operator session) {
		operator.begin()
		operator.exec(`select tidemark.source_set('births', '{"margin": "2 s"}')`)
		added := later[int](adder, adds)
		operator.waitsFor(adder)
		operator.exec(sets)
		operator.commit()
		_, err := added()
		wantCode(t, err, "40001")
		s.want(shards, "0 4")
		adder.exec(adds)
		s.want(shards, "4 4")
	})
}

// A change of a source that began before another was committed does not undo it.
func TestSourceSetBesideAnother(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, first, second := tail(t, db, "clock", ""), open(t, db, "first"), open(t, db, "second")
	const sets = `select count(*)::int from tidemark.source_set($1, $2)`
	both := func(source, one, other string, end func()) error {
		first.begin()
		first.exec(sets, source, one)
		ended := later[int](second, sets, source, other)
		first.waitsFor(second)
		end()
		_, err := ended()
		return err
	}
	const births = `select filter, margin from tidemark.source where source = 'births'`
	if err := both("births", `{"filter": "id > 1"}`, `{"margin": "1 minute"}`, first.rollback); err != nil {
		t.Error(err)
	}
	s.want(births, "- 00:01:00")
	wantCode(t, both("births", `{"filter": "id > 0"}`, `{"margin": "2 minutes"}`, first.commit), "40001")
	s.want(births, "id > 0 00:01:00")
	second.exec(sets, "births", `{"margin": "2 minutes"}`)
	s.want(births, "id > 0 00:02:00")

	// Two that make the same one, and a deletion.
	const made = `{"table": "public.births", "id_column": "id", "safety": "sequence", "description": "%"}`
	wantCode(t, both("new", merge(t, made, `{"description": "first"}`), merge(t, made, `{"description": "second"}`), first.commit), "40001")
	s.want(`select description from tidemark.source where source = 'new'`, "first")
	first.begin()
	first.exec(`select tidemark.source_delete('new', 'why')`)
	ended := later[int](second, sets, "new", `{"description": "third"}`)
	first.waitsFor(second)
	first.commit()
	_, err := ended()
	wantCode(t, err, "40001")
	s.want(`select source from tidemark.source`, "births")
}

// A change after which rows are counted anew, and a pass that counts them in the old way, wait for one another and never in a
// circle. Other changes do not wait for a pass.
func TestSourceSetBesideAPass(t *testing.T) {
	t.Parallel()
	const (
		alone = `select count(*)::int from tidemark.source_set('births', '%')`
		file  = `select count(*)::int from tidemark.configuration_apply('f', (select jsonb_agg(jsonb_build_object('kind', c.kind, 'name', c.name,
			'definition', c.definition || case c.kind when 'source' then '%' else '{"page_size": 7}' end::jsonb)) from tidemark.configuration() c
			where (c.kind, c.name) in (('source', 'births'), ('worker', 'w'))), 'why')`
	)
	for name, statement := range map[string]string{"alone": alone, "by a file": file} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s, holder, operator := tail(t, db, "declared", `{"sweep_window": "1 hour", "sweep_every": "1 hour"}`), open(t, db, "holder"), open(t, db, "operator")
			s.rewrite("source_settle", "-- Store the counts", "perform pg_advisory_xact_lock_shared(1);\n    -- Store the counts")
			s.rewrite("source_settle", "dead := tidemark.source_failures", "perform pg_advisory_xact_lock_shared(2);\n    dead := tidemark.source_failures")
			s.exec(insertAt("now() - interval '10 minutes'"))
			s.drain()
			s.want(`select count(*) > 0 from tidemark.source_count`, "true")
			for _, c := range []struct {
				lock   int
				change string
				waits  bool
			}{{1, `{"bucket": "2 hours"}`, true}, {2, `{"description": "for people"}`, false}} {
				s.exec(insertAt("clock_timestamp() - interval '1 s'"))
				holder.exec(`select pg_advisory_lock($1)`, c.lock)
				passed := later[string](s.session, `select tidemark.worker_run('w') ->> 'status'`)
				holder.waitsFor(s.session)
				operator.exec(`set statement_timeout = '20s'`)
				changed := later[int](operator, strings.Replace(statement, "%", c.change, 1))
				if c.waits {
					holder.waitsFor(operator)
				} else if _, err := changed(); err != nil {
					t.Errorf("%s: %v", c.change, err)
				}
				holder.exec(`select pg_advisory_unlock($1)`, c.lock)
				if got, err := passed(); err != nil || got != "ran" {
					t.Errorf("%s: %s, %v, want it to run", c.change, got, err)
				}
				if _, err := changed(); err != nil {
					t.Errorf("%s: %v", c.change, err)
				}
				if c.waits { // what the pass counted is gone
					s.want(`select bucket, (select count(*) from tidemark.source_count) from tidemark.source where source = 'births'`, "02:00:00 0")
				}
			}
			s.exec(insertAt("now() - interval '1 s'"))
			s.sweep()
			s.exact()
			s.want(findings)
		})
	}
}
