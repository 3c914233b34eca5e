package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A form that is sent twice, by a double click or a reload, is done once.
func TestFormsAreDoneOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	_, page := s.get("", "/act/route-replay?route=hook&from_seq=1&to_seq=6")
	_, once, _ := strings.Cut(page, `name="once" value="`)
	once, _, _ = strings.Cut(once, `"`)
	form := url.Values{"route": {"hook"}, "from_seq": {"1"}, "to_seq": {"6"}, "reason": {"test"}, "typed": {"hook"}, "once": {once}}
	for range 2 {
		if status, page := s.request("", "POST", "/act/route-replay", form); status != http.StatusOK {
			t.Errorf("%d %s", status, page)
		}
	}
	if n := value[int](s, `select count(*) from tidemark.replay_summary`); n != 1 {
		t.Errorf("%d replays", n)
	}
}
