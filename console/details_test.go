package console

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// shows wants texts on a page.
func (s *site) shows(role, path string, texts ...string) {
	s.t.Helper()
	status, page := s.get(role, path)
	for _, text := range texts {
		if status != http.StatusOK || !strings.Contains(html.UnescapeString(page), text) {
			s.t.Errorf("%s for %s does not show %q: %d %s", path, role, text, status, page)
		}
	}
}

// A worker's page tells whose transaction keeps its holes open, and what its last pass did; a route's page how long events take; what waits
// behind an event names it.
func TestDetails(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.exec(`select tidemark.route_set('sql', '{"enabled": true}')`)
	s.exec(`create or replace function public.fails(jsonb) returns void language sql as 'select'`)
	sleeper := s.db.Connect(t)
	if _, err := sleeper.Exec(t.Context(), `set application_name = 'nightly'; begin; select tidemark.emit('shop', 'order')`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.exec(`select tidemark.emit('shop', 'order')`)
		s.exec(`select tidemark.route_worker_run('default')`)
	}
	s.shows("viewer", "/workers/default", "Kept open by", `application "nightly"`, "ran, events 1, decided ")
	s.shows("viewer", "/routes/sql", "From emit to arrival: half within", "of a sample of 2 events of the last hour")
	s.exec(`set session_replication_role = replica; update tidemark.outbox set created_at = created_at - interval '30 minutes'; reset session_replication_role`)
	s.shows("viewer", "/api/v1/route-latencies?routes=sql,hook,none", `"events":2,`, `"route_code":"sql"`, `"p50_seconds":18`)
	s.shows("viewer", "/", `<td class="n">30 m</td></tr>`, `<td class="n">—</td></tr>`)
	s.shows("viewer", "/routes", `<td class="n">30 m</td><td class="n">30 m</td></tr>`, `<td class="n">—</td><td class="n">—</td></tr>`)
	s.shows("operator", "/events/4", `action="/act/route-replay"`, `name="from_seq" value="4"`, `<select name="route">`)
	s.exec(`update tidemark.pending set next_attempt_at = 'infinity' where seq > 4`)
	s.shows("viewer", "/waiting", `behind <a href="/events/4">4</a>`)
	if _, page := s.get("viewer", "/waiting"); strings.Contains(page, "Try now") {
		t.Errorf("a viewer may try again: %s", page)
	}
	s.exec(`create function public.greet(births[]) returns void language sql as 'select'`)
	s.exec(`select tidemark.worker_set('greeter', '{"source": "table", "handler": "sql", "handler_ref": "public.greet"}'), tidemark.worker_source_add('greeter', 'births')`)
	s.exec(`update tidemark.worker_cursor set verified_through = now() - interval '84 hours', watermark_ts = now() where worker = 'greeter'`)
	forget := func() { s.request("", "POST", "/act/letter-replay", url.Values{"id": {"999999"}}) } // any act makes pages forget what others have asked
	forget()
	// Half of the last week is verified; a bar shows more time where half of it is not enough.
	for _, path := range []string{"/", "/workers", "/workers/greeter"} {
		s.shows("viewer", path, "3 d 12 h ago", `<rect class="counted" width="500"`, `<rect class="read" width="1000"`)
	}
	s.exec(`update tidemark.worker_cursor set verified_through = now() - interval '10 days' where worker = 'greeter'`)
	forget()
	s.shows("viewer", "/workers/greeter", "10 d ago", `<rect class="counted" width="500"`, "20 d ago")
	s.shows("viewer", "/sources/births", "every committed row is read", "10 d ago", `href="/workers/greeter"`)
}

