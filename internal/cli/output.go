package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/tidemarkhq/tidemark/internal/oneline"
)

// Printer writes the results of a command: text for people, or one JSON object a line. Remarks go to stderr. The first
// error of writing is kept and becomes the error of the command.
type Printer struct {
	Out, Err io.Writer
	JSON     bool
	Terminal bool
	Now      time.Time
	colour   bool // the first word of a line, if paints has it
	width    int  // of the terminal; 0: lines of any length
	failed   error
}

func (a *App) printer(cmd *cobra.Command) (*Printer, error) {
	if a.output != "table" && a.output != "json" {
		return nil, Usagef("--output is %q, must be table or json", a.output)
	}
	p := &Printer{Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(), JSON: a.output == "json", Now: time.Now()}
	if out, isFile := p.Out.(*os.File); isFile {
		p.width, p.Terminal = terminal(out)
	}
	p.colour = p.Terminal && os.Getenv("NO_COLOR") == "" && !Dumb()
	return p, nil
}

// Dumb tells whether the terminal says that it knows no control sequences.
func Dumb() bool { return os.Getenv("TERM") == "dumb" }

// IsTerminal tells whether the file is a terminal.
func IsTerminal(f *os.File) bool {
	_, is := terminal(f)
	return is
}

// terminal tells whether the file is a terminal, and its width; a terminal that does not tell has 80 columns.
func terminal(f *os.File) (width int, is bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	switch {
	case err != nil:
		return 0, false
	case size.Col == 0:
		return 80, true
	}
	return int(size.Col), true
}

// Object writes a value as JSON on one line, which cannot control the terminal.
func (p *Printer) Object(v any) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		p.fail(err)
		return
	}
	p.Write(oneline.JSON(line.Bytes()))
}

// Write writes text as it is.
func (p *Printer) Write(text []byte) {
	_, err := p.Out.Write(text)
	p.fail(err)
}

func (p *Printer) fail(err error) {
	if p.failed == nil {
		p.failed = err
	}
}

// Line writes a line for people.
func (p *Printer) Line(format string, args ...any) {
	p.Write([]byte(oneline.Clean(fmt.Sprintf(format, args...)) + "\n"))
}

// Note writes a remark to stderr.
func (p *Printer) Note(format string, args ...any) {
	p.remark("tidemark: " + fmt.Sprintf(format, args...))
}

// Hint writes to stderr what to do about a remark.
func (p *Printer) Hint(format string, args ...any) { p.remark("hint: " + fmt.Sprintf(format, args...)) }

func (p *Printer) remark(text string) { fmt.Fprintln(p.Err, oneline.Clean(text)) }

// Result writes the result of a command: the value as JSON, or the line.
func (p *Printer) Result(value any, format string, args ...any) error {
	if p.JSON {
		p.Object(value)
	} else {
		p.Line(format, args...)
	}
	return p.failed
}

// Show writes one thing: the value as JSON, or the facts.
func (p *Printer) Show(value any, facts ...any) error {
	if p.JSON {
		p.Object(value)
	} else {
		p.Facts(facts...)
	}
	return p.failed
}

// Fields is a JSON object of names and values, in this order.
type Fields []any

// MarshalJSON writes the object.
func (f Fields) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	separator := "{"
	for i := 0; i < len(f); i += 2 {
		fmt.Fprintf(&text, "%s%q:", separator, f[i])
		if err := encoder.Encode(f[i+1]); err != nil {
			return nil, err
		}
		separator = ","
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// Row is the cells of a line of a table; Cell says how each is written.
type Row []any

// Table writes rows as a table, or as JSON objects. header has the names of the columns with | between them. If there
// are no rows, none is a remark.
func Table[T any](p *Printer, none string, all []T, header string, row func(T) Row) error {
	if p.JSON {
		for _, one := range all {
			p.Object(one)
		}
		return p.failed
	}
	if len(all) == 0 {
		p.Note("%s", none)
		return p.failed
	}
	lines := [][]string{strings.Split(header, "|")}
	for _, one := range all {
		var cells []string
		for _, cell := range row(one) {
			cells = append(cells, oneline.Clean(Cell(cell)))
		}
		lines = append(lines, cells)
	}
	p.align(fit(lines, p.width))
	return p.failed
}

// Facts writes names and values, a pair a line. It leaves out empty values.
func (p *Printer) Facts(pairs ...any) {
	var lines [][]string
	longest := 0
	for pair := range slices.Chunk(pairs, 2) {
		name, value := Cell(pair[0]), oneline.Clean(Cell(pair[1]))
		if value != "" {
			lines = append(lines, []string{name, value})
			longest = max(longest, utf8.RuneCountInString(name))
		}
	}
	room := p.width - longest - 2
	var wrapped [][]string
	for _, line := range lines {
		parts := []string{line[1]}
		if room >= 20 && !strings.HasPrefix(line[1], "{") { // JSON stays as it is, to be copied
			parts = wrap(line[1], room)
		}
		for _, part := range parts {
			wrapped = append(wrapped, []string{line[0], part})
			line[0] = ""
		}
	}
	p.align(wrapped)
}

func (p *Printer) align(lines [][]string) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, cells := range lines {
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	p.fail(table.Flush())
	for line := range strings.Lines(text.String()) {
		p.Write([]byte(p.paint(strings.TrimRight(line, " \n")) + "\n"))
	}
}

// fit cuts the widest cells until the table fits the width.
func fit(lines [][]string, width int) [][]string {
	const least = 12
	widths := make([]int, len(lines[0]))
	total := 2 * (len(widths) - 1)
	for i := range widths {
		for _, cells := range lines {
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
		total += widths[i]
	}
	for width > 0 && total > width {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= least {
			break
		}
		widths[widest]--
		total--
	}
	for _, cells := range lines {
		for i := range cells {
			cells[i] = Cut(cells[i], widths[i])
		}
	}
	return lines
}

// wrap breaks text at spaces into lines of at most width characters.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// paints are the colours of words that describe a state.
var paints = map[string]string{
	"ok": "32", "warn": "33", "bad": "31", "unknown": "35", "info": "32", "warning": "33", "high": "31", "critical": "31;1",
}

// paint colours the first word of a line, after the columns have their widths.
func (p *Printer) paint(line string) string {
	word, _, _ := strings.Cut(line, " ")
	if colour := paints[word]; p.colour && colour != "" {
		return "\x1b[" + colour + "m" + word + "\x1b[0m" + line[len(word):]
	}
	return line
}
