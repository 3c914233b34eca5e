package console

import (
	"net/http"
	"strings"
	"testing"
)

// Without a database a page shows what was last known to the same role: the messages that an operator saw are not for viewers.
func TestLastKnownIsOfTheRole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(`select tidemark.finding_open('disk', 'this', 'high', 'it failed')`)
	s.exec(`insert into tidemark.finding_message (finding, message) select id, 'tell no one' from tidemark.finding`)
	if _, page := s.get("viewer", "/"); strings.Contains(page, "tell no one") {
		t.Fatalf("a viewer sees %s", page)
	}
	if _, page := s.get("operator", "/"); !strings.Contains(page, "tell no one") {
		t.Fatalf("an operator sees %s", page)
	}
	s.pool.Close()
	if status, page := s.get("operator", "/routes"); status != http.StatusServiceUnavailable || !strings.Contains(page, "tell no one") {
		t.Errorf("an operator sees %d %s", status, page)
	}
	if status, page := s.get("viewer", "/routes"); status != http.StatusServiceUnavailable || strings.Contains(page, "tell no one") || !strings.Contains(page, "it failed") {
		t.Errorf("a viewer sees %d %s", status, page)
	}
}

// While the log is locked, the first page tells who has locked it, and does not wait for it.
func TestOverviewOfALockedLog(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	holder := s.db.Connect(t)
	if _, err := holder.Exec(t.Context(), `begin; lock table tidemark.outbox in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	code, text := s.get("", "/")
	for _, want := range []string{"tables_locked", "Tables of Tidemark are locked", s.db.Name} {
		if code != 200 || !strings.Contains(text, want) {
			t.Errorf("%d, without %q:\n%s", code, want, text)
		}
	}
	if strings.Contains(text, "There are no workers") {
		t.Error("what was not read is shown as empty")
	}
}
