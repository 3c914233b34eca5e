package trial

import "sync/atomic"

// Numbers is the balance of events 0 to n-1, whose keys go round by the number, as they come: for rates at which a list of arrivals
// would be what is measured.
type Numbers struct {
	n, keys   int
	apart     int
	seen      []atomic.Int32
	latest    []atomic.Int64 // by key
	left      atomic.Int64
	twice     atomic.Int64
	disorder  atomic.Int64
	strangers atomic.Int64
	done      chan struct{}
}

// NewNumbers waits for n events of so many keys.
func NewNumbers(n, keys int) *Numbers {
	j := &Numbers{
		n: n, keys: keys, apart: -1, seen: make([]atomic.Int32, n), latest: make([]atomic.Int64, keys), done: make(chan struct{}),
	}
	j.left.Store(int64(n))
	for i := range j.latest {
		j.latest[i].Store(-1)
	}
	return j
}

// Expect says that fewer than all numbers will come. Call it before the first does.
func (j *Numbers) Expect(n int) { j.left.Store(int64(n)) }

// Apart says that event n has a key of its own. Call it before the first event comes.
func (j *Numbers) Apart(n int) { j.apart = n }

// Saw takes in event n, and reports whether it is seen for the first time.
func (j *Numbers) Saw(n int) bool {
	if n < 0 || n >= j.n {
		j.strangers.Add(1)
		return false
	}
	if n != j.apart && j.latest[n%j.keys].Swap(int64(n)) > int64(n) {
		j.disorder.Add(1)
	}
	if j.seen[n].Add(1) > 1 {
		j.twice.Add(1)
		return false
	}
	if j.left.Add(-1) == 0 {
		close(j.done)
	}
	return true
}

// Done is closed when every event that is expected has come.
func (j *Numbers) Done() <-chan struct{} { return j.done }

// Balance is what has come until now.
func (j *Numbers) Balance() Balance {
	return Balance{
		Lost: int(j.left.Load()), Twice: int(j.twice.Load()), OutOfOrder: int(j.disorder.Load()), Invented: int(j.strangers.Load()),
	}
}
