package test

import "testing"

// twins are keys of two columns with the same text.
const twins = `create table orders (shop text, id text, state text, primary key (shop, id))`

// A change of one row hides no other row whose key has the same text from a backfill, be the change in the log or in the table of keys.
func TestCaptureBackfillOfKeysWithTheSameText(t *testing.T) {
	t.Parallel()
	s, _ := backfilled(t, twins+`; insert into orders values ('a', 'b,c', 'old'), ('a,b', 'c', 'old'), ('b', 'c,d', 'old'), ('b,c', 'd', 'old'), ('z', 'z', 'old')`)
	s.exec(begins)
	// Written after the beginning without events: whether they have some is asked.
	s.exec(`set session_replication_role = replica; update orders set state = 'older'; reset session_replication_role`)
	s.exec(`update orders set state = 'changed' where (shop, id) in (('a', 'b,c'), ('b,c', 'd'))`)
	s.wantEvents(`update a,b,c ["state"] {"state": "changed"}`, `update b,c,d ["state"] {"state": "changed"}`)
	s.wantRows(readsOn, "1 1 f")
	s.wantRows(`select payload ->> 'primary_key' from tidemark.outbox where type = 'read'`, `{"id": "c", "shop": "a,b"}`)
	s.wantRows(readsOn, "1 1 f") // by the table of keys
	s.wantRows(`select payload ->> 'primary_key' from tidemark.outbox where type = 'read' order by seq desc limit 1`, `{"id": "c,d", "shop": "b"}`)
	s.wantRows(`select concat_ws(' ', ref, length(key_hash), count(*)) from tidemark.capture_backfill_key group by ref, key_hash order by ref limit 1`, "a,b,c 32 1")
	// Of before the column, and of events of the application, only the text is known.
	s.exec(`insert into tidemark.capture_backfill_key (backfill_id, ref) values (1, 'z,z')`)
	s.wantRows(readsOn, "0 1 f")
	s.wantRows(readsOn, "0 0 t")
	s.wantRows(progress, "2 3 t f 0")
}

// Nor does it hide such a row from the comparison, and from its gap.
func TestCaptureGapOfKeysWithTheSameText(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", twins)
	s.exec(`insert into orders values ('x', 'x')`)
	s.counted(1)
	s.exec(reconciled)
	s.exec(`insert into orders values ('a', 'b,c'), ('c', 'c'); select tidemark.events_erase('app', 'test', 'c,c')`)
	s.exec(`set session_replication_role = replica; insert into orders values ('a,b', 'c'); reset session_replication_role`)
	s.counted(4)
	s.wantRows(reconciled, `gap {"a,b,c"}`)
	s.wantRows(emitGap, "1 t")
	s.wantRows(`select payload ->> 'primary_key' from tidemark.outbox where payload ? 'reconciled'`, `{"id": "c", "shop": "a,b"}`)
	s.wantRows(reconciled, "ok {}")
}

// The keys of a page are looked up in the table of keys, whatever its statistics say.
func TestCaptureBackfillFindsItsKeys(t *testing.T) {
	t.Parallel()
	s, _ := backfilled(t, twins+`; insert into orders select n, n, 'old' from generate_series(1, 10) n`)
	s.exec(begins)
	s.exec(`set session_replication_role = replica; update orders set state = 'older'; reset session_replication_role; analyze tidemark.capture_backfill_key`)
	s.exec(`insert into tidemark.capture_backfill_key select 1, 'k' || n, sha256(n::text::bytea) from generate_series(1, 20000) n`)
	for range 2 {
		if n := s.readsOf("capture_backfill_key", func() { s.wantRows(readsOn, "2 0 f") }); n > 50 {
			t.Errorf("a page of 2 rows read %d keys", n)
		}
		s.exec(`analyze tidemark.capture_backfill_key`)
	}
}
