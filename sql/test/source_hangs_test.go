package test

// Handlers that loop, sleep or wait for a lock: the caller's statement_timeout ends the page, and what that leaves in the
// cursor leads to the row that is at fault.

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// hangingHandler makes take do with a row what the table slow says: loop, or sleep for so many seconds.
const hangingHandler = `
create table slow (id bigint primary key, how text not null);
create or replace function take(rows births[]) returns jsonb language plpgsql as $$
declare
    how text;
begin
    insert into taken (id) select id from unnest(rows);
    for how in select s.how from slow s join unnest(rows) r on r.id = s.id loop
        if how = 'loop' then
            loop
                null;
            end loop;
        end if;
        perform pg_sleep(how::float8);
    end loop;
    return jsonb_build_object('taken', cardinality(rows));
end $$;`

const (
	cuts     = `select coalesce(metadata ->> 'suspects', '') from tidemark.worker_cursor where worker = 'w'`
	waiting  = `select item_id, error_count, last_error like '57014: it took longer than %' from tidemark.pending_row`
	rowsDead = `select item_id, attempts, error_code from tidemark.dead_letter`
)

// C15: one row of many hangs. A few passes find it, the others are taken meanwhile, once and in order; it is tried again, then it is a dead
// letter. What is known is kept by the cursor, so that each pass may come from another session.
func TestSourceRowHangs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		safety, how     string
		rows, bad, cuts int
	}{
		{"sequence", "loop", 3000, 2777, 4},
		{"clock", "3600", 60, 37, 2},
		{"sequence", "3600", 1, 1, 2},
	} {
		t.Run(fmt.Sprint(c.safety, c.rows), func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s := tail(t, db, c.safety, "")
			s.exec(hangingHandler)
			s.exec(`insert into slow values ($1, $2)`, c.bad, c.how)
			s.exec(`insert into births (name) select 'b' from generate_series(1, $1::int)`, c.rows)
			cut, passes := 0, 0
			each := []tailing{{open(t, db, "one")}, {open(t, db, "other")}}
			for _, e := range each {
				e.exec(`set statement_timeout = '1s'`)
			}
			for got := (run{More: true}); got.More && got.Failed == 0; passes++ {
				if passes > 200 {
					t.Fatalf("it never ends: %+v", got)
				}
				if got = each[passes%2].once(); got.Status == "cut" {
					cut++
					s.want(fmt.Sprintf(`select count(*) from taken where id::bigint >= %d`, c.bad), "0")
				}
			}
			if cut != c.cuts-1 { // the last one is the row's own
				t.Errorf("%d pages were cut off in %d passes, want %d", cut, passes, c.cuts-1)
			}
			s.want(waiting, fmt.Sprintf("%d 1 true", c.bad))
			s.exec(`insert into births (name) values ('after'); set statement_timeout = '1s'`)
			s.retried()
			s.want(rowsDead, fmt.Sprintf("%d 3 57014", c.bad))
			s.want(`select (select count(*) from births b where not exists (select from taken t where t.id = b.id::text)), (select count(*) - count(distinct id) from taken),
				(select count(*) from (select id::bigint < lag(id::bigint) over (order by at) as back from taken) o where back)`, "1 0 0")
			s.want(findings, "cursor_dlq w/births/0")
			s.exec(`delete from slow; select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
			s.retried()
			s.want(`select resolution from tidemark.dead_letter`, "sent")
			s.exec(`reset statement_timeout`)
			s.drain()
			s.want(cuts, "")
		})
	}
}

// A handler that is slow and well: its page is made as small as it takes, and stays so; no row has failed.
func TestSourceHandlerIsSlow(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(hangingHandler)
	s.exec(`select tidemark.worker_set('w', '{"page_size": 32}', 'a test')`)
	s.exec(`insert into births (name) select 'b' from generate_series(1, 100); insert into slow select n, '0.08' from generate_series(1, 100) n; set statement_timeout = '2s'`)
	cut := 0
	for got := (run{More: true}); got.More; {
		if got = s.once(); got.Status == "cut" {
			cut++
		}
	}
	if cut != 1 {
		t.Errorf("%d pages were cut off", cut)
	}
	s.exact()
	s.want(`select count(*) from tidemark.pending_row`, "0")
	s.want(findings)
}

// The handler emit: a row whose key another transaction holds waits, the others become events; no longer held, so does it.
func TestSourceEmitHangs(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, holder := tailing{open(t, db, "worker")}, open(t, db, "holder")
	s.exec(fmt.Sprintf(births, "bigint generated always as identity", "not null default clock_timestamp()"))
	s.exec(`select tidemark.type_set('test', 'born')`)
	s.source("births", `{"table": "public.births", "id_column": "id", "safety": "sequence"}`)
	s.worker("w", `{"handler": "emit", "handler_ref": "test/born", "retry_policy": {"base_seconds": 3600}}`)
	s.add("w")
	s.exec(insertBirths)
	holder.begin()
	holder.exec(`insert into tidemark.emit_key select 'test', 'tidemark:source/w/births/3', gen_random_uuid(), now()`)
	s.exec(`set statement_timeout = '500ms'`)
	for range 5 {
		s.once()
	}
	s.want(waiting, "3 1 true")
	s.drain()
	s.want(`select subject_ref from tidemark.outbox where type = 'born' order by seq`, "1", "2", "4", "5")
	holder.rollback()
	s.exec(`update tidemark.pending_row set next_attempt_at = now()`)
	s.retried()
	s.want(`select subject_ref from tidemark.outbox where type = 'born' order by seq`, "1", "2", "4", "5", "3")
	s.want(rowsDead)
}

// An operator's cancel has the same code as the timer, and comes earlier: it is no row's fault, and leaves nothing.
func TestSourcePassIsCancelled(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, operator := tail(t, db, "sequence", ""), open(t, db, "operator")
	s.exec(insertBirths)
	s.exec(`create or replace function take(rows births[]) returns jsonb language plpgsql as $$ begin
		perform pg_advisory_xact_lock(1); insert into taken (id) select id from unnest(rows); return null; end $$; set statement_timeout = '1h'`)
	operator.exec(`select pg_advisory_lock(1)`)
	result := later[string](s.session, `select tidemark.worker_run('w')::text`)
	operator.waitsFor(s.session)
	operator.exec(`select pg_cancel_backend($1)`, s.conn.PgConn().PID())
	_, err := result()
	wantCode(t, err, "57014")
	s.want(cuts, "")
	operator.exec(`select pg_advisory_unlock(1)`)
	s.wantWell()
	s.want(`select count(*) from tidemark.pending_row`, "0")
}

// Of two cursors the one that hangs comes last, and nothing begins that nothing would end.
func TestSourceHangsBesideAnother(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(hangingHandler)
	s.exec(`create table other (like births including all);
		create or replace function take2(rows anyarray) returns jsonb language sql as $$ select public.take(array(select jsonb_populate_record(null::public.births, to_jsonb(r)) from unnest(rows) r)) $$`)
	s.worker("w", `{"handler": "sql", "handler_ref": "public.take2"}`)
	s.source("other", `{"table": "public.other", "id_column": "id", "safety": "sequence"}`)
	s.exec(`select tidemark.worker_source_add('w', 'other', 'a test')`)
	s.exec(`insert into births (name) select 'b' from generate_series(1, 5); insert into other (id, name) overriding system value select n + 100, 'o' from generate_series(1, 5) n;
		select setval('other_id_seq', 105); insert into slow values (3, 'loop'); set statement_timeout = '1s'`)
	if first := s.once(); !first.More || first.Source != "births" || first.Status != "cut" {
		t.Fatalf("%+v", first)
	}
	if second := s.once(); len(second.Runs) != 2 || second.Runs[0].Source != "other" || second.Runs[0].Taken != 5 {
		t.Errorf("%+v", second)
	}
	s.retried()
	s.want(rowsDead, "3 3 57014")
	s.want(`select count(*), count(distinct id) from taken`, "9 9")
}

// What hangs though no row can be blamed, the reading itself, is a finding after five times, and is over with the first page that goes well.
func TestSourceReadingHangs(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`create function hang() returns boolean language plpgsql volatile as $$ begin perform pg_sleep(3600); return true; end $$`)
	s.source("births", `{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "margin": "1 microsecond", "safety": "sequence", "filter": "public.hang()"}`)
	s.exec(insertBirths)
	s.exec(`set statement_timeout = '300ms'`)
	for n := range 5 {
		s.want(findings)
		if got := s.once(); got.Status != "cut" || got.Rows != 0 || n == 4 && got.More {
			t.Errorf("%d: %+v", n, got)
		}
	}
	s.want(findings, "worker_failing w/births/0")
	s.want(`select status from tidemark.queue_health where name = 'worker_failing w/births/0'`, "bad")
	s.want(`select count(*) from tidemark.pending_row`, "0")
	s.exec(`create or replace function hang() returns boolean language sql as 'select true'`)
	s.wantWell()
	s.want(findings)
}

// A pass that begins when the timer of its statement has fired does nothing: a second one does not fire.
func TestSourcePassWithoutTime(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(insertBirths)
	s.exec(`set statement_timeout = '200ms'`)
	if _, err := s.conn.Exec(context.Background(), `do $$
declare
    got jsonb;
begin
    begin
        perform pg_sleep(3600);
    exception when query_canceled then null;
    end;
    got := tidemark.worker_run('w');
    if got ->> 'status' <> 'waiting' or (got ->> 'more')::boolean then
        raise 'it ran: %', got;
    end if;
end $$`); err != nil {
		t.Error(err)
	}
	s.want(`select count(*) from taken`, "0")
	s.wantWell()
}

// What counts the rows behind the window takes longer than a pass may. The page that it ends is recorded all the same, and the next
// sweep counts fewer buckets. If even one takes too long, a finding says so. Rows are taken meanwhile.
func TestSourceCountHangs(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "declared", `{"sweep_window": "1 hour", "bucket": "1 minute"}`)
	s.rewrite("source_recount", "counts := got.counts;", "counts := got.counts; perform pg_sleep(how.seconds) from public.how where buckets > how.most;")
	s.exec(`create table how (most integer, seconds float8); insert into how values (30, 3600);
		insert into births (born_at) select now() - n * interval '1 minute' from generate_series(2, 600) n; set statement_timeout = '2s'`)
	const verified = `select coalesce(verified_through > now() - make_interval(mins => 560), false), coalesce(verified_through > now() - make_interval(mins => 70), false)
		from tidemark.worker_cursor where worker = 'w'`
	s.sweep() // 500 buckets
	s.sweep()
	s.want(verified, "false false")
	s.sweep()
	s.want(verified, "false false") // 62, and then 7
	for range 3 {
		s.sweep()
	}
	s.want(verified, "true false") // more each time, up to what takes too long
	s.want(findings)
	s.exec(`update how set most = 0`)
	for range 3 {
		s.exec(`insert into births (born_at) values (now() - interval '30 minutes'), (null), (clock_timestamp())`)
		s.sweep()
		s.exact()
	}
	s.want(findings, "source_count_mismatch w/births/0")
	s.want(`select detail like '%a pass of 00:00:02 has no time for those of 00:01:00 from 2%' from tidemark.finding where closed_at is null`, "true")
	s.exec(`update how set seconds = 0`)
	for range 12 {
		s.sweep()
	}
	s.want(verified, "true true")
	s.wantWell()
}

// Steps take turns also where one is cut off each time.
func TestSourceSweepHangs(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "declared", `{"sweep_window": "1 hour"}`)
	s.exec(insertAt("now() - interval '2 s'"))
	s.sweep()
	s.rewrite("source_read", "if plan.step = 'sweep' then", "if plan.step = 'sweep' then perform pg_sleep(3600);")
	s.exec(`update tidemark.worker_cursor set sweep = sweep - 'done_at' where worker = 'w'; set statement_timeout = '500ms'`)
	for range 4 {
		s.exec(insertAt("clock_timestamp()"))
		s.once()
		s.once()
	}
	s.exact()
	s.want(`select (metadata #>> '{suspects,sweep,cuts}')::integer >= 3 from tidemark.worker_cursor where worker = 'w'`, "true")
}
