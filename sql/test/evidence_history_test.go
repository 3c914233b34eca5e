package test

import (
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// historySums shows all that the history of a route has.
const historySums = `select concat_ws(' ', sum(sent), sum(retried), sum(failed), sum(recorded), count(*)) from tidemark.history(`

// What a route came to is added up by the minute: sent, tried again, failed, and recorded only.
func TestHistory(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}')`)
	for n := range 5 {
		w.emit(n + 1)
	}
	w.exec(`select tidemark.claim('default', 'a', '10 minutes')`)
	settle := func(no int, results string) {
		w.exec(`select tidemark.pass_settle('default', 1, r.batch::tidemark.batch, r.evidence::tidemark.evidence[], `+results+`::tidemark.result[], $1)
			from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}') r where r.batch is not null`, no)
	}
	// 1 and 2 are sent, 3 is tried again, 4 fails, 5 is not tried.
	settle(1, `array[row(1, true, 'sent', null, null, '{[1,3)}', 0), row(1, true, 'pending', '503', 'later', '{[3,4)}', 0),
		row(1, true, 'failed', '400', 'never', '{[4,5)}', 0), row(1, true, 'pending', 'busy', null, '{[5,6)}', 0)]`)
	w.wantRows(historySums+`'app')`, "2 1 1 0 60")
	// 3 fails again, 5 is sent.
	settle(2, `array[row(1, false, 'pending', '503', 'later', '{[3,4)}', 0), row(1, false, 'sent', null, null, '{[5,6)}', 0)]`)
	w.wantRows(historySums+`'app')`, "3 2 1 0 60")
	// However many settles: one row a minute. The test may run across the end of one.
	w.wantRows(`select (count(*) between 1 and 2)::text from tidemark.route_minute`, "true")
	w.exec(`select tidemark.route_set('other', '{"domain": "test", "target_kind": "sql", "target_ref": "public.receive"}')`)
	w.wantRows(historySums+`'other')`, "0 0 0 0 60")
	w.wantRows(historySums+`)`, "3 2 1 0 60")

	w.refused("TM004", `there is no route "none"`, `select * from tidemark.history('none')`)
	w.refused("TM005", "since 00:30:00 with step 01:00:00: the history is by the minute, and of 7 days", `select * from tidemark.history(null, '30 min', '1 h')`)
	w.refused("TM005", "since 8 days with step 01:00:00: the history is by the minute, and of 7 days", `select * from tidemark.history(null, '8 days', '1 h')`)
	w.refused("TM005", "since 7 days by 00:01:00 is more than 1500 steps", `select * from tidemark.history(null, '7 days')`)
}

// A replay adds to the history as a delivery does, and an event that the log has lost is one that failed.
func TestHistoryOfReplaysAndMissingEvents(t *testing.T) {
	t.Parallel()
	w := past(t, tidemarktest.NewDB(t))
	w.wantRows(historySums+`'app')`, "4 0 0 4 60")
	w.exec(`select tidemark.route_replay('app', 'again', from_seq => 1)`)
	w.pass()
	w.pass()
	w.wantRows(historySums+`'app')`, "12 0 0 4 60")

	lost := live(t, tidemarktest.NewDB(t))
	withoutPartition(t, lost, `select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}')`)
	lost.exec(`select tidemark.settle_missing('default')`)
	lost.wantRows(historySums+`'app')`, "0 0 300 0 60")
}

// Maintain notes what waits and what was emitted, once a minute; sums up what is older than a day; forgets what is older than a week.
func TestHistoryIsKept(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}')`)
	w.exec(`insert into tidemark.log_minute select date_bin('1 minute', now(), 'epoch') - interval '5 minutes', 0`)
	w.exec(`select tidemark.emit('test', 'tick') from generate_series(1, 8)`)
	w.pass()
	w.wantRows(`select coalesce(max(waiting)::text, 'not known') from tidemark.history()`, "0") // of the minute of the sample
	for range 2 {
		w.exec(`select tidemark.maintain()`)
	}
	w.wantRows(`select concat_ws(' ', max(waiting), sum(emitted)) from tidemark.history('app')`, "8")
	// 8 numbers in the 4 minutes from the sample to the one that ended.
	w.wantRows(`select concat_ws(' ', max(waiting), max(emitted)) from tidemark.history()`, "8 2")

	// Two days and eight days ago, at each of 90 minutes. The hour is whole once its minutes are.
	w.exec(`insert into tidemark.route_minute (route_id, at, sent, waiting)
		select r.id, date_bin('1 hour', now(), 'epoch') - d * interval '1 day' + n * interval '1 minute', 1, n
		from tidemark.outbound_route r, unnest('{2,8}'::int[]) d, generate_series(0, 89) n`)
	w.wantRows(`select detail from tidemark.maintain() where object = 'route_minute'`, "176 minutes, by hour")
	w.wantRows(`select concat_ws(' ', sent, waiting) from tidemark.route_minute where route_id > 0 and at < now() - interval '1 day' order by at`, "60 59", "30 89")
	w.wantRows(`select concat_ws(' ', sent, waiting) from tidemark.history('app', '7 days', '1 hour') where sent > 0`, "60 59", "30 89")
	w.exec(`select tidemark.maintain()`)
	w.wantRows(`select concat_ws(' ', sent, waiting) from tidemark.route_minute where route_id > 0 and at < now() - interval '1 day' order by at`, "60 59", "30 89")
}

