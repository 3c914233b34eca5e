package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The doctor reads with the rights of its caller, and leaves out what the caller may not see.
func TestDoctorHasTheRightsOfTheCaller(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "doctor")
	s.exec(doctored + `
		insert into public.timed (at) values (now() + interval '1 hour');
		alter table public.numbered enable row level security;
		create schema closed; create table closed.t (like public.timed including all); insert into closed.t (at) values (now() + interval '1 hour');`)
	future := "fail timestamps: there are timestamps in the future"
	s.exec(`set role tidemark_executor`)
	if got := s.complaintsOf(timed); len(got) != 2 || !strings.HasPrefix(got[1], future) {
		t.Errorf("who may read: %q", got)
	}
	if got := s.complaintsOf(numbered); len(got) != 1 || !strings.HasPrefix(got[0], "fail row security: on, and tidemark_executor would not see all rows") {
		t.Errorf("row security: %q", got)
	}
	if got := s.complaintsOf(numbered.with(def{"safety": "capture"})); len(got) != 1 || !strings.HasPrefix(got[0], "fail row security") {
		t.Errorf("capture: %q", got)
	}
	closed := s.complaintsOf(timed.with(def{"schema_name": "closed", "table_name": "t", "filter": "kind = 'a'"}))
	if len(closed) != 3 || !strings.HasPrefix(closed[1], "warn rights: ") || !strings.HasPrefix(closed[2], "warn filter: the filter was not checked: tidemark_executor may not use") {
		t.Errorf("closed schema: %q", closed)
	}
	s.exec(`set role tidemark_reader`)
	if got := s.complaintsOf(timed); len(got) != 1 || !strings.HasPrefix(got[0], unproved) {
		t.Errorf("who may not read: %q", got)
	}
}

func TestDoctorReadsTheStatistics(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "doctor")
	s.exec(doctored + `insert into public.numbered (kind) values ('a'), ('b')`)
	s.exec(`update public.numbered set kind = 'c'`)
	s.exec(`delete from public.numbered where id = 1`)
	s.exec(`select pg_stat_force_next_flush()`)
	got := s.complaintsOf(numbered)
	if len(got) != 1 || !strings.HasPrefix(got[0], "warn rows are only added: 2 rows were updated and 1 deleted since the statistics began") {
		t.Errorf("got %q", got)
	}
}

func TestDoctorNamesPreparedTransactions(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, other := open(t, db, "doctor"), open(t, db, "other")
	s.exec(doctored)
	other.begin()
	other.exec(`insert into public.timed default values`)
	other.prepare("doctor")
	got := s.complaintsOf(timed)
	if len(got) != 2 || !strings.HasPrefix(got[0], "warn prepared transactions: prepared and not ended: doctor. ") {
		t.Errorf("got %q", got)
	}
	s.exec(`rollback prepared 'doctor'`)
}

func TestDoctorOnAStandby(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "doctor")
	s.exec(doctored)
	s.rewrite("source_check_table", "pg_is_in_recovery()", "true")
	if got := s.complaintsOf(numbered); len(got) != 1 || !strings.HasPrefix(got[0], "fail primary: this is a standby") {
		t.Errorf("got %q", got)
	}
}

// A million rows are looked at by an index, or a thousand of them.
func TestDoctorReadsNoWholeTable(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "doctor")
	s.exec(doctored)
	s.exec(`insert into public.timed (kind) select 'a' from generate_series(1, 20000); insert into public.numbered (kind) select 'a' from generate_series(1, 20000)`)
	const read = `select coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint from pg_stat_user_tables where relname in ('timed', 'numbered')`
	look := func(most int64) {
		t.Helper()
		s.exec(`select pg_stat_force_next_flush()`)
		before := one[int64](s, read)
		s.complaintsOf(timed)
		s.complaintsOf(numbered)
		s.exec(`select pg_stat_force_next_flush()`)
		if got := one[int64](s, read) - before; got > most {
			t.Errorf("%d rows were read", got)
		}
	}
	look(10)
	s.exec(`drop index public.timed_at`)
	look(3100)
}

