package oracle_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tidemarkhq/tidemark/sql/test/internal/oracle"
)

// A decideCase is what tidemark.decide and oracle.Decide are given. Its JSON is what the SQL side reads.
type decideCase struct {
	Worker string         `json:"worker"`
	Event  oracle.Event   `json:"event"`
	Routes []oracle.Route `json:"routes"`
	Gates  oracle.Gates   `json:"gates"`
}

// generate makes case n of a seed, whatever came before it. Names are few, so that routes meet the event and
// each other.
func generate(seed, n uint64) decideCase {
	g := generator{rand.New(rand.NewPCG(seed, n))}
	c := decideCase{
		Worker: "w1",
		Event: oracle.Event{
			Domain: pick(g, "shop", "bank"), Type: pick(g, "order.paid", "order.late", "order", "invoice.*x"),
			Stream: g.maybe(0.5, "alert", "bulk"), Key: g.maybe(0.7, "k1", "k12", "x", ""),
			Payload: json.RawMessage(g.object(3)),
		},
		Routes: []oracle.Route{},
		Gates:  oracle.Gates{Master: g.chance(0.96), Worker: g.chance(0.96), Armed: g.chance(0.9)},
	}
	if g.chance(0.3) {
		c.Gates.Closed = pick(g, []string{"shop"}, []string{"bank", "shop"}, []string{c.Event.Domain}, []string{"elsewhere"}, []string{})
	}
	ids := g.Perm(9)
	for i := range g.IntN(7) {
		c.Routes = append(c.Routes, g.route(int32(ids[i]+1), c.Event))
	}
	return c
}

type generator struct{ *rand.Rand }

func (g generator) chance(p float64) bool { return g.Float64() < p }

func pick[T any](g generator, of ...T) T { return of[g.IntN(len(of))] }

func (g generator) maybe(p float64, of ...string) *string {
	if !g.chance(p) {
		return nil
	}
	return ptr(pick(g, of...))
}

func (g generator) route(id int32, e oracle.Event) oracle.Route {
	return oracle.Route{
		ID: id, Worker: pick(g, "w1", "w1", "w1", "w2"),
		Domain: pick(g, "*", e.Domain, e.Domain, "shop"), Type: pick(g, "*", "*", "*", "order.*", "order.*", "order.paid", "order", "invoice.*"),
		Stream: g.maybe(0.2, "alert", "bulk"), KeyFilter: g.maybe(0.2, "*", "k1", "k1*", "k*", "x"),
		PayloadFilter: g.filter(e.Payload),
		TargetKind:    g.targetKind(),
		TargetRef:     pick(g, "a.b", "a.b", "a.c"), Exclusive: g.chance(0.35),
		Enabled: g.chance(0.8), DryRun: g.chance(0.35), FailClosed: g.chance(0.6), RetryPolicy: g.policy(),
		Transform: g.maybe(0.3, "public.shape"),
	}
}

func (g generator) targetKind() string {
	if g.chance(0.75) {
		return "sql"
	}
	return pick(g, "notify", "webhook", "kafka", "nats", "river", "stdout", "pigeon", "SQL", "")
}

func (g generator) policy() json.RawMessage {
	if g.chance(0.7) {
		return nil
	}
	return json.RawMessage(pick(g, `{}`, `{"max_attempts": 3}`, `{"base_seconds": 0.5, "max_seconds": 5e-1, "jitter": 0}`,
		`{"max_attempts": 1e2}`, `{"max_attempts": 2.5}`, `{"max_attempts": 0}`, `{"base_seconds": 2, "max_seconds": 1.9}`,
		`{"jitter": 1.01}`, `{"jitter": "0"}`, `{"retries": 3}`, `[]`, `3`, `{"max_attempts": 0, "max_attempts": 1}`))
}

// filter is none, one that the payload was made to hold, or any.
func (g generator) filter(payload json.RawMessage) json.RawMessage {
	switch p := g.Float64(); {
	case p < 0.5:
		return nil
	case p < 0.85:
		var whole any
		if err := json.Unmarshal(payload, &whole); err != nil {
			panic(fmt.Sprintf("generated %s: %v", payload, err))
		}
		part, err := json.Marshal(g.part(whole))
		if err != nil {
			panic(err)
		}
		return part
	default:
		return json.RawMessage(g.object(2))
	}
}

// part is the value with some of it left out.
func (g generator) part(value any) any {
	switch v := value.(type) {
	case map[string]any:
		some := map[string]any{}
		for _, key := range []string{"a", "b", "c", "d"} { // in this order, so that a seed gives the same again
			if inner, ok := v[key]; ok && g.chance(0.5) {
				some[key] = g.part(inner)
			}
		}
		return some
	case []any:
		some := []any{}
		for _, i := range g.Perm(len(v)) {
			if g.chance(0.6) {
				some = append(some, g.part(v[i]))
			}
		}
		return some
	}
	return value
}

func (g generator) object(depth int) string {
	var fields []string
	for range g.IntN(4) {
		fields = append(fields, fmt.Sprintf(`%q: %s`, pick(g, "a", "b", "c", "d"), g.value(depth-1))) // keys may repeat
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (g generator) value(depth int) string {
	switch n := g.IntN(10); {
	case n < 2 && depth > 0:
		return g.object(depth)
	case n < 4 && depth > 0:
		elements := make([]string, g.IntN(4))
		for i := range elements {
			elements[i] = g.value(depth - 1)
		}
		return "[" + strings.Join(elements, ", ") + "]"
	default:
		return pick(g, `1`, `1.0`, `10e-1`, `0.1E1`, `-1`, `0`, `-0`, `100`, `1e2`, `"1"`, `"x"`, `"\u0078"`, `"é"`, `""`, `true`, `false`,
			`null`, `12345678901234567890.5`, `1.23456789012345678905E19`)
	}
}
