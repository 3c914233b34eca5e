package consumer_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Wake-up connects as the pool does: by what BeforeConnect says at that moment.
func TestWakeUpByBeforeConnect(t *testing.T) {
	t.Parallel()
	p := prepared(t, "")
	p.exec(`select tidemark.gate_set('notify.bridge_enabled', true)`)
	client, pool := p.clientWith(1, func(config *pgxpool.Config) {
		right := config.ConnConfig.User
		config.ConnConfig.User = "no_such_role"
		config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			c.User = right
			return nil
		}
	})
	client.Handle("shop/*", note)
	p.runs(client, pool)
	p.eventually(`select count(*)::text from pg_locks l join pg_database d on d.oid = l.database
		where d.datname = current_database() and l.locktype = 'advisory' and l.classid = 1953064301 and l.mode = 'ShareLock'`, "1") // writers are to wake it
	p.emit("", "1")
	p.eventually(effects, "1")
}
