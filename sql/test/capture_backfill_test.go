package test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// backfilled is a table with rows that were there before it was captured, and a type for what it is backfilled with.
func backfilled(t *testing.T, create string) (session, *tidemarktest.DB) {
	t.Helper()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "app")
	s.exec(`select tidemark.stage_set('live', 'test')`)
	s.exec(create)
	s.capture("orders")
	s.exec(`select tidemark.type_set('app', 'read'), tidemark.inbound_route_set(left(md5('orders'), 6) || '-' || o, '{"payload_columns": ["state"]}')
		from unnest(array['insert', 'update']) o`)
	return s, db
}

const (
	begins   = `select tidemark.capture_backfill_begin('orders', 'read', 'test')`
	readsOn  = `select concat_ws(' ', emitted, left_out, complete) from tidemark.capture_backfill_step((select max(id) from tidemark.capture_backfill), 2)`
	progress = `select concat_ws(' ', rows, left_out, finished_at is not null, cancelled_at is not null, (select count(*) from tidemark.capture_backfill_key)) from tidemark.capture_backfill`
)

// RO12: the rows of a captured table become events, in the order of their key, and rows that change meanwhile do so once.
func TestCaptureBackfill(t *testing.T) {
	t.Parallel()
	s, _ := backfilled(t, `create table orders (shop text, id int, state text, primary key (shop, id));
		insert into orders select 'a', n, 'old' from generate_series(1, 5) n`)
	s.exec(begins)
	s.refused("TM005", "a backfill of public.orders is under way", begins)
	s.wantRows(readsOn, "2 0 f")
	s.wantEvents(`read a,1 {"state": "old"}`, `read a,2 {"state": "old"}`)
	s.wantRows(`select (payload - 'columns')::text from tidemark.outbox where seq = 1`,
		`{"table": "orders", "schema": "public", "operation": "read", "primary_key": {"id": 1, "shop": "a"}}`)
	s.exec(`insert into orders values ('b', 1, 'new'); update orders set state = 'changed' where id in (2, 4); delete from orders where id = 5`)
	s.exec(`select set_config('test.seen', last_value::text, false) from tidemark.outbox_seq_seq`)
	s.wantRows(readsOn, "1 1 f")
	s.wantEvents(`read a,3 {"state": "old"}`)
	s.wantRows(readsOn, "0 1 f")
	s.wantRows(readsOn, "0 0 t")
	s.wantEvents()
	s.wantRows(progress, "3 2 t f 0")
	s.refused("TM004", "no backfill 1 under way", readsOn)

	// Again, for another consumer; and given up.
	s.exec(begins)
	s.wantRows(readsOn, "2 0 f")
	s.wantEvents(`read a,1 {"state": "old"}`, `read a,2 {"state": "changed"}`)
	s.refused("TM005", "needs a reason", `select tidemark.capture_backfill_cancel(2, '')`)
	s.exec(`select tidemark.capture_backfill_cancel(max(id), 'test') from tidemark.capture_backfill`)
	s.refused("TM004", "under way", readsOn)
}

// What cannot be whole is refused.
func TestCaptureBackfillRefuses(t *testing.T) {
	t.Parallel()
	s, _ := backfilled(t, `create table orders (id int primary key, state text)`)
	s.refused("TM001", "event type app/none is not registered", `select tidemark.capture_backfill_begin('orders', 'none', 'test')`)
	s.refused("TM005", "a backfill needs a reason", `select tidemark.capture_backfill_begin('orders', 'read', '')`)
	s.exec(`insert into orders values (1, 'a')`)
	s.exec(begins)
	for _, operation := range []string{"insert", "update"} {
		for _, off := range []string{"enabled = false", "dry_run = true"} {
			s.exec(`begin; update tidemark.inbound_route set ` + off + ` where sql_event = '` + operation + `'`)
			s.refused("TM005", "the "+operation+"s of public.orders are not captured", readsOn)
			s.refused("TM005", "the "+operation+"s of public.orders are not captured", begins)
			s.exec(`rollback`)
		}
	}
	s.exec(`begin; alter table orders disable trigger tidemark_capture_update`)
	s.refused("TM005", "the updates of public.orders are not captured", readsOn)
	s.exec(`rollback; begin; alter table orders rename to orders_old; create table orders (id int primary key)`)
	s.refused("42501", "public.orders is another table by now", readsOn)
	s.exec(`rollback; begin isolation level repeatable read`)
	s.refused("TM006", "read committed", readsOn)
	s.refused("TM006", "read committed", begins)
	s.exec(`rollback`)
	s.exec(`create role ` + "backfill_admin" + ` in role tidemark_admin`)
	s.exec(`begin; set local role backfill_admin`)
	s.refused("42501", "must be owner of table", begins)
	s.refused("42501", "", readsOn)
	s.exec(`rollback; drop role backfill_admin`)
}