// Every name is quoted, and what a hint says can be given to psql as it is.
func TestDoctorsHintsHelp(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "doctor")
	s.exec(`create schema "My ""Shop"""; grant usage on schema "My ""Shop""" to tidemark_executor`)
	s.exec(`create table "My ""Shop"""."select" ("Id %s" integer, "user" timestamp default (now() at time zone 'UTC'), "it's" text)`)
	d := def{
		"schema_name": `My "Shop"`, "table_name": "select", "id_column": "Id %s", "timestamp_column": "user", "time_zone": "UTC", "safety": "clock",
		"key_columns": []string{"it's"}, "filter": `"it's" <> 'table'`,
	}
	for range 10 {
		got := s.complaintsOf(d)
		i := slices.IndexFunc(got, func(line string) bool { return !strings.HasPrefix(line, unproved) })
		if i < 0 {
			break
		}
		_, hint, _ := strings.Cut(got[i], " [")
		hint = strings.TrimSuffix(hint, "]")
		if err := s.try(hint); err != nil {
			t.Fatalf("%s: %v", got[i], err)
		}
	}
	if got := s.complaintsOf(d); len(got) != 1 {
		t.Errorf("after all hints: %q", got)
	}
	s.exec(`alter table "My ""Shop"""."select" alter "Id %s" add generated by default as identity (cache 5 increment 2 cycle)`)
	d = d.with(def{"safety": "sequence"})
	if got := s.complaintsOf(d); len(got) != 2 || !strings.HasPrefix(got[0], `fail sequence: "My ""Shop""`) {
		t.Errorf("sequence: %q", got)
	}
	s.exec(`insert into "My ""Shop"""."select" values (40, default, 'x')`)
	for _, hint := range column[string](s, `select split_part(hint, '; then', 1) from tidemark.source_check(jsonb_populate_record(null::tidemark.source, $1)) where status <> 'ok'`, d.text(t)) {
		s.exec(hint)
	}
	if got := s.complaintsOf(d); len(got) != 0 {
		t.Errorf("after all hints: %q", got)
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "doctor")
	s.exec(doctored)
	const advice = `select concat_ws(' ', safety, status) from tidemark.source_advise(jsonb_populate_record(null::tidemark.source, $1))`
	for table, want := range map[string][]string{
		"numbered": {"sequence ok", "clock warn", "declared warn", "capture warn"}, // no index on (at, id)
		"timed":    {"sequence fail", "clock warn", "declared ok", "capture warn"},
		"local":    {"sequence fail", "clock fail", "declared fail", "capture warn"}, // no zone is declared
		"gone":     {"sequence fail", "clock fail", "declared fail", "capture fail"},
	} {
		if got := column[string](s, advice, def{"table_name": table}.text(t)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", table, got, want)
		}
	}
	s.exec(`create table public.people (updated_at timestamptz default now(), code int, nick text not null unique, seen timestamptz, made timestamptz default now(), primary key (code))`)
	const guess = `select concat_ws(' ', g.id_column, g.timestamp_column) from tidemark.source_guess(jsonb_populate_record(null::tidemark.source, $1)) g`
	for _, step := range []struct{ how, want string }{
		{``, "code made"},
		{`create index on public.people (seen, code)`, "code seen"},
		{`alter table public.people drop constraint people_pkey`, "nick made"},
	} {
		s.exec(step.how)
		if got := one[string](s, guess, def{"table_name": "people"}.text(t)); got != step.want {
			t.Errorf("%s: got %q, want %q", step.how, got, step.want)
		}
	}
	if got := one[string](s, guess, def{"table_name": "people", "id_column": "code", "timestamp_column": "seen"}.text(t)); got != "code seen" {
		t.Errorf("got %q", got)
	}
}

