package daemon_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/time/rate"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// slowLink returns the address of the database through a proxy that limits each connection to so many bytes a second.
func slowLink(t *testing.T, db *tidemarktest.DB, perSecond int) string {
	t.Helper()
	to, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := to.Host
	var lines sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		lines.Wait()
	})
	lines.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				return
			}
			lines.Go(func() { between(ctx, near, server, perSecond) })
		}
	})
	to.Host = l.Addr().String()
	return to.String()
}

// between copies both directions, the server's slowly, until either side or ctx ends it.
func between(ctx context.Context, near net.Conn, server string, perSecond int) {
	defer func() { _ = near.Close() }()
	far, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	defer context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })()
	go func() {
		_, _ = io.Copy(far, near) // its end also ends the other direction
		_ = far.Close()
	}()
	limit := rate.NewLimiter(rate.Limit(perSecond), perSecond/20)
	buffer := make([]byte, limit.Burst())
	for {
		n, err := far.Read(buffer)
		if err == nil {
			err = limit.WaitN(ctx, n)
		}
		if _, failed := near.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// While an event cannot be read, the daemon is not ready and names the event. Once the event is given up, it is ready.
func TestNotReadyWithAnUnreadableEvent(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, `update tidemark.setting set value = '0' where key = 'emit.payload_limit'`)
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick', jsonb_build_object('n', repeat('x', 6000000)))`)
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick', '{"n": 2}')`)
	c := settings(db)
	c.Database.URL = config.NewSecret(slowLink(t, db, 600_000))
	p := run(t, c)
	eventually(t, "that it is not ready", func() bool {
		status, body := get(t, "http://"+p.Addr()+"/readyz")
		return status == http.StatusServiceUnavailable &&
			strings.Contains(body, "[-]passes: default: read fails again and again: ") && strings.Contains(body, "event 1 with ")
	})
	eventually(t, "the event behind it", func() bool { return r.count() == 1 })
	eventually(t, "that it is ready", func() bool {
		status, _ := get(t, "http://"+p.Addr()+"/readyz")
		return status == http.StatusOK
	})
	var letters string
	if err := db.Pool.QueryRow(context.Background(), `select string_agg(seq || ' ' || error_code, ',') from tidemark.dead_letter`).Scan(&letters); err != nil || letters != "1 unreadable" {
		t.Errorf("dead letters: %s, %v", letters, err)
	}
	p.stop()
	if r.count() != 1 {
		t.Errorf("%d deliveries", r.count())
	}
}
