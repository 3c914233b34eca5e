package oracle

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// A decimal is the exact value of a JSON number: sign × 0.digits × 10^exponent. An exponent takes no room
// here, where a big.Rat would write it out: 1e999999999 in a document must not stop the worker.
type decimal struct {
	sign     int    // -1, 0, 1; 0 leaves the rest empty
	digits   string // neither begins nor ends with 0
	exponent int64
}

func decimalOf(n json.Number) decimal {
	text := string(n)
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(text), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")

	digits := strings.TrimLeft(whole+fraction, "0")
	exponent := exponentOf(exponentText) + int64(len(whole)) - int64(len(whole+fraction)-len(digits))
	digits = strings.TrimRight(digits, "0")
	switch {
	case digits == "":
		return decimal{}
	case negative:
		return decimal{-1, digits, exponent}
	default:
		return decimal{1, digits, exponent}
	}
}

// exponentOf bounds what int64 cannot hold; PostgreSQL refuses numbers long before.
func exponentOf(text string) int64 {
	const bound = math.MaxInt64 / 2
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && text == "" {
		return 0
	}
	return max(-bound, min(n, bound)) // out of range, ParseInt gives the nearest
}

func (d decimal) compare(other decimal) int {
	if d.sign != other.sign || d.sign == 0 {
		return cmp.Compare(d.sign, other.sign)
	}
	return d.sign * cmp.Or(cmp.Compare(d.exponent, other.exponent), strings.Compare(d.digits, other.digits))
}

func (d decimal) isWhole() bool { return d.exponent >= int64(len(d.digits)) }
