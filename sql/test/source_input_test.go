package test

// What an application's table and an application's function can do to a worker. A worker that cannot go on is held
// with a finding, skips nothing, and goes on when it is put right.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const insertBirths = `insert into births (name) select 'b' || n from generate_series(1, 5) n`

// wantHeld: the worker is held, with one finding however often it is asked, which names the words.
func (s tailing) wantHeld(kind string, words ...string) {
	s.t.Helper()
	closed := s.lines(`select count(*) from tidemark.finding where closed_at is not null`)
	for range 3 {
		if got := s.once(); got.Status != "held" {
			s.t.Fatalf("%+v, want held", got)
		}
	}
	s.want(`select count(*), min(kind), min(subject), min(severity), bool_and(count >= 3) from tidemark.finding where closed_at is null`, "1 "+kind+" w/births/0 high true")
	s.want(`select count(*) from tidemark.finding where closed_at is not null`, closed...)
	for _, word := range words {
		s.want(`select strpos(detail, `+quoteLiteral(word)+`) > 0, strpos(detail, 'null') from tidemark.finding where closed_at is null`, "true 0")
	}
	s.want(`select status from tidemark.worker_health where worker = 'w'`, "held")
}

// wantWell: it goes on, the finding is closed, and every row was taken once.
func (s tailing) wantWell() {
	s.t.Helper()
	s.drain()
	s.sweep()
	s.want(findings)
	s.exact()
	s.want(`select count(*) from tidemark.dead_letter`, "0")
}

func quoteLiteral(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// CU3: the table, or a column of it, is dropped, renamed or retyped under the worker.
func TestSourceChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ safety, change, repair, word string }{
		"table renamed":       {"clock", `alter table births rename to gone`, `alter table gone rename to births`, "public.births"},
		"schema renamed":      {"clock", `create schema x; alter table births set schema x`, `alter table x.births set schema public`, "public.births"},
		"timestamp renamed":   {"clock", `alter table births rename born_at to b`, `alter table births rename b to born_at`, "born_at"},
		"id renamed":          {"sequence", `alter table births rename id to b`, `alter table births rename b to id`, "id"},
		"timestamp retyped":   {"clock", `alter table births alter born_at type timestamp using born_at at time zone 'UTC'`, `alter table births alter born_at type timestamptz using born_at at time zone 'UTC'`, "born_at"},
		"timestamp no time":   {"declared", `create table copy as select * from births; alter table births alter born_at drop default; alter table births alter born_at type date using born_at::date`, `alter table births alter born_at type timestamptz; update births b set born_at = c.born_at from copy c where b.id = c.id`, "born_at"},
		"id retyped":          {"clock", `alter table births alter id drop identity; alter table births alter id type text using id::text`, `alter table births alter id type bigint using id::bigint; alter table births alter id add generated always as identity (start with 100)`, "id"},
		"timestamp dropped":   {"clock", `create table copy as select * from births; alter table births drop born_at`, `alter table births add born_at timestamptz; update births b set born_at = c.born_at from copy c where b.id = c.id`, "born_at"},
		"a view in its place": {"clock", `alter table births rename to gone; create view births as select * from gone`, `drop view births; alter table gone rename to births`, "public.births"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), c.safety, "")
			s.exec(`alter table births alter born_at set default clock_timestamp()`)
			s.exec(insertBirths)
			s.drain()
			s.exec(insertBirths)
			s.exec(c.change)
			s.wantHeld("source_changed", c.word)
			s.exec(c.repair)
			s.exec(`alter table births alter born_at set default clock_timestamp()`)
			if name == "id retyped" {
				s.exec(`drop function take; create function take(rows births[]) returns void language sql as 'insert into taken (id) select id::text from unnest(rows)'`)
			}
			s.exec(`insert into births (name) values ('after')`)
			s.wantWell()
		})
	}
}

// The table of that name is not the one that was read: what it has may be behind the watermark.
func TestSourceMadeAnew(t *testing.T) {
	t.Parallel()
	anew := `drop table births cascade; ` + fmt.Sprintf(strings.SplitN(births, "create table taken", 2)[0], "bigint generated always as identity", "not null default clock_timestamp()") + `
create function take(rows births[]) returns void language sql as 'insert into taken (id) select id::text from unnest(rows)'`
	for name, c := range map[string]struct{ change, rewind string }{
		"dropped":        {anew, `to_id => '0'`},
		"truncated":      {`truncate births restart identity`, `to_id => '0'`},
		"set back":       {`delete from births; alter table births alter id restart with 2`, `to_id => '1'`},
		"other cluster":  {`update tidemark.worker_cursor set metadata = jsonb_set(metadata, '{home}', '"1/2"') where worker = 'w'`, `to_id => null`},
		"of lower range": {`truncate births; alter table births alter id set minvalue -100 restart with -100`, `to_id => '-101'`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), "sequence", "")
			s.exec(insertBirths)
			s.drain()
			if name != "other cluster" {
				s.exec(`truncate taken`)
			}
			s.exec(c.change)
			s.exec(`insert into births (name) select 'new' from generate_series(1, 3)`)
			s.wantHeld("source_changed")
			s.exec(`select tidemark.source_rewind('w', 'births', 'made anew', ` + c.rewind + `)`)
			s.wantWell()
		})
	}
}

