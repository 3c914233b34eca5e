package tidemarktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/tidemarkhq/tidemark/sink"
)

// SinkTarget is what a sink under test delivers to: the real thing, or a stand-in for it.
type SinkTarget struct {
	// Open makes a sink that delivers to the target. It is called once, and the sink is closed at the
	// end. Goroutines that begin in Open and in the sink's methods must then end.
	Open func() (sink.Sink, error)

	// Arrived is what the target has taken so far, in the order in which it came. What it refused is
	// not among it, and what was said to be delivered is. It may be called at any time.
	Arrived func() []Arrival

	// Behave makes the target behave in this way from now on: to the events with these ids, or to all,
	// whatever was said of ids before. False says that it cannot, and what needs it is skipped.
	// Default: it can do nothing but take.
	Behave func(how Behaviour, ids ...string) bool

	// TooLarge is a length of payload that is refused for good, in bytes. Default: 0, there is none.
	TooLarge int
}

// Arrival is an event as a target sees it.
type Arrival struct {
	ID, Key, Trace string
	Payload        []byte
}

// Behaviour is what a target can be told to do.
type Behaviour int

// The behaviours that there are. A target begins with TargetTakes.
const (
	// TargetTakes: it takes events and says so.
	TargetTakes Behaviour = iota + 1
	// TargetRefuses: it takes none now, and may do so later. Expected: Retry.
	TargetRefuses
	// TargetRefusesForGood: it will never take this event. Expected: Permanent.
	TargetRefusesForGood
	// TargetIsGone: it will never take any event. Expected: Permanent with Gone.
	TargetIsGone
	// TargetLosesAnswers: it takes the event, and the answer is lost at once. Expected: Unknown.
	TargetLosesAnswers
	// TargetHangs: it answers nothing until it is told to behave in another way. It may have taken the
	// event. Expected when the time is up: Unknown or Retry.
	TargetHangs
)

// TestSink holds a sink to what the interface promises. Its parts run in parallel, each with a target of
// its own. TIDEMARK_SEED=n repeats the events of an earlier run.
func TestSink(t *testing.T, target func(t *testing.T) SinkTarget) {
	t.Helper()
	seed := sinkSeed(t)
	for i, part := range []struct {
		name string
		run  func(*sinkTest)
	}{
		{"limits", (*sinkTest).limits},
		{"delivers", (*sinkTest).delivers},
		{"empty batch", (*sinkTest).emptyBatch},
		{"full batch", (*sinkTest).fullBatch},
		{"order", (*sinkTest).order},
		{"order after a refusal", func(s *sinkTest) { s.orderAfter(TargetRefuses) }},
		{"order after a lost answer", func(s *sinkTest) { s.orderAfter(TargetLosesAnswers) }},
		{"one of many", (*sinkTest).oneOfMany},
		{"refused for now", func(s *sinkTest) { s.refused(TargetRefuses, sink.Retry) }},
		{"refused for good", func(s *sinkTest) { s.refused(TargetRefusesForGood, sink.Permanent) }},
		{"gone", func(s *sinkTest) { s.refused(TargetIsGone, sink.Permanent) }},
		{"lost answer", func(s *sinkTest) { s.refused(TargetLosesAnswers, sink.Unknown) }},
		{"hanging target", (*sinkTest).hanging},
		{"canceled before", (*sinkTest).canceledBefore},
		{"too large", (*sinkTest).tooLarge},
		{"concurrent", (*sinkTest).concurrent},
		{"any event", (*sinkTest).anyEvent},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			s := &sinkTest{T: t, target: target(t), random: rand.New(rand.NewPCG(seed, uint64(i))), markers: map[string]string{}}
			watch := watchGoroutines()
			defer watch.stop()
			var err error
			if s.sink, err = s.target.Open(); err != nil {
				t.Fatalf("open: %v", err)
			}
			defer s.close(watch)
			part.run(s)
		})
	}
}

// sinkTest is one part of the suite.
type sinkTest struct {
	*testing.T
	target SinkTarget
	sink   sink.Sink

	random  *rand.Rand
	markers map[string]string // a text in the payload, by id
}

// close lets the goroutines of a failed test be: they may hang for the reason that is told already.
func (s *sinkTest) close(watch *goroutineWatch) {
	if s.Failed() {
		s.behave(TargetTakes)
	}
	if err := s.sink.Close(); err != nil {
		s.Errorf("close: %v", err)
	}
	if s.Failed() || s.Skipped() {
		return
	}
	if left := watch.left(); left != "" {
		s.Errorf("goroutines are left after Close:\n%s", left)
	}
}

func (s *sinkTest) behave(how Behaviour, ids ...string) bool {
	return s.target.Behave != nil && s.target.Behave(how, ids...)
}

func (s *sinkTest) need(how Behaviour, ids ...string) {
	s.Helper()
	if !s.behave(how, ids...) {
		s.Skip("the target cannot do that")
	}
}

// deliver also checks what holds for every answer.
func (s *sinkTest) deliver(ctx context.Context, batch ...sink.Delivery) []sink.Result {
	s.Helper()
	results, problem := s.try(ctx, batch)
	if problem != "" {
		s.Fatal(problem)
	}
	return results
}

// try is for goroutines, which must not end the test.
func (s *sinkTest) try(ctx context.Context, batch []sink.Delivery) (results []sink.Result, problem string) {
	defer func() {
		if r := recover(); r != nil {
			problem = fmt.Sprintf("Deliver panicked: %v\n%s", r, debug.Stack())
		}
	}()
	results = s.sink.Deliver(ctx, slices.Clone(batch))
	if len(results) != len(batch) {
		return nil, fmt.Sprintf("%d results for %d deliveries", len(results), len(batch))
	}
	for i, r := range results {
		if problem := malformed(r, s.markers[batch[i].Event.ID]); problem != "" {
			return nil, fmt.Sprintf("result %d: %s: %+v", i, problem, r)
		}
	}
	return results, ""
}

// agree compares what was said of a batch with what came: Delivered arrived once, as it was; Unknown
// perhaps; anything else did not. Each of the batch must have been delivered once only.
func (s *sinkTest) agree(batch []sink.Delivery, results []sink.Result) {
	s.Helper()
	arrived := map[string][]Arrival{}
	for _, a := range s.target.Arrived() {
		arrived[a.ID] = append(arrived[a.ID], a)
	}
	for i, d := range batch {
		came := arrived[d.Event.ID]
		switch n := len(came); results[i].Outcome {
		case sink.Delivered:
			if n != 1 {
				s.Errorf("delivery %d was said to be delivered, and arrived %d times", i, n)
			}
		case sink.Unknown:
			if n > 1 {
				s.Errorf("delivery %d was sent once, and arrived %d times", i, n)
			}
		default:
			if n > 0 {
				s.Errorf("delivery %d was said not to have left (%s), and arrived", i, results[i].Code)
			}
		}
		for _, a := range came {
			if problem := differs(d.Event, a); problem != "" {
				s.Errorf("delivery %d arrived changed: %s", i, problem)
			}
		}
	}
}

func (s *sinkTest) expect(want sink.Outcome, results ...sink.Result) {
	s.Helper()
	for i, r := range results {
		if r.Outcome != want {
			s.Fatalf("result %d is %s, must be %s: %+v", i, outcomeName(r.Outcome), outcomeName(want), r)
		}
	}
}