// A key whose type has code of the table's owner is refused before a step would run that code with the caller's rights.
func TestCaptureBackfillRunsNoCodeOfTheOwner(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ create, keyType, text string }{
		"domain": {`create function owners(v text) returns boolean language plpgsql as $$ begin insert into public.ran values (current_user); return true; end $$;
			create domain key_type as text check (public.owners(value))`, "key_type", "key_type"},
		"enum": {`create type key_type as enum ('1', '2', '3');
			create function owners(v text) returns key_type language plpgsql as $$ begin insert into public.ran values (current_user); return '1'; end $$;
			create cast (text as key_type) with function owners(text)`, "key_type", "text::key_type"},
		"array": {`create function owners(v text) returns boolean language plpgsql as $$ begin insert into public.ran values (current_user); return true; end $$;
			create domain key_part as text check (public.owners(value))`, "key_part[]", "text::text[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := backfilled(t, `create table ran (by text); create table orders (id text primary key, state text)`)
			s.exec(of.create)
			value := `'1'`
			if name == "array" {
				value = `'{1}'`
			}
			s.exec(`insert into orders values (` + value + `, 'old')`)
			s.exec(begins)
			s.wantRows(readsOn, "1 0 f")
			s.exec(`alter table orders alter id type ` + of.keyType + ` using id::` + of.text + `; truncate ran`)
			why := "the primary key of public.orders has the column id, of type public." + of.keyType
			s.refused("TM005", why, readsOn)
			s.exec(`select tidemark.capture_backfill_cancel(1, 'test')`)
			s.refused("TM005", why, begins)
			s.wantRows(`select by from ran`)
		})
	}
}

// Another key has another order, in which the place of the backfill means nothing.
func TestCaptureBackfillKeepsItsKey(t *testing.T) {
	t.Parallel()
	s, _ := backfilled(t, `create table orders (id int primary key, other int not null, note text not null, state text);
		insert into orders select n, 10 - n, n, 'old' from generate_series(1, 5) n`)
	s.exec(begins)
	s.wantRows(readsOn, "2 0 f")
	for _, change := range []string{
		`drop constraint orders_pkey, add primary key (other)`,
		`drop constraint orders_pkey, add primary key (id, other)`,
		`alter id type text`,
		`drop constraint orders_pkey; alter table orders rename id to was; alter table orders rename other to id; alter table orders add primary key (id)`,
	} {
		s.exec(`begin; alter table orders ` + change)
		s.refused("TM005", "public.orders: its primary key has changed since the backfill began", readsOn)
		s.exec(`rollback`)
	}
	s.exec(`begin; alter table orders drop constraint orders_pkey`)
	s.refused("TM005", "public.orders has no primary key", readsOn)
	s.exec(`rollback; begin; alter table orders drop constraint orders_pkey, add primary key (note); select tidemark.capture_backfill_cancel(1, 'test')`)
	s.exec(begins)
	s.exec(`alter table orders alter note type text collate "C"`)
	s.refused("TM005", "its primary key has changed", readsOn)
	s.exec(`rollback`)
	s.wantRows(readsOn, "2 0 f")
}

