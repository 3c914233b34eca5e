package consumer

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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

// A feed that failed takes nothing in until it is fetched again from where it ends, and the time between tries grows.
func TestFeedThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		paused := false
		f := &feed{topicID: "T", most: 10, woken: make(chan struct{}, 1), pause: func(p bool) { paused = p }}
		record := func(offset int64) kgo.FetchPartition {
			return kgo.FetchPartition{Records: []*kgo.Record{{Offset: offset}}}
		}
		f.add(record(0))
		if !f.fail(errors.New("it is broken")) || f.fail(errors.New("it is broken")) || !f.fail(errors.New("it is forbidden")) {
			t.Error("an error is no news, or one is news twice")
		}
		f.add(record(5)) // behind what the client has passed over
		f.Settled(1)
		if end, held := f.last(); !paused || !held || end.Offset != 1 || len(f.records) != 0 || f.failure() == nil {
			t.Errorf("paused %v, at %d", paused, end)
		}
		if err := f.Place("T", 3); err != nil { // an operator has passed over what is broken
			t.Error(err)
		}
		for end, want := range map[int64]bool{2: false, 3: true, 4: true} {
			if f.fits(where{topicID: "T", end: end}) != want || f.fits(where{topicID: "U", end: end}) {
				t.Errorf("it is at 3, and the partition ends at %d", end)
			}
		}
		if !f.fits(where{topicID: "T", first: 3, end: 5}) || f.fits(where{topicID: "T", first: 4, end: 5}) {
			t.Error("it is at 3, and the partition begins there, or behind it")
		}
		var waits []time.Duration
		for range 8 {
			_ = f.fail(errors.New("it is broken"))
			began := time.Now()
			for !f.due() {
				time.Sleep(100 * time.Millisecond)
			}
			waits = append(waits, time.Since(began).Round(time.Second))
			f.retry()
			if paused || f.failure() == nil {
				t.Error("it is paused, or well at once")
			}
		}
		if first, last := waits[0], waits[7]; first > 10*time.Second || last != mostBetween || !slices.IsSorted(waits) {
			t.Errorf("waited %v", waits)
		}
		time.Sleep(2 * unfetchedFor)
		if f.due() || f.failure() != nil {
			t.Error("a try that nothing followed is a failure")
		}
		_ = f.fail(errors.New("it is broken"))
		f.retry()
		f.add(record(3))
		if end, held := f.last(); f.failure() != nil || held || end.Offset != 4 {
			t.Errorf("at %d: %v", end, f.failure())
		}
	})
}
