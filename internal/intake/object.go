package intake

import (
	"encoding/json"
	"fmt"

	"github.com/tidemarkhq/tidemark/internal/strict"
)

// object returns the fields of a JSON object, without those that are null. It reads strictly.
func object(text []byte) (map[string]json.RawMessage, error) {
	// An event's payload is one level below it.
	if err := strict.CheckDepth(text, strict.MaxDepth+1); err != nil {
		return nil, err
	}
	if k := strict.Kind(text); k != "object" {
		return nil, fmt.Errorf("is %s, must be an object", strict.Article(k))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for name, value := range fields {
		if strict.Kind(value) == "null" {
			delete(fields, name)
		}
	}
	return fields, nil
}
