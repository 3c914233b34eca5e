package demo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// A check that finds nothing wrong shows nothing unless it finds what is.
func TestBalance(t *testing.T) {
	t.Parallel()
	start := time.Now()
	j := newJournal()
	for i, a := range []trial.Arrival{
		{Event: "a1", Key: "a", Version: 1},
		{Event: "b2", Key: "b", Version: 2},
		{Event: "b1", Key: "b", Version: 1},
		{Event: "a1", Key: "a", Version: 1},
		{Event: "a1", Key: "a", Version: 1},
		{Event: "x", Key: "a", Version: 2},
		{Event: "a3", Key: "a", Version: 3},
	} {
		a.At = start.Add(time.Duration(i) * time.Second)
		j.add(a)
	}
	committed := map[string]bool{"a1": true, "a3": true, "b1": true, "b2": true, "b3": true}
	got := j.balance(committed, map[string]time.Time{"a1": start.Add(-time.Second), "a3": start})
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	want := account{
		Balance: trial.Balance{
			Delivered: 4, Lost: 1, Invented: 1, Twice: 2, OutOfOrder: 1, Again: map[string]int{"a1": 2},
			First: map[string]time.Time{"a1": second(0), "b2": second(1), "b1": second(2), "a3": second(6)},
		},
		p50: time.Second, p99: 6 * time.Second,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(account{})); diff != "" {
		t.Error(diff)
	}
	if n := j.events(); n != 5 {
		t.Errorf("%d events, want 5", n)
	}
	last := j.lastBetween(start.Add(2*time.Second), start.Add(5*time.Second))
	if want := start.Add(4 * time.Second); !last.Equal(want) {
		t.Errorf("last is %s, want %s", last, want)
	}
	if none := j.lastBetween(start.Add(time.Minute), start.Add(time.Hour)); !none.IsZero() {
		t.Errorf("last is %s, want none", none)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	got, err := read([]byte(`{"id": "e", "data": {"unit_id": "unit-1", "version_id": "7"}}`))
	if err != nil || got.Event != "e" || got.Key != "unit-1" || got.Version != 7 {
		t.Error(got, err)
	}
	if _, err := read([]byte(`{}`)); err == nil {
		t.Error("it reads what is no event")
	}
}
