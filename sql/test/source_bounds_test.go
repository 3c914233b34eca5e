package test

// Handlers that take the bounds of a page and read the table themselves: they see the rows that a handler of rows gets.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// takeBounds is the handler take as one of bounds. It raises for a page that has a row of the table poison, after it has
// written the rows down.
func takeBounds(safety string) string {
	parameters, where := "after_id bigint, to_id bigint", "b.id > after_id and b.id <= to_id"
	if safety == "clock" {
		parameters = "after_at timestamptz, after_id bigint, to_at timestamptz, to_id bigint"
		where = "(b.born_at, b.id) > (after_at, after_id) and (b.born_at, b.id) <= (to_at, to_id)"
	}
	return `create table poison (id bigint primary key);
create sequence calls;
create function take(` + parameters + `) returns jsonb language plpgsql as $$
declare
    n bigint;
begin
    perform nextval('calls'), pg_advisory_xact_lock_shared(7); -- where a test holds it back
    insert into taken (id, row) select b.id::text, to_jsonb(b) from births b where ` + where + ` order by b.id;
    get diagnostics n = row_count;
    if exists (select from births b join poison p on p.id = b.id where ` + where + `) then
        raise 'poison';
    end if;
    return jsonb_build_object('taken', n);
end $$;
drop function take(births[]);`
}

// bounded is tail with a handler of bounds, and with a worker "v" of the same source whose handler of rows does the same.
func bounded(t *testing.T, db *tidemarktest.DB, safety, changes string) tailing {
	t.Helper()
	s := tail(t, db, safety, changes)
	s.exec(takeBounds(safety) + `
create table taken_rows (like taken including identity);
create function take_rows(rows births[]) returns jsonb language plpgsql as $$
begin
    insert into taken_rows (id, row) select r.id::text, to_jsonb(r) from unnest(rows) r order by r.id;
    if exists (select from unnest(rows) r join poison p on p.id = r.id) then
        raise 'poison';
    end if;
    return jsonb_build_object('taken', cardinality(rows));
end $$;`)
	s.worker("v", `{"handler": "sql", "handler_ref": "public.take_rows"}`)
	s.add("v")
	return s
}

// both runs a pass of each worker.
func (s tailing) both(page int) {
	s.t.Helper()
	s.once(nil, nil, page)
	s.exec(`select tidemark.worker_run('v', null, null, $1)`, page)
}

// until runs what makes progress until it says that all is done.
func until(t *testing.T, done func() bool, state func() string) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * time.Minute); !done(); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("it never ends: %s", state())
		}
	}
}

