package test

// Handlers that fail: the row at fault is found, waits, is tried again and then kept as a dead letter; all the others
// are taken once.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// retried runs passes until the rows that failed are given up, or taken.
func (s tailing) retried() {
	s.t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * time.Minute); ; <-poll.C {
		s.drain()
		if s.lines(`select count(*) from tidemark.pending_row`)[0] == "0" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("rows wait for ever: %v", s.lines(`select * from tidemark.pending_row`))
		}
	}
}

// CU9: one row of 5,000 that the handler cannot take, in every way it can refuse one.
func TestSourceOneRowFails(t *testing.T) {
	t.Parallel()
	const bad = 3777
	for name, c := range map[string]struct{ prepare, code, message string }{
		"raises":     {`create function refuse(b births) returns void language plpgsql as $$ begin if b.id = 3777 then raise 'not this one'; end if; end $$`, "P0001", "not this one"},
		"asserts":    {`create function refuse(b births) returns void language plpgsql as $$ begin assert b.id <> 3777, 'not this one'; end $$`, "P0004", "not this one"},
		"divides":    {`create function refuse(b births) returns void language plpgsql as $$ begin perform 1 / (b.id - 3777); end $$`, "22012", "division by zero"},
		"constraint": {`alter table taken add check (id <> '3777'); create function refuse(b births) returns void language sql as ''`, "23514", "taken_id_check"},
		"deferred": {`create table parent (id text primary key); insert into parent select n::text from generate_series(1, 6000) n where n <> 3777;
			alter table taken add foreign key (id) references parent deferrable initially deferred; create function refuse(b births) returns void language sql as ''`, "23503", "taken_id_fkey"},
		"deferred trigger": {`create function late() returns trigger language plpgsql as $$ begin if new.id = '3777' then raise 'at commit'; end if; return null; end $$;
			create constraint trigger late after insert on taken deferrable initially deferred for each row execute function late();
			create function refuse(b births) returns void language sql as ''`, "P0001", "at commit"},
		"temporary": {`create function refuse(b births) returns void language plpgsql as $$ begin if b.id = 3777 then raise sqlstate '22023' using message = 'a' || chr(10) || 'b'; end if; end $$`, "22023", "a\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), "sequence", "")
			s.exec(c.prepare)
			s.exec(`create or replace function take(rows births[]) returns jsonb language plpgsql as $$ begin
				insert into taken (id) select id from unnest(rows); perform refuse(r) from unnest(rows) r; return jsonb_build_object('taken', cardinality(rows)); end $$`)
			s.exec(`insert into births (name) select 'b' || n from generate_series(1, 5000) n`)
			got := s.once()
			if got.Rows != 5000 || got.Taken != 4999 || got.Failed != 1 || got.Splits < 12 || string(got.Result) != `{"taken": 4999}` {
				t.Errorf("%+v", got)
			}
			s.want(`select item_id, error_count, strpos(last_error, `+quoteLiteral(c.code)+`) > 0, strpos(last_error, `+quoteLiteral(c.message)+`) > 0, snapshot ->> 'name'
				from tidemark.pending_row`, "3777 1 true true b3777")
			s.want(`select count(*), count(distinct id) from taken`, "4999 4999")
			const summary = `select pending, oldest_pending_seconds >= 0, open_dead_letters from tidemark.worker_summary where worker = 'w'`
			s.want(summary, "1 true 0")
			s.exec(`insert into births (name) values ('after')`)
			s.retried()
			s.want(summary, "0 - 1")
			s.want(`select l.item_id, l.attempts, l.error_code, strpos(l.error_detail, `+quoteLiteral(c.message)+`) > 0, l.source, l.shard, l.event_snapshot ->> 'id', l.route_id, w.worker
				from tidemark.dead_letter l join tidemark.worker w on w.id = l.worker_id`, fmt.Sprintf("%d 3 %s true births 0 %d - w", bad, c.code, bad))
			s.want(findings, "cursor_dlq w/births/0")
			s.want(`select count(*), count(distinct id), bool_or(id = '5001') from taken`, "5000 5000 true")
			s.want(`select dead_lettered, events_seen from tidemark.worker_cursor where worker = 'w'`, "1 5001")
		})
	}
}

