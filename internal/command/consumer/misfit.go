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

// schemas are those of payloads.
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
			compiled, err := payload.Compile(one.Schema)
			if err != nil {
				continue // command_set takes no such schema
			}
			known[one.Digest] = payload.Checked{Digest: one.Digest, Schema: compiled}
		}
		is[one.Name()] = known[one.Digest]
	}
	return is
}

// check checks the payload of a command by the whole of its schema. fits is the digest of the schema that it fits; SQL checks no part of
// that again. Neither: the schema is not known here.
func (s schemas) check(name store.CommandName, document json.RawMessage) (fits string, misfit *payload.Violated) {
	schema, found := s[name]
	if !found {
		return "", nil
	}
	if misfit = schema.Violated(document); misfit != nil { // no JSON it cannot be: the envelope was read more strictly
		return "", misfit
	}
	return schema.Digest, nil
}
