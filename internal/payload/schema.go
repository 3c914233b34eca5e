// Package payload checks payloads of events against the JSON Schemas that the registry
// of event types holds. The database checks a part of them only.
package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/tidemarkhq/tidemark/internal/oneline"
)

// mostSchemas bounds what a long-lived program keeps of schemas that were replaced.
const mostSchemas = 1000

// Schemas checks payloads. Each schema is compiled once. The zero value is ready; its
// methods may be called from several goroutines.
type Schemas struct {
	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema // by the schema's text, so that a changed one is another
}

// Compile tells whether schema is a JSON Schema: draft 2020-12, or the one that it
// names. References to other documents are refused, and nothing is ever fetched.
func (s *Schemas) Compile(schema json.RawMessage) error {
	_, err := s.schema(schema)
	return err
}

// Check tells whether payload, which is valid JSON, fits schema. No schema: it does.
// The error names the first things that do not fit.
func (s *Schemas) Check(schema, payload json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	compiled, err := s.schema(schema)
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err != nil {
		return fmt.Errorf("payload is not JSON: %w", err)
	}
	err = compiled.Validate(document)
	var misfit *jsonschema.ValidationError
	if errors.As(err, &misfit) {
		return errors.New(strings.Join(lines(misfit, 3), "; "))
	}
	return err
}

func (s *Schemas) schema(text json.RawMessage) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if compiled := s.compiled[string(text)]; compiled != nil {
		return compiled, nil
	}
	compiled, err := compile(text)
	if err != nil {
		return nil, err
	}
	if s.compiled == nil || len(s.compiled) >= mostSchemas {
		s.compiled = map[string]*jsonschema.Schema{}
	}
	s.compiled[string(text)] = compiled
	return compiled, nil
}

func compile(text json.RawMessage) (*jsonschema.Schema, error) {
	const name = "tidemark:///schema"
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("schema is not JSON: %w", err)
	}
	if _, ok := document.(map[string]any); !ok {
		return nil, errors.New("schema must be a JSON object")
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(name, document); err != nil {
		return nil, fmt.Errorf("schema is not a JSON Schema: %w", err)
	}
	compiled, err := compiler.Compile(name)
	var invalid *jsonschema.SchemaValidationError
	var misfit *jsonschema.ValidationError
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &misfit):
		return nil, fmt.Errorf("schema is not a JSON Schema: %s", strings.Join(lines(misfit, 3), "; "))
	case err != nil:
		return nil, fmt.Errorf("schema is not a JSON Schema: %w", err)
	}
	return compiled, nil
}

// noLoader keeps a schema, which is data, from making us read a file or a URL.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is another document, and references must stay within the schema", url)
}

var english = message.NewPrinter(language.English)

// lines tells each thing that does not fit, where it stands and why; the causes, not
// the keywords that only gather them.
func lines(e *jsonschema.ValidationError, most int) (found []string) {
	if len(e.Causes) == 0 {
		place := "payload"
		if len(e.InstanceLocation) > 0 {
			place = strings.Join(e.InstanceLocation, ".")
		}
		return []string{oneline.Clean(place + ": " + e.ErrorKind.LocalizedString(english))}
	}
	for _, cause := range e.Causes {
		if len(found) == most {
			return append(found, "and more")
		}
		found = append(found, lines(cause, most-len(found))...)
	}
	return found
}
