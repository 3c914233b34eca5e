package daemon_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A worker that meets the same error again and again has status bad, and its daemon is not ready.
func TestWorkerFails(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, `alter table tidemark.decision add constraint broken check (false) not valid`)
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick', '{"n": 1}')`)
	p := run(t, settings(db))
	found := func() (text string) {
		const open = `select coalesce(string_agg(q.status || ' ' || q.note, ';'), '') from tidemark.queue_health q where q.name = 'worker_failing default'`
		if err := db.Pool.QueryRow(context.Background(), open).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	eventually(t, "a finding", func() bool {
		return strings.HasPrefix(found(), "bad worker default: it cannot settle, 5 times in a row: 23514")
	})
	status, body := get(t, "http://"+p.Addr()+"/readyz")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "[-]passes: default: settle fails again and again") {
		t.Errorf("%d\n%s", status, body)
	}
	execSQL(t, db, `alter table tidemark.decision drop constraint broken`)
	eventually(t, "that it is over", func() bool { return found() == "" })
	if status, body := get(t, "http://"+p.Addr()+"/readyz"); status != http.StatusOK {
		t.Errorf("%d\n%s", status, body)
	}
}
