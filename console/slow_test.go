package console

import (
	"net/http"
	"net/http/httptest"
	"testing"
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
