// Package yamldoc reads a file of one YAML document, and says where it is none.
package yamldoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Problem is why a text is no YAML document.
type Problem struct {
	Line int // 0: unknown
	Text string
}

// Parse reads the single document of a file. It is nil if the file has only comments.
func Parse(text []byte) (*yaml.Node, *Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntax(text, err)
	}
	switch err := decoder.Decode(&more); {
	case errors.Is(err, io.EOF):
		return document.Content[0], nil
	case err != nil:
		return nil, syntax(text, err)
	}
	return nil, &Problem{Line: more.Line, Text: "is a second document: only one is allowed"}
}

var (
	syntaxError = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)
	// The parser reports these with the number of the line before.
	lineBefore = regexp.MustCompile(`^(did not find expected (<document start>|',' or|key|'-' indicator|node content)|found undefined tag)`)
	oneSign    = regexp.MustCompile(`'.'`)
)

// syntax is the parser's error without what it quotes, which may be a part of a password: `password: *x` refers to an
// anchor.
func syntax(text []byte, err error) *Problem {
	p := &Problem{Text: "is not YAML"}
	m := syntaxError.FindStringSubmatch(err.Error())
	if m == nil {
		return p
	}
	p.Line, _ = strconv.Atoi(m[1]) // 0: it gave none
	if lineBefore.MatchString(m[2]) {
		p.Line = min(p.Line+1, bytes.Count(bytes.TrimSpace(text), []byte("\n"))+1)
	}
	if strings.ContainsAny(oneSign.ReplaceAllString(m[2], ""), "'`\"") {
		m[2] = "texts that begin with one of * & ! need quotes"
	}
	p.Text += ": " + m[2]
	return p
}

// JSON is a document as JSON, and where it is none: what JSON does not have, a key twice, an alias.
func JSON(n *yaml.Node) (json.RawMessage, []Problem) {
	var c converter
	c.value(n)
	return c.out.Bytes(), c.problems
}

// number is one of JSON.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// IsNumber tells whether a plain scalar is a number of JSON: a text like it has to be quoted.
func IsNumber(scalar string) bool { return number.MatchString(scalar) }

type converter struct {
	out      bytes.Buffer
	problems []Problem
}

func (c *converter) problem(n *yaml.Node, format string, args ...any) {
	c.problems = append(c.problems, Problem{n.Line, fmt.Sprintf(format, args...)})
}

func (c *converter) value(n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		c.mapping(n)
	case yaml.SequenceNode:
		c.out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				c.out.WriteByte(',')
			}
			c.value(item)
		}
		c.out.WriteByte(']')
	case yaml.AliasNode:
		c.problem(n, "has an alias: write the value out")
	default:
		c.scalar(n)
	}
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		c.problem(n, "has the tag %s, which means nothing here", n.Tag)
	}
}

func (c *converter) mapping(n *yaml.Node) {
	lines := map[string]int{}
	c.out.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			c.problem(key, "has a key that is not text")
		case lines[key.Value] > 0:
			c.problem(key, "%q is a duplicate: first in line %d", key.Value, lines[key.Value])
		}
		lines[key.Value] = key.Line
		if i > 0 {
			c.out.WriteByte(',')
		}
		c.write(key.Value)
		c.out.WriteByte(':')
		c.value(n.Content[i+1])
	}
	c.out.WriteByte('}')
}

func (c *converter) scalar(n *yaml.Node) {
	switch tag := n.ShortTag(); {
	case tag == "!!null":
		c.out.WriteString("null")
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0 && IsNumber(n.Value):
		c.out.WriteString(n.Value) // every digit of it, and one beyond a float64, which YAML takes for a text
	case tag == "!!int":
		c.problem(n, "has the number %s: write it in decimal digits, or as a text in quotes", n.Value)
	case tag == "!!bool" || tag == "!!float":
		var value any
		if err := n.Decode(&value); err != nil {
			c.problem(n, "is not %s", tag[2:])
		}
		c.write(value)
	default:
		c.write(n.Value)
	}
}

func (c *converter) write(value any) {
	text, err := json.Marshal(value)
	if err != nil { // infinity
		c.problems = append(c.problems, Problem{Text: "has a number that JSON does not have"})
	}
	c.out.Write(text)
}

// Line is the line of what a JSON pointer points at.
func Line(n *yaml.Node, pointer string) int {
	line := n.Line
	for _, name := range strings.Split(pointer, "/")[1:] {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		index, _ := strconv.Atoi(name)
		switch {
		case n.Kind == yaml.SequenceNode && index < len(n.Content):
			n, line = n.Content[index], n.Content[index].Line
		case n.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == name {
					n, line = n.Content[i+1], n.Content[i].Line
					break
				}
			}
		}
	}
	return line
}
