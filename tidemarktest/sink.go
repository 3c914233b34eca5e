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

// SinkTarget is the target that a sink under test delivers to: the real service, or a stand-in for it.
type SinkTarget struct {
	// Open returns a sink that delivers to the target. The suite calls it once and closes the sink at
	// the end. Goroutines started by Open and by the sink's methods must end then. Required.
	Open func() (sink.Sink, error)

	// Arrived returns the events that the target has accepted so far, in order of arrival. An event that
	// the sink called Delivered must be among them; a refused event must not. It may be called at any
	// time. Required.
	Arrived func() []Arrival

	// Behave sets the target's behaviour from now on: to the events with these ids, or without ids to
	// all events, replacing what was set before. It returns false if the target cannot behave so; the
	// suite then skips the tests that need it. Default: nil, the target only takes events.
	Behave func(how Behaviour, ids ...string) bool

	// TooLarge is a size of payload, in bytes, that the target refuses for good. Default: 0, no limit.
	TooLarge int
}

// Arrival is an event as the target received it.
type Arrival struct {
	ID, Key, Trace string
	Payload        []byte
}

// Behaviour is a way in which a target treats events.
type Behaviour int

// The behaviours of a target. A target begins with TargetTakes.
const (
	// TargetTakes: the target accepts events and confirms them.
	TargetTakes Behaviour = iota + 1
	// TargetRefuses: the target refuses events for now. Expected: Retry.
	TargetRefuses
	// TargetRefusesForGood: the target will never accept this event. Expected: Permanent.
	TargetRefusesForGood
	// TargetIsGone: the target will never accept any event. Expected: Permanent with Gone.
	TargetIsGone
	// TargetLosesAnswers: the target accepts the event, and its answer is lost at once. Expected: Unknown.
	TargetLosesAnswers
	// TargetHangs: the target does not answer until its behaviour changes. It may have accepted the
	// event. Expected at the timeout: Unknown or Retry.
	TargetHangs
)

// TestSink tests a sink against the promises of the interface sink.Sink. The subtests run in parallel, each
// with a target of its own, which the function target makes. TIDEMARK_SEED=n repeats the events of an
// earlier run.
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
	markers map[string]string // by event id: a text in the payload, which no result may repeat
}

// close closes the sink. It does not check the goroutines of a failed test: they may hang for the reason that the test
// has reported already.
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
		s.Skip("the target has no such behaviour")
	}
}

// deliver calls Deliver and checks the form of every result.
func (s *sinkTest) deliver(ctx context.Context, batch ...sink.Delivery) []sink.Result {
	s.Helper()
	results, problem := s.try(ctx, batch)
	if problem != "" {
		s.Fatal(problem)
	}
	return results
}

// try is deliver for other goroutines, which must not end the test: it returns the problem.
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

// agree compares the results of a batch with the arrivals: a Delivered event arrived once and unchanged, an Unknown one
// once or never, any other never. The batch must have been sent once.
func (s *sinkTest) agree(batch []sink.Delivery, results []sink.Result) {
	s.Helper()
	arrived := map[string][]Arrival{}
	for _, a := range s.target.Arrived() {
		arrived[a.ID] = append(arrived[a.ID], a)
	}
	for i, d := range batch {
		came := arrived[d.Event.ID]
		switch n := len(came); results[i].Status {
		case sink.Delivered:
			if n != 1 {
				s.Errorf("delivery %d is Delivered, and arrived %d times", i, n)
			}
		case sink.Unknown:
			if n > 1 {
				s.Errorf("delivery %d was sent once, and arrived %d times", i, n)
			}
		default:
			if n > 0 {
				s.Errorf("delivery %d is %s (%s), and arrived", i, outcomeName(results[i].Status), results[i].Code)
			}
		}
		for _, a := range came {
			if problem := differs(d.Event, a); problem != "" {
				s.Errorf("delivery %d arrived changed: %s", i, problem)
			}
		}
	}
}

func (s *sinkTest) expect(want sink.Status, results ...sink.Result) {
	s.Helper()
	for i, r := range results {
		if r.Status != want {
			s.Fatalf("result %d is %s, must be %s: %+v", i, outcomeName(r.Status), outcomeName(want), r)
		}
	}
}
