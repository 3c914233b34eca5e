package oracle_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/sql/test/internal/oracle"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// containment is checked against Go here and against PostgreSQL in TestContainsAgreesWithSQL.
var containment = []struct {
	document, filter string
	want             bool
}{
	{`{}`, `{}`, true},
	{`{"a": 1}`, `{}`, true},
	{`{}`, `{"a": 1}`, false},
	{`{"a": 1, "b": 2}`, `{"b": 2}`, true},
	{`{"a": 1}`, `{"a": 1, "b": 2}`, false},
	{`{"a": 1}`, `{"A": 1}`, false},
	{`{"": 1}`, `{"": 1}`, true},

	// numbers by value
	{`{"a": 1}`, `{"a": 1.0}`, true},
	{`{"a": 100}`, `{"a": 1e2}`, true},
	{`{"a": 1e2}`, `{"a": 0.1E+3}`, true},
	{`{"a": 0}`, `{"a": -0.00}`, true},
	{`{"a": 0}`, `{"a": 0e5}`, true},
	{`{"a": -1}`, `{"a": 1}`, false},
	{`{"a": 0.1}`, `{"a": 0.10000000000000000000000000000000001}`, false},
	{`{"a": 9007199254740993}`, `{"a": 9007199254740992}`, false},
	{`{"a": 1e-10}`, `{"a": 0.0000000001}`, true},
	{`{"a": 12.50}`, `{"a": 1250e-2}`, true},
	{`{"a": 1}`, `{"a": "1"}`, false},
	{`{"a": 1}`, `{"a": true}`, false},

	// other scalars
	{`{"a": "x"}`, `{"a": "x"}`, true},
	{`{"a": "x"}`, `{"a": "X"}`, false},
	{`{"a": "é"}`, `{"a": "\u00e9"}`, true},
	{`{"a": "é"}`, `{"a": "e\u0301"}`, false},
	{`{"a": null}`, `{"a": null}`, true},
	{`{}`, `{"a": null}`, false},
	{`{"a": false}`, `{"a": null}`, false},
	{`{"a": true}`, `{"a": true}`, true},

	// nested objects
	{`{"a": {"b": 1, "c": 2}}`, `{"a": {"b": 1}}`, true},
	{`{"a": {"b": 1}}`, `{"a": {}}`, true},
	{`{"a": {"b": 1}}`, `{"b": 1}`, false},
	{`{"a": {}}`, `{"a": []}`, false},
	{`{"a": []}`, `{"a": {}}`, false},
	{`{"a": {}}`, `{"a": null}`, false},

	// arrays
	{`{"a": [1, 2, 3]}`, `{"a": [3, 1]}`, true},
	{`{"a": [1, 2]}`, `{"a": [1, 1, 1]}`, true},
	{`{"a": [1, 2]}`, `{"a": [3]}`, false},
	{`{"a": [1]}`, `{"a": []}`, true},
	{`{"a": []}`, `{"a": []}`, true},
	{`{"a": []}`, `{"a": [1]}`, false},
	{`{"a": [1.0]}`, `{"a": [1]}`, true},
	{`{"a": [1, 2]}`, `{"a": 1}`, false}, // a bare scalar at the top only
	{`{"a": 1}`, `{"a": [1]}`, false},
	{`{"a": [[1, 2], [3]]}`, `{"a": [[2]]}`, true},
	{`{"a": [[1, 2], [3]]}`, `{"a": [[1, 3]]}`, false},
	{`{"a": [[1, 2], [3]]}`, `{"a": [1]}`, false},
	{`{"a": [[1]]}`, `{"a": [[]]}`, true},
	{`{"a": [1]}`, `{"a": [[]]}`, false},
	{`{"a": [{}]}`, `{"a": [[]]}`, false},
	{`{"a": [{"b": 1, "c": 2}, {"b": 2}]}`, `{"a": [{"b": 2}, {"c": 2}]}`, true},
	{`{"a": [{"b": 1}, {"c": 2}]}`, `{"a": [{"b": 1, "c": 2}]}`, false},
	{`{"a": [{"b": [1, 2]}]}`, `{"a": [{"b": [2]}, {"b": []}]}`, true},
	{`{"a": [null]}`, `{"a": [null]}`, true},
	{`{"a": [0]}`, `{"a": [false]}`, false},

	// equal keys: the last one counts, whole
	{`{"a": 1, "a": 2}`, `{"a": 2}`, true},
	{`{"a": 1, "a": 2}`, `{"a": 1}`, false},
	{`{"a": 2}`, `{"a": 1, "a": 2}`, true},
	{`{"a": {"b": 1}, "a": {"c": 1}}`, `{"a": {"b": 1}}`, false},

	// at the top, where no payload and no filter is, but jsonb has rules
	{`[1, 2]`, `1`, true},
	{`[1, 2]`, `3`, false},
	{`[[1]]`, `1`, false},
	{`1`, `[1]`, false},
	{`1`, `1.0`, true},
	{`"a"`, `"a"`, true},
	{`null`, `null`, true},
	{`[null]`, `null`, true},
	{`{}`, `1`, false},
	{`{}`, `[]`, false},
	{`[{"a": 1, "b": 1}]`, `{"a": 1}`, false},
}

