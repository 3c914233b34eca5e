package test

// Values that a table can hold and jsonb, or a timestamp in another zone, cannot: the row is at fault by itself, and all the
// others are taken, in order.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// deepest is SQL for the deepest array that the type holds on a short stack. A worker has less of it left.
func deepest(s tailing, typ string) string {
	nested := func(depth int) string {
		return fmt.Sprintf("(repeat('[', %[1]d) || repeat(']', %[1]d))::%[2]s", depth, typ)
	}
	low, high := 1, 1<<16
	for high-low > 1 {
		if middle := (low + high) / 2; s.session.try(`select `+nested(middle)+` is null`) == nil {
			low = middle
		} else {
			high = middle
		}
	}
	return nested(low)
}

// odds is a table of six rows, whose third has the value in a column odd; what went before it and comes after it is ordinary.
func odds(t *testing.T, typ, value, safety, changes string) tailing {
	t.Helper()
	s := tailing{open(t, tidemarktest.NewDB(t), "worker")}
	s.exec(`create type pair as (a int, doc json); create domain doc as json; create domain docs as json[]`)
	if strings.HasPrefix(value, "deepest ") {
		value = deepest(s, strings.TrimPrefix(value, "deepest "))
	}
	s.exec(fmt.Sprintf(`create table births (id bigint generated always as identity primary key, born_at timestamptz, gone int, odd %s);
		alter table births drop column gone; create index on births (born_at, id);
		create table taken (at bigint generated always as identity, id bigint);
		create function take(rows births[]) returns void language sql as 'insert into taken (id) select id from unnest(rows)';
		create function picky(rows births[]) returns void language plpgsql as $$ begin
			if exists (select from unnest(rows) r where r.id = 3) then raise 'not this one'; end if;
			insert into taken (id) select id from unnest(rows); end $$`, typ))
	s.source("births", fmt.Sprintf(`{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "margin": "1 microsecond", "safety": %q}`, safety), changes)
	s.exec(`select tidemark.type_set('town', 'birth')`)
	// Times run against the numbers, as they may in a source of the safety sequence.
	s.exec(fmt.Sprintf(`insert into births (born_at, odd) select timestamptz '2026-01-01' - n * interval '1 s', case n when 3 then (%s)::%s end from generate_series(1, 6) n`, value, typ))
	return s
}

const (
	tookIDs    = `select string_agg(id::text, ' ' order by at) from taken`
	emittedIDs = `select string_agg(subject_ref, ' ' order by seq) from tidemark.outbox where domain = 'town'`
	deadRows   = `select item_id, attempts, error_code, error_detail, event_snapshot ->> 'id' from tidemark.dead_letter where resolved_at is null order by 1`
)

// A column that cannot be jsonb: a worker that needs it as such refuses this row alone, and the letter of a row that is refused
// for another reason has what can be kept. What does not need the column takes the row.
func TestSourceValueThatJSONBCannotHold(t *testing.T) {
	t.Parallel()
	values := []struct{ typ, value, code string }{
		{"json", `'"\u0000"'`, "22P05"},
		{"json", `'{"\u0000": 1}'`, "22P05"},
		{"json", `'1e999999'`, "22003"},
		{"json", `'[1e-999999]'`, "22003"},
		{"json", `'"\ud800"'`, "22P02"},
		{"json", `'"\udc00x"'`, "22P02"},
		{"json", `deepest json`, "54001"},
		{"jsonb", `deepest jsonb`, "54001"},
		{"json[]", `array['1', '"\u0000"']::json[]`, "22P05"},
		{"doc", `'"\u0000"'`, "22P05"},
		{"docs", `array['"\u0000"']::json[]`, "22P05"},
	}
	for i, c := range values {
		for name, w := range map[string]struct {
			definition, effect, taken, dead string
			once                            bool
		}{
			"taking":  {`"sql", "handler_ref": "public.take"`, tookIDs, "1 2 3 4 5 6", "", true},
			"hiding":  {`"emit", "handler_ref": "town/birth"`, emittedIDs, "1 2 3 4 5 6", "", true},
			"picky":   {`"sql", "handler_ref": "public.picky"`, tookIDs, "1 2 4 5 6", "3 3 P0001 not this one 3", false},
			"showing": {`"emit", "handler_ref": "town/birth", "payload_columns": ["odd"]`, emittedIDs, "1 2 4 5 6", "3 3 " + c.code + " the row cannot be read as jsonb: column odd 3", false},
		} {
			if w.once && i > 0 {
				continue
			}
			t.Run(c.typ+" "+c.value+" "+name, func(t *testing.T) {
				t.Parallel()
				s := odds(t, c.typ, c.value, "sequence", "")
				s.worker("w", `{"handler": `+w.definition+`}`)
				s.add("w")
				s.retried()
				s.want(w.effect, w.taken)
				if w.dead == "" {
					s.want(deadRows)
				} else {
					s.want(deadRows, w.dead)
					s.want(`select l.event_snapshot -> '' ->> 'odd' from tidemark.dead_letter l`, c.code)
				}
				s.exec(`insert into births (born_at) values ('2026-01-01')`)
				s.drain()
				s.want(w.effect, w.taken+" 7")
			})
		}
	}
}