// Dead letters are grouped by route and code, and within that by the first line of the error, the most frequent first; a route's page has
// its own groups.
func TestFailuresByReason(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.exec(`insert into tidemark.dead_letter (route_id, worker_id, seq, event_id, error_code, error_detail, event_snapshot, idempotency_key)
		select r.id, w.id, n, gen_random_uuid(), 'http_4' || n / 8, E'\n' || n || ' was refused' || repeat('!', 300) || E'\r\nand more', '{}', n || 'n'
		from tidemark.outbound_route r join tidemark.worker w using (worker), generate_series(1, 10) n where r.route_code = 'hook'`)
	s.exec(`update tidemark.dead_letter set resolved_at = now(), resolution = 'discarded', resolved_by = 'x' where seq = 1 and error_code = 'http_40'`)
	s.exec(`update tidemark.dead_letter set error_detail = E'gone\rat ' || seq where error_code = 'http_41' and seq < 10`)
	last := value[int64](s, `select max(id) from tidemark.dead_letter where error_code = 'http_40'`)
	row := func(role, path, code string) string {
		t.Helper()
		_, page := s.get(role, path)
		_, row, _ := strings.Cut(html.UnescapeString(page), "<td><code>"+code+"</code></td><td>")
		row, _, _ = strings.Cut(row, "</td><td>")
		return row
	}
	line := "7 was refused" + strings.Repeat("!", 187)
	for _, path := range []string{"/routes/hook", "/dead-letters"} {
		first := fmt.Sprintf(`<div>1 × <a href="/dead-letters/%d">%s</a></div>`, last, line)
		rest := `<div class="quiet">and 3 other first lines</div></td><td class="n"><a href="/dead-letters?route=hook&code=http_40">6</a>`
		if got := row("operator", path, "http_40"); !strings.HasPrefix(got, first) || !strings.HasSuffix(got, rest) {
			t.Errorf("%s: %s, want %s … %s", path, got, first, rest)
		}
		two := fmt.Sprintf(`<div>2 × <a href="/dead-letters/%d">gone</a></div><div>1 × <a href="/dead-letters/%d">10 was refused`, last+2, last+3)
		if got := row("operator", path, "http_41"); !strings.HasPrefix(got, two) || !strings.Contains(got, ">3</a>") {
			t.Errorf("%s: %s, want %s", path, got, two)
		}
		if got := row("viewer", path, "http_40"); strings.Contains(got, "refused") || !strings.Contains(got, `<div><a href="/dead-letters/`) || !strings.Contains(got, ">the message is for operators</a>") {
			t.Errorf("%s shows a viewer %s", path, got)
		}
	}
	s.exec(`insert into tidemark.dead_letter (route_id, worker_id, seq, event_id, error_code, error_detail, event_snapshot, idempotency_key)
		select l.route_id, l.worker_id, 1000 + n, gen_random_uuid(), l.error_code, 'gone', '{}', n || 'm'
		from tidemark.dead_letter l, generate_series(1, 1001) n where l.id = ` + fmt.Sprint(last))
	s.request("", "POST", "/act/letter-replay", url.Values{"id": {"999999"}}) // pages forget what others have asked
	if got := row("operator", "/routes/hook", "http_40"); !strings.Contains(got, `gone</a></div><div class="quiet">of the newest 1,000</div>`) || !strings.Contains(got, ">1,007</a>") {
		t.Errorf("many: %s", got)
	}
	if got := row("operator", "/routes/hook", "P0001"); got != "" {
		t.Errorf("a group of another route: %s", got)
	}
	if got := row("operator", "/dead-letters", "P0001"); !strings.Contains(got, ">no: ") {
		t.Errorf("the groups of all routes: %s", got)
	}
}

// A command's page says which producer it names and how that was proved, and, while it is parked, has its envelope for roles that see payloads.
func TestCommandTellsItsIdentity(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	service := s.populateCommands()
	path := "/commands/" + service + "/parked"
	s.shows("operator", path, "claims to be shop; verified: <strong>shop</strong>, proved by its signature", "Envelope", "0af7651916cd43dd8448eb211c80319c")
	s.shows("viewer", path, "verified: <strong>shop</strong>, proved by its signature", "It is hidden from your role.")
	if _, page := s.get("viewer", path); strings.Contains(page, "0af7651916cd43dd8448eb211c80319c") {
		t.Errorf("a viewer sees the envelope: %s", page)
	}
	s.exec(`select tidemark.finding_open('command_circuit', '` + service + `.charge/v1', 'high', 'the table is gone')`)
	s.shows("viewer", "/commands/"+service, `<td class="n">0</td><td class="n">1</td><td class="n">0</td><td>open: <a href="/findings">finding `)
	s.shows("viewer", "/commands/"+service+"?state=failed_retryable", "<td>key, the first</td>")
	s.exec(`update tidemark.command_claim set via = 'claimed' where idempotency_key = 'parked'`)
	s.request("", "POST", "/act/letter-replay", url.Values{"id": {"999999"}})
	s.shows("operator", path, "not verified: <strong>shop</strong>, as the command claims: nothing proves it")
}

