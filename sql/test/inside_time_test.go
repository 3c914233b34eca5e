package test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// hanging is live, with a receiver that does what the table slow says for an event: loop, lock, or sleep for so many
// milliseconds; and with a second route, other, whose target is well. A delivery may take 200 ms.
func hanging(t *testing.T, db *tidemarktest.DB, app string) session {
	t.Helper()
	w := live(t, db)
	w.exec(`
create table slow (n int primary key, how text not null);
create table locked (id int primary key);
insert into locked values (1);
create or replace function receive(event jsonb) returns void language plpgsql as $$
declare
    how text := (select s.how from slow s where s.n = (event -> 'payload' ->> 'n')::int);
begin
    insert into received (event_id, n, key) values ((event ->> 'event_id')::uuid, (event -> 'payload' ->> 'n')::int, event ->> 'key');
    case
        when how = 'loop' then
            loop
                null;
            end loop;
        when how = 'lock' then perform from locked for update;
        when how is not null then perform pg_sleep(how::float8 / 1000);
        else null;
    end case;
end $$;
create table other (n int);
create function take(event jsonb) returns void language sql as $$ insert into other values ((event -> 'payload' ->> 'n')::int) $$;
select tidemark.route_set('other', '{"domain": "test", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false}')`)
	w.exec(`select tidemark.route_set('app', '{"timeout": "200 milliseconds"` + app + `}')`)
	return w
}

func (s session) emitKeys(n int, keys string) {
	s.t.Helper()
	s.exec(`select tidemark.emit('test', 'tick', jsonb_build_object('n', n), key => substr($2, n % length($2) + 1, 1)) from generate_series(1, $1::int) n`, n, keys)
}

// passes runs the worker until nothing is due, and returns how often.
func (s session) passes() int {
	s.t.Helper()
	const limit = 5000
	for n := 1; ; n++ {
		got := s.passLimit(limit)
		if got.Status != "ran" {
			s.t.Fatalf("%+v", got)
		}
		if got.Events < limit && one[bool](s, `select not exists (select from tidemark.pending where next_attempt_at <= clock_timestamp())`) {
			return n
		}
		if n == 200 {
			s.t.Fatal("it never ends")
		}
	}
}

func upTo(n int, but ...int) (rest []int) {
	for i := 1; i <= n; i++ {
		if !slices.Contains(but, i) {
			rest = append(rest, i)
		}
	}
	return rest
}

// An event whose target loops or sleeps for ever is found by a few passes and is a dead letter; those of its key and of
// others go on, in order, and so does the other route, also while the culprit is looked for.
func TestTargetHangs(t *testing.T) {
	t.Parallel()
	for how, ordering := range map[string]string{"loop": "key", "3600000": "none"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := hanging(t, tidemarktest.NewDB(t), `, "ordering": "`+ordering+`"`)
			w.exec(`insert into slow values (20, $1)`, how)
			w.exec(`set statement_timeout = '3s'`)
			w.emitKeys(50, "ab")
			first := w.pass()
			equal(t, "first pass", first.Decided, map[string]int{"pending": 100})
			w.wantRows(`select concat_ws(' ', r.route_code, coalesce(p.suspects::text, '-'), count(*)) from tidemark.pending p join tidemark.outbound_route r on r.id = p.route_id
				group by r.route_code, p.suspects order by 1`, "app 50 50", "other - 50")
			w.wantReceived()
			w.pass()
			w.wantRows(`select count(*)::text from other`, "50")
			w.wantRows(letters, "app 20 57014 2 open")
			if n := w.passes(); n > 3 {
				t.Errorf("%d more passes", n)
			}
			w.wantReceived(upTo(50, 20)...)
			w.wantRows(letters, "app 20 57014 2 open")
			w.wantRows(`select error_detail from tidemark.dead_letter where error_detail not like 'it took longer than 00:00:00.2: %'`)
			w.emitKeys(2, "ab")
			w.pass()
			w.wantRows(`select count(*)::text from received`, "51")
			w.wantSound()
		})
	}
}

// A target that is slow and well runs into the time-out as a wave, and never as an event: all is sent, nothing is a
// dead letter.
func TestTargetIsSlow(t *testing.T) {
	t.Parallel()
	w := hanging(t, tidemarktest.NewDB(t), `, "ordering": "key"`)
	w.exec(`insert into slow select n, '3' from generate_series(1, 1000) n`)
	w.exec(`set statement_timeout = '3s'`)
	w.emitKeys(1000, "abc")
	w.passes()
	w.wantReceived(upTo(1000)...)
	w.wantRows(letters)
	w.wantRows(`select count(*)::text from other`, "1000")
	w.wantSound()
}

