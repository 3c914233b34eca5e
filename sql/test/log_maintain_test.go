package test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// maintain calls it and returns what it says of each object, without the schema's name.
func (s session) maintain() []string {
	s.t.Helper()
	return column[string](s, `select concat_ws(' ', action, replace(object, 'tidemark.', ''), detail) from tidemark.maintain()`)
}

func (s session) wantMaintain(want ...string) {
	s.t.Helper()
	got := s.maintain()
	for i, line := range got {
		if i < len(want) && strings.HasPrefix(line, want[i]) {
			got[i] = want[i]
		}
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("maintain\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// next makes the next number n.
func (s session) next(n int) {
	s.t.Helper()
	s.exec(`select setval('tidemark.outbox_seq_seq', $1, false)`, n)
}

func (s session) set(key, value string) {
	s.t.Helper()
	s.exec(`update tidemark.setting set value = $2 where key = $1`, key, value)
}

// drain runs passes until no hole is open: how a cursor comes past a gap of a million.
func (s session) drain() {
	s.t.Helper()
	for range 3 {
		s.pass()
	}
	s.wantHoles("{}")
}

const parts = `select concat_ws(' ', replace(partition::text, 'tidemark.', ''), first_seq, end_seq) from tidemark.partitions($1)`

func (s session) partitions(table string) []string {
	s.t.Helper()
	return column[string](s, strings.Replace(parts, "$1", "'tidemark."+table+"'", 1))
}

func TestMaintainHasNothingToDo(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.wantMaintain()
	equal(t, "partitions", s.partitions("outbox"), []string{
		"outbox_p0 0 1000000", "outbox_p1000000 1000000 2000000", "outbox_p2000000 2000000 3000000", "outbox_rest",
	})
}

// EV6: partitions ahead, each like the first.
func TestMaintainKeepsPartitionsAhead(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.next(1_999_999)
	w.emit(1)
	w.wantMaintain("created outbox_p3000000 for numbers 3000000 to 3999999", "kept outbox_p0 needed from number 1 by the cursor of worker default",
		"kept outbox_p1000000 needed from number 1 by the cursor of worker default")
	w.emit(2) // number 2,000,000
	w.set("outbox.partition_events", "5000")
	w.set("outbox.partitions_ahead", "3")
	w.wantMaintain("created outbox_p4000000 for numbers 4000000 to 4004999", "created outbox_p4005000 for numbers 4005000 to 4009999",
		"kept outbox_p0 ", "kept outbox_p1000000 ")
	w.wantMaintain("kept outbox_p0 ", "kept outbox_p1000000 ")
	for _, table := range []string{"outbox", "decision", "attempt"} {
		equal(t, table, w.partitions(table)[3:], []string{
			table + "_p3000000 3000000 4000000", table + "_p4000000 4000000 4005000", table + "_p4005000 4005000 4010000", table + "_rest",
		})
	}
	w.wantAlike()
	w.next(4_004_999)
	w.emit(3)
	w.emit(4)
	w.wantRows(`select tableoid::regclass::text || ' ' || seq from tidemark.outbox where seq > 3000000 order by seq`, "tidemark.outbox_p4000000 4004999", "tidemark.outbox_p4005000 4005000")
	w.refused("TM010", "", `delete from tidemark.outbox_p4005000`)
	w.drain()
	w.wantReceived(1, 2, 3, 4)
}

// wantAlike wants all partitions of a table to be made alike, in whatever way they came to be.
func (s session) wantAlike() {
	s.t.Helper()
	s.wantRows(`
select distinct i.inhparent::regclass::text from pg_inherits i join pg_class k on k.oid = i.inhrelid
where i.inhparent in ('tidemark.outbox'::regclass, 'tidemark.decision'::regclass, 'tidemark.attempt'::regclass)
group by i.inhparent, jsonb_build_array(pg_get_userbyid(k.relowner), k.relacl,
	(select jsonb_agg(jsonb_build_array(a.attname, a.atttypid, a.attnotnull, a.attstorage, a.attcompression, a.attidentity) order by a.attnum)
	 from pg_attribute a where a.attrelid = k.oid and a.attnum > 0),
	(select jsonb_agg(d.def order by d.def) from (
		select x.indisprimary || substring(pg_get_indexdef(x.indexrelid) from ' USING .*') as def from pg_index x where x.indrelid = k.oid) d),
	(select jsonb_agg(d.def order by d.def) from (
		select pg_get_constraintdef(c.oid) as def from pg_constraint c where c.conrelid = k.oid and c.contype <> 'n') d),
	(select jsonb_agg(g.tgname || g.tgenabled::text order by g.tgname) from pg_trigger g where g.tgrelid = k.oid))
having count(*) < (select count(*) from pg_inherits o where o.inhparent = i.inhparent)`)
}

// maintain keeps what a cursor may still read, and says why: it names the cursor with the lowest number first.
func TestMaintainKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, late := live(t, db), open(t, db, "late")
	w.exec(`select tidemark.route_set('hook', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "enabled": true, "dry_run": false}')`)
	w.set("outbox.retention", "0")
	late.begin()
	late.emit(1)
	w.next(1_000_000)
	w.emit(2)
	w.wantMaintain("created outbox_p3000000 ", "kept outbox_p0 needed from number 1 by the cursor of worker default")
	w.drainButFor("{[1,1000000)}")
	w.wantMaintain("kept outbox_p0 needed from number 1 by the cursor of worker default")
	late.commit()
	w.drain()
	w.wantReceived(2, 1)

	w.wantMaintain("kept outbox_p0 needed from number 1 by a pending delivery")
	w.exec(`delete from tidemark.pending where seq = 1`)
	w.exec(`select tidemark.worker_set('another', starts => 'start')`)
	w.wantMaintain("kept outbox_p0 needed from number 1 by the cursor of worker another")
	w.exec(`update tidemark.worker_cursor set watermark_id = '999998' where worker = 'another'`)
	w.wantMaintain("kept outbox_p0 needed from number 999999 by the cursor of worker another")
	w.exec(`update tidemark.worker_cursor set watermark_id = '999999' where worker = 'another'`)
	w.set("outbox.retention", "30 days")
	w.wantMaintain("kept outbox_p0 its newest event is from " + one[string](w, `select date_trunc('second', created_at)::text from tidemark.outbox where seq = 1`) + ", the retention is 30 days")

	w.set("outbox.retention", "0")
	w.wantMaintain("dropped outbox_p0 numbers 0 to 999999, with their evidence")
	w.wantMaintain()
	w.wantRows(`select relname::text from pg_class where relname like '%\_p0'`)
	w.wantRows(`select seq::text from tidemark.outbox`, "1000000")
	w.wantRows(`select concat_ws(' ', seq, route_code, outcome) from tidemark.route_attempt order by 1`, "1000000 app sent", "1000000 hook pending")
	w.wantSound()
	w.emit(3)
	w.drain()
	w.wantReceived(2, 1, 3)
}

func (s session) drainButFor(holes string) {
	s.t.Helper()
	s.pass()
	s.pass()
	s.wantHoles(holes)
}

// The numbers that the cursor looks out for may be the only reason.
func TestMaintainKeepsHoles(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, late := live(t, db), open(t, db, "late")
	w.set("outbox.retention", "0")
	w.next(500_000)
	late.begin()
	late.emit(1)
	w.next(1_000_000)
	w.emit(2)
	w.drainButFor("{[1,1000000)}")
	late.commit()
	w.maintain()
	for _, hole := range []string{"holes", "fenced"} {
		w.exec(`update tidemark.worker_cursor set holes = '{}', fenced = '{}'`)
		w.exec(`update tidemark.worker_cursor set ` + hole + ` = '{[400000,500001)}'`)
		w.wantMaintain("kept outbox_p0 needed from number 400000 by the cursor of worker default")
	}
}

// The replay of a dead letter has its snapshot: it needs no row of the log.
func TestMaintainDropsWhatOnlyAReplayNeeds(t *testing.T) {
	t.Parallel()
	w := oneLetter(t, tidemarktest.NewDB(t))
	w.set("outbox.retention", "0")
	w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}')`)
	w.wantRows(replay, "app 2 pending")
	w.exec(`select tidemark.route_set('app', '{"enabled": false}')`)
	w.next(1_000_000)
	w.emit(2)
	w.drain()
	w.wantMaintain("created outbox_p3000000 ", "dropped outbox_p0 ")
}

// Without a setting of its own the retention is what the documentation says, not nothing.
func TestMaintainWithoutSettings(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`delete from tidemark.setting where key like 'outbox.%' or key like 'emit_key.%'`)
	w.emit(1)
	w.next(2_000_000)
	w.emit(2)
	w.drain()
	w.maintain()
	w.wantRows(`select seq::text from tidemark.outbox order by seq`, "1", "2000000")
}

