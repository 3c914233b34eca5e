package consumer

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// misfit is what a payload violates of a schema of which SQL checks a part only. The database takes it if the schema is still this one.
type misfit struct {
	Schema  string `json:"schema"` // digest
	Message string `json:"message"`
}

const (
	mostViolations = 20  // in a message, as in tidemark.command_problem
	mostSchemas    = 500 // that are kept compiled
)

// misfitOf checks the payload of a command by the whole of its schema, if SQL does not. nil: it fits, as far as is known here.
func misfitOf(policy store.CommandPolicy, name store.CommandName, document json.RawMessage) *misfit {
	for _, s := range policy.Schemas {
		if s.Name() != name {
			continue
		}
		schema := compiled.schema(s)
		if schema == nil {
			return nil // command_set takes no such schema
		}
		violations, err := schema.Violations(document)
		if err != nil {
			return nil // the envelope was read more strictly
		}
		var all []string
		for _, v := range violations {
			all = append(all, v.String())
		}
		if all == nil {
			return nil
		}
		slices.Sort(all) // the validator goes through members in any order
		if len(all) > mostViolations {
			all = append(all[:mostViolations], "…")
		}
		return &misfit{s.Digest, storable(strings.Join(all, "; "))}
	}
	return nil
}

// compiled are the schemas of this process, by their digests.
var compiled = compiledSchemas{all: map[string]*payload.Schema{}}

type compiledSchemas struct {
	mu  sync.Mutex
	all map[string]*payload.Schema
}

func (c *compiledSchemas) schema(s store.CommandSchema) *payload.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	schema, known := c.all[s.Digest]
	if !known {
		if len(c.all) >= mostSchemas {
			clear(c.all)
		}
		schema, _ = payload.Compile(s.Schema)
		c.all[s.Digest] = schema
	}
	return schema
}
