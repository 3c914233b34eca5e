package consumer

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The client tells of partitions of other members, too: what is wrong with them is none of this one's business.
func TestUnfetchablePartitionOfAnother(t *testing.T) {
	t.Parallel()
	s := &session{Consumer: New(nil, Options{Log: slog.New(slog.DiscardHandler)}), ctx: t.Context(), assigned: map[place]bool{}, held: map[place]hold{}}
	s.joined(t.Context(), nil, map[string][]int32{"events": {1}})
	for n, want := range []string{"", "partition 1 of events: away", "partition 1 of events: away"} {
		s.unfetchable(place{"events", int32(n)}, errors.New("away"))
		got := ""
		if err := s.kept(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("partition %d: got %q, want %q", n, got, want)
		}
	}
	s.lost(t.Context(), nil, map[string][]int32{"events": {1}})
	s.unfetchable(place{"events", 1}, errors.New("away"))
	if err := s.kept(); err != nil {
		t.Error("it was taken away: ", err)
	}
}

// CM7: what comes with the news that the end of a partition is lost was fetched from where the client went back to. It is not passed: what the new
// leader has before it would be left out.
func TestRecordsThatComeWithALoss(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancelCause(t.Context())
	f := &feed{topicID: "T", most: 10, begin: 3, end: 3, woken: make(chan struct{}, 1), pause: func(bool) {}}
	s := &session{
		Consumer: New(store.Pool(tidemarktest.NewDB(t).Pool), Options{Log: slog.New(slog.DiscardHandler)}), ctx: ctx, end: end,
		parts: map[place]*part{{"events", 0}: {feed: f}}, held: map[place]hold{},
	}
	of := func(p kgo.FetchPartition) kgo.Fetch {
		return kgo.Fetch{Topics: []kgo.FetchTopic{{Topic: "events", Partitions: []kgo.FetchPartition{p}}}}
	}
	s.take(kgo.Fetches{
		of(kgo.FetchPartition{Records: []*kgo.Record{{Offset: 1}, {Offset: 2}, {Offset: 3}}}), of(kgo.FetchPartition{Err: &kgo.ErrDataLoss{ResetTo: 1}}),
	}, nil)
	if len(f.records) > 0 || f.end != 3 {
		t.Errorf("%d records, up to offset %d", len(f.records), f.end)
	}
	if err := context.Cause(ctx); err == nil || err.Error() != "partition 0 of events: Kafka has lost the records from 1 on" {
		t.Errorf("the session goes on: %v", err)
	}
}
