package strict

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Tokens finds what a json.Decoder finds, and ends with any text.
func FuzzTokens(f *testing.F) {
	for _, text := range []string{
		`0`, ` -1.5E-3 `, `""`, `null`, `[]`, `{}`, "[ 1,\t2\r\n,3e5 ]", `[true,false,null]`, `{"a":"b","c":{"d":[{}]}}`, `{ "a" : 1 , "b" : [ -0 , "x" ] }`,
		`["\"", "\\", "\\\"", "a,b", "{", "]:", "\u0041\n", "é", "\ud83d\ude00"]`, `{"\u0061":"","\\":{"\"":0}}`, `[[[1],2],3]`,
		`"`, `"\`, `["a`, `{"a":1,`, `]`, `:`, `tru`, `1,2`, "\"\xff\"", `[1]]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		valid := utf8.Valid(text) && json.Valid(text)
		var want, got []any
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		for token, err := decoder.Token(); err == nil; token, err = decoder.Token() {
			want = append(want, token)
		}
		for token := range Tokens(text) {
			switch {
			case !valid: // it ends
			case strings.Contains("{}[]", string(token)):
				got = append(got, json.Delim(token[0]))
			case token[0] == '"':
				got = append(got, unquote(token))
			case IsNumber(token):
				got = append(got, json.Number(token))
			default:
				got = append(got, map[string]any{"true": true, "false": false, "null": nil}[string(token)])
			}
		}
		if valid && !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	})
}
