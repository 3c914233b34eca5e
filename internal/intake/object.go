package intake

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tidemarkhq/tidemark/internal/strict"
)

// object returns the fields of a JSON object, without those that are null. It reads strictly.
func object(text []byte) (map[string]json.RawMessage, error) {
	if err := strict.Check(text); err != nil {
		return nil, err
	}
	if k := kind(text); k != "object" {
		return nil, fmt.Errorf("is %s, must be an object", article(k))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for name, value := range fields {
		if kind(value) == "null" {
			delete(fields, name)
		}
	}
	return fields, nil
}

// kind names the type of a JSON value as PostgreSQL's jsonb_typeof does.
func kind(value []byte) string {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return "null"
	}
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

func article(kind string) string {
	switch kind {
	case "null":
		return kind
	case "object", "array":
		return "an " + kind
	default:
		return "a " + kind
	}
}
