package console

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// What the API can do and the console cannot is a defect.
func TestTheConsoleCanDoWhatTheAPICan(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../internal/api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	done := map[string]bool{}
	for _, a := range acts {
		done[a.method+" "+parameter.ReplaceAllString(a.path, "{}")] = true
	}
	writes := 0
	for path, methods := range document.Paths {
		for method := range methods {
			name := strings.ToUpper(method) + " " + parameter.ReplaceAllString(strings.TrimPrefix(path, "/api/v1"), "{}")
			if method == "get" {
				continue
			}
			writes++
			if !done[name] {
				t.Errorf("no act does %s", name)
			}
		}
	}
	if writes < 50 {
		t.Errorf("the API has only %d writes", writes)
	}
}
