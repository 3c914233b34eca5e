package consumer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A feed has the records of a partition that were fetched and are not passed yet. They follow each other without a gap: what is
// added continues what is there.
type feed struct {
	read  func(fetched) (_ store.Call, ok bool) // not ok: it wakes the feed when it can tell
	most  int
	pause func(bool) // fetching
	woken chan struct{}

	topicID string

	mu      sync.Mutex
	begin   int64 // no record from here on is missing
	end     int64 // offset after the last record
	epoch   int32 // of the leader that took in the last record before end; -1: not known
	high    int64 // the partition's
	records []fetched
	bytes   int // of the records
	paused  bool

	stable   int64     // offset of the first record whose transaction is open, as was heard last
	unstable time.Time // since when that is so; zero: no transaction is open

	err    error // why it was not fetched last; nil: it was
	held   bool  // it is not fetched until retry
	tried  time.Time
	before time.Duration // next try
}

// fetched is a record, and a time when it had come.
type fetched struct {
	*kgo.Record
	at time.Time
}

// size is how many bytes of the producer's it has.
func (r fetched) size() int {
	size := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		size += len(h.Key) + len(h.Value)
	}
	return size
}

// add takes in what was fetched. The records by which brokers end transactions, also those that were aborted, hold no command, but the
// cursor has to pass them: else it is left behind in what the topic's retention deletes.
func (f *feed) add(p kgo.FetchPartition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held {
		return // the client may have passed over something
	}
	f.err = nil
	at, had := time.Now(), len(f.records)
	for _, r := range p.Records {
		if r.Offset < f.end {
			continue
		}
		f.end, f.epoch = r.Offset+1, r.LeaderEpoch
		if !r.Attrs.IsControl() {
			one := fetched{r, at}
			f.records = append(f.records, one)
			f.bytes += one.size()
		}
	}
	f.high = max(f.high, p.LastStableOffset, p.HighWatermark)
	f.throttle()
	if len(f.records) > had { // else the cursor moves when the lease is renewed
		f.wake()
	}
}

func (f *feed) wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

// throttle pauses fetching while there is much to do. The caller holds mu.
func (f *feed) throttle() {
	much := len(f.records) >= f.most || f.bytes >= mostAhead
	if pause := much || f.held || f.paused && (len(f.records) > f.most/2 || f.bytes > mostAhead/2); pause != f.paused {
		f.paused = pause
		f.pause(pause)
	}
}

// fail pauses fetching until retry. News: it had not failed so before.
func (f *feed) fail(err error) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news = f.err == nil || f.err.Error() != err.Error()
	if f.err == nil {
		f.before = 0
	}
	f.err, f.held, f.tried = err, true, time.Now()
	f.before = min(max(time.Second, 2*f.before), mostBetween)
	f.throttle()
	return news
}

// mostBetween is how long a partition that cannot be fetched waits for another try.
const mostBetween = 30 * time.Second

// hear takes in where the partition ends, and where what can be read of it ends: at the first transaction that is open.
func (f *feed) hear(end, stable int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.high = max(f.high, end)
	switch {
	case stable >= end:
		f.unstable = time.Time{}
	case f.unstable.IsZero() || f.stable != stable:
		f.unstable = time.Now()
	}
	f.stable = stable
}

// openFor is for how long a transaction may be open: brokers end one after this time, unless its producer asks for longer.
const openFor = time.Minute

// waits is the transaction that all records wait for that are left; nil: none does.
func (f *feed) waits() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unstable.IsZero() || time.Since(f.unstable) < openFor || len(f.records) > 0 || f.held || f.end > f.stable {
		return nil
	}
	return fmt.Errorf("the records from offset %d on wait for a producer's transaction, which has been open for more than a minute: "+
		"kafka-transactions.sh find-hanging tells whose it is", f.stable)
}

// due tells whether fetching is to be tried again. A failure is over when none follows a try for a while.
func (f *feed) due() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil && !f.held && time.Since(f.tried) > unfetchedFor {
		f.err = nil
	}
	return f.held && time.Since(f.tried) >= f.before
}

// failure is why it is not fetched; nil: it is.
func (f *feed) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// last is where all that was fetched ends, and whether it is not fetched now.
func (f *feed) last() (end kgo.EpochOffset, held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return kgo.EpochOffset{Epoch: f.epoch, Offset: f.end}, f.held
}

// fits tells whether the partition goes on where fetching does: it may have been made again, have lost its end, or have records that come
// next deleted.
func (f *feed) fits(w where) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.topicID == w.topicID && w.first <= f.end && f.end <= w.end
}

// retry goes on to fetch.
func (f *feed) retry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held, f.tried = false, time.Now()
	f.throttle()
}

// Place implements worker.Feed.
func (f *feed) Place(topicID string, next int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case topicID == "": // tidemark.command_seek accepts the topic as it is
		return fmt.Errorf("the cursor was set to offset %d", next)
	case topicID != f.topicID:
		return fmt.Errorf("the cursor is of the topic with the id %q, and the partition of %q", topicID, f.topicID)
	case next < f.begin:
		return fmt.Errorf("the cursor was set back to offset %d, and offsets from %d on were fetched", next, f.begin)
	}
	f.drop(next)
	return nil
}

// Settled implements worker.Feed.
func (f *feed) Settled(next int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(next)
}

// drop lets go of what the cursor is past. The caller holds mu.
func (f *feed) drop(next int64) {
	n, _ := slices.BinarySearchFunc(f.records, next, func(r fetched, next int64) int { return int(r.Offset - next) })
	for _, r := range f.records[:n] {
		f.bytes -= r.size()
	}
	clear(f.records[:n])
	f.records = f.records[n:]
	f.begin = next
	if next > f.end {
		f.end, f.epoch = next, -1
	}
	f.throttle()
}

// Peek implements worker.Feed.
func (f *feed) Peek(most int) (page store.Records) {
	f.mu.Lock()
	defer f.mu.Unlock()
	page.Next = f.end
	n, size := 0, 0
	for ; n < min(most, len(f.records)) && (n == 0 || size+len(f.records[n].Value) <= mostBytes); n++ {
		call, ok := f.read(f.records[n])
		if !ok {
			break
		}
		size += len(f.records[n].Value)
		page.Calls = append(page.Calls, call)
	}
	if n < len(f.records) {
		page.Next = f.records[n].Offset
		page.Since = &f.records[n].Timestamp
	}
	page.Behind = max(0, f.high-page.Next)
	return page
}

// mostBytes is how much of values is passed at once, if it is more than one record.
const mostBytes = 8 << 20

// mostAhead is from how many bytes of a partition on no more are fetched ahead.
const mostAhead = 16 << 20

// at is how far the cursor is.
func (f *feed) at() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begin
}

// behind is how many records the cursor has to go, as far as they were heard of.
func (f *feed) behind() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.records) == 0 {
		return max(0, f.high-f.end)
	}
	return max(0, f.high-f.begin)
}

// Sleep implements worker.Waker: every record that is added wakes the worker.
func (f *feed) Sleep(context.Context) {}

// Awake implements worker.Waker.
func (f *feed) Awake() {}

// C implements worker.Waker.
func (f *feed) C() <-chan struct{} { return f.woken }
