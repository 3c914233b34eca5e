package config

import (
	"maps"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decoder fills a Config from the node tree of a file and from the environment, guided by the types, and notes every
// problem. yaml's own KnownFields is not enough: its errors name no key, and they quote values, which may be secrets.
type decoder struct {
	file     string
	env      map[string]string
	places   map[string]place // by path
	shown    map[string]string
	problems []Problem

	literal     bool            // the file itself contains a secret
	secretFiles map[string]bool // that secrets refer to
}

// place is where a value came from.
type place struct {
	line     int
	variable string
}

// problem notes a problem at the place of a key. A missing key has that of the nearest key that holds it.
func (d *decoder) problem(path, text string) {
	at, found := d.places[path]
	for holder := path; !found && holder != ""; at, found = d.places[holder] {
		holder = holder[:max(strings.LastIndexAny(holder, ".["), 0)]
	}
	p := Problem{Key: path, Text: text, Line: at.line, Variable: at.variable}
	if at.variable == "" {
		p.File = d.file
	}
	d.problems = append(d.problems, p)
}

// problemIn notes a problem in a line of the file that is not the place of a key.
func (d *decoder) problemIn(line int, path, text string) {
	d.problems = append(d.problems, Problem{File: d.file, Line: line, Key: path, Text: text})
}

// field is a field of a struct that stands in the configuration.
type field struct {
	reflect.StructTag
	name  string
	index int
	key   string
	omit  bool // Print leaves it out when it is zero
	typ   reflect.Type
}

func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key != "" && key != "-" {
			all = append(all, field{f.Tag, f.Name, i, key, options == "omitempty", f.Type})
		}
	}
	return all
}

func isScalar(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[Secret](), reflect.TypeFor[netip.Prefix]():
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int64, reflect.Bool:
		return true
	}
	return false
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// joinName is join for a name that the user chose, which may contain a dot.
func joinName(path, name string) string {
	if strings.Contains(name, ".") {
		name = `"` + name + `"`
	}
	return join(path, name)
}

func (d *decoder) decode(root *yaml.Node, c *Config) {
	d.structure("", root, reflect.ValueOf(c).Elem())
}

func (d *decoder) value(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case isScalar(v.Type()):
		d.scalar(path, n, v, tag)
	case v.Kind() == reflect.Struct:
		d.structure(path, n, v)
	case v.Kind() == reflect.Map:
		d.mapping(path, n, v, tag)
	case v.Kind() == reflect.Slice:
		d.list(path, n, v, tag)
	}
}

// structure walks the fields rather than the file, so that a variable can set a key that the file does not have.
func (d *decoder) structure(path string, n *yaml.Node, v reflect.Value) {
	given := d.pairs(path, n)
	var known []string
	for _, f := range fieldsOf(v.Type()) {
		known = append(known, f.key)
		child := join(path, f.key)
		at, found := given[f.key]
		variable := variableOf(child)
		switch {
		case configKeys[child] && d.env[variable] != "":
			d.places[child] = place{variable: variable}
			if problem := set(v.Field(f.index), d.env[variable], f.StructTag); problem != "" {
				d.problem(child, problem)
			}
		case found:
			d.places[child] = place{line: at.key.Line}
			d.value(child, at.value, v.Field(f.index), f.StructTag)
		case f.typ.Kind() == reflect.Struct && !isScalar(f.typ):
			d.places[child] = d.places[path]
			d.structure(child, nil, v.Field(f.index))
		}
	}
	for key, at := range given {
		if !slices.Contains(known, key) {
			d.unknownKey(path, key, at.key.Line, known)
		}
	}
}

func (d *decoder) unknownKey(path, key string, line int, known []string) {
	at, text := join(path, key), "unknown key"
	close := near(key, known)
	if close == "" && path == "" {
		for _, full := range slices.Sorted(maps.Keys(configKeys)) {
			if plain(full[strings.LastIndexByte(full, '.')+1:]) == plain(key) {
				close = full
			}
		}
	}
	switch {
	case key == "<<":
		text = "merge keys are not supported: write the keys out"
	case !plainKey.MatchString(key):
		// It may contain a value: {token:…} without a space is all key.
		at, text = path, "has an unknown key; is a space missing after a colon?"
	case close != "":
		text += "; did you mean " + close + "?"
	}
	d.problemIn(line, at, text)
}

