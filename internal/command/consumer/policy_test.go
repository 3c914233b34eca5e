package consumer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// A policy is asked for once for all records that were fetched before it, however many keys are unknown; records before them do
// not wait.
func TestUnknownKeysWaitForOnePolicy(t *testing.T) {
	t.Parallel()
	c := New(nil, Options{})
	policy := func() {
		c.learn(&known{policy: policy{CommandPolicy: store.CommandPolicy{SharedTopic: "signed"}}, at: time.Now()})
	}
	policy()
	f := &feed{most: 100, pause: func(bool) {}, woken: make(chan struct{}, 1)}
	f.read = func(r fetched) (store.Call, bool) { return c.judge(reader{topic: "db-events"}, r, f) }
	end := int64(0)
	add := func(values ...string) {
		var p kgo.FetchPartition
		for _, value := range values {
			// The signature's header is {"alg":"EdDSA","kid":"x"}.
			p.Records = append(p.Records, &kgo.Record{Offset: end, Value: []byte(value), Headers: []kgo.RecordHeader{{
				Key: command.SignatureHeader, Value: []byte("eyJhbGciOiJFZERTQSIsImtpZCI6IngifQ..AAAA"),
			}}})
			end++
		}
		f.add(p)
		<-f.woken
	}
	want := func(records int, next int64, asks bool) {
		t.Helper()
		page := f.Peek(50)
		select {
		case <-c.hurry:
		default:
			asks = !asks
		}
		if len(page.Calls) != records || page.Next != next || !asks {
			t.Fatalf("got %d records, next %d, right about asking: %v; want %d, next %d", len(page.Calls), page.Next, asks, records, next)
		}
		f.Settled(next)
	}
	forged := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf(`{"event_id": "00000000-0000-7000-8000-%012d", "service": "s", "command": "make", "command_version": 1, "schema_version": 1,
				"payload": {}, "idempotency_key": "%[1]d", "occurred_at": "2026-01-31T12:00:00Z", "trace_id": "0123456789abcdef0123456789abcdef",
				"metadata": {"producer": "shop"}}`, i))
		}
		return all
	}
	add(append([]string{"no envelope"}, forged(30)...)...)
	want(1, 1, true)
	want(0, 1, true)
	policy()
	<-f.woken
	add(forged(5)...) // too late for that policy
	want(30, 31, true)
	policy()
	<-f.woken
	want(5, 36, false)

	// A policy that is too old judges nothing of a shared topic.
	c.policy.Store(&known{at: time.Now().Add(-freshFor)})
	add("no envelope")
	want(0, 36, true)
}

// A service's topic that the configuration names in full counts as shared, which the answer says.
func TestTopicNamedInFull(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string]string{
		"events.billing": "events.* makes it the service's own",
		"events":         "or send it to the service's own topic",
	} {
		_, _, err := reader{topic: topic}.identify(&kgo.Record{}, command.Envelope{Service: "billing"}, policy{CommandPolicy: store.CommandPolicy{SharedTopic: "signed"}})
		var refusal *command.Refusal
		if !errors.As(err, &refusal) || refusal.Reason != command.IdentitySignatureMissing || !strings.Contains(refusal.Error(), want) {
			t.Errorf("%s: %v", topic, err)
		}
	}
}
