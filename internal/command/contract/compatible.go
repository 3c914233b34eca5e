package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/strict"
)

// Break is a place where one schema may not follow another.
type Break struct {
	Pointer string `json:"pointer"` // into the document; * stands for each element or for the members of a pattern
	Change  string `json:"change"`
}

func (b Break) String() string {
	if b.Pointer == "" {
		return "the object: " + b.Change
	}
	return b.Pointer + ": " + b.Change
}

// Payload compares two schemas of payloads: the newer one must accept all that the older one accepts. What
// this comparison does not understand must be the same in both.
func Payload(older, newer *Schema) []Break {
	c := comparison{met: map[string]bool{}}
	c.within("", []node{{older.root, older.root}}, node{newer.root, newer.root})
	return c.breaks
}

// Result compares two schemas of results: a reader of the older one must understand what the newer one describes. Readers
// ignore members that they do not know, so the newer one may have more of them.
func Result(older, newer *Schema) []Break {
	c := comparison{result: true, met: map[string]bool{}}
	reader := opened(older.root)
	c.within("", []node{{newer.root, newer.root}}, node{reader, reader})
	return c.breaks
}

// opened is a schema whose objects may have members that it does not name. Parts under which an opened object would change what
// others mean (not, if, oneOf) stay as they are, and so does the whole schema then.
func opened(root any) any {
	plain := true
	var look func(pointer, keyword string, schema any)
	look = func(_, _ string, schema any) {
		members, _ := schema.(map[string]any)
		for _, keyword := range []string{"not", "if", "oneOf", "dependentSchemas", "contains", "unevaluatedProperties", "unevaluatedItems"} {
			plain = plain && members[keyword] == nil
		}
		children("", members, look)
	}
	look("", "", root)
	if !plain {
		return root
	}
	copied := clone(root)
	var open func(pointer, keyword string, schema any)
	open = func(_, _ string, schema any) {
		members, _ := schema.(map[string]any)
		if members["additionalProperties"] == false {
			delete(members, "additionalProperties")
		}
		children("", members, open)
	}
	open("", "", copied)
	return copied
}

func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		all := map[string]any{}
		for name, member := range value {
			all[name] = clone(member)
		}
		return all
	case []any:
		all := make([]any, len(value))
		for i, one := range value {
			all[i] = clone(one)
		}
		return all
	}
	return value
}

// node is a schema and the document in which its references stand.
type node struct{ schema, root any }

// comparison collects where a document that fits a may not fit b. a and b are the older and the newer schema, or for results the
// newer and the older.
type comparison struct {
	result bool
	met    map[string]bool // pairs under comparison, which a recursive schema meets again
	breaks []Break
}

func (c *comparison) note(pointer, format string, args ...any) {
	c.breaks = append(c.breaks, Break{pointer, fmt.Sprintf(format, args...)})
}

// differs notes that a keyword's values do not follow one from the other.
func (c *comparison) differs(pointer, keyword string, a, b any) {
	was, is := a, b
	if c.result {
		was, is = b, a
	}
	c.note(pointer, "%s was %s, is %s", keyword, shown(was), shown(is))
}

func shown(value any) string {
	switch value := value.(type) {
	case nil:
		return "not there"
	case string:
		return strict.Short(value)
	}
	text := string(marshal(value))
	if r := []rune(text); len(r) > 60 {
		text = string(r[:60]) + "…"
	}
	return text
}

func marshal(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		return nil // decoded JSON can be encoded
	}
	return text
}

// facts are what a document is known to fit: all of the conjuncts.
type facts struct {
	never     bool // nothing fits
	conjuncts []conjunct
}

type conjunct struct {
	members map[string]any
	root    any
}

// expand lists what holds together with a schema: its own keywords, and those of what it refers to and of its allOf.
func expand(nodes ...node) (f facts) {
	met := map[string]bool{}
	for len(nodes) > 0 {
		n := nodes[0]
		nodes = nodes[1:]
		members, isObject := n.schema.(map[string]any)
		if n.schema == false {
			f.never = true
		}
		if !isObject || met[identity(n)] {
			continue
		}
		met[identity(n)] = true
		f.conjuncts = append(f.conjuncts, conjunct{members, n.root})
		if ref, is := members["$ref"].(string); is {
			target, _ := resolve(n.root, ref)
			nodes = append(nodes, node{target, n.root})
		}
		all, _ := members["allOf"].([]any)
		for _, one := range all {
			nodes = append(nodes, node{one, n.root})
		}
	}
	return f
}

func identity(n node) string {
	if members, is := n.schema.(map[string]any); is {
		return fmt.Sprint(reflect.ValueOf(members).Pointer())
	}
	return fmt.Sprint(n.schema)
}

