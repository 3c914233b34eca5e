package bundle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tidemarkhq/tidemark/internal/strict"
)

// Problem is something wrong in a bundle.
type Problem struct {
	File   string `json:"file"` // within the bundle
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"problem"`
}

func (p Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at += ":" + strconv.Itoa(p.Line)
		if p.Column > 0 {
			at += ":" + strconv.Itoa(p.Column)
		}
	}
	return at + ": " + p.Text
}

// yamlReader reads nodes strictly, and notes each problem with its place.
type yamlReader struct {
	file     string
	problems []Problem
}

func (r *yamlReader) problem(n *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, Problem{r.file, n.Line, n.Column, fmt.Sprintf(format, args...)})
}

// fields are the values of a mapping by its keys, of which others than the known ones are refused. Without known keys any may be
// there.
func (r *yamlReader) fields(path string, n *yaml.Node, known ...string) map[string]*yaml.Node {
	all, first := map[string]*yaml.Node{}, map[string]int{}
	if n.Kind != yaml.MappingNode {
		r.problem(n, "%s must be keys with values", path)
		return all
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := join(path, key.Value)
		switch {
		case key.Kind != yaml.ScalarNode || key.Value == "<<":
			r.problem(key, "%s has a key that is not text", path)
		case first[key.Value] > 0:
			r.problem(key, "%s is a duplicate: first in line %d", name, first[key.Value])
		case known != nil && !slices.Contains(known, key.Value):
			r.problem(key, "%s is an unknown key; known are %s", name, strings.Join(known, ", "))
		case value.Kind == yaml.AliasNode:
			r.problem(value, "%s is an alias: write the value out", name)
		case value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null":
			r.problem(value, "%s has no value: give it one, or leave the key out", name)
		default:
			all[key.Value] = value
		}
		first[key.Value] = max(first[key.Value], key.Line)
	}
	return all
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (r *yamlReader) text(path string, n *yaml.Node) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || n.Value == "" {
		r.problem(n, "%s must be text", path)
		return ""
	}
	return n.Value
}

// choice is one of some texts, the first by default.
func (r *yamlReader) choice(path string, n *yaml.Node, values ...string) string {
	text := r.text(path, n)
	if text == "" {
		return values[0]
	}
	if !slices.Contains(values, text) {
		r.problem(n, "%s is %s, must be one of %s", path, strict.Short(text), strings.Join(values, ", "))
	}
	return text
}

// number is a whole number from 1, or 0 if there is none.
func (r *yamlReader) number(path string, n *yaml.Node) int {
	if n == nil {
		return 0
	}
	number, err := strconv.ParseInt(n.Value, 10, 32)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || number < 1 {
		r.problem(n, "%s must be a whole number from 1", path)
		return 0
	}
	return int(number)
}

var days = regexp.MustCompile(`^([0-9]{1,5})d$`)

// duration is a text such as 10s, 90m or 30d, or "" if there is none.
func (r *yamlReader) duration(path string, n *yaml.Node, least, most time.Duration) string {
	text := r.text(path, n)
	if text == "" {
		return ""
	}
	length, err := time.ParseDuration(text)
	if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		length, err = time.Duration(n)*24*time.Hour, nil
	}
	if err != nil || length < least || length > most {
		r.problem(n, "%s must be a duration with its unit, such as 10s, 90m or 30d, from %v to %v", path, least, most)
		return ""
	}
	return text
}

func (r *yamlReader) list(path string, n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.problem(n, "%s must be a list", path)
		return nil
	}
	return n.Content
}

func (r *yamlReader) texts(path string, n *yaml.Node) (all []string) {
	for i, one := range r.list(path, n) {
		if text := r.text(fmt.Sprintf("%s[%d]", path, i), one); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// pairs is a mapping of texts to texts.
func (r *yamlReader) pairs(path string, n *yaml.Node) map[string]string {
	if n == nil {
		return nil
	}
	all := map[string]string{}
	fields := r.fields(path, n)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all[name] = r.text(join(path, name), fields[name])
	}
	return all
}
