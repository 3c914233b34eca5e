package test

// Numbers that are given out again: the rows that bear them are behind the watermark, and would be passed over.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The sequence begins again, and has passed the old watermark by the next pass.
func TestSourceNumbersAgain(t *testing.T) {
	t.Parallel()
	const insert = `insert into births (name) select 'again' from generate_series(1, %d)`
	for name, c := range map[string]struct {
		back   string // what sets it back
		rows   int    // that come then
		rewind string
		kept   int // rows of before that are still there, and are handed over again
	}{
		"truncate restart identity": {`truncate births restart identity`, 900, `to_id => '0'`, 0},
		"alter sequence restart":    {`delete from births; alter sequence births_id_seq restart`, 900, `to_id => '0'`, 0},
		"alter table restart with":  {`delete from births where id > 200; alter table births alter id restart with 201`, 700, `to_id => '200'`, 0},
		"another sequence":          {`delete from births; alter table births alter id drop identity; alter table births alter id add generated always as identity`, 900, `to_id => '0'`, 0},
		"setval":                    {`delete from births; select setval('births_id_seq', 1, false)`, 900, `to_id => '0'`, 0},
		"setval of some":            {`delete from births where id > 200; select setval('births_id_seq', 200)`, 700, `to_id => '200'`, 0},
		"setval and truncate":       {`truncate births; select setval('births_id_seq', 1, false)`, 900, `to_id => '0'`, 0},
		"setval too far":            {`delete from births where id > 400; select setval('births_id_seq', 400)`, 500, `to_id => '390'`, 10},
		"and exactly there":         {`truncate births restart identity`, 500, `to_id => '0'`, 0},
		"setval and exactly there":  {`truncate births; select setval('births_id_seq', 1, false)`, 501, `to_id => '0'`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), "sequence", "")
			s.exec(fmt.Sprintf(insert, 500))
			s.drain(nil, nil, 45)
			s.exec(c.back)
			s.exec(`delete from taken where id not in (select id::text from births)`)
			s.exec(fmt.Sprintf(insert, c.rows))
			s.wantHeld("source_changed", "tidemark worker rewind", "--source births --to-id ")
			s.want(`select count(*) from taken t join births b on b.id::text = t.id where t.id::int > (select count(*) from births) - `+fmt.Sprint(c.rows), "0")
			s.exec(`select tidemark.source_rewind('w', 'births', 'numbers again', ` + c.rewind + `)`)
			s.drain()
			s.want(`select count(*) from births b where not exists (select from taken t where t.id = b.id::text)`, "0")
			s.want(`select count(*) - count(distinct id) from taken`, fmt.Sprint(c.kept))
			s.want(findings)
		})
	}
}

// Held before anything is handed over, also where the page has rows; and a worker that sleeps is woken for it.
func TestSourceSequenceBehindRows(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(insertBirths)
	s.drain()
	s.exec(`insert into births (id) overriding system value values (100)`)
	s.wantHeld("source_changed", "births_id_seq", "behind 100")
	s.want(`select count(*) from taken`, "5")
	s.exec(`select setval('births_id_seq', 100)`)
	s.wantWell()

	d := asleep(s)
	d.wantPoll("")
	s.exec(`select setval('births_id_seq', 50)`)
	d.wantPoll("changed")
	s.exec(`select setval('births_id_seq', 100)`)
	d.wantPoll("")
}

// untimed is tail with a source that has no timestamp column.
func untimed(t *testing.T) tailing {
	t.Helper()
	s := tailing{open(t, tidemarktest.NewDB(t), "worker")}
	s.exec(fmt.Sprintf(births, "bigint generated always as identity", ""))
	s.source("births", `{"table": "public.births", "id_column": "id", "safety": "sequence"}`)
	s.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
	s.add("w")
	return s
}

