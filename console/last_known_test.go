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
