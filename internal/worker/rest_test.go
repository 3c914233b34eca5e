package worker

import (
	"testing"
	"time"
)

// A number that stays open is read again soon, less often as it ages, and at last as seldom as an idle worker polls.
func TestOpenNumbersAge(t *testing.T) {
	t.Parallel()
	const shortest, longest = 10 * time.Millisecond, time.Second
	b := newBackoff(shortest, longest)
	for range 2 { // and again, once something was found
		polls := 0
		for age := time.Duration(0); age < time.Minute; polls++ {
			wait := b.wait(next{open: true})
			if wait <= 0 || wait > max(2*shortest, age/10) || wait > longest {
				t.Fatalf("after %v it waits %v", age, wait)
			}
			age += wait
		}
		if polls > 120 {
			t.Errorf("%d polls in a minute, with nothing found", polls)
		}
		if wait := b.wait(next{open: true}); wait != longest {
			t.Errorf("after a minute it waits %v, want %v", wait, longest)
		}
		if wait := b.wait(next{again: true, open: true}); wait != 0 {
			t.Errorf("after an event it waits %v", wait)
		}
	}
	b.wait(next{open: true})
	b.wait(next{})
	if b.openFor != 0 {
		t.Errorf("no number is open, and it counts on from %v", b.openFor)
	}
}