// A reader sees the history, and only the schema writes it.
func TestHistoryIsRead(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`set role tidemark_reader`)
	w.wantRows(`select count(*)::text from tidemark.history()`, "60")
	w.refused("42501", "permission denied for table route_minute", `delete from tidemark.route_minute`)
}

// A day is 24 hours wherever the session is: in a zone whose clocks were set since, each step has what it has in UTC.
func TestHistoryAcrossSummerTime(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`insert into tidemark.route_minute (route_id, at, sent)
		select r.id, date_bin('1 day', now(), 'epoch') - d * interval '1 day' + interval '1 hour', d from tidemark.outbound_route r, generate_series(1, 6) d`)
	// A rule of POSIX: the day of the year, so that it was three days ago.
	w.exec(`select set_config('timezone', format('AAA0BBB,%s,%s', extract(doy from now()) - 3 + case when extract(doy from now()) <= 3 then 365 else 0 end,
		(extract(doy from now())::int + 180) % 365), false)`)
	w.wantRows(`select (now()::timestamp - (now() - interval '4 days')::timestamp <> interval '96 hours' or now() - (now() - interval '4 days') <> interval '96 hours')::text`, "true")
	w.wantRows(`select sent::text from tidemark.history('app', '7 days', '1 day') where sent > 0`, "6", "5", "4", "3", "2", "1")
}

// Maintain adds up all routes of a minute once no transaction can add to it any more. Until then, and of routes that had nothing
// yet, the history is the same as the sum of the routes.
func TestHistoryOfAllRoutes(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, late := live(t, db), open(t, db, "late")
	w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}'),
		tidemark.route_set('other', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}')`)
	add := `insert into tidemark.route_minute (route_id, at, sent, waiting)
		select r.id, date_bin('1 minute', now(), 'epoch') - n * interval '1 minute', 1, 3 from tidemark.outbound_route r, unnest($1::int[]) n where r.route_code = $2`
	upto := `select coalesce(round(extract(epoch from date_bin('1 minute', now(), 'epoch') - max(at)) / 60), -1)::int from tidemark.route_minute where route_id = 0`
	w.exec(`create table began as select now() as at`)
	// Of two days ago, of some minutes ago, and of one that no minute of the log has ended yet.
	w.exec(add, []int{2 * 24 * 60, 2*24*60 - 1, 20, 7, 3}, "app")
	late.begin()
	late.exec(add, []int{20, 6}, "other")
	w.exec(`insert into tidemark.log_minute select date_bin('1 minute', now(), 'epoch') - interval '5 minutes', 0, pg_current_xact_id()`)

	sums := func(sent, hours string) {
		w.t.Helper()
		w.wantRows(`select concat_ws(' ', sum(sent), max(waiting)) from tidemark.history()`, sent)
		w.wantRows(`select concat_ws(' ', sum(sent), max(waiting)) from tidemark.history(null, '7 days', '1 hour')`, hours)
	}
	w.exec(`select tidemark.maintain()`)
	w.wantRows(`select count(*)::text from tidemark.route_minute where route_id = 0`, "0") // another may still add to them
	sums("3 3", "5 3")
	late.commit()
	sums("5 6", "7 6")

	// Once it is over, and all older ones that other tests have in this server. At most a day a call, from the first that has anything.
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); one[int](w, upto) < 0; <-poll.C {
		if time.Now().After(deadline) {
			t.Fatal("maintain does not add them up")
		}
		w.exec(`select tidemark.maintain()`)
	}
	for range 3 {
		w.exec(`select tidemark.maintain()`)
		sums("5 6", "7 6")
	}
	w.wantRows(`select concat_ws(' ', sum(sent), max(waiting)) from tidemark.route_minute, began
		where route_id = 0 and route_minute.at <= date_bin('1 minute', began.at, 'epoch') - interval '5 minutes'`, "6 6")
	// Those of two days ago are of an hour now, as each route's own.
	w.wantRows(`select concat_ws(' ', route_id = 0, sum(sent), bool_and(at = date_bin('1 hour', at, 'epoch')))
		from tidemark.route_minute where at < now() - interval '25 hours' group by route_id order by 1`, "f 2 t", "t 2 t")
	w.exec(add, []int{0}, "other")
	sums("6 6", "8 6")
}
