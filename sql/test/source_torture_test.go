package test

// Many writers of every kind of transaction, and workers all the while: for each safety nothing is lost and nothing is
// doubled, and with a part of its rule taken out the same load shows it.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A flood is writers into births, and workers that tail it.
type flood struct {
	t    *testing.T
	db   *tidemarktest.DB
	late string // an expression: the timestamps that writers give, by chance
	long int    // how many transactions the messages of one writer have
}

// run writes from eight connections and reads from two until enough is committed, then drains.
func (f flood) run(transactions int) (lost, doubled, late int) {
	f.t.Helper()
	random := source(f.t)
	done := make(chan struct{})
	var writing, reading sync.WaitGroup
	for i := range 8 {
		random := rand.New(rand.NewPCG(random.Uint64(), 1))
		writing.Go(func() { f.write(i, random, transactions/8) })
	}
	lates := make(chan int, 2)
	for range 2 {
		random := rand.New(rand.NewPCG(random.Uint64(), 2))
		reading.Go(func() { lates <- f.read(done, random) })
	}
	writing.Wait()
	close(done)
	reading.Wait()
	late = <-lates + <-lates

	s := tailing{open(f.t, f.db, "after")}
	x := torture{t: f.t}
	x.rollBackPrepared(s.conn)
	for range 3 {
		late += s.sweep().Late
	}
	err := s.conn.QueryRow(context.Background(), `select (select count(*) from births b where not exists (select from taken t where t.id = b.id::text)),
		(select count(*) - count(distinct id) from taken)`).Scan(&lost, &doubled)
	if err != nil {
		f.t.Fatal(err)
	}
	var committed, invented int
	err = s.conn.QueryRow(context.Background(), `select (select count(*) from births), (select count(*) from taken t where not exists (select from births b where b.id::text = t.id))`).Scan(&committed, &invented)
	if err != nil || invented > 0 || committed < transactions {
		f.t.Errorf("%d committed, %d that were rolled back were taken, %v", committed, invented, err)
	}
	f.t.Logf("%d rows committed, %d lost, %d doubled, %d late", committed, lost, doubled, late)
	return lost, doubled, late
}

func (f flood) write(id int, random *rand.Rand, transactions int) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, f.db.URL)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	exec := func(sql string) {
		if _, err := conn.Exec(ctx, sql); err != nil {
			f.t.Errorf("writer: %s: %v", sql, err)
		}
	}
	insert := func() {
		if f.late != "" && random.IntN(3) == 0 {
			exec(fmt.Sprintf(`insert into births (born_at) select %s from generate_series(1, %d)`, f.late, 1+random.IntN(4)))
			return
		}
		exec(fmt.Sprintf(`insert into births (name) select 'b' from generate_series(1, %d)`, 1+random.IntN(4)))
	}
	for turn := range transactions {
		if turn%20 == 0 {
			n := 1 + random.IntN(20)
			if id == 0 { // one alone: the horizon is the oldest of all
				n = max(n, f.long)
			}
			exec(message(random, n))
			continue
		}
		exec("begin")
		insert()
		switch random.IntN(8) {
		case 0:
			exec("savepoint s")
			insert()
			exec("rollback to savepoint s")
		case 1, 2:
			exec("savepoint s")
			insert()
			exec("release savepoint s")
		case 3:
			exec(fmt.Sprintf("select pg_sleep(%f)", random.Float64()/20))
			insert()
		}
		gid := fmt.Sprintf("%s-%d-%d", f.db.Name, id, turn)
		switch random.IntN(16) {
		case 0, 1:
			exec("rollback")
		case 2:
			exec("prepare transaction '" + gid + "'")
			if random.IntN(3) == 0 {
				exec("rollback prepared '" + gid + "'")
			} else {
				exec("commit prepared '" + gid + "'")
			}
		default:
			exec("commit")
		}
	}
}

// message is n transactions in one simple-query message. A long one takes longer than the margin, and is between two
// transactions much of the time.
func message(random *rand.Rand, n int) string {
	const insert = "insert into births (name) values ('m');"
	one := []string{
		"begin;" + insert + "commit;",
		"begin;" + insert + "rollback;",
		"begin;" + insert + "commit and chain;" + insert + "commit;",
		"begin;" + insert + "savepoint s;" + insert + "rollback to s;" + insert + "commit;",
		"begin;" + insert + "do 'begin perform 1; end'; commit;",
	}
	var text strings.Builder
	for i := range n {
		if i%300 == 299 {
			text.WriteString("select pg_sleep(0.15);" + strings.Repeat("commit;", 500))
		}
		text.WriteString(one[random.IntN(len(one))])
	}
	return text.String()
}

// read runs passes of every size, with sweeps as often as it may.
func (f flood) read(done <-chan struct{}, random *rand.Rand) (late int) {
	s := tailing{open(f.t, f.db, "reader")}
	for {
		select {
		case <-done:
			return late
		default:
		}
		got, err := s.try(nil, nil, 1+random.IntN(3000))
		if err != nil {
			f.t.Errorf("worker: %v", err)
			return late
		}
		late += got.Late
		if got.Step == "sweep" {
			late += got.Taken
		}
	}
}

