package console

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// onceOf is the Idempotency-Key of the form of a page.
func onceOf(page string) string {
	_, once, _ := strings.Cut(page, `name="once" value="`)
	once, _, _ = strings.Cut(once, `"`)
	return once
}

// A form that is sent twice, by a double click or a reload, is done once.
func TestFormsAreDoneOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	_, page := s.get("", "/act/route-replay?route=hook&from_seq=1&to_seq=6")
	form := url.Values{"route": {"hook"}, "from_seq": {"1"}, "to_seq": {"6"}, "reason": {"test"}, "typed": {"hook"}, "once": {onceOf(page)}}
	for range 2 {
		if status, page := s.request("", "POST", "/act/route-replay", form); status != http.StatusOK {
			t.Errorf("%d %s", status, page)
		}
	}
	if n := value[int](s, `select count(*) from tidemark.replay_summary`); n != 1 {
		t.Errorf("%d replays", n)
	}
}

// deaf is a connection that does not hear the answer to a commit, once armed.
type deaf struct {
	net.Conn

	armed   *atomic.Bool
	commits atomic.Bool
}

func (d *deaf) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "commit\x00") && d.armed.CompareAndSwap(true, false) {
		d.commits.Store(true)
	}
	return d.Conn.Write(b)
}

func (d *deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.commits.Load() && err == nil {
		return 0, io.ErrUnexpectedEOF // the server has answered: it is committed
	}
	return n, err
}

// The answer to an act may be lost although the act was done. The form that is shown then does it no second time, also after the
// person has mistyped what it asks for.
func TestFormOfAnUnknownOutcomeIsDoneOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	var armed atomic.Bool
	config := s.pool.Config()
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &deaf{Conn: conn, armed: &armed}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s.serve(pool, false)
	_, page := s.get("", "/act/route-replay?route=hook&from_seq=1&to_seq=6")
	form := url.Values{"route": {"hook"}, "from_seq": {"1"}, "to_seq": {"6"}, "reason": {"test"}, "typed": {"hook"}, "once": {onceOf(page)}}
	send := func(want int) {
		t.Helper()
		status, page := s.request("", "POST", "/act/route-replay", form)
		if status != want || want != http.StatusOK && onceOf(page) != form.Get("once") {
			t.Errorf("%d %s", status, page)
		}
		if want != http.StatusOK {
			form.Set("once", onceOf(page))
		}
	}
	armed.Store(true)
	send(http.StatusServiceUnavailable)
	const replays = `select count(*) from tidemark.replay_summary`
	if n := value[int](s, replays); n != 1 {
		t.Fatalf("%d replays were committed", n)
	}
	form.Set("typed", "hok")
	send(http.StatusUnprocessableEntity)
	form.Set("typed", "hook")
	send(http.StatusOK)
	if n := value[int](s, replays); n != 1 {
		t.Errorf("%d replays", n)
	}
}
