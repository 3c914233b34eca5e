// Package ascode reads and writes the YAML files of tidemark export, plan and apply.
package ascode

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/yamldoc"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema of the file, for editors. The database has the last word.
func Schema() []byte { return schema }

// sections are the keys of a file that hold things, in the order in which they are written.
var sections = []struct{ key, kind string }{
	{"domains", "domain"},
	{"types", "type"},
	{"captures", "capture"},
	{"sources", "source"},
	{"workers", "worker"},
	{"routes", "route"},
	{"heartbeats", "heartbeat"},
	{"gates", "gate"},
}

// File is the configuration that a file describes.
type File struct {
	Name   string // what the file calls itself; things are marked with it
	Things []store.Thing
}

var compiled = sync.OnceValues(func() (*payload.Schema, error) { return payload.Compile(schema) })

// Read reads a file. Without problems it fits the schema.
func Read(text []byte) (File, []yamldoc.Problem, error) {
	root, problem := yamldoc.Parse(text)
	if problem != nil {
		return File{}, []yamldoc.Problem{*problem}, nil
	}
	if root == nil {
		return File{}, []yamldoc.Problem{{Text: "is empty"}}, nil
	}
	document, problems := yamldoc.JSON(root)
	if len(problems) > 0 {
		return File{}, problems, nil
	}
	rules, err := compiled()
	if err != nil {
		return File{}, nil, err
	}
	misfits, err := rules.Violations(document)
	if err != nil {
		return File{}, []yamldoc.Problem{{Text: strings.Replace(err.Error(), "payload", "the file", 1)}}, nil
	}
	for _, m := range misfits {
		problems = append(problems, yamldoc.Problem{
			Line: yamldoc.Line(root, m.Pointer), Text: strings.Replace(m.String(), "the payload", "the file", 1),
		})
	}
	slices.SortFunc(problems, func(a, b yamldoc.Problem) int { return a.Line - b.Line })
	if len(problems) > 0 {
		return File{}, problems, nil
	}
	f, err := things(document)
	return f, nil, err
}

func things(document json.RawMessage) (f File, err error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(document, &parts); err != nil {
		return f, err
	}
	if err := json.Unmarshal(parts["file"], &f.Name); err != nil {
		return f, err
	}
	for _, s := range sections {
		var named map[string]json.RawMessage
		if part := parts[s.key]; part != nil {
			if err := json.Unmarshal(part, &named); err != nil {
				return f, err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			definition := named[name]
			switch {
			case s.kind == "gate":
				definition = slices.Concat(json.RawMessage(`{"open":`), definition, json.RawMessage(`}`))
			case string(definition) == "null": // a name without a column
				definition = json.RawMessage(`{}`)
			}
			f.Things = append(f.Things, store.Thing{Kind: s.kind, Name: name, Definition: definition})
		}
	}
	return f, nil
}

// Write writes a file that Read reads.
func Write(f File) ([]byte, error) {
	root := mapping(text("file"), text(f.Name))
	for _, s := range sections {
		part := mapping()
		for _, t := range f.Things {
			if t.Kind != s.kind {
				continue
			}
			value, err := node(t.Definition)
			if err != nil {
				return nil, err
			}
			if s.kind == "gate" {
				value = value.Content[1]
			}
			part.Content = append(part.Content, text(t.Name), value)
		}
		if len(part.Content) > 0 {
			root.Content = append(root.Content, text(s.key), part)
		}
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := encoder.Encode(root)
	return escaped(out.Bytes()), err
}

// hidden: the character cannot be seen, or changes the direction of the text around it. Spaces, tabs and line ends are not.
func hidden(r rune) bool {
	return r > '~' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Z, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// escaped escapes the hidden characters of a document. All of them are in double quotes: see text.
func escaped(document []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(document) {
		switch {
		case !hidden(r):
			out.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08X`, r)
		default:
			fmt.Fprintf(&out, `\u%04X`, r)
		}
	}
	return out.Bytes()
}

func mapping(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: content}
}

// inBlock are texts of several lines that can be read as a block; others are quoted.
var inBlock = regexp.MustCompile(`^\S[^\t\r]*\S\n?$`)

func text(value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if strings.Contains(value, "\n") && !inBlock.MatchString(value) || yamldoc.IsNumber(value) || strings.ContainsFunc(value, hidden) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// node is a JSON value as YAML in blocks, in the same order.
func node(document json.RawMessage) (*yaml.Node, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	return value(decoder)
}

func value(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		n := mapping()
		if token == '[' {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
		for decoder.More() { // of an object keys and values in turn
			child, err := value(decoder)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		_, err := decoder.Token()
		return n, err
	case string:
		return text(token), nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(cmp.Or(token, any("null")))}, nil
}