// Without a timestamp column, a number that had no row tells, when it gets one.
func TestSourceNumbersAgainWithoutTimes(t *testing.T) {
	t.Parallel()
	const insert = `insert into births (name) select 'again' from generate_series(1, %d)`
	for name, c := range map[string]struct{ before, back string }{
		"truncate restart identity": {``, `truncate births restart identity`},
		"rolled back numbers":       {`begin; insert into births (name) values ('r'); rollback`, `delete from births where id > 400; select setval('births_id_seq', 400)`},
		"rows that were deleted":    {`delete from births where id = 470`, `delete from births where id > 400; select setval('births_id_seq', 400)`},
		"truncated":                 {`truncate births`, `truncate births; select setval('births_id_seq', 400)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := untimed(t)
			s.exec(fmt.Sprintf(insert, 480))
			s.drain()
			if c.before != "" {
				s.exec(c.before)
			}
			s.exec(fmt.Sprintf(insert, 20))
			for range 3 { // what was rolled back is passed, and what is gone is noticed
				s.drain()
			}
			s.exec(c.back)
			s.exec(fmt.Sprintf(insert, 600))
			s.exec(`truncate taken`)
			s.wantHeld("source_changed", "tidemark worker rewind", "--source births --to-id ")
			s.want(`select count(*) from taken`, "0")
			s.exec(`select tidemark.source_rewind('w', 'births', 'numbers again', to_id => '0')`)
			s.drain()
			s.want(`select count(*) from births b where not exists (select from taken t where t.id = b.id::text)`, "0")
			s.want(findings)
		})
	}

	// Where every number had its row, nothing tells: the doctor says so, warns where the table has a column, and guesses it.
	t.Run("doctor", func(t *testing.T) {
		t.Parallel()
		s := untimed(t)
		const check = `select status from tidemark.source_check((select s from tidemark.source s where s.source = 'births')) c where c.check = 'numbers given out again'`
		s.want(check, "ok")
		s.exec(`create table timed (id bigint generated always as identity primary key, updated_at timestamptz not null default now(), given timestamptz not null, made timestamptz not null default now())`)
		const guess = `tidemark.source_guess(jsonb_populate_record(null::tidemark.source, '{"schema_name": "public", "table_name": "timed", "safety": "sequence"}'))`
		s.want(`select timestamp_column from `+guess, "made")
		s.want(`select status, hint from tidemark.source_check(jsonb_populate_record(null::tidemark.source, '{"source": "timed", "schema_name": "public", "table_name": "timed", "id_column": "id", "safety": "sequence"}')) c
			where c.check = 'numbers given out again'`, "warn Give the source the timestamp_column made.")
		s.want(`select status from tidemark.source_check(` + guess + `) c where c.check = 'numbers given out again'`)
	})
}

// What is done to a table that is well holds nothing up: rows that are updated have new transactions, and those that are
// deleted are not missed.
func TestSourceNumbersAreNotAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]string{
		"updated":                   `update births set name = 'x'`,
		"updated and deleted":       `update births set name = 'x'; delete from births where id % 2 = 0; update births set name = 'y'`,
		"deleted":                   `delete from births`,
		"truncated":                 `truncate births`,
		"rewritten":                 `alter table births drop column if exists stamp; alter table births add stamp timestamptz default clock_timestamp()`,
		"vacuum full":               `vacuum full births`,
		"clustered":                 `cluster births using births_at`,
		"rolled back numbers":       `begin; insert into births (name) select 'r' from generate_series(1, 40); rollback`,
		"set forward":               `select setval('births_id_seq', (select max(id) + 1000 from births))`,
		"setval to where it is":     `select setval('births_id_seq', (select max(id) from births))`,
		"analyzed, and a new index": `analyze births; create index on births (name)`,
		"handed to another role":    `alter table births owner to tidemark_owner`,
	} {
		for _, times := range []string{"with times", "without times"} {
			t.Run(name+"/"+times, func(t *testing.T) {
				t.Parallel()
				var s tailing
				if times == "with times" {
					s = tail(t, tidemarktest.NewDB(t), "sequence", "")
				} else {
					s = untimed(t)
				}
				for range 3 {
					s.exec(insertBirths)
					s.drain()
					s.exec(c)
					s.exec(insertBirths)
					s.drain()
				}
				s.want(findings)
				s.want(`select count(*) from births b where not exists (select from taken t where t.id = b.id::text)`, "0")
				s.want(`select (select count(*) from taken), (select count(distinct id) from taken)`, "30 30")
			})
		}
	}
}

// Two tables change places; a part leaves.
func TestSourceTablesChangePlaces(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(insertBirths)
	s.drain()
	s.exec(`create table other (like births including all); select setval('other_id_seq', 100);
		insert into other (id, name) overriding system value select id, 'other' from births; insert into other (name) values ('next')`)
	s.exec(`begin; alter table births rename to old; alter table other rename to births; commit`)
	s.exec(`create or replace function take2(rows anyarray) returns jsonb language sql as $$ insert into taken (id) select (to_jsonb(r) ->> 'id') from unnest(rows) r; select null::jsonb $$;
		select tidemark.worker_set('w', '{"handler_ref": "public.take2"}', 'a test')`)
	s.wantHeld("source_changed", "not the table that was read")
	s.exec(`truncate taken; select tidemark.source_rewind('w', 'births', 'swapped', to_id => '0')`)
	s.wantWell()
	s.want(`select count(*) from taken`, "6")
}

func TestSourcePartLeaves(t *testing.T) {
	t.Parallel()
	s := tailing{open(t, tidemarktest.NewDB(t), "worker")}
	s.exec(`create table births (id bigint generated by default as identity primary key, born_at timestamptz default now(), name text) partition by range (id);
		create table births_1 partition of births for values from (1) to (8); create table births_2 partition of births default;
		create table taken (at bigint generated always as identity primary key, id text not null);
		create function take(rows births[]) returns void language sql as 'insert into taken (id) select id::text from unnest(rows)'`)
	s.source("births", `{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "safety": "sequence"}`)
	s.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
	s.add("w")
	s.exec(insertBirths)
	s.drain()
	s.exec(insertBirths)
	s.exec(`alter table births detach partition births_1`)
	s.drain()
	s.exec(insertBirths)
	s.wantWell()
	// While a part was away its rows could not be read: those that come back behind the watermark would be passed over.
	s.exec(`alter table births attach partition births_1 for values from (1) to (8)`)
	s.wantHeld("source_changed", "back with a partition", "--to-id ")
	s.want(`select string_agg(id::text, ' ' order by id) from births b where not exists (select from taken t where t.id = b.id::text)`, "6 7")
}

// A table is exchanged after the plan has looked at it and before its rows are read: the pass waits for the change, and must
// not read what it was not meant for.
func TestSourceExchangedInMidPass(t *testing.T) {
	t.Parallel()
	const anew = `create table births_next (like births including all); alter table births rename to births_old;
		alter table births_next rename to births;
		grant select on births to tidemark_executor; insert into births (name) select 'new' from generate_series(1, 20)`
	for name, c := range map[string]struct{ change, kind string }{
		"another table":   {anew, "source_changed"},
		"numbers again":   {`truncate births restart identity; insert into births (name) select 'new' from generate_series(1, 20)`, "source_changed"},
		"no table":        {`alter table births rename to births_away`, "source_misconfigured"},
		"no right to it":  {`revoke select on births from tidemark_executor`, "source_misconfigured"},
		"nothing of that": {`insert into births (name) values ('new')`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s := tail(t, db, "sequence", "")
			s.exec(`grant select on births to tidemark_executor; grant insert on taken to tidemark_executor; set role tidemark_executor`)
			operator := tailing{open(t, db, "operator")}
			operator.exec(insertBirths)
			s.drain()
			operator.exec(`begin; lock table births in access exclusive mode`)
			came := make(chan run, 1)
			go func() {
				defer close(came)
				if got, err := s.try(); err != nil {
					t.Error(err)
				} else {
					came <- got
				}
			}()
			operator.waitsFor(s.session)
			operator.exec(c.change)
			operator.exec(`commit`)
			got := <-came
			if c.kind == "" {
				if got.Status != "ran" || got.Taken != 1 {
					t.Errorf("got %+v", got)
				}
				return
			}
			operator.want(`select count(*) from taken where row ->> 'name' = 'new'`, "0")
			operator.want(`select kind from tidemark.finding where closed_at is null`, c.kind)
			if got.Status != "held" {
				t.Errorf("got %+v, want held", got)
			}
			if name == "no right to it" {
				operator.want(`select detail from tidemark.finding where closed_at is null`,
					"42501: tidemark_executor may not read public.births: it needs usage on the schema and select on the table")
				operator.want(`select cli[1] from tidemark.cause where cause = 'source_misconfigured'`, "tidemark source check births")
			}
		})
	}
}

// A row that waits for another attempt is gone, and its number is another row's: each is handed over as what it is, once.
func TestSourceRetryOfANumberGivenAgain(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`drop function take; create function take(rows births[]) returns void language plpgsql as $$
		begin
			if exists (select from unnest(rows) r where r.name = 'bad') and not exists (select from taken where id = 'mended') then
				raise exception 'bad';
			end if;
			insert into taken (id, row) select r.id::text, to_jsonb(r) from unnest(rows) r;
		end $$;
		update tidemark.worker set retry_policy = '{"base_seconds": 3600, "max_attempts": 9}' where worker = 'w'`)
	s.exec(`insert into births (name) values ('good'), ('bad')`)
	s.drain()
	s.want(`select item_id from tidemark.pending_row`, "2")
	s.exec(`truncate births restart identity; insert into births (name) select 'new' || i from generate_series(1, 3) i`)
	s.wantHeld("source_changed")
	s.exec(`select tidemark.source_rewind('w', 'births', 'truncated', to_id => '0')`)
	s.exec(`insert into taken (id) values ('mended'); update tidemark.pending_row set next_attempt_at = clock_timestamp()`)
	s.drain()
	s.want(`select row ->> 'name' from taken where id <> 'mended' order by 1`, "bad", "good", "new1", "new2", "new3")
}

// A sequence whose numbers come out of order is not read, also if an operator accepts that it was altered.
func TestSourceSequenceAltered(t *testing.T) {
	t.Parallel()
	for option, word := range map[string]string{"cache 300": "cache 300: sessions keep numbers", "increment 2": "increment 2", "cycle": "cycle: its numbers"} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), "sequence", "")
			s.exec(insertBirths)
			s.drain()
			s.exec(`alter sequence births_id_seq ` + option)
			s.exec(insertBirths)
			s.wantHeld("source_changed", word)
			s.exec(`select tidemark.source_rewind('w', 'births', 'accepted')`)
			s.wantHeld("source_changed", word)
			s.exec(`alter sequence births_id_seq cache 1 increment 1 no cycle`)
			if got := s.once(); got.Status != "held" || !strings.Contains(got.Detail, "--accept") {
				t.Errorf("%+v", got)
			}
			s.exec(`select tidemark.source_rewind('w', 'births', 'accepted')`)
			s.wantWell()
		})
	}
}
