package consumer_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemarkhq/tidemark/internal/testkafka"
)

// The same on Apache Kafka: commands across a restart of the broker, and a rebalance.
func TestConsumerOnKafka(t *testing.T) {
	t.Parallel()
	node := testkafka.New(t)
	w := newService(t)
	w.connect([]string{node.Address()})
	if _, err := kadm.NewClient(w.client).CreateTopics(t.Context(), 4, 1, nil, w.topic); err != nil {
		t.Fatal(err)
	}
	const each = 12
	stop, _ := w.run()
	w.sendKeyed(each, 0, 4)
	w.run()
	w.sendKeyed(each, 4, 8)
	node.Kill()
	if err := node.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	w.sendKeyed(each, 8, each)
	w.once(each)
}
