package contract

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/payload"
)

// CM9: a change that is called compatible never refuses what the older schema accepted, and a result that the newer schema
// describes never surprises a reader of the older one. The schemas are of any kind, also such that a bundle may not have.
func TestCompatibleKeepsEveryExample(t *testing.T) {
	t.Parallel()
	const rounds = 2000
	compatible, accepted, refused := 0, 0, 0
	for seed := range uint64(rounds) {
		g := generator{rand.New(rand.NewPCG(seed, 14))}
		a := g.document()
		b := g.change(clone(a))
		older, newer := compile(a), compile(b)
		if older == nil || newer == nil {
			continue
		}
		forward := Payload(older, newer)
		back := Result(newer, older) // newer's readers, older's results
		if len(forward) == 0 && form(a) != form(b) {
			compatible++
		}
		readers := compile(opened(newer.root))
		for range 40 {
			document := g.value(4)
			text, _ := json.Marshal(document)
			if !fits(t, older, text) {
				continue
			}
			accepted++
			ok := fits(t, newer, text)
			if !ok {
				refused++
			}
			if len(forward) == 0 && !ok {
				t.Fatalf("seed %d: called compatible, and refuses %s\nolder %s\nnewer %s", seed, text, older.Text, newer.Text)
			}
			if len(back) == 0 && !fits(t, readers, text) {
				t.Fatalf("seed %d: called compatible for readers, and they refuse %s\nreader %s\nnewer %s", seed, text, newer.Text, older.Text)
			}
		}
		if breaks := Payload(older, older); len(breaks) > 0 {
			t.Fatalf("seed %d: %s is not compatible with itself: %v", seed, older.Text, breaks)
		}
	}
	t.Logf("%d compatible changes, %d accepted documents, %d refused after the change", compatible, accepted, refused)
	if compatible < 500 || accepted < 3000 || refused < 150 {
		t.Errorf("too little was tried: %d compatible changes, %d accepted, %d refused", compatible, accepted, refused)
	}
}

func compile(document any) *Schema {
	text := marshal(document)
	compiled, err := payload.Compile(text)
	if err != nil {
		return nil
	}
	l := linter{root: document}
	l.keywords("", document)
	if strings.Contains(strings.Join(l.problems, " "), "leads back") {
		return nil // nothing fits
	}
	return &Schema{text, document, compiled}
}

func fits(t *testing.T, s *Schema, text json.RawMessage) bool {
	t.Helper()
	violations, err := s.Violations(text)
	if err != nil {
		t.Fatal(err)
	}
	return violations == nil
}

type generator struct{ *rand.Rand }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g generator) number() json.Number {
	return json.Number([]string{"0", "1", "2", "3", "1.0", "0.5", "-1", "1e0"}[g.IntN(8)])
}

func (g generator) name() string { return string(rune('a' + g.IntN(4))) }

// value is a small document; small so that it often fits.
func (g generator) value(depth int) any {
	switch n := g.IntN(12); {
	case depth == 4 || n < 4 && depth > 0: // the whole document is an object
		all := map[string]any{}
		for range g.IntN(4) {
			all[g.name()] = g.value(depth - 1)
		}
		return all
	case n < 6 && depth > 0:
		all := []any{}
		for range g.IntN(3) {
			all = append(all, g.value(depth-1))
		}
		return all
	case n < 9:
		return g.number()
	case n < 11:
		return []string{"", "a", "ab", "b", "abc"}[g.IntN(5)]
	}
	return []any{nil, true, false}[g.IntN(3)]
}

func (g generator) document() any {
	root := g.object(3)
	root["$defs"] = map[string]any{"x": g.schema(2), "y": g.schema(2)}
	return root
}

func (g generator) object(depth int) map[string]any {
	properties, required := map[string]any{}, []any{}
	for range g.IntN(4) {
		name := g.name()
		if _, twice := properties[name]; !twice && g.chance(40) {
			required = append(required, name)
		}
		properties[name] = g.schema(depth - 1)
	}
	s := map[string]any{"type": "object", "properties": properties}
	if g.chance(70) {
		s["additionalProperties"] = false
	} else if g.chance(20) {
		s["additionalProperties"] = g.schema(depth - 1)
	}
	if len(required) > 0 {
		s["required"] = required
	}
	if g.chance(20) {
		s["patternProperties"] = map[string]any{[]string{"^a", "[ab]", "d"}[g.IntN(3)]: g.schema(depth - 1)}
	}
	return s
}

