package console

import (
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
