package deliver

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A finding says what a route signs in with, by name.
func TestCredentialsAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, options, want string }{
		{"webhook", `{}`, "the route names no secret"},
		{
			"webhook", `{"secret": "billing", "headers": {"authorization": {"secret": "token"}, "x-team": "shop"}}`,
			`the secret "billing" signs, the header authorization is the secret "token"`,
		},
		{"kafka", `{"connection": "main"}`, `the connection "main" signs in`},
		{"nats", `{}`, "the connection of kind nats signs in"},
	} {
		if got := credentials(store.Route{TargetKind: c.kind, Options: json.RawMessage(c.options)}); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.kind, c.options, got, c.want)
		}
	}
}

// What one shard found is not closed by another that has delivered nothing, and is told again while it goes on. Without shards it is
// told again once a minute at most: it may have been closed by a pause of the route.
func TestNoticesAreToldAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, noticesAreToldAgain)
}

func noticesAreToldAgain(t *testing.T) {
	down := &route{row: store.Route{RouteCode: "r"}, queue: &queue{breaker: newBreaker("r", func(string, bool) {})}}
	n := newNotices()
	told := func(shared bool, want ...bool) { // of target_down: whether it is open
		t.Helper()
		n.note(down, shared)
		var got []bool
		for _, f := range n.fresh {
			if f.Kind == "target_down" {
				got = append(got, f.Detail != "")
			}
		}
		n.fresh = nil
		if !slices.Equal(got, want) {
			t.Errorf("told %t, want %t", got, want)
		}
	}
	told(true)
	told(false, false)
	n = newNotices()
	deliver := func(err error) {
		t.Helper()
		done, refused := down.queue.breaker.live.Allow()
		if refused != nil {
			t.Fatal(refused)
		}
		done(err)
	}
	for range breakerTrips {
		deliver(errors.New("500"))
	}
	told(true, true)
	told(true)
	fails := func() {
		t.Helper()
		time.Sleep(breakerPause + 1)
		told(true)
		told(false)
		deliver(errors.New("500"))
	}
	fails()
	told(true, true)
	told(true)
	fails()
	told(false)
	for range tellAgain / breakerPause {
		fails()
	}
	told(false, true)
	told(false)

	n = newNotices()
	down.queue.breaker = newBreaker("r", func(string, bool) {})
	deliver(nil)
	told(true, false)
}