func (g generator) schema(depth int) any {
	if depth <= 0 || g.chance(10) {
		return []any{true, map[string]any{}, map[string]any{"type": "integer"}, map[string]any{"type": "string"}, map[string]any{"type": "number"}, false}[g.IntN(6)]
	}
	s := map[string]any{}
	switch g.IntN(6) {
	case 0:
		s = g.object(depth)
	case 1:
		s["type"], s["items"] = "array", g.schema(depth-1)
		if g.chance(40) {
			s["prefixItems"] = []any{g.schema(depth - 1)}
		}
	case 2:
		s["type"] = []string{"integer", "number"}[g.IntN(2)]
		s[[]string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}[g.IntN(4)]] = g.number()
	case 3:
		s["type"] = "string"
	case 4:
		s["type"] = []any{"null", []string{"integer", "boolean", "string"}[g.IntN(3)]}
	}
	for range g.IntN(3) {
		g.add(s, depth)
	}
	return s
}

var keywords = []string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "enum", "const",
	"minItems", "maxItems", "uniqueItems", "items", "prefixItems", "contains", "minContains", "minProperties", "maxProperties", "required", "dependentRequired",
	"propertyNames", "allOf", "anyOf", "oneOf", "not", "if", "then", "$ref", "type", "unevaluatedProperties", "properties", "patternProperties", "title",
	"additionalProperties", "unevaluatedItems", "items", "dependentSchemas", "format",
}

// add sets some keyword.
func (g generator) add(s map[string]any, depth int) {
	keyword := keywords[g.IntN(len(keywords))]
	switch keyword {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		s[keyword] = g.number()
	case "multipleOf":
		s[keyword] = json.Number([]string{"0.5", "1", "2", "1.0"}[g.IntN(4)])
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains":
		s[keyword] = json.Number(fmt.Sprint(g.IntN(4)))
	case "pattern":
		s[keyword] = []string{"^a", "b", "^$"}[g.IntN(3)]
	case "enum":
		s[keyword] = []any{g.value(1), g.value(0), g.value(0)}
	case "const":
		s[keyword] = g.value(1)
	case "uniqueItems":
		s[keyword] = g.chance(50)
	case "required":
		s[keyword] = []any{g.name()}
	case "dependentRequired":
		s[keyword] = map[string]any{g.name(): []any{g.name()}}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		s[keyword] = []any{g.schema(depth - 1), g.schema(depth - 1)}
	case "properties", "patternProperties", "dependentSchemas":
		s[keyword] = map[string]any{g.name(): g.schema(depth - 1)}
	case "$ref":
		s[keyword] = []string{"#", "#/$defs/x", "#/$defs/y"}[g.IntN(3)]
	case "type":
		s[keyword] = []string{"object", "integer", "number", "string", "null"}[g.IntN(5)]
	case "title":
		s[keyword] = "title"
	case "format":
		s[keyword] = "date"
	case "unevaluatedProperties", "unevaluatedItems":
		s[keyword] = false
	case "additionalProperties":
		s[keyword] = []any{false, g.schema(depth - 1)}[g.IntN(2)]
	default:
		s[keyword] = g.schema(depth - 1)
	}
}

// change edits a schema in one to three places.
func (g generator) change(root any) any {
	for range 1 + g.IntN(3) {
		var all []map[string]any
		var look func(pointer, keyword string, schema any)
		look = func(_, _ string, schema any) {
			if members, is := schema.(map[string]any); is {
				all = append(all, members)
				children("", members, look)
			}
		}
		look("", "", root)
		g.edit(all[g.IntN(len(all))])
	}
	return root
}

var swapped = map[string]string{
	"minimum": "exclusiveMinimum", "exclusiveMinimum": "minimum", "maximum": "exclusiveMaximum", "exclusiveMaximum": "maximum",
}

func (g generator) edit(s map[string]any) {
	if len(s) == 0 || g.chance(40) {
		g.add(s, 2)
		return
	}
	names := []string{}
	for name := range s {
		names = append(names, name)
	}
	name := names[g.IntN(len(names))]
	if g.chance(30) && name != "$defs" {
		delete(s, name)
		return
	}
	switch value := s[name].(type) {
	case json.Number:
		if other := swapped[name]; other != "" && g.chance(50) {
			s[other] = value
			delete(s, name)
			return
		}
		s[name] = json.Number(fmt.Sprint(g.IntN(4)))
	case []any:
		switch more := g.name(); {
		case name == "enum" && g.chance(50):
			s[name] = append(value, g.value(0))
		case name == "required" && !slices.Contains(value, any(more)):
			s[name] = append(value, more)
		case len(value) > 1:
			s[name] = value[:len(value)-1]
		}
	case map[string]any:
		if name == "properties" {
			value[g.name()] = g.schema(2)
		}
	default:
		if name != "$ref" || g.chance(50) {
			delete(s, name)
		}
	}
}
