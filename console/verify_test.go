package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// verified verifies the installation, and waits for the end.
func (s *site) verified() {
	s.t.Helper()
	if status, page := s.request("", "POST", "/act/verify", url.Values{"reason": {"test"}}); status != http.StatusOK {
		s.t.Fatalf("%d %s", status, page)
	}
	s.waitVerified()
}

func (s *site) waitVerified() {
	s.t.Helper()
	for page := "It runs, since"; strings.Contains(page, "It runs, since"); {
		s.request("", "POST", "/act/letter-replay", url.Values{"id": {"999999"}}) // any act makes pages forget what others have asked
		_, page = s.get("", "/findings")
	}
}

// The page of findings shows that a verification runs, since when and for whom, offers to cancel it, and then shows what it found in the
// words of the command.
func TestVerifyOnThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	forget := func() { s.request("", "POST", "/act/letter-replay", url.Values{"id": {"999999"}}) } // any act makes pages forget what others have asked
	s.shows("operator", "/findings", "This console has verified nothing since it was started", `href="/act/verify?"`)
	s.shows("operator", "/act/verify?", "sources with the safety clock read no new rows")
	holder := s.db.Connect(t)
	begin := func() {
		t.Helper()
		if _, err := holder.Exec(t.Context(), `begin; lock table tidemark.decision in access exclusive mode`); err != nil {
			t.Fatal(err)
		}
		if status, page := s.request("operator", "POST", "/act/verify", url.Values{"reason": {"after the restore"}}); status != http.StatusOK || !strings.Contains(page, "It runs in the background.") {
			t.Fatalf("%d %s", status, page)
		}
		forget()
		s.shows("operator", "/findings", "It runs, since", "for ann operator: after the restore", `href="/act/verify-cancel?"`)
	}
	over := func(role string, shows ...string) {
		t.Helper()
		s.waitVerified()
		s.shows(role, "/findings", shows...)
	}
	begin()
	if status, page := s.request("operator", "POST", "/act/verify", url.Values{"reason": {"me too"}}); status != http.StatusConflict || !strings.Contains(page, "a verification runs already") {
		t.Errorf("%d %s", status, page)
	}
	if status, page := s.request("operator", "POST", "/act/verify-cancel", url.Values{"reason": {"too slow"}}); status != http.StatusOK || !strings.Contains(page, "Done.") {
		t.Errorf("%d %s", status, page)
	}
	over("operator", "It did not come to its end: it was cancelled")
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	begin()
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	over("operator", "for ann operator: after the restore. It took", "0 of ", "checks failed, ", "<td>W6 event without evidence</td>", "disk this: it is full</td>", "select * from tidemark.finding where closed_at is null;")
	over("viewer", "<td>the detail is for operators</td>")
	// However much a check finds, the page stays a page.
	s.exec(`select tidemark.finding_open('disk', 'no. ' || n, 'high', repeat('x', 100)) from generate_series(1, 3000) n`)
	s.verified()
	s.shows("operator", "/findings", "disk no. ", "…</td>")
	if _, page := s.get("operator", "/findings"); len(page) > 100<<10 {
		t.Errorf("%d bytes", len(page))
	}
	if _, page := s.get("viewer", "/findings"); strings.Contains(page, `href="/act/verify`) {
		t.Errorf("a viewer may verify: %s", page)
	}
}
