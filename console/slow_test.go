package console

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// slow is a browser that takes its time: when its page arrives, it notes how many connections to the database are in use.
type slow struct {
	*httptest.ResponseRecorder

	s    *site
	held int32
}

func (b *slow) Write(page []byte) (int, error) {
	b.held = max(b.held, b.s.pool.Stat().AcquiredConns())
	return b.ResponseRecorder.Write(page)
}

// A page is read before it is written: a browser that takes its time holds no connection to the database.
func TestSlowBrowserHoldsNoConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h, err := New(s.pool, Options{Identify: func(*http.Request) (Person, bool) { return Person{Name: "ada", Role: Admin}, true }})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/routes", "/routes/none"} {
		b := &slow{ResponseRecorder: httptest.NewRecorder(), s: s}
		h.ServeHTTP(b, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if b.held > 0 || b.Body.Len() == 0 {
			t.Errorf("%s: %d connections in use while %d bytes are written", path, b.held, b.Body.Len())
		}
	}
}

// A body that does not arrive is given up, also where each answer is observed.
func TestSlowBodiesAreGivenUp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	observed := make(chan int, 2)
	h, err := New(s.pool, Options{
		Identify: func(*http.Request) (Person, bool) { return Person{Name: "ada", Role: Admin}, true },
		Observe:  func(_ string, status int, _ time.Duration) { observed <- status },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	for _, key := range []string{"", "Idempotency-Key: k\r\n"} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /api/v1/workers/default/pause HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: 1000\r\n\r\n{", key)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		answer.Body.Close()
		if status := <-observed; answer.StatusCode != http.StatusRequestTimeout || status != http.StatusRequestTimeout {
			t.Errorf("%q: %s, observed %d", key, answer.Status, status)
		}
	}
}
