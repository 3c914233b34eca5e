package consumer

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What a transaction holds back counts as behind, and where it lasts, it is told what the partition waits for, until it ends.
func TestOpenTransaction(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "events"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("a"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "events", Partition: 1, Value: []byte("{}")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	f := &feed{woken: make(chan struct{}, 1)}
	s := &session{client: client, parts: map[place]*part{{"events", 1}: {feed: f}, {"events", 0}: {feed: &feed{}}}}
	want := func(behind int64, waits string) {
		t.Helper()
		s.hear(t.Context())
		got := ""
		if err := s.kept(); err != nil {
			got = err.Error()
		}
		if f.behind() != behind || !strings.HasPrefix(got, waits) || waits == "" && got != "" {
			t.Errorf("%d behind, waits for %q, want %d, %q", f.behind(), got, behind, waits)
		}
	}
	want(1, "")
	f.unstable = time.Now().Add(-openFor)
	want(1, "partition 1 of events: the records from offset 0 on wait for a producer's transaction, ")
	f.records = []fetched{{Record: &kgo.Record{}}} // there is something else to do
	want(1, "")
	f.records = nil
	if err := client.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	want(2, "")
}
