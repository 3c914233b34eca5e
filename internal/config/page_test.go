package config

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/tidemarkhq/tidemark/internal/docpage"
)

// docs/configuration.md has every key, as the schema has it.
func TestPageIsUpToDate(t *testing.T) {
	t.Parallel()
	s, err := reflected()
	if err != nil {
		t.Fatal(err)
	}
	docpage.Part(t, "../../docs/configuration.md", "keys", "go test ./internal/config -run TestPage -update", tables(s), *update)
}

// tables has a section for each key of the file; those that are no struct share the first.
func tables(s *jsonschema.Schema) string {
	const head = "\n| key | takes | meaning |\n|---|---|---|\n"
	var single, sections strings.Builder
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if p.Value.Properties == nil && p.Value.AdditionalProperties == nil {
			row(&single, p.Key, p.Value)
			continue
		}
		fmt.Fprintf(&sections, "\n## %s\n\n%s\n%s", p.Key, cell(p.Value.Description), head)
		rows(&sections, p.Key, p.Value)
	}
	return "## Keys of their own\n" + head + single.String() + sections.String()
}

// rows are those of the keys below one, at any depth.
func rows(to *strings.Builder, path string, s *jsonschema.Schema) {
	if each := s.AdditionalProperties; each != nil && s.PropertyNames != nil {
		if each.Properties == nil {
			row(to, path+".NAME", &jsonschema.Schema{Type: takes(each), Description: "By name."})
		}
		path, s = path+".NAME", each
	}
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		row(to, path+"."+p.Key, p.Value)
		if p.Value.Type == "object" {
			rows(to, path+"."+p.Key, p.Value)
		}
	}
}

func row(to *strings.Builder, path string, s *jsonschema.Schema) {
	fmt.Fprintf(to, "| `%s` | %s | %s |\n", path, takes(s), cell(s.Description))
}

// cell has no character that ends a table's cell, or is taken for a tag.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
}

// takes says which values a key has.
func takes(s *jsonschema.Schema) string {
	if s.AnyOf != nil { // a list, or one value that may also be a reference
		if list := s.AnyOf[len(s.AnyOf)-1]; list.Type == "array" {
			return takes(s.AnyOf[0]) + ", or a list"
		}
		return takes(s.AnyOf[0])
	}
	switch {
	case s.Enum != nil:
		var choices []string
		for _, choice := range s.Enum {
			choices = append(choices, fmt.Sprintf("`%v`", choice))
		}
		return strings.Join(choices, ", ")
	case s.Type == "array":
		return "list: " + takes(s.Items)
	case s.Type == "object" && s.PropertyNames != nil:
		return "by name"
	case s.Type == "object":
		return "keys"
	}
	patterns := map[string]string{durationPattern: "duration", networkPattern: "network", plainKey.String(): "name", "^$|" + plainKey.String(): "name"}
	types := map[string]string{"string": "text", "integer": "whole number", "boolean": "`true`, `false`"}
	return cmp.Or(patterns[s.Pattern], types[s.Type], s.Type)
}