// Numbers that begin below 1 are read: also those that come before any that is there.
func TestSourceSequenceBelowOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ idType, first string }{{"smallint", "-32768"}, {"integer", "-2147483648"}, {"bigint", "-9223372036854775807"}} {
		t.Run(c.idType, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s, a := tailing{open(t, db, "worker")}, open(t, db, "a")
			s.exec(fmt.Sprintf(births, fmt.Sprintf("%s generated always as identity (minvalue %s)", c.idType, c.first), ""))
			s.source("births", `{"table": "public.births", "id_column": "id", "safety": "sequence"}`)
			s.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
			a.begin()
			a.exec(insertBirths)
			s.exec(insertBirths)
			s.add("w")
			s.drain()
			a.commit()
			s.drain()
			s.exact()
			s.want(`select count(*) from taken`, "10")
		})
	}
}

// CU5: rows without a usable timestamp are read by their id, each once, also those that come later.
func TestSourceUnusableTimestamps(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, a := tail(t, db, "declared", ""), open(t, db, "a")
	insert := func(s session) {
		s.exec(`insert into births (born_at) select t from unnest(array[null, 'infinity', '-infinity', null, 'infinity', '-infinity', '2020-01-01']::timestamptz[]) t`)
	}
	insert(s.session)
	s.exec(`insert into births (born_at) select null from generate_series(1, 25)`)
	a.begin()
	insert(a) // committed after others that come later
	s.drain(nil, nil, 10)
	insert(s.session)
	s.drain(nil, nil, 10)
	s.sweep()
	s.want(`select count(*) from taken`, "39")
	a.exec(`savepoint x`)
	insert(a)
	a.exec(`update births set born_at = '2021-01-01' where born_at is null`) // its own and others'
	a.rollback()
	a.begin()
	insert(a)
	insert(s.session)
	s.sweep()
	a.commit()
	for range 3 {
		s.sweep()
	}
	s.want(`select count(*) filter (where born_at = '2020-01-01' and not exists (select from taken t where t.id = b.id::text)) from births b`, "1") // a's, late: nothing was promised
	s.exec(`delete from births where born_at = '2020-01-01'`)
	s.exact2(`row ->> 'born_at' is distinct from '2020-01-01T00:00:00+00:00'`)
}

// exact2 is exact for the rows that were taken and fit.
func (s tailing) exact2(fits string) {
	s.t.Helper()
	s.want(`select (select count(*) from births b where not exists (select from taken t where t.id = b.id::text)) as lost,
		(select count(*) - count(distinct id) from taken where `+fits+`) as doubled`, "0 0")
}

// A hundred thousand rows of one moment, in pages of 5,000: the id goes on where the time does not.
func TestSourceManyRowsOfOneMoment(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(`create or replace function take(rows births[]) returns jsonb language sql as $$
		insert into taken (id) select id from unnest(rows); select jsonb_build_object('taken', cardinality(rows)) $$;
		insert into births (born_at) select '2026-01-01' from generate_series(1, 100000); analyze births`)
	if got := s.drain(); got.Rows != 100000 || got.Phase != "incremental" {
		t.Errorf("%+v", got)
	}
	s.want(`select count(*), count(distinct id) from taken`, "100000 100000")
	s.want(`select events_seen, watermark_id from tidemark.worker_cursor where worker = 'w'`, "100000 100000")
}

// Rows of the future wait for their time, and hold no other row up.
func TestSourceFutureTimestamps(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "declared", "")
	s.exec(`insert into births (id, born_at) overriding system value values (1, now() + interval '1 day'), (2, now() - interval '1 day'), (3, '294276-12-31'), (4, '4713-01-01 BC')`)
	s.drain()
	s.want(`select id from taken order by at`, "4", "2")
	s.exec(`alter table births disable trigger all; update births set born_at = now() - interval '1 s' where id = 1`) // its time has come
	s.drain()
	s.want(`select id from taken order by at`, "4", "2", "1")
	s.want(findings)
}

// Rows are read once, as they are then. One that is gone is not read; one that is changed is not read again.
func TestSourceRowsChange(t *testing.T) {
	t.Parallel()
	for _, safety := range []string{"sequence", "clock"} {
		s := tail(t, tidemarktest.NewDB(t), safety, "")
		s.exec(insertBirths)
		s.exec(`delete from births where name = 'b1'; update births set name = 'new' where name = 'b2'`)
		s.drain()
		s.exec(`delete from births where name = 'b3'; update births set name = 'newer' where name in ('new', 'b4')`)
		s.sweep()
		s.want(`select row ->> 'name' from taken order by at`, "new", "b3", "b4", "b5")
		s.want(findings)
	}
}

// But a sweep tells rows by the transaction that wrote them: one of its window, or without a timestamp, that is updated
// is handed over once more.
func TestSourceRowsChangeUnderASweep(t *testing.T) {
	t.Parallel()
	// A server of its own: an old transaction, of whichever database, keeps rows in the ledger that remembers them.
	s := tail(t, tidemarktest.NewDBAt(t, testserver.New(t, devpg.Options{}).URL("postgres")), "declared", `{"sweep_window": "1 hour"}`)
	s.exec(`insert into births (born_at, name) values (now() - interval '1 s', 'in'), (null, 'without'), (now() - interval '1 day', 'before')`)
	s.sweep()
	s.sweep()
	s.exec(`update births set name = name || ' 2'`)
	s.sweep()
	s.want(`select row ->> 'name' from taken where row ->> 'name' like '% 2' order by 1`, "in 2", "without 2")
	s.want(findings)
}