// A row that a sweep finds, one of a retry that is gone by then, and one that is mended.
func TestSourceValueInEachStep(t *testing.T) {
	t.Parallel()
	const bad, reason = `'"\u0000"'`, "22P05 the row cannot be read as jsonb: column odd"
	s := odds(t, "json", bad, "declared", `{"sweep_window": "1 hour"}`)
	s.worker("w", `{"handler": "emit", "handler_ref": "town/birth", "payload_columns": ["odd"]}`)
	s.add("w")
	s.retried()
	s.want(emittedIDs, "6 5 4 2 1")
	s.want(deadRows, "3 3 "+reason+" 3")

	s.exec(`insert into births (born_at, odd) select timestamptz '2026-01-01' - (n + 10) * interval '1 s', case n when 2 then json ` + bad + ` end from generate_series(1, 3) n`)
	s.sweep()
	s.retried()
	s.want(emittedIDs, "6 5 4 2 1 9 7")
	s.want(deadRows, "3 3 "+reason+" 3", "8 3 "+reason+" 8")

	s.exec(`update births set odd = '{"a": 1}' where id = 3; delete from births where id = 8; select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
	s.retried()
	s.want(emittedIDs, "6 5 4 2 1 9 7 3")
	s.want(deadRows, "8 4 TM005 the row is gone, and its snapshot could not hold column odd 8")
	s.want(`select event_snapshot ->> 'odd' from tidemark.dead_letter where item_id = '8'`, `"\u0000"`)
	s.want(findings, "cursor_dlq w/births/0")
}

// The same for a function that takes the rows in the table's type.
func TestSourceValueOfARowThatIsGone(t *testing.T) {
	t.Parallel()
	s := odds(t, "json", `'"\u0000"'`, "sequence", "")
	s.worker("w", `{"handler": "sql", "handler_ref": "public.picky"}`)
	s.add("w")
	s.once()
	s.exec(`create or replace function picky(rows births[]) returns void language sql as 'insert into taken (id) select id from unnest(rows)'; delete from births where id = 3`)
	s.retried()
	s.want(tookIDs, "1 2 4 5 6")
	s.want(deadRows, "3 3 TM005 the row is gone, and its snapshot could not hold column odd 3")
}

// A filter that raises an error for a row: that row is refused at once, and a replay does not ask the filter again.
func TestSourceFilterFailsForARow(t *testing.T) {
	t.Parallel()
	for _, safety := range []string{"sequence", "declared"} {
		t.Run(safety, func(t *testing.T) {
			t.Parallel()
			changes := `{"filter": "(odd ->> 'k') = 'x'"}`
			want := "1 2 4 6"
			if safety == "declared" {
				changes, want = merge(t, changes, `{"sweep_window": "1 hour"}`), "6 4 2 1"
			}
			s := odds(t, "json", `'{"k": "\u0000"}'`, safety, changes)
			s.exec(`update births set odd = '{"k": "x"}' where id not in (3, 5)`)
			s.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
			s.add("w")
			got := s.drain()
			s.want(tookIDs, want)
			s.want(deadRows, "3 1 22P05 the filter of the source fails: the row cannot be read as jsonb: column odd 3")
			if got.Taken != 4 || got.Failed != 1 {
				t.Errorf("%+v, want 4 taken and 1 failed", got)
			}
			if safety == "declared" {
				s.exec(`insert into births (born_at, odd) values ('2026-01-01', '{"k": "x"}'), (timestamptz '2026-01-01' + interval '1 day', '{"k": "x"}')`)
				s.drain()
				s.sweep()
				s.want(findings, "cursor_dlq w/births/0", "source_count_mismatch w/births/0")
				s.want(`select strpos(detail, '22P05') > 0 from tidemark.finding where kind = 'source_count_mismatch'`, "true")
				want += " 7 8"
			}
			s.exec(`select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
			s.retried()
			s.want(tookIDs, want+" 3")
			if safety == "declared" {
				s.exec(`update births set odd = '{"k": "x"}' where id = 3`)
				s.sweep()
				s.want(`select verified_through >= '2026-01-01 12:00+00' from tidemark.worker_cursor where worker = 'w'`, "true")
				s.exec(`select tidemark.maintain()`)
				s.want(findings)
			}
		})
	}
}