// Without maintain the log still takes events; they get their partition later.
func TestMaintainAbsorbsTheRest(t *testing.T) {
	t.Parallel()
	w := poisoned(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_set('off', '{"domain": "test", "target_kind": "notify", "target_ref": "x.y"}')`)
	w.emit(1)
	w.poison("P0001", 1)
	w.pass()
	w.next(5_000_000)
	w.emitMany(3)
	w.pass()
	w.wantRows(`select tableoid::regclass::text || ' ' || count(*) from tidemark.outbox group by tableoid order by 1`, "tidemark.outbox_p0 1", "tidemark.outbox_rest 3")
	// Its partition is gone, the replay is recorded among the rest.
	w.drain()
	w.set("outbox.retention", "0")
	w.exec(`update tidemark.worker_cursor set watermark_id = '5000002'`)
	w.exec(`drop table tidemark.outbox_p0, tidemark.attempt_p0, tidemark.decision_p0`)
	w.wantRows(replay, "app 2 failed P0001 poison P0001")
	before := column[string](w, `select concat_ws(' ', seq, route_code, attempt_no, outcome) from tidemark.route_attempt order by 1`)
	equal(t, "evidence", before, []string{"1 app 2 failed", "5000000 app 1 failed", "5000000 off 1 disabled", "5000001 app 1 sent", "5000001 off 1 disabled", "5000002 app 1 sent", "5000002 off 1 disabled"})

	w.set("outbox.retention", "30 days")
	w.wantMaintain("absorbed outbox_p3000000 numbers 3000000 to 5000002 had no partition of their own", "created outbox_p5000003 ", "created outbox_p6000003 ",
		"dropped outbox_p1000000 ", "dropped outbox_p2000000 ", "kept outbox_p3000000 its newest event")
	w.wantMaintain("kept outbox_p3000000 ")
	equal(t, "partitions", w.partitions("outbox"), []string{"outbox_p3000000 3000000 5000003", "outbox_p5000003 5000003 6000003", "outbox_p6000003 6000003 7000003", "outbox_rest"})
	for table, rest := range map[string]int{"outbox": 0, "decision": 0, "attempt": 1} {
		equal(t, "rest of "+table, one[int](w, `select count(*) from tidemark.`+table+`_rest`), rest)
	}
	equal(t, "evidence", column[string](w, `select concat_ws(' ', seq, route_code, attempt_no, outcome) from tidemark.route_attempt order by 1`), before)
	w.wantAlike()
	w.refused("TM010", "", `delete from tidemark.outbox_p3000000`)
	w.emit(4)
	w.pass()
	w.wantReceived(2, 3, 4)
	w.wantRows(`select tableoid::regclass::text from tidemark.outbox where seq = 5000003`, "tidemark.outbox_p5000003")
	w.wantSound()
}

// A writer that has taken a number of the rest before maintain has the lock is absorbed too.
func TestMaintainAbsorbsWhatComesMeanwhile(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, late, watch := live(t, db), open(t, db, "late"), open(t, db, "watch")
	w.exec(`alter function tidemark.maintain_all() set lock_timeout = '1min'`) // this machine may be slow
	w.next(5_000_000)
	w.emit(1)
	late.begin()
	late.emit(2)
	result := later[string](w, `select string_agg(action, ', ') from tidemark.maintain() where object like 'outbox_p3%'`)
	watch.waitsFor(w)
	late.emit(3)
	late.commit()
	got, err := result()
	if err != nil || !strings.HasPrefix(got, "absorbed") {
		t.Fatalf("%s, %v", got, err)
	}
	equal(t, "left in the rest", one[int](w, `select count(*) from tidemark.outbox_rest`), 0)
	w.wantRows(`select tableoid::regclass::text from tidemark.outbox group by 1`, "tidemark.outbox_p3000000")
	late.emit(4)
	w.wantRows(`select (tableoid::regclass <> 'tidemark.outbox_rest'::regclass)::text from tidemark.outbox where seq = (select max(seq) from tidemark.outbox)`, "true")
}

// A busy log: maintain says so, soon, and leaves everything as it was. No writer queues behind it for long.
func TestMaintainGivesUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		number int
		hold   string // what keeps the log busy
		want   []string
	}{
		"drop": {1_000_000, `select tidemark.emit('test', 'tick', '{"n": 9}')`, []string{"created outbox_p3000000 ", "kept outbox_p0 the log is busy"}},
		"add": {
			2_000_000, `select count(*) from tidemark.outbox`,
			[]string{"postponed outbox the log is busy", "kept outbox_p0 the log is busy", "kept outbox_p1000000 the log is busy"},
		},
		"absorb": {
			3_000_000, `select tidemark.emit('test', 'tick', '{"n": 9}')`,
			[]string{"kept outbox_rest the log is busy", "kept outbox_p0 the log is busy", "kept outbox_p1000000 the log is busy", "kept outbox_p2000000 the log is busy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, busy := live(t, db), open(t, db, "busy")
			w.set("outbox.retention", "0")
			w.emit(1)
			w.next(c.number)
			w.emit(2)
			w.drain()
			before := w.partitions("outbox")
			busy.begin()
			busy.exec(c.hold)
			start := time.Now()
			w.wantMaintain(c.want...)
			if took := time.Since(start); took > 3*time.Minute {
				t.Errorf("took %v", took)
			}
			if name != "drop" {
				equal(t, "partitions", w.partitions("outbox"), before)
			}
			w.wantRows(`select count(*)::text from pg_locks where pid = pg_backend_pid() and relation::regclass::text like 'tidemark.%'`, "0")
			w.emit(3)
			busy.commit()
			for _, line := range w.maintain() {
				if strings.Contains(line, "busy") {
					t.Errorf("still: %s", line)
				}
			}
			w.drain()
			equal(t, "received", len(w.received()), 3+strings.Count(c.hold, "emit"))
			w.wantSound()
		})
	}
}

func TestMaintainTwoAtOnce(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, second := live(t, db), open(t, db, "second")
	w.next(2_500_000)
	w.emit(1)
	w.begin()
	w.wantMaintain("created outbox_p3000000 ", "created outbox_p4000000 ", "kept outbox_p0 ", "kept outbox_p1000000 ")
	second.wantMaintain("postponed outbox another call is under way")
	w.rollback()
	second.wantMaintain("created outbox_p3000000 ", "created outbox_p4000000 ", "kept outbox_p0 ", "kept outbox_p1000000 ")

	// And by many, while events are emitted and numbers rise.
	w.set("outbox.partition_events", "1000")
	var wait sync.WaitGroup
	for i := range 3 {
		s := open(t, db, fmt.Sprint("caller ", i))
		wait.Go(func() {
			for range 10 {
				if err := s.try(`select tidemark.maintain()`); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 10 {
		w.next(5_000_000 + 3000*i)
		w.emit(i)
	}
	wait.Wait()
	w.maintain()
	w.drain()
	equal(t, "received", len(w.received()), 11)
	equal(t, "left in the rest", one[int](w, `select count(*) from tidemark.outbox_rest`), 0)
	w.wantRows(`select p.partition::text from (select partition, first_seq, lag(end_seq) over (order by first_seq) as before
		from tidemark.partitions('tidemark.outbox') where first_seq is not null) p where p.first_seq <> p.before`)
}

// Where maintain was called late, numbers reach the partition that it makes. A writer that comes meanwhile waits for it; it
// is not failed by it.
func TestMaintainWithoutFailingWriters(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, second := live(t, db), open(t, db, "second")
	w.emit(1)
	w.exec(`select setval('tidemark.outbox_seq_seq', (select max(end_seq) - 1000 from tidemark.partitions('tidemark.outbox')))`)
	w.begin()
	w.wantMaintain("created ", "created ", "kept ", "kept ")
	w.exec(`select setval('tidemark.outbox_seq_seq', currval('tidemark.outbox_seq_seq') + 2000)`)
	done := make(chan *pgconn.PgError, 1)
	go func() { done <- second.try(`select tidemark.emit_strict('test', 'tick', '{"n": 2}')`) }()
	w.waitsFor(second)
	w.commit()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.drain()
	w.wantReceived(1, 2)
	w.wantRows(`select distinct tableoid::regclass::text from tidemark.outbox where payload = '{"n": 2}'`, "tidemark.outbox_p3000000")
}

// EV3's memory is bounded: 10,000 keys a call.
func TestMaintainForgetsKeys(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.emit('test', 'tick', '{"n": 1}', idempotency_key => key) from unnest(array['old', 'young']) key`)
	w.exec(`update tidemark.emit_key set created_at = created_at - interval '30 days 1 second' where idempotency_key = 'old'`)
	w.exec(`insert into tidemark.emit_key select 'test', n::text, gen_random_uuid(), now() - interval '1 year' from generate_series(1, 12000) n`)
	w.wantMaintain("forgot emit_key 10000 idempotency keys older than 30 days, more are left for another call")
	w.wantMaintain("forgot emit_key 2001 idempotency keys older than 30 days")
	w.wantMaintain()
	w.wantRows(`select idempotency_key from tidemark.emit_key`, "young")
	w.exec(`select tidemark.emit('test', 'tick', '{"n": 2}', idempotency_key => key) from unnest(array['old', 'young']) key`)
	w.wantRows(`select concat_ws(' ', idempotency_key, payload) from tidemark.outbox order by seq`, `old {"n": 1}`, `young {"n": 1}`, `old {"n": 2}`)
	w.set("emit_key.retention", "0")
	w.wantMaintain("forgot emit_key 2 ")
}

