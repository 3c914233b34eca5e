package command

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidemarkhq/tidemark/internal/strict"
)

// Canonical writes JSON in the one form that all equal values share, that of RFC 8785, except for numbers: each keeps all its
// digits, in ECMAScript's notation. A double has no 2^53+1, and two amounts that differ must not look the same. The SQL
// function tidemark.canonical_json writes the same bytes.
func Canonical(text json.RawMessage) ([]byte, error) {
	if err := strict.Check(text); err != nil {
		return nil, err
	}
	return canonical(text)
}

// canonical is Canonical of text that has been checked.
func canonical(text json.RawMessage) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return appendValue(make([]byte, 0, len(text)), value), nil
}

func appendValue(to []byte, value any) []byte {
	switch value := value.(type) {
	case map[string]any:
		to = append(to, '{')
		for i, name := range slices.SortedFunc(maps.Keys(value), compareUTF16) {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(appendString(to, name), ':')
			to = appendValue(to, value[name])
		}
		return append(to, '}')
	case []any:
		to = append(to, '[')
		for i, element := range value {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendValue(to, element)
		}
		return append(to, ']')
	case json.Number:
		return appendNumber(to, string(value))
	case string:
		return appendString(to, value)
	case bool:
		return strconv.AppendBool(to, value)
	default:
		return append(to, "null"...)
	}
}

// compareUTF16 orders by UTF-16 code units: a character above U+FFFF, whose first unit is a surrogate, comes before U+E000.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		if x != y {
			return cmp.Or(cmp.Compare(firstUnit(x), firstUnit(y)), cmp.Compare(x, y))
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}

func firstUnit(r rune) rune {
	if r > 0xffff {
		return 0xd800 + (r-0x10000)>>10
	}
	return r
}

const hex = "0123456789abcdef"

var shortEscapes = map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

func appendString(to []byte, s string) []byte {
	to = append(to, '"')
	for i := range len(s) {
		short, escaped := shortEscapes[s[i]]
		switch {
		case escaped:
			to = append(to, '\\', short)
		case s[i] < 0x20:
			to = append(to, '\\', 'u', '0', '0', hex[s[i]>>4], hex[s[i]&15])
		default:
			to = append(to, s[i])
		}
	}
	return append(to, '"')
}

// appendNumber writes the digits d1…dk of the number 0.d1…dk × 10^point by the rules of ECMAScript's Number::toString.
func appendNumber(to []byte, number string) []byte {
	digits, point, negative := decimal(number)
	if digits == "" {
		return append(to, '0')
	}
	if negative {
		to = append(to, '-')
	}
	n := len(digits)
	switch {
	case point >= n && point <= 21:
		return append(append(to, digits...), strings.Repeat("0", point-n)...)
	case point > 0 && point <= 21:
		return append(append(append(to, digits[:point]...), '.'), digits[point:]...)
	case point > -6 && point <= 0:
		return append(append(append(to, "0."...), strings.Repeat("0", -point)...), digits...)
	}
	to = append(to, digits[0])
	if n > 1 {
		to = append(append(to, '.'), digits[1:]...)
	}
	to = append(to, 'e')
	if point > 0 {
		to = append(to, '+')
	}
	return strconv.AppendInt(to, int64(point-1), 10)
}

// decimal takes a JSON number apart. Zero, also a negative one, has no digits.
func decimal(number string) (digits string, point int, negative bool) {
	number, negative = strings.CutPrefix(number, "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(number), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, _ := strconv.Atoi(cmp.Or(power, "0")) // strict.Check has bounded it, unless the number is zero
	all := whole + fraction
	digits = strings.TrimLeft(all, "0")
	point = len(whole) + exponent - (len(all) - len(digits))
	return strings.TrimRight(digits, "0"), point, negative
}

// Fingerprint identifies what an envelope asks for: two with one idempotency key and different fingerprints are two requests. It
// is the SHA-256 of the canonical JSON array [service, tenant or null, command, command version, payload]. The schema version is
// not in it, so that a producer may upgrade between two attempts.
func (e Envelope) Fingerprint() ([sha256.Size]byte, error) {
	payload, err := canonical(e.Payload)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	text := append(appendString([]byte{'['}, e.Service), ',')
	if e.Tenant == "" {
		text = append(text, "null"...)
	} else {
		text = appendString(text, e.Tenant)
	}
	text = append(appendString(append(text, ','), e.Command), ',')
	text = append(strconv.AppendInt(text, int64(e.CommandVersion), 10), ',')
	return sha256.Sum256(append(append(text, payload...), ']')), nil
}