// What a handler defers it may defer in every half of a page, and in every cursor's turn.
func TestSourceHandlerMayDefer(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tailing{open(t, db, "worker")}
	s.exec(fmt.Sprintf(births, "bigint generated always as identity", ""))
	s.exec(`create table parent (id text primary key); alter table taken add foreign key (id) references parent deferrable initially deferred;
create table plain (id text unique deferrable initially immediate);
create or replace function take(rows births[]) returns jsonb language plpgsql as $$
begin
    insert into taken (id) select id from unnest(rows); -- children first
    insert into parent select id from unnest(rows);
    if exists (select from unnest(rows) where id = 30) then raise 'not this one'; end if;
    begin
        insert into plain values ('same'); -- checked at once, as it was made
    exception when unique_violation then null;
    end;
    return jsonb_build_object('taken', cardinality(rows));
end $$`)
	s.source("births", `{"table": "public.births", "id_column": "id", "safety": "sequence"}`)
	s.worker("w", `{"handler": "sql", "handler_ref": "public.take", "shards": 3}`)
	s.add("w")
	s.exec(`insert into births (name) select 'b' from generate_series(1, 60)`)
	s.once()
	s.want(`select count(*), count(distinct id) from taken`, "59 59")
	s.want(`select item_id from tidemark.pending_row`, "30")
}

// What a handler returns is kept as it is, or is the row's fault; it never stops the reading.
func TestSourceHandlerReturnsGarbage(t *testing.T) {
	t.Parallel()
	for returns, want := range map[string]string{
		`null`: "-", `'7'`: "7", `'[1, 2]'`: "[1, 2]", `'{"a": null}'`: `{}`, `'{"a": {"b": 1}, "n": 1e400}'`: `{"a": {"b": 1}, "n": 1` + strings.Repeat("0", 400) + `}`, `'"x"'`: `x`, `'null'`: "-",
	} {
		s := tail(t, tidemarktest.NewDB(t), "sequence", "")
		s.exec(`create or replace function take(rows births[]) returns jsonb language plpgsql as $$ begin insert into taken (id) select id from unnest(rows); return ` + returns + `; end $$`)
		s.exec(insertBirths)
		s.once()
		s.want(`select last_run_summary -> 'result' from tidemark.worker_cursor where worker = 'w'`, want)
		s.wantWell()
	}
}

// A lock that times out, a deadlock: the surroundings' fault. The pass is taken back, and no row has failed.
func TestSourceTransientErrorsAreNobodysFault(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, a := tail(t, db, "clock", ""), open(t, db, "a")
	s.exec(insertBirths)
	a.begin()
	a.exec(`lock table taken in share mode`)
	s.exec(`set lock_timeout = '20ms'`)
	if _, err := s.try(); code(err) != "55P03" {
		t.Errorf("%v, want the lock's timeout", err)
	}
	s.exec(`reset lock_timeout; set statement_timeout = '1s'`)
	if got := s.once(); got.Status != "cut" || got.Taken != 0 {
		t.Errorf("%+v, want it cut off by the statement's timeout", got)
	}
	s.exec(`reset statement_timeout`)
	a.commit()
	s.wantWell()
	s.want(`select count(*) from tidemark.pending_row`, "0")
}

