package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// lags is how far worker w is behind in minutes, and what each view says of it: worker_summary, worker_health, the row
// "backlog" of queue_health, and the open finding.
const lags = `select s.seconds / 60, s.status, h.status, h.behind_seconds / 60, q.status, q.age_seconds / 60,
		(extract(epoch from c.lag) / 60)::int, (select f.severity from tidemark.finding f where f.kind = 'cursor_lag' and f.closed_at is null)
	from tidemark.worker_summary s
	join tidemark.worker_health h using (worker, source, shard)
	join tidemark.source_cursor c using (worker, source, shard)
	join tidemark.queue_health q on q.kind = 'backlog' and q.name = concat_ws('/', s.worker, s.source, s.shard)
	where s.worker = 'w'`

func (s tailing) wantLag(want string) {
	s.t.Helper()
	s.exec(`select tidemark.maintain()`)
	s.want(lags, want)
}

// A source whose last row is old, and read, is not behind.
func TestLagOfAQuietTable(t *testing.T) {
	t.Parallel()
	for _, safety := range []string{"clock", "declared", "sequence"} {
		t.Run(safety, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), safety, "")
			s.exec(insertAt("now() - interval '480 hours'"))
			s.drain()
			s.wantLag("0 idle idle 0 ok 0 0 -")
			s.want(findings)
			// Nor is it, because rows without a time of their own are left to the sweep.
			if safety == "declared" {
				s.exec(insertAt("'infinity'") + "; " + insertAt("null"))
				s.wantLag("0 idle idle 0 ok 0 0 -")
			}
		})
	}
}

// Rows that were committed and not read are behind by the age of the first, whether a pass has seen them or not.
func TestLagOfUnreadRows(t *testing.T) {
	t.Parallel()
	for _, safety := range []string{"clock", "declared", "sequence"} {
		t.Run(safety, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), safety, "")
			s.exec(insertAt("now() - interval '480 hours'"))
			s.drain()
			s.exec(`insert into births (born_at) select now() - interval '5 minutes' + n * interval '10 ms' from generate_series(1, 4000) n`)
			s.wantLag("5 behind behind 5 warn 5 5 warning")
			s.exec(`update births set born_at = born_at - interval '20 minutes' where born_at > now() - interval '1 hour'`)
			s.wantLag("25 behind behind 25 bad 25 25 high")
			// In the middle of them the first that is left counts.
			s.exec(`update births set born_at = now() - interval '2 minutes' where id > 2001`)
			s.once(nil, nil, 2000)
			s.wantLag("2 behind behind 2 warn 2 2 warning")
			// What is closed on purpose is behind on purpose.
			s.exec(`select tidemark.gate_set('worker.w.enabled', false)`)
			s.wantLag("2 closed closed 2 ok 2 2 -")
			s.exec(`select tidemark.gate_set('worker.w.enabled', true)`)
			s.drain()
			s.wantLag("0 idle idle 0 ok 0 0 -")
		})
	}
}

// A row that is kept from being read, by a transaction that is older than it, is unread all the same.
func TestLagOfRowsAboveTheHorizon(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, other := tail(t, db, "clock", ""), open(t, db, "other")
	s.drain()
	other.begin()
	other.exec(`create temporary table kept ()`)
	s.exec(insertAt("now() + interval '1 microsecond'"))
	s.drain()
	// As ten minutes later.
	s.exec(`update births set born_at = now() - interval '2 minutes'; update tidemark.worker_cursor set horizon = now() - interval '10 minutes' where worker = 'w'`)
	s.want(`select c.horizon is null, l.unread, l.seconds / 60 from tidemark.cursor_lag l join tidemark.worker_cursor c using (worker, source, shard) where c.worker = 'w'`, "false true 2")
}

// A number that was committed late is unread until it is read.
func TestLagOfLateNumbers(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, late := tail(t, db, "sequence", ""), open(t, db, "late")
	late.begin()
	late.exec(insertAt("now() - interval '7 minutes'"))
	s.exec(insertAt("now()"))
	s.drain()
	s.wantLag("0 idle idle 0 ok 0 0 -")
	late.commit()
	s.wantLag("7 behind behind 7 warn 7 7 warning")
	s.drain()
	s.wantLag("0 idle idle 0 ok 0 0 -")
}

// Without a timestamp the age is how long unread rows have been seen, by what maintain notes: until those of then are read.
func TestLagWithoutATimestamp(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", `{"timestamp_column": null}`)
	s.drain()
	s.exec(`insert into births (name) select 'x' from generate_series(1, 10)`)
	s.want(`select s.seconds, s.status from tidemark.worker_summary s where s.worker = 'w'`, "0 behind")
	s.wantLag("0 behind behind 0 ok 0 0 -")
	s.exec(`update tidemark.source_unread set since = since - interval '5 minutes'`)
	s.wantLag("5 behind behind 5 warn 5 5 warning")
	s.exec(`insert into births (name) select 'x' from generate_series(1, 10)`)
	s.once(nil, nil, 5)
	s.wantLag("5 behind behind 5 warn 5 5 warning")
	s.once(nil, nil, 5)
	s.want(`select s.seconds, s.status from tidemark.worker_summary s where s.worker = 'w'`, "0 behind")
	s.wantLag("0 behind behind 0 ok 0 0 -")
	s.drain()
	s.wantLag("0 idle idle 0 ok 0 0 -")
}

