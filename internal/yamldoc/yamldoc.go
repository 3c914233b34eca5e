// Package yamldoc reads a file of one YAML document, and says where it is none.
package yamldoc

import (
	"bytes"
	"errors"
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
