package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A page is durable when it is read, whatever its routes are, unless the same transaction settles it: a crash between read and settle could
// undo an event whose writer did not wait for the disk, and the settle would pass over the event that gets its number next.
func TestReadIsDurable(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{Durable: true, Settings: map[string]string{"wal_writer_delay": "10s"}})
	db := tidemarktest.NewDBAt(t, server.URL("postgres"))
	w, a := live(t, db), open(t, db, "a") // with a route to an SQL function
	w.exec(`select tidemark.claim('default', 'a', '10 minutes')`)
	a.exec(`set synchronous_commit = off`)
	for _, c := range []struct{ what, route string }{
		{"to an SQL function", `{}`},
		{"in dry run", `{"dry_run": true}`},
		{"to a webhook", `{"dry_run": false, "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}`},
	} {
		w.exec(`select tidemark.route_set('app', $1)`, c.route)
		a.emit(1)
		at := one[string](a, `select pg_current_wal_insert_lsn()::text`)
		equal(t, c.what+": waits for the disk", one[bool](a, `select pg_current_wal_flush_lsn() < $1::text::pg_lsn`, at), true)
		w.exec(`select from tidemark.pass_read('default', 1, 100, null, null, '{}', '{}')`)
		equal(t, c.what+": on disk", one[bool](a, `select pg_current_wal_flush_lsn() >= $1::text::pg_lsn`, at), true)
	}
}