// The hints say how to give up a backfill whose table is gone, or was recreated.
func TestCaptureBackfillOfATableThatIsGone(t *testing.T) {
	t.Parallel()
	s, _ := backfilled(t, `create table orders (id int primary key, state text)`)
	s.exec(begins)
	giveUp := "select tidemark.capture_backfill_cancel(1, 'reason')"
	hinted := func(code, message, statement string) {
		t.Helper()
		if err := s.try(statement); err == nil || err.Code != code || err.Message != message || !strings.Contains(err.Hint, giveUp) {
			t.Errorf("%s: %+v; want %s: %s, with the hint %s", statement, err, code, message, giveUp)
		}
	}
	hinted("TM005", "a backfill of public.orders is under way", begins)
	s.exec(`drop table orders`)
	hinted("42501", "public.orders is gone", readsOn)
	s.exec(`create table orders (id int primary key, state text); select tidemark.capture_attach('orders', 'test')`)
	hinted("42501", "public.orders is another table by now", readsOn)
	hinted("TM005", "a backfill of public.orders is under way", begins)
	s.exec(strings.ReplaceAll(giveUp, "reason", "test"))
	s.exec(begins)
}

// The parts of a backfill that run with the rights of the log's owner serve the table's owner alone.
func TestCaptureBackfillForges(t *testing.T) {
	t.Parallel()
	s, _ := backfilled(t, `create table orders (id int primary key, state text); insert into orders values (1, 'old')`)
	s.exec(`create role tidemark_test_forger in role tidemark_admin; create role tidemark_test_forged`)
	t.Cleanup(func() {
		s.exec(`reset session authorization; drop owned by tidemark_test_forger, tidemark_test_forged; drop role tidemark_test_forger, tidemark_test_forged`)
	})
	s.exec(`select tidemark.domain_grant('app', 'tidemark_test_forged', 'test');
		create table forgers (id int primary key, state text); alter table forgers owner to tidemark_test_forger`)
	const (
		adds   = `select tidemark.capture_backfill_add('orders', 'public.orders', 'read', 'test')`
		writes = `select tidemark.capture_backfill_write(1, null, '[{"ref": "1", "primary_key": {"id": 1}, "columns": {"state": "forged"}}]', '{1}', 0)`
	)
	s.exec(`set session authorization tidemark_test_forger`)
	s.refused("42501", "tidemark_test_forger must be owner of table public.orders", adds)
	s.refused("42501", "must be owner of table public.orders", `select tidemark.capture_backfill_add('forgers', 'public.orders', 'read', 'test')`)
	s.exec(`reset session authorization`)
	s.wantRows(`select id::text from tidemark.capture_backfill`)
	s.exec(begins)
	s.exec(`set session authorization tidemark_test_forger`)
	s.refused("42501", "tidemark_test_forger must be owner of table public.orders", writes)
	s.refused("42501", "must be owner of table public.orders", `select tidemark.capture_backfill_write(1, null, '[]', null, 0)`)
	s.exec(`reset session authorization`)
	s.wantEvents()
	s.wantRows(progress, "0 0 f f 0")
	s.wantRows(`select upto::text from tidemark.capture_backfill where upto is not null`)
	// A member of the owner that has no rights of it without a set role.
	s.exec(`create role tidemark_test_of_owner; alter role tidemark_test_forger noinherit; grant tidemark_test_of_owner to tidemark_test_forger;
		grant tidemark_admin to tidemark_test_of_owner; alter table orders owner to tidemark_test_of_owner`)
	t.Cleanup(func() {
		s.exec(`reset session authorization; drop owned by tidemark_test_of_owner; drop role tidemark_test_of_owner`)
	})
	s.exec(`set session authorization tidemark_test_forger; set role tidemark_test_of_owner`)
	s.wantRows(readsOn, "1 0 f")
	s.wantRows(readsOn, "0 0 t")
}

// The log's owner may not use the schema of a table that is backfilled.
func TestCaptureBackfillOfASchemaThatIsClosed(t *testing.T) {
	t.Parallel()
	s, _ := backfilled(t, `create schema closed; set search_path = closed; create table orders (id int primary key, state text); insert into orders values (1, 'old')`)
	s.wantRows(`select has_schema_privilege('tidemark_owner', 'closed', 'usage')::text`, "false")
	s.exec(begins)
	s.wantRows(readsOn, "1 0 f")
	s.wantRows(readsOn, "0 0 t")
	s.wantEvents(`read 1 {"state": "old"}`)
	s.exec(`create table "Or.ders" (id int primary key)`)
	s.refused("42501", "must be owner of table closed.orders", `select tidemark.capture_backfill_add('"Or.ders"', 'closed.orders', 'read', 'test')`)
}