func TestSourceBoundsAreThePage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ safety, changes string }{
		{"sequence", ""}, {"clock", ""}, {"clock", `{"sweep_window": "1 hour", "sweep_every": "5 seconds"}`},
	} {
		t.Run(c.safety+" "+c.changes, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s := bounded(t, db, c.safety, c.changes)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			writers := []session{open(t, db, "a"), open(t, db, "b"), open(t, db, "c")}
			under := make([]bool, len(writers))
			for range 60 {
				w := r.IntN(len(writers))
				switch r.IntN(6) {
				case 0, 1:
					if !under[w] {
						writers[w].begin()
						under[w] = true
					}
					writers[w].exec(`insert into births (name) select 'x' from generate_series(1, $1::int)`, 1+r.IntN(9))
				case 2, 3:
					if under[w] {
						under[w] = false
						[]func(){writers[w].commit, writers[w].commit, writers[w].rollback}[r.IntN(3)]()
					}
				case 4:
					s.exec(`insert into births (name, born_at) select 'y', now() from generate_series(1, $1::int)`, 1+r.IntN(20)) // at the same time
					s.exec(`insert into poison select max(id) - $1 from births on conflict do nothing`, r.IntN(20))
				case 5: // read or not
					s.exec(`delete from births b where id % 7 = 3 and not exists (select from poison p where p.id = b.id)`)
				}
				s.both(1 + r.IntN(30))
				if c.safety == "sequence" {
					s.want(`select coalesce(a.id, b.id) from taken a full join taken_rows b on b.id = a.id and b.row = a.row
						where a.id is null or b.id is null and coalesce(a.id, b.id)::bigint not in (select id from poison)`)
				}
			}
			for w := range writers {
				if under[w] {
					writers[w].commit()
				}
			}
			all := `select (select count(*) from births b where not exists (select from %[1]s t where t.id = b.id::text) and b.id not in (select id from poison)) as lost,
				(select count(*) - count(distinct id) from %[1]s) as doubled,
				(select count(*) from poison p where not exists (select from births b where b.id = p.id)
					or exists (select from %[1]s t where t.id = p.id::text) or exists (
					select from tidemark.dead_letter d join tidemark.worker w on w.id = d.worker_id where d.item_id = p.id::text and w.worker = '%[2]s')) - (select count(*) from poison) as letters`
			until(t, func() bool {
				s.both(100)
				got := append(s.lines(fmt.Sprintf(all, "taken", "w")), s.lines(fmt.Sprintf(all, "taken_rows", "v"))...)
				return strings.Join(got, ",") == "0 0 0,0 0 0"
			}, func() string {
				return fmt.Sprint(s.lines(fmt.Sprintf(all, "taken", "w")), s.lines(fmt.Sprintf(all, "taken_rows", "v")), s.lines(findings))
			})
			s.exec(`truncate poison; select tidemark.dead_letter_replay_many()`)
			until(t, func() bool { s.both(100); return s.lines(`select count(*) from tidemark.pending_row`)[0] == "0" }, func() string { return "pending rows" })
			s.exact()
			s.want(`select count(*) from births n left join taken a on a.id = n.id::text left join taken_rows b on b.id = a.id and b.row = a.row where b.id is null`, "0")
		})
	}
}

// A row that is committed after the page was read and before the handler reads is not among its rows: its number is
// passed over by the bounds, and it is taken once. Without that it is taken twice.
func TestSourceBoundsPassOverNumbersUnderWay(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, weaken func(s tailing)) string {
		db := tidemarktest.NewDB(t)
		s := bounded(t, db, "sequence", "")
		weaken(s)
		late, holder := open(t, db, "late"), open(t, db, "holder")
		s.exec(`insert into births (name) select 'first' from generate_series(1, 3)`)
		late.begin()
		late.exec(`insert into births (name) values ('late')`)
		s.exec(`insert into births (name) select 'last' from generate_series(1, 3)`)
		holder.exec(`select pg_advisory_lock(7)`)
		done := make(chan error, 1)
		go func() {
			_, err := s.conn.Exec(context.Background(), `select tidemark.worker_run('w')`)
			done <- err
		}()
		holder.waitsFor(s.session) // it has read its page
		late.commit()
		holder.exec(`select pg_advisory_unlock(7)`)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		s.drain()
		return s.lines(`select string_agg(id, ' ' order by at) as ids from taken`)[0]
	}
	t.Run("as it is", func(t *testing.T) {
		t.Parallel()
		equal(t, "taken", run(t, func(tailing) {}), "1 2 3 5 6 7 4")
	})
	t.Run("one range", func(t *testing.T) {
		t.Parallel()
		equal(t, "taken", run(t, func(s tailing) {
			s.rewrite("source_bounds", "spans := tidemark.numbers_multirange(numbers);",
				"select int8multirange(int8range(min(n), max(n) + 1)) into spans from unnest(numbers) n;")
		}), "1 2 3 4 5 6 7 4")
	})
	t.Run("settled too early", func(t *testing.T) {
		t.Parallel()
		equal(t, "taken", run(t, func(s tailing) {
			s.rewrite("source_settled", "case when tidemark.source_quiet(relation) then last end", "last")
		}), "1 2 3 4 5 6 7 4")
	})
}

