package worker_test

import (
	"context"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// insideHangs is a target inside the database that hangs on event 3, and has what it was called for in the table inside.
const insideHangs = `
create table inside (at bigint generated always as identity primary key, n text);
create function inside(event jsonb) returns void language plpgsql as $$
begin
    insert into inside (n) values (event -> 'payload' ->> 'n');
    if event -> 'payload' ->> 'n' = 'a3' then
        perform pg_sleep(3600);
    end if;
end $$;
select tidemark.route_set('inside', '{"domain": "test", "target_kind": "sql", "target_ref": "public.inside", "timeout": "200 milliseconds",
    "ordering": "key", "enabled": true, "dry_run": false}')`

// The daemon's worker ends a target inside the database that hangs, and its event is a dead letter. What goes outside
// goes on, what comes behind it comes in order, with no other event to wake the worker for it.
func TestTargetInsideHangs(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	exec(t, db, insideHangs)
	emit(t, db, "a1", "a2", "a3", "a4", "b5")
	run(t, db, ts)
	ts["app"].wait(t, 5)
	const got = `select n from inside order by at`
	eventually(t, db, got, "a1", "a2", "a4", "b5")
	eventually(t, db, `select concat_ws(' ', seq, error_code) from tidemark.dead_letter`, "3 57014")
	eventually(t, db, settled, "true")
	emit(t, db, "a6")
	eventually(t, db, got, "a1", "a2", "a4", "b5", "a6")
	eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
}

// A target inside the database that finds its row locked keeps neither other keys nor other routes waiting: what went out is on record, and
// what met the lock is tried again.
func TestTargetInsideFindsALock(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, "")
	exec(t, db, insideHangs)
	exec(t, db, `create table held (n text); insert into held values ('a3');
		create or replace function inside(event jsonb) returns void language plpgsql as $$
begin
    perform from held where n = event -> 'payload' ->> 'n' for update nowait;
    insert into inside (n) values (event -> 'payload' ->> 'n');
end $$`)
	holder, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	if _, err := holder.Exec(t.Context(), `select from held for update`); err != nil {
		t.Fatal(err)
	}
	emit(t, db, "a1", "b2", "a3", "a4", "b5")
	run(t, db, ts)
	ts["app"].wait(t, 5)
	const got = `select n from inside order by at`
	eventually(t, db, `select count(*)::text from tidemark.route_attempt where route_code = 'app' and outcome = 'sent'`, "5")
	eventually(t, db, got, "a1", "b2", "b5")
	eventually(t, db, `select (max(attempt_no) >= 2)::text from tidemark.attempt where seq = 3 and reason = '55P03'`, "true")
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, db, got, "a1", "b2", "b5", "a3", "a4")
	eventually(t, db, `select id::text from tidemark.dead_letter`)
	eventually(t, db, settled, "true")
}

// What a closed gate has left over of a target inside the database comes when it opens, with no event to bring it.
func TestLeftOverInside(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	exec(t, db, `select tidemark.type_set('test', 'tick'), tidemark.stage_set('live', 'test')`)
	exec(t, db, insideHangs)
	exec(t, db, `select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true)`)
	emit(t, db, "a1")
	exec(t, db, `select tidemark.claim('default', 'x', '1 minute')`)
	exec(t, db, `create table held as select * from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') where batch is not null`)
	exec(t, db, `select tidemark.gate_set('routes.enabled', false)`)
	exec(t, db, `select tidemark.pass_settle('default', 1, batch::tidemark.batch, evidence::tidemark.evidence[], '{}', 1), tidemark.release('default', 1) from held`)
	eventually(t, db, `select seq::text from tidemark.pending`, "1")
	run(t, db, targets{})
	exec(t, db, `select tidemark.gate_set('routes.enabled', true)`)
	eventually(t, db, `select n from inside`, "a1")
	eventually(t, db, `select seq::text from tidemark.pending`)
}