// What was inserted is in the log, so that tells it.
func TestLagOfCapturedRows(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "capture", "")
	s.capture()
	s.drain()
	s.wantLag("0 idle idle 0 ok 0 0 -")
	s.exec(insertAt("now()"))
	s.exec(`set session_replication_role = replica; update tidemark.outbox set created_at = clock_timestamp() - interval '5 minutes'; reset session_replication_role`)
	s.exec(`update tidemark.source_unread set noted_at = noted_at - interval '6 minutes'`)
	s.wantLag("5 behind behind 5 warn 5 5 warning")
	s.drain()
	s.wantLag("0 idle idle 0 ok 0 0 -")
}

// A role that may not read the table is told what maintain has noted last, and nothing where that is old.
func TestLagForReaders(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(insertAt("now() - interval '480 hours'"))
	s.drain()
	asReader := func(want string) {
		t.Helper()
		s.exec(`set role tidemark_reader`)
		s.want(lags, want)
		s.exec(`reset role`)
	}
	asReader("- unknown unknown - unknown - - -")
	s.exec(`select tidemark.maintain()`)
	asReader("0 idle idle 0 ok 0 0 -")
	s.exec(`insert into births (born_at) select now() - n * interval '1 minute' from generate_series(4, 6) n`)
	s.exec(`select tidemark.maintain()`)
	asReader("6 behind behind 6 warn 6 6 warning")
	s.once(nil, nil, 2)
	asReader("5 behind behind 5 warn 5 5 warning")
	s.drain()
	asReader("0 idle idle 0 ok 0 0 warning")
	s.exec(`update tidemark.source_unread set noted_at = noted_at - interval '16 minutes'`)
	asReader("- unknown unknown - unknown - - warning")
	// Nor do readers run what the owner of the table has put before it.
	s.exec(`grant select on births to tidemark_reader; alter table births enable row level security;
		create function policy() returns boolean language plpgsql as $$ begin raise 'it runs'; end $$; create policy p on births using (policy())`)
	asReader("- unknown unknown - unknown - - warning")
}

// The caller waits for no lock of a table.
func TestLagOfALockedTable(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, other := tail(t, db, "sequence", ""), open(t, db, "other")
	s.drain()
	s.exec(`select tidemark.maintain()`)
	other.begin()
	other.exec(`lock table births`)
	s.want(`select seconds, status from tidemark.worker_summary where worker = 'w'`, "0 idle")
	// Nor does it keep a lock itself.
	other.commit()
	s.begin()
	s.wantLag("0 idle idle 0 ok 0 0 -")
	s.want(`select count(*) from pg_locks where pid = pg_backend_pid() and relation = 'births'::regclass`, "0")
	s.commit()
}

// One row of the table is read, of a million that wait, and of a million that were read.
func TestLagReadsNoWholeTable(t *testing.T) {
	t.Parallel()
	for _, safety := range []string{"clock", "sequence"} {
		t.Run(safety, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), safety, "")
			s.exec(`insert into births (born_at) select now() - interval '1 hour' from generate_series(1, 20000)`)
			const read = `select coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint from pg_stat_user_tables where relname = 'births'`
			look := func() {
				t.Helper()
				s.exec(`select pg_stat_force_next_flush()`)
				before := one[int64](s.session, read)
				s.exec(`select tidemark.maintain()`)
				s.exec(`select * from tidemark.queue_health`)
				s.exec(`select pg_stat_force_next_flush()`)
				if got := one[int64](s.session, read) - before; got > 10 {
					t.Errorf("%d rows were read", got)
				}
			}
			look()
			s.drain(nil, nil, 20000)
			look()
		})
	}
}

// Only what is open is counted: a letter that was discarded is done with.
func TestSummaryCountsOpenLetters(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`create or replace function take(rows births[]) returns jsonb language plpgsql as $$ begin raise sqlstate '22023' using message = 'no'; end $$`)
	s.exec(`insert into births (name) values ('a'), ('b')`)
	s.retried()
	const letters = `select s.open_dead_letters, h.open_dead_letters from tidemark.worker_summary s join tidemark.worker_health h using (worker, source, shard) where s.worker = 'w'`
	s.want(letters, "2 2")
	s.exec(`select tidemark.dead_letter_discard(min(id), 'a test') from tidemark.dead_letter`)
	s.want(letters, "1 1")
}
