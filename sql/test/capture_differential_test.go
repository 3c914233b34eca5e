package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CA2, CA3: the application sees no difference. The same random statements run on a table that is captured and on
// one that is not, with constraints that fail, savepoints and rollbacks, while routes are switched:
// the same command tags, errors and rows. And what is committed while a route is on is in the log, and nothing else
// is: row triggers write down on the other table what happened.
func TestCaptureDifferential(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			differential(t, seed, 690)
		})
	}
}

// inPieces makes the two tables partitioned ones.
const inPieces = `
alter table with_capture rename to with_capture_a; alter table without rename to without_a;
create table with_capture (like with_capture_a including all) partition by range (id);
create table without (like without_a including all) partition by range (id);
alter table with_capture attach partition with_capture_a for values from (minvalue) to (50);
alter table without attach partition without_a for values from (minvalue) to (50);
create table with_capture_b partition of with_capture for values from (50) to (100) with (autovacuum_enabled = off);
create table without_b partition of without for values from (50) to (100) with (autovacuum_enabled = off);`

const differentialTables = `
create table with_capture (id int primary key, grp int not null, v text, n numeric check (n < 90), doc jsonb, twice int generated always as (grp * 2) stored, unique (grp, id), check (id < 100));
create table without (like with_capture including all);
-- A vacuum of one alone would move its rows, and with them which row violates a constraint first.
alter table with_capture set (autovacuum_enabled = off); alter table without set (autovacuum_enabled = off);
create table happened (at bigint generated always as identity, line text);
create function note() returns trigger language plpgsql as $$
begin
    if (tg_op <> 'UPDATE' or new *<> old) and exists (select from tidemark.inbound_route r where r.source_table = 'with_capture' and r.sql_event = lower(tg_op) and r.enabled) then
        insert into happened (line) values (lower(tg_op) || ' ' || case tg_op when 'TRUNCATE' then 'null' when 'DELETE' then old.id::text else new.id::text end
            || case when tg_op = 'UPDATE' then ' ' || (select jsonb_agg(n.key order by array_position(array['id','grp','v','n','doc','twice'], n.key))
                from jsonb_each(to_jsonb(new)) n join jsonb_each(to_jsonb(old)) o using (key) where n.value::text <> o.value::text)::text
                || case when new.id <> old.id then ' was ' || old.id else '' end else '' end);
    end if;
    return null;
end $$;
create function note_truncate() returns trigger language plpgsql as $$
begin
    if exists (select from tidemark.inbound_route r where r.source_table = 'with_capture' and r.sql_event = 'truncate' and r.enabled) then
        insert into happened (line) values ('truncate null');
    end if;
    return null;
end $$;
create trigger note after insert or update or delete on without for each row execute function note();
create trigger note_truncate after truncate on without for each statement execute function note_truncate();`

