package console

import (
	"strings"
	"testing"
)

// Only roles that may see payloads see an error text that quotes one. The database decides it by the role that the console takes for a
// viewer, wherever the text is shown.
func TestQuotedPayloadsAreHidden(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.exec(`create or replace function public.fails(jsonb) returns void language plpgsql as $f$ begin raise exception 'quoted: %', $1 -> 'payload' ->> 'secret'; end $f$`)
	s.exec(`select tidemark.emit('shop', 'order', '{"secret": "tell no one"}', key => 'quoted')`)
	s.exec(`select tidemark.route_worker_run('default')`)
	seq := value[string](s, `select max(seq)::text from tidemark.attempt`)
	letter := value[string](s, `select max(id)::text from tidemark.dead_letter`)
	for _, path := range []string{
		"/api/v1/events/" + seq, "/api/v1/dead-letters", "/api/v1/dead-letters/" + letter, "/api/v1/dead-letter-groups", "/events/" + seq, "/dead-letters", "/dead-letters/" + letter, "/routes/sql",
	} {
		if status, text := s.get("operator", path); status != 200 || !strings.Contains(text, "quoted: tell no one") {
			t.Errorf("%s: an operator does not see the error: %d %s", path, status, text)
		}
		if status, text := s.get("viewer", path); status != 200 || strings.Contains(text, "tell no one") {
			t.Errorf("%s: a viewer sees the payload: %d %s", path, status, text)
		}
	}
	if _, text := s.get("viewer", "/events/"+seq); !strings.Contains(text, "P0001") {
		t.Errorf("a viewer does not see what the code is: %s", text)
	}
}