func TestContains(t *testing.T) {
	t.Parallel()
	for _, c := range containment {
		if got := oracle.Contains(json.RawMessage(c.document), json.RawMessage(c.filter)); got != c.want {
			t.Errorf("%s @> %s: got %t, want %t", c.document, c.filter, got, c.want)
		}
	}
}

func TestContainsAgreesWithSQL(t *testing.T) {
	t.Parallel()
	conn := tidemarktest.NewEmptyDB(t).Connect(t)
	for _, c := range containment {
		var got bool
		if err := conn.QueryRow(t.Context(), `select $1::text::jsonb @> $2::text::jsonb`, c.document, c.filter).Scan(&got); err != nil {
			t.Fatalf("%s @> %s: %v", c.document, c.filter, err)
		}
		if got != c.want {
			t.Errorf("%s @> %s: PostgreSQL has %t, the table %t", c.document, c.filter, got, c.want)
		}
	}
}

func TestContainsOfWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{``, `{}`}, {`{}`, ``}, {`{`, `{}`}, {`{} {}`, `{}`}, {`{}`, `{},`}, {`NaN`, `NaN`}} {
		if oracle.Contains(json.RawMessage(c[0]), json.RawMessage(c[1])) {
			t.Errorf("%q contains %q", c[0], c[1])
		}
	}
}

func FuzzContains(f *testing.F) {
	for _, c := range containment {
		f.Add(c.document, c.filter)
	}
	f.Add(`{"a": 1e999999999999999999999}`, `{"a": 1e-99999999999999999999}`)
	f.Add(`{"a": `+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}`, `{"a": []}`)
	f.Fuzz(func(t *testing.T, document, filter string) {
		d, w := json.RawMessage(document), json.RawMessage(filter)
		got := oracle.Contains(d, w)
		if json.Valid(d) != oracle.Contains(d, d) {
			t.Errorf("%s is valid JSON: %t; contains itself: %t", document, json.Valid(d), oracle.Contains(d, d))
		}
		if !json.Valid(d) || !json.Valid(w) {
			return
		}
		in := func(s string) json.RawMessage { return json.RawMessage(`{"in": [` + s + `]}`) }
		if isScalar(w) == isScalar(d) && got != oracle.Contains(in(document), in(filter)) {
			t.Errorf("%s @> %s is %t, and the other way round inside an array", document, filter, got)
		}
		// More in the document, or the same asked for twice, changes nothing.
		more := json.RawMessage(`[` + document + `, {"more": []}, []]`)
		twice := json.RawMessage(`[` + filter + `, ` + filter + `]`)
		if got && isScalar(w) == isScalar(d) && !oracle.Contains(more, twice) {
			t.Errorf("%s contains %s, and does not beside others", document, filter)
		}
	})
}

func isScalar(text json.RawMessage) bool {
	trimmed := strings.TrimLeft(string(text), " \t\r\n")
	return trimmed[0] != '{' && trimmed[0] != '['
}