// Keys may be what a browser or a server takes for a step in a path.
func TestNamesThatAreStepsInAPath(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	service := s.populateCommands()
	for _, key := range []string{".", "..", ".~", "..~~", "a/b", "../x", "%2e", "%2e%2e", "a b?c#d", "\\..\\", "~"} {
		s.exec(`insert into tidemark.command_claim (service, idempotency_key, fingerprint, state, event_id, command, version, producer, via, processed_at, expires_at)
			values ('` + service + `', '` + key + `', '', 'processed', gen_random_uuid(), 'charge', 1, 'shop', 'jws', now(), now() + interval '1 day')`)
		s.request("", "POST", "/act/letter-replay", url.Values{"id": {"999999"}})
		_, list := s.get("", "/commands/"+service)
		link := "/commands/" + service + "/" + segment(key)
		if !strings.Contains(list, `href="`+html.EscapeString(link)+`"`) {
			t.Errorf("no link %s: %s", link, list)
		}
		s.shows("", link, `<h1>Command `+visible(key)+`</h1>`, `<code class="copy">`+key+`</code></dd><dt>Event id`)
		// A browser resolves the path by the rules of WHATWG, where an escaped dot is a dot too.
		resolved, err := url.Parse(s.url + strings.NewReplacer("%2e", ".", "%2E", ".").Replace(link))
		if err != nil || resolved.JoinPath().EscapedPath() != resolved.EscapedPath() {
			t.Errorf("%s becomes %s in a browser (%v)", link, resolved.JoinPath(), err)
		}
	}
}

// Of pause and resume a worker's page has what applies: both where a part of its cursors is paused. What is so already is not reported as done.
func TestPauseOrResume(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	has := func(worker string, want ...string) {
		t.Helper()
		s.serve(s.pool, false) // it has not read anything yet
		_, page := s.get("", "/workers/"+worker)
		for _, act := range []string{"worker-pause", "worker-resume"} {
			if slices.Contains(want, act) != strings.Contains(page, `href="/act/`+act+`?`) {
				t.Errorf("%s, want %v: %s", act, want, page)
			}
		}
	}
	form := url.Values{"worker": {"default"}, "typed": {"default"}, "reason": {"test"}}
	has("default", "worker-pause")
	if _, page := s.request("", "POST", "/act/worker-resume", form); !strings.Contains(page, "Nothing was changed: it was so already.") {
		t.Errorf("a worker that is not paused is resumed: %s", page)
	}
	if _, page := s.request("", "POST", "/act/worker-pause", form); !strings.Contains(page, "Done.") {
		t.Errorf("it is paused: %s", page)
	}
	has("default", "worker-resume")
	s.exec(`create function public.greet(births[]) returns void language sql as 'select'`)
	s.exec(`select tidemark.worker_set('greeter', '{"source": "table", "handler": "sql", "handler_ref": "public.greet"}')`)
	has("greeter")
	s.exec(`select tidemark.source_set('again', '{"table": "public.births", "id_column": "id", "timestamp_column": "at", "safety": "clock"}')`)
	s.exec(`select tidemark.worker_source_add('greeter', 'births'), tidemark.worker_pause('greeter', true, 'test'), tidemark.worker_source_add('greeter', 'again')`)
	has("greeter", "worker-resume", "worker-pause")
}

// A route's page has a pause or a resume, which show first what waits. The overview names the pause, with the act that ends it.
func TestPauseOrResumeARoute(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.exec(`update tidemark.outbound_route set enabled = true, dry_run = false where route_code = 'hook'`)
	waits := value[string](s, `select pending::text from tidemark.route_summary where route_code = 'hook'`)
	if waits == "0" {
		t.Fatal("nothing waits")
	}
	has := func(role string, want ...string) {
		t.Helper()
		s.serve(s.pool, false) // it has not read anything yet
		_, page := s.get(role, "/routes/hook")
		for _, act := range []string{"route-pause", "route-resume"} {
			if slices.Contains(want, act) != strings.Contains(page, `href="/act/`+act+`?route=hook"`) {
				t.Errorf("%s, want %v: %s", act, want, page)
			}
		}
	}
	has("viewer")
	has("operator", "route-pause")
	for _, act := range []string{"route-pause", "route-resume"} {
		s.shows("operator", "/act/"+act+"?route=hook", "As it is now", "Pending", ">"+waits+"<")
	}
	form := url.Values{"route": {"hook"}, "typed": {"hook"}, "reason": {"it is mended"}}
	if _, page := s.request("operator", "POST", "/act/route-pause", form); !strings.Contains(page, "Done.") {
		t.Errorf("it is paused: %s", page)
	}
	has("operator", "route-resume")
	s.shows("operator", "/routes/hook", "paused <time")
	s.shows("operator", "/", "route_paused", "reason: it is mended", `href="/act/route-resume?route=hook"`)
	if _, page := s.request("operator", "POST", "/act/route-resume", form); !strings.Contains(page, "Done.") {
		t.Errorf("it is resumed: %s", page)
	}
	has("operator", "route-pause")
}

