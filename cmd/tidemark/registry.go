package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/payload"
)

// registry checks payloads in full before they are sent; the database checks a part.
type registry struct {
	types    map[[2]string]json.RawMessage // schema by domain and type
	compiled payload.Schemas
}

func newRegistry(ctx context.Context, s *session) (*registry, error) {
	types, err := s.EventTypes(ctx, "")
	if err != nil {
		return nil, err
	}
	r := &registry{types: map[[2]string]json.RawMessage{}}
	for _, t := range types {
		if t.Enabled && t.Schema != nil {
			r.types[[2]string{t.Domain, t.Type}] = t.Schema
		}
	}
	return r, nil
}

// check says nothing of types that are not registered: that is for the database.
func (r *registry) check(event tidemark.Event) error {
	schema := r.types[[2]string{event.Domain, event.Type}]
	document := event.Payload
	if document == nil {
		document = json.RawMessage(`{}`)
	}
	if err := r.compiled.Check(schema, document); err != nil {
		return &tidemark.Error{
			Code: "TM002", Message: fmt.Sprintf("%s/%s: %v", event.Domain, event.Type, err),
			Hint: fmt.Sprintf("See its schema with tidemark type show %s %s.", event.Domain, event.Type),
		}
	}
	return nil
}
