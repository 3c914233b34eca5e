package trial_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// A check that finds nothing wrong shows nothing unless it finds what is.
func TestSettle(t *testing.T) {
	t.Parallel()
	at := time.Now()
	committed := map[string]bool{"a1": true, "a2": true, "a3": true, "b1": true}
	arrivals := []trial.Arrival{
		{Event: "a2", Key: "a", Version: 2, At: at},
		{Event: "a1", Key: "a", Version: 1, At: at},
		{Event: "a1", Key: "a", Version: 1, At: at.Add(time.Second)},
		{Event: "b1", Key: "b", Version: 1, At: at},
		{Event: "x", Key: "a", Version: 1, At: at},
	}
	want := trial.Balance{
		Delivered: 3, Lost: 1, Invented: 1, Twice: 1, OutOfOrder: 1,
		Again: map[string]int{"a1": 1}, First: map[string]time.Time{"a2": at, "a1": at, "b1": at},
	}
	got := trial.Settle(committed, arrivals)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := got.Err(); err == nil || err.Error() != "1 events lost, 1 twice, 1 before an earlier one of their key, 1 unknown" {
		t.Error(err)
	}
	if err := trial.Settle(committed, nil).Err(); err == nil {
		t.Error("nothing came, and nothing is lost")
	}
	if err := trial.Settle(map[string]bool{"b1": true}, arrivals[3:4]).Err(); err != nil {
		t.Error(err)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	done := func(n *trial.Numbers) bool {
		select {
		case <-n.Done():
			return true
		default:
			return false
		}
	}
	n := trial.NewNumbers(6, 2) // keys of even and of odd numbers
	n.Expect(5)
	n.Apart(0)
	for i, c := range []struct {
		number int
		first  bool
	}{{2, true}, {0, true}, {1, true}, {5, true}, {3, true}, {5, false}, {6, false}, {-1, false}} {
		if got := n.Saw(c.number); got != c.first || done(n) != (i >= 4) {
			t.Errorf("%d: %t, done %t", c.number, got, done(n))
		}
	}
	if diff := cmp.Diff(trial.Balance{Twice: 1, OutOfOrder: 1, Invented: 2}, n.Balance()); diff != "" {
		t.Error(diff)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]int{0: 1, 0.5: 2, 0.51: 3, 0.75: 3, 0.99: 4, 1: 4} {
		if got := trial.Percentile([]int{1, 2, 3, 4}, share); got != want {
			t.Errorf("%v: %d, want %d", share, got, want)
		}
	}
	if got := trial.Percentile([]int{}, 0.5); got != 0 {
		t.Error(got)
	}
}
