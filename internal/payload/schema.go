// Package payload checks payloads of events against JSON Schemas.
package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/tidemarkhq/tidemark/internal/oneline"
	"github.com/tidemarkhq/tidemark/internal/strict"
)

// Schema is a compiled JSON Schema. Its methods may be called from several goroutines.
type Schema struct{ compiled *jsonschema.Schema }

// Compile compiles a JSON Schema: of draft 2020-12, or of the draft that it names. It refuses references to other
// documents, and never fetches one.
func Compile(text json.RawMessage) (*Schema, error) {
	const name = "tidemark:///schema"
	if err := strict.Check(text); err != nil {
		return nil, fmt.Errorf("schema %w", err)
	}
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
		return nil, notASchema(err)
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, notASchema(err)
	}
	return &Schema{compiled}, nil
}

func notASchema(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var misfit *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &misfit) {
		return fmt.Errorf("schema is not a JSON Schema: %s", strings.Join(lines(misfit, 3), "; "))
	}
	return fmt.Errorf("schema is not a JSON Schema: %s", oneline.Clean(err.Error()))
}

// Check returns nil if payload fits the schema. The error names the first three mismatches. Check reads the payload
// strictly, so that it checks what jsonb stores: of a duplicate key, the two might see different values.
func (s *Schema) Check(payload json.RawMessage) error {
	misfit, err := s.validate(payload)
	if misfit != nil {
		return errors.New(strings.Join(lines(misfit, 3), "; "))
	}
	return err
}

// validate returns how a payload does not fit, or why it cannot be checked.
func (s *Schema) validate(payload json.RawMessage) (*jsonschema.ValidationError, error) {
	if err := strict.Check(payload); err != nil {
		return nil, fmt.Errorf("payload %w", err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("payload is not JSON: %w", err)
	}
	err = s.compiled.Validate(document)
	var misfit *jsonschema.ValidationError
	if errors.As(err, &misfit) {
		return misfit, nil
	}
	return nil, err
}

// noLoader refuses to load documents: a schema is data, and must not make this process read a file or a URL.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is another document, and references must stay within the schema", url)
}

var english = message.NewPrinter(language.English)

// lines returns one line for each mismatch, with its place and reason. It reports the leaves of the tree of errors, since
// the inner nodes only group them.
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
