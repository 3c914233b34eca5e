package tidemark

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/tidemarkhq/tidemark/internal/payload"
)

// How payloads are checked against the whole JSON Schema of their type, of which the database checks a part:
//
// A program keeps the schemas that it has seen. A statement that emits says by a digest which schema the payload was
// checked against. Where the registry holds another schema, the statement stores nothing and returns that schema; the
// payload is checked against it, and the statement is sent again. So an emit is checked against the schema that was
// committed when its statement began, whatever was kept; and of a type that is known it is one statement. What is kept is
// known by its content, so that one program may use several databases.

// Misfit is an event whose payload does not fit the JSON Schema of its type.
type Misfit struct {
	Event    Event
	Position int   // among the events of EmitMany, from 1; 0: it was emitted alone
	Problem  error // what does not fit
}

// Error says which event it is and what does not fit.
func (m Misfit) Error() string {
	place := ""
	if m.Position > 0 {
		place = fmt.Sprintf("event %d: ", m.Position)
	}
	return fmt.Sprintf("%s%s/%s: %v", place, m.Event.Domain, m.Event.Type, m.Problem)
}

// Misfits are all events that were emitted together and whose payloads do not fit, in their order. They are in the chain of
// the *Error that Emit and EmitMany return, for errors.As. Nothing was stored, and a transaction may go on.
type Misfits []Misfit

// Error is that of the first.
func (m Misfits) Error() string { return m[0].Error() }

// Unwrap gives the first.
func (m Misfits) Unwrap() error { return m[0] }

func (m Misfits) hint() string {
	return fmt.Sprintf("See its schema with tidemark type show %s %s.", m[0].Event.Domain, m[0].Event.Type)
}

// name is a type in the registry.
type name struct{ domain, event string }

// contract is a schema of a type. The zero value: none is known.
type contract struct {
	digest string
	schema *payload.Schema
	broken error // it is no JSON Schema: nothing fits
}

func newContract(digest, text string) contract {
	schema, err := payload.Compile(json.RawMessage(text))
	return contract{digest: digest, schema: schema, broken: err}
}

func (c contract) check(document json.RawMessage) error {
	switch {
	case c.broken != nil:
		return c.broken
	case c.schema == nil:
		return nil
	case document == nil:
		document = json.RawMessage(`{}`)
	}
	return c.schema.Check(document)
}

// mostKept bounds what a program keeps of types that are no more.
const mostKept = 1000

// kept are the contracts that this process has seen, by the type that had them last.
var kept struct {
	sync.RWMutex
	contracts map[name]contract
}

func recall(of name) contract {
	kept.RLock()
	defer kept.RUnlock()
	return kept.contracts[of]
}

func keep(of name, c contract) {
	kept.Lock()
	defer kept.Unlock()
	if kept.contracts == nil || len(kept.contracts) >= mostKept {
		kept.contracts = map[name]contract{}
	}
	kept.contracts[of] = c
}

// registered is a type of the registry, as it travels.
type registered struct {
	Domain string          `json:"domain"`
	Type   string          `json:"type"`
	Digest string          `json:"digest"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

func misfits(events []Event, known map[name]contract) (all Misfits) {
	for i, e := range events {
		if problem := known[name{e.Domain, e.Type}].check(e.Payload); problem != nil {
			all = append(all, Misfit{Event: e, Position: i + 1, Problem: problem})
		}
	}
	return all
}

// settled tells whether there are misfits, all by schemas that came with the last answers.
func settled(misfits Misfits, fresh map[name]bool) bool {
	for _, m := range misfits {
		if !fresh[name{m.Event.Domain, m.Event.Type}] {
			return false
		}
	}
	return len(misfits) > 0
}

// checked are the types of the set, with what their payloads were found to fit; the schema of now is asked for where some
// does not fit the one that was kept.
func checked(known map[name]contract, misfits Misfits) []registered {
	all := make([]registered, 0, len(known))
	unfit := map[name]bool{}
	for _, m := range misfits {
		unfit[name{m.Event.Domain, m.Event.Type}] = true
	}
	for of, c := range known {
		r := registered{Domain: of.domain, Type: of.event, Digest: c.digest}
		if unfit[of] {
			r.Digest = ""
		}
		all = append(all, r)
	}
	return all
}