// The ends of what a timestamp can be.
func TestSourceTimesAtTheEnds(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"294276-12-31 23:59:59.999999+00", "4714-11-24 00:00+00 BC", "290000-01-01", "4000-01-01 BC", "infinity", "-infinity"} {
		for _, safety := range []string{"sequence", "declared"} {
			t.Run(at+" "+safety, func(t *testing.T) {
				t.Parallel()
				s := odds(t, "text", "'x'", safety, map[string]string{"declared": `{"sweep_window": "1 hour", "bucket": "30 days"}`}[safety])
				s.exec(`update births set born_at = $1::timestamptz where id = 3`, at)
				s.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
				s.add("w")
				s.drain()
				s.sweep()
				s.exec(`insert into births (born_at) values ('2026-01-01')`)
				s.drain()
				s.sweep()
				want := "1 2 3 4 5 6 7"
				if safety == "declared" && strings.HasPrefix(at, "29") { // in the future: not yet
					want = "1 2 4 5 6 7"
				}
				s.want(`select string_agg(id::text, ' ' order by id) from taken`, want)
				s.want(findings)
			})
		}
	}
}

// A time without zone at the ends of a timestamp, which the clock of its zone moves out of the range, counts as infinite: the
// row is taken as one with an infinite time is, or refused by itself, found again as it is then, and holds up no other.
func TestSourceLocalTimesAtTheEnds(t *testing.T) {
	t.Parallel()
	const early, late = "4714-11-24 00:00 BC", "294276-12-31 23:59:59.999999"
	for _, c := range []struct{ zone, at string }{
		{"Asia/Tokyo", early},
		{"Asia/Tokyo", late},
		{"America/Bogota", early},
		{"America/Bogota", late},
		{"Asia/Tokyo", "infinity"},
		{"Asia/Tokyo", "-infinity"},
		{"UTC", early},
		{"UTC", late},
	} {
		for _, safety := range []string{"sequence", "clock", "declared"} {
			t.Run(c.zone+" "+c.at+" "+safety, func(t *testing.T) {
				t.Parallel()
				s := tailing{open(t, tidemarktest.NewDB(t), "worker")}
				s.exec(fmt.Sprintf(`create table births (id bigint generated always as identity primary key, odd text,
						born_at timestamp not null default (now() at time zone %[1]s));
					create index on births (born_at, id);
					create table taken (at bigint generated always as identity, id bigint);
					create function take(rows births[]) returns void language plpgsql as $$ begin
						if exists (select from unnest(rows) r where r.odd = 'no') then raise 'not this one'; end if;
						insert into taken (id) select id from unnest(rows); end $$`, quoteLiteral(c.zone)))
				s.source("births", fmt.Sprintf(`{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "time_zone": %q,
					"margin": "1 microsecond", "safety": %q}`, c.zone, safety),
					map[string]string{"declared": `{"sweep_window": "1 hour", "bucket": "30 days"}`}[safety])
				s.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
				s.add("w")
				s.exec(`insert into births (born_at, odd) select case when n in (3, 4) then $1 else timestamp '2026-01-01' - n * interval '1 s' end,
					case when n = 3 then 'no' end from generate_series(1, 6) n`, c.at)
				s.drain()
				s.sweep()
				s.exec(`insert into births (born_at) values ('2026-01-02')`)
				s.want(`select x.unread from tidemark.worker_cursor c cross join lateral tidemark.cursor_unread(c) x where c.worker = 'w'`, "true")
				s.drain()
				s.sweep()
				s.retried()
				const took = `select string_agg(id::text, ' ' order by id) from taken`
				s.want(took, "1 2 4 5 6 7")
				s.want(`select l.item_id, l.attempts, l.error_code from tidemark.dead_letter l`, "3 3 P0001")
				s.exec(`update births set odd = null where id = 3; select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
				s.retried()
				s.want(took, "1 2 3 4 5 6 7")
				s.exec(`select tidemark.maintain()`)
				s.want(findings)
			})
		}
	}
}

// What else a column can hold fails nothing: each type at its edges, generated and dropped columns, as the payload of an event and
// in the snapshot of a row that is refused.
func TestSourceValuesOfEveryType(t *testing.T) {
	t.Parallel()
	s := tailing{open(t, tidemarktest.NewDB(t), "worker")}
	s.exec(`create type pair as (a int, doc json); create type mood as enum ('a'); create domain moody as mood; create type times as range (subtype = timestamptz)`)
	columns := []string{"id bigint generated always as identity primary key", "twice int generated always as (2 * 21) stored", "gone int"}
	var names, values []string
	for i, c := range []struct{ typ, value string }{
		{"json", `'{"a": "\u00e9\ud83d\ude00"}'`},
		{"pair", `row(1, '"\u0000"')`},
		{"pair[]", `array[row(1, '1e999999')]::pair[]`},
		{"mood", "'a'"},
		{"mood[]", "'{a,NULL}'"},
		{"moody", "'a'"},
		{"numeric", "'NaN'"},
		{"numeric", "'-Infinity'"},
		{"numeric", "1e131071"},
		{"numeric", "1e-16383"},
		{"float8", "'NaN'"},
		{"float4", "'Infinity'"},
		{"float8[]", "'{NaN,-Infinity}'"},
		{"timestamptz", "'infinity'"},
		{"timestamp", "'-infinity'"},
		{"timestamptz", "'294276-12-31 23:59:59.999999+00'"},
		{"timestamptz", "'4714-11-24 00:00+00 BC'"},
		{"date", "'5874897-12-31'"},
		{"date", "'infinity'"},
		{"date", "'4714-11-24 BC'"},
		{"time", "'24:00'"},
		{"timetz", "'00:00+15:59'"},
		{"interval", "'178000000 years'"},
		{"interval", "'-178000000 years -2147483648 days'"},
		{"money", "'-92233720368547758.08'"},
		{"xml", "'<a>&lt;</a>'"},
		{"bytea", `'\x00ff'`},
		{"bit(3)", "B'101'"},
		{"varbit", "B''"},
		{`"char"`, `''`},
		{"name", `'a"b'`},
		{"inet", "'::1/0'"},
		{"macaddr8", "'08:00:2b:01:02:03:04:05'"},
		{"pg_lsn", "'FFFFFFFF/FFFFFFFF'"},
		{"tsvector", `'''a\\'':1'`},
		{"tsquery", "'a & b'"},
		{"jsonpath", `'$."\u0001"'`},
		{"xid8", "'18446744073709551615'"},
		{"oid", "4294967295"},
		{"regclass", "4294967295"},
		{"point", "'(NaN,Infinity)'"},
		{"polygon", "'((0,0),(1,1))'"},
		{"pg_snapshot", "'10:20:10,14'"},
		{"int4range", "'empty'"},
		{"tstzrange", "'[-infinity,infinity]'"},
		{"times", "'[-infinity,infinity]'"},
		{"int4multirange", "'{[1,2),[5,)}'"},
		{"numrange", "'[NaN,]'"},
		{"text[]", "'[0:1]={a,NULL}'"},
		{"int[]", "'{{1,2},{3,4}}'"},
		{"int2vector", "'1 2'"},
		{"jsonb[]", `array['{"a": 1}', 'null']::jsonb[]`},
		{"text", `E'\u0001\u001f\\"\u007f\uffff\U0010ffff'`},
		{"text", `repeat('x', 500000)`},
		{"bytea", `convert_to(repeat('x', 100000), 'UTF8')`},
	} {
		name := fmt.Sprintf("c%d", i)
		columns, names, values = append(columns, name+" "+c.typ), append(names, name), append(values, c.value)
	}
	s.exec(`create table births (` + strings.Join(columns, ", ") + `); alter table births drop column gone;
		create function picky(rows births[]) returns void language plpgsql as $$ begin raise 'not this one'; end $$`)
	s.source("births", `{"table": "public.births", "id_column": "id", "safety": "sequence"}`)
	s.exec(`select tidemark.type_set('town', 'birth')`)
	s.worker("w", `{"handler": "emit", "handler_ref": "town/birth", "payload_columns": ["twice", "`+strings.Join(names, `", "`)+`"]}`)
	s.add("w")
	s.worker("picky", `{"handler": "sql", "handler_ref": "public.picky"}`)
	s.add("picky")
	s.exec(`insert into births (` + strings.Join(names, ", ") + `) values (` + strings.Join(values, ", ") + `)`)
	s.drain()
	const shown = `(select count(*) from jsonb_each(%s) where value <> 'null')`
	s.want(fmt.Sprintf(`select subject_ref, `+shown+` from tidemark.outbox where domain = 'town'`, "payload"), fmt.Sprintf("1 %d", len(names)+2))
	s.want(deadRows)
	s.exec(`select tidemark.worker_run('picky')`)
	s.want(fmt.Sprintf(`select item_id, `+shown+`, snapshot ? '' from tidemark.pending_row`, "snapshot"), fmt.Sprintf("1 %d false", len(names)+2))
}

// A retry makes JSON of the rows that it tries again, and of no other row of the table: each fails for its own reason.
func TestSourceRetryReadsItsRowsOnly(t *testing.T) {
	t.Parallel()
	s := odds(t, "json", `'"\u0000"'`, "sequence", "")
	s.exec(`update births set odd = '1e999999' where id = 5; analyze births`)
	s.worker("w", `{"handler": "emit", "handler_ref": "town/birth", "payload_columns": ["odd"]}`)
	s.add("w")
	s.retried()
	const reason = " the row cannot be read as jsonb: column odd "
	s.want(deadRows, "3 3 22P05"+reason+"3", "5 3 22003"+reason+"5")
}
