package consumer_test

import (
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/testkafka"
)

// The same on Apache Kafka: commands across a restart of the broker, a rebalance, and a change to KIP-848.
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
	stopNext, _ := w.run()
	w.sendKeyed(each, 4, 8)
	node.Kill()
	if err := node.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	w.sendKeyed(each, 8, 10)
	stopNext()
	// KIP-848: the brokers assign the partitions of the group from now on.
	w.runWith(func(o *consumer.Options) { o.ServerSide = true })
	w.sendKeyed(each, 10, each)
	w.once(each)
	groups, err := kadm.NewClient(w.client).DescribeConsumerGroups(t.Context(), "tidemark")
	if err != nil || len(groups["tidemark"].Members) != 1 {
		t.Errorf("the brokers know %d members whose partitions they assign: %v", len(groups["tidemark"].Members), err)
	}
}

// On three nodes, each is killed in turn: the leaders of partitions, the group's coordinator and the controller move, while
// instances come and go.
func TestConsumerOnThreeNodes(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("starts three nodes of Kafka: LONG=1")
	}
	t.Parallel()
	nodes := testkafka.NewCluster(t, 3)
	w := newService(t)
	var seeds []string
	for _, n := range nodes {
		seeds = append(seeds, n.Address())
	}
	w.connect(seeds)
	if err := nodes[0].CreateTopic(t.Context(), w.topic, 4); err != nil {
		t.Fatal(err)
	}
	const each = 24
	stop, kill := w.run()
	for i, n := range nodes {
		w.sendKeyed(each, 8*i, 8*i+3)
		n.Kill()
		w.sendKeyed(each, 8*i+3, 8*i+6)
		stopNext, killNext := w.run()
		w.sendKeyed(each, 8*i+6, 8*i+8)
		if i == 1 {
			kill()
		} else {
			stop()
		}
		stop, kill = stopNext, killNext
		if err := n.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.once(each)
}
