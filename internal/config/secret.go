package config

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "***"

// Secret is a text that is never printed: fmt, encoding/json, YAML and log/slog get "***", or "" if it is empty. The
// zero value is the empty secret.
type Secret struct {
	// A pointer, because fmt prints unexported fields without calling their methods; of a pointer it prints the address.
	text *string
}

// NewSecret makes a secret of a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal is the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero tells whether the secret is empty.
func (s Secret) IsZero() bool { return s.text == nil }

// Equal tells whether two secrets are the same text. Operator == does not.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }

func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return redacted
}

// GoString is what %#v would print.
func (s Secret) GoString() string { return `config.NewSecret("` + s.String() + `")` }

// Format serves the verbs that do not call String, such as %d.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'v' && f.Flag('#') {
		text = s.GoString()
	}
	_, _ = io.WriteString(f, text)
}

// MarshalText redacts, for YAML and encoding/gob among others.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON redacts.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue redacts.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
