package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/testserver"
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

// The answer of an act that was done is erased, with what it may quote: the form is refused each time that it is sent again.
func TestFormsAreDoneOnceAlthoughTheAnswerIsErased(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	_, page := s.get("", "/act/route-replay?route=hook&from_seq=1&to_seq=6")
	form := url.Values{"route": {"hook"}, "from_seq": {"1"}, "to_seq": {"6"}, "reason": {"test"}, "typed": {"hook"}, "once": {onceOf(page)}}
	if status, page := s.request("", "POST", "/act/route-replay", form); status != http.StatusOK {
		t.Fatalf("%d %s", status, page)
	}
	s.exec(`update tidemark.api_answer set answer = '"erased"'`) // as events_erase does with answers that have texts of errors
	for range 2 {
		status, page := s.request("", "POST", "/act/route-replay", form)
		if status != http.StatusConflict || !strings.Contains(page, "It is not done again") {
			t.Errorf("%d %s", status, page)
		}
		form.Set("once", onceOf(page))
	}
	if n := value[int](s, `select count(*) from tidemark.replay_summary`); n != 1 {
		t.Errorf("%d replays", n)
	}
}

// The answer to an act may be lost although the act was done. The form that is shown then does it no second time, also after the
// person has mistyped what it asks for.
func TestFormOfAnUnknownOutcomeIsDoneOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	pool, lose := testserver.Deaf(t, s.pool)
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
	lose.Store(true)
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
