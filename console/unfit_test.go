package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A number that is missing or cannot be read refuses an act. It is not 0, the beginning of the log, nor all dead letters.
func TestUnfitForms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	for _, form := range []string{
		"worker-rewind?worker=default&typed=default", "worker-rewind?worker=default&typed=default&to_seq=1e6",
		"route-replay?route=hook&typed=hook&from_seq=1e6", "route-replay?route=hook&typed=hook&from_seq=1&rate=0.5",
		"letter-replay?id=x", "letter-replay?", "letters-replay?id=x",
	} {
		act, given, _ := strings.Cut(form, "?")
		values, err := url.ParseQuery(given + "&reason=test")
		if err != nil {
			t.Fatal(err)
		}
		if status, page := s.request("", "POST", "/act/"+act, values); status != http.StatusUnprocessableEntity || !strings.Contains(page, "nothing was done") {
			t.Errorf("%s: %d %s", form, status, page)
		}
	}
	if value[string](s, `select watermark_id from tidemark.worker_cursor where worker = 'default'`) == "0" ||
		value[bool](s, `select exists (select from tidemark.replay_summary) or exists (select from tidemark.dead_letter where attempts > 1)`) {
		t.Error("a form that is not fit did something")
	}
	// What an act would do can be seen before its name is typed.
	form := url.Values{"worker": {"default"}, "to_seq": {"0"}, "preview": {"1"}}
	if status, page := s.request("", "POST", "/act/worker-rewind", form); status != http.StatusOK || !strings.Contains(page, "What it would do") {
		t.Errorf("%d %s", status, page)
	}
	// An act that may have a rate, and needs none to be counted, is counted as its page opens.
	if _, page := s.get("", "/act/letters-replay?route=sql"); !strings.Contains(page, "What it would do") {
		t.Error(page)
	}
	if _, page := s.get("", "/act/worker-rewind?worker=default&preview=1"); !strings.Contains(page, `<button name="preview"`) || strings.Contains(page, `type="hidden" name="preview"`) {
		t.Error(page)
	}
}
