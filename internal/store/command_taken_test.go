package store_test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A daemon that takes commands says so in its beat. What else a beat says there is not it, and fails no one.
func TestTakesCommands(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	for _, beat := range []struct {
		name, payload string
		want          bool
	}{{"odd", `{"commands": "perhaps"}`, false}, {"none", `{}`, false}, {"takes", `{"commands": true}`, true}} {
		if _, err := test.Pool.Exec(t.Context(), `select tidemark.heartbeat_daemon($1, 'running', $2::jsonb)`, beat.name, beat.payload); err != nil {
			t.Fatal(err)
		}
		if got, err := store.New(test.Pool).TakesCommands(t.Context()); err != nil || got != beat.want {
			t.Errorf("after %s: %t, %v", beat.payload, got, err)
		}
	}
}
