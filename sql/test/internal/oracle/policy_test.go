package oracle_test

import (
	"encoding/json"
	"testing"

	"github.com/tidemarkhq/tidemark/sql/test/internal/oracle"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// policies are retry policies and whether they can be read.
var policies = map[string]bool{
	`{}`:                      true,
	`{"max_attempts": 1}`:     true,
	`{"max_attempts": 100}`:   true,
	`{"max_attempts": 100.0}`: true,
	`{"max_attempts": 1e2}`:   true,
	`{"max_attempts": 0}`:     false,
	`{"max_attempts": -1}`:    false,
	`{"max_attempts": 101}`:   false,
	`{"max_attempts": 1.5}`:   false,
	`{"max_attempts": 10.00000000000000000000000000001}`:   false,
	`{"max_attempts": 100.0000000000000000000000000001}`:   false,
	`{"max_attempts": "3"}`:                                false,
	`{"max_attempts": null}`:                               false,
	`{"base_seconds": 0.001}`:                              true,
	`{"base_seconds": 0}`:                                  false,
	`{"base_seconds": -0.0}`:                               false,
	`{"base_seconds": -1}`:                                 false,
	`{"base_seconds": 3600}`:                               true,
	`{"base_seconds": 3600.01}`:                            false, // above max_seconds, by default an hour
	`{"base_seconds": 7200, "max_seconds": 7200.0}`:        true,
	`{"max_seconds": 604800}`:                              true,
	`{"max_seconds": 604800.0000000000000000000000000001}`: false,
	`{"max_seconds": 0.5}`:                                 false, // below base_seconds, by default 1
	`{"base_seconds": 0.5, "max_seconds": 0.5}`:            true,
	`{"base_seconds": 0.5, "max_seconds": 5e-1}`:           true,
	`{"jitter": 0}`:                                        true,
	`{"jitter": 1}`:                                        true,
	`{"jitter": 1.0000000000000000000000001}`:              false,
	`{"jitter": -0.1}`:                                     false,
	`{"jitter": true}`:                                     false,
	`{"max_attempts": 3, "base_seconds": 2, "jitter": 0}`:  true,
	`{"attempts": 3}`:                                      false,
	`{"max_attempts": 3, "note": 1}`:                       false,
	`{"MAX_ATTEMPTS": 3}`:                                  false,
	`{"max_attempts": 0, "max_attempts": 3}`:               true, // the last one counts
	`{"max_attempts": 3, "max_attempts": 0}`:               false,
	`[]`:                                                   false,
	`null`:                                                 false,
	`3`:                                                    false,
	`"fast"`:                                               false,
	`{"max_seconds": 1e300}`:                               false,
}

func TestRetryPolicy(t *testing.T) {
	t.Parallel()
	if got := decidePolicy(nil); got != oracle.Pending {
		t.Errorf("no policy: %s", got)
	}
	for policy, want := range policies {
		if got := decidePolicy(json.RawMessage(policy)) == oracle.Pending; got != want {
			t.Errorf("%s: got %t, want %t", policy, got, want)
		}
	}
	for _, policy := range []string{``, `{`, `{"max_attempts": 1e99999999999999999999}`, `{"base_seconds": 1e-99999999999999999999, "max_seconds": -1}`} {
		if got := decidePolicy(json.RawMessage(policy)); got != oracle.Failed {
			t.Errorf("%q: %s", policy, got)
		}
	}
}

func decidePolicy(policy json.RawMessage) oracle.Outcome {
	r := live(1, func(r *oracle.Route) { r.RetryPolicy = policy })
	return oracle.Decide("default", event(), []oracle.Route{r}, open)[0].Outcome
}

func TestRetryPolicyAgreesWithSQL(t *testing.T) {
	t.Parallel()
	conn := tidemarktest.NewDB(t).Connect(t)
	for policy, want := range policies {
		var got bool
		if err := conn.QueryRow(t.Context(), `select tidemark.retry_policy_ok($1::text::jsonb)`, policy).Scan(&got); err != nil {
			t.Fatalf("%s: %v", policy, err)
		}
		if got != want {
			t.Errorf("%s: SQL has %t, the table %t", policy, got, want)
		}
	}
}
