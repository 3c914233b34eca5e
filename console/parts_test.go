package console

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"
)

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// hiddenOf are the hidden inputs of a page, which are all that its form sends.
func hiddenOf(page string) url.Values {
	form := url.Values{}
	for _, input := range hiddenInput.FindAllStringSubmatch(page, -1) {
		form.Add(input[1], html.UnescapeString(input[2]))
	}
	return form
}

// An act that is done in parts goes on with what its result page sends: with the same filters, and without being typed again.
func TestActsGoOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	service := s.populateCommands()
	s.exec(`select tidemark.type_set('bulk', 'row')`)
	s.exec(`select tidemark.emit('bulk', 'row', '{"n": 1}', key => case n when 0 then 'other' else '` + `a "key" & more` + `' end) from generate_series(0, 10001) n`)
	s.exec(`select tidemark.route_worker_run('default', 20000)`)
	for _, a := range []struct {
		act   string
		form  url.Values
		after string // the state after each part
		want  [2]string
	}{
		{
			"event-erase",
			url.Values{"domain": {"bulk"}, "key": {`a "key" & more`}, "reason": {"of a person"}, "typed": {"bulk"}},
			`select count(*) || ' ' || coalesce((select string_agg(distinct reason, ',') from tidemark.audit where action = 'events_erase'), '')
				from tidemark.outbox where domain = 'bulk' and payload ? 'erased'`,
			[2]string{"10000 of a person", "10001 of a person"},
		},
		{
			"commands-replay",
			url.Values{"service": {service}, "reason": {"mended"}, "typed": {service}},
			`select count(*) || '' from tidemark.api_answer where answer ? 'outcomes'`,
			[2]string{"1", "2"},
		},
	} {
		a.form.Set("once", "first of "+a.act)
		for part, want := range a.want {
			status, page := s.request("", "POST", "/act/"+a.act, a.form)
			if got := value[string](s, a.after); status != http.StatusOK || got != want {
				t.Fatalf("part %d of %s: %q, want %q: %d %s", part+1, a.act, got, want, status, page)
			}
			a.form = hiddenOf(page)
		}
	}
}
