package tidemarktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
)

func (s *sinkTest) limits() {
	first := s.sink.Limits()
	if first.Batch < 1 {
		s.Errorf("Limits().Batch is %d, must be at least 1", first.Batch)
	}
	if second := s.sink.Limits(); second != first {
		s.Errorf("Limits changed from %+v to %+v", first, second)
	}
}

// batchSize returns how many deliveries the suite sends in one call at most.
func (s *sinkTest) batchSize() int { return min(max(s.sink.Limits().Batch, 1), 10_000) }

func (s *sinkTest) delivers() {
	sizes := []int{1 << 10, 4 << 10, 64 << 10, 200 << 10}
	for range 36 {
		sizes = append(sizes, s.random.IntN(2<<10))
	}
	var all []sink.Delivery
	for i, size := range sizes {
		if s.target.TooLarge > 0 {
			size = min(size, s.target.TooLarge/2)
		}
		d := s.delivery(size)
		d.Event.Key = strangeKeys[i%len(strangeKeys)]
		if d.Event.Key != "" {
			d.Event.Key += fmt.Sprint(i) // each key only once
		}
		if i%5 == 4 {
			d.Event.Trace = ""
		}
		d.Attempt, d.Epoch, d.Replay = 1+i%3, int64(i)<<40, i%7 == 6
		all = append(all, d)
	}
	s.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var results []sink.Result
	for batch := range slices.Chunk(all, min(s.batchSize(), 16)) {
		results = append(results, s.deliver(s.Context(), batch...)...)
	}
	s.expect(sink.Delivered, results...)
	s.agree(all, results)
	if n := len(s.target.Arrived()); n != len(all) {
		s.Errorf("%d were sent, and %d arrived", len(all), n)
	}
}

var strangeKeys = []string{"customer-", "", "Ünï ☕ 名 👩‍🚀 ", `"quoted\" `, "100% a/b?c=d&e#f;g,", "a  b", "'{}[]()<>|", "0"}

func (s *sinkTest) emptyBatch() {
	if n := len(s.deliver(s.Context())); n != 0 {
		s.Errorf("%d results", n)
	}
	if n := len(s.target.Arrived()); n != 0 {
		s.Errorf("%d arrived", n)
	}
}

func (s *sinkTest) fullBatch() {
	batch := s.deliveries(s.batchSize())
	results := s.deliver(s.Context(), batch...)
	s.expect(sink.Delivered, results...)
	s.agree(batch, results)
}

func (s *sinkTest) order() {
	if !s.sink.Limits().KeepsOrder {
		s.Skip("the sink keeps no order")
	}
	all := s.deliveries(5 * min(s.batchSize(), 100))
	for i := range all {
		all[i].Event.Key = fmt.Sprint("key-", s.random.IntN(4))
	}
	var results []sink.Result
	for batch := range slices.Chunk(all, len(all)/5) {
		results = append(results, s.deliver(s.Context(), batch...)...)
	}
	s.expect(sink.Delivered, results...)
	s.agree(all, results)
	key, place, last := map[string]string{}, map[string]int{}, map[string]int{}
	for i, d := range all {
		key[d.Event.ID], place[d.Event.ID] = d.Event.Key, i+1
	}
	for _, a := range s.target.Arrived() {
		k := key[a.ID]
		if place[a.ID] < last[k] {
			s.Fatalf("delivery %d arrived after delivery %d of the same key", place[a.ID]-1, last[k]-1)
		}
		last[k] = place[a.ID]
	}
}

// orderAfter checks that after a failed delivery no later one of its key in the batch arrives.
func (s *sinkTest) orderAfter(how Behaviour) {
	if !s.sink.Limits().KeepsOrder || s.sink.Limits().Batch < 4 {
		s.Skip("the sink keeps no order, or its batch is too small")
	}
	batch := s.deliveries(min(s.batchSize(), 40))
	for i := range batch {
		batch[i].Event.Key = []string{"good", "bad"}[i%2]
	}
	s.need(how, batch[1].Event.ID)
	results := s.deliver(s.Context(), batch...)
	s.agree(batch, results)
	came := map[string]bool{}
	for _, a := range s.target.Arrived() {
		came[a.ID] = true
	}
	for i, d := range batch {
		if i == 1 && (results[i].Status == sink.Delivered || results[i].Status == sink.Permanent) {
			s.Errorf("delivery 1 is %s, must be Retry or Unknown", outcomeName(results[i].Status))
		}
		if i > 1 && d.Event.Key == "bad" && came[d.Event.ID] {
			s.Errorf("delivery %d arrived after an earlier one of its key that is %s", i, outcomeName(results[1].Status))
		}
	}
}

func (s *sinkTest) oneOfMany() {
	batch := s.deliveries(min(s.batchSize(), 20))
	bad := len(batch) / 2
	s.need(TargetRefusesForGood, batch[bad].Event.ID)
	results := s.deliver(s.Context(), batch...)
	for i, r := range results {
		if (r.Status == sink.Permanent) != (i == bad) {
			s.Errorf("delivery %d is %s, and delivery %d of %d was refused for good", i, outcomeName(r.Status), bad, len(batch))
		}
	}
	s.agree(batch, results)
}

