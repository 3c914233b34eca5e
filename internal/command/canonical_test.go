package command_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/internal/command"
)

// The SQL function is tested with the same file.
func TestCanonical(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/canonical.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ In, Out string }
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) == 0 {
		t.Fatal(err)
	}
	for _, v := range vectors {
		got, err := command.Canonical(json.RawMessage(v.In))
		if err != nil || string(got) != v.Out {
			t.Errorf("%s:\ngot  %s (%v)\nwant %s", v.In, got, err, v.Out)
		}
		if again, err := command.Canonical(got); err != nil || string(again) != v.Out {
			t.Errorf("%s: again %s (%v)", v.In, again, err)
		}
	}
	for _, bad := range []string{``, `{`, `1 2`, `{"a":1,"a":1}`, `"\ud800"`, `"\u0000"`, "\"\xff\"", `1e131072`} {
		if got, err := command.Canonical(json.RawMessage(bad)); err == nil {
			t.Errorf("%q: got %s", bad, got)
		}
	}
}

// A number has one canonical form, however it is written, and two numbers have two.
func TestCanonicalNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[1-9][0-9]{0,40}`).Draw(t, "digits")
		exponent := rapid.IntRange(-400, 400).Draw(t, "exponent")
		shift := rapid.IntRange(0, 30).Draw(t, "shift")
		plain := fmt.Sprintf("%se%d", digits, exponent)
		forms := []string{
			plain, fmt.Sprintf("%s%sE%+d", digits, strings.Repeat("0", shift), exponent-shift),
			fmt.Sprintf("0.%s%se%d", strings.Repeat("0", shift), digits, exponent+shift+len(digits)),
			fmt.Sprintf("%s.%se%d", digits[:1], digits[1:]+"0", exponent+len(digits)-1),
		}
		want := canonical(t, plain)
		for _, form := range forms {
			if got := canonical(t, form); got != want {
				t.Fatalf("%s is %s, %s is %s", plain, want, form, got)
			}
		}
		if other := canonical(t, fmt.Sprintf("%s1e%d", digits, exponent-1)); other == want {
			t.Fatalf("%s and another number are both %s", plain, want)
		}
	})
}

// The order of members, blanks and escapes do not matter; each value does.
func TestCanonicalOfOneValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := anyValue(t, 3)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		a, b := write(r, value), write(r, value)
		if canonical(t, a) != canonical(t, b) {
			t.Fatalf("%s\n%s\n%s\n%s", a, b, canonical(t, a), canonical(t, b))
		}
		var before, after any
		if json.Unmarshal([]byte(a), &before) != nil || json.Unmarshal([]byte(canonical(t, a)), &after) != nil ||
			fmt.Sprint(before) != fmt.Sprint(after) {
			t.Fatalf("%s became %s", a, canonical(t, a))
		}
	})
}

func canonical(t interface{ Fatal(...any) }, text string) string {
	got, err := command.Canonical(json.RawMessage(text))
	if err != nil {
		t.Fatal(text, err)
	}
	return string(got)
}

var texts = rapid.StringOfN(rapid.RuneFrom([]rune("ab\n\"\\/é\u2028\ue000\uffff😀\U00010000")), 0, 4, -1)

func anyValue(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 4+min(depth, 2)).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2, 3:
		return rapid.Int32().Draw(t, "number")
	case 4:
		return texts.Draw(t, "text")
	case 5:
		all := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			all = append(all, anyValue(t, depth-1))
		}
		return all
	}
	all := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		all[texts.Draw(t, "name")] = anyValue(t, depth-1)
	}
	return all
}

// write writes a value in some way.
func write(r *rand.Rand, value any) string {
	blank := func() string { return []string{"", " ", "\n\t"}[r.IntN(3)] }
	var parts []string
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value { // in any order
			parts = append(parts, blank()+write(r, name)+blank()+":"+blank()+write(r, member)+blank())
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		for _, element := range value {
			parts = append(parts, blank()+write(r, element)+blank())
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		text := ""
		for _, c := range value {
			if c < 0x20 || c == '"' || c == '\\' || c <= 0xffff && r.IntN(2) == 0 {
				text += fmt.Sprintf(`\u%04x`, c)
			} else {
				text += string(c)
			}
		}
		return `"` + text + `"`
	case int32:
		return fmt.Sprintf([]string{"%d", "%d.0", "%de0", "%d.00E-0"}[r.IntN(4)], value)
	default:
		text, _ := json.Marshal(value)
		return string(text)
	}
}
