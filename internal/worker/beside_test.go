package worker_test

import "testing"

// Events leave while the settle of those before them stands still, and when it goes on all are settled, together.
func TestDeliveryBesideASettle(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	run(t, db, ts)
	emit(t, db, "a1")
	eventually(t, db, settled, "true")

	holder := db.Connect(t)
	if _, err := holder.Exec(t.Context(), `begin; select from tidemark.worker_cursor where worker = 'default' for update`); err != nil {
		t.Fatal(err)
	}
	emit(t, db, "a2")
	ts["app"].wait(t, 2)
	eventually(t, db, `select 'it waits' from pg_stat_activity
		where datname = current_database() and wait_event_type = 'Lock' and query like '%tidemark.settle(%'`, "it waits")
	emit(t, db, "a3")
	ts["app"].wait(t, 3)
	emit(t, db, "b1")
	ts["app"].wait(t, 4)
	emit(t, db, "a4")
	if got := arrivedAs(ts["app"].wait(t, 5)); got != "a1 a2 a3 b1 a4" {
		t.Errorf("got %s", got)
	}
	eventually(t, db, `select watermark_id from tidemark.worker_cursor where worker = 'default'`, "1")
	settles := texts(t, db, `select settles::text from tidemark.worker_cursor where worker = 'default'`)[0]
	if _, err := holder.Exec(t.Context(), `commit`); err != nil {
		t.Fatal(err)
	}
	eventually(t, db, settled, "true")
	eventually(t, db, evidence, "app 1 1 sent", "app 2 1 sent", "app 3 1 sent", "app 4 1 sent", "app 5 1 sent")
	eventually(t, db, `select (settles - `+settles+`)::text || ' ' || events_seen from tidemark.worker_cursor where worker = 'default'`, "2 5")
	eventually(t, db, `select concat_ws(' ', "check", detail) from tidemark.verify() where status = 'fail'`)
}
