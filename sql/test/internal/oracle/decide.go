// Package oracle is the decision contract in Go, without a database: what an event comes to on each route.
// The authority is SQL (tidemark.decide and the functions it calls); this is its mirror, held to it by a
// property test. Everything it knows is in its arguments.
package oracle

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Event is what routes look at in an event.
type Event struct {
	Domain  string          `json:"domain"`
	Type    string          `json:"type"`
	Stream  *string         `json:"stream"` // nil: none
	Key     *string         `json:"key"`    // nil: none
	Payload json.RawMessage `json:"payload"`
}

// Route is what decides in a row of tidemark.outbound_route. A nil JSON column is SQL's null.
type Route struct {
	ID            int32           `json:"id"`
	Worker        string          `json:"worker"`
	Domain        string          `json:"domain"` // "*": all
	Type          string          `json:"type"`   // exact, prefix ("order.*"), or "*"
	Stream        *string         `json:"stream"` // nil: any
	KeyFilter     *string         `json:"key_filter"`
	PayloadFilter json.RawMessage `json:"payload_filter"`
	TargetKind    string          `json:"target_kind"`
	TargetRef     string          `json:"target_ref"`
	Exclusive     bool            `json:"exclusive"`
	Enabled       bool            `json:"enabled"`
	DryRun        bool            `json:"dry_run"`
	FailClosed    bool            `json:"fail_closed"`
	RetryPolicy   json.RawMessage `json:"retry_policy"`
	Transform     *string         `json:"transform"` // nil: none
}

func (r Route) live() bool { return r.Enabled && !r.DryRun }

// Gates is the state of everything that can forbid a worker to route.
type Gates struct {
	Master bool `json:"master"`
	Worker bool `json:"worker"`
	// Armed: the stage is live, and was made live in this very cluster and database.
	Armed bool `json:"armed"`
	// Closed are the domains whose gate is closed.
	Closed []string `json:"closed"`
}

// Outcome is what became of an event on a route.
type Outcome string

// The outcomes that a decision can have. Pending: to be delivered.
const (
	Skipped  Outcome = "skipped"
	Disabled Outcome = "disabled"
	DryRun   Outcome = "dry_run"
	Pending  Outcome = "pending"
	Failed   Outcome = "failed"
)

// Reason says why a route failed or was skipped. Empty: the outcome says it all.
type Reason string

// The reasons that a decision can have.
const (
	NoRoute           Reason = "no_route"
	UnknownTargetKind Reason = "unknown_target_kind"
	BadRetryPolicy    Reason = "bad_retry_policy"
	AmbiguousRoute    Reason = "ambiguous_route"
	DomainClosed      Reason = "domain_closed"     // of a pending one: it waits for the gate of its domain
	TransformUntried  Reason = "transform_untried" // of a dry run: the route's transform is called later
)

// Decision is what the worker decides for an event on one route. RouteID 0: no route claims it.
type Decision struct {
	RouteID int32
	Outcome Outcome
	Reason  Reason
}

var targetKinds = []string{"sql", "notify", "webhook", "kafka", "nats", "river", "stdout", "go"}

// Decide returns one decision per route of the worker that claims the event, in the order of ids, or one
// with RouteID 0 where none does. While a gate is closed it decides nothing. routes holds those of all
// workers: a route may be ambiguous beside another worker's.
func Decide(worker string, event Event, routes []Route, gates Gates) []Decision {
	if !gates.Master || !gates.Worker {
		return nil
	}
	// A copy that is not armed must not consume, as dry runs, what its live routes would have delivered.
	if !gates.Armed && slices.ContainsFunc(routes, func(r Route) bool { return r.Worker == worker && r.live() }) {
		return nil
	}

	var claims []Route
	for _, r := range routes {
		if Matches(r, event) {
			claims = append(claims, r)
		}
	}
	var decisions []Decision
	for _, r := range claims {
		if r.Worker == worker {
			decisions = append(decisions, decide(r, claims, slices.Contains(gates.Closed, event.Domain)))
		}
	}
	if decisions == nil {
		return []Decision{{Outcome: Skipped, Reason: NoRoute}}
	}
	slices.SortFunc(decisions, func(a, b Decision) int { return cmp.Compare(a.RouteID, b.RouteID) })
	return decisions
}

func decide(r Route, claims []Route, closed bool) Decision {
	refusal := refuse(r, claims)
	switch {
	case !r.Enabled:
		return Decision{r.ID, Disabled, ""}
	case refusal != "" && r.FailClosed:
		return Decision{r.ID, Failed, refusal}
	case refusal != "":
		return Decision{r.ID, Skipped, refusal}
	case r.DryRun && r.Transform != nil:
		return Decision{r.ID, DryRun, TransformUntried}
	case r.DryRun:
		return Decision{r.ID, DryRun, ""}
	case closed:
		return Decision{r.ID, Pending, DomainClosed}
	default:
		return Decision{r.ID, Pending, ""}
	}
}

// refuse says why the route cannot decide the event that it claims beside the other claims. Empty: it can.
func refuse(r Route, claims []Route) Reason {
	switch {
	case !slices.Contains(targetKinds, r.TargetKind):
		return UnknownTargetKind
	case !retryPolicyOK(r.RetryPolicy):
		return BadRetryPolicy
	case slices.ContainsFunc(claims, func(other Route) bool { return collide(r, other) }):
		return AmbiguousRoute
	default:
		return ""
	}
}

// collide: the other route stands in the way of r. A route in dry run never stands in the way of a live one;
// it does show what would happen if it went live beside it.
func collide(r, other Route) bool {
	return other.ID != r.ID && other.Enabled && (r.DryRun || !other.DryRun) &&
		other.TargetKind == r.TargetKind && other.TargetRef == r.TargetRef &&
		(other.Exclusive || r.Exclusive)
}