// A call reads the keys that it forgets, however many are young or expired, and whatever place in the table new ones have taken.
func TestMaintainReadsExpiredKeysAlone(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`insert into tidemark.emit_key (domain, idempotency_key, event_id, created_at)
		select 'test', n, gen_random_uuid(), now() - case n % 2 when 0 then interval '0' else interval '31 days' end from generate_series(1, 60000) n`)
	for _, statistics := range []string{"old", "new"} {
		n := w.readsOf("emit_key", func() {
			w.wantRows(`select detail from tidemark.emit_keys_expire()`, "10000 idempotency keys older than 30 days, more are left for another call")
		})
		if n > 25_000 {
			t.Errorf("%s statistics: %d rows are read", statistics, n)
		}
		w.exec(`analyze tidemark.emit_key; discard plans`)
	}
}

// A reader that keeps its transaction open is in the way of every partition that is to be dropped. Writers wait behind the first
// at most, and not at all where the reader has looked at the evidence only.
func TestMaintainIsHeldUpOnceByAReader(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, maintainer, reader := live(t, db), open(t, db, "maintainer"), open(t, db, "reader")
	w.set("outbox.partitions_ahead", "20")
	w.maintain()
	w.exec(`do $$ declare part record; begin
		for part in select p.first_seq from tidemark.partitions('tidemark.outbox') p where p.first_seq is not null order by 1 loop
			perform setval('tidemark.outbox_seq_seq', part.first_seq + 1), tidemark.emit('test', 'tick', '{"n": 1}');
		end loop; end $$`)
	old := one[int](w, `select count(*) - 1 from tidemark.partitions('tidemark.outbox') p where p.first_seq is not null`)
	w.set("outbox.retention", "0")
	w.set("outbox.partitions_ahead", "1")
	w.exec(`delete from tidemark.worker_cursor`)
	w.exec(`select tidemark.partition_add(p.end_seq, p.end_seq + 1000000) from tidemark.partitions('tidemark.outbox') p order by p.end_seq desc nulls last limit 1`)
	w.exec(`set lock_timeout = '100ms'`)
	reader.begin()
	reader.exec(`set local role tidemark_reader; select count(*) from tidemark.decision`)
	ended := make(chan int, 1)
	start := time.Now()
	go func() {
		ended <- one[int](maintainer, `select count(*) from tidemark.maintain() m where m.detail like 'the log is busy%'`)
	}()
	w.waitsFor(maintainer)
	w.emit(2)
	equal(t, "kept", <-ended, old)
	if took := time.Since(start); took > time.Duration(old)*500*time.Millisecond {
		t.Errorf("took %v: it waited for the reader at each partition", took)
	}
	reader.rollback()
}

