package test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// filterSeeds are filters, and whether one of them is let through.
var filterSeeds = map[string]bool{
	"": true, "true": true, "kind = 'a' and (id > 5 or id < -1)": true, `"kind" like '50%% -- no /* comment */ ; $1'`: true,
	"kind in ('select', 'it''s (')": true, "kind ~ '^[a-z]+\\d$'": true, "(array[1, 2])[1] = id": true, "timestamp '2026-01-01' < at": true,
	"selected or tables": true, "col2table = 1 or x1select": true, `"select" = 1`: true,
	"true -- x": false, "true /* x */": false, "true /* ' */ or exists (select from other) /* ' */": false, "true */ /*": false,
	"true) or (true": false, "true] or array[true": false, "(true": false, "array[1": false, "(true]": false,
	"true; drop table other": false, "$$a$$ = kind": false, "$x$ ' $x$ = kind": false, "id = $1": false, "kind = 'a": false, `"kind`: false,
	`kind = E'\' or exists (select from other) --'`: false, `kind = '\' or exists (select from other) or kind = '`: false,
	`kind = U&'\0027'`: false, `u&"kind" = 'a'`: false, "kind = e'a'": false, "exists (select from other)": false, "exists (SELECT from other)": false,
	"exists(table other)": false, "exists (with x as (table other) table x)": false, "kind = 'a\\' ": false,
}

func TestFilterProblem(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "filters")
	for filter, good := range filterSeeds {
		if got := one[string](s, `select coalesce(tidemark.filter_problem($1), '')`, filter); (got == "") != good {
			t.Errorf("%s: %q", filter, got)
		}
	}
}

// FuzzFilter: what filter_problem lets through stays between its parentheses and asks no other table, whatever the
// setting of literals: PostgreSQL itself is asked.
func FuzzFilter(f *testing.F) {
	for seed := range filterSeeds {
		f.Add(seed)
	}
	db := tidemarktest.NewDB(f)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.URL)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close(ctx) })
	if _, err := conn.Exec(ctx, `create table other (id int); create table mine (id int, kind text, at timestamptz, "select" int, selected bool, tables bool, col2table int, x1select bool); insert into mine values (1)`); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, filter string) {
		var problem *string
		if err := conn.QueryRow(ctx, `select tidemark.filter_problem($1)`, filter).Scan(&problem); err != nil {
			if strings.Contains(err.Error(), "22021") { // no text
				return
			}
			t.Fatal(err)
		}
		if problem != nil {
			return
		}
		for _, conforming := range []string{"on", "off"} {
			tx, err := conn.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var rows, others int
			_, err = tx.Exec(ctx, "set local escape_string_warning = off; set local statement_timeout = '1s'; set local standard_conforming_strings = "+conforming+";"+
				"create temp view seen as select from public.mine where ("+filter+") and false")
			if err == nil {
				err = tx.QueryRow(ctx, `select (select count(*) from seen), (select count(*) from pg_depend d join pg_rewrite w on w.oid = d.objid
					where w.ev_class = 'seen'::regclass and d.refclassid = 'pg_class'::regclass and d.refobjid not in ('seen'::regclass, 'public.mine'::regclass))`,
					pgx.QueryExecModeSimpleProtocol).Scan(&rows, &others)
			}
			if err == nil && (rows != 0 || others != 0) {
				t.Errorf("%q with standard_conforming_strings %s: %d rows, %d other relations", filter, conforming, rows, others)
			}
			if err := tx.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
}
