package consumer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/command/consumer"
)

// sendsLarge lets the topic take records of so many bytes, and sends such from now on.
func (w *world) sendsLarge(bytes int32) {
	w.t.Helper()
	most := fmt.Sprint(bytes)
	if _, err := kadm.NewClient(w.client).AlterTopicConfigs(w.t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: &most}}, w.topic); err != nil {
		w.t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(w.seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(bytes),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(client.Close)
	w.client = client
}

// large is a command whose payload has more than so many bytes.
func (w *world) large(key string, bytes int) *kgo.Record {
	w.t.Helper()
	return &kgo.Record{Value: w.envelope(key, fmt.Sprintf(`{"id": 7, "scan": %q}`, strings.Repeat("x", bytes)), nil)}
}

// A topic may take larger records than a command may be. Each is refused, as a result if it says who asks, else as a dead letter, and what is
// behind it goes on.
func TestConsumerLargeRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.sendsLarge(20 << 20)
	w.send(0, w.make("a", 1), w.large("b", 2<<20), w.large("c", 12<<20), &kgo.Record{Value: []byte(strings.Repeat("x", 12<<20))}, w.make("e", 2))
	w.run()
	w.eventually(offsets, "kafka:"+w.topic+"/0 5")
	w.eventually(made, "1", "2")
	w.eventually(results, "processed a", "rejected envelope.too_large b", "rejected envelope.too_large c", "processed e")
	w.eventually(`select error_code || ' ' || octet_length(r.value) from tidemark.dead_letter l join tidemark.command_record r on l.idempotency_key = 'tm:commands:' || r.id`,
		fmt.Sprintf("envelope.too_large %d", 12<<20))
}

// A record that does not fit into what a client reads is told, and passed over by hand alone.
func TestConsumerCannotFetch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.sendsLarge(30 << 20)
	w.send(0, w.make("a", 1))
	w.runWith(func(o *consumer.Options) {
		client := o.Client
		o.Client = func() ([]kgo.Opt, error) {
			all, err := client()
			return append(all, kgo.BrokerMaxReadBytes(17<<20)), err
		}
	})
	w.eventually(made, "1")
	w.send(0, w.large("b", 20<<20))
	w.send(0, w.make("c", 3)) // in another batch, which is fetched as a whole
	w.wantTrouble("records cannot be fetched: invalid large response size")
	w.eventually(offsets, "kafka:"+w.topic+"/0 1")
	w.exec(`select tidemark.command_seek($1, 0, 2, 'too large')`, w.topic)
	w.eventually(made, "1", "3")
	w.wantNoTrouble()
}