// within notes where a document that fits all of a may not fit b. A pair that is met again while it is compared adds nothing: it
// stands deeper in the document, where the comparison that runs already speaks for it.
func (c *comparison) within(pointer string, a []node, b node) {
	pair := identity(b) + " <"
	for _, n := range a {
		pair += " " + identity(n)
	}
	if c.met[pair] {
		return
	}
	c.met[pair] = true
	from, to := expand(a...), expand(b)
	if from.never {
		return
	}
	if to.never {
		c.note(pointer, "%s", c.gone())
		return
	}
	for _, conj := range to.conjuncts {
		if !slices.ContainsFunc(from.conjuncts, func(f conjunct) bool { return same(f.members, f.root, conj.members, conj.root, nil) }) {
			c.implied(pointer, from, conj)
		}
	}
}

func (c *comparison) gone() string {
	if c.result {
		return "readers of the older schema do not expect it"
	}
	return "is no longer taken"
}

// implied notes which keywords of one conjunct of b do not follow from a.
func (c *comparison) implied(pointer string, from facts, conj conjunct) {
	types := from.types()
	for _, keyword := range slices.Sorted(maps.Keys(conj.members)) {
		value := conj.members[keyword]
		switch {
		case slices.Contains(annotations, keyword) || keyword == "$ref" || keyword == "allOf" || strings.HasPrefix(keyword, "x-"):
			// expand has what they refer to.
		case types&appliesTo(keyword) == 0:
			// No document of a has a value that the keyword is about.
		case keyword == "type":
			if want := typesOf(value); types&^want != 0 {
				c.differs(pointer, "type", from.first("type"), value)
			}
		case keyword == "enum" || keyword == "const":
			c.listed(pointer, from, keyword, value)
		case bounds[keyword] != nil:
			if !slices.ContainsFunc(from.conjuncts, func(f conjunct) bool { return bounds[keyword](f.members, value) }) {
				c.differs(pointer, keyword, from.first(keyword), value)
			}
		case keyword == "required":
			c.required(pointer, from, value)
		case keyword == "properties":
			c.properties(pointer, from, conj)
		case keyword == "patternProperties":
			c.patterns(pointer, from, conj)
		case keyword == "additionalProperties" && value == false:
			c.closed(pointer, from, conj)
		case keyword == "items" && conj.members["prefixItems"] == nil && from.first("prefixItems") == nil:
			c.within(pointer+"/*", from.all("items"), node{value, conj.root})
		default:
			if !from.has(keyword, conj) {
				c.differs(pointer, keyword, from.first(keyword), value)
			}
		}
	}
}

// first is the value of a keyword in the first conjunct that has it.
func (f facts) first(keyword string) any {
	for _, conj := range f.conjuncts {
		if value, has := conj.members[keyword]; has {
			return value
		}
	}
	return nil
}

// all are the schemas that a keyword gives.
func (f facts) all(keyword string) (nodes []node) {
	for _, conj := range f.conjuncts {
		if schema, has := conj.members[keyword]; has {
			nodes = append(nodes, node{schema, conj.root})
		}
	}
	return nodes
}

// together are keywords that mean something only with each other.
var together = [][]string{
	{"if", "then", "else"},
	{"contains", "minContains", "maxContains"},
	{"items", "prefixItems"},
	{"additionalProperties", "properties", "patternProperties"},
}

// has tells whether one conjunct says the same with a keyword, and with those on which its meaning depends.
func (f facts) has(keyword string, conj conjunct) bool {
	if strings.HasPrefix(keyword, "unevaluated") {
		return false // it depends on everything, and within has compared that
	}
	group := []string{keyword}
	for _, one := range together {
		if slices.Contains(one, keyword) {
			group = one
		}
	}
	return slices.ContainsFunc(f.conjuncts, func(one conjunct) bool {
		return !slices.ContainsFunc(group, func(keyword string) bool {
			a, inA := one.members[keyword]
			b, inB := conj.members[keyword]
			return inA != inB || inA && !same(a, one.root, b, conj.root, nil)
		})
	})
}

// same tells whether two pieces of schemas mean the same: equal texts, whose references name the same.
func same(a, rootA, b, rootB any, met []string) bool {
	switch x := a.(type) {
	case map[string]any:
		y, is := b.(map[string]any)
		if !is || len(x) != len(y) {
			return false
		}
		for name, member := range x {
			other, has := y[name]
			if !has || !same(member, rootA, other, rootB, met) {
				return false
			}
		}
		ref, is := x["$ref"].(string)
		if !is || slices.Contains(met, ref) {
			return true
		}
		targetA, inA := resolve(rootA, ref)
		targetB, inB := resolve(rootB, ref)
		return inA && inB && same(targetA, rootA, targetB, rootB, append(slices.Clip(met), ref))
	case []any:
		y, is := b.([]any)
		if !is || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], rootA, y[i], rootB, met) {
				return false
			}
		}
		return true
	}
	return form(a) == form(b)
}

