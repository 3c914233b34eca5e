package console

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A payload's keys are any text: none breaks the page of an act, or reorders it.
func TestAnyKeyHasALabel(t *testing.T) {
	t.Parallel()
	c := &console{}
	pages := template.Must(template.New("").Funcs(c.functions()).ParseFS(files, "pages/*.html"))
	var out strings.Builder
	if err := pages.ExecuteTemplate(&out, "value", decode([]byte(`{"": 1, "\u202ekey": 2, "élan_vital": [{"": 3}]}`))); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Contains(got, "\u202e") || !strings.Contains(got, "Élan vital") {
		t.Error(got)
	}
}

// What an act would do is shown in the order of the API, without what says nothing.
func TestValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"job": null, "letters": 30, "code": "", "of": []}`:                    "[{letters 30}]",
		`{"outcomes": {"sent": 2, "failed": 1, "skipped": null}, "next": null}`: "[{outcomes [{sent 2} {failed 1} {skipped <nil>}]}]",
	} {
		if got := fmt.Sprint(facts(decode([]byte(text)))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	got := rows(decode([]byte(`[{"id": 7, "at": null, "reason": null, "event_id": "e"}, {"id": 8, "at": 1, "reason": null, "also": {"b": 1, "a": [1, 2]}}]`)))
	if head := strings.Join(got.Head, " "); head != "id at event_id also" || text(got.Rows[1][3]) != "b 1, a 1, 2" || text(got.Rows[0][3]) != "—" {
		t.Errorf("%+v", got)
	}
	if rows(decode([]byte(`[1, 2]`))) != nil || text(decode([]byte(`[]`))) != "—" || facts(decode([]byte(`"x"`))) != nil {
		t.Error("what is no object is not shown as itself")
	}
}

// Characters that reorder or hide text are shown as their numbers.
// What waits, and what is counted to a bound, is told in words.
func TestWords(t *testing.T) {
	t.Parallel()
	breaker, refused := "breaker_open", "http_503: busy"
	for got, want := range map[string]string{
		whyWaits(&breaker): "the target fails, and is left alone for a while", whyWaits(&refused): refused, whyWaits(nil): "—",
		most(int64(10_000)): "10,000 or more", most(int64(9_999)): "9,999", interval("00:00:10"): "10 s", interval("00:01:30"): "1 m 30 s", interval("00:00:00.25"): "250 ms",
		interval("1 day 00:00:01"): "1 day 00:00:01", short(0.3042): "304 ms", short(2.34): "2.3 s", text(true): "yes", text(false): "no",
		pass(json.RawMessage(`{"status": "ran", "events": 3, "late": 0, "decided": {"sent": 2}, "watermark": 7}`)): "ran, events 3, decided sent 2", pass(nil): "",
		claimed(json.RawMessage(`{"producer": "shop"}`)): "shop", claimed(json.RawMessage(`[]`)): "",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHiddenCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"\u061c", "\u202e", "\u2028", "\u00ad", "\u3164", "\u206a", "\U000e0041"} {
		if got := visible("a" + c + "b"); strings.Contains(got, c) {
			t.Errorf("%+q is shown as %+q", c, got)
		}
	}
}

// The link to the older part of a list leads there.
func TestOlder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(`select tidemark.type_set('shop', 'order')`)
	s.exec(`select tidemark.emit('shop', 'order', '{}', key => 'a&b') from generate_series(1, 60)`)
	_, page := s.get("", "/events?key=a%26b")
	_, link, _ := strings.Cut(page, `<p><a href="?`)
	link, _, _ = strings.Cut(link, `"`)
	status, page := s.get("", "/events?"+strings.ReplaceAll(link, "&amp;", "&"))
	if older, err := url.ParseQuery(strings.ReplaceAll(link, "&amp;", "&")); err != nil || older.Get("before") != "11" || older.Get("key") != "a&b" {
		t.Errorf("the link is ?%s", link)
	}
	if status != http.StatusOK || strings.Contains(page, `href="/events/11"`) || !strings.Contains(page, `href="/events/10"`) {
		t.Errorf("%d %s", status, page)
	}
}
