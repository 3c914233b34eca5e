package daemon_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
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

// To another host the daemon says that the connection is not encrypted: here that is this host by an address of its network.
func TestDaemonWarnsOfUnencryptedDatabase(t *testing.T) {
	t.Parallel()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(addresses, func(a net.Addr) bool {
		at, ok := a.(*net.IPNet)
		return ok && !at.IP.IsLoopback() && at.IP.To4() != nil
	})
	if i < 0 {
		t.Skip("this host has no address but loopback")
	}
	for _, elsewhere := range []bool{true, false} {
		db := tidemarktest.NewDB(t)
		c := settings(db)
		if elsewhere {
			u, err := url.Parse(db.URL)
			if err != nil {
				t.Fatal(err)
			}
			u.Host = relay(t, addresses[i].(*net.IPNet).IP.String(), u.Host)
			c.Database.URL = config.NewSecret(u.String())
		}
		p := run(t, c)
		eventually(t, "a beat", func() bool {
			return tells(t, db, `select exists (select from tidemark.heartbeat where executor_id = 'daemon/test')`)
		})
		p.stop()
		if got := strings.Contains(p.log.String(), "the connection to the database on another host is not encrypted"); got != elsewhere {
			t.Errorf("the log tells: %v, want %v", got, elsewhere)
		}
	}
}

// relay listens at an address of this host and passes connections on to another one. It returns where it listens.
func relay(t *testing.T, ip, to string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{from, server}, {server, from}} {
				all.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					pair[0].Close()
				})
			}
		}
	})
	return listener.Addr().String()
}

func tells(t *testing.T, db *tidemarktest.DB, sql string) (yes bool) {
	t.Helper()
	if err := db.Pool.QueryRow(context.Background(), sql).Scan(&yes); err != nil {
		t.Fatal(err)
	}
	return yes
}
