package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
)

// Probe sends one test delivery to the target of a route, which it opens with the configuration, as a daemon does. The target of a
// route to stdout is out. What it returns has no secrets.
func Probe(ctx context.Context, c config.Config, begun store.RouteTest, out io.Writer) store.RouteTested {
	result, took, err := probe(ctx, c, begun, out)
	if err != nil {
		result = sink.Result{Status: sink.Permanent, Code: "misconfigured", Detail: err.Error()}
	}
	tested := store.RouteTested{EventID: begun.EventID, Outcome: "failed", ErrorCode: result.Code, Detail: result.Detail, Seconds: took.Seconds()}
	switch result.Status {
	case sink.Delivered:
		tested.Outcome = "delivered"
	case sink.Unknown:
		tested.Outcome = "unknown"
	}
	return tested
}

// probe delivers once. Its error says why the target cannot be opened, without secrets.
func probe(ctx context.Context, c config.Config, begun store.RouteTest, out io.Writer) (result sink.Result, took time.Duration, err error) {
	var route store.Route
	var event struct {
		tidemark.Event
		EventID string    `json:"event_id"`
		Created time.Time `json:"created_at"`
	}
	if err := errors.Join(json.Unmarshal(begun.Route, &route), json.Unmarshal(begun.Event, &event)); err != nil {
		return result, 0, fmt.Errorf("the test cannot be read: %w", err)
	}
	event.ID, event.CreatedAt = event.EventID, event.Created
	targets := newTargets(c, out, nil, "") // a test is no dead letter
	defer func() { _ = targets.Close() }()
	if route.Options, err = withoutRate(route.Options); err != nil {
		return result, 0, err
	}
	target, err := targets.Open(route)
	if err != nil {
		return result, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, route.TimeLimit())
	defer cancel()
	result, took = deliverOnce(ctx, target, sink.Delivery{Event: event.Event, Route: route.RouteCode, Attempt: 1, Test: true})
	return result, took, nil
}

// deliverOnce delivers and closes the target. It ignores an error of Close, which does not change the result.
func deliverOnce(ctx context.Context, target sink.Sink, d sink.Delivery) (sink.Result, time.Duration) {
	defer func() { _ = target.Close() }()
	began := time.Now()
	results := target.Deliver(ctx, []sink.Delivery{d})
	return results[0], time.Since(began)
}

// withoutRate takes out what a queue takes out: one delivery has no rate.
func withoutRate(options json.RawMessage) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(options, &all); err != nil {
		return nil, errors.New("options must be an object")
	}
	delete(all, "rate_per_second")
	return json.Marshal(all)
}
