package target_test

import (
	"encoding/json"
	"flag"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/docpage"
	"github.com/tidemarkhq/tidemark/internal/target"
)

var update = flag.Bool("update", false, "rewrite the table in docs/daemon.md")

// The table of kinds and options in docs/daemon.md is up to date.
func TestTargetTableIsUpToDate(t *testing.T) {
	t.Parallel()
	docpage.Part(t, "../../docs/daemon.md", "targets", "go test ./internal/target -update", target.Table(), *update)
}

// Every kind and option is described completely, and each kind takes the options that it needs one of.
func TestRulesAreWhole(t *testing.T) {
	t.Parallel()
	for _, k := range target.Kinds() {
		if k.Ref == "" || k.Example == "" || k.MaxBytes == 0 {
			t.Errorf("%s: it lacks ref, example or max_bytes", k.Kind)
		}
		known := map[string]bool{}
		for _, o := range target.Options(k.Kind) {
			known[o.Option] = true
			switch {
			case o.Meaning == "":
				t.Errorf("%s: option %s has no meaning", k.Kind, o.Option)
			case o.Type == "text" && (o.Pattern == nil || o.Must == ""), (o.Type == "whole" || o.Type == "number") && (o.Min == "" || o.Max == ""),
				o.Type == "choice" && len(o.Choices) == 0:
				t.Errorf("%s: option %s has no bounds", k.Kind, o.Option)
			}
		}
		for _, name := range k.OneOf {
			if !known[name] {
				t.Errorf("%s needs %s, which it does not take", k.Kind, name)
			}
		}
	}
}

// FuzzOptions checks that no options make the check panic, and that the options it accepts can be read, choose one way to
// sign, and put no credentials in plain text into a header.
func FuzzOptions(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"secret": "a"}`, `{"unsigned": true, "headers": {"X-A": "b"}}`, `{"unsigned": true, "headers": {"Authorization": "Bearer hunter2"}}`,
		`{"unsigned": true, "headers": {"Cookie": {"secret": "a"}}}`, `{"secret": null}`, `{"priority": 1e999999999}`, `{"rate_per_second": -0}`,
		`{"headers": {"a": {"secret": {}}}}`, `[]`, `null`, `{"secret": "a", "SECRET": 1}`, `{"unsigned": true, "headers": {"a": {"secret": "b", "Secret": "c"}}}`,
	} {
		for _, k := range target.Kinds() {
			f.Add(k.Kind, k.Example, seed)
		}
	}
	f.Fuzz(func(t *testing.T, kind, ref, options string) {
		if p := target.Check(kind, ref, []byte(options)); p != nil {
			if p.Text == "" {
				t.Errorf("%q: the problem has no text", options)
			}
			return
		}
		var o struct {
			Secret   string
			Unsigned bool
			Format   string
			Headers  map[string]target.Header
		}
		if err := json.Unmarshal([]byte(options), &o); err != nil && options != "" {
			t.Fatalf("%q cannot be read: %v", options, err)
		}
		if kind == "webhook" && (o.Secret != "") == o.Unsigned {
			t.Errorf("%q: secret %q, unsigned %t", options, o.Secret, o.Unsigned)
		}
		for name, h := range o.Headers {
			if h.Secret == "" && (strings.EqualFold(name, "authorization") || strings.EqualFold(name, "cookie") || strings.EqualFold(name, "x-api-key")) {
				t.Errorf("%q has %s as a text", options, name)
			}
		}
	})
}
