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
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemarkhq/tidemark/internal/api"
)

func (c *console) functions() template.FuncMap {
	return template.FuncMap{
		"age": age, "num": num, "text": text, "secs": seconds, "pretty": pretty, "dict": dict, "rows": rows, "facts": facts, "label": label,
		"escape": url.PathEscape, "prefix": func() string { return c.Prefix }, "static": func() string { return c.Prefix + "/static" },
		"act": c.actLink, "mend": c.mend, "more": more, "has": func(m both, name string) bool { _, ok := m[name]; return ok },
		"may": func(role Role, needs string) bool {
			want, err := api.ParseRole(needs)
			return err == nil && role >= want
		},
		"list": links, "more_than": func(all int64, shown int) bool { return all > int64(shown) }, "here": here,
		"plural": func(n any, one, many string) string {
			if num(n) == "1" {
				return "1 " + one
			}
			return num(n) + " " + many
		},
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

// age is a time as people say it, with the moment itself for those who hover or whose browser knows their zone.
func age(v any) template.HTML {
	t, ok := moment(v)
	if !ok {
		return "never"
	}
	utc := t.UTC().Format("2006-01-02 15:04:05 UTC")
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, t.UTC().Format(time.RFC3339), utc, ago(time.Since(t)))) //nolint:gosec // it is made of a time alone
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
		return fmt.Sprintf("%d m %d s", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%d h %d m", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%d d %d h", s/86400, s%86400/3600)
	}
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

// label is a column's name for people. It may be a key of a payload: any text.
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
		object, ok := item.(map[string]any)
		if !ok {
			return nil
		}
		for name := range object {
			if !slices.Contains(t.Head, name) {
				t.Head = append(t.Head, name)
			}
		}
	}
	sort.Strings(t.Head)
	for _, item := range list[:min(len(list), 100)] {
		var row []any
		for _, name := range t.Head {
			row = append(row, item.(map[string]any)[name])
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

// facts are the members of an object, by name.
func facts(v any) (out []fact) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for name, value := range object {
		out = append(out, fact{name, value})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// actLink is the address of an act's page.
func (c *console) actLink(name string, pairs ...any) (string, error) {
	if _, known := acts[name]; !known {
		return "", fmt.Errorf("there is no act %q", name)
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

// more is the query of a list's next part.
func more(filter url.Values, next *string) template.URL {
	v := url.Values{}
	for name, values := range filter {
		if name != "before" && name != "done" {
			v[name] = values
		}
	}
	if next != nil {
		v.Set("before", *next)
	}
	return template.URL(v.Encode()) //nolint:gosec // it is encoded, and the template escapes quotes
}

// button is an act that mends a cause.
type button struct {
	Label, Link string
}

// mends are the commands of causes that the console can do, and the act that does the same.
var mends = []struct {
	command *regexp.Regexp
	act     string
	names   []string
}{
	{regexp.MustCompile(`^tidemark gate open (\S+)`), "gate-open", []string{"gate"}},
	{regexp.MustCompile(`^tidemark worker resume (\S+)`), "worker-resume", []string{"worker"}},
	{regexp.MustCompile(`^tidemark route enable (\S+)`), "route-enable", []string{"route"}},
	{regexp.MustCompile(`^tidemark route set (\S+) --dry-run=false`), "route-live", []string{"route"}},
	{regexp.MustCompile(`^tidemark route disable (\S+)`), "route-disable", []string{"route"}},
	{regexp.MustCompile(`^tidemark dead-letter replay --route (\S+)`), "letters-replay", []string{"route"}},
	{regexp.MustCompile(`^tidemark dead-letter replay --source (\S+)`), "letters-replay", []string{"source"}},
	{regexp.MustCompile(`^tidemark dead-letter replay (\d+)$`), "letter-replay", []string{"id"}},
	{regexp.MustCompile(`^tidemark route replay (\S+) --from-seq (\d+) --to-seq (\d+)`), "route-replay", []string{"route", "from_seq", "to_seq"}},
	{regexp.MustCompile(`^tidemark stage live`), "stage-live", nil},
	{regexp.MustCompile(`^tidemark finding ack (\d+)`), "finding-acknowledge", []string{"id"}},
	{regexp.MustCompile(`^tidemark heartbeat deregister (\S+)`), "heartbeat-deregister", []string{"executor"}},
}

// mend is the act that does the same as a command, or nil.
func (c *console) mend(v any) *button {
	command := text(v)
	for _, m := range mends {
		found := m.command.FindStringSubmatch(command)
		if found == nil {
			continue
		}
		v := url.Values{}
		for i, name := range m.names {
			v.Set(name, strings.Trim(found[i+1], `'`))
		}
		return &button{acts[m.act].button + "…", c.Prefix + "/act/" + m.act + "?" + v.Encode()}
	}
	return nil
}
