package demo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A check that finds nothing wrong shows nothing unless it finds what is.
func TestBalance(t *testing.T) {
	t.Parallel()
	start := time.Now()
	j := newJournal()
	for i, a := range []arrival{
		{event: "a1", unit: "a", version: 1},
		{event: "b2", unit: "b", version: 2},
		{event: "b1", unit: "b", version: 1},
		{event: "a1", unit: "a", version: 1},
		{event: "a1", unit: "a", version: 1},
		{event: "x", unit: "a", version: 2},
		{event: "a3", unit: "a", version: 3},
	} {
		a.at = start.Add(time.Duration(i) * time.Second)
		j.add(a)
	}
	committed := map[string]bool{"a1": true, "a3": true, "b1": true, "b2": true, "b3": true}
	got := j.balance(committed, map[string]time.Time{"a1": start.Add(-time.Second), "a3": start})
	want := account{
		delivered: 4, lost: 1, invented: 1, outOfOrder: 1, again: map[string]int{"a1": 2},
		p50: 6 * time.Second, p99: 6 * time.Second,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(account{})); diff != "" {
		t.Error(diff)
	}
	if n := got.repeated(); n != 2 {
		t.Errorf("%d repeated, want 2", n)
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
	if err != nil || got.event != "e" || got.unit != "unit-1" || got.version != 7 {
		t.Error(got, err)
	}
	if _, err := read([]byte(`{}`)); err == nil {
		t.Error("it reads what is no event")
	}
}