func TestSourceDelete(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "admin")
	s.exec(doctored + `
		create function public.take(rows public.numbered[]) returns void language sql as '';
		select tidemark.source_set('n', '{"table": "public.numbered", "id_column": "id", "safety": "sequence"}');
		select tidemark.worker_set('w', '{"source": "table", "handler": "sql", "handler_ref": "public.take"}');
		select tidemark.worker_set('v', '{"source": "table", "handler": "sql", "handler_ref": "public.take", "shards": 2}');
		select tidemark.worker_source_add('w', 'n', 'why'), tidemark.worker_source_add('v', 'n', 'why');`)
	for statement, want := range map[string]string{
		`select tidemark.source_delete('n', ' ')`:    "TM005 deleting a source needs a reason",
		`select tidemark.source_delete('nn', 'why')`: `TM004 there is no source "nn"`,
		`select tidemark.source_delete('n', 'why')`:  "TM005 source n cannot be deleted: it is read by v, w",
	} {
		if err := s.try(statement); err == nil || err.Code+" "+err.Message != want {
			t.Errorf("%s: got %v, want %s", statement, err, want)
		}
	}
	s.exec(`delete from tidemark.worker_cursor where source = 'n'; select tidemark.source_delete('n', 'done with it')`)
	s.wantRows(`select concat_ws(' ', action, reason) from tidemark.audit where object = 'source n' order by id desc limit 1`, "delete done with it")
	s.wantRows(`select relname::text from pg_class where relname = 'numbered'`, "numbered")
}

func TestSourcesShowHowFarTheirWorkersAre(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "admin")
	s.exec(doctored + `
		create function public.take(rows anyarray) returns void language sql as '';
		select tidemark.source_set('t', '{"table": "public.timed", "id_column": "id", "timestamp_column": "at", "safety": "clock", "sweep_window": "1 hour"}');
		select tidemark.source_set('n', '{"table": "public.numbered", "id_column": "id", "safety": "sequence"}');
		select tidemark.worker_set(w, '{"source": "table", "handler": "sql", "handler_ref": "public.take"}'), tidemark.worker_source_add(w, 't') from (values ('a'), ('b')) w (w);`)
	const look = `select concat_ws(' | ', source, array_to_string(workers, ','), (extract(epoch from lag) / 60)::int, verified_through is null, pending, open_dead_letters) from tidemark.sources order by source`
	s.wantRows(look, "n |  | t | 0 | 0", "t | a,b | 0 | t | 0 | 0")
	// b is in the middle, a has three minutes to read.
	s.exec(`insert into public.timed (at) values (now() - interval '1 hour'), (now() - interval '3 minutes')`)
	s.exec(`update tidemark.worker_cursor set watermark_ts = now() - interval '30 minutes', verified_through = now() where worker = 'a' and source = 't'`)
	s.exec(`update tidemark.worker_cursor set watermark_ts = now() - interval '2 hours' where worker = 'b' and source = 't'`)
	s.exec(`insert into tidemark.pending_row (worker_id, source, shard, item_id, snapshot, last_error, next_attempt_at) select id, 't', 0, 'x', '{}', 'no', now() from tidemark.worker where worker in ('a', 'b')`)
	s.wantRows(`select concat_ws(' ', worker, (extract(epoch from lag) / 60)::int, pending) from tidemark.source_cursor order by worker`, "a 3 1", "b 60 1")
	s.wantRows(look, "n |  | t | 0 | 0", "t | a,b | 60 | t | 2 | 0")
	s.wantRows(`select concat_ws(' ', worker, source, item, error_count, last_error) from tidemark.waiting order by 1`, "a t x 1 no", "b t x 1 no")
}

func TestDoctorWantsTransactionStartsShown(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "admin")
	s.exec(doctored + `do $$ begin execute format('alter database %I set track_activities = off', current_database()); end $$`)
	got := open(t, db, "doctor").complaintsOf(timed)
	if len(got) != 2 || !strings.HasPrefix(got[0], "fail transaction starts: sessions do not show when their transactions began") {
		t.Errorf("got %q", got)
	}
}
