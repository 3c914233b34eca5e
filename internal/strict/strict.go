// Package strict checks JSON more strictly than encoding/json does: it refuses text that jsonb refuses, or reads in another
// way.
package strict

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxDepth is how many levels of objects and arrays a payload or a schema may have, as in tidemark.event_check.
const MaxDepth = 500

// Check refuses, in addition to invalid JSON, duplicate keys at any depth, invalid UTF-8, lone surrogates, \u0000, numbers that
// jsonb cannot store and more than MaxDepth levels. The error is a predicate without a subject, such as
// `has the key "a" twice`.
func Check(text []byte) error { return CheckDepth(text, MaxDepth) }

// CheckDepth is Check with another number of levels.
func CheckDepth(text []byte, depth int) error {
	if !utf8.Valid(text) {
		return errors.New("is not UTF-8")
	}
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		return errors.New("begins with a byte order mark; save the text without it")
	}
	if err := syntax(text); err != nil {
		return err
	}
	if err := escapes(text); err != nil {
		return err
	}
	return tokens(text, depth)
}

func syntax(text []byte) error {
	if json.Valid(text) {
		return nil
	}
	var any json.RawMessage
	err := json.Unmarshal(text, &any)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("is not JSON: %w (at byte %d)", err, syntax.Offset)
	}
	return err
}

// escapes refuses two escapes that are valid JSON: NUL, which PostgreSQL cannot store, and half a surrogate pair, which
// encoding/json would replace.
func escapes(text []byte) error {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return nil
		}
		text = text[i:]
		unit, long := escape(text)
		switch {
		case !long:
			text = text[2:]
			continue
		case unit == 0:
			return errors.New(`holds \u0000, which PostgreSQL cannot store`)
		case unit >= 0xd800 && unit <= 0xdbff:
			if low, long := escape(text[6:]); long && low >= 0xdc00 && low <= 0xdfff {
				text = text[12:]
				continue
			}
			return fmt.Errorf("holds %s, half of a surrogate pair", text[:6])
		case unit >= 0xdc00 && unit <= 0xdfff:
			return fmt.Errorf("holds %s, half of a surrogate pair", text[:6])
		}
		text = text[6:]
	}
}

// escape reads a \uXXXX at the start of valid JSON.
func escape(text []byte) (unit uint64, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return unit, err == nil
}

// level is an object or an array that encloses the current token.
type level struct {
	seen  map[string]bool // nil: an array
	value bool            // in an object: the next token is a value, not a key
	key   string
}

// Tokens are those of a text that is JSON, as CheckDepth has found: delimiters, and strings, numbers and names as they are written.
// A json.Decoder would look at the syntax again, at several times the cost. Of another text they are parts without a meaning.
func Tokens(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			text = bytes.TrimLeft(text, " \t\r\n,:")
			if len(text) == 0 {
				return
			}
			n := 1
			switch text[0] {
			case '{', '}', '[', ']':
			case '"':
				for ; n < len(text) && text[n] != '"'; n++ {
					if text[n] == '\\' {
						n++
					}
				}
				n = min(n+1, len(text))
			default:
				if n = bytes.IndexAny(text, " \t\r\n,]}"); n < 0 {
					n = len(text)
				}
			}
			if !yield(text[:n:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// IsNumber tells whether a token is a number.
func IsNumber(token []byte) bool { return token[0] == '-' || token[0] >= '0' && token[0] <= '9' }

// unquote returns a string that is written so.
func unquote(token []byte) (s string) {
	if bytes.IndexByte(token, '\\') < 0 {
		return string(token[1 : len(token)-1])
	}
	_ = json.Unmarshal(token, &s) // the syntax has been checked
	return s
}

// tokens refuses duplicate keys, numbers that jsonb cannot store, and more than depth levels.
func tokens(document []byte, depth int) error {
	var path []level
	written := 0
	for token := range Tokens(document) {
		top := len(path) - 1
		if token[0] == '"' && top >= 0 && path[top].seen != nil && !path[top].value {
			name := unquote(token)
			if path[top].seen[name] {
				return fmt.Errorf("has the key %s twice", place(path[:top], name))
			}
			path[top].seen[name], path[top].key, path[top].value = true, name, true
			continue
		}
		switch token[0] {
		case '{':
			path = append(path, level{seen: map[string]bool{}})
		case '[':
			path = append(path, level{})
		case '}', ']':
			path = path[:top]
			ended(path)
		default:
			ended(path)
		}
		if IsNumber(token) {
			if err := storable(string(token), &written); err != nil {
				return err
			}
		}
		if len(path) > depth {
			return fmt.Errorf("is nested deeper than %d levels", depth)
		}
	}
	return nil
}

// ended notes in the innermost level that a value has ended.
func ended(path []level) {
	if len(path) > 0 {
		path[len(path)-1].value = false
	}
}

// mostDigits and mostDecimals are the limits of a number in jsonb. mostWritten limits the digits of all numbers of a
// document, written without exponents: the checker of schemas computes with all of them, takes 80 ms for 1e999999, and panics
// on a larger number.
const (
	mostDigits   = 131072
	mostDecimals = 16383
	mostWritten  = 8 << 20
)

// storable refuses a number that jsonb cannot store, and more than mostWritten digits in total.
func storable(number string, written *int) error {
	digits, decimals := size(number)
	*written += digits + decimals
	switch {
	case digits > mostDigits || decimals > mostDecimals:
		return fmt.Errorf("holds a number that PostgreSQL cannot store: %s", Short(number))
	case *written > mostWritten:
		return fmt.Errorf("holds numbers with more than %d digits", mostWritten)
	}
	return nil
}

// size returns how many digits a JSON number has before and after the point when it is written without an exponent.
func size(number string) (digits, decimals int) {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(number, "-")), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, err := strconv.Atoi(cmp.Or(power, "0"))
	if err != nil || exponent > math.MaxInt32 || exponent < -math.MaxInt32 {
		exponent = math.MaxInt32
	}
	return max(len(whole)+exponent, 0), max(len(fraction)-exponent, 0)
}

func place(path []level, name string) string {
	var names []string
	for _, l := range path {
		if l.seen != nil {
			names = append(names, l.key)
		}
	}
	return Short(strings.Join(append(names, name), "."))
}

// Kind names the type of a JSON value as PostgreSQL's jsonb_typeof does.
func Kind(value []byte) string {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return "null"
	}
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

// Article is a kind with its article.
func Article(kind string) string {
	switch kind {
	case "null":
		return kind
	case "object", "array":
		return "an " + kind
	default:
		return "a " + kind
	}
}

// Short quotes foreign text for a message of one line, at most 60 characters of it.
func Short(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}
