package oneline_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tidemarkhq/tidemark/internal/oneline"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain · ünï 漢字 🙂 שלום":                  "plain · ünï 漢字 🙂 שלום",
		"a\nb\tc\u2028d\u2029e":                  "a b c d e",
		"\x1b[31mred\x00\r\x7f\u0085\u009b":      "·[31mred·····",
		"\u202aa\u202bb\u202cc\u202dd\u202ee":    "·a·b·c·d·e",
		"\u2066a\u2067b\u2068c\u2069d":           "·a·b·c·d",
		"\u200ea\u200fb\u061cc":                  "·a·b·c",
		"exe.\u202egpj":                          "exe.·gpj",
		"joined: \u200d\u200c, half a rune \xff": "joined: \u200d\u200c, half a rune \ufffd",
	} {
		if got := oneline.Clean(text); got != want {
			t.Errorf("%+q gives %+q, want %+q", text, got, want)
		}
	}
}

// FuzzClean checks that the result is always one line of valid text without control or direction characters, and that
// Clean leaves it as it is.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\x1b]0;title\x07", "\u202e\u2066\u200f\u061c\u2028", "\xff\xfe", "漢字 · ünï"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := oneline.Clean(text)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool {
			return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.In(r, unicode.Zl, unicode.Zp)
		}) {
			t.Errorf("%+q gives %+q", text, got)
		}
		if again := oneline.Clean(got); again != got {
			t.Errorf("%+q becomes %+q", got, again)
		}
		if utf8.RuneCountInString(got) != utf8.RuneCountInString(text) {
			t.Errorf("%+q gives %+q, of another length", text, got)
		}
	})
}
