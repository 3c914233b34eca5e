package bundletest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/command/bundle"
	"github.com/tidemarkhq/tidemark/internal/command/contract"
)

// otherPayload is a payload that fits the schemas too, and asks for something else; nil: none is found.
func otherPayload(c bundle.Command, base bundle.Example) json.RawMessage {
	newest, _ := contract.Compile(c.Payloads[len(c.Payloads)-1]) // lint has compiled it
	was, _ := command.Canonical(base.Payload)
	var candidates []json.RawMessage
	for _, e := range c.Examples {
		if e.Reason == "" {
			candidates = append(candidates, e.Payload)
		}
	}
	for _, candidate := range append(candidates, edited(base.Payload)...) {
		is, err := command.Canonical(candidate)
		if err != nil || bytes.Equal(is, was) {
			continue
		}
		if violations, err := newest.Violations(candidate); err == nil && violations == nil {
			return candidate
		}
	}
	return nil
}

// edited has one member after the other left out or with another value.
func edited(payload json.RawMessage) (all []json.RawMessage) {
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.UseNumber()
	if decoder.Decode(&members) != nil {
		return nil
	}
	add := func(members map[string]any) {
		if text, err := json.Marshal(members); err == nil {
			all = append(all, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		for _, value := range others(members[name]) {
			with := maps.Clone(members)
			with[name] = value
			add(with)
		}
		without := maps.Clone(members)
		delete(without, name)
		add(without)
	}
	return all
}

func others(value any) []any {
	switch value := value.(type) {
	case json.Number:
		if n, err := value.Float64(); err == nil {
			return []any{n + 1, n - 1, n / 2}
		}
	case string:
		all := []any{value + "x"}
		if runes := []rune(value); len(runes) > 0 {
			all = append(all, string(runes[:len(runes)-1]), string(runes[:len(runes)-1])+"1")
		}
		return all
	case bool:
		return []any{!value}
	}
	return nil
}
