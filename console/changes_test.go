package console

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// listener is an open stream of changes.
type listener struct {
	t      *testing.T
	cancel context.CancelFunc
	lines  *bufio.Reader
	header http.Header
	status int
}

// listen opens a stream; last is the id of the last message that was heard.
func listen(t *testing.T, url, last string) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/changes", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", last)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return &listener{t, cancel, bufio.NewReader(answer.Body), answer.Header, answer.StatusCode}
}

// hear returns the next message that has an id.
func (l *listener) hear() (event, id string) {
	l.t.Helper()
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			l.t.Fatalf("the stream ended: %v", err)
		}
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); name {
		case "event":
			event = value
		case "id":
			return event, value
		}
	}
}

// served is a console whose statements are counted.
func (s *site) served() (*console, *counter) {
	s.t.Helper()
	counted := &counter{}
	config := s.pool.Config()
	config.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(s.t.Context(), config)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := newConsole(pool, Options{Identify: func(*http.Request) (Person, bool) { return Person{Name: "ada", Role: Admin}, true }})
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := c.handler()
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewServer(h)
	s.url = server.URL
	s.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		pool.Close()
	})
	return c, counted
}

// A page that listens is told of a change, also of one that came while its stream was interrupted. Once no one listens, no one looks.
func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(`select tidemark.type_set('shop', 'order')`)
	c, _ := s.served()
	opened := []*listener{}
	open := func(last string) *listener {
		opened = append(opened, listen(t, s.url, last))
		return opened[len(opened)-1]
	}
	first := open("")
	if first.status != http.StatusOK || first.header.Get("Content-Type") != "text/event-stream" || first.header.Get("X-Accel-Buffering") != "no" || first.header.Get("Cache-Control") != "no-store" {
		t.Fatal(first.status, first.header)
	}
	event, begun := first.hear()
	if event != "beat" || begun == "" {
		t.Fatal(event, begun)
	}
	s.exec(`select tidemark.emit('shop', 'order')`)
	event, changed := first.hear()
	if event != "change" || changed == begun {
		t.Fatal(event, changed)
	}
	if event, id := open(begun).hear(); event != "change" || id != changed {
		t.Errorf("a page that has missed a change hears %s %s", event, id)
	}
	if event, id := open(changed).hear(); event != "beat" || id != changed {
		t.Errorf("a page that has missed nothing hears %s %s", event, id)
	}
	// Not a statement more once no one listens.
	ended := c.changes.ended
	for _, l := range opened {
		l.cancel()
	}
	<-ended
	c.changes.mu.Lock()
	defer c.changes.mu.Unlock()
	if c.changes.stop != nil || len(c.changes.listeners) != 0 {
		t.Error("the database is asked though no page listens")
	}
}

// Twenty browsers cost the database at most twenty statements a second, also while something changes all the time and each of them asks
// for its page at each change, which is more often than they do.
func TestTwentyBrowsers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	c, counted := s.served()
	var ready, heard sync.WaitGroup
	const browsers, changes = 20, 4
	told := make(chan struct{}, browsers)
	for range browsers {
		l := listen(t, s.url, "")
		ready.Add(1)
		heard.Go(func() {
			l.hear()
			s.get("", "/")
			ready.Done()
			for range changes {
				if event, _ := l.hear(); event != "change" {
					t.Errorf("a browser hears %s", event)
				}
				s.get("", "/")
				told <- struct{}{}
			}
		})
	}
	ready.Wait()
	before, began := counted.statements.Load(), time.Now()
	for range changes {
		s.exec(`select tidemark.emit('shop', 'paid')`)
		for range browsers {
			<-told
		}
	}
	heard.Wait()
	statements, seconds := counted.statements.Load()-before, time.Since(began).Seconds()
	if most := 20 * max(seconds, 1); float64(statements) > most {
		t.Errorf("%d statements in %.1f s", statements, seconds)
	}
	c.changes.mu.Lock()
	defer c.changes.mu.Unlock()
	if n := len(c.changes.listeners); n != browsers {
		t.Errorf("%d listen", n)
	}
}

// As many pages listen as may; the next one is refused, and asks by itself.
func TestStreamsAreLimited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, _ := s.served()
	for range streamsMost {
		if told, leave := c.changes.listen(); told == nil {
			t.Fatal("refused too early")
		} else {
			t.Cleanup(leave)
		}
	}
	if l := listen(t, s.url, ""); l.status != http.StatusServiceUnavailable {
		t.Error(l.status)
	}
}

// The console refuses a stream to one who has not signed in. It tells pages once that the database is away, and once that it is back.
func TestChangesWithoutADatabase(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/changes", http.NoBody)
	r.Header.Set("Test-Role", "no one")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Error(answer.StatusCode)
	}
	s.served()
	l := listen(t, s.url, "")
	_, begun := l.hear()
	holder := s.db.Connect(t)
	if _, err := holder.Exec(t.Context(), `begin; lock table tidemark.audit in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	if event, id := l.hear(); event != "change" || id != "unknown" {
		t.Error(event, id)
	}
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if event, id := l.hear(); event != "change" || id != begun {
		t.Error(event, id)
	}
}
