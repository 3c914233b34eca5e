package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func TestSources(t *testing.T) {
	t.Parallel()
	test, db := setup(t)
	exec(t, test, `create table public."Births" (id int generated always as identity primary key, born_at timestamptz not null default now());
		create index on public."Births" (born_at, id); insert into public."Births" (born_at) values (now() - interval '1 hour'), (now() - interval '1 hour');
		create function public.take(rows anyarray) returns jsonb language plpgsql as $$ begin if exists (select from unnest(rows) r where r.id = 2) then raise 'two'; end if; return '{"n": 1}'; end $$`)
	name, err := db.TableName(t.Context(), `public."Births"`)
	if err != nil || len(name) != 2 {
		t.Fatal(name, err)
	}
	definition := store.Changes{"schema_name": name[0], "table_name": name[1], "safety": "clock"}
	if id, timestamp, err := db.SourceGuess(t.Context(), definition); id != "id" || timestamp != "born_at" || err != nil {
		t.Errorf("got %q, %q, %v", id, timestamp, err)
	}
	if advice, err := db.SourceAdvise(t.Context(), definition); len(advice) != 4 || err != nil {
		t.Errorf("got %v, %v", advice, err)
	}
	definition["id_column"], definition["timestamp_column"] = "id", "born_at"
	checks, err := db.SourceCheck(t.Context(), definition)
	if err != nil || len(checks) < 10 {
		t.Errorf("got %v, %v", checks, err)
	}
	if err := db.SourceSet(t.Context(), "births", definition, "test"); err != nil {
		t.Fatal(err)
	}
	wantError(t, db.SourceSet(t.Context(), "births", store.Changes{"margin": "0"}, "test"), tidemark.ErrArgument)
	stored, err := db.SourceChecks(t.Context(), "births")
	if diff := cmp.Diff(checks, stored); diff != "" || err != nil {
		t.Error(err, diff)
	}
	_, err = db.SourceChecks(t.Context(), "never")
	wantError(t, err, tidemark.ErrNotFound)

	must(t)(db.WorkerSet(t.Context(), "w", store.Changes{"source": "table", "handler": "sql", "handler_ref": "public.take"}, "test", ""))
	if made, err := db.WorkerSourceAdd(t.Context(), "w", "births", "test"); made != 1 || err != nil {
		t.Errorf("got %d, %v", made, err)
	}
	wantError(t, db.SourceDelete(t.Context(), "births", "test"), tidemark.ErrArgument)
	open(t, db, "w")
	pass, err := db.WorkerRun(t.Context(), "w", store.RunFilter{Source: "births"})
	if err != nil || pass.Source != "births" || pass.Rows != 2 || pass.Taken != 1 || pass.Failed != 1 || *pass.WatermarkID != "2" || pass.Step != "forward" {
		t.Errorf("got %s, %v", pass.Summary, err)
	}
	cursors, err := db.SourceCursors(t.Context(), "w")
	if err != nil || len(cursors) != 1 || cursors[0].Pending != 1 || *cursors[0].WatermarkID != "2" {
		t.Errorf("got %+v, %v", cursors, err)
	}
	if last, err := cursors[0].Last(); err != nil || last.Rows != 2 {
		t.Errorf("got %+v, %v", last, err)
	}
	waiting, err := db.Pending(t.Context(), store.PendingFilter{Worker: "w", Source: "births"})
	if err != nil || len(waiting) != 1 || waiting[0].Item != "2" || *waiting[0].LastError != "P0001: two" {
		t.Errorf("got %+v, %v", waiting, err)
	}
	if none, err := db.Pending(t.Context(), store.PendingFilter{Source: "outbox"}); err != nil || len(none) != 0 {
		t.Errorf("got %+v, %v", none, err)
	}
	source, err := db.Source(t.Context(), "births")
	if err != nil || source.Table != `public."Births"` || source.Pending != 1 || source.Workers[0] != "w" {
		t.Errorf("got %+v, %v", source, err)
	}
	if n, err := db.SourceRewind(t.Context(), "w", "births", "test", time.Time(*pass.WatermarkTS), ""); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if health, err := db.WorkerHealth(t.Context()); err != nil || len(health) != 2 || health[1].Watermark != nil || health[1].Behind != nil {
		t.Errorf("got %+v, %v", health, err)
	}
}
