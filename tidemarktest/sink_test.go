package tidemarktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// memory is a sink and its target in one. It passes the suite.
type memory struct {
	mu      sync.Mutex
	arrived []tidemarktest.Arrival
	all     tidemarktest.Behaviour
	some    map[string]tidemarktest.Behaviour
	changed chan struct{} // closed by the next Behave

	deaf    bool // breaks: does not listen to ctx
	unsaid  bool // breaks: answers Unknown with Retry
	limits  sink.Limits
	blocked sync.WaitGroup
}

const tooLarge = 1 << 19

func newMemory() *memory {
	return &memory{
		all: tidemarktest.TargetTakes, changed: make(chan struct{}),
		limits: sink.Limits{Batch: 25, KeepsOrder: true},
	}
}

func (m *memory) target() tidemarktest.SinkTarget {
	return tidemarktest.SinkTarget{
		Open:     func() (sink.Sink, error) { return m, nil },
		Arrived:  m.took,
		Behave:   m.behave,
		TooLarge: tooLarge,
	}
}

func (m *memory) took() []tidemarktest.Arrival {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.arrived)
}

func (m *memory) behave(how tidemarktest.Behaviour, ids ...string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.some = map[string]tidemarktest.Behaviour{}
	if len(ids) == 0 {
		m.all = how
	}
	for _, id := range ids {
		m.some[id] = how
	}
	close(m.changed)
	m.changed = make(chan struct{})
	return true
}

func (m *memory) Limits() sink.Limits { return m.limits }
func (m *memory) Close() error        { return nil }

func (m *memory) Deliver(ctx context.Context, batch []sink.Delivery) []sink.Result {
	results := make([]sink.Result, len(batch))
	stopped := map[string]bool{}
	for i, d := range batch {
		switch {
		case ctx.Err() != nil && !m.deaf:
			results[i] = sink.Result{Status: sink.Retry, Code: "canceled", Detail: "was not sent"}
		case d.Event.Key != "" && stopped[d.Event.Key]:
			results[i] = sink.Result{Status: sink.Retry, Code: "waits", Detail: "an earlier one of its key was not delivered"}
		default:
			results[i] = m.one(ctx, d)
		}
		if o := results[i].Status; o == sink.Retry || o == sink.Unknown {
			stopped[d.Event.Key] = true
		}
	}
	return results
}

func (m *memory) one(ctx context.Context, d sink.Delivery) sink.Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	how := m.all
	if h, ok := m.some[d.Event.ID]; ok {
		how = h
	}
	if len(d.Event.Payload) >= tooLarge {
		return sink.Result{Status: sink.Permanent, Code: "too_large", Detail: "is too large"}
	}
	switch how {
	case tidemarktest.TargetRefuses:
		return sink.Result{Status: sink.Retry, Code: "busy", Detail: "come back later"}
	case tidemarktest.TargetRefusesForGood:
		return sink.Result{Status: sink.Permanent, Code: "refused", Detail: "will not have it"}
	case tidemarktest.TargetIsGone:
		return sink.Result{Status: sink.Permanent, Code: "gone", Detail: "has gone away", Gone: true}
	case tidemarktest.TargetHangs:
		changed := m.changed
		if m.deaf {
			ctx = context.Background()
		}
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		m.mu.Lock()
		return sink.Result{Status: sink.Unknown, Code: "timeout", Detail: "no answer"}
	}
	m.arrived = append(m.arrived, tidemarktest.Arrival{ID: d.Event.ID, Key: d.Event.Key, Trace: d.Event.Trace, Payload: d.Event.Payload})
	if how == tidemarktest.TargetLosesAnswers {
		if m.unsaid {
			return sink.Result{Status: sink.Retry, Code: "reset", Detail: "no answer"}
		}
		return sink.Result{Status: sink.Unknown, Code: "reset", Detail: "no answer"}
	}
	return sink.Result{Status: sink.Delivered}
}

func TestSinkSuite(t *testing.T) {
	t.Parallel()
	tidemarktest.TestSink(t, func(*testing.T) tidemarktest.SinkTarget { return newMemory().target() })
}

// The suite also works with a target that only accepts events; it skips the tests that need more.
func TestSinkSuiteWithAPlainTarget(t *testing.T) {
	t.Parallel()
	tidemarktest.TestSink(t, func(*testing.T) tidemarktest.SinkTarget {
		m := newMemory()
		m.limits = sink.Limits{Batch: 1}
		return tidemarktest.SinkTarget{Open: m.target().Open, Arrived: m.took}
	})
}

// altered is a sink that does something else with a batch.
type altered struct {
	*memory
	deliver func(ctx context.Context, batch []sink.Delivery) []sink.Result
}

