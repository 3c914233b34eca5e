package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A test delivery is sent once for each Idempotency-Key, while no transaction is open, and the audit has what came of it.
func TestTestDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true)`)
	w.refuses(http.StatusNotImplemented, "", oscar, "POST", "/routes/hook/test", `{"reason": "new target"}`) // it has no Probe
	var sent atomic.Int32
	w.api = New(Options{Pool: w.pool, Log: slog.New(slog.DiscardHandler), Probe: func(_ context.Context, begun store.RouteTest) store.RouteTested {
		sent.Add(1)
		if n := one[int](w, `select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`); n != 0 {
			t.Errorf("%d transactions are open", n)
		}
		return store.RouteTested{EventID: begun.EventID, Outcome: "failed", ErrorCode: "http_500", Detail: "HTTP 500", Seconds: 0.5}
	}})
	const outcomes = `select coalesce(string_agg(concat_ws(' ', person, object, reason, after ->> 'outcome', after ->> 'error_code'), ', ' order by id), '') from tidemark.audit where action = 'route_test'`
	for range 3 {
		got := gets[store.RouteTested](w, oscar, "POST", "/routes/hook/test", `{"reason": "new target"}`, "Idempotency-Key: one")
		if got.Outcome != "failed" || got.ErrorCode != "http_500" || got.EventID == "" {
			t.Errorf("%+v", got)
		}
	}
	if sent.Load() != 1 {
		t.Errorf("%d were sent", sent.Load())
	}
	if got, want := one[string](w, outcomes), "oscar outbound_route hook new target begun, oscar outbound_route hook new target failed http_500"; got != want {
		t.Errorf("the audit has %s, want %s", got, want)
	}

	w.exec(`create function public.takes(jsonb) returns void language sql as 'select'; grant execute on function public.takes(jsonb) to public`)
	w.exec(`select tidemark.route_set('sql', '{"domain": "shop", "type": "order", "target_kind": "sql", "target_ref": "public.takes"}')`)
	if got := gets[store.RouteTested](w, oscar, "POST", "/routes/sql/test", `{"reason": "x"}`); got.Outcome != "accepted" || sent.Load() != 1 {
		t.Errorf("%+v, %d sent", got, sent.Load())
	}
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.refuses(http.StatusConflict, "TM009", oscar, "POST", "/routes/hook/test", `{"reason": "x"}`)
	w.refuses(http.StatusNotFound, "TM004", oscar, "POST", "/routes/nope/test", `{"reason": "x"}`)
}
