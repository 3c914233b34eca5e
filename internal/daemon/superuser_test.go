package daemon_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Triggers on a daemon's targets run with the daemon's rights, so the log and verify warn if the daemon is a superuser.
func TestDaemonWarnsOfSuperuser(t *testing.T) {
	t.Parallel()
	for _, superuser := range []bool{true, false} {
		db := tidemarktest.NewDB(t)
		role := "tm_daemon_" + strings.TrimPrefix(db.Name, "tidemark_test_")
		execSQL(t, db, `create role `+role+` login`)
		execSQL(t, db, `grant tidemark_executor, tidemark_reader to `+role)
		t.Cleanup(func() { execSQL(t, db, `drop owned by `+role+`; drop role `+role) })
		if superuser {
			execSQL(t, db, `alter role `+role+` superuser`)
		}
		c := settings(db)
		u, err := url.Parse(db.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.User(role)
		c.Database.URL = config.NewSecret(u.String())
		p := run(t, c)
		const told = `select exists (select from tidemark.verify() where "check" = 'roles' and detail like '%daemon/test runs as the superuser%')`
		eventually(t, "a beat", func() bool {
			return tells(t, db, `select exists (select from tidemark.heartbeat where executor_id = 'daemon/test')`)
		})
		if got := tells(t, db, told); got != superuser {
			t.Errorf("verify tells: %v, want %v", got, superuser)
		}
		p.stop()
		if got := strings.Contains(p.log.String(), "runs as a superuser"); got != superuser {
			t.Errorf("the log tells: %v, want %v", got, superuser)
		}
	}
}

func tells(t *testing.T, db *tidemarktest.DB, sql string) (yes bool) {
	t.Helper()
	if err := db.Pool.QueryRow(context.Background(), sql).Scan(&yes); err != nil {
		t.Fatal(err)
	}
	return yes
}