// A delivery waits for a lock as long as a delivery may take, without any statement_timeout. The event that
// waits is tried again by the route's policy, and no sooner is one of its key; others go on.
func TestTargetWaitsForALock(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, holder := hanging(t, db, `, "ordering": "key", "retry_policy": {"base_seconds": 3600, "max_seconds": 3600, "jitter": 0, "max_attempts": 3}`), open(t, db, "holder")
	holder.begin()
	holder.exec(`select from locked for update`)
	w.exec(`insert into slow values (5, 'lock')`)
	w.emitKeys(10, "ab")
	w.passes()
	w.wantReceived(1, 2, 3, 4, 6, 8, 10)
	w.wantRows(`select concat_ws(' ', seq, error_count, next_attempt_at = 'infinity') from tidemark.pending order by seq`,
		"5 1 f", "7 0 t", "9 0 t")
	w.wantRows(`select count(*)::text from other`, "10")
	w.emitKeys(2, "ab")
	w.passes()
	w.wantRows(`select count(*)::text from received`, "8")

	const now = `update tidemark.pending set next_attempt_at = clock_timestamp() where error_count > 0`
	w.exec(now)
	w.passes()
	w.wantRows(`select concat_ws(' ', seq, error_count) from tidemark.pending where error_count > 0`, "5 2")
	holder.rollback()
	w.exec(now)
	w.passes()
	w.wantRows(`select n::text from received where key = 'b' order by at`, "1", "3", "5", "7", "9", "1")
	w.wantRows(letters)

	// After the last attempt it is a dead letter.
	w.exec(`select tidemark.route_set('app', '{"retry_policy": {"max_attempts": 1}}')`)
	holder.begin()
	holder.exec(`select from locked for update`)
	w.emitKeys(5, "ab")
	w.passes()
	w.wantRows(letters, "app 17 55P03 2 open")
	w.wantRows(`select seq::text from tidemark.pending`)
	w.wantSound()
}

// What an operator cancels has the same code, and is not the event's fault. It ends the call, and the event is tried again.
func TestTargetIsCancelled(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator := live(t, db), open(t, db, "operator")
	w.emit(1)
	w.slowTarget()
	w.exec(`set statement_timeout = '1h'`)
	w.exec(`update tidemark.outbound_route set timeout = '1 hour'`)
	operator.exec(`select pg_advisory_lock(1)`)
	result := later[string](w, `select tidemark.route_worker_run()::text`)
	operator.waitsFor(w)
	operator.exec(`select pg_cancel_backend($1)`, w.conn.PgConn().PID())
	if _, err := result(); err != nil {
		t.Fatal(err)
	}
	w.wantReceived()
	w.wantRows(`select concat_ws(' ', seq, error_count, left(last_error, 5)) from tidemark.pending`, "1 1 57014")
	operator.exec(`select pg_advisory_unlock(1)`)
	w.exec(`update tidemark.pending set next_attempt_at = clock_timestamp()`)
	w.pass()
	w.wantReceived(1)
	w.wantRows(letters)
}

// A replay that hangs has failed; what comes behind it in the call is not tried, since nothing would end it.
func TestReplayHangs(t *testing.T) {
	t.Parallel()
	w := hanging(t, tidemarktest.NewDB(t), "")
	w.exec(`alter table received add constraint none check (n < 0)`)
	w.emitKeys(3, "a")
	w.passes()
	w.exec(`alter table received drop constraint none; insert into slow values (2, 'loop'); set statement_timeout = '2s'`)
	w.wantRows(`select concat_ws(' ', id, attempt_no, outcome, reason) from tidemark.dead_letter_replay_many()`, "1 2 sent", "2 2 failed 57014", "3 1 pending busy")
	w.wantReceived(1)
	w.exec(`delete from slow`)
	w.wantRows(`select concat_ws(' ', id, attempt_no, outcome, reason) from tidemark.dead_letter_replay_many()`, "2 3 sent", "3 2 sent")
	w.wantReceived(1, 2, 3)
}

// A statement takes as many events as fit into batch.max_bytes, which is 65536 at least, and one event at least.
func TestWavesAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ most, waves int }{{100, 12}, {100000, 6}, {1 << 20, 1}} {
		t.Run(fmt.Sprint(c.most), func(t *testing.T) {
			t.Parallel()
			w := live(t, tidemarktest.NewDB(t))
			w.exec(`insert into tidemark.setting (key, value) values ('batch.max_bytes', $1) on conflict (key) do update set value = excluded.value`, fmt.Sprint(c.most))
			w.exec(`select tidemark.emit('test', 'tick', jsonb_build_object('n', n, 'text', (select string_agg(md5(n::text || i), '') from generate_series(1, 1250) i)))
				from generate_series(1, 12) n`)
			w.pass()
			w.wantReceived(upTo(12)...)
			// Each statement has a subtransaction of its own.
			equal(t, "statements", one[int](w, `select count(distinct xmin::text) from received`), c.waves)
		})
	}
}

// A pass without statement_timeout says that nothing would end a target that hangs, once a session.
func TestPassWithoutTimeout(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	w.emit(1)
	w.exec(`set client_min_messages = error`)
	w.begin()
	w.pass()
	w.wantRows(`select current_setting('tidemark.told_of_time')`, "yes")
	w.rollback()
	w.exec(`set statement_timeout = '1min'`)
	w.pass()
	w.wantRows(`select coalesce(current_setting('tidemark.told_of_time', true), '')`, "")
}
