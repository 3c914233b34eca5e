// Package target describes the targets that a route may name: their kinds, the form of target_ref for each, and their
// options. The description is the JSON in sql/code/route/target_rules.sql, which the database checks routes with as well.
package target

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tidemarkhq/tidemark/sql"
)

// Kind is a kind of target.
type Kind struct {
	Kind     string   `json:"kind"`
	Ref      string   `json:"ref"`       // what target_ref is
	Example  string   `json:"example"`   // an example of target_ref
	MaxBytes int      `json:"max_bytes"` // limit of target_ref
	URL      bool     `json:"url"`       // target_ref is a URL; its parameters must not be secrets
	OneOf    []string `json:"one_of"`    // options of which a route needs exactly one
	Rules    []Rule   `json:"rules"`
}

// Rule is a rule that target_ref must obey.
type Rule struct {
	Must    *Pattern `json:"must"`
	Not     *Pattern `json:"not"`
	Problem string   `json:"problem"`
}

// Option is an option of routes to some kinds of targets.
type Option struct {
	Option  string      `json:"option"`
	Kinds   []string    `json:"kinds"`
	Type    string      `json:"type"` // text, secret, boolean, choice, whole, number or headers
	Pattern *Pattern    `json:"pattern"`
	Choices []string    `json:"choices"`
	Min     json.Number `json:"min"`
	Max     json.Number `json:"max"` // of a text: characters
	Must    string      `json:"must"`
	Default string      `json:"default"`
	Meaning string      `json:"meaning"`
}

// Pattern is a regular expression that means the same in PostgreSQL.
type Pattern struct{ *regexp.Regexp }

// patterns are alternatives: a text matches where one of them does.
type patterns []Pattern

func (all patterns) MatchString(text string) bool {
	return slices.ContainsFunc(all, func(p Pattern) bool { return p.MatchString(text) })
}

// UnmarshalText compiles the pattern.
func (p *Pattern) UnmarshalText(text []byte) (err error) {
	p.Regexp, err = regexp.Compile(string(text))
	return err
}

type rules struct {
	Name           Pattern  `json:"name"`
	KeyPrefix      Pattern  `json:"key_prefix"`
	SecretName     patterns `json:"secret_name"`
	SecretValue    Pattern  `json:"secret_value"`
	HeaderName     Pattern  `json:"header_name"`
	HeaderValue    Pattern  `json:"header_value"`
	ReservedHeader patterns `json:"reserved_header"`
	Kinds          []Kind   `json:"kinds"`
	Options        []Option `json:"options"`
}

var known = read()

// read panics if the description cannot be read: it is part of the build, so the first test finds the mistake.
func read() (r rules) {
	file, err := sql.Files.ReadFile("code/route/target_rules.sql")
	if err != nil {
		panic(err)
	}
	parts := strings.Split(string(file), "$json$")
	if len(parts) != 3 {
		panic("sql/code/route/target_rules.sql has no JSON between two $json$")
	}
	if err := json.Unmarshal([]byte(parts[1]), &r); err != nil {
		panic(fmt.Errorf("sql/code/route/target_rules.sql: %w", err))
	}
	return r
}

// Kinds returns all kinds of targets.
func Kinds() []Kind { return known.Kinds }

// Options returns the options of routes to the kind.
func Options(kind string) []Option {
	var all []Option
	for _, o := range known.Options {
		for _, k := range o.Kinds {
			if k == kind {
				all = append(all, o)
			}
		}
	}
	return all
}

// Takes describes the values of the option in a few words.
func (o Option) Takes() string {
	switch o.Type {
	case "choice":
		return strings.Join(o.Choices, ", ")
	case "whole", "number":
		return fmt.Sprintf("%s to %s", o.Min, o.Max)
	case "boolean":
		return "true, false"
	case "secret":
		return "name of a secret"
	case "headers":
		return "object"
	default:
		return "text"
	}
}

// Table returns the description as Markdown tables, for docs/daemon.md.
func Table() string {
	var b strings.Builder
	b.WriteString("| kind | `target_ref` | example |\n|---|---|---|\n")
	for _, k := range known.Kinds {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", k.Kind, k.Ref, k.Example)
	}
	b.WriteString("\n| option | kinds | takes | default | meaning |\n|---|---|---|---|---|\n")
	for _, o := range known.Options {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", o.Option, strings.Join(o.Kinds, ", "), o.Takes(), o.Default, o.Meaning)
	}
	return b.String()
}

// Help returns the description as text, for the command's help.
func Help() string {
	var b strings.Builder
	b.WriteString("Kinds of targets, and what --target-ref is:\n")
	for _, k := range known.Kinds {
		fmt.Fprintf(&b, "  %-8s %s, such as %s\n", k.Kind, k.Ref, k.Example)
	}
	b.WriteString("\nOptions:\n")
	for _, o := range known.Options {
		fmt.Fprintf(&b, "  %-16s %s: %s", o.Option, strings.Join(o.Kinds, ", "), o.Meaning)
		fmt.Fprintf(&b, " (%s", o.Takes())
		if o.Default != "" {
			fmt.Fprintf(&b, "; default %s", o.Default)
		}
		b.WriteString(")\n")
	}
	return b.String()
}