// A dangerous act is offered once the page has shown what it would do.
func TestShownBeforeDone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.exec(`create function public.greet(births[]) returns void language sql as 'select'; insert into public.births select generate_series(1, 12)`)
	s.exec(`select tidemark.worker_set('greeter', '{"source": "table", "handler": "sql", "handler_ref": "public.greet"}'), tidemark.worker_source_add('greeter', 'births')`)
	s.exec(`update tidemark.worker_cursor set watermark_ts = clock_timestamp() where worker = 'greeter'`)
	const button = `<button class="do">`
	for _, c := range []struct{ act, given, form, shows string }{
		{"route-replay", "route=hook", "from_seq=1&to_seq=6", "What it would do"},
		{"worker-rewind", "worker=default", "to_seq=0", "What it would do"},
		{"source-rewind", "worker=greeter&source=births", "to_time=2026-01-31T12:00", "<td>12</td><td>yes</td>"},
		{"event-erase", "domain=shop", "key=none", "What it would do"},
		{"gate-open", "gate=routes.enabled", "", "What the workers would do with what waits"},
		{"pending-discard", "item=5&route=hook", "", "Why it waits"},
		{"pending-retry-all", "route=hook", "", "Pending"},
		{"letters-replay", "route=sql&source=outbox", "", "What it would do"},
	} {
		_, page := s.get("", "/act/"+c.act+"?"+c.given)
		if c.form != "" && (strings.Contains(page, button) || !strings.Contains(page, "Show what it would do")) {
			t.Errorf("%s is offered before it is shown: %s", c.act, page)
		}
		if c.form != "" {
			form, err := url.ParseQuery(c.given + "&" + c.form + "&preview=1")
			if err != nil {
				t.Fatal(err)
			}
			_, page = s.request("", "POST", "/act/"+c.act, form)
		}
		if !strings.Contains(page, button) || !strings.Contains(page, c.shows) || strings.Contains(page, `class="problem"`) || !strings.Contains(page, `name="typed"`) {
			t.Errorf("%s does not show %q: %s", c.act, c.shows, page)
		}
	}
}

// Closing a gate waits for no outlook, and of a gate that governs no worker of the log there is none.
func TestGatesWithoutOutlook(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	service := s.populateCommands()
	for _, act := range []string{
		"gate-close?gate=routes.enabled", "stage-dry-run?", "gate-open?gate=commands.enabled", "gate-open?gate=commands." + service + ".enabled",
		"gate-open?gate=notify.bridge_enabled",
	} {
		status, page := s.get("", "/act/"+act)
		if status != http.StatusOK || strings.Contains(page, "What the workers would do") || strings.Contains(page, `class="problem"`) || !strings.Contains(page, `<button class="do">`) {
			t.Errorf("%s: %d %s", act, status, page)
		}
	}
	// What is named twice is done once, and shown so.
	s.shows("operator", "/act/letter-replay?id=2&id=3", "<h1>Try dead letter 2 again</h1>")
}

// A replay's bar begins at the first of its numbers.
func TestReplayProgress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.exec(`select tidemark.route_replay('hook', 'test', from_seq => 5, to_seq => 6)`)
	s.shows("viewer", "/routes/hook", `<progress max="2" value="0">4 of 6</progress>`)
}

// Several dead letters are chosen in the list, and tried again or discarded: all of them, or none. None chosen is not all.
func TestChosenDeadLetters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.shows("operator", "/dead-letters", `<form method="get" action="/act/letters-chosen-replay">`, `name="ids" value="2"`, `formaction="/act/letters-chosen-discard"`)
	if _, page := s.get("viewer", "/dead-letters"); strings.Contains(page, `name="ids"`) {
		t.Errorf("a viewer chooses: %s", page)
	}
	s.shows("operator", "/act/letters-chosen-replay?ids=2&ids=3", "Try dead letters 2, 3 again", `name="ids" value="2"`, `name="ids" value="3"`, "sql", `<button class="do">`)
	discard := func(wantStatus int, typed string, ids ...string) {
		t.Helper()
		form := url.Values{"ids": ids, "typed": {typed}, "reason": {"test"}}
		if status, page := s.request("operator", "POST", "/act/letters-chosen-discard", form); status != wantStatus {
			t.Errorf("%v: %d %s", ids, status, page)
		}
	}
	const open = `select array_agg(id order by id)::text from tidemark.dead_letter where resolved_at is null`
	before := value[string](s, open)
	discard(http.StatusUnprocessableEntity, "discard")
	discard(http.StatusUnprocessableEntity, "discard", "2", "x")
	discard(http.StatusUnprocessableEntity, "2, 3", "2", "3")
	discard(http.StatusNotFound, "discard", "2", "999999")
	if now := value[string](s, open); now != before {
		t.Fatalf("open are %s, were %s", now, before)
	}
	discard(http.StatusOK, "discard", "2", "3")
	if now := value[string](s, open); now == before || strings.ContainsAny(now, "23") {
		t.Errorf("open are %s, were %s", now, before)
	}
}
