package cli

import (
	"fmt"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/oneline"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// CausePage is where a cause has its page.
func CausePage(cause string) string { return "docs/runbooks/" + cause + ".md" }

// CauseBrief shows a cause, the facts, and the commands that mend it.
func CauseBrief(s *Session, c store.Cause) {
	s.causeHead(c)
	if len(c.CLI) > 0 {
		s.commands("next", c.CLI)
	} else {
		s.commands("next", c.SQL)
	}
}

// CauseWhole shows all that is known of a cause.
func CauseWhole(s *Session, c store.Cause) {
	s.causeHead(c)
	s.fact("means", c.Means)
	s.fact("do", c.Todo)
	s.commands("cli", c.CLI)
	s.commands("sql", c.SQL)
	s.fact("folded", strings.Join(c.Symptoms, "; "))
	s.fact("page", CausePage(c.Cause))
}

func (p *Printer) causeHead(c store.Cause) {
	title := c.Cause + " " + c.Subject
	if c.Finding != nil {
		title += fmt.Sprintf(" (finding %d)", *c.Finding)
	}
	if c.Since != nil {
		title += ", since " + p.Age(*c.Since)
	}
	if c.Waiting != nil {
		title += ", " + Count(*c.Waiting, "waits", "wait")
	}
	p.fact(c.Status, title)
	p.fact("found", c.Found)
}

// nameWidth is that of the names of facts: the longest is a status.
const nameWidth = len("unknown") + 2

// fact writes a name and a text, broken into lines of the terminal's width.
func (p *Printer) fact(name, text string) {
	lines := []string{text}
	if room := p.width - nameWidth; p.width > 0 && room >= 20 {
		lines = wrap(text, room)
	}
	p.aligned(name, lines)
}

// commands writes each command on a line of its own, as long as it is: a wrapped one could not be pasted.
func (p *Printer) commands(name string, all []string) { p.aligned(name, all) }

func (p *Printer) aligned(name string, lines []string) {
	if _, status := paints[name]; !status {
		name = "  " + name
	}
	for _, line := range lines {
		if line == "" {
			continue
		}
		p.Write([]byte(p.paint(strings.TrimRight(name+strings.Repeat(" ", nameWidth-len(name))+oneline.Clean(line), " ")) + "\n"))
		name = ""
	}
}
