package daemon

import (
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink/kafka"
)

// A call of the sink for dead letters has few of them, whose raw records are all in memory; a route of other events to the same format goes on
// with large calls.
func TestFewLettersAtOnce(t *testing.T) {
	t.Parallel()
	below := &kafka.Sink{}
	for domain, want := range map[string]int{"commands": mostLetters, "*": mostLetters, "shop": below.Limits().Batch} {
		if l := letteredSink(below, store.Route{Domain: domain}, nil, "").Limits(); l.Batch != want || !l.KeepsOrder {
			t.Errorf("%s: %+v", domain, l)
		}
	}
}
