package store

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark"
)

// A stored time that no receiver could read is delivered as the nearest one that it can.
func TestTimestamp(t *testing.T) {
	t.Parallel()
	for micros, want := range map[int64]string{
		math.MaxInt64:       "9999-12-31T00:00:00Z", // infinity
		math.MinInt64:       "0001-01-02T00:00:00Z",
		9223371331199999999: "9999-12-31T00:00:00Z", // the last time of PostgreSQL, of the year 294276
		-211813488000000000: "0001-01-02T00:00:00Z", // the first, of 4714 BC
		0:                   "2000-01-01T00:00:00Z",
		822_312_245_678_901: "2026-01-21T12:04:05.678901Z",
	} {
		got := timestamp(binary.BigEndian.AppendUint64(nil, uint64(micros)))
		if text := got.Format(time.RFC3339Nano); text != want {
			t.Errorf("%d: got %s, want %s", micros, text, want)
		}
	}
}

// An event that was decided and whose row is missing must not pass for delivered: the settle would go past it.
func TestRowsThatAreMissing(t *testing.T) {
	t.Parallel()
	items := func(seqs ...int64) (items []Item) {
		for _, seq := range seqs {
			items = append(items, Item{Event: tidemark.Event{Seq: seq}})
		}
		return items
	}
	all := []departures{{1, 3, 5}, {1, 7, 8}, {2, 4, 5}}
	if err := leave(items(3, 4, 7), all); err != nil {
		t.Error(err)
	}
	for _, some := range [][]Item{nil, items(3, 4), items(3, 7), items(4, 7)} {
		if err := leave(some, all); err == nil {
			t.Errorf("%d rows of 3 pass", len(some))
		}
	}
}
