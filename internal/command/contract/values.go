package contract

import (
	"encoding/json"
	"math/big"
	"slices"
)

// types is a set of types. A number is a whole one or a fraction.
type types int

const (
	null types = 1 << iota
	boolean
	whole
	fraction
	text
	array
	object

	anyType = null | boolean | whole | fraction | text | array | object
)

var typeBits = map[string]types{
	"null": null, "boolean": boolean, "integer": whole, "number": whole | fraction, "string": text, "array": array, "object": object,
}

func typesOf(value any) (all types) {
	for _, name := range typeNames(value) {
		all |= typeBits[name]
	}
	return all
}

func typeOfValue(value any) types {
	switch value := value.(type) {
	case nil:
		return null
	case bool:
		return boolean
	case json.Number:
		if r := rational(value); r == nil || !r.IsInt() {
			return fraction
		}
		return whole
	case string:
		return text
	case []any:
		return array
	default:
		return object
	}
}

// types are those that a document may have.
func (f facts) types() types {
	all := anyType
	for _, conj := range f.conjuncts {
		if value, has := conj.members["type"]; has {
			all &= typesOf(value)
		}
		if values, has := list(conj.members); has {
			var some types
			for _, value := range values {
				some |= typeOfValue(value)
			}
			all &= some
		}
	}
	return all
}

// list are the values of const or enum.
func list(members map[string]any) ([]any, bool) {
	if value, has := members["const"]; has {
		return []any{value}, true
	}
	values, has := members["enum"].([]any)
	return values, has
}

// appliesTo are the types about which a keyword says something.
func appliesTo(keyword string) types {
	switch keyword {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return whole | fraction
	case "minLength", "maxLength", "pattern", "format":
		return text
	case "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems":
		return array
	case "properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties", "propertyNames",
		"dependentRequired", "dependentSchemas", "unevaluatedProperties":
		return object
	}
	return anyType
}

// listed: b accepts only some values, so a must list values of those.
func (c *comparison) listed(pointer string, from facts, keyword string, value any) {
	var accepted []string
	values, _ := list(map[string]any{keyword: value})
	for _, one := range values {
		accepted = append(accepted, form(one))
	}
	var was any
	for _, conj := range from.conjuncts {
		given, has := list(conj.members)
		if !has {
			continue
		}
		was = given
		if !slices.ContainsFunc(given, func(one any) bool { return !slices.Contains(accepted, form(one)) }) {
			return
		}
	}
	c.differs(pointer, keyword, was, value)
}

func rational(value any) *big.Rat {
	number, is := value.(json.Number)
	if !is {
		return nil
	}
	r, ok := new(big.Rat).SetString(string(number))
	if !ok {
		return nil
	}
	return r
}

// compare compares two numbers; it is false if there is none.
func compare(a, b any, want func(int) bool) bool {
	x, y := rational(a), rational(b)
	return x != nil && y != nil && want(x.Cmp(y))
}

var (
	atLeast  = func(order int) bool { return order >= 0 }
	atMost   = func(order int) bool { return order <= 0 }
	more     = func(order int) bool { return order > 0 }
	less     = func(order int) bool { return order < 0 }
	zero     = json.Number("0")
	lowest   = func(keyword string) func(map[string]any, any) bool { return bound(keyword, atLeast) }
	greatest = func(keyword string) func(map[string]any, any) bool { return bound(keyword, atMost) }
)

// bounds tell whether the keywords of one conjunct imply a bound.
var bounds = map[string]func(members map[string]any, value any) bool{
	"minLength": lowest("minLength"), "minItems": lowest("minItems"), "minProperties": lowest("minProperties"),
	"maxLength": greatest("maxLength"), "maxItems": greatest("maxItems"), "maxProperties": greatest("maxProperties"),
	"minimum": func(m map[string]any, value any) bool {
		return compare(m["minimum"], value, atLeast) || compare(m["exclusiveMinimum"], value, atLeast)
	},
	"exclusiveMinimum": func(m map[string]any, value any) bool {
		return compare(m["minimum"], value, more) || compare(m["exclusiveMinimum"], value, atLeast)
	},
	"maximum": func(m map[string]any, value any) bool {
		return compare(m["maximum"], value, atMost) || compare(m["exclusiveMaximum"], value, atMost)
	},
	"exclusiveMaximum": func(m map[string]any, value any) bool {
		return compare(m["maximum"], value, less) || compare(m["exclusiveMaximum"], value, atMost)
	},
	"multipleOf": func(m map[string]any, value any) bool {
		x, y := rational(m["multipleOf"]), rational(value)
		return x != nil && y != nil && y.Sign() > 0 && new(big.Rat).Quo(x, y).IsInt()
	},
	"uniqueItems": func(m map[string]any, value any) bool { return value == false || m["uniqueItems"] == true },
}

func bound(keyword string, want func(int) bool) func(map[string]any, any) bool {
	return func(members map[string]any, value any) bool {
		return compare(members[keyword], value, want) || keyword[:3] == "min" && compare(value, zero, atMost)
	}
}
