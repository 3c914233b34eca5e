// Package contract holds the schemas of commands: what a schema must be so that producers can rely on it, and whether one
// version of it may follow another.
package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/strict"
)

// Schema is the schema of a command's payload or result: JSON Schema 2020-12 of a closed object.
type Schema struct {
	Text json.RawMessage
	root any
	*payload.Schema
}

// Compile reads a schema. The problems, all of them, begin with the JSON pointer of what they are about.
func Compile(text json.RawMessage) (*Schema, []string) {
	compiled, err := payload.Compile(text)
	if err != nil {
		return nil, []string{err.Error()}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err != nil {
		return nil, []string{"schema is not JSON: " + err.Error()}
	}
	l := linter{root: root, seen: map[string]bool{}}
	members, _ := root.(map[string]any) // payload.Compile has refused anything else
	if draft, given := members["$schema"]; given && draft != draft2020 {
		l.problem("/$schema", "must be %q, or missing", draft2020)
	}
	if members["type"] != "object" {
		l.problem("", `must have "type": "object": payloads and results are objects`)
	}
	l.keywords("", root)
	l.location("", root)
	if len(l.problems) > 0 {
		return nil, l.problems
	}
	return &Schema{text, root, compiled}, nil
}

// Formats are the places of the keyword format, as JSON pointers: in 2020-12 it is a note, and nothing checks it.
func (s *Schema) Formats() []string { return formats("", s.root) }

func formats(pointer string, schema any) (found []string) {
	members, _ := schema.(map[string]any)
	if _, given := members["format"]; given {
		found = append(found, pointer+"/format")
	}
	children(pointer, members, func(at, _ string, child any) { found = append(found, formats(at, child)...) })
	return found
}

const draft2020 = "https://json-schema.org/draft/2020-12/schema"

var (
	annotations = []string{"$schema", "$id", "$comment", "$defs", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
	// The keywords whose value is a schema, a list of schemas, and an object of schemas.
	oneSchema   = []string{"additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems", "contains", "propertyNames", "not", "if", "then", "else"}
	someSchemas = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	namedOnes   = []string{"properties", "patternProperties", "dependentSchemas", "$defs"}
	assertions  = []string{
		"$ref", "type", "enum", "const", "required", "dependentRequired", "minProperties", "maxProperties", "minItems", "maxItems",
		"uniqueItems", "minContains", "maxContains", "minLength", "maxLength", "pattern", "format", "minimum", "maximum",
		"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "contentEncoding", "contentMediaType",
	}
	known = slices.Concat(annotations, oneSchema, someSchemas, namedOnes, assertions)
)

// linter refuses what is valid JSON Schema and no contract.
type linter struct {
	root     any
	seen     map[string]bool // locations of references
	problems []string
}

func (l *linter) problem(pointer, format string, args ...any) {
	if pointer == "" {
		pointer = "/"
	}
	l.problems = append(l.problems, pointer+": "+fmt.Sprintf(format, args...))
}

// children calls visit for each schema directly within a schema, with its pointer.
func children(pointer string, members map[string]any, visit func(pointer, keyword string, schema any)) {
	for _, keyword := range slices.Sorted(maps.Keys(members)) {
		value, at := members[keyword], pointer+"/"+escape(keyword)
		switch {
		case slices.Contains(oneSchema, keyword):
			visit(at, keyword, value)
		case slices.Contains(someSchemas, keyword):
			all, _ := value.([]any)
			for i, one := range all {
				visit(at+"/"+strconv.Itoa(i), keyword, one)
			}
		case slices.Contains(namedOnes, keyword):
			all, _ := value.(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				visit(at+"/"+escape(name), keyword, all[name])
			}
		}
	}
}

var (
	escaped   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaped = strings.NewReplacer("~1", "/", "~0", "~")
)

func escape(name string) string { return escaped.Replace(name) }

// keywords refuses keywords that nothing checks: a misspelt minimum would accept everything.
func (l *linter) keywords(pointer string, schema any) {
	members, ok := schema.(map[string]any)
	if !ok {
		return
	}
	for _, keyword := range slices.Sorted(maps.Keys(members)) {
		switch {
		case keyword == "$id" && pointer != "":
			l.problem(pointer+"/$id", "an identifier may stand at the top only")
		case keyword == "$ref":
			ref, _ := members[keyword].(string)
			if _, found := resolve(l.root, ref); !found {
				l.problem(pointer+"/$ref", "must be # or a JSON pointer such as #/$defs/money, not %s", strict.Short(ref))
			} else if reaches(l.root, schema, schema, map[string]bool{}) {
				l.problem(pointer+"/$ref", "leads back to itself at the same place of the document: nothing would fit")
			}
		case strings.HasPrefix(keyword, "x-"):
		case !slices.Contains(known, keyword):
			l.problem(pointer+"/"+escape(keyword), "unknown keyword: it would check nothing")
		}
	}
	children(pointer, members, func(at, _ string, child any) { l.keywords(at, child) })
}

// inPlace are the keywords whose schemas are about the very value that the schema around them is about.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}

// reaches tells whether a schema leads to another one without a step into the document.
func reaches(root, from, to any, refs map[string]bool) (found bool) {
	members, _ := from.(map[string]any)
	next := func(schema any) {
		found = found || identity(node{schema, root}) == identity(node{to, root}) || reaches(root, schema, to, refs)
	}
	if ref, is := members["$ref"].(string); is && !refs[ref] {
		refs[ref] = true
		if target, there := resolve(root, ref); there {
			next(target)
		}
	}
	children("", members, func(_, keyword string, schema any) {
		if slices.Contains(inPlace, keyword) {
			next(schema)
		}
	})
	return found
}

// resolve finds what a reference within the schema names.
func resolve(root any, ref string) (any, bool) {
	path, local := strings.CutPrefix(ref, "#")
	if !local || path != "" && path[0] != '/' {
		return nil, false
	}
	if path == "" {
		return root, true
	}
	at := root
	for name := range strings.SplitSeq(path[1:], "/") {
		name = unescaped.Replace(name)
		switch within := at.(type) {
		case map[string]any:
			child, found := within[name]
			if !found {
				return nil, false
			}
			at = child
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(within) {
				return nil, false
			}
			at = within[i]
		default:
			return nil, false
		}
	}
	return at, true
}

// location refuses a schema of a place in a document that leaves something open there: members, elements, or the value itself.
func (l *linter) location(pointer string, schema any) {
	if open := l.open(schema, map[string]bool{}); open != "" {
		l.problem(pointer, "%s", open)
		return
	}
	l.inside(pointer, schema)
}

// inside looks at the places within a schema. A part that only narrows a closed schema (if, not, an allOf beside properties) may
// leave things open.
func (l *linter) inside(pointer string, schema any) {
	members, ok := schema.(map[string]any)
	if !ok {
		return
	}
	if ref, _ := members["$ref"].(string); ref != "" && !l.seen[ref] {
		l.seen[ref] = true
		target, _ := resolve(l.root, ref)
		l.inside(strings.TrimPrefix(ref, "#"), target)
	}
	closed := members["additionalProperties"] == false
	children(pointer, members, func(at, keyword string, child any) {
		switch keyword {
		case "properties", "patternProperties", "items", "prefixItems":
			l.location(at, child)
		case "allOf", "anyOf", "oneOf":
			if !closed {
				l.inside(at, child)
			}
		}
	})
}

// open says what a schema leaves open, or "".
func (l *linter) open(schema any, refs map[string]bool) string {
	members, ok := schema.(map[string]any)
	_, listed := list(members)
	switch {
	case schema == false, listed:
		return ""
	case !ok:
		return "accepts any value: give it a type"
	}
	if ref, _ := members["$ref"].(string); ref != "" {
		target, found := resolve(l.root, ref)
		if !found || refs[ref] {
			return ""
		}
		refs[ref] = true
		if l.open(target, refs) == "" {
			return ""
		}
	}
	all, _ := members["allOf"].([]any)
	if slices.ContainsFunc(all, func(one any) bool { return l.open(one, refs) == "" }) {
		return ""
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches, _ := members[keyword].([]any)
		if len(branches) > 0 && !slices.ContainsFunc(branches, func(one any) bool { return l.open(one, refs) != "" }) {
			return ""
		}
	}
	names := typeNames(members["type"])
	switch {
	case names == nil:
		return "accepts any value: give it a type"
	case slices.Contains(names, "object") && members["additionalProperties"] != false && members["unevaluatedProperties"] != false:
		return `leaves its members open: add "additionalProperties": false`
	case slices.Contains(names, "array") && members["items"] == nil && members["unevaluatedItems"] != false:
		return `leaves its elements open: add "items"`
	}
	return ""
}

func typeNames(value any) (names []string) {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		for _, one := range value {
			name, _ := one.(string)
			names = append(names, name)
		}
	}
	return names
}
