package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"
)

// Each list that can grow comes in parts, which together are the whole, in its order.
func TestListsComeInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`select tidemark.type_set('d' || n % 3, 't' || n) from generate_series(1, 7) n;
		create table public.births (id bigint generated always as identity primary key);
		create function public.f(jsonb) returns void language sql as 'select'; create function public.g(births[]) returns void language sql as 'select';
		grant select on public.births to tidemark_executor;
		select tidemark.route_set('r' || chr(64 + n) || chr(103 - n), '{"domain": "shop", "type": "order", "target_kind": "sql", "target_ref": "public.f"}') from generate_series(1, 5) n;
		select tidemark.source_set('s' || n, '{"table_name": "births", "schema_name": "public", "id_column": "id", "safety": "sequence"}') from generate_series(1, 5) n;
		select tidemark.worker_set('w' || n % 2, '{"source": "table", "handler": "sql", "handler_ref": "public.g"}') from generate_series(1, 2) n;
		select tidemark.worker_source_add('w' || n % 2, 's' || n) from generate_series(1, 5) n;
		select tidemark.heartbeat_register('job' || n, 'external_worker', '{}', '1 minute') from generate_series(1, 5) n;
		select tidemark.finding_open('disk', 'd' || n, (array['high', 'warning', 'critical'])[1 + n % 3]::tidemark.severity, 'full') from generate_series(1, 8) n;
		update tidemark.finding set closed_at = clock_timestamp() where subject > 'd5';
		insert into tidemark.replay_job (route_id, worker_id, first_seq, last_seq, passed_seq, reason)
			select r.id, w.id, 1, 2, 0, 'x' from tidemark.outbound_route r join tidemark.worker w using (worker);
		insert into tidemark.letter_job (action, source, letters, due_at, requested_by, reason) select 'replay', 'outbox', 1, clock_timestamp(), 'x', 'y' from generate_series(1, 5)`)
	for path, cursor := range map[string]string{
		"/routes?": "after", "/routes?q=order": "after", "/workers?": "after", "/sources?": "after", "/types?": "after", "/types?domain=d1": "after",
		"/heartbeats?": "after", "/findings?": "before", "/findings?closed=true": "before", "/replays?": "before", "/dead-letter-jobs?": "before",
		"/audit?who=postgres": "before",
	} {
		whole := gets[anyList](w, vera, "GET", path+"&limit=500", "")
		if len(whole.Items) < 3 || whole.Next != nil {
			t.Errorf("%s has %d: %v", path, len(whole.Items), whole.Next)
		}
		for _, limit := range []int{1, 2, len(whole.Items) - 1, len(whole.Items)} {
			var got []json.RawMessage
			for at := ""; ; {
				some := gets[anyList](w, vera, "GET", fmt.Sprintf("%s&limit=%d%s", path, limit, at), "")
				got = append(got, some.Items...)
				if some.Next == nil || len(got) > len(whole.Items) {
					break
				}
				at = "&" + cursor + "=" + url.QueryEscape(fmt.Sprint(some.Next))
			}
			if !slices.EqualFunc(got, whole.Items, func(a, b json.RawMessage) bool { return identity(a) == identity(b) }) {
				t.Errorf("%s by %d: %s, want %s", path, limit, got, whole.Items)
			}
		}
	}
	w.refuses(422, "", vera, "GET", "/routes?limit=501", "")
}

// anyList is a part of any list.
type anyList struct {
	Items []json.RawMessage `json:"items"`
	Next  any               `json:"next"`
}

// identity is what names an item of a list.
func identity(item json.RawMessage) (name string) {
	var members map[string]any
	_ = json.Unmarshal(item, &members)
	for _, m := range []string{"id", "route_code", "executor_id", "worker", "source", "shard", "domain", "type"} {
		name += fmt.Sprint(members[m], " ")
	}
	return name
}
