package consumer_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/testkafka"
)

// transaction writes records to a partition in one transaction, and ends it.
func (w *world) transaction(end kgo.TransactionEndTry, records ...*kgo.Record) {
	w.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(w.topic))
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	all := *w
	all.client = client
	all.send(0, records...)
	if err := client.EndTransaction(context.Background(), end); err != nil {
		w.t.Fatal(err)
	}
}

// CM4: the records by which transactions end are no commands, and are passed, also where nothing comes behind them: when retention has deleted
// all that was read, no record is lost.
func (w *world) readsTransactions() {
	w.t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	w.t.Cleanup(server.Close)
	registry, err := sr.NewClient(sr.URLs(server.URL))
	if err != nil {
		w.t.Fatal(err)
	}
	run := func() func() {
		stop, _ := w.runWith(func(o *consumer.Options) { o.Registry = registry })
		return stop
	}
	stop := run()
	w.transaction(kgo.TryCommit, w.make("a", 1), w.make("b", 2))
	w.eventually(offsets, "kafka:"+w.topic+"/0 3")
	w.transaction(kgo.TryAbort, w.make("c", 3))
	w.eventually(offsets, "kafka:"+w.topic+"/0 5")
	w.eventually(`select last_run_summary ->> 'behind' from tidemark.worker_cursor where source = 'kafka:`+w.topic+`'`, "0")
	stop()
	all := kadm.Offsets{}
	all.AddOffset(w.topic, 0, 5, -1)
	if _, err := kadm.NewClient(w.client).DeleteRecords(w.t.Context(), all); err != nil {
		w.t.Fatal(err)
	}
	run()
	w.transaction(kgo.TryCommit, w.make("d", 4))
	w.eventually(made, "1", "2", "4")
	w.eventually(offsets, "kafka:"+w.topic+"/0 7")
	w.eventually(`select detail from tidemark.finding where kind = 'command_partition_held'`)
	w.eventually(`select error_code from tidemark.dead_letter`)
	if n := asked.Load(); n > 0 { // their bytes look like the frame of a registry's serializer
		w.t.Errorf("the registry was asked %d times", n)
	}
}

func TestConsumerReadsTransactions(t *testing.T) {
	t.Parallel()
	newWorld(t, 1).readsTransactions()
}

func TestConsumerReadsTransactionsOfKafka(t *testing.T) {
	t.Parallel()
	node := testkafka.New(t)
	w := newService(t)
	w.connect([]string{node.Address()})
	if err := node.CreateTopic(t.Context(), w.topic, 1); err != nil {
		t.Fatal(err)
	}
	w.readsTransactions()
}
