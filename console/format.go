package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemarkhq/tidemark/internal/api"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func (c *console) functions() template.FuncMap {
	return template.FuncMap{
		"age": age, "due": due, "join": func(all []string) string { return strings.Join(all, ",") }, "num": num, "bytes": size, "counts": counts, "text": text, "secs": seconds, "pretty": pretty, "dict": dict, "rows": rows, "facts": facts, "label": label,
		"escape": segment, "prefix": func() string { return c.Prefix }, "static": func() string { return c.Prefix + "/static" },
		"act": c.actLink, "wait": c.waitLink, "most": most, "span": func(first, last int64) int64 { return last - first + 1 }, "why": whyWaits, "others": otherLines, "lasted": func(from, to time.Time) string { return short(to.Sub(from).Seconds()) }, "interval": interval, "json": func(v json.RawMessage) string { return text(decode(v)) }, "lived": lived, "pass": pass, "verified": verifiedOf, "paused": paused, "some": someCursors, "opened": opened, "promise": func(safety string) string { return promises[safety] }, "any_counted": anyCounted, "claimed": claimed, "topic": topicOf, "short": short, "mend": c.mend, "more": more, "has": func(m both, name string) bool { _, ok := m[name]; return ok },
		"may": func(role Role, needs string) bool {
			want, err := api.ParseRole(needs)
			return err == nil && role >= want && (!c.ReadOnly || want == Viewer)
		},
		"list": links, "more_than": func(all int64, shown int) bool { return all > int64(shown) }, "here": here,
		"plural": plural,
	}
}

// link is a page in the navigation.
type link struct{ Path, Label string }

func links(pairs ...string) (all []link) {
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, link{pairs[i], pairs[i+1]})
	}
	return all
}

// here tells whether a page is one of those below a link.
func here(page, link string) bool {
	return page == link || link != "/" && strings.HasPrefix(page, link+"/")
}

// age shows how long ago a time was. The element has the time itself, which a browser shows on hover.
func age(v any) template.HTML {
	t, ok := moment(v)
	if !ok {
		return "never"
	}
	utc := t.UTC().Format("2006-01-02 15:04:05 UTC")
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, t.UTC().Format(time.RFC3339), utc, ago(time.Since(t)))) //nolint:gosec // it is made of a time alone
}

// due shows when the next attempt of what waits is.
func due(v any) template.HTML {
	if t, ok := moment(v); ok && t.Before(time.Now()) {
		return "now"
	}
	return age(v)
}

func moment(v any) (time.Time, bool) {
	switch t := v.(type) {
	case time.Time:
		return t, !t.IsZero()
	case *time.Time:
		if t != nil {
			return *t, true
		}
	}
	return time.Time{}, false
}

func ago(d time.Duration) string {
	if d < 0 {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

// span is a duration in its two greatest units.
func span(d time.Duration) string {
	switch s := int64(d.Seconds()); {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return units(s/60, "m", s%60, "s")
	case s < 86400:
		return units(s/3600, "h", s%3600/60, "m")
	default:
		return units(s/86400, "d", s%86400/3600, "h")
	}
}

func units(n int64, unit string, rest int64, smaller string) string {
	if rest == 0 {
		return fmt.Sprintf("%d %s", n, unit)
	}
	return fmt.Sprintf("%d %s %d %s", n, unit, rest, smaller)
}

// seconds is a number of seconds as people say it; nil: nothing.
func seconds(v any) string {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer {
		if r.IsNil() {
			return "—"
		}
		r = r.Elem()
	}
	if !r.CanInt() {
		return "—"
	}
	return span(time.Duration(r.Int()) * time.Second)
}

// num is a number in groups of three digits.
func num(v any) string {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer {
		if r.IsNil() {
			return "—"
		}
		r = r.Elem()
	}
	if r.CanFloat() {
		return strconv.FormatFloat(r.Float(), 'f', 1, 64)
	}
	if !r.CanInt() {
		return text(v)
	}
	digits := strconv.FormatInt(r.Int(), 10)
	start := len(digits) % 3
	var groups []string
	if sign := strings.HasPrefix(digits, "-"); sign || len(digits) <= 3 {
		return digits
	}
	if start > 0 {
		groups = append(groups, digits[:start])
	}
	for i := start; i < len(digits); i += 3 {
		groups = append(groups, digits[i:i+3])
	}
	return strings.Join(groups, ",")
}

// size is a number of bytes in the unit that gives it one to three digits before the point.
func size(bytes int64) string {
	n, unit := float64(bytes), 0
	for n >= 1024 && unit < 5 {
		n, unit = n/1024, unit+1
	}
	name := []string{"B", "kB", "MB", "GB", "TB", "PB"}[unit]
	if unit == 0 || n >= 10 {
		return fmt.Sprintf("%.0f %s", n, name)
	}
	return fmt.Sprintf("%.1f %s", n, name)
}

// counts shows how many came to what.
func counts(v json.RawMessage) string {
	var all []string
	for _, f := range facts(decode(v)) {
		if n, err := strconv.ParseInt(text(f.Value), 10, 64); err == nil {
			all = append(all, num(n)+" "+visible(f.Name))
		}
	}
	if len(all) == 0 {
		return "—"
	}
	return strings.Join(all, ", ")
}

// text is any value as text; nil and empty: a dash.
func text(v any) string {
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer || r.Kind() == reflect.Interface {
		if r.IsNil() {
			return "—"
		}
		r = r.Elem()
	}
	if !r.IsValid() {
		return "—"
	}
	var s string
	switch t := r.Interface().(type) {
	case json.RawMessage:
		s = string(t)
	case []string:
		s = strings.Join(t, ", ")
	case object:
		for _, f := range facts(t) {
			s += ", " + f.Name + " " + text(f.Value)
		}
		s = strings.TrimPrefix(s, ", ")
	case []any:
		for _, item := range t {
			s += ", " + text(item)
		}
		s = strings.TrimPrefix(s, ", ")
	case bool:
		s = map[bool]string{true: "yes", false: "no"}[t]
	case time.Time:
		s = t.UTC().Format("2006-01-02 15:04:05 UTC")
	default:
		s = fmt.Sprint(t)
	}
	if s == "" || s == "null" {
		return "—"
	}
	return visible(s)
}

// hidden are characters that reorder or hide text.
var hidden = regexp.MustCompile("[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\U000e0000-\U000e007f]")

// visible shows characters that would reorder or hide text as their numbers.
func visible(s string) string {
	return hidden.ReplaceAllStringFunc(s, func(c string) string { return fmt.Sprintf("\\u%04x", []rune(c)[0]) })
}

// longest is how much of a payload a page shows.
const longest = 64 << 10

// pretty is JSON over several lines.
func pretty(v json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, v, "", "  ") != nil {
		out.Reset()
		out.Write(v)
	}
	if out.Len() > longest {
		return visible(strings.ToValidUTF8(out.String()[:longest], "")) + fmt.Sprintf("\n… %d bytes in all: the API and tidemark event show have the whole", out.Len())
	}
	return visible(out.String())
}

// dict makes a map of names and values for a template.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// label turns the name of a column into a heading. The name may be a key of a payload, which is any text.
func label(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	if size == 0 {
		return "—"
	}
	return visible(string(unicode.ToUpper(first)) + strings.ReplaceAll(name[size:], "_", " "))
}

// table is a list of objects as a table.
type table struct {
	Head []string
	Rows [][]any
}

// rows shows a list of objects that has simple values as a table; nil: it is none.
func rows(v any) *table {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil
	}
	var t table
	for _, item := range list {
		o, ok := item.(object)
		if !ok {
			return nil
		}
		for _, f := range o {
			if !slices.Contains(t.Head, f.Name) {
				t.Head = append(t.Head, f.Name)
			}
		}
	}
	t.Head = slices.DeleteFunc(t.Head, func(name string) bool {
		return !slices.ContainsFunc(list, func(item any) bool { return !none(item.(object).get(name)) })
	})
	for _, item := range list[:min(len(list), 100)] {
		var row []any
		for _, name := range t.Head {
			row = append(row, item.(object).get(name))
		}
		t.Rows = append(t.Rows, row)
	}
	return &t
}

