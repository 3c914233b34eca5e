package api

import (
	"fmt"
	"strings"
	"testing"
)

// An answer that the API keeps for a repeated request does not outlive the payload that it quotes. The request is not done again.
func TestErasedAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`select tidemark.stage_set('live', 'x'), tidemark.gate_set('routes.enabled', true, 'x'), tidemark.gate_set('worker.default.enabled', true, 'x'), tidemark.gate_set('domain.shop.enabled', true, 'x');
		create function public.take(event jsonb) returns void language plpgsql as $f$ begin raise exception 'bad row %', event -> 'payload'; end $f$;
		select tidemark.route_set('sql', '{"domain": "shop", "target_kind": "sql", "target_ref": "public.take", "retry_policy": {"max_attempts": 1}, "enabled": true, "dry_run": false}', 'x')`)
	erase := map[string]string{
		"by an operator":   `select tidemark.events_erase('shop', 'gdpr', subject => 'p')`,
		"by the retention": `select tidemark.domain_set('shop', '{"payload_retention": "1 hour"}', 'x')`,
	}
	for name, statement := range erase {
		w.exec(`select tidemark.emit('shop', 'order', '{"secret": "PII-XYZ"}', subject_ref => 'p'); select tidemark.route_worker_run('default')`)
		letter := one[int64](w, `select id from tidemark.dead_letter where resolved_at is null`)
		key := "Idempotency-Key: " + name
		replay := func() string {
			return w.ask(oscar, "POST", "/dead-letters/replay", fmt.Sprintf(`{"ids": [%d], "reason": "x"}`, letter), key).Body.String()
		}
		if got := replay(); !strings.Contains(got, "PII-XYZ") || replay() != got {
			t.Fatalf("the replay answers %s", got)
		}
		gets[Changed](w, oscar, "POST", "/workers/default/pause", `{"reason": "calm"}`, key+" 2")
		gets[Changed](w, oscar, "POST", "/workers/default/resume", `{"reason": "calm"}`, key+" 3")
		attempts := one[int](w, `select attempts from tidemark.dead_letter where resolved_at is null`)
		if name == "by the retention" {
			w.exec(fmt.Sprintf(`select tidemark.dead_letter_discard(%d, 'x')`, letter))
			w.exec(`set session_replication_role = replica; update tidemark.outbox set created_at = created_at - interval '2 hours'; reset session_replication_role`)
		}
		w.exec(statement)
		w.exec(`select tidemark.maintain()`)
		if n := one[int](w, `select count(*) from tidemark.api_answer where answer::text like '%PII-XYZ%'`); n != 0 {
			t.Errorf("%s: %d answers quote what is erased", name, n)
		}
		p := w.refuses(409, "TM013", oscar, "POST", "/dead-letters/replay", fmt.Sprintf(`{"ids": [%d], "reason": "x"}`, letter), key)
		if !strings.Contains(p.Detail, "erased") || one[int](w, fmt.Sprintf(`select attempts from tidemark.dead_letter where id = %d`, letter)) != attempts {
			t.Errorf("%s: %+v", name, p)
		}
		gets[Changed](w, oscar, "POST", "/workers/default/pause", `{"reason": "calm"}`, key+" 2") // it quotes nothing
	}
}
