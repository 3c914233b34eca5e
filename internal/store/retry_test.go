package store

import (
	"testing"
	"time"
)

// What failed together does not come back together: the backoff is spread on both sides of its value, and no further. Its
// twin is TestRetryDelayIsSpread.
func TestDelayIsSpread(t *testing.T) {
	t.Parallel()
	for failed, p := range map[int]RetryPolicy{
		1: {MaxAttempts: 10, BaseSeconds: 10, MaxSeconds: 3600, Jitter: 0.5},
		3: {MaxAttempts: 10, BaseSeconds: 2.5, MaxSeconds: 3600, Jitter: 0.5}, // doubled twice
		9: {MaxAttempts: 10, BaseSeconds: 1, MaxSeconds: 10, Jitter: 0.5},
	} {
		delays := map[time.Duration]bool{}
		least, most := time.Hour, time.Duration(0)
		for range 300 {
			d := p.Delay(failed)
			delays[d] = true
			least, most = min(least, d), max(most, d)
		}
		if len(delays) < 50 || least < 5*time.Second || least > 8*time.Second || most > 15*time.Second || most < 12*time.Second {
			t.Errorf("after %d: %d delays from %s to %s", failed, len(delays), least, most)
		}
		p.Jitter = 0
		if got := p.Delay(failed); got != 10*time.Second {
			t.Errorf("after %d without jitter: %s", failed, got)
		}
	}
}