type pair struct{ key, value *yaml.Node }

// pairs has the keys and values of a mapping. A null is an empty mapping: a section whose keys are all commented out.
func (d *decoder) pairs(path string, n *yaml.Node) map[string]pair {
	all := map[string]pair{}
	if n == nil || isNull(n) {
		return all
	}
	if n.Kind != yaml.MappingNode {
		if path == "" {
			d.places[path] = place{line: n.Line}
		}
		d.problem(path, "must be keys with values")
		return all
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.problemIn(key.Line, path, "has a key that is not text")
			continue
		}
		first, twice := all[key.Value]
		if twice {
			if plainKey.MatchString(key.Value) {
				d.problemIn(key.Line, join(path, key.Value), "is a duplicate: first in line "+strconv.Itoa(first.key.Line))
			} else {
				d.problemIn(key.Line, path, "has a duplicate key")
			}
			continue
		}
		all[key.Value] = pair{key, value}
	}
	return all
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// mapping is of names that the user chose.
func (d *decoder) mapping(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	pairs := d.pairs(path, n)
	if len(pairs) == 0 {
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(pairs)))
	for name, at := range pairs {
		if !plainKey.MatchString(name) {
			d.problemIn(at.key.Line, path, "has a name that is not plain: "+plainForm)
			continue
		}
		child := joinName(path, name)
		d.places[child] = place{line: at.key.Line}
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(child, at.value, element, tag)
		v.SetMapIndex(reflect.ValueOf(name), element)
	}
}

func (d *decoder) list(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	secrets := v.Type().Elem() == reflect.TypeFor[Secret]()
	if isNull(n) && !secrets {
		return
	}
	if secrets && n.Kind == yaml.ScalarNode {
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		d.value(path, n, v.Index(0), tag)
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.problem(path, "must be a list")
		return
	}
	if len(n.Content) == 0 {
		return // as if the key were missing
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		child := path + "[" + strconv.Itoa(i) + "]"
		d.places[child] = place{line: item.Line}
		d.value(child, item, v.Index(i), tag)
		if v.Type().Elem().Kind() == reflect.String && v.Index(i).String() == "" && !failed(d.problems, child) {
			d.problem(child, "is empty")
		}
	}
}

// scalar never reports the value: it may be a secret in a wrong place.
func (d *decoder) scalar(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	want, tagged := typeName(v.Type())
	switch {
	case n.Kind != yaml.ScalarNode:
		d.problem(path, want)
		return
	case isNull(n):
		d.problem(path, "has no value: give it one, or leave the key out")
		return
	}
	_, secret := v.Interface().(Secret)
	x, problem := d.expand(n.Value, secret)
	if problem != "" {
		d.problem(path, problem)
		return
	}
	if n.ShortTag() != tagged && (n.ShortTag() != "!!str" || !x.refers) {
		d.problem(path, want)
		return
	}
	if x.refers {
		d.shown[path] = x.shown
	}
	if problem := set(v, x.text, tag); problem != "" {
		d.problem(path, problem)
		return
	}
	// An address of the database without a password is none.
	d.literal = d.literal || secret && x.literal && (tag.Get("is") != "database" || hasPassword(x.text))
}

func hasPassword(address string) bool {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		_, has := u.User.Password()
		return has
	}
	return strings.Contains(address, "password")
}

// typeName says what a value must be, and the YAML tag of such a value.
func typeName(t reflect.Type) (want, tag string) {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "must be a duration with its unit, such as 30s or 10ms", "!!str"
	case t == reflect.TypeFor[netip.Prefix]():
		return "must be a network such as 10.1.0.0/16", "!!str"
	case t.Kind() == reflect.Int:
		return "must be a whole number", "!!int"
	case t.Kind() == reflect.Bool:
		return "must be true or false", "!!bool"
	default:
		return "must be text; put quotes around it", "!!str"
	}
}
