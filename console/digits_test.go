package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// What is typed into a form reaches the database with every digit, and what is typed twice is refused.
func TestFormsKeepDigits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	send := func(columns string) (int, string) {
		return s.request("", "POST", "/act/route-edit", url.Values{"route": {"hook"}, "typed": {"hook"}, "reason": {"test"}, "columns": {columns}})
	}
	if status, page := send(`{"payload_filter": {"account": 9007199254740993, "rate": 12345678901234567890.10}}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, page)
	}
	if got := value[string](s, `select payload_filter::text from tidemark.outbound_route where route_code = 'hook'`); got != `{"rate": 12345678901234567890.10, "account": 9007199254740993}` {
		t.Errorf("stored as %s", got)
	}
	if status, page := send(`{"concurrency": 3, "concurrency": 4}`); status != http.StatusBadRequest || !strings.Contains(page, "twice") {
		t.Errorf("%d %s", status, page)
	}
	for _, columns := range []string{`[1]`, `{"a"`, `7`} {
		if status, _ := send(columns); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", columns, status)
		}
	}
}
