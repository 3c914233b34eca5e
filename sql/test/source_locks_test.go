package test

import (
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