// A row that is taken at the second attempt, one that is gone by then, and one whose handler never will.
func TestSourceRetry(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(`create table mood (bad bigint[]); insert into mood values ('{2,3,4}');
drop function take; create function take(rows births[]) returns void language plpgsql as $$ begin
    if exists (select from unnest(rows) r, mood where r.id = any (bad)) then raise 'in this mood'; end if;
    insert into taken (id, row) select id, to_jsonb(r) from unnest(rows) r; end $$`)
	s.exec(insertBirths)
	if got := s.once(); got.Failed != 3 || got.Taken != 2 {
		t.Errorf("%+v", got)
	}
	s.exec(`update mood set bad = '{4}'; update births set name = 'changed' where id = 2; delete from births where id = 3`)
	s.retried()
	s.want(`select id, row ->> 'name' from taken order by id`, "1 b1", "2 changed", "3 b3", "5 b5")
	s.want(`select item_id, resolved_at from tidemark.dead_letter`, "4 -")

	// The operator has it tried again: first in vain, then well.
	s.exec(`select tidemark.dead_letter_replay(id, reason => 'mended') from tidemark.dead_letter`)
	s.want(`select object || ' ' || reason from tidemark.audit where action = 'dead_letter_replay'`, "dead_letter 1 mended")
	s.retried()
	s.want(`select item_id, resolved_at, attempts from tidemark.dead_letter`, "4 - 4")
	s.exec(`update mood set bad = '{}'; select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
	s.retried()
	s.want(`select item_id, resolution, attempts from tidemark.dead_letter`, "4 sent 5")
	s.want(`select count(*), count(distinct id) from taken`, "5 5")
	s.exec(`select tidemark.maintain()`)
	s.want(findings)
}

// What becomes due while a page of retries is halved does not push its rows out of it: they would be done without having been
// handed over.
func TestSourceRetryHandsOverWhatItRead(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, operator, holder := tail(t, db, "clock", ""), open(t, db, "operator"), open(t, db, "holder")
	s.worker("w", `{"handler": "sql", "handler_ref": "public.take", "retry_policy": {"base_seconds": 0.001, "max_attempts": 1}}`)
	s.exec(`create table mood (bad text[]); insert into mood values ('{first,second,third}');
alter function take rename to really_take; create function take(rows births[]) returns jsonb language plpgsql as $$ begin
    if exists (select from unnest(rows) r where r.name = 'second') then perform pg_advisory_xact_lock(1); end if;
    if exists (select from unnest(rows) r, mood where r.name = any (bad)) then raise 'in this mood'; end if;
    return really_take(rows); end $$`)
	s.exec(`insert into births (name) values ('first'), ('second'), ('third')`)
	s.drain()
	s.want(`select item_id from tidemark.dead_letter order by item_id`, "1", "2", "3")

	const replay = `select tidemark.dead_letter_replay(id) from tidemark.dead_letter where item_id = $1`
	s.exec(`update mood set bad = '{second}'`)
	operator.begin()
	operator.exec(replay, "1") // is due before the others, and not seen yet
	s.exec(replay, "2")
	s.exec(replay, "3")
	holder.exec(`select pg_advisory_lock(1)`)
	done := make(chan run)
	go func() { done <- s.once(nil, nil, 2) }()
	holder.waitsFor(s.session)
	operator.commit()
	holder.exec(`select pg_advisory_unlock(1)`)
	if got := <-done; got.Rows != 2 || got.Failed != 1 {
		t.Errorf("%+v", got)
	}
	s.want(`select row ->> 'name' from taken`, "third")
	s.retried()
	s.want(`select row ->> 'name' from taken order by at`, "third", "first")
	s.want(`select item_id, resolution from tidemark.dead_letter order by item_id`, "1 sent", "2 -", "3 sent")
}

// What waits for another attempt waits as long as the policy says (to ten seconds: passes follow), and longer each time.
func TestSourceBackoff(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(`select tidemark.worker_set('w', '{"source": "table", "retry_policy": {"base_seconds": 60, "max_attempts": 5, "jitter": 0}}')`)
	s.exec(`create or replace function take(rows births[]) returns jsonb language plpgsql as $$ begin raise 'never'; end $$; insert into births (name) values ('b')`)
	for n, want := range []string{"60", "120", "240", "480"} {
		s.drain()
		s.want(`select error_count, 10 * round(extract(epoch from next_attempt_at - last_run_at) / 10) from tidemark.pending_row, tidemark.worker_cursor where worker = 'w'`, fmt.Sprintf("%d %s", n+1, want))
		s.exec(`update tidemark.pending_row set next_attempt_at = now() - interval '1 s'`)
	}
	s.drain()
	s.want(`select attempts from tidemark.dead_letter`, "5")
}

// CU9: too many open dead letters are a finding of their own.
func TestSourceDeadLettersOverflow(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(`insert into tidemark.setting (key, value) values ('dead_letter.overflow', '3') on conflict (key) do update set value = excluded.value;
		select tidemark.worker_set('w', '{"source": "table", "retry_policy": {"max_attempts": 1}}');
		create or replace function take(rows births[]) returns jsonb language plpgsql as $$ begin raise 'never'; end $$`)
	s.exec(`insert into births (name) values ('b'), ('b'), ('b')`)
	s.drain()
	s.want(findings, "cursor_dlq w/births/0")
	s.exec(`insert into births (name) values ('b')`)
	s.drain()
	s.want(findings, "cursor_dlq w/births/0", "dlq_overflow w")
	s.exec(`select tidemark.dead_letter_discard(id, 'a test') from tidemark.dead_letter; select tidemark.maintain()`)
	s.want(findings)
}

// Each cursor has a finding of its own dead letters, which closes with the last of them.
func TestSourceDeadLettersOfShards(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(`select tidemark.worker_source_remove('w', 'births', 'a test');
		select tidemark.worker_set('w', '{"source": "table", "shards": 2, "retry_policy": {"max_attempts": 1}}');
		select tidemark.worker_source_add('w', 'births');
		create or replace function take(rows births[]) returns jsonb language plpgsql as $$ begin raise 'never'; end $$`)
	s.exec(`insert into births (name) select 'b' from generate_series(1, 20)`)
	s.drain()
	s.want(findings, "cursor_dlq w/births/0", "cursor_dlq w/births/1")
	s.exec(`select tidemark.dead_letter_discard(id, 'a test') from tidemark.dead_letter where shard = 1; select tidemark.maintain()`)
	s.want(findings, "cursor_dlq w/births/0")
	s.exec(`select tidemark.dead_letter_discard(id, 'a test') from tidemark.dead_letter where shard = 0; select tidemark.maintain()`)
	s.want(findings)
}

// An emit worker makes an event of each row, also after a rewind only one; of a type that is not there none.
func TestSourceEmits(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tailing{open(t, db, "worker")}
	s.exec(fmt.Sprintf(births, "bigint generated always as identity", ""))
	s.source("births", `{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "safety": "declared", "sweep_window": "1 hour", "key_columns": ["name"]}`)
	s.worker("w", `{"handler": "emit", "handler_ref": "town/birth", "payload_columns": ["born_at"]}`)
	s.add("w")
	s.exec(`insert into births (name, born_at) values ('Ada', '2026-01-01 12:00+00'), (null, '2026-01-02'), ('Bob', null), ('Eve', 'infinity'), ('Old', '0044-03-15 BC')`)
	s.wantHeld("source_misconfigured", "town/birth")
	s.exec(`select tidemark.type_set('town', 'birth')`)
	s.drain()
	s.want(`select subject_table, subject_ref, key, payload ->> 'id', payload ->> 'name', payload ? 'born_at', idempotency_key from tidemark.outbox where key in ('Ada', '2') order by subject_ref`,
		"public.births 1 Ada 1 Ada true tidemark:source/w/births/1", "public.births 2 2 2 - true tidemark:source/w/births/2")
	s.want(`select count(*), count(distinct subject_ref) from tidemark.outbox`, "5 5")
	s.want(`select occurred_at = '2026-01-01 12:00+00' from tidemark.outbox where key = 'Ada'`, "true")
	s.want(`select count(*) from tidemark.outbox where not isfinite(occurred_at)`, "0")
	s.exec(`select tidemark.source_rewind('w', 'births', 'again', '-infinity')`)
	s.sweep()
	s.want(`select count(*), count(distinct subject_ref) from tidemark.outbox`, "5 5")
	s.want(findings)
	s.exec(`select tidemark.type_set('town', 'birth', '{"enabled": false}'); insert into births (name, born_at) values ('Zoe', now() - interval '2 s')`)
	s.wantHeld("source_misconfigured", "town/birth")
	s.exec(`select tidemark.type_set('town', 'birth', '{"enabled": true}')`)
	s.drain()
	s.want(`select count(*) from tidemark.outbox where key = 'Zoe'`, "1")
}

// CU10: what comes of one group within the window is handed over as one, the latest; a storm is seen and slowed down.
func TestSourceCoalesces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ safety, idType, id, latest string }{
		{"clock", "bigint", "n", "b.born_at desc, b.id desc"},
		{"sequence", "bigint generated always as identity", "", "b.id desc"}, // by the number, whatever the time
		{"clock", `text collate "en-US-x-icu"`, "chr(65 + n % 2 * 32 + n % 20) || n", `b.born_at desc, b.id collate "C" desc`},
	} {
		t.Run(c.safety+" "+c.idType, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s := tailing{open(t, db, "worker")}
			s.exec(fmt.Sprintf(births, c.idType, "not null default clock_timestamp()"))
			s.source("births", fmt.Sprintf(`{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "margin": "1 microsecond", "safety": %q, "group_key": ["name"]}`, c.safety))
			s.worker("w", `{"handler": "sql", "handler_ref": "public.take", "coalesce_window": "1 hour", "page_size": 10}`)
			s.add("w")
			columns, values := "(id, born_at, name)", c.id+", "
			if c.id == "" {
				columns, values = "(born_at, name)", ""
			}
			// Times run against the numbers, and many are the same.
			s.exec(`insert into births ` + columns + ` select ` + values + `timestamptz '2026-01-01' - n / 4 * interval '1 s', 'g' || n % 3 from generate_series(1, 40) n`)
			got := s.drain()
			if got.Rows != 40 || got.Taken != 12 || got.Coalesced != 28 {
				t.Errorf("%+v, want of each page of 10 rows one of each of 3 groups", got)
			}
			s.want(`select count(*) - count(distinct id) from taken`, "0")
			// The latest of its page is what was handed over: the latest of all is among them.
			s.want(`select count(*) from (select distinct on (b.name) b.id::text from births b order by b.name, `+c.latest+`) b where not exists (select from taken t where t.id = b.id)`, "0")
			s.exec(`insert into births ` + columns + ` select ` + strings.ReplaceAll(values, "n", "(n + 50)") + `now() - interval '1 minute', 'g' from generate_series(1, 5) n`)
			if got := s.once(); got.Status != "waiting" || got.More {
				t.Errorf("%+v, want it to wait for the window", got)
			}
			s.exec(`update tidemark.worker_cursor set last_run_at = last_run_at - interval '1 hour'`)
			if got := s.drain(); got.Taken != 1 || got.Coalesced != 4 {
				t.Errorf("%+v, want one", got)
			}
		})
	}
}

func TestSourceStorm(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "declared", `{"group_key": ["name"], "sweep_window": "1 hour", "bucket": "1 minute"}`)
	s.exec(`select tidemark.worker_set('w', '{"source": "table", "coalesce_window": "1 second", "storm_fraction": 0.3}')`)
	s.exec(`insert into births (born_at, name) select timestamptz '2026-01-01' + n * interval '1 s', 'g' || n from generate_series(1, 100) n; analyze births`)
	calm := func() {
		s.exec(`update tidemark.worker_cursor set last_run_at = last_run_at - interval '1 hour', metadata = metadata - 'storm_until', sweep = sweep - 'done_at';
			update tidemark.finding set closed_at = now() where closed_at is null`)
	}
	s.drain()
	calm()
	s.drain()
	s.want(`select phase from tidemark.worker_cursor where worker = 'w'`, "incremental")
	s.want(findings) // what was there at first is no storm
	s.exec(`update tidemark.worker_cursor set sweep = sweep || jsonb_build_object('done_at', now())`)
	s.exec(`insert into births (born_at, name) select timestamptz '2026-02-01', 'g' || n from generate_series(1, 40) n`)
	s.exec(`update tidemark.worker_cursor set last_run_at = last_run_at - interval '1 hour'`)
	s.once()
	s.want(findings, "group_invalidation_storm w/births/0")
	if got := s.once(); got.Status != "throttled" || !strings.Contains(got.Detail, "storm") {
		t.Errorf("%+v, want it throttled", got)
	}
	s.exec(`update tidemark.worker_cursor set last_run_at = last_run_at - interval '1 hour', metadata = jsonb_set(metadata, '{storm_until}', to_jsonb(now() - interval '1 s'))`)
	s.exec(`insert into births (born_at, name) select timestamptz '2026-03-01', 'g' || n from generate_series(1, 12) n`)
	s.once()
	s.want(findings)
	for range 5 { // 500 buckets at a time
		calm()
		s.drain()
		calm()
		s.drain()
	}
	s.want(`select verified_through > '2026-02-28' from tidemark.worker_cursor where worker = 'w'`, "true")
	s.exact()
}

// CU11: it rests in the hours of others, and while others wait.
func TestSourceThrottles(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, a, b := tail(t, db, "sequence", ""), open(t, db, "a"), open(t, db, "b")
	s.exec(insertBirths)
	s.once(nil, nil, 2)
	hours := s.lines(`select to_char(now() at time zone 'UTC' + interval '2 hours', 'HH24:MI') || '-' || to_char(now() at time zone 'UTC' + interval '3 hours', 'HH24:MI') || ' UTC'`)[0]
	s.exec(`select tidemark.worker_set('w', jsonb_build_object('source', 'table', 'off_peak', $1::text, 'peak_pause', '1 hour'))`, hours)
	if got := s.once(); got.Status != "throttled" || !strings.Contains(got.Detail, hours) {
		t.Errorf("%+v, want it throttled outside of %s", got, hours)
	}
	hours = s.lines(`select to_char(now() at time zone 'UTC' - interval '1 hours', 'HH24:MI') || '-' || to_char(now() at time zone 'UTC' + interval '3 hours', 'HH24:MI') || ' UTC'`)[0]
	s.exec(`select tidemark.worker_set('w', jsonb_build_object('source', 'table', 'off_peak', $1::text, 'lock_wait_limit', 1))`, hours)
	s.once(nil, nil, 1)
	s.want(`select count(*) from taken`, "3")

	c := open(t, db, "c")
	a.begin()
	a.exec(`create table x (); lock table x`)
	a.commit()
	a.begin()
	a.exec(`lock table x`)
	done := make(chan struct{}, 2)
	for _, waiting := range []session{b, c} {
		go func() { _, _ = waiting.conn.Exec(t.Context(), `select from x`); done <- struct{}{} }()
		a.waitsFor(waiting)
	}
	if got := s.once(); got.Status != "throttled" || !strings.Contains(got.Detail, `locks, more than 1, held by pid`) || !strings.Contains(got.Detail, `application "a"`) {
		t.Errorf("%+v, want it throttled by waiting sessions, and to say who keeps them waiting", got)
	}
	// Without a superuser's help too: what others wait for, everybody may see.
	s.begin()
	s.exec(`revoke pg_read_all_stats from tidemark_owner`)
	if got := s.once(); got.Status != "throttled" || !strings.Contains(got.Detail, `2 sessions wait for locks, more than 1, held by pid`) {
		t.Errorf("%+v, want it throttled without pg_read_all_stats", got)
	}
	s.rollback()
	a.commit()
	<-done
	<-done
	s.wantWell()
}

// New rows, rows that are tried again and a sweep take turns: many retries that are due keep neither of the others waiting.
func TestSourceStepsTakeTurns(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "declared", `{"sweep_window": "1 hour"}`)
	s.exec(insertAt("now() - interval '2 s'"))
	s.sweep()
	s.exec(`insert into births (born_at, name) select now() - interval '1 s', 'failed' from generate_series(1, 1000);
		update tidemark.worker_cursor set watermark_ts = now(), watermark_id = '1', decided_through = tidemark.source_place(now(), '1'), sweep = sweep - 'done_at' where worker = 'w';
		insert into tidemark.pending_row (worker_id, source, shard, item_id, snapshot, last_error, next_attempt_at)
			select w.id, 'births', 0, b.id::text, '{}', 'a test', now() from births b, tidemark.worker w where b.name = 'failed' and w.worker = 'w'`)
	s.exec(insertAt("null"))
	s.exec(insertAt("clock_timestamp()"))
	for _, step := range []string{"forward", "retry", "sweep", "forward", "retry", "sweep"} {
		if got := s.once(); got.Step != step {
			t.Errorf("%+v, want %s", got, step)
		}
	}
	s.want(`select count(*) from taken where row ->> 'name' is null`, "3")
	s.want(`select count(*) > 700 from tidemark.pending_row`, "true")
	s.retried()
	s.exact()
}

// The same id twice in a page: two rows of a table that is partitioned by another column of its key. Both are handed over, and the worker
// goes on, also where they fail.
func TestSourceSameIDTwice(t *testing.T) {
	t.Parallel()
	s := tailing{open(t, tidemarktest.NewDB(t), "worker")}
	s.exec(`create table births (tenant int, id bigint, born_at timestamptz default clock_timestamp() not null, name text, primary key (tenant, id)) partition by list (tenant);
		create table births_1 partition of births for values in (1); create table births_2 partition of births for values in (2);
		create index on births (born_at, id); create table taken (id bigint, tenant int);
		create function take(rows births[]) returns void language plpgsql as $$ begin
			if exists (select from unnest(rows) r where r.name = 'bad') then raise 'a bad row'; end if;
			insert into taken select r.id, r.tenant from unnest(rows) r; end $$`)
	s.source("births", `{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "margin": "1 microsecond", "safety": "declared", "sweep_window": "1 hour"}`)
	s.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
	s.add("w")
	s.sweep()
	s.exec(`insert into births (tenant, id) select t, n from generate_series(1, 2) t, generate_series(1, 3) n`)
	s.sweep()
	s.want(`select id, tenant from taken order by id, tenant`, "1 1", "1 2", "2 1", "2 2", "3 1", "3 2")
	s.exec(`insert into births (tenant, id, name) select t, n, case n when 5 then 'bad' end from generate_series(1, 2) t, generate_series(4, 6) n`)
	s.retried()
	s.want(`select id, tenant from taken where id > 3 order by id, tenant`, "4 1", "4 2", "6 1", "6 2")
	s.want(`select item_id, attempts from tidemark.dead_letter`, "5 3")
}