// A writer and the backfill meet at a row. Whichever has the row first has the lower number.
func TestCaptureBackfillMeetsAWriter(t *testing.T) {
	t.Parallel()
	s, db := backfilled(t, `create table orders (id int primary key, state text); insert into orders values (1, 'old')`)
	a := open(t, db, "writer")
	a.begin()
	a.exec(`update orders set state = 'other' where id = 1`)
	s.refused("55P03", "", begins) // for a while
	a.rollback()
	s.exec(begins)

	a.begin()
	a.exec(`update orders set state = 'writer first' where id = 1`)
	s.refused("55P03", "", readsOn)
	a.rollback()
	s.begin()
	s.wantRows(readsOn, "1 0 f")
	open(t, db, "another").refused("55P03", "", readsOn) // one at a time
	written := make(chan struct{})
	go func() { a.exec(`update orders set state = 'backfill first' where id = 1`); close(written) }()
	open(t, db, "watch").waitsFor(a)
	s.commit()
	<-written
	s.wantEvents(`read 1 {"state": "old"}`, `update 1 ["state"] {"state": "backfill first"}`)
	s.wantRows(readsOn, "0 0 t")

	// The lock waits for the writer, whose event is in no earlier snapshot.
	s.exec(begins)
	a.begin()
	a.exec(`update orders set state = 'writer first' where id = 1`)
	s.exec(`set lock_timeout = 0; alter function tidemark.capture_backfill_step reset lock_timeout`)
	stepped := make(chan string, 1)
	go func() { stepped <- one[string](s, readsOn) }()
	open(t, db, "watch").waitsFor(s)
	a.commit()
	equal(t, "the step", <-stepped, "0 1 f")
	s.wantEvents(`update 1 ["state"] {"state": "writer first"}`)
}

// Of a partitioned table the rows of all partitions come in the order of the key. A row that a writer moves to another partition while
// the step waits for it ends the step (40001), and nothing of it stays: the next one goes on.
func TestCaptureBackfillOfPartitions(t *testing.T) {
	t.Parallel()
	s, db := backfilled(t, `create table orders (id int, shop text, state text, primary key (id, shop)) partition by list (shop);
		create table a partition of orders for values in ('a'); create table b partition of orders for values in ('b') partition by hash (id);
		create table b0 partition of b for values with (modulus 2, remainder 0); create table b1 partition of b for values with (modulus 2, remainder 1);
		insert into orders select n, case n % 3 when 0 then 'a' else 'b' end, 'old' from generate_series(1, 5) n`)
	s.exec(begins)
	s.wantRows(readsOn, "2 0 f")
	s.wantEvents(`read 1,b {"state": "old"}`, `read 2,b {"state": "old"}`)
	w := open(t, db, "writer")
	w.begin()
	w.exec(`update orders set shop = 'b', state = 'moved' where id = 3`)
	s.exec(`set lock_timeout = 0; alter function tidemark.capture_backfill_step reset lock_timeout`)
	stepped := make(chan string, 1)
	go func() { stepped <- s.try(readsOn).Code }()
	open(t, db, "watch").waitsFor(s)
	w.commit()
	equal(t, "the step", <-stepped, "40001")
	s.wantEvents(`update 3,b ["shop", "state"] was {"id": 3, "shop": "a"} {"state": "moved"}`)
	s.wantRows(readsOn, "1 1 f") // 3 has an event of its own
	s.wantRows(readsOn, "1 0 f")
	s.wantRows(readsOn, "0 0 t")
	s.wantEvents(`read 4,b {"state": "old"}`, `read 5,b {"state": "old"}`)
}

