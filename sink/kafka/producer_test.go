package kafka

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A round stops if a record fails before the last one is placed: later records of its partition
// would overtake it.
func TestRoundStopsAtAnEarlyFailure(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ err, round, record error }{
		{kerr.TopicAuthorizationFailed, kerr.TopicAuthorizationFailed, kerr.TopicAuthorizationFailed},
		{kerr.MessageTooLarge, nil, errTooLarge}, // found here, and of this one alone
	} {
		client, err := kgo.NewClient()
		if err != nil {
			t.Fatal(err)
		}
		r := &round{settled: make(chan struct{})}
		r.settling.Store(2)
		first, last := &record{round: r}, &record{round: r}
		first.kafka.Context, last.kafka.Context = first, last
		p := &producer{client: client}
		r.answer(&first.kafka, test.err)
		p.OnProduceRecordPartitioned(&last.kafka, 0)
		if err := r.place(t.Context(), client); !errors.Is(err, test.round) {
			t.Errorf("got %v, want %v", err, test.round)
		}
		if !first.answered || !errors.Is(first.err, test.record) || last.answered {
			t.Errorf("got %v, want %v", first.err, test.record)
		}
		client.Close()
	}
}