// refused checks the outcome that a behaviour of the target leads to, and that deliveries succeed once the target accepts
// events again.
func (s *sinkTest) refused(how Behaviour, want sink.Status) {
	s.need(how)
	batch := s.deliveries(min(s.batchSize(), 5))
	results := s.deliver(s.Context(), batch...)
	s.agree(batch, results)
	if want != sink.Unknown {
		s.expect(want, results...)
	} else if !slices.ContainsFunc(results, func(r sink.Result) bool { return r.Status == sink.Unknown }) {
		s.Errorf("the answer was lost, and no result is Unknown: %+v", results)
	}
	for i, r := range results {
		if r.Gone != (how == TargetIsGone) {
			s.Errorf("result %d has Gone = %t", i, r.Gone)
		}
	}
	s.need(TargetTakes)
	more := s.deliveries(1)
	results = s.deliver(s.Context(), more...)
	s.expect(sink.Delivered, results...)
	s.agree(more, results)
}

// hangTime is the timeout of a delivery to a hanging target. Deliver must return within endTime after it.
const (
	hangTime = 200 * time.Millisecond
	endTime  = 2 * time.Second
)

func (s *sinkTest) hanging() {
	s.need(TargetHangs)
	ctx, cancel := context.WithTimeout(s.Context(), hangTime)
	defer cancel()
	batch := s.deliveries(min(s.batchSize(), 3))
	var results []sink.Result
	var problem string
	done := make(chan struct{})
	go func() {
		defer close(done)
		results, problem = s.try(ctx, batch)
	}()
	select {
	case <-done:
	case <-time.After(hangTime + endTime):
		s.behave(TargetTakes)
		s.Fatalf("Deliver has not returned %v after its time was up", endTime)
	}
	if problem != "" {
		s.Fatal(problem)
	}
	for i, r := range results {
		if r.Status != sink.Unknown && r.Status != sink.Retry {
			s.Errorf("result %d is %s, must be Unknown or Retry", i, outcomeName(r.Status))
		}
	}
	s.need(TargetTakes)
	more := s.deliveries(1)
	after := s.deliver(s.Context(), more...)
	s.expect(sink.Delivered, after...)
	// At the end, so that events which are sent after Deliver has returned are found too.
	s.agree(append(batch, more...), append(results, after...))
}

func (s *sinkTest) canceledBefore() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	batch := s.deliveries(min(s.batchSize(), 10))
	s.expect(sink.Retry, s.deliver(ctx, batch...)...)
	results := s.deliver(s.Context(), s.deliveries(1)...)
	s.expect(sink.Delivered, results...)
	if n := len(s.target.Arrived()); n != 1 {
		s.Errorf("%d arrived, and one was sent before its time was up", n)
	}
}

func (s *sinkTest) tooLarge() {
	if s.target.TooLarge == 0 {
		s.Skip("nothing is too large")
	}
	batch := s.deliveries(min(s.batchSize(), 3))
	large := len(batch) / 2
	batch[large] = s.delivery(s.target.TooLarge)
	results := s.deliver(s.Context(), batch...)
	for i, r := range results {
		if (r.Status == sink.Permanent) != (i == large) {
			s.Errorf("delivery %d is %s, and delivery %d of %d is too large", i, outcomeName(r.Status), large, len(batch))
		}
	}
	s.agree(batch, results)
}

func (s *sinkTest) concurrent() {
	const callers, calls = 8, 10
	batches := make([][]sink.Delivery, callers)
	for i := range batches {
		batches[i] = s.deliveries(calls * min(s.batchSize(), 10))
	}
	results := make([][]sink.Result, callers)
	var wg sync.WaitGroup
	for i := range batches {
		wg.Go(func() {
			for batch := range slices.Chunk(batches[i], len(batches[i])/calls) {
				r, problem := s.try(s.Context(), batch)
				if problem != "" {
					s.Error(problem)
					return
				}
				results[i] = append(results[i], r...)
			}
		})
	}
	wg.Wait()
	if s.Failed() {
		return
	}
	all := slices.Concat(results...)
	s.expect(sink.Delivered, all...)
	s.agree(slices.Concat(batches...), all)
}

// anyEvent checks that the sink does not panic on events that the log cannot hold.
func (s *sinkTest) anyEvent() {
	bad := s.delivery(10)
	bad.Event.Domain, bad.Event.Type, bad.Event.Key, bad.Event.Trace = "\xff\x00\r\n", "a\r\nb: c", "\u202e\x1b", strings.Repeat("x", 55)
	bad.Route, bad.Attempt, bad.Epoch = "r\r\n\r\nGET / HTTP/1.1", -1, -1
	broken := s.delivery(10)
	broken.Event.Payload = []byte(`{"a":`)
	empty := s.delivery(10)
	empty.Event.Payload = nil
	noID := s.delivery(10)
	noID.Event.ID = ""
	late := s.delivery(10)
	late.Event.OccurredAt = time.Date(200_000, 1, 1, 0, 0, 0, 0, time.UTC)
	oddID := s.delivery(10)
	oddID.Event.ID = "é\n."
	long := s.delivery(10)
	long.Event.Key = strings.Repeat("k", 1<<16)
	for _, d := range []sink.Delivery{{}, {Event: tidemark.Event{ID: "x"}}, bad, broken, empty, noID, late, oddID, long} {
		s.deliver(s.Context(), d)
	}
}
