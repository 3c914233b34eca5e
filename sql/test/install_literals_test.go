package test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Of a database or role with standard_conforming_strings = off, a backslash in a plain literal is the beginning of an escape. What is
// installed there is the same, and does the same.
func TestBackslashesOfAnotherSetting(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewEmptyDB(t)
	s := open(t, db, "operator")
	s.exec(fmt.Sprintf(`alter database %q set standard_conforming_strings = off`, one[string](s, `select current_database()`)))
	s = open(t, db, "operator")
	s.wantRows(`show standard_conforming_strings`, "off")
	if _, err := migrate.Up(t.Context(), s.conn); err != nil {
		t.Fatal(err)
	}
	s.exec(`set standard_conforming_strings = on`) // expressions are written by it
	equal(t, "the schema", strings.Join(schema(s), "\n"), strings.Join(schema(open(t, tidemarktest.NewDB(t), "operator")), "\n"))
	s.exec(`reset standard_conforming_strings`)

	s.exec(`select tidemark.domain_set('meta', '{"metadata_only": true}'), tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true), tidemark.type_set('meta', 't')`)
	for _, payload := range []string{`{"password": 1}`, `{"Pass-Word": 1}`, `{"p\u0061ssword": 1}`, `{"a": "{\"pass\\u0077ord\": 1}"}`, `{"pássword": 1}`} {
		s.refused("TM003", "", `select tidemark.emit('meta', 't', $1)`, payload)
	}
	s.exec(`select tidemark.emit('meta', 't', '{"a": 1}')`)
	s.exec(`select tidemark.heartbeat_register('job', 'Agent'), tidemark.heartbeat_write('job', 'ok', '{"a": 1}')`)
	s.exec(`select * from tidemark.maintain()`)
	s.wantRows(`select concat_ws(' ', p.first_seq, p.end_seq) from tidemark.partitions('tidemark.outbox') p limit 2`, "0 1000000", "1000000 2000000")
	s.wantRows(`select tidemark.seq_of_time('-infinity')::text`, "1")
	s.wantRows(`select tidemark.shell_word('it''s')`, one[string](s, `select $1::text`, `'it'\''s'`))
	s.exec(`create table public.orders (id int primary key, note text); select tidemark.type_set('shop', 'order.changed'),
		tidemark.inbound_route_set('orders', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "shop", "type": "order.changed", "payload_columns": ["note"], "enabled": true, "dry_run": false}')`)
	s.exec(`select tidemark.capture_attach('orders', 'why')`)
	s.exec(`insert into public.orders values (1, $1)`, `a\b'c`)
	s.wantRows(`select o.payload #>> '{columns,note}' from tidemark.outbox o where o.domain = 'shop'`, `a\b'c`)
}

// A function's body is read with the setting of the session that calls it.
func TestBodiesHaveNoPlainLiteralWithABackslash(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	s.exec(`create table public."or\ders" (id int primary key, "no\te" text)`)
	s.exec(`select tidemark.type_set('shop', 'order.changed'),
		tidemark.inbound_route_set('orders', $1)`, `{"source_schema": "public", "source_table": "or\\ders", "sql_event": "insert", "domain": "shop", "type": "order.changed", "payload_columns": ["no\\te"]}`)
	s.exec(`select tidemark.capture_attach('"or\ders"', 'why')`)
	names := column[string](s, `select p.proname::text from `+ours+` and not coalesce('standard_conforming_strings=on' = any (p.proconfig), false) order by p.oid`)
	if !slices.Contains(names, "capture_1") || !slices.Contains(names, "plain_text") {
		t.Fatalf("functions are missing: %q", names)
	}
	for _, name := range names {
		for _, literal := range plainLiterals(one[string](s, `select p.prosrc from `+ours+` and p.proname = $1`, name)) {
			if strings.Contains(literal, `\`) {
				t.Errorf("%s: %s depends on standard_conforming_strings: write E'…' or no backslash", name, literal)
			}
		}
	}
	equal(t, "literals", strings.Join(plainLiterals(`'a' || E'b\''
		'\' || ' || 'e' -- '
		/* ' */ || "'" || $x$ 'c' $x$ || $json$ "'" $json$ || 'd''\'`), " "), `'a' 'e' 'c' 'd''\'`)
}

var (
	dollarQuote = regexp.MustCompile(`^\$[a-z_]*\$`)
	continues   = regexp.MustCompile(`^\s*\n\s*$`)
)

// plainLiterals finds the literals without a prefix in SQL, also those in SQL between dollars.
func plainLiterals(sql string) (all []string) {
	// to is what follows the first end after the place.
	to := func(from int, end string) int {
		if n := strings.Index(sql[from:], end); n >= 0 {
			return from + n + len(end)
		}
		return len(sql)
	}
	last, escaped := 0, false // where the literal before ended, and whether it had a prefix
	for i := 0; i < len(sql); {
		switch quote := dollarQuote.FindString(sql[i:]); {
		case strings.HasPrefix(sql[i:], "--"):
			i = to(i, "\n")
		case strings.HasPrefix(sql[i:], "/*"):
			i = to(i, "*/")
		case sql[i] == '"':
			i = to(i+1, `"`)
		case quote != "":
			end := to(i+len(quote), quote)
			if quote != "$json$" {
				all = append(all, plainLiterals(sql[i+len(quote):end-len(quote)])...)
			}
			i = end
		case sql[i] == '\'':
			// A literal goes on in the next line as it began.
			escapes := i > 0 && sql[i-1] == 'E' || escaped && continues.MatchString(sql[last:i])
			end := i + 1
			for ; end < len(sql) && (sql[end] != '\'' || strings.HasPrefix(sql[end:], "''")); end++ {
				if sql[end] == '\'' || escapes && sql[end] == '\\' {
					end++
				}
			}
			if end = min(end+1, len(sql)); !escapes {
				all = append(all, sql[i:end])
			}
			i, last, escaped = end, end, escapes
		default:
			i++
		}
	}
	return all
}
