package consumer

import (
	"errors"
	"log/slog"
	"testing"
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
