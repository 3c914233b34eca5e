package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// What a rewind would read again is told before it, and is what it then reads. It is counted up to 10,000, and moves nothing.
func TestRewindOutlookOfATable(t *testing.T) {
	t.Parallel()
	const insert = `insert into births (name) select 'b' || n from generate_series(1, 500) n`
	for name, c := range map[string]struct{ safety, changes, shards, to string }{
		"sequence":       {"sequence", "", "1", `to_id => '200'`},
		"clock":          {"clock", "", "1", `to_ts => (select born_at from births where id = 201)`},
		"sweep":          {"declared", `{"sweep_window": "1 hour", "bucket": "1 minute"}`, "1", `to_ts => (select born_at from births where id = 201)`},
		"from the start": {"clock", "", "1", `to_ts => '-infinity'`},
		"shards":         {"clock", "", "3", `to_ts => (select born_at from births where id = 201)`},
		"filter":         {"sequence", `{"filter": "name < 'b3'"}`, "1", `to_id => '0'`},
		"local time":     {"clock", `{"timestamp_column": "at_home", "time_zone": "Asia/Bangkok"}`, "1", `to_ts => (select at_home at time zone 'Asia/Bangkok' from births where id = 201)`},
		"nowhere":        {"sequence", "", "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tailing{open(t, tidemarktest.NewDB(t), "worker")}
			s.exec(`create table births (id bigint generated always as identity primary key, born_at timestamptz not null default clock_timestamp(),
				at_home timestamp not null default (clock_timestamp() at time zone 'Asia/Bangkok'), name text)`)
			s.exec(`create index on births (born_at, id); create index on births (at_home, id);
				create table taken (id text); create function take(rows births[]) returns void language sql as 'insert into taken select (unnest(rows)).id'`)
			s.source("births", `{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "safety": "`+c.safety+`", "margin": "1 microsecond"}`, c.changes)
			s.worker("w", `{"handler": "sql", "handler_ref": "public.take", "shards": `+c.shards+`}`)
			s.add("w")
			if c.safety == "declared" {
				s.exec(`alter table births alter born_at set default now() - interval '3 hours'`)
			}
			s.exec(insert)
			s.drain()
			s.exec(`truncate taken`)
			to := `'w', 'births'`
			if c.to != "" {
				to += ", " + c.to
			}
			before := s.lines(`select watermark_ts, watermark_id from tidemark.worker_cursor where worker = 'w' order by shard`)
			told := s.lines(`select sum(rows) || ' ' || bool_and(complete) || ' ' || count(*) || ' ' || coalesce(min(problem), '') from tidemark.source_rewind_outlook(` + to + `)`)
			s.want(`select watermark_ts, watermark_id from tidemark.worker_cursor where worker = 'w' order by shard`, before...)
			s.exec(`select tidemark.source_rewind('w', 'births', 'again'` + to[len(`'w', 'births'`):] + `)`)
			s.drain()
			s.want(`select count(*) || ' true `+c.shards+` ' from taken`, told...)
		})
	}
}

// More rows than are counted, and a table that the caller may not read.
func TestRewindOutlookIsBounded(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`insert into births (name) select 'b' from generate_series(1, 10001)`)
	s.exec(`update tidemark.worker_cursor set watermark_id = '10000' where worker = 'w'`)
	const outlook = `select rows, complete, problem from tidemark.source_rewind_outlook('w', 'births', to_id => '0')`
	s.want(outlook, "10000 true -")
	s.exec(`update tidemark.worker_cursor set watermark_id = '10001' where worker = 'w'`)
	s.want(outlook, "10000 false -")
	s.refused("TM005", "not moved forwards", `select tidemark.source_rewind_outlook('w', 'births', to_id => '20000')`)
	s.refused("TM005", "rewind it to a number", `select tidemark.source_rewind_outlook('w', 'births', now())`)
	s.refused("TM004", "no cursor of source nope", `select tidemark.source_rewind_outlook('w', 'nope', to_id => '0')`)
	s.exec(`set role tidemark_admin`)
	s.want(outlook, "- false permission denied for table births")
}

// Numbers of any size that a column can have.
func TestRewindToALongNumber(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`alter table births alter id restart with 9223372036854775000`)
	s.exec(`select tidemark.source_rewind('w', 'births', 'restarted')`)
	s.exec(insertBirths)
	s.drain()
	s.want(`select max(id) from taken`, "9223372036854775004")
	for _, to := range []string{"9223372036854775807", "-9223372036854775809", "99999999999999999999", "1e3", "", " 1"} {
		s.refused("TM005", "rewind it to a number", `select tidemark.source_rewind('w', 'births', 'again', to_id => '`+to+`')`)
	}
	s.want(`select rows from tidemark.source_rewind_outlook('w', 'births', to_id => '9223372036854775002')`, "2")
	s.exec(`truncate taken; select tidemark.source_rewind('w', 'births', 'again', to_id => '9223372036854775002')`)
	s.drain()
	s.want(`select id from taken order by id`, "9223372036854775003", "9223372036854775004")
	s.exec(`select tidemark.source_rewind('w', 'births', 'again', to_id => '-9223372036854775808')`)
	s.drain()
	s.want(`select count(*) from taken`, "7")
}
