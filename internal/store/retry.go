package store

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"time"
)

// RetryPolicy is a route's retry_policy, with the defaults in it.
type RetryPolicy struct {
	MaxAttempts int     `json:"max_attempts"`
	BaseSeconds float64 `json:"base_seconds"`
	MaxSeconds  float64 `json:"max_seconds"`
	Jitter      float64 `json:"jitter"`
}

// Retries reads the route's retry policy, which the database has checked
// (tidemark.retry_policy_ok).
func (r Route) Retries() (RetryPolicy, error) {
	p := RetryPolicy{MaxAttempts: 10, BaseSeconds: 1, MaxSeconds: 3600, Jitter: 0.2}
	if len(r.RetryPolicy) == 0 {
		return p, nil
	}
	return p, json.Unmarshal(r.RetryPolicy, &p)
}

// Exhausted: after so many failed attempts there is no other.
func (p RetryPolicy) Exhausted(failed int) bool { return failed >= p.MaxAttempts }

// Delay is how long to wait after so many failed attempts: doubled each time, bounded,
// and spread, so that what failed together does not come back together.
func (p RetryPolicy) Delay(failed int) time.Duration {
	seconds := min(p.BaseSeconds*math.Pow(2, float64(failed-1)), p.MaxSeconds)
	seconds *= 1 + p.Jitter*(2*rand.Float64()-1)
	delay := time.Duration(seconds * float64(time.Second))
	// In steps: what waits alike is settled in one statement.
	if delay > time.Second {
		return delay.Round(100 * time.Millisecond)
	}
	return delay.Round(10 * time.Millisecond)
}
