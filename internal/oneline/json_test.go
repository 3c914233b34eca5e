package oneline_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/tidemarkhq/tidemark/internal/oneline"
)

// FuzzJSON checks that JSON keeps its value, and that no character is left in it that controls a terminal or changes the direction
// of text.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{"", "plain", "\x1b[31m\x7f\u0085\u009b2J", "\u202e\u2066\u200f\u061c\u2028", "\xff\xfe", "漢字 · ünï שלום"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, key, text string) {
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(map[string]string{key: text}); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		n, err := oneline.JSONWriter{Writer: &out}.Write(line.Bytes())
		if n != line.Len() || err != nil {
			t.Errorf("%d, %v, want %d written", n, err, line.Len())
		}
		got := strings.TrimSuffix(out.String(), "\n")
		if strings.ContainsFunc(got, func(r rune) bool {
			return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.In(r, unicode.Zl, unicode.Zp)
		}) {
			t.Errorf("%+q gives %+q", text, got)
		}
		var before, after any
		if err := json.Unmarshal(line.Bytes(), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(got), &after); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%+q gives %+q: %v", line.String(), got, err)
		}
	})
}
