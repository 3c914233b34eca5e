package worker

import (
	"errors"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// settles are those of a settler, each held until it is answered.
type settles struct {
	*settler
	asked   chan int // events
	results chan int
	answer  chan error
}

func newSettles() settles {
	s := settles{newSettler(), make(chan int), make(chan int, 100), make(chan error)}
	s.begin(func(page *store.Page, results []store.Result) error {
		s.results <- len(results)
		s.asked <- page.Events
		return <-s.answer
	})
	return s
}

// Pages that come while one is settled are settled together behind it, and a page that makes them too many waits for that.
func TestSettlerTakesWhatWaits(t *testing.T) {
	t.Parallel()
	s := newSettles()
	if s.unsettled() != nil {
		t.Fatal("something is unsettled at the beginning")
	}
	first, second, third := &store.Page{Events: 1}, &store.Page{Events: 2}, &store.Page{Events: 3}
	if err := s.add(first, make([]store.Result, 1), 5); err != nil || s.unsettled() != first {
		t.Fatal(err)
	}
	if n := <-s.asked; n != 1 {
		t.Fatalf("%d events are settled first, want 1", n)
	}
	if err := s.add(second, make([]store.Result, 2), 5); err != nil {
		t.Fatal(err)
	}
	added := make(chan error)
	go func() { added <- s.add(third, make([]store.Result, 3), 5) }()
	for s.unsettled() != third { // it is taken, and waits
	}
	select {
	case err := <-added:
		t.Fatal("five events wait, and another page is acted on:", err)
	default:
	}
	s.answer <- nil
	if n := <-s.asked; n != 5 {
		t.Fatalf("%d events are settled together, want 5", n)
	}
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	flushed := make(chan error)
	go func() { flushed <- s.flush() }()
	select {
	case err := <-flushed:
		t.Fatal("flush does not wait for the settle:", err)
	default:
	}
	s.answer <- nil
	if err := <-flushed; err != nil || s.unsettled() != nil {
		t.Fatal(err)
	}
	if one, two := <-s.results, <-s.results; one != 1 || two != 5 {
		t.Errorf("%d and %d results, want 1 and 5", one, two)
	}
}

// What comes behind a settle that failed is not settled: the cursor would pass over it.
func TestSettlerEndsWithAnError(t *testing.T) {
	t.Parallel()
	s := newSettles()
	if err := s.add(&store.Page{Events: 1}, nil, 5); err != nil {
		t.Fatal(err)
	}
	<-s.asked
	if err := s.add(&store.Page{Events: 1}, nil, 5); err != nil {
		t.Fatal(err)
	}
	fails := errors.New("it fails")
	s.answer <- fails
	if err := s.flush(); !errors.Is(err, fails) {
		t.Errorf("flush: %v", err)
	}
	if err := s.add(&store.Page{Events: 1}, nil, 5); !errors.Is(err, fails) {
		t.Errorf("add: %v", err)
	}
	if err := s.flush(); !errors.Is(err, fails) || len(s.results) != 1 {
		t.Errorf("flush: %v, %d settles", err, len(s.results))
	}
	s.begin(func(*store.Page, []store.Result) error { return nil })
	if err := s.add(&store.Page{Events: 1}, nil, 5); err != nil {
		t.Errorf("the next lease: %v", err)
	}
	if err := s.flush(); err != nil {
		t.Errorf("the next lease: %v", err)
	}
}

// Later events of a key depend on the record of an event that waits, is given up, or had been pending: its page is settled before
// they leave.
func TestArrived(t *testing.T) {
	t.Parallel()
	sent := store.Result{Fresh: true, Outcome: store.Sent}
	for name, c := range map[string]struct {
		page    store.Page
		results []store.Result
		want    bool
	}{
		"all sent or dropped":  {store.Page{Events: 2}, []store.Result{sent, {Fresh: true, Outcome: store.Skipped}}, true},
		"no deliveries":        {store.Page{Events: 2}, nil, true},
		"one waits":            {store.Page{Events: 2}, []store.Result{sent, {Fresh: true, Outcome: store.Pending}}, false},
		"one is given up":      {store.Page{Events: 2}, []store.Result{sent, {Fresh: true, Outcome: store.Failed}}, false},
		"one had been pending": {store.Page{Events: 2}, []store.Result{sent, {Outcome: store.Sent}}, false},
		"the settle delivers":  {store.Page{Events: 2, Inside: 1}, []store.Result{sent}, false},
		"no event":             {store.Page{}, nil, false},
	} {
		if got := new(logPass).arrived(&c.page, c.results); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