// Writers that insert, update, delete and move keys in open transactions, while the backfill goes on and its table of keys is
// filled: who applies the events in their order has the table, and no row is read after an event of its own.
func TestCaptureBackfillLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	s, db := backfilled(t, `create table orders (id int primary key, state text) partition by range (id);
		create table low partition of orders for values from (minvalue) to (11); create table high partition of orders for values from (11) to (maxvalue)`)
	s.exec(`alter function tidemark.capture_backfill_step set lock_timeout = '1ms';
		create table copy (id int primary key, state text)`)
	writers := []session{open(t, db, "a"), open(t, db, "b")}
	for _, w := range writers {
		w.exec(`set lock_timeout = '1ms'`)
	}
	reads, left := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		s.exec(`set lock_timeout = 0; alter table orders disable trigger user; truncate orders, copy; insert into orders select n, 'old' from generate_series(1, 20, 2) n; alter table orders enable trigger user`)
		start := one[int64](s, `select coalesce(max(seq), 0) from tidemark.outbox`)
		id := one[int64](s, begins)
		busy := map[int]bool{}
		end := func(i int, how string) {
			if busy[i] {
				writers[i].exec(how)
			}
			busy[i] = false
		}
		step := func() (complete bool) {
			got := s.try(`select tidemark.capture_backfill_step($1, 3)`, id)
			if got != nil && got.Code != "55P03" {
				rt.Fatal(got)
			}
			return one[bool](s, `select finished_at is not null from tidemark.capture_backfill where id = $1`, id)
		}
		complete := false
		for n := range rapid.IntRange(5, 30).Draw(rt, "steps") {
			i := rapid.IntRange(0, 1).Draw(rt, "writer")
			at, to := rapid.IntRange(1, 22).Draw(rt, "at"), rapid.IntRange(1, 22).Draw(rt, "to")
			statement := ""
			switch rapid.SampledFrom([]string{"insert", "update", "move", "delete", "end", "end", "step", "step", "step"}).Draw(rt, "step") {
			case "insert":
				statement = fmt.Sprintf(`insert into orders values (%d, 'i%d') on conflict do nothing`, at, n)
			case "update":
				statement = fmt.Sprintf(`update orders set state = 'u%d' where id = %d`, n, at)
			case "move":
				statement = fmt.Sprintf(`update orders set id = %d, state = 'm%d' where id = %d`, to, n, at)
			case "delete":
				statement = fmt.Sprintf(`delete from orders where id = %d`, at)
			case "end":
				end(i, rapid.SampledFrom([]string{"commit", "commit", "rollback"}).Draw(rt, "how"))
			case "step":
				complete = complete || step()
			}
			if statement == "" {
				continue
			}
			if !busy[i] {
				writers[i].begin()
				busy[i] = true
			}
			_ = writers[i].try(statement) // or the row is another's, or the key taken
		}
		end(0, "commit")
		end(1, "commit")
		for !complete {
			complete = step()
		}
		// Events of a row in their order, applied.
		s.exec(`do $$ declare e record; begin
			for e in select o.type, o.payload -> 'primary_key' ->> 'id' as id, o.payload -> 'old_primary_key' ->> 'id' as was, o.payload -> 'columns' ->> 'state' as state
					from tidemark.outbox o where o.seq > ` + fmt.Sprint(start) + ` order by o.seq loop
				if e.type = 'delete' or e.was is not null then delete from copy where id = coalesce(e.was, e.id)::int; end if;
				if e.type <> 'delete' then insert into copy values (e.id::int, e.state) on conflict (id) do update set state = excluded.state; end if;
			end loop; end $$`)
		s.wantRows(`select 'table ' || o from orders o except select 'table ' || c from copy c`)
		s.wantRows(`select 'copy ' || c from copy c except select 'copy ' || o from orders o`)
		s.wantRows(`select 'read again: ' || r.key from tidemark.outbox r where r.type = 'read' and r.seq > $$` + fmt.Sprint(start) + `$$::bigint
			and exists (select from tidemark.outbox o where o.seq > $$` + fmt.Sprint(start) + `$$::bigint and o.seq < r.seq and o.key = r.key)`)
		reads += one[int](s, `select rows::int from tidemark.capture_backfill where id = $1`, id)
		left += one[int](s, `select left_out::int from tidemark.capture_backfill where id = $1`, id)
	})
	if reads == 0 || left == 0 {
		t.Errorf("%d rows read, %d left out", reads, left)
	}
}