// Where nothing is old, upkeep finds that by the index of the times.
func TestMaintainReadsWhatIsOld(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.type_set('test', 'a'), tidemark.maintain()`)
	w.exec(`select count(tidemark.emit('test', 'a', '{}', idempotency_key => n::text)) from generate_series(1, 20000) n`)
	w.exec(`analyze; discard plans`)
	w.begin()
	w.exec(`select tidemark.maintain()`)
	w.wantRows(`select concat(relname, ' ', seq_tup_read) from pg_stat_xact_user_tables where schemaname = 'tidemark' and seq_tup_read >= 20000`)
	w.exec(`commit`)
}

// No setting of a time makes maintain or the causes fail: those that could are refused, or, set by hand, held to 100 years; what is no
// time has its default.
func TestMaintainWithSettingsThatAreNoTime(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.emit(1)
	w.pass()
	keys := column[string](w, `select key from tidemark.setting where key like '%.retention' or key in ('lag.warn', 'lag.bad') order by key`)
	if len(keys) < 7 {
		t.Fatalf("settings of a time: %v", keys)
	}
	for _, key := range keys {
		w.refused("TM005", "and must be an interval of up to 100 years", `select tidemark.setting_set($1, '9999 years')`, key)
		w.refused("TM005", "and must be an interval of up to 100 years", `select tidemark.setting_set($1, '0')`, key)
		w.exec(`select tidemark.setting_set($1, '100 years')`, key)
	}
	for value, is := range map[string]string{"9999 years": "100 years", "-1 day": "30 days", "soon": "30 days", "99999999999 years": "30 days", "0": "00:00:00"} {
		w.exec(`update tidemark.setting set value = $2 where key = any ($1)`, keys, value)
		w.wantRows(`select tidemark.interval_setting(key, '30 days')::text from tidemark.setting where key = 'finding.retention'`, is)
		if value != "0" {
			w.wantMaintain()
			w.exec(causes)
		}
	}
}
