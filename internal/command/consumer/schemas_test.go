package consumer

import (
	"encoding/json"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// A schema whose text is known stays, under the names that the newer policy gives it; one that the policy lacks goes.
func TestSchemasOfANewerPolicy(t *testing.T) {
	t.Parallel()
	name := func(version int) store.CommandName {
		return store.CommandName{Service: "s", Command: "make", Version: version}
	}
	of := func(version int, digest, text string) store.CommandSchema {
		return store.CommandSchema{Service: "s", Command: "make", Version: version, Digest: digest, Schema: json.RawMessage(text)}
	}
	first := schemas(nil).next([]store.CommandSchema{of(1, "a", `{"type": "object"}`), of(2, "b", `{"type": "array"}`)})
	second := first.next([]store.CommandSchema{of(3, "a", "")})
	for version, want := range map[int]bool{1: false, 2: false, 3: true} {
		if by, got := second.judge(name(version), json.RawMessage(`7`)); (got != nil) != want || want && (got.Schema != "a" || by != "a") {
			t.Errorf("version %d: %q %v", version, by, got)
		}
	}
	if by, got := first.judge(name(2), json.RawMessage(`7`)); got == nil || by != "b" {
		t.Errorf("it is none of the second: %q %v", by, got)
	}
	if by, got := second.judge(name(3), json.RawMessage(`{}`)); got != nil || by != "a" {
		t.Errorf("it fits the first: %q %v", by, got)
	}
}