// Between the reading of a page and the handler's own reading, rows of it are deleted and changed, and others are added: the
// handler sees the rows that are left, as they are, and the others in their turn.
func TestSourceBoundsWhileRowsChange(t *testing.T) {
	t.Parallel()
	for _, safety := range []string{"clock", "sequence"} {
		t.Run(safety, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s := bounded(t, db, safety, "")
			other, holder := open(t, db, "other"), open(t, db, "holder")
			other.exec(`insert into births (name, born_at) select 'same time', now() from generate_series(1, 6)`)
			holder.exec(`select pg_advisory_lock(7)`)
			done := make(chan error, 1)
			go func() {
				_, err := s.conn.Exec(context.Background(), `select tidemark.worker_run('w', null, null, 5)`)
				done <- err
			}()
			holder.waitsFor(s.session)
			other.exec(`delete from births where id in (1, 3, 5); update births set name = 'changed' where id = 2; insert into births (name) values ('new')`)
			holder.exec(`select pg_advisory_unlock(7)`)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			s.want(`select string_agg(concat_ws(' ', id, row ->> 'name'), ', ' order by at) from taken`, "2 changed, 4 same time")
			until(t, func() bool { s.drain(); return s.lines(`select count(*) from taken`)[0] == "4" }, func() string { return fmt.Sprint(s.lines(`select * from taken`)) })
			s.want(`select string_agg(concat_ws(' ', id, row ->> 'name'), ', ' order by at) from taken`, "2 changed, 4 same time, 6 same time, 7 new")
			s.want(`select events_seen from tidemark.worker_cursor where worker = 'w'`, "7")
		})
	}
}

// A handler of bounds reads the table of another role, whose code must not run with the handler's rights: the handler has those of
// that role.
func TestForeignCodeRunsInNoHandlerOfBounds(t *testing.T) {
	t.Parallel()
	r := foreign(t)
	r.owner.exec(`create table e.t (id bigint generated always as identity primary key, what text); grant select on e.t to public`)
	r.super.exec(`create schema app; create table app.taken (id bigint); grant usage on schema app to public; grant all on app.taken to public;
		create function app.take(after_id bigint, to_id bigint) returns void language plpgsql as
			$$ begin insert into app.taken select t.id from e.t where t.id > after_id and t.id <= to_id; end $$`)
	r.operator.exec(`select tidemark.stage_set('live', 'a test')`)
	r.operator.source("births", `{"table": "e.t", "id_column": "id", "safety": "sequence"}`)
	r.operator.worker("w", `{"handler": "sql", "handler_ref": "app.take"}`)
	r.operator.add("w")
	const insert = `insert into e.t (what) select 'a' from generate_series(1, 3)`
	r.owner.exec(insert)
	eve := r.owner.lines(`select current_user`)[0]
	want := "the function app.take takes bounds, and would read the table of " + eve + " with other rights: make it security definer, owned by " + eve
	for _, change := range []string{`select 1`, `alter function app.take security definer`, `alter function app.take security invoker; alter function app.take owner to ` + eve} {
		r.super.exec(change)
		if got := r.worker.once(); got.Status != "held" || got.Detail != want {
			t.Errorf("%s: %+v, want %q", change, got, want)
		}
	}
	r.super.exec(`alter function app.take security definer`)
	if got := r.worker.once(); got.Status != "ran" || got.Rows != 3 {
		t.Errorf("%+v", got)
	}
	r.owner.exec(insert + `; create index evil on e.t ((e.evil(1)))`)
	if got := r.worker.once(); got.Status != "held" {
		t.Errorf("%+v", got)
	}
	r.super.want(`select is_called from e.runs`, "false")
	r.owner.exec(`drop index e.evil; alter table e.t enable row level security, force row level security`)
	if got := r.worker.once(); got.Status != "held" {
		t.Errorf("%+v", got)
	}
	r.owner.exec(`alter table e.t disable row level security`)
	r.worker.once()
	r.super.want(`select count(*) from app.taken`, "6")
}

// What no writer can fill any more is no reason for another call.
func TestSourceBoundsOfAQuietTable(t *testing.T) {
	t.Parallel()
	s := bounded(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`insert into births (name) select 'x' from generate_series(1, 1000); delete from births where id % 2 = 0`)
	if got := s.once(); got.Rows != 500 || got.Taken != 500 {
		t.Errorf("%+v", got)
	}
	s.want(`select last_value from calls`, "1")
	s.drain()
	s.exact()
}

