package consumer

import (
	"context"
	"encoding/json"

	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// policy is what records are judged by.
type policy struct {
	store.CommandPolicy
	schemas schemas
}

// readPolicy reads the policy of now. The schemas of the policy before are not read again, unless they have changed.
func readPolicy(ctx context.Context, db *store.DB, before schemas) (p policy, err error) {
	var known []string
	for _, s := range before {
		known = append(known, s.Digest)
	}
	p.CommandPolicy, err = db.CommandPolicy(ctx, known)
	p.schemas = before.next(p.Schemas)
	return p, err
}

// schemas are those of payloads that SQL checks in part only.
type schemas map[store.CommandName]payload.Checked

// next compiles those of a newer policy. One without a text is known here.
func (s schemas) next(all []store.CommandSchema) schemas {
	known := map[string]payload.Checked{}
	for _, one := range s {
		known[one.Digest] = one
	}
	is := schemas{}
	for _, one := range all {
		if _, found := known[one.Digest]; !found {
			known[one.Digest] = payload.NewChecked(one.Digest, one.Schema)
		}
		is[one.Name()] = known[one.Digest]
	}
	return is
}

// judge checks the payload of a command by the whole of its schema, if SQL does not. nil: it fits. by is the digest of the schema;
// empty: none is known here.
func (s schemas) judge(name store.CommandName, document json.RawMessage) (by string, misfit *payload.Violated) {
	schema, found := s[name]
	if !found {
		return "", nil
	}
	return schema.Digest, schema.Violated(document) // no JSON it cannot be: the envelope was read more strictly
}
