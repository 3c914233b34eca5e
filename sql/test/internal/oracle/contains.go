package oracle

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
)

// Contains reports whether the JSON document contains the filter, as jsonb's operator @> has it:
//
//   - an object contains another if each key of the other is there with a value that contains the other's;
//   - an array contains another if each element of the other is contained in some element: order and
//     repetition play no part, and an empty array or object is contained in every one;
//   - everything else contains what is equal to it; numbers by value (1.0 = 1 = 10e-1).
//
// An array does not contain a scalar, except at the top, where jsonb has it so: [1, 2] contains 1. Of equal
// keys in an object the last one counts. What is not JSON contains nothing and is contained in nothing.
func Contains(document, filter json.RawMessage) bool {
	d, ok := parse(document)
	if !ok {
		return false
	}
	f, ok := parse(filter)
	if !ok {
		return false
	}
	if array, isArray := d.([]any); isArray && !isContainer(f) {
		return holds(array, f)
	}
	return contains(d, f)
}

func contains(document, filter any) bool {
	switch f := filter.(type) {
	case map[string]any:
		object, ok := document.(map[string]any)
		if !ok {
			return false
		}
		for key, wanted := range f {
			value, there := object[key]
			if !there || !contains(value, wanted) {
				return false
			}
		}
		return true
	case []any:
		array, ok := document.([]any)
		return ok && !slices.ContainsFunc(f, func(wanted any) bool { return !holds(array, wanted) })
	case json.Number:
		n, ok := document.(json.Number)
		return ok && decimalOf(n).compare(decimalOf(f)) == 0
	default: // string, bool, nil
		return !isContainer(document) && document == filter
	}
}

// holds reports whether an element of the array contains the wanted one.
func holds(array []any, wanted any) bool {
	return slices.ContainsFunc(array, func(element any) bool { return contains(element, wanted) })
}

func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// parse keeps numbers as they are written: a float64 would make equal what is not.
func parse(text json.RawMessage) (value any, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil, false
	}
	_, err := decoder.Token()
	return value, err == io.EOF
}
