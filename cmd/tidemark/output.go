package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/oneline"
)

// printer writes what a command found: tables for people, or an object a line for
// programs. Remarks go to stderr and never into the output.
type printer struct {
	out, err io.Writer
	json     bool
	terminal bool
	colour   bool // of the first cell of a line, where it is a word of paints
	now      time.Time
}

func (a *app) printer(cmd *cobra.Command) (*printer, error) {
	if a.output != "table" && a.output != "json" {
		return nil, usagef("--output is %q, must be table or json", a.output)
	}
	out, isFile := cmd.OutOrStdout().(*os.File)
	terminal := isFile && isTerminal(out)
	return &printer{
		out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), json: a.output == "json", now: time.Now(),
		terminal: terminal, colour: terminal && os.Getenv("NO_COLOR") == "",
	}, nil
}

// object writes v as JSON on a line.
func (p *printer) object(v any) error {
	encoder := json.NewEncoder(p.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// linef writes a line for people.
func (p *printer) linef(format string, args ...any) error {
	_, err := fmt.Fprintln(p.out, oneline.Clean(fmt.Sprintf(format, args...)))
	return err
}

// note remarks on the work.
func (p *printer) note(format string, args ...any) {
	fmt.Fprintln(p.err, "tidemark: "+oneline.Clean(fmt.Sprintf(format, args...)))
}

// column is a column of a table.
type column[T any] struct {
	name string
	cell func(T) string
}

// rows writes rows as a table or as objects. none is remarked where there is no row.
func rows[T any](p *printer, none string, all []T, columns ...column[T]) error {
	if p.json {
		for _, row := range all {
			if err := p.object(row); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		p.note("%s", none)
		return nil
	}
	var lines [][]string
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	lines = append(lines, names)
	for _, row := range all {
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.cell(row))
		}
		lines = append(lines, cells)
	}
	return p.align(lines)
}

// fact is a line of a description.
type fact struct{ name, value string }

// facts writes a description of one thing. Empty values are left out.
func (p *printer) facts(all ...fact) error {
	var lines [][]string
	for _, f := range all {
		if f.value != "" {
			lines = append(lines, []string{f.name, f.value})
		}
	}
	return p.align(lines)
}

func (p *printer) align(lines [][]string) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, cells := range lines {
		for i := range cells {
			cells[i] = oneline.Clean(cells[i])
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(p.out, p.paint(strings.TrimRight(line, " \n"))); err != nil {
			return err
		}
	}
	return nil
}

// paints are the colours of the words that say how something is.
var paints = map[string]string{
	"ok": "32", "warn": "33", "bad": "31", "unknown": "35",
	"info": "32", "warning": "33", "high": "31", "critical": "31;1",
}

// paint colours the first word of a line, after the columns have their widths.
func (p *printer) paint(line string) string {
	word, _, _ := strings.Cut(line, " ")
	if colour := paints[word]; p.colour && colour != "" {
		return "\x1b[" + colour + "m" + word + "\x1b[0m" + line[len(word):]
	}
	return line
}

// cut shortens a long text, visibly.
func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func number[N ~int | ~int64](n N) string { return fmt.Sprint(n) }

// optional is a number that there may not be.
func optional[N ~int | ~int64](n *N) string {
	if n == nil {
		return ""
	}
	return number(*n)
}

func utcOr(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return utc(*t)
}

// utc is a time for people.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// age tells how long ago t was, roughly. The database's clock may be a little ahead.
func (p *printer) age(t time.Time) string { return span(max(p.now.Sub(t), 0)) + " ago" }

// span is a duration, roughly.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// seconds is span for a number of seconds that may be missing.
func seconds(n *int64) string {
	if n == nil {
		return ""
	}
	return span(time.Duration(*n) * time.Second)
}

func (p *printer) ageOr(t *time.Time, never string) string {
	if t == nil {
		return never
	}
	return p.age(*t)
}

// count is a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