func (a altered) Deliver(ctx context.Context, batch []sink.Delivery) []sink.Result {
	return a.deliver(ctx, batch)
}

// result makes a sink that changes the results.
func result(change func(d sink.Delivery, r *sink.Result)) func(m *memory) sink.Sink {
	return func(m *memory) sink.Sink {
		return altered{m, func(ctx context.Context, batch []sink.Delivery) []sink.Result {
			results := m.Deliver(ctx, batch)
			for i := range results {
				change(batch[i], &results[i])
			}
			return results
		}}
	}
}

// event makes a sink that changes the events.
func event(change func(d *sink.Delivery)) func(m *memory) sink.Sink {
	return func(m *memory) sink.Sink {
		return altered{m, func(ctx context.Context, batch []sink.Delivery) []sink.Result {
			batch = slices.Clone(batch)
			for i := range batch {
				change(&batch[i])
			}
			return m.Deliver(ctx, batch)
		}}
	}
}

// with makes a sink that replaces Deliver.
func with(deliver func(ctx context.Context, m *memory, batch []sink.Delivery) []sink.Result) func(m *memory) sink.Sink {
	return func(m *memory) sink.Sink {
		return altered{m, func(ctx context.Context, batch []sink.Delivery) []sink.Result { return deliver(ctx, m, batch) }}
	}
}

type failing struct{ *memory }

func (failing) Close() error { return errors.New("stays open") }

// broken lists sinks that break one promise each, with the subtest that must find it.
var broken = []struct {
	name, part string
	sink       func(m *memory) sink.Sink
}{
	{"no batch", "limits", func(m *memory) sink.Sink { m.limits.Batch = 0; return m }},
	{"loses digits", "delivers", event(func(d *sink.Delivery) {
		var v any
		if json.Unmarshal(d.Event.Payload, &v) == nil {
			d.Event.Payload, _ = json.Marshal(v)
		}
	})},
	{"loses a character", "delivers", event(func(d *sink.Delivery) {
		d.Event.Payload = bytes.ReplaceAll(d.Event.Payload, []byte("👩‍🚀"), []byte("?"))
	})},
	{"cuts", "delivers", event(func(d *sink.Delivery) {
		if len(d.Event.Payload) > 128<<10 {
			d.Event.Payload = []byte(`{}`)
		}
	})},
	{"loses the key", "delivers", event(func(d *sink.Delivery) { d.Event.Key = strings.ToUpper(d.Event.Key) })},
	{"loses the trace", "delivers", event(func(d *sink.Delivery) { d.Event.Trace = "" })},
	{"sends one twice", "delivers", with(func(ctx context.Context, m *memory, batch []sink.Delivery) []sink.Result {
		if len(batch) > 1 {
			m.Deliver(ctx, batch[1:2])
		}
		return m.Deliver(ctx, batch)
	})},
	{"drops and says delivered", "delivers", with(func(ctx context.Context, m *memory, batch []sink.Delivery) []sink.Result {
		results := make([]sink.Result, len(batch))
		for i := range results {
			results[i].Status = sink.Delivered
		}
		return results
	})},
	{"counts wrong", "full batch", with(func(ctx context.Context, m *memory, batch []sink.Delivery) []sink.Result {
		return m.Deliver(ctx, batch)[:min(len(batch), 24)]
	})},
	{"answers an empty batch", "empty batch", with(func(ctx context.Context, m *memory, batch []sink.Delivery) []sink.Result {
		if len(batch) == 0 {
			return make([]sink.Result, 1)
		}
		return m.Deliver(ctx, batch)
	})},
	{"sends in another order", "order", with(func(ctx context.Context, m *memory, batch []sink.Delivery) []sink.Result {
		batch = slices.Clone(batch)
		slices.Reverse(batch)
		results := m.Deliver(ctx, batch)
		slices.Reverse(results)
		return results
	})},
	{"answers in another order", "one of many", with(func(ctx context.Context, m *memory, batch []sink.Delivery) []sink.Result {
		results := m.Deliver(ctx, batch)
		slices.Reverse(results[:len(results)*2/3])
		return results
	})},
	{"goes on after a refusal", "order after a refusal", with(oneByOne)},
	{"goes on after a lost answer", "order after a lost answer", with(oneByOne)},
	{"gives up for good", "refused for now", result(func(_ sink.Delivery, r *sink.Result) {
		if r.Status == sink.Retry {
			r.Status = sink.Permanent
		}
	})},
	{"tries for ever", "refused for good", result(func(_ sink.Delivery, r *sink.Result) {
		if r.Status == sink.Permanent {
			r.Status = sink.Retry
		}
	})},
	{"says no code", "refused for now", result(func(_ sink.Delivery, r *sink.Result) { r.Code = "" })},
	{"says a sentence as code", "refused for now", result(func(_ sink.Delivery, r *sink.Result) { r.Code = r.Detail })},
	{"says two lines", "refused for now", result(func(_ sink.Delivery, r *sink.Result) {
		if r.Detail != "" {
			r.Detail += "\nand more"
		}
	})},
	{"tells the payload", "refused for now", result(func(d sink.Delivery, r *sink.Result) {
		if r.Detail != "" {
			r.Detail += string(d.Event.Payload)[:min(len(d.Event.Payload), 200)]
		}
	})},
	{"tells too much", "refused for now", result(func(_ sink.Delivery, r *sink.Result) { r.Detail = strings.Repeat(r.Detail, 100) })},
	{"does not say gone", "gone", result(func(_ sink.Delivery, r *sink.Result) { r.Gone = false })},
	{"always says gone", "refused for good", result(func(_ sink.Delivery, r *sink.Result) { r.Gone = r.Status == sink.Permanent })},
	{"says retry of what arrived", "lost answer", func(m *memory) sink.Sink { m.unsaid = true; return m }},
	{"hangs with its target", "hanging target", func(m *memory) sink.Sink { m.deaf = true; return m }},
	{"sends after it returned", "hanging target", with(func(ctx context.Context, m *memory, batch []sink.Delivery) []sink.Result {
		results := m.Deliver(ctx, batch)
		if ctx.Err() != nil && !m.deaf { // sends both, the first one twice
			m.blocked.Go(func() { m.behave(tidemarktest.TargetTakes); m.Deliver(context.Background(), append(batch, batch...)) })
		}
		m.blocked.Wait()
		return results
	})},
	{"sends what is canceled", "canceled before", func(m *memory) sink.Sink { m.deaf = true; return m }},
	{"sends what is too large", "too large", with(func(ctx context.Context, m *memory, batch []sink.Delivery) []sink.Result {
		batch = slices.Clone(batch)
		for i, d := range batch {
			if len(d.Event.Payload) >= tooLarge {
				batch[i].Event.Payload = []byte(`{}`)
			}
		}
		return m.Deliver(ctx, batch)
	})},
	{"mixes up callers", "concurrent", func(m *memory) sink.Sink {
		var mu sync.Mutex
		var shared []sink.Delivery
		return altered{m, func(ctx context.Context, batch []sink.Delivery) []sink.Result {
			mu.Lock()
			shared = slices.Clone(batch)
			mu.Unlock()
			results := m.Deliver(ctx, batch[:len(batch)/2]) // another caller comes in between
			mu.Lock()
			rest := shared[min(len(shared), len(batch)/2):]
			mu.Unlock()
			m.Deliver(ctx, rest)
			return append(results, m.Deliver(ctx, nil)...)
		}}
	}},
	{"panics", "any event", event(func(d *sink.Delivery) { _ = d.Event.ID[0] })},
	{"leaves a goroutine", "delivers", func(m *memory) sink.Sink { go func() { select {} }(); return m }},
	{"does not close", "delivers", func(m *memory) sink.Sink { return failing{m} }},
}

