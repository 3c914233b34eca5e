package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever the results are, every number is in one row with what it came to, and in no other.
func TestGroup(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := map[int64]Result{}
		var results []Result
		for _, seq := range rapid.SliceOfDistinct(rapid.Int64Range(1, 300), func(n int64) int64 { return n }).Draw(t, "seqs") {
			r := Result{
				Route: rapid.Int32Range(1, 2).Draw(t, "route"), Seq: seq, Fresh: rapid.Bool().Draw(t, "fresh"),
				Outcome: rapid.SampledFrom([]Outcome{Sent, Failed, Pending}).Draw(t, "outcome"),
				Detail:  rapid.SampledFrom([]string{"", "x"}).Draw(t, "detail"),
			}
			if r.Outcome == Pending {
				r.Behind = rapid.Bool().Draw(t, "behind")
				r.Delay = time.Second
			}
			want[seq], results = r, append(results, r)
		}
		rand.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
		g := group(results)
		got := map[int64]Result{}
		for i := range g.routes {
			for _, seq := range numbers(t, g.seqs[i]) {
				r := Result{
					Route: g.routes[i], Seq: seq, Fresh: g.fresh[i], Outcome: Outcome(g.outcomes[i]), Reason: g.reasons[i],
					Detail: g.details[i], Behind: g.delays[i] == nil,
				}
				if r.Outcome == Pending {
					r.Delay = time.Second
				}
				if _, twice := got[seq]; twice {
					t.Fatalf("%d is there twice", seq)
				}
				got[seq] = r
			}
		}
		if !maps.Equal(want, got) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// numbers reads the text of a multirange.
func numbers(t *rapid.T, text string) (all []int64) {
	t.Helper()
	if text == "{}" {
		return nil
	}
	for _, span := range strings.Split(strings.Trim(text, "{}"), "),") {
		var from, to int64
		if _, err := fmt.Sscanf(strings.TrimSuffix(span, ")"), "[%d,%d", &from, &to); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for n := from; n < to; n++ {
			all = append(all, n)
		}
	}
	return all
}
