package test

import (
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// RW13: a page ends where its rows are more than batch.max_bytes, and has one row at least; whatever the size of the rows,
// each is taken once, in order.
func TestSourcePageOfBytes(t *testing.T) {
	t.Parallel()
	const budget = 400000
	for name, c := range map[string]struct{ safety, changes, wide string }{
		"sequence, text":     {"sequence", "", `text`},
		"sequence, json":     {"sequence", "", `jsonb`},
		"clock, bytea":       {"clock", "", `bytea`},
		"declared, in parts": {"declared", `{"sweep_window": "1 hour", "filter": "id % 7 <> 0"}`, `text`},
		"compressed":         {"sequence", "", `text`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), c.safety, c.changes)
			s.exec(fmt.Sprintf(`insert into tidemark.setting (key, value) values ('batch.max_bytes', '%d') on conflict (key) do update set value = excluded.value;
				alter table births add wide %s; alter table births alter born_at set default now();
				create table pages (bytes bigint, n int);
				create or replace function take(rows births[]) returns jsonb language sql as $$
				insert into taken (id) select id from unnest(rows);
				insert into pages select sum(length(wide::text)), count(*) from unnest(rows); select null::jsonb $$`, budget, c.wide))
			// Every 10th has 100 kB, one more than the whole budget, the others nothing.
			value := `(select string_agg(md5(n::text || k::text), '') from generate_series(1, case when n = 55 then 20000 else 3000 end) k)`
			if name == "compressed" {
				value = `repeat('x', case when n = 55 then 640000 else 96000 end)`
			}
			switch c.wide {
			case "jsonb":
				value = `to_jsonb(` + value + `)`
			case "bytea":
				value = `convert_to(` + value + `, 'UTF8')`
			}
			s.exec(`insert into births (wide) select case when n % 10 = 0 or n = 55 then ` + value + ` end from generate_series(1, 200) n`)
			s.drain()
			s.sweep()
			s.exec(`delete from births where id % 7 = 0 and ` + fmt.Sprint(c.changes != ""))
			s.exact()
			s.want(`select count(*) from taken a join taken b on b.at > a.at and b.id::int < a.id::int`, "0")
			s.want(`select kind from tidemark.finding where closed_at is null`)
			limit := budget
			if c.wide == "bytea" { // in hexadecimal digits
				limit *= 2
			}
			s.want(fmt.Sprintf(`select count(*) from pages where bytes > %d and n > 1`, limit), "0")
			s.want(`select count(*) > 3, count(*) < 30 from pages`, "true true")
		})
	}
}

// Rows of a table without large columns are not measured.
func TestSourcePageOfSmallRows(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`insert into births (name) select 'b' from generate_series(1, 5000)`)
	s.rewrite("source_budget", "elsif plan.step = 'retry' then", "end if; raise 'measured'; if plan.step = 'retry' then")
	if got := s.once(); got.Taken != 5000 {
		t.Errorf("%+v, want one page", got)
	}
}

// The setting holds for tables too, and so does the least it can be: rows of 30,000 bytes come in twos, not one by one.
func TestSourcePageOfLeastBytes(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	s.exec(`update tidemark.setting set value = '1' where key = 'batch.max_bytes'; alter table births add wide text;
		alter table births alter wide set storage external;
		insert into births (wide) select repeat('x', 30000) from generate_series(1, 6)`)
	for range 3 {
		if got := s.once(); got.Taken != 2 {
			t.Errorf("%+v, want 2 rows", got)
		}
	}
}
