package console

import (
	"slices"
	"strings"
	"testing"
)

// What the API can do and the console cannot is a defect.
func TestTheConsoleCanDoWhatTheAPICan(t *testing.T) {
	t.Parallel()
	done := map[string]bool{}
	for _, a := range acts {
		done[a.method+" "+parameter.ReplaceAllString(a.path, "{}")] = true
	}
	writes := apiWrites(t)
	for _, w := range writes {
		name := w[0] + " " + parameter.ReplaceAllString(strings.TrimPrefix(w[1], "/api/v1"), "{}")
		if !done[name] {
			t.Errorf("no act does %s", name)
		}
	}
	if len(writes) < 50 {
		t.Errorf("the API has only %d writes", len(writes))
	}
}

// docs/console.md says which acts need no name typed.
func TestActsWithoutATypedName(t *testing.T) {
	t.Parallel()
	var free []string
	for name, a := range acts {
		if a.danger == "" && a.typed == "" {
			free = append(free, name)
		}
	}
	slices.Sort(free)
	want := []string{
		"capture-attach", "capture-route-new", "command-enable", "domain-set", "finding-acknowledge", "heartbeat-register", "letter-job-cancel",
		"letter-replay", "maintain", "pending-park", "pending-retry", "replay-cancel", "route-enable", "route-new", "route-resume", "route-test",
		"source-new", "type-enable", "type-set", "verify", "verify-cancel", "worker-attach", "worker-new", "worker-resume",
	}
	if !slices.Equal(free, want) {
		t.Errorf("got %q", free)
	}
}
