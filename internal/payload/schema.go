// Package payload checks payloads of events against JSON Schemas.
package payload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/tidemarkhq/tidemark/internal/oneline"
	"github.com/tidemarkhq/tidemark/internal/strict"
)

// Schema is a JSON Schema that was compiled. Its methods may be called from several goroutines.
type Schema struct{ compiled *jsonschema.Schema }

// Compile compiles a JSON Schema: of draft 2020-12, or of the draft that it names. References to other documents are
// refused, and nothing is ever fetched.
func Compile(text json.RawMessage) (*Schema, error) {
	const name = "tidemark:///schema"
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("schema is not JSON: %w", err)
	}
	if _, ok := document.(map[string]any); !ok {
		return nil, errors.New("schema must be a JSON object")
	}
	if err := numbers(document, new(int)); err != nil {
		return nil, fmt.Errorf("schema %w", err)
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

// Check tells whether payload fits the schema. The error names the first things that do not fit. The payload is read
// strictly, so that what is checked is what jsonb stores: of a key that stands twice a checker may see another value.
func (s *Schema) Check(payload json.RawMessage) error {
	if err := strict.Check(payload); err != nil {
		return fmt.Errorf("payload %w", err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err != nil {
		return fmt.Errorf("payload is not JSON: %w", err)
	}
	if err := numbers(document, new(int)); err != nil {
		return fmt.Errorf("payload %w", err)
	}
	err = s.compiled.Validate(document)
	var misfit *jsonschema.ValidationError
	if errors.As(err, &misfit) {
		return errors.New(strings.Join(lines(misfit, 3), "; "))
	}
	return err
}

// What jsonb can hold of a number, and how many digits all numbers of a document may have when they are written out. The
// checker calculates with all digits: 1e999999 takes it 80 ms, and a larger one makes it panic.
const (
	mostDigits   = 131072
	mostDecimals = 16383
	mostWritten  = 8 << 20
)

// numbers refuses what jsonb cannot hold of numbers, and more digits than are worth the time.
func numbers(value any, written *int) error {
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			if err := numbers(member, written); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range value {
			if err := numbers(element, written); err != nil {
				return err
			}
		}
	case json.Number:
		digits, decimals := size(string(value))
		*written += digits + decimals
		switch {
		case digits > mostDigits || decimals > mostDecimals:
			return fmt.Errorf("holds a number that PostgreSQL cannot store: %s", strict.Short(string(value)))
		case *written > mostWritten:
			return fmt.Errorf("holds numbers with more than %d digits", mostWritten)
		}
	}
	return nil
}

// size is how many digits a JSON number has before and behind the point when it is written without an exponent.
func size(number string) (digits, decimals int) {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(number, "-")), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, err := strconv.Atoi(cmp.Or(power, "0"))
	if err != nil || exponent > math.MaxInt32 || exponent < -math.MaxInt32 {
		exponent = math.MaxInt32
	}
	return max(len(whole)+exponent, 0), max(len(fraction)-exponent, 0)
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
