package test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// However a forbidden key is spelled, at whatever depth, also in JSON that is encoded in a string, it is found. Each way of
// spelling leaves it readable.
func TestForbiddenKeysInOddSpellings(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "keys")
	found := func(document string) string {
		return one[string](s, `select coalesce(tidemark.forbidden_key_in($1::text::jsonb), '')`, document)
	}
	for document, want := range map[string]string{
		`{"ｐａｓｓｗｏｒｄ": 1}`:                                     "password", // full width
		`{"𝐩𝑎𝓈𝔰𝕨𝖔𝗿𝚍": 1}`:                                     "password", // mathematical letters
		`{"pa\u200bss\u2060word": 1}`:                         "password",
		`{"\ufefftoken\u200d": 1}`:                            "token",
		`{"pass\u00adword": 1}`:                               "password",
		`{"pa\u017f\u017fword": 1}`:                           "password", // long s
		`{"to\u212aen": 1}`:                                   "token",    // Kelvin
		`{"tókën": 1}`:                                        "token",
		`{"to\u0301ken": 1}`:                                  "token",
		`{"personal\u2010data": 1}`:                           "personal_data",
		`{"personal\u00a0data": 1}`:                           "personal_data",
		`{"personal/data": 1}`:                                "personal_data",
		`{"personal:data": 1}`:                                "personal_data",
		`{"personal\tdata": 1}`:                               "personal_data",
		`{"personal\ndata": 1}`:                               "personal_data",
		`{"personal\\data": 1}`:                               "personal_data",
		`{"[body]": 1}`:                                       "body",
		`{"$token": 1}`:                                       "token",
		`{"\\body": 1}`:                                       "body",
		`{"json": "{\"\\u0070assword\": 1}"}`:                 "password",
		`{"json": "{\"p\\u200bassword\": 1}"}`:                "password",
		`{"json": "{\\u0022password\\u0022: 1}"}`:             "password",
		`{"json": "{\"a\": \"{\\\"\\\\u0074oken\\\": 1}\"}"}`: "token",
		`{"pass\u0001word": 1}`:                               "password",
		// Others.
		`{"пароль": 1, "名前": 2, "\ud83d\ude00": 3, "ß": 4}`:           "",
		`{"a": "\\u0070assword", "b": "body\\", "c": "\\ud800 x"}`:    "",
		`{"a": ["token", ":"], "b": {"": "raw"}, "c": "x: \"raw\" "}`: "",
		`{"a": "x", "b": null, "raw material": true}`:                 "",
	} {
		if got := found(document); got != want {
			t.Errorf("%s: %q, want %q", document, got, want)
		}
	}

	keys := column[string](s, `select key from tidemark.forbidden_key order by 1`)
	between := []string{"", "", "", "_", "-", ".", " ", "/", ":", "+", "__", "\t", "\n", "\\", "\u200b", "\u200d", "\u00ad", "\u2013", "\ufe0f", "\u3000", "\u0301"}
	rapid.Check(t, func(r *rapid.T) {
		key := rapid.SampledFrom(keys).Draw(r, "key")
		spelled := rapid.SampledFrom(between[:11]).Draw(r, "before")
		for _, c := range strings.ReplaceAll(key, "_", "") {
			switch rapid.IntRange(0, 4).Draw(r, "letter") {
			case 0:
				c = unicode.ToUpper(c)
			case 1:
				c += 'ａ' - 'a'
			}
			spelled += string(c) + rapid.SampledFrom(between).Draw(r, "between")
		}
		var document any = map[string]any{"x": 1, spelled: rapid.SampledFrom([]any{1, nil, "x", []any{}}).Draw(r, "value")}
		for range rapid.IntRange(0, 3).Draw(r, "depth") {
			switch rapid.IntRange(0, 2).Draw(r, "in") {
			case 0:
				document = map[string]any{"a": document, "z": "the end"}
			case 1:
				document = []any{"a", document}
			default:
				text, err := json.Marshal(document)
				if err != nil {
					r.Fatal(err)
				}
				if rapid.Bool().Draw(r, "ascii") {
					text = []byte(ascii(string(text)))
				}
				document = map[string]any{"json": string(text)}
			}
		}
		text, err := json.Marshal(document)
		if err != nil {
			r.Fatal(err)
		}
		if got := found(string(text)); got != key {
			r.Errorf("%s: %q, want %q", text, got, key)
		}
	})
}

// ascii writes the letters of a JSON text as escapes, as some encoders do.
func ascii(text string) string {
	var b strings.Builder
	for _, c := range text {
		if c < 0x80 {
			b.WriteRune(c)
			continue
		}
		b.WriteString(`\u` + strings.ToLower(hex4(c)))
	}
	return b.String()
}

func hex4(c rune) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>12&15], digits[c>>8&15], digits[c>>4&15], digits[c&15]})
}
