package worker

import (
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// settleEvery is the least time between two settles that no pass waits for. Each is a flush of the server's disk, which writers
// need too; pages that come meanwhile are settled together.
const settleEvery = 5 * time.Millisecond

// A settler settles pages beside reads and deliveries: in their order, one settle at a time.
type settler struct {
	hurry chan struct{} // a pass waits

	mu      sync.Mutex
	moved   sync.Cond // a settle has begun or ended
	settle  func(page *store.Page, results []store.Result) error
	latest  *store.Page // of those that are not settled; nil: all are
	waiting *store.Page // those that no settle has taken, as one page; nil: there is none
	results []store.Result
	began   time.Time // the latest settle
	running bool
	err     error // of the latest settle: there is no other
}

func newSettler() *settler {
	s := &settler{hurry: make(chan struct{}, 1)}
	s.moved.L = &s.mu
	return s
}

// begin starts a lease. What the one before has left unsettled is read again.
func (s *settler) begin(settle func(page *store.Page, results []store.Result) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle, s.latest, s.waiting, s.results, s.err = settle, nil, nil, nil, nil
}

// add takes a page that was acted on, without its items. It returns when fewer than so many events wait.
func (s *settler) add(page *store.Page, results []store.Result, most int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = page
	if s.waiting != nil {
		page = s.waiting.Then(page)
	}
	s.waiting, s.results = page, append(s.results, results...)
	if !s.running && s.err == nil {
		s.running = true
		go s.run()
	}
	s.wait(func() bool { return s.waiting != nil && s.waiting.Events >= most })
	return s.err
}

// flush returns when all pages are settled.
func (s *settler) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait(func() bool { return true })
	return s.err
}

// wait returns when the condition is over, or when nothing is under way any more. The caller holds mu.
func (s *settler) wait(during func() bool) {
	for s.running && during() {
		select {
		case s.hurry <- struct{}{}:
		default:
		}
		s.moved.Wait()
	}
}

// unsettled is the page behind which the next one is read; nil: behind what is settled.
func (s *settler) unsettled() *store.Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest
}

// run settles what waits, until nothing does.
func (s *settler) run() {
	for {
		s.pause()
		s.mu.Lock()
		page, results := s.waiting, s.results
		s.waiting, s.results, s.began = nil, nil, time.Now()
		s.moved.Broadcast()
		s.mu.Unlock()

		err := s.settle(page, results)

		s.mu.Lock()
		if s.err = err; err != nil || s.waiting == nil {
			s.running, s.latest = false, nil
			s.moved.Broadcast()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}

// pause waits until the next settle is due, or a pass waits for it.
func (s *settler) pause() {
	due := time.NewTimer(time.Until(s.began.Add(settleEvery)))
	defer due.Stop()
	select {
	case <-s.hurry:
	case <-due.C:
	}
}