// A handler of bounds is refused where rows that are not of the page can lie between its bounds; the worker is held.
func TestSourceBoundsAreRefused(t *testing.T) {
	t.Parallel()
	const is = "source_misconfigured"
	for name, c := range map[string]struct{ safety, changes, worker, want string }{
		"declared": {"declared", `{"sweep_window": "1 hour"}`, "", "with the safety declared"},
		"filter":   {"sequence", `{"filter": "name <> 'x'"}`, "", "with a filter"},
		"groups":   {"clock", `{"group_key": ["name"]}`, `{"coalesce_window": "1 second"}`, "of which only the latest row of a group is handed over"},
		"sources":  {"sequence", "", "", "of a worker that has others"},
		"fits":     {"clock", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), c.safety, c.changes)
			safety := c.safety
			if safety == "declared" {
				safety = "clock"
			}
			s.exec(takeBounds(safety))
			if c.worker != "" {
				s.worker("w", c.worker)
			}
			if name == "sources" {
				s.exec(`create table other (id bigint generated always as identity primary key, name text); insert into other (name) values ('a')`)
				s.source("other", `{"table": "public.other", "id_column": "id", "safety": "sequence"}`)
				s.exec(`select tidemark.worker_source_add('w', 'other', 'a test')`)
			}
			s.exec(`insert into births (name, born_at) values ('a', now())`)
			const function = `select status || ' ' || detail from tidemark.source s cross join lateral tidemark.source_check(s) c where s.source = 'births' and c."check" = 'function of w'`
			got := s.once("births")
			if c.want == "" {
				if got.Status != "ran" {
					t.Errorf("%+v", got)
				}
				s.want(function, "ok public.take takes the bounds of a page")
				s.exec(`create function take(rows births[]) returns void language sql as ''`)
				if got := s.once(); got.Status != "held" || got.Detail != "there are two functions public.take, one that takes rows and one that takes bounds: drop one" {
					t.Errorf("%+v", got)
				}
				return
			}
			if want := "the function public.take takes bounds, which are not exact for a source " + c.want + ": let it take rows"; got.Status != "held" || got.Detail != want {
				t.Errorf("got %s %q, want %q", got.Status, got.Detail, want)
			} else {
				s.want(function, "warn "+want)
				s.exec(`drop function take; create function take(rows births[]) returns void language sql as ''`)
				s.want(function, "ok public.take takes the rows of a page")
			}
			s.want(findings, is+" w/births/0")
		})
	}
}

// A row that is gone, or that has no time, cannot be enclosed: it fails, with the reason, and the others go on.
func TestSourceBoundsOfARowWithoutAPlace(t *testing.T) {
	t.Parallel()
	s := bounded(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(`insert into births (name) select 'x' from generate_series(1, 9); insert into births (name, born_at) values ('never', 'infinity')`)
	s.exec(`insert into poison values (5)`)
	until(t, func() bool { s.drain(); return s.lines(`select count(*) from taken`)[0] == "8" }, func() string { return fmt.Sprint(s.lines(`select * from taken`)) })
	s.sweep()
	s.retried()
	s.exec(`delete from births where id = 5; select tidemark.dead_letter_replay(d.id) from tidemark.dead_letter d where d.item_id = '5'`)
	s.retried()
	s.want(`select item_id, error_code, error_detail from tidemark.dead_letter d join tidemark.worker w on w.id = d.worker_id where w.worker = 'w' order by 1`,
		"10 TM005 the handler takes bounds, and the row 10 has no usable timestamp", "5 TM005 the handler takes bounds, and the row 5 is gone")
}

// A row that was deleted before its next attempt fails: its number alone would be handled, without a row.
func TestSourceBoundsOfARowThatIsGone(t *testing.T) {
	t.Parallel()
	s := bounded(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`insert into births (name) select 'x' from generate_series(1, 9); insert into poison values (5)`)
	s.drain()
	s.retried()
	s.exec(`delete from births where id = 5; select tidemark.dead_letter_replay(d.id) from tidemark.dead_letter d`)
	s.retried()
	s.want(`select item_id, error_code, error_detail from tidemark.dead_letter d join tidemark.worker w on w.id = d.worker_id where w.worker = 'w'`,
		"5 TM005 the handler takes bounds, and the row 5 is gone")
}
