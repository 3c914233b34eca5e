package payload

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/tidemarkhq/tidemark/internal/oneline"
	"github.com/tidemarkhq/tidemark/internal/strict"
)

// Violation is a place where a payload does not fit, and why. It names members, and holds no value of the payload.
type Violation struct {
	Pointer string `json:"pointer"` // a JSON pointer; empty: the payload itself
	Problem string `json:"problem"`
}

func (v Violation) String() string {
	if v.Pointer == "" {
		return "the payload " + v.Problem
	}
	return v.Pointer + " " + v.Problem
}

// Violations returns every place where a payload does not fit. An error means that the payload cannot be read at all.
func (s *Schema) Violations(payload json.RawMessage) ([]Violation, error) {
	misfit, err := s.validate(payload)
	if misfit == nil {
		return nil, err
	}
	return violations(misfit), nil
}

func violations(e *jsonschema.ValidationError) (all []Violation) {
	for _, cause := range e.Causes {
		all = append(all, violations(cause)...)
	}
	if len(e.Causes) > 0 {
		return all
	}
	pointer := ""
	for _, name := range e.InstanceLocation {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(oneline.Clean(name))
	}
	return []Violation{{pointer, problem(e.ErrorKind)}}
}

// problem says what is wrong without the value. What it quotes is the schema's, or the name of a member.
func problem(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("is %s, must be %s", strict.Article(k.Got), strings.Join(k.Want, " or "))
	case *kind.Required:
		return "lacks " + quoted(k.Missing)
	case *kind.AdditionalProperties:
		return "has the unknown " + quoted(k.Properties)
	case *kind.DependentRequired:
		return fmt.Sprintf("has %s, and lacks %s", strict.Short(k.Prop), quoted(k.Missing))
	case *kind.Enum:
		return "is none of the values that its schema lists"
	case *kind.Const:
		return "is not the value that its schema says"
	case *kind.Pattern:
		return "does not match " + strict.Short(k.Want)
	case *kind.Format:
		return "is no " + k.Want
	case *kind.Minimum:
		return "is less than " + number(k.Want)
	case *kind.Maximum:
		return "is more than " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "is not more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "is not less than " + number(k.Want)
	case *kind.MultipleOf:
		return "is no multiple of " + number(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("has %d characters, must have at least %d", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("has %d characters, must have at most %d", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("has %d elements, must have at least %d", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has %d elements, must have at most %d", k.Got, k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("has the same element at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.FalseSchema:
		return "must not be there"
	}
	path := k.KeywordPath()
	if len(path) == 0 {
		return "does not fit its schema"
	}
	return "breaks the rule " + path[0] + " of its schema"
}

func quoted(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, strict.Short(name))
	}
	return strings.Join(all, ", ")
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	digits, _ := r.FloatPrec()
	return r.FloatString(digits)
}

const mostViolations = 20 // in a message, as in tidemark.command_problem

// Misfit is all violations of a payload in one line; empty: it fits, or is no JSON.
func (s *Schema) Misfit(payload json.RawMessage) string {
	found, err := s.Violations(payload)
	if err != nil {
		return ""
	}
	var all []string
	for _, v := range found {
		all = append(all, v.String())
	}
	slices.Sort(all) // the validator goes through members in any order
	if len(all) > mostViolations {
		all = append(all[:mostViolations], "…")
	}
	return strings.Join(all, "; ")
}

// Checked is a compiled schema of which SQL checks a part only, with the digest by which the database names it.
type Checked struct {
	Digest string
	*Schema
	Problem string // why it does not compile; empty: it does
}

// NewChecked compiles a schema. One that does not compile fits no payload.
func NewChecked(digest string, text json.RawMessage) Checked {
	compiled, err := Compile(text)
	if err != nil {
		return Checked{Digest: digest, Problem: storable(err.Error())}
	}
	return Checked{Digest: digest, Schema: compiled}
}

// Violated is what a payload violates of a schema. The database takes it if the command's schema is still the one with this digest.
type Violated struct {
	Schema  string `json:"schema"` // digest
	Message string `json:"message"`
}

// Violated checks a payload by the whole of the schema. nil: it fits, or is no JSON.
func (c Checked) Violated(document json.RawMessage) *Violated {
	if c.Problem != "" {
		return &Violated{c.Digest, "cannot be checked: the schema of the command does not compile: " + c.Problem}
	}
	message := c.Misfit(document)
	if message == "" {
		return nil
	}
	return &Violated{c.Digest, storable(message)}
}

// storable is a text as PostgreSQL can store it.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