// form is a JSON value in its canonical form: 1.0 is 1.
func form(value any) string {
	text, err := command.Canonical(marshal(value))
	if err != nil {
		return string(marshal(value)) // two that cannot be compared are equal only as texts
	}
	return string(text)
}

// names are the members that a says something about, and whether it may have others.
func (f facts) names() (names, patterns []string, others bool) {
	others = true
	for _, conj := range f.conjuncts {
		properties, _ := conj.members["properties"].(map[string]any)
		matching, _ := conj.members["patternProperties"].(map[string]any)
		if conj.members["additionalProperties"] == false {
			return slices.Sorted(maps.Keys(properties)), slices.Sorted(maps.Keys(matching)), false
		}
		names = slices.AppendSeq(names, maps.Keys(properties))
		patterns = slices.AppendSeq(patterns, maps.Keys(matching))
	}
	slices.Sort(names)
	return slices.Compact(names), patterns, others
}

// member is what a says about a member, and whether a document of a can have it.
func (f facts) member(name string) (nodes []node, possible bool) {
	for _, conj := range f.conjuncts {
		found := false
		properties, _ := conj.members["properties"].(map[string]any)
		if schema, has := properties[name]; has {
			nodes, found = append(nodes, node{schema, conj.root}), true
		}
		matching, _ := conj.members["patternProperties"].(map[string]any)
		for pattern, schema := range matching {
			if matches(pattern, name) {
				nodes, found = append(nodes, node{schema, conj.root}), true
			}
		}
		rest, has := conj.members["additionalProperties"]
		switch {
		case found || !has:
		case rest == false:
			return nil, false
		default:
			nodes = append(nodes, node{rest, conj.root})
		}
	}
	return nodes, true
}

func matches(pattern, name string) bool {
	re, err := regexp.Compile(pattern)
	return err == nil && re.MatchString(name)
}

func (c *comparison) required(pointer string, from facts, value any) {
	given := map[any]bool{}
	for _, conj := range from.conjuncts {
		all, _ := conj.members["required"].([]any)
		for _, name := range all {
			given[name] = true
		}
	}
	all, _ := value.([]any)
	for _, name := range all {
		text, _ := name.(string)
		switch {
		case given[name]:
		case c.result:
			c.note(pointer+"/"+escape(text), "was always there, may be missing now")
		default:
			c.note(pointer+"/"+escape(text), "is required now, was not")
		}
	}
}

func (c *comparison) properties(pointer string, from facts, conj conjunct) {
	properties, _ := conj.members["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if nodes, possible := from.member(name); possible {
			c.within(pointer+"/"+escape(name), nodes, node{properties[name], conj.root})
		}
	}
}

// patterns: the members that match a pattern of b are those that match the same pattern of a, or if a is closed and has no
// patterns those whose names match.
func (c *comparison) patterns(pointer string, from facts, conj conjunct) {
	matching, _ := conj.members["patternProperties"].(map[string]any)
	names, patterns, others := from.names()
	for _, pattern := range slices.Sorted(maps.Keys(matching)) {
		b := node{matching[pattern], conj.root}
		var nodes []node
		for _, one := range from.conjuncts {
			own, _ := one.members["patternProperties"].(map[string]any)
			if schema, has := own[pattern]; has {
				nodes = append(nodes, node{schema, one.root})
			}
		}
		switch {
		case nodes != nil:
			c.within(pointer+"/*", nodes, b)
		case others || len(patterns) > 0:
			c.differs(pointer, "patternProperties "+strict.Short(pattern), nil, matching[pattern])
		default:
			for _, name := range names {
				if own, possible := from.member(name); possible && matches(pattern, name) {
					c.within(pointer+"/"+escape(name), own, b)
				}
			}
		}
	}
}

// closed: b has no other members, so each that a may have is one that b names.
func (c *comparison) closed(pointer string, from facts, conj conjunct) {
	properties, _ := conj.members["properties"].(map[string]any)
	matching, _ := conj.members["patternProperties"].(map[string]any)
	names, patterns, others := from.names()
	if others {
		c.differs(pointer, "additionalProperties", from.first("additionalProperties"), false)
	}
	for _, name := range names {
		_, named := properties[name]
		for pattern := range matching {
			named = named || matches(pattern, name)
		}
		nodes, possible := from.member(name)
		if !named && possible && !expand(nodes...).never {
			c.note(pointer+"/"+escape(name), "%s", c.gone())
		}
	}
	for _, pattern := range patterns {
		if _, has := matching[pattern]; !has && !others {
			c.note(pointer+"/*", "members that match %s: %s", strict.Short(pattern), c.gone())
		}
	}
}
