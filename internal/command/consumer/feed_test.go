package consumer

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A feed is paused from so many records or bytes on, until half of either is left, also where the cursor moved by another hand.
func TestFeedIsBounded(t *testing.T) {
	t.Parallel()
	var paused []bool
	newFeed := func(most int) *feed {
		paused = nil
		return &feed{topicID: "T", most: most, woken: make(chan struct{}, 1), pause: func(p bool) { paused = append(paused, p) }}
	}
	want := func(f *feed, records, bytes int, changes ...bool) {
		t.Helper()
		last := len(changes) > 0 && changes[len(changes)-1]
		if len(f.records) != records || f.bytes != bytes || f.paused != last || len(paused) != len(changes) {
			t.Errorf("%d records of %d bytes, paused %v; want %d of %d, %v", len(f.records), f.bytes, paused, records, bytes, changes)
		}
	}
	next := int64(0)
	add := func(f *feed, n, size int) {
		var p kgo.FetchPartition
		for range n {
			r := &kgo.Record{Offset: next, Key: make([]byte, size/4), Value: make([]byte, size/2)}
			r.Headers = []kgo.RecordHeader{{Key: "h", Value: make([]byte, size-size/4-size/2-1)}}
			p.Records = append(p.Records, r)
			next++
		}
		f.add(p)
	}

	f := newFeed(10)
	add(f, 9, 100)
	want(f, 9, 900)
	add(f, 1, 100)
	want(f, 10, 1000, true)
	f.Settled(4)
	want(f, 6, 600, true)
	f.Settled(5)
	want(f, 5, 500, true, false)

	next = 0
	f = newFeed(1000)
	add(f, 3, mostAhead/4)
	want(f, 3, mostAhead/4*3)
	add(f, 2, mostAhead/4)
	want(f, 5, mostAhead/4*5, true)
	f.Settled(2)
	want(f, 3, mostAhead/4*3, true)
	f.Settled(3)
	want(f, 2, mostAhead/4*2, true, false)
	add(f, 1, 2*mostAhead) // a record larger than all of it comes through
	want(f, 3, mostAhead/2+2*mostAhead, true, false, true)
	if err := f.Place("T", 6); err != nil {
		t.Error(err)
	}
	want(f, 0, 0, true, false, true, false)
}
