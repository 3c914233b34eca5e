// Package emit emits events whose payloads fit the whole JSON Schema of their type; the database checks a part of it.
//
// The package keeps the schemas that it has seen. A statement that emits says by a digest which schema the payload was
// checked against. Where the registry holds another schema, the statement stores nothing and returns that schema; the
// payload is checked against it, and the statement is sent again. So an emit is checked against the schema that was
// committed when its statement began, whatever was kept; and of a type that is known it is one statement. What is kept is
// known by its content, so that one program may use several databases.
package emit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/tidemarkhq/tidemark/internal/payload"
)

// Row is a pgx.Row or a *sql.Row.
type Row interface{ Scan(targets ...any) error }

// Query sends a statement that gives one row.
type Query func(ctx context.Context, sql string, args ...any) Row

// Event is what is checked of an event.
type Event struct {
	Domain, Type string
	Payload      json.RawMessage // nil: {}
}

// Misfit is an event whose payload does not fit the schema of its type.
type Misfit struct {
	Event    Event
	Position int // from 1; 0: there is only one event
	Problem  error
}

// Error says which event it is and what does not fit.
func (m *Misfit) Error() string {
	place := ""
	if m.Position > 0 {
		place = fmt.Sprintf("event %d: ", m.Position)
	}
	return fmt.Sprintf("%s%s/%s: %v", place, m.Event.Domain, m.Event.Type, m.Problem)
}

// Hint says what to do about it.
func (m *Misfit) Hint() string {
	return fmt.Sprintf("See its schema with tidemark type show %s %s.", m.Event.Domain, m.Event.Type)
}

// Misfits are all events of a set that do not fit, in their order. None of the set is stored.
type Misfits []*Misfit

// Error is that of the first.
func (m Misfits) Error() string { return m[0].Error() }

// Unwrap gives the first.
func (m Misfits) Unwrap() error { return m[0] }

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

// One emits an event by tidemark.emit, or with strict by tidemark.emit_strict, and returns its id; nil: the type is not
// registered or not enabled. arguments are those of the function in its order, the payload as text. A payload that does not
// fit is a *Misfit, after which a transaction may go on.
func One(ctx context.Context, query Query, strict bool, e Event, arguments []any) (id *string, err error) {
	statement := emitOne
	if strict {
		statement = emitOneStrict
	}
	of := name{e.Domain, e.Type}
	known := recall(of)
	for fresh := false; ; fresh = true {
		checked := known.digest
		if problem := known.check(e.Payload); problem != nil {
			if fresh {
				return nil, &Misfit{Event: e, Problem: problem}
			}
			checked = "" // The schema may have changed since: ask for that of now.
		}
		var digest, schema *string
		if err := query(ctx, statement, append(arguments[:len(arguments):len(arguments)], checked)...).Scan(&digest, &schema, &id); err != nil {
			return nil, err
		}
		if digest == nil {
			return id, nil
		}
		if *digest != known.digest {
			known = newContract(*digest, *schema)
			keep(of, known)
		}
	}
}

// Many emits events by tidemark.emit_many, or with strict by tidemark.emit_many_strict, of their JSON document, and returns
// their ids in their order, nil as with One. Payloads that do not fit are Misfits, after which a transaction may go on.
func Many(ctx context.Context, query Query, strict bool, events []Event, document string) (ids []*string, err error) {
	statement := emitMany
	if strict {
		statement = emitManyStrict
	}
	known := map[name]contract{}
	for _, e := range events {
		of := name{e.Domain, e.Type}
		if _, found := known[of]; !found {
			known[of] = recall(of)
		}
	}
	for fresh := map[name]bool{}; ; {
		misfits := misfits(events, known)
		if settled(misfits, fresh) {
			return nil, misfits
		}
		contracts, err := json.Marshal(checked(known, misfits))
		if err != nil {
			return nil, err
		}
		var changed, stored *string
		if err := query(ctx, statement, document, string(contracts)).Scan(&changed, &stored); err != nil {
			return nil, err
		}
		if changed == nil {
			if stored != nil { // null: there were no events
				err = json.Unmarshal([]byte(*stored), &ids)
			}
			return ids, err
		}
		var others []registered
		if err := json.Unmarshal([]byte(*changed), &others); err != nil {
			return nil, err
		}
		for _, r := range others {
			of := name{r.Domain, r.Type}
			fresh[of] = true
			if known[of].digest != r.Digest {
				known[of] = newContract(r.Digest, string(r.Schema))
				keep(of, known[of])
			}
		}
	}
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
			all = append(all, &Misfit{Event: e, Position: i + 1, Problem: problem})
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

// AsMisfits finds what One and Many return of payloads that do not fit.
func AsMisfits(err error) (Misfits, bool) {
	var many Misfits
	var one *Misfit
	switch {
	case errors.As(err, &many):
		return many, true
	case errors.As(err, &one):
		return Misfits{one}, true
	}
	return nil, false
}