// fact is a name and a value.
type fact struct {
	Name  string
	Value any
}

// object is a JSON object, in the order of its text.
type object []fact

func (o object) get(name string) any {
	for _, f := range o {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// none: there is nothing to show.
func none(v any) bool { return text(v) == "—" }

// facts are the members of an object that say something.
func facts(v any) (out []fact) {
	o, _ := v.(object)
	for _, f := range o {
		if !none(f.Value) {
			out = append(out, f)
		}
	}
	return out
}

// decode reads JSON for showing: objects keep the order of their members.
func decode(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, _ := next(d) // the API has made it
	return v
}

func next(d *json.Decoder) (any, error) {
	token, err := d.Token()
	switch token {
	case json.Delim('{'):
		o := object{}
		for d.More() && err == nil {
			name, _ := d.Token()
			var value any
			value, err = next(d)
			o = append(o, fact{fmt.Sprint(name), value})
		}
		_, _ = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() && err == nil {
			var value any
			value, err = next(d)
			list = append(list, value)
		}
		_, _ = d.Token()
		return list, err
	}
	return token, err
}

// actLink is the address of an act's page.
func (c *console) actLink(name string, pairs ...any) (string, error) {
	if _, known := acts[name]; !known {
		return "", fmt.Errorf("unknown act %q", name)
	}
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		r := reflect.ValueOf(pairs[i+1])
		if r.Kind() == reflect.Pointer {
			r = r.Elem()
		}
		if r.IsValid() {
			v.Set(pairs[i].(string), fmt.Sprint(r.Interface()))
		}
	}
	return c.Prefix + "/act/" + name + "?" + v.Encode(), nil
}

// more is the query of a list's next part: before a number, or after a name; or as the list is called on a page with several.
func more(filter url.Values, next any, as ...string) template.URL {
	v := url.Values{}
	for name, values := range filter {
		if name != "before" && name != "after" && name != "done" {
			v[name] = values
		}
	}
	switch n := next.(type) {
	case *int64:
		v.Set("before", strconv.FormatInt(*n, 10))
	case *string:
		v.Set(append(as, "after")[0], *n)
	}
	return template.URL(v.Encode()) //nolint:gosec // it is encoded, and the template escapes quotes
}

// topicOf is the topic of commands that a source is.
func topicOf(source string) string { return strings.TrimPrefix(source, "kafka:") }

// otherLines is what is not shown of the first lines of a group of dead letters.
func otherLines(g store.LetterGroup) string {
	var parts []string
	if other := g.Kinds - int64(len(g.Lines)); other > 0 {
		parts = append(parts, "and "+plural(other, "other first line", "other first lines"))
	}
	if g.Letters > store.LettersRead {
		parts = append(parts, "of the newest "+num(int64(store.LettersRead)))
	}
	return strings.Join(parts, ", ")
}

// plural is a number with the word for as many.
func plural(n any, one, many string) string {
	if num(n) == "1" {
		return "1 " + one
	}
	return num(n) + " " + many
}
