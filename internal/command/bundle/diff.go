package bundle

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/command/contract"
)

// Change is a difference between two bundles of a service.
type Change struct {
	Breaks  bool     `json:"breaks"`
	Command string   `json:"command"` // billing.charge.capture/v1
	Change  string   `json:"change"`
	Whom    []string `json:"whom"` // producers, by name; nil: none
}

// Diff tells what the newer bundle changes for the users of the older one.
func Diff(older, newer *Bundle) (all []Change) {
	for _, was := range older.Commands {
		name, whom := older.Name(was), older.asking(was)
		breaks := func(format string, args ...any) {
			all = append(all, Change{true, name, fmt.Sprintf(format, args...), whom})
		}
		i := slices.IndexFunc(newer.Commands, func(c Command) bool { return c.folder() == was.folder() })
		if i < 0 {
			breaks("is no longer offered")
			continue
		}
		is := newer.Commands[i]
		if len(is.Payloads) < len(was.Payloads) {
			breaks("schema version %d is gone, the newest is %d", len(was.Payloads), len(is.Payloads))
		}
		compare("payload", was.Payloads, is.Payloads, contract.Payload, breaks)
		compare("result", was.Results, is.Results, contract.Result, breaks)
		for _, p := range older.Producers {
			if p.mayAsk(was) && !newer.allows(p, is) {
				all = append(all, Change{true, name, "the allowlist no longer has all tenants and commands of the producer", []string{p.Producer}})
			}
		}
		if len(is.Payloads) > len(was.Payloads) {
			all = append(all, Change{false, name, fmt.Sprintf("schema version %d is new", len(is.Payloads)), nil})
		}
	}
	for _, is := range newer.Commands {
		if !slices.ContainsFunc(older.Commands, func(c Command) bool { return c.folder() == is.folder() }) {
			all = append(all, Change{false, newer.Name(is), "is new", nil})
		}
	}
	return all
}

// compare compares the newest schema with every older one, and each released one with what it was.
func compare(kind string, was, is []json.RawMessage, breaks func(older, newer *contract.Schema) []contract.Break, note func(string, ...any)) {
	if len(is) == 0 {
		return
	}
	newest, problems := contract.Compile(is[len(is)-1])
	if problems != nil {
		note("the %s's schema cannot be read: %s", kind, problems[0])
		return
	}
	for i, text := range was {
		version := i + 1
		if version <= len(is) && !sameJSON(text, is[i]) {
			note("schema version %d of the %s was edited: add version %d instead", version, kind, len(was)+1)
		}
		older, problems := contract.Compile(text)
		if problems != nil {
			note("schema version %d of the %s cannot be compared: %s", version, kind, problems[0])
			continue
		}
		for _, b := range breaks(older, newest) {
			note("%s of schema version %d: %s", kind, version, b)
		}
	}
}

func sameJSON(a, b json.RawMessage) bool {
	x, errA := command.Canonical(a)
	y, errB := command.Canonical(b)
	return errA == nil && errB == nil && string(x) == string(y)
}

// asking are the producers that may ask for a command.
func (b *Bundle) asking(c Command) (names []string) {
	for _, p := range b.Producers {
		if p.mayAsk(c) && !slices.Contains(names, p.Producer) {
			names = append(names, p.Producer)
		}
	}
	return names
}

// allows tells whether a producer may still ask for a command for all of its tenants.
func (b *Bundle) allows(was Producer, c Command) bool {
	return slices.ContainsFunc(b.Producers, func(p Producer) bool {
		if p.Producer != was.Producer || !p.mayAsk(c) {
			return false
		}
		if slices.Contains(p.Tenants, "*") {
			return true
		}
		if was.Tenants == nil || p.Tenants == nil {
			return was.Tenants == nil && p.Tenants == nil
		}
		return !slices.ContainsFunc(was.Tenants, func(tenant string) bool { return !slices.Contains(p.Tenants, tenant) })
	})
}

// Follows tells why the command may not replace a registered state of it: what users of that state rely on would break.
func (c Command) Follows(schemaVersion int, payload, result json.RawMessage) (problems []string) {
	if schemaVersion > len(c.Payloads) {
		return []string{fmt.Sprintf("schema version %d is registered, and the bundle's newest is %d: it is older", schemaVersion, len(c.Payloads))}
	}
	note := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, kind := range []struct {
		name    string
		was, is json.RawMessage
		breaks  func(older, newer *contract.Schema) []contract.Break
	}{
		{"payload", payload, c.Payloads[len(c.Payloads)-1], contract.Payload}, {"result", result, c.Results[len(c.Results)-1], contract.Result},
	} {
		if kind.was == nil || sameJSON(kind.was, kind.is) {
			continue
		}
		older, problems := contract.Compile(kind.was)
		newer, more := contract.Compile(kind.is)
		if problems != nil || more != nil {
			note("the registered schema of the %s cannot be compared: %s", kind.name, append(problems, more...)[0])
			continue
		}
		for _, b := range kind.breaks(older, newer) {
			note("%s: %s", kind.name, b)
		}
	}
	return problems
}