func differential(t *testing.T, seed uint64, transactions int) {
	db := tidemarktest.NewDB(t)
	s := open(t, db, "app")
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true)`)
	partitioned := seed%2 == 1
	before, after, _ := strings.Cut(differentialTables, "create table happened")
	s.exec(before)
	if partitioned {
		s.exec(inPieces)
	}
	s.exec("create table happened" + after)
	s.capture("with_capture")
	if seed >= 2 {
		// The functions were made for other tables: the long way.
		s.exec("alter table with_capture add column extra int; alter table without add column extra int")
	}
	// Which row of a statement violates a constraint first goes by where the rows lie. An old snapshot keeps the server from
	// freeing space in one of the tables and, when an analyze has held it up, not in the other.
	old := open(t, db, "old")
	old.exec(`begin isolation level repeatable read; select 1`)
	defer old.rollback()
	r := rand.New(rand.NewPCG(seed, 9))
	statements, failed := 0, 0
	for n := range transactions {
		if n%10 == 0 {
			s.exec(switches(r))
		}
		var script []string
		for range 1 + r.IntN(7) {
			script = append(script, randomStatement(r, partitioned))
		}
		statements += len(script)
		script = append(script, []string{"commit", "commit", "commit", "rollback"}[r.IntN(4)])
		with, without := runScript(s, script, "with_capture"), runScript(s, script, "without")
		if diff := cmp.Diff(without, with); diff != "" {
			t.Fatalf("transaction %d (seed %d): %s\n(-without capture +with capture)\n%s", n, seed, strings.Join(script, ";\n"), diff)
		}
		failed += strings.Count(strings.Join(with, "\n"), "ERROR")
	}
	const rowsOf = `select t::text from %s t order by id`
	if diff := cmp.Diff(column[string](s, fmt.Sprintf(rowsOf, "without")), column[string](s, fmt.Sprintf(rowsOf, "with_capture"))); diff != "" {
		t.Errorf("rows (-without capture +with capture)\n%s", diff)
	}
	const logged = `select concat_ws(' ', o.type, coalesce(o.key, 'null'), o.payload ->> 'changed', 'was ' || (o.payload -> 'old_primary_key' ->> 'id')) from tidemark.outbox o order by 1`
	events := column[string](s, logged)
	if diff := cmp.Diff(column[string](s, `select line from happened order by 1`), events); diff != "" {
		t.Errorf("events (-happened +in the log)\n%s", diff)
	}
	if statements < 2500 || failed < statements/20 || len(events) < 800 {
		t.Errorf("%d statements, %d failed, %d events: proves too little", statements, failed, len(events))
	}
}

// switches opens or closes the gate, which capture does not ask, and turns routes on or off.
func switches(r *rand.Rand) string {
	var on []string
	for _, operation := range []string{"insert", "update", "delete", "truncate"} {
		if r.IntN(5) > 0 {
			on = append(on, operation)
		}
	}
	return fmt.Sprintf(`select tidemark.gate_set('routes.enabled', %t); update tidemark.inbound_route set enabled = sql_event = any ('{%s}'), idempotency_policy = 'change'`,
		r.IntN(6) > 0, strings.Join(on, ","))
}

func randomStatement(r *rand.Rand, partitioned bool) string {
	id, few := r.IntN(110), 1+r.IntN(6)
	value := []string{"null", "'x'", "'X'", "'" + strings.Repeat("long", 800) + "'"}[r.IntN(4)]
	switch r.IntN(20) {
	case 0, 1, 2:
		return fmt.Sprintf(`insert into %%s (id, grp, v, n) values (%d, %d, %s, %d.%d)`, id, r.IntN(5), value, r.IntN(100), r.IntN(2))
	case 3, 4:
		return fmt.Sprintf(`insert into %%s (id, grp, doc) select g, %d, '{"a": %d}' from generate_series(%d, %d) g on conflict (id) do nothing`, r.IntN(5), r.IntN(3), id, id+few)
	case 5:
		return fmt.Sprintf(`insert into %%s (id, grp, v) select g, %d, %s from generate_series(%d, %d) g on conflict (id) do update set v = excluded.v, n = 1`, r.IntN(5), value, id, id+few)
	case 6, 7, 8:
		return fmt.Sprintf(`update %%s set v = %s, n = %d where id between %d and %d`, value, r.IntN(95), id, id+few)
	case 9:
		return fmt.Sprintf(`update %%s set grp = %d where grp = %d`, r.IntN(5), r.IntN(5))
	case 10: // not into another partition, where a row trigger sees a delete and an insert
		return fmt.Sprintf(`update %%s set id = id + %[1]d where id between %[2]d and %[3]d and (id < 50) = (id + %[1]d < 50)`, r.IntN(60)-30, id, id+few)
	case 11:
		return fmt.Sprintf(`update %%s set v = v where id > %d`, id)
	case 12:
		return fmt.Sprintf(`delete from %%s where id between %d and %d`, id, id+few)
	case 13:
		insert := `insert (id, grp) values (s.id, s.grp)`
		if partitioned { // TestCaptureOfMergeIntoPartitions
			insert = `do nothing`
		}
		return fmt.Sprintf(`merge into %%s t using (select g as id, %d as grp from generate_series(%d, %d) g) s on t.id = s.id
			when matched and t.grp = s.grp then delete when matched then update set grp = s.grp when not matched then %s`, r.IntN(5), id, id+few, insert)
	case 14:
		return fmt.Sprintf(`with gone as (delete from %%[1]s where id between %d and %d returning id) insert into %%[1]s (id, grp) select id + 200, 1 from gone`, id, id)
	case 15:
		if r.IntN(8) == 0 {
			return `truncate %s`
		}
		return fmt.Sprintf(`update %%s set grp = null where id = %d`, id)
	case 16, 17:
		return fmt.Sprintf(`savepoint s%d`, r.IntN(2))
	default:
		return fmt.Sprintf(`rollback to s%d`, r.IntN(2))
	}
}

// runScript runs the statements in one transaction, each in a subtransaction of its own, and returns what the
// application sees of each: its command tag or its SQLSTATE.
func runScript(s session, script []string, table string) (seen []string) {
	s.t.Helper()
	s.begin()
	for _, statement := range script {
		statement = strings.ReplaceAll(strings.ReplaceAll(statement, "%[1]s", table), "%s", table)
		own := !strings.Contains(statement, "savepoint s") && !strings.Contains(statement, "rollback") && statement != "commit"
		if own {
			statement = "savepoint own; " + statement + "; release own"
		}
		results, err := s.conn.PgConn().Exec(context.Background(), statement).ReadAll()
		var refused *pgconn.PgError
		switch {
		case errors.As(err, &refused):
			seen = append(seen, "ERROR "+refused.Code)
			if own {
				s.exec("rollback to own")
			} else if s.conn.PgConn().TxStatus() == 'E' { // there is no such savepoint
				s.rollback()
				return seen
			}
		case err != nil:
			s.t.Fatal(err)
		case own:
			seen = append(seen, results[1].CommandTag.String())
		}
	}
	return seen
}