func (f flood) prepare(safety, changes string) session {
	s := tail(f.t, f.db, safety, changes)
	s.exec(`create or replace function take(rows births[]) returns jsonb language sql as $$
		insert into taken (id) select id from unnest(rows); select jsonb_build_object('taken', cardinality(rows)) $$`)
	return s.session
}

// The sources of the torture: sweeps come without a pause.
var floods = map[string]struct{ safety, changes, late string }{
	"sequence": {"sequence", "", "now() - random() * interval '1 day'"},
	"clock":    {"clock", `{"margin": "1 second"}`, ""},
	"declared": {"declared", `{"sweep_window": "1 minute", "sweep_every": "1 microsecond"}`, `case when random() < 0.1 then null when random() < 0.1 then 'infinity' else clock_timestamp() - random() * interval '50 seconds' end`},
}

// CU2: nothing lost, nothing doubled.
func TestSourceTorture(t *testing.T) {
	t.Parallel()
	for name, c := range floods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := flood{t, tidemarktest.NewDB(t), c.late, 0}
			s := f.prepare(c.safety, c.changes)
			switch name {
			case "declared":
				s.exec(`alter table births alter born_at set default clock_timestamp()`)
			case "clock":
				s.exec(bornNow)
				f.long = 1500
			}
			lost, doubled, late := f.run(2400)
			for range 8 { // a busy machine leaves the worker few passes
				if name == "clock" || late >= 20 {
					break
				}
				more := 0
				lost, doubled, more = f.run(800)
				late += more
			}
			if name == "clock" { // what is younger than the margin comes now
				f.settle(s)
				_ = s.conn.QueryRow(context.Background(), `select (select count(*) from births b where not exists (select from taken t where t.id = b.id::text)), (select count(*) - count(distinct id) from taken)`).Scan(&lost, &doubled)
			}
			if lost+doubled > 0 {
				t.Errorf("%d lost, %d doubled", lost, doubled)
			}
			if name != "clock" && late < 20 {
				t.Errorf("only %d late: the test did not meet the hazard", late)
			}
			tailing{s}.want(`select kind from tidemark.finding where closed_at is null`)
		})
	}
}

// settle runs passes until the horizon is behind all that is there.
func (f flood) settle(s session) {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); <-poll.C {
		tailing{s}.drain()
		var over bool
		if err := s.conn.QueryRow(context.Background(), `select horizon > (select max(born_at) from births where isfinite(born_at)) from tidemark.worker_cursor where worker = 'w'`).Scan(&over); err != nil {
			f.t.Fatal(err)
		}
		if over {
			return
		}
	}
	f.t.Error("the horizon does not come forward")
}

// The same load with a part of the rule taken out loses or doubles rows.
func TestSourceTortureCatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flood  string
		weaken func(s session)
		long   int
	}{
		"sequence: a plain watermark": {"sequence", func(s session) {
			s.rewrite("source_numbers", "c.holes := c.holes - seen + (passed - seen);", "c.holes := '{}';")
		}, 0},
		"clock: query_start ignored": {"clock", func(s session) {
			s.rewrite("oldest_transaction", "then a.query_start", "then null")
			s.exec(bornNow)
		}, 3000},
		"declared: no sweep": {"declared", func(s session) {
			s.rewrite("source_next", "when sweeps and c.phase <> 'seeding'", "when false")
			s.exec(`update tidemark.worker_cursor set phase = 'incremental' where worker = 'w'`)
		}, 0},
		"declared: no ledger": {"declared", func(s session) {
			s.exec(`create function forget() returns trigger language plpgsql as 'begin return null; end'; create trigger forget before insert on tidemark.source_ledger for each row execute function forget()`)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := flood{t, tidemarktest.NewDB(t), floods[c.flood].late, c.long}
			s := f.prepare(floods[c.flood].safety, floods[c.flood].changes)
			s.exec(`alter table births alter born_at set default clock_timestamp()`) // also of declared
			c.weaken(s)
			for range 8 { // a busy machine leaves the worker few passes
				if lost, doubled, _ := f.run(800); lost+doubled > 0 {
					return
				}
			}
			t.Error("the checker did not notice")
		})
	}
}

// Outside of its contract clock loses rows, and without a declared sweep nothing reports it: a row that says it was born
// before its transaction began.
func TestSourceClockIsNotForBackDatedRows(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(insertBirths)
	s.drain()
	s.exec(insertAt("now() - interval '1 hour'"))
	s.sweep()
	s.want(`select count(*) from births b where not exists (select from taken t where t.id = b.id::text)`, "1")
	s.exec(`select tidemark.source_rewind('w', 'births', 'mend', now() - interval '2 hours')`)
	s.exec(`truncate taken`)
	s.drain()
	s.exact()
}
