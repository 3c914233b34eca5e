package api

import (
	"encoding/base64"
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
		select tidemark.type_set('d1', 't/' || n), tidemark.type_set('d1', 't.' || n), tidemark.type_set('d1', 't/' || n || '/u') from generate_series(1, 3) n;
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
	w.exec(crowd)
	for path, cursor := range map[string]string{
		"/routes?": "after", "/routes?q=order": "after", "/workers?": "after", "/sources?": "after", "/types?": "after", "/types?domain=d1": "after",
		"/heartbeats?": "after", "/findings?": "after", "/findings?closed=true": "after", "/dead-letters?route=rAf": "after", "/dead-letters?resolved=true": "after", "/replays?": "before", "/dead-letter-jobs?": "before",
		"/audit?who=postgres": "before", "/pending?": "after", "/pending?route=rAf": "after", "/pending?source=s1": "after", "/dead-letter-groups?": "after",
		"/command-claims?service=billing": "after", "/command-claims?service=billing&state=failed_terminal": "after",
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
	// The place in one list is none in another.
	of := gets[anyList](w, vera, "GET", "/dead-letter-groups?limit=1", "").Next.(string)
	// One made by hand, of a shard that cannot be.
	hand := base64.RawURLEncoding.EncodeToString([]byte(`{"n":null,"c":"2026-01-31T00:00:00Z","i":"1","w":"w","s":"s","r":"r","h":9999999999}`))
	for _, path := range []string{"/pending?after=" + hand, "/pending?after=x", "/pending?after=" + of, "/command-claims?service=billing&after=" + of, "/dead-letter-groups?after=" + of[1:]} {
		if p := w.refuses(422, "", vera, "GET", path, ""); p.Detail != "after is no place in this list" || p.Hint == "" {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// crowd makes lists whose items have the same times and counts: nothing but their names tells them apart.
const crowd = `
	insert into tidemark.pending (worker_id, route_id, seq, next_attempt_at, created_at)
	select w.id, r.id, n, case when n > 4 then 'infinity' else timestamptz '2026-01-31 12:00:00.000001Z' + n / 2 * interval '1 microsecond' end, '2026-01-31'
	from tidemark.outbound_route r join tidemark.worker w using (worker), generate_series(1, 6) n;
	insert into tidemark.pending_row (worker_id, source, shard, item_id, snapshot, last_error, next_attempt_at, created_at)
	select w.id, s.source, 0, n, '{}', 'no', '2026-01-31 12:00:00.000001Z', '2026-01-31' from tidemark.source s, tidemark.worker w, generate_series(1, 4) n where w.worker = 'w1';
	insert into tidemark.dead_letter (route_id, worker_id, seq, event_id, source, item_id, item_ts, error_code, event_snapshot, idempotency_key)
	select r.id, w.id, case when r.id is not null then n end, case when r.id is not null then gen_random_uuid() end, coalesce(s.source, 'outbox'), case when r.id is null then n::text end, null,
		'E' || n % 3, '{}', concat_ws(' ', r.id, s.source, n)
	from tidemark.worker w, generate_series(1, 7) n,
		(select o.id, null as source from tidemark.outbound_route o union all select null, s.source from tidemark.source s) x (id, source)
		left join tidemark.outbound_route r on r.id = x.id left join tidemark.source s on s.source = x.source
	where w.worker = case when r.id is null then 'w1' else 'default' end;
	insert into tidemark.command_claim (service, idempotency_key, fingerprint, state, event_id, command, version, via, error_code, processed_at, expires_at)
	select 'billing', 'k' || n, '', case n % 2 when 0 then 'processed' else 'failed_terminal' end, gen_random_uuid(), 'charge', 1, 'acl', case n % 2 when 1 then 'sql.data' end,
		timestamptz '2026-01-31' + n / 5 * interval '1 microsecond', '2026-03-01' from generate_series(1, 23) n`

// Items that move and go while a person reads the list part by part do not make others come twice or not at all.
func TestListsThatChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`select tidemark.route_set('r' || n, '{"domain": "shop", "type": "order", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}') from generate_series(1, 3) n;
		select tidemark.worker_set('w1');
		select tidemark.finding_open('disk', 'd' || n, (array['high', 'warning', 'critical'])[1 + n % 3]::tidemark.severity, 'full') from generate_series(1, 20) n;
		update tidemark.finding set closed_at = clock_timestamp() where id % 2 = 0`)
	w.exec(crowd)
	for path, change := range map[string]func(last map[string]any){
		"/pending?": func(last map[string]any) {
			w.exec(fmt.Sprintf(`delete from tidemark.pending p using tidemark.outbound_route r where r.id = p.route_id and r.route_code = '%s' and p.seq = %s`, last["route_code"], last["item"]))
			w.exec(`update tidemark.pending set next_attempt_at = now() where seq = 4`)
		},
		"/dead-letters?": func(last map[string]any) {
			w.exec(fmt.Sprintf(`update tidemark.dead_letter set last_failed_at = clock_timestamp() where id = %.0f`, last["id"]))
		},
		"/dead-letters?source=outbox": func(last map[string]any) {
			w.exec(fmt.Sprintf(`delete from tidemark.dead_letter where id = %.0f`, last["id"]))
		},
		"/findings?": func(last map[string]any) {
			w.exec(fmt.Sprintf(`update tidemark.finding set closed_at = clock_timestamp() where id = %.0f`, last["id"]))
		},
		"/findings?closed=true": func(last map[string]any) {
			w.exec(fmt.Sprintf(`delete from tidemark.finding where id = %.0f`, last["id"]))
		},
		"/dead-letter-groups?": func(last map[string]any) {
			w.exec(fmt.Sprintf(`update tidemark.dead_letter l set resolved_at = now(), resolution = 'discarded', resolved_by = 'x' from tidemark.outbound_route r
				where r.id = l.route_id and r.route_code = '%s' and l.error_code = '%s'`, last["route_code"], last["error_code"]))
		},
		"/command-claims?service=billing": func(last map[string]any) {
			w.exec(fmt.Sprintf(`update tidemark.command_claim set processed_at = now() where idempotency_key = '%s'`, last["idempotency_key"]))
			w.exec(`delete from tidemark.command_claim where idempotency_key = 'k23'`)
		},
	} {
		first := gets[anyList](w, vera, "GET", path+"&limit=3", "")
		var last map[string]any
		_ = json.Unmarshal(first.Items[2], &last)
		change(last)
		seen := map[string]int{}
		for _, item := range first.Items {
			seen[identity(item)]++
		}
		for next := first.Next; next != nil; {
			some := gets[anyList](w, vera, "GET", fmt.Sprintf("%s&limit=2&after=%s", path, next), "")
			for _, item := range some.Items {
				seen[identity(item)]++
			}
			next = some.Next
		}
		whole := gets[anyList](w, vera, "GET", path+"&limit=500", "")
		for _, item := range whole.Items {
			if n := seen[identity(item)]; n != 1 {
				t.Errorf("%s: %s comes %d times", path, item, n)
			}
		}
		if len(whole.Items) < 7 {
			t.Errorf("%s has %d", path, len(whole.Items))
		}
	}
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
	for _, m := range []string{"id", "route_code", "executor_id", "worker", "source", "shard", "domain", "type", "item", "error_code", "idempotency_key"} {
		name += fmt.Sprint(members[m], " ")
	}
	return name
}
