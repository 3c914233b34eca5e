package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Cell is a value for people: yes and no, times in UTC, lists with commas. A nil pointer is empty.
func Cell(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return Choose(v, "yes", "no")
	case time.Time:
		return v.UTC().Format("2006-01-02 15:04:05 UTC")
	case json.RawMessage:
		return string(v)
	case []string:
		return strings.Join(v, ", ")
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		return Cell(v.Elem().Interface())
	}
	return fmt.Sprint(value)
}

// Or is the value for people, or if that is empty the other text.
func Or(value any, other string) string {
	if text := Cell(value); text != "" {
		return text
	}
	return other
}

// Choose is one of two texts.
func Choose(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// Open is the state of a gate.
func Open(open bool) string { return Choose(open, "open", "closed") }

// Cut shortens a long text, visibly.
func Cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// Age is how long ago t was, roughly. The database's clock may be a little ahead.
func (p *Printer) Age(t time.Time) string { return Span(max(p.Now.Sub(t), 0)) + " ago" }

// AgeOr is Age, or the other text if there is no time.
func (p *Printer) AgeOr(t *time.Time, never string) string {
	if t == nil {
		return never
	}
	return p.Age(*t)
}

// At is a time and its age.
func (p *Printer) At(t time.Time) string { return Cell(t) + ", " + p.Age(t) }

// Span is a duration, roughly.
func Span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Seconds is Span for a number of seconds, or empty.
func Seconds(n *int64) string {
	if n == nil {
		return ""
	}
	return Span(time.Duration(*n) * time.Second)
}

// Count is a number with its noun. If the plural is more than an s, many has it.
func Count[N ~int | ~int64](n N, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// ID reads the number of a thing.
func ID(thing, text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, Usagef("%q is not the number of a %s", text, thing)
	}
	return id, nil
}

// Literal is a text as SQL writes it.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

const timeForms = "RFC 3339, or an age (90m, 24h, 7d)"

// Time is a flag that takes a time, as RFC 3339 or as an age.
type Time struct{ flag, text string }

// TimeFlag adds the flag. usage says what is compared with the time.
func TimeFlag(flags *pflag.FlagSet, t *Time, flag, initial, usage string) {
	t.flag = flag
	flags.StringVar(&t.text, flag, initial, usage+": "+timeForms)
}

// Given tells whether there is a time.
func (t Time) Given() bool { return t.text != "" }

// At is the time that was given, or the zero time.
func (t Time) At(now time.Time) (time.Time, error) {
	if t.text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, t.text); err == nil {
		return at, nil
	}
	age := t.text
	if days, ok := strings.CutSuffix(age, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil {
			age = fmt.Sprintf("%dh", n*24)
		}
	}
	if d, err := time.ParseDuration(age); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, Usagef("--%s %q is neither a time such as 2026-01-31T12:00:00Z nor an age such as 90m, 24h or 7d", t.flag, t.text)
}

// Window is the flags --since and --until.
type Window struct{ Since, Until Time }

// Add adds the flags. what is compared, such as "emitted".
func (w *Window) Add(flags *pflag.FlagSet, what, since string) {
	TimeFlag(flags, &w.Since, "since", since, what+" at this time or later")
	TimeFlag(flags, &w.Until, "until", "", what+" before this time")
}

// Times reads both. The zero time: not given.
func (w *Window) Times(now time.Time) (since, until time.Time, err error) {
	if since, err = w.Since.At(now); err != nil {
		return since, until, err
	}
	until, err = w.Until.At(now)
	return since, until, err
}

// FromUsage describes the flag --from, which StartOf reads.
const FromUsage = "now, start, the number of an event, a time (RFC 3339) or an age (7d)"

// StartOf reads where a worker or a route begins. What is neither now, start nor a number is a time.
func StartOf(text string, now time.Time) (string, error) {
	if _, err := strconv.ParseUint(text, 10, 63); err == nil || text == "now" || text == "start" {
		return text, nil
	}
	at, err := Time{"from", text}.At(now)
	if err != nil || text == "" {
		return "", Usagef("--from %q is neither now, start, the number of an event, nor a time such as 2026-01-31T12:00:00Z or 7d", text)
	}
	return at.UTC().Format(time.RFC3339Nano), nil
}

// PerSecond reads what --rate is given, such as 50 or 50/s; 0: nothing.
func PerSecond(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	rate, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	if err != nil || rate <= 0 {
		return 0, Usagef("--rate %q is not a number a second, such as 50/s", text)
	}
	return rate, nil
}

// Limit adds the flag --limit.
func Limit(flags *pflag.FlagSet, limit *int, initial int) {
	flags.IntVar(limit, "limit", initial, "at most this many; 0: all")
}

// CheckLimit refuses a --limit that is negative.
func CheckLimit(limit int) error {
	if limit < 0 {
		return Usagef("--limit must not be negative")
	}
	return nil
}

// Page reads up to limit rows, and tells whether there are more: it asks for one more.
func Page[T any](limit int, read func(limit int) ([]T, error)) (all []T, more bool, err error) {
	if err := CheckLimit(limit); err != nil {
		return nil, false, err
	}
	if limit == 0 {
		all, err = read(0)
		return all, false, err
	}
	if all, err = read(limit + 1); err != nil || len(all) <= limit {
		return all, false, err
	}
	return all[:limit], true, nil
}
