package oracle_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidemarkhq/tidemark/sql/test/internal/oracle"
)

func ptr[T any](v T) *T { return &v }

func TestMatches(t *testing.T) {
	t.Parallel()
	plain := oracle.Event{Domain: "shop", Type: "order.paid", Payload: json.RawMessage(`{"eu": true, "n": 1.0}`)}
	keyed := plain
	keyed.Stream, keyed.Key = ptr("alert"), ptr("k1")
	for name, c := range map[string]struct {
		event  oracle.Event
		change func(*oracle.Route)
		want   bool
	}{
		"as it is":                      {plain, func(*oracle.Route) {}, true},
		"every domain":                  {plain, func(r *oracle.Route) { r.Domain = "*" }, true},
		"another domain":                {plain, func(r *oracle.Route) { r.Domain = "bank" }, false},
		"a domain is no pattern":        {plain, func(r *oracle.Route) { r.Domain = "sh*" }, false},
		"type":                          {plain, func(r *oracle.Route) { r.Type = "order.paid" }, true},
		"type, in another case":         {plain, func(r *oracle.Route) { r.Type = "Order.paid" }, false},
		"prefix of types":               {plain, func(r *oracle.Route) { r.Type = "order.*" }, true},
		"another prefix":                {plain, func(r *oracle.Route) { r.Type = "ord.*" }, false},
		"stream":                        {keyed, func(r *oracle.Route) { r.Stream = ptr("alert") }, true},
		"another stream":                {keyed, func(r *oracle.Route) { r.Stream = ptr("aler") }, false},
		"stream of an event without":    {plain, func(r *oracle.Route) { r.Stream = ptr("alert") }, false},
		"no stream asked for":           {keyed, func(*oracle.Route) {}, true},
		"key":                           {keyed, func(r *oracle.Route) { r.KeyFilter = ptr("k1") }, true},
		"prefix of keys":                {keyed, func(r *oracle.Route) { r.KeyFilter = ptr("k*") }, true},
		"another key":                   {keyed, func(r *oracle.Route) { r.KeyFilter = ptr("k") }, false},
		"every key, but there is none":  {plain, func(r *oracle.Route) { r.KeyFilter = ptr("*") }, false},
		"payload":                       {plain, func(r *oracle.Route) { r.PayloadFilter = json.RawMessage(`{"n": 1}`) }, true},
		"another payload":               {plain, func(r *oracle.Route) { r.PayloadFilter = json.RawMessage(`{"n": 2}`) }, false},
		"all must hold":                 {keyed, func(r *oracle.Route) { r.Stream, r.KeyFilter = ptr("alert"), ptr("x") }, false},
		"switches and worker play none": {plain, func(r *oracle.Route) { r.Enabled, r.Worker = false, "x" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := oracle.Matches(live(1, c.change), c.event); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

func TestPatternMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, value string
		want           bool
	}{
		{"*", "", true},
		{"*", "order.paid", true},
		{"order.*", "order.", true},
		{"order.*", "order", false},
		{"order.*", "orders.paid", false},
		{"order.paid", "order.paid", true},
		{"order.paid", "order.paid.late", false},
		{"order", "Order", false},
		{"größe.*", "größe.neu", true},
		{"100%.*", "100x.y", false}, // no wildcards of LIKE
		{"a_.*", "ab.c", false},
		{`a\.*`, `a\.b`, true},
		{"", "", true},
		{"", "x", false},
		{"k*", "k", true},
	} {
		if got := oracle.PatternMatches(c.pattern, c.value); got != c.want {
			t.Errorf("%q against %q: got %t, want %t", c.pattern, c.value, got, c.want)
		}
	}
}

// What the constraints of tidemark.outbound_route let through as type and as key_filter.
var (
	validType      = regexp.MustCompile(`^([*]|[^*]+|[^*]+[.][*])$`)
	validKeyFilter = regexp.MustCompile(`^[^*]*[*]?$`)
)

func FuzzPattern(f *testing.F) {
	for _, pattern := range []string{"*", "order.*", "order.paid", "k*", "", "**", "a*b", ".*", "a.b.*", "größe.*", "\x00*", "\xff.*", `\E.*`} {
		for _, value := range []string{"", "order.paid", "order.", "k1", "größe.neu", "\xff.", "*", "a*b"} {
			f.Add(pattern, value)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, value string) {
		got := oracle.PatternMatches(pattern, value)
		if want := byteByByte(pattern, value); got != want {
			t.Errorf("PatternMatches(%q, %q) = %t, want %t", pattern, value, got, want)
		}
		if !utf8.ValidString(pattern) {
			return
		}
		if strings.Contains(value, "*") || pattern == "" { // no type of an event holds a star
			return
		}
		switch {
		case validType.MatchString(pattern) && pattern != "*" && strings.HasSuffix(pattern, "*"):
			if !oracle.PatternMatches(pattern, strings.TrimSuffix(pattern, "*")+value) {
				t.Errorf("%q does not match what begins with its prefix", pattern)
			}
		case validType.MatchString(pattern) && pattern != "*", validKeyFilter.MatchString(pattern) && !strings.HasSuffix(pattern, "*"):
			if got != (pattern == value) {
				t.Errorf("%q, which is no prefix, against %q: %t", pattern, value, got)
			}
		}
	})
}

// byteByByte says whether a pattern matches, one byte at a time.
func byteByByte(pattern, value string) bool {
	for i := range len(pattern) {
		if i == len(pattern)-1 && pattern[i] == '*' {
			return true
		}
		if i >= len(value) || value[i] != pattern[i] {
			return false
		}
	}
	return len(value) == len(pattern)
}