func oneByOne(ctx context.Context, m *memory, batch []sink.Delivery) []sink.Result {
	var results []sink.Result
	for i := range batch {
		results = append(results, m.Deliver(ctx, batch[i:i+1])...)
	}
	return results
}

const childVariable = "TIDEMARK_TEST_BROKEN_SINKS"

// A subtest that fails also fails its parent, so the broken sinks run in another process.
func TestBrokenSinksAreFound(t *testing.T) {
	t.Parallel()
	if os.Getenv(childVariable) != "" {
		for _, b := range broken {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				tidemarktest.TestSink(t, func(*testing.T) tidemarktest.SinkTarget {
					m := newMemory()
					target := m.target()
					target.Open = func() (sink.Sink, error) { return b.sink(m), nil }
					return target
				})
			})
		}
		return
	}
	parts := map[string][]string{}
	for _, b := range broken {
		parts[b.part] = append(parts[b.part], b.name)
	}
	for part, names := range parts {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			pattern := fmt.Sprintf("^TestBrokenSinksAreFound$/^(%s)$/^%s$", strings.Join(names, "|"), part)
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.count", "1", "-test.run", strings.ReplaceAll(pattern, " ", "_"))
			cmd.Env = append(os.Environ(), childVariable+"=1")
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
				t.Fatalf("broken sinks passed: %v", err)
			}
			for _, name := range names {
				test := strings.ReplaceAll("TestBrokenSinksAreFound/"+name+"/"+part, " ", "_")
				if !strings.Contains(string(out), "--- FAIL: "+test+" ") {
					t.Errorf("the sink that %s passed", name)
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}
